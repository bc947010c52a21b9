//! Metadata store of a simulated node: entries in memory, and undo records of transactions for a crash.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use description::{MetadataCosts, Sourced, Time};
use machine::{
    InFlight, MetadataChanges, MetadataEntry, MetadataStore, MetadataTable, Permits, Result, Transaction,
};

use super::other_thread::OtherThread;
use crate::random::RandomStream;
use crate::sleep::Sleep;
use crate::trace::ProcessorActivity;
use crate::world::World;

/// Maximum number of transactions in one commit: as on real nodes.
const TOGETHER_MAX: usize = 64;

/// Metadata store of a simulated node.
///
/// A transaction takes processor time of the node, then takes effect in one instant. It is passed to another thread,
/// except a read-only one while that thread is idle. That thread commits all waiting transactions together, and blocks
/// while the device flushes committed ones.
#[derive(Clone)]
pub struct Metadata {
    store: Rc<Store>,
}

struct Store {
    world: Rc<World>,
    thread: OtherThread,
    /// Operations passed to the other thread.
    handed_over: InFlight,
    costs: MetadataCosts,
    state: RefCell<State>,
    /// Semaphore of the thread, and the requests waiting for it.
    turns: Permits,
    waiting: RefCell<Waiting>,
}

/// Requests waiting for the thread, numbered from 1 in order of arrival.
#[derive(Default)]
struct Waiting {
    requests: VecDeque<Waited>,
    /// Numbers of the last request that arrived, and of the last one completed.
    came: u64,
    done: u64,
}

/// Transaction that accesses these entries, or flush of all transactions up to one.
enum Waited {
    Transaction(Touched),
    Flush(u64),
}

#[derive(Default)]
struct State {
    table: MetadataTable,
    /// Numbers of transactions with changes: committed, and flushed to the device.
    committed: u64,
    flushed: u64,
    /// Undo records of the transactions not yet on the device, the latest last; `None` if no crash is expected.
    undo: Option<VecDeque<MetadataChanges>>,
}

impl Metadata {
    pub(super) fn new(world: Rc<World>, node: usize, costs: &MetadataCosts) -> Self {
        let (state, waiting, turns) = (RefCell::default(), RefCell::default(), Permits::new(1));
        let thread = OtherThread::new(world.clone(), node, costs.hand_over.value.0);
        let (handed_over, costs) = (InFlight::new(), costs.clone());
        Metadata { store: Rc::new(Store { world, thread, handed_over, costs, state, turns, waiting }) }
    }

    /// Records from now on the changes that a crash may undo.
    pub(crate) fn expect_crashes(&self) {
        let mut state = self.store.state.borrow_mut();
        state.flushed = state.committed;
        state.undo = Some(VecDeque::new());
    }

    /// Drops waiting requests, which are lost with the node.
    pub(super) fn kill(&self) {
        self.store.waiting.take();
    }

    /// Undoes a random number of the latest transactions that are not on the device.
    pub(super) fn crash(&self, stream: &mut RandomStream) {
        let mut state = self.store.state.borrow_mut();
        state.table.run += 1;
        let State { table, committed, flushed, undo, .. } = &mut *state;
        let Some(undo) = undo else { return };
        let left = stream.below(undo.len() as u64 + 1);
        while undo.len() as u64 > left {
            table.apply(undo.pop_back().expect("there are more than are left"));
        }
        // Changes that survive a crash are on the device.
        undo.clear();
        *flushed = *committed;
    }

    async fn carry_out<T, E>(
        &self,
        mut body: impl FnMut(&mut dyn Transaction) -> Result<std::result::Result<T, E>>,
        is_handed_over: bool,
    ) -> Result<std::result::Result<T, E>> {
        let Store { state, handed_over, .. } = &*self.store;
        let _handed_over = is_handed_over.then(|| handed_over.begin());
        // A trial run to determine its cost. So every body is called twice, which the trait allows.
        let mut touched = Touched::default();
        let tried = state.borrow().table.attempt(|table| body(&mut Counted { table, touched: &mut touched }));
        drop(tried);
        match is_handed_over {
            true => {
                self.store.thread.take_over().await;
                self.wait_for(Waited::Transaction(touched)).await;
            }
            false => self.store.compute(self.store.cost(touched), touched).await,
        }
        let attempt = state.borrow().table.attempt(&mut body);
        let (answer, changes) = attempt?;
        if answer.is_ok() && !changes.is_empty() {
            state.borrow_mut().commit(changes);
        }
        Ok(answer)
    }

    /// Waits until the thread has completed a request, together with the other waiting requests.
    async fn wait_for(&self, request: Waited) {
        let Store { turns, waiting, .. } = &*self.store;
        let number = waiting.borrow_mut().add(request);
        let _turn = turns.take().await;
        if waiting.borrow().done < number {
            let (batch, last) = waiting.borrow_mut().take_batch();
            self.store.carry_out_batch(batch).await;
            waiting.borrow_mut().done = last;
        }
    }
}

