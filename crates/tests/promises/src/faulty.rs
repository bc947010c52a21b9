//! Nodes whose disks and metadata stores fail or delay operations when a promise requests this. All else is passed to
//! the underlying machine.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::Future;
use std::ops::Range;
use std::rc::Rc;

use machine::{
    Buf, BufferPool, Computer, Condition, Disk, Duration, Error, InFlight, Instant, Machine, MetadataEntry,
    MetadataStore, NodeId, NodeNotes, Object, ObjectId, Payload, Result, Space, Transaction, Work, yield_now,
};

/// Node with faults.
#[derive(Clone)]
pub struct Faulty<M: Machine> {
    machine: M,
    disks: Rc<[FaultyDisk<M>]>,
    metadata: Option<FaultyMetadata<M>>,
    faults: Rc<Faults>,
}

/// Faults of a node's disks.
#[derive(Default)]
pub struct Faults {
    /// Number of the next writes that fail.
    pub failing_writes: Cell<u32>,
    /// Number of the next flushes that fail.
    pub failing_flushes: Cell<u32>,
    /// Number of the next flushes in which the medium fails. No later flush of the affected objects (`unsynced`)
    /// succeeds.
    pub failing_syncs: Cell<u32>,
    unsynced: RefCell<BTreeSet<(NodeId, usize, ObjectId)>>,
    /// Number of the next removals of objects that fail.
    pub failing_removals: Cell<u32>,
    /// True if the disks and the metadata store are missing, as if their directory had been removed.
    pub gone: Cell<bool>,
    /// Number of the next metadata transactions that fail.
    pub failing_transactions: Cell<u32>,
    /// Number of simulated crashes of the metadata store.
    crashes: Cell<u64>,
    /// Number of flushes.
    pub flushes: Cell<u32>,
    flushing: InFlight,
    /// Maximum number of concurrent flushes so far.
    pub flushing_most: Cell<usize>,
    /// Number of flushes of the metadata store.
    pub metadata_flushes: Cell<u32>,
    /// Number of the next copies into the cache that panic.
    pub defective_copies: Cell<u32>,
    /// Number of listings of names.
    pub lists: Cell<u32>,
    /// Number of reads.
    pub reads: Cell<u32>,
    /// Size in bytes of the futures of all running tasks, without their separate allocations.
    pub task_bytes: Cell<usize>,
    /// Positions of writes, by [`Disk::position`], in order.
    pub written_at: RefCell<Vec<u64>>,
    /// Offset added to the node's wall clock.
    pub ahead: Cell<Duration>,
    /// Offset added to the node's monotonic clock.
    pub jumped: Cell<Duration>,
    /// Free space of the disks in bytes; `None` for the actual space.
    pub room: Cell<Option<u64>>,
    /// Number of the next reads after which a bit flips in the node's memory.
    pub flipped_reads: Cell<u32>,
    /// Number of the next writes before which a bit flips in the node's memory.
    pub flipped_writes: Cell<u32>,
    /// Damaged bytes of every object.
    damaged: RefCell<Range<u64>>,
    holding: Cell<bool>,
    /// True if the next change of an object's size must block; and true while one blocks.
    holds_resize: Cell<bool>,
    resize_waits: Cell<bool>,
    released: Condition,
}

impl Faults {
    /// Ends the effects of failed flushes, as a restart of the node does.
    pub fn restart(&self) {
        self.unsynced.borrow_mut().clear();
    }

    /// Fails if the disks are missing.
    fn check_there(&self) -> Result<()> {
        fail(&Cell::new(self.gone.get().into()), "a missing disk")
    }

    /// Simulates a crash of the metadata store.
    pub fn crash(&self) {
        self.crashes.set(self.crashes.get() + 1);
    }

    /// Blocks all new writes, lists and metadata operations until [`release`](Self::release).
    pub fn hold(&self) {
        self.holding.set(true);
    }

    async fn wait(&self) {
        while self.holding.get() {
            self.released.wait().await;
        }
    }

    /// Blocks the next change of an object's size until [`release`](Self::release).
    pub fn hold_resize(&self) {
        self.holds_resize.set(true);
    }

    /// Returns true if a change of an object's size is blocked.
    pub fn has_held_resize(&self) -> bool {
        self.resize_waits.get()
    }

    /// Damages these bytes of every object.
    pub fn damage(&self, bytes: Range<u64>) {
        self.damaged.replace(bytes);
    }

    /// Ends [`hold`](Self::hold) and [`hold_resize`](Self::hold_resize).
    pub fn release(&self) {
        self.holding.set(false);
        self.resize_waits.set(false);
        self.released.wake_all();
    }
}

impl<M: Machine> Faulty<M> {
    /// Returns the same nodes with controllable faults.
    pub fn all(nodes: Vec<M>) -> Vec<Self> {
        nodes.into_iter().map(|machine| Self::with_disks_of(machine.clone(), &[machine])).collect()
    }

    /// Returns the same node with the disks of these machines, the metadata store of the first of them, and
    /// controllable faults.
    pub fn with_disks_of(machine: M, machines: &[M]) -> Self {
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

    /// Returns the faults of the node.
    pub fn faults(&self) -> &Faults {
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
        // Sleep for the same time as without the offset of the clock.
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

/// Metadata store of a node with faults.
#[derive(Clone)]
pub struct FaultyMetadata<M: Machine> {
    store: M::Metadata,
    faults: Rc<Faults>,
}

/// Transaction of a store with simulated crashes.
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

/// Disk of a node with faults.
pub struct FaultyDisk<M: Machine> {
    machine: M,
    index: usize,
    faults: Rc<Faults>,
}

impl<M: Machine> FaultyDisk<M> {
    fn disk(&self) -> &M::Disk {
        &self.machine.disks()[self.index]
    }

    /// Returns the number of bytes that writing this part of an object adds on a disk, as on a real disk: none for
    /// existing data, otherwise whole pages. The first page of an object adds a header and records, the first page of
    /// each MiB adds checksums.
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

    /// Fails if this flush of the object must fail, or if the medium failed in an earlier flush.
    fn check_flush(&self, object: ObjectId) -> Result<()> {
        fail(&self.faults.failing_flushes, "flushing")?;
        let (mut unsynced, object) =
            (self.faults.unsynced.borrow_mut(), (self.machine.node(), self.index, object));
        fail(&self.faults.failing_syncs, "flushing").inspect_err(|_| _ = unsynced.insert(object))?;
        fail(&Cell::new(unsynced.contains(&object).into()), "flushing after a failed sync")
    }
}

/// Fails and counts down as long as `left` is not 0.
fn fail(left: &Cell<u32>, what: &str) -> Result<()> {
    match left.get().checked_sub(1) {
        Some(fewer) => {
            left.set(fewer);
            Err(Error::Io { what: what.into(), why: "an injected fault".into() }.into())
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
            return Err(Error::Damaged { what, why: "an injected fault".into() }.into());
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
        // Yield, so that concurrent flushes are counted even if a flush takes no time.
        yield_now().await;
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
        // Convert to the clock of the underlying machine.
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
