//! Nodes whose disks fail, or keep a write waiting, and whose stores of metadata fail, when a promise wants them to.
//! All else is the machine's below.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::Future;
use std::ops::Range;
use std::rc::Rc;

use machine::{
    Buf, BufferPool, Computer, Condition, Disk, Duration, Error, InFlight, Instant, Machine, MetadataEntry,
    MetadataStore, NodeId, NodeNotes, Object, ObjectId, Payload, Result, Space, Transaction, Work, give_way,
};

/// A node with faults.
#[derive(Clone)]
pub(super) struct Faulty<M: Machine> {
    machine: M,
    disks: Rc<[FaultyDisk<M>]>,
    metadata: Option<FaultyMetadata<M>>,
    faults: Rc<Faults>,
}

/// What goes wrong with the disks of a node.
#[derive(Default)]
pub(super) struct Faults {
    /// How many of the next writes fail.
    pub(super) failing_writes: Cell<u32>,
    /// How many of the next flushes fail.
    pub(super) failing_flushes: Cell<u32>,
    /// How many of the next flushes find that the medium has failed, and with how many objects that has happened: no
    /// flush of these succeeds any more.
    pub(super) failing_syncs: Cell<u32>,
    unsynced: RefCell<BTreeSet<(NodeId, usize, ObjectId)>>,
    /// How many of the next removals of objects fail.
    pub(super) failing_removals: Cell<u32>,
    /// Whether the disks and the store of metadata are gone, as with a directory that has been removed.
    pub(super) gone: Cell<bool>,
    /// How many of the next transactions on metadata fail.
    pub(super) failing_transactions: Cell<u32>,
    /// How often the store of metadata seems to have crashed.
    crashes: Cell<u64>,
    /// How often anything has been flushed, how many flushes are under way, and how many were at once.
    pub(super) flushes: Cell<u32>,
    flushing: InFlight,
    pub(super) flushing_most: Cell<usize>,
    /// How often the store of metadata has been flushed.
    pub(super) metadata_flushes: Cell<u32>,
    /// How many of the next copies into the cache meet a defect.
    pub(super) defective_copies: Cell<u32>,
    /// How often the names have been listed.
    pub(super) lists: Cell<u32>,
    /// How often anything has been read.
    pub(super) reads: Cell<u32>,
    /// The bytes of the tasks that have been started and have not ended, as far as they are not elsewhere in memory.
    pub(super) task_bytes: Cell<usize>,
    /// Where the arm was sent to write, by [`Disk::position`], in this order.
    pub(super) written_at: RefCell<Vec<u64>>,
    /// By how much its clock on the wall is ahead.
    pub(super) ahead: Cell<Duration>,
    /// By how much the clock has jumped by which it measures time.
    pub(super) jumped: Cell<Duration>,
    /// How many bytes the disks have room for, if that is not what they say themselves.
    pub(super) room: Cell<Option<u64>>,
    /// Number of coming reads and writes of a disk with a bit that flips in the node's memory: after the read, and
    /// before the write.
    pub(super) flipped_reads: Cell<u32>,
    pub(super) flipped_writes: Cell<u32>,
    /// Which bytes of every object are damaged.
    damaged: RefCell<Range<u64>>,
    holding: Cell<bool>,
    /// Whether the next change of an object's size waits, and whether one does.
    holds_resize: Cell<bool>,
    resize_waits: Cell<bool>,
    released: Condition,
}

impl Faults {
    /// Fails if all is gone.
    fn check_there(&self) -> Result<()> {
        fail(&Cell::new(self.gone.get().into()), "a disk that is gone")
    }

    /// Has the store of metadata seem to have crashed.
    pub(super) fn crash(&self) {
        self.crashes.set(self.crashes.get() + 1);
    }

    /// Lets writes, lists and operations on metadata that come from now on wait until [`release`](Self::release).
    pub(super) fn hold(&self) {
        self.holding.set(true);
    }

    async fn wait(&self) {
        while self.holding.get() {
            self.released.wait().await;
        }
    }

    /// Lets the next change of an object's size wait until [`release`](Self::release).
    pub(super) fn hold_resize(&self) {
        self.holds_resize.set(true);
    }

