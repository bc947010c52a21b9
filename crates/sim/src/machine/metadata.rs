//! A simulated node's store of metadata: entries in memory, and what each transaction has to take back in a crash.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use description::{MetadataCosts, Sourced, Time};
use machine::{
    InFlight, Instant, MetadataChanges, MetadataEntry, MetadataStore, MetadataTable, Permits, Result,
    Transaction,
};

use super::other_thread::OtherThread;
use crate::random::RandomStream;
use crate::sleep::Sleep;
use crate::trace::ProcessorActivity;
use crate::world::World;

/// The store of metadata of a simulated node.
///
/// A transaction takes the node's processor, then comes about in one instant. It is handed over to another thread, but
/// for one that only looks while the other has nothing to do. Flushes take turns at the device, and one that others
/// have waited for is theirs, too.
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
    device: Permits,
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
        let (state, device) = (RefCell::default(), Permits::new(1));
        let thread = OtherThread::new(world.clone(), node, costs.hand_over.value.0);
        let (handed_over, costs) = (InFlight::new(), costs.clone());
        Metadata { store: Rc::new(Store { world, thread, handed_over, costs, state, device }) }
    }

    /// Keeps from now on what is to be known when the node crashes.
    pub(crate) fn expect_crashes(&self) {
        let mut state = self.store.state.borrow_mut();
        state.flushed = state.committed;
        state.undo = Some(VecDeque::new());
    }

    /// Takes back the last transactions, as many as is drawn, of those that are not on the device.
    pub(super) fn crash(&self, stream: &mut RandomStream) {
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
        self.compute(touched, is_handed_over).await;
        let attempt = state.borrow().table.attempt(&mut body);
        let (answer, changes) = attempt?;
        if answer.is_ok() && !changes.is_empty() {
            state.borrow_mut().commit(changes);
        }
        Ok(answer)
    }

    /// Lets the time pass that a transaction takes.
    async fn compute(&self, Touched { read, changed }: Touched, is_handed_over: bool) {
        let Store { thread, costs, .. } = &*self.store;
        let all = |each: &Sourced<Time>, count: u64| each.value.0.as_nanos().saturating_mul(count);
        let parts = [all(&costs.transaction, 1), all(&costs.entry, read), all(&costs.change, changed)];
        let nanoseconds = parts.into_iter().fold(0, u64::saturating_add);
        let activity = ProcessorActivity::Transaction(read + changed);
        match is_handed_over {
            true => thread.work(nanoseconds, activity).await,
            false => thread.work_here(nanoseconds, activity).await,
        }
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
        let Store { world, costs, state, device, .. } = &*self.store;
        let needed = state.borrow().committed;
        let _turn = device.take().await;
        if state.borrow().flushed >= needed {
            return Ok(());
        }
        let through = state.borrow().committed;
        let end = Instant::from_nanos(world.executor.now()) + costs.flush.value.0;
        Sleep::until(&world.executor, end.as_nanos()).await;
        state.borrow_mut().flushed(through);
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
