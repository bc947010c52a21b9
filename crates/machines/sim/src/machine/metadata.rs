//! A simulated node's store of metadata: entries in memory, and what each transaction has to take back in a crash.

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

/// Transactions that are committed at once, at most: as many as real nodes commit together.
const TOGETHER_MAX: usize = 64;

/// The store of metadata of a simulated node.
///
/// A transaction takes the node's processor, then comes about in one instant. It is handed over to another thread, but
/// for one that only looks while the other has nothing to do. That thread commits at once what waits for it, and
/// does nothing else while the device flushes what was committed.
#[derive(Clone)]
pub struct Metadata {
    store: Rc<Store>,
}

struct Store {
    world: Rc<World>,
    thread: OtherThread,
    /// What the other thread has to do.
    handed_over: InFlight,
    costs: MetadataCosts,
    state: RefCell<State>,
    /// Whose turn it is at the thread, and what waits for it.
    turns: Permits,
    waiting: RefCell<Waiting>,
}

/// What waits for the thread, numbered from 1 on in the order in which it came.
#[derive(Default)]
struct Waiting {
    requests: VecDeque<Waited>,
    /// The number of the last one that came, and of the last one that is done.
    came: u64,
    done: u64,
}

/// A transaction that touches these entries, or a flush of all transactions up to one.
enum Waited {
    Transaction(Touched),
    Flush(u64),
}

#[derive(Default)]
struct State {
    table: MetadataTable,
    /// How many transactions have changed anything, and how many of them are on the device.
    committed: u64,
    flushed: u64,
    /// What takes back each transaction that is not on the device, the last one last; none if no crash is expected.
    undo: Option<VecDeque<MetadataChanges>>,
}

impl Metadata {
    pub(super) fn new(world: Rc<World>, node: usize, costs: &MetadataCosts) -> Self {
        let (state, waiting, turns) = (RefCell::default(), RefCell::default(), Permits::new(1));
        let thread = OtherThread::new(world.clone(), node, costs.hand_over.value.0);
        let (handed_over, costs) = (InFlight::new(), costs.clone());
        Metadata { store: Rc::new(Store { world, thread, handed_over, costs, state, turns, waiting }) }
    }

    /// Keeps from now on what is to be known when the node crashes.
    pub(crate) fn expect_crashes(&self) {
        let mut state = self.store.state.borrow_mut();
        state.flushed = state.committed;
        state.undo = Some(VecDeque::new());
    }

    /// Takes back the last transactions, as many as is drawn, of those that are not on the device.
    pub(super) fn crash(&self, stream: &mut RandomStream) {
        // What waited is gone with the node.
        self.store.waiting.take();
        let mut state = self.store.state.borrow_mut();
        state.table.run += 1;
        let State { table, committed, flushed, undo, .. } = &mut *state;
        let Some(undo) = undo else { return };
        let left = stream.below(undo.len() as u64 + 1);
        while undo.len() as u64 > left {
            table.apply(undo.pop_back().expect("there are more than are left"));
        }
        // What a crash has left is on the device.
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
        // Tried once to see what it takes: so every body is called again, which it may be.
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

    /// Lets the time pass until the thread has done something for which it waits, with all that waits with it.
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
    /// Adds a request; its number.
    fn add(&mut self, request: Waited) -> u64 {
        self.requests.push_back(request);
        self.came += 1;
        self.came
    }

    /// What is done together now, and the number of its last request.
    fn take_batch(&mut self) -> (Vec<Waited>, u64) {
        let count = self.requests.len().min(TOGETHER_MAX);
        let batch = self.requests.drain(..count).collect();
        (batch, self.came - self.requests.len() as u64)
    }
}

impl Store {
    /// Lets the time pass that a commit of these requests takes, and a flush if one is among them.
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

    /// What the processor works for a transaction, in nanoseconds.
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
        // The caller that was to flush for others may have given up.
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

    /// The transactions up to this one are on the device.
    fn flushed(&mut self, through: u64) {
        if let Some(undo) = &mut self.undo {
            undo.drain(..(through.saturating_sub(self.flushed) as usize).min(undo.len()));
        }
        self.flushed = self.flushed.max(through);
    }
}

/// How many entries a transaction has read and changed.
#[derive(Clone, Copy, Default)]
struct Touched {
    read: u64,
    changed: u64,
}

/// A transaction whose entries are counted.
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
        // One is looked for even if none is there.
        self.touched.read += found.len().max(1) as u64;
        Ok(found)
    }

    fn run(&self) -> u64 {
        self.table.run()
    }
}