impl Waiting {
    /// Adds a request and returns its number.
    fn add(&mut self, request: Waited) -> u64 {
        self.requests.push_back(request);
        self.came += 1;
        self.came
    }

    /// Takes the next batch, and returns it with the number of its last request.
    fn take_batch(&mut self) -> (Vec<Waited>, u64) {
        let count = self.requests.len().min(TOGETHER_MAX);
        let batch = self.requests.drain(..count).collect();
        (batch, self.came - self.requests.len() as u64)
    }
}

impl Store {
    /// Waits for the time of a commit of these requests, and of a flush if the batch contains one.
    async fn carry_out_batch(&self, batch: Vec<Waited>) {
        let (mut work, mut all, mut flushes) = (None::<u64>, Touched::default(), false);
        for request in batch {
            match request {
                Waited::Transaction(touched) => {
                    let before = work.unwrap_or(self.costs.commit.value.0.as_nanos());
                    work = Some(before.saturating_add(self.cost(touched)));
                    all.read += touched.read;
                    all.changed += touched.changed;
                }
                Waited::Flush(needed) => flushes |= self.state.borrow().flushed < needed,
            }
        }
        if let Some(nanoseconds) = work {
            self.compute(nanoseconds, all).await;
        }
        if flushes {
            let through = self.state.borrow().committed;
            let executor = &self.world.executor;
            Sleep::until(executor, executor.now().saturating_add(self.costs.flush.value.0.as_nanos())).await;
            self.state.borrow_mut().flushed(through);
        }
    }

    /// Returns the processor time of a transaction in nanoseconds.
    fn cost(&self, Touched { read, changed }: Touched) -> u64 {
        let costs = &self.costs;
        let all = |each: &Sourced<Time>, count: u64| each.value.0.as_nanos().saturating_mul(count);
        let parts = [all(&costs.transaction, 1), all(&costs.entry, read), all(&costs.change, changed)];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    async fn compute(&self, nanoseconds: u64, Touched { read, changed }: Touched) {
        self.thread.work_here(nanoseconds, ProcessorActivity::Transaction(read + changed)).await;
    }
}

impl MetadataStore for Metadata {
    async fn transact<T: Send + 'static, E: Send + 'static>(
        &self,
        body: impl FnMut(&mut dyn Transaction) -> Result<std::result::Result<T, E>> + Send + 'static,
    ) -> Result<std::result::Result<T, E>> {
        self.carry_out(body, true).await
    }

    async fn look<T: Send + 'static, E: Send + 'static>(
        &self,
        body: impl FnMut(&mut dyn Transaction) -> Result<std::result::Result<T, E>> + Send + 'static,
    ) -> Result<std::result::Result<T, E>> {
        self.carry_out(body, !self.store.handed_over.is_empty()).await
    }

    async fn flush(&self) -> Result<()> {
        let needed = self.store.state.borrow().committed;
        // The caller that was to flush for others may have been dropped.
        while self.store.state.borrow().flushed < needed {
            self.wait_for(Waited::Flush(needed)).await;
        }
        Ok(())
    }

    fn run(&self) -> u64 {
        self.store.state.borrow().table.run
    }
}

impl State {
    fn commit(&mut self, changes: MetadataChanges) {
        let undo = self.table.apply(changes);
        self.committed += 1;
        if let Some(all) = &mut self.undo {
            all.push_back(undo);
        }
    }

    /// Marks the transactions up to this one as flushed to the device.
    fn flushed(&mut self, through: u64) {
        if let Some(undo) = &mut self.undo {
            undo.drain(..(through.saturating_sub(self.flushed) as usize).min(undo.len()));
        }
        self.flushed = self.flushed.max(through);
    }
}

/// Numbers of entries that a transaction has read and changed.
#[derive(Clone, Copy, Default)]
struct Touched {
    read: u64,
    changed: u64,
}

/// Transaction that counts its entries.
struct Counted<'a> {
    table: &'a mut dyn Transaction,
    touched: &'a mut Touched,
}

impl Transaction for Counted<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.touched.read += 1;
        self.table.get(key)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.touched.changed += 1;
        self.table.put(key, value)
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        self.touched.changed += 1;
        self.table.remove(key)
    }

    fn range(&mut self, from: &[u8], to: &[u8], most: usize) -> Result<Vec<MetadataEntry>> {
        let found = self.table.range(from, to, most)?;
        // A search costs one entry even if it finds none.
        self.touched.read += found.len().max(1) as u64;
        Ok(found)
    }

    fn run(&self) -> u64 {
        self.table.run()
    }
}