    /// Whether a change of an object's size waits.
    pub(super) fn has_held_resize(&self) -> bool {
        self.resize_waits.get()
    }

    /// Lets these bytes of every object be damaged.
    pub(super) fn damage(&self, bytes: Range<u64>) {
        self.damaged.replace(bytes);
    }

    pub(super) fn release(&self) {
        self.holding.set(false);
        self.resize_waits.set(false);
        self.released.wake_all();
    }
}

impl<M: Machine> Faulty<M> {
    /// The same nodes, with faults to come.
    pub(super) fn all(nodes: Vec<M>) -> Vec<Self> {
        nodes.into_iter().map(|machine| Self::with_disks_of(machine.clone(), &[machine])).collect()
    }

    /// The same node, with the disks of these machines, the names of the first of them, and with faults to come.
    pub(super) fn with_disks_of(machine: M, machines: &[M]) -> Self {
        let faults = Rc::new(Faults::default());
        let disk =
            |machine: &M, index| FaultyDisk { machine: machine.clone(), index, faults: faults.clone() };
        let disks_of =
            |machine: &M| (0..machine.disks().len()).map(|index| disk(machine, index)).collect::<Vec<_>>();
        let disks = machines.iter().flat_map(disks_of).collect();
        let metadata = machines.first().and_then(|first| first.metadata()).cloned();
        let metadata = metadata.map(|store| FaultyMetadata { store, faults: faults.clone() });
        Faulty { machine, disks, metadata, faults }
    }

    pub(super) fn faults(&self) -> &Faults {
        &self.faults
    }
}

impl<M: Machine> Machine for Faulty<M> {
    type Net = M::Net;
    type Disk = FaultyDisk<M>;
    type Metadata = FaultyMetadata<M>;

    fn node(&self) -> NodeId {
        self.machine.node()
    }

    fn now(&self) -> Instant {
        self.machine.now() + self.faults.jumped.get()
    }

    fn date(&self) -> Duration {
        self.machine.date() + self.faults.ahead.get()
    }

    fn computer(&self) -> Option<Computer> {
        self.machine.computer()
    }

    fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> {
        // As long as it would have been before.
        let time = deadline.since(self.now());
        self.machine.sleep_until(self.machine.now() + time)
    }

    fn spawn(&self, name: &'static str, task: impl Future<Output = Result<()>> + 'static) {
        let (bytes, faults) = (size_of_val(&task), self.faults.clone());
        faults.task_bytes.set(faults.task_bytes.get() + bytes);
        self.machine.spawn(name, async move {
            let outcome = task.await;
            faults.task_bytes.set(faults.task_bytes.get() - bytes);
            outcome
        });
    }

    fn contain<T>(
        &self,
        name: &'static str,
        work: impl Future<Output = T>,
    ) -> impl Future<Output = Result<T>> {
        self.machine.contain(name, work)
    }

    async fn compute(&self, work: Work) {
        if matches!(work, Work::Copy { .. }) {
            fail(&self.faults.defective_copies, "copying").expect("no defect is met");
        }
        self.machine.compute(work).await;
    }

    fn net(&self) -> &M::Net {
        self.machine.net()
    }

    fn disks(&self) -> &[FaultyDisk<M>] {
        &self.disks
    }

    fn metadata(&self) -> Option<&FaultyMetadata<M>> {
        self.metadata.as_ref()
    }

    fn buffers(&self) -> &BufferPool {
        self.machine.buffers()
    }

    fn notes(&self) -> &NodeNotes {
        self.machine.notes()
    }
}

/// The store of metadata of such a node.
#[derive(Clone)]
pub(super) struct FaultyMetadata<M: Machine> {
    store: M::Metadata,
    faults: Rc<Faults>,
}

/// A transaction after so many crashes.
struct Crashed<'a> {
    transaction: &'a mut dyn Transaction,
    crashes: u64,
}

impl Transaction for Crashed<'_> {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.transaction.get(key)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.transaction.put(key, value)
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        self.transaction.remove(key)
    }

    fn range(&mut self, from: &[u8], to: &[u8], most: usize) -> Result<Vec<MetadataEntry>> {
        self.transaction.range(from, to, most)
    }

    fn run(&self) -> u64 {
        self.transaction.run() + self.crashes
    }
}

impl<M: Machine> MetadataStore for FaultyMetadata<M> {
    async fn transact<T: Send + 'static, E: Send + 'static>(
        &self,
        mut body: impl FnMut(&mut dyn Transaction) -> Result<std::result::Result<T, E>> + Send + 'static,
    ) -> Result<std::result::Result<T, E>> {
        fail(&self.faults.failing_transactions, "a transaction")?;
        self.faults.wait().await;
        let crashes = self.faults.crashes.get();
        self.store.transact(move |transaction| body(&mut Crashed { transaction, crashes })).await
    }

    async fn look<T: Send + 'static, E: Send + 'static>(
        &self,
        mut body: impl FnMut(&mut dyn Transaction) -> Result<std::result::Result<T, E>> + Send + 'static,
    ) -> Result<std::result::Result<T, E>> {
        self.faults.check_there()?;
        self.faults.wait().await;
        let crashes = self.faults.crashes.get();
        self.store.look(move |transaction| body(&mut Crashed { transaction, crashes })).await
    }

    fn flush(&self) -> impl Future<Output = Result<()>> {
        self.faults.metadata_flushes.set(self.faults.metadata_flushes.get() + 1);
        self.store.flush()
    }

    fn run(&self) -> u64 {
        self.store.run() + self.faults.crashes.get()
    }
}

/// A disk of such a node.
pub(super) struct FaultyDisk<M: Machine> {
    machine: M,
    index: usize,
    faults: Rc<Faults>,
}

impl<M: Machine> FaultyDisk<M> {
    fn disk(&self) -> &M::Disk {
        &self.machine.disks()[self.index]
    }

    /// What this part of an object takes on a disk in bytes, as on a real one: nothing where data are, pages elsewhere;
    /// the first one brings a header and records, and the first of each stretch the sums of all of it.
    async fn needed(&self, object: ObjectId, part: Range<u64>) -> Result<u64> {
        const PAGE: u64 = 4096;
        const FIRST: u64 = 3 * PAGE;
        const STRETCH: u64 = 1 << 20;
        const SUMS: u64 = 2 * PAGE;
        let has = async |part: Range<u64>| {
            let data = self.disk().data_after(object, part.start).await?;
            Result::Ok(data.is_some_and(|data| data.start < part.end))
        };
        let first = if has(0..u64::MAX).await? { 0 } else { FIRST };
        let stretch = part.start / STRETCH * STRETCH;
        let sums = if has(stretch..stretch + STRETCH).await? { 0 } else { SUMS };
        let (mut pages, mut page) = (0, part.start / PAGE * PAGE);
        while page < part.end {
            pages += if has(page..page + PAGE).await? { 0 } else { PAGE };
            page += PAGE;
        }
        Ok(first + sums + pages)
    }

    /// Fails if a flush of the object is to fail, or has found before that the medium has failed.
    fn check_flush(&self, object: ObjectId) -> Result<()> {
        fail(&self.faults.failing_flushes, "flushing")?;
        let (mut unsynced, object) =
            (self.faults.unsynced.borrow_mut(), (self.machine.node(), self.index, object));
        fail(&self.faults.failing_syncs, "flushing").inspect_err(|_| _ = unsynced.insert(object))?;
        fail(&Cell::new(unsynced.contains(&object).into()), "flushing after a failed sync")
    }
}

/// Fails as long as `left` says so.
fn fail(left: &Cell<u32>, what: &str) -> Result<()> {
    match left.get().checked_sub(1) {
        Some(fewer) => {
            left.set(fewer);
            Err(Error::Io { what: what.into(), why: "a fault on purpose".into() }.into())
        }
        None => Ok(()),
    }
}

impl<M: Machine> Disk for FaultyDisk<M> {
    async fn create(&self, name: &str, label: &[u8]) -> Result<Object> {
        self.faults.check_there()?;
        self.disk().create(name, label).await
    }

    async fn open(&self, name: &str) -> Result<Object> {
        self.faults.check_there()?;
        self.disk().open(name).await
    }

    async fn list(&self) -> Result<Vec<String>> {
        self.faults.check_there()?;
        self.faults.lists.set(self.faults.lists.get() + 1);
        let names = self.disk().list().await;
        self.faults.wait().await;
        names
    }

    async fn remove(&self, name: &str) -> Result<()> {
        self.faults.check_there()?;
        fail(&self.faults.failing_removals, "removing")?;
        self.disk().remove(name).await
    }

    async fn resize(&self, object: ObjectId, bytes: u64) -> Result<()> {
        if self.faults.holds_resize.take() {
            self.faults.resize_waits.set(true);
            while self.faults.resize_waits.get() {
                self.faults.released.wait().await;
            }
        }
        self.disk().resize(object, bytes).await
    }

    async fn read(&self, object: ObjectId, offset: u64, into: Buf) -> Result<Buf> {
        self.faults.reads.set(self.faults.reads.get() + 1);
        let damaged = self.faults.damaged.borrow().clone();
        if offset < damaged.end && damaged.start < offset + into.len() {
            let what = format!("object {} on this disk", object.0);
            return Err(Error::Damaged { what, why: "a fault on purpose".into() }.into());
        }
        let mut buffer = self.disk().read(object, offset, into).await?;
        if fail(&self.faults.flipped_reads, "").is_err() {
            buffer.fill(buffer.slice(0..buffer.len()).with_flipped_bit(buffer.len() / 2));
        }
        Ok(buffer)
    }

    async fn write(&self, object: ObjectId, offset: u64, from: Payload) -> Result<()> {
        self.faults.written_at.borrow_mut().push(self.position(object, offset));
        self.faults.wait().await;
        fail(&self.faults.failing_writes, "writing")?;
        if let Some(room) = self.faults.room.get() {
            let needed = self.needed(object, offset..offset + from.len()).await?;
            let left = room.checked_sub(needed).ok_or(Error::NoSpace { what: "a disk".to_owned() })?;
            self.faults.room.set(Some(left));
        }
        let is_flipped = fail(&self.faults.flipped_writes, "").is_err();
        let from = if is_flipped { from.with_flipped_bit(from.len() / 2) } else { from };
        self.disk().write(object, offset, from).await
    }

    fn data_after(&self, object: ObjectId, offset: u64) -> impl Future<Output = Result<Option<Range<u64>>>> {
        self.disk().data_after(object, offset)
    }

    async fn flush(&self, object: ObjectId) -> Result<()> {
        self.faults.flushes.set(self.faults.flushes.get() + 1);
        self.check_flush(object)?;
        let _flushing = self.faults.flushing.begin();
        let most = self.faults.flushing.count().max(self.faults.flushing_most.get());
        self.faults.flushing_most.set(most);
        // Whoever flushes at the same time is counted, too, where a flush takes no time.
        give_way().await;
        self.disk().flush(object).await
    }

    async fn space(&self) -> Result<Option<Space>> {
        self.faults.check_there()?;
        match self.faults.room.get() {
            Some(free) => Ok(Some(Space { bytes: 1 << 40, free })),
            None => self.disk().space().await,
        }
    }

    fn identity(&self) -> impl Future<Output = Result<u64>> {
        self.disk().identity()
    }

    fn device(&self) -> Option<u64> {
        self.disk().device()
    }

    fn has_own_pace(&self) -> bool {
        self.disk().has_own_pace()
    }

    fn position(&self, object: ObjectId, offset: u64) -> u64 {
        self.disk().position(object, offset)
    }

    fn waited_since(&self, since: Instant) {
        // By the clock below.
        let time = since.since(Instant::START).as_nanos();
        let jumped = self.faults.jumped.get().as_nanos();
        self.disk().waited_since(Instant::from_nanos(time.saturating_sub(jumped)));
    }

    fn writes_pending(&self, bytes: u64) {
        self.disk().writes_pending(bytes);
    }

    fn reads_held_up(&self, by: NodeId, writes: u64) {
        self.disk().reads_held_up(by, writes);
    }
}
