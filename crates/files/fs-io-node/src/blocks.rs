//! The cached blocks of an I/O node: the traditional method behind its block requests.
//!
//! A read finds its block in the cache or loads it, and then prefetches the next block of the same stripe. A
//! write goes into the cache and is accepted at once. When every byte of the block has been written
//! (*WriteFull*), the block is queued for its disk. The next flush writes the other dirty blocks.
//!
//! ```text
//!                 read, prefetch                      write
//!                        |                              |
//!   pin.rs        find the block, or a slot for it: evict an idle one, or have dirty ones written
//!                        |                              |
//!   load.rs       read it from its disk           put the data
//!                                                       |
//!   write_behind.rs                               write dirty bytes, one task of a block at its disk
//! ```
//!
//! `cache.rs` keeps the state of the blocks (cached, valid, dirty), without futures.

mod load;
mod pin;
mod write_behind;

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use machine::{Buf, BufferPool, Condition, Duration, Machine, NodeId, Payload, RangeSet, Work};

use super::client_account::Account;
use super::counts::CacheCounts;
use super::disks::{Disks, check_length};
use super::lease_fences::Fences;
use super::open_stripe::{OpenStripe, WriteExclusion};
use super::open_stripes::Stripes;
use crate::cache::{BlockKey, Cache, CacheOccupancy, CacheSlot, StripeKey};
use crate::endpoint::{Caller, Endpoint};
use crate::error::{Failure, FailureKind};
use crate::free_space::ReservedSpace;
use crate::protocol::{Fetch, FileId, Request};
use crate::schedule::{DiskUser, Urgency};
use crate::settings::IoNodeSettings;

/// Memory for parts of blocks for each disk, in blocks of the largest size: enough for the reads of half a
/// block that its queue holds.
const PART_BLOCKS: u64 = 16;

/// The blocks in memory.
pub(super) struct Blocks<M: Machine> {
    machine: M,
    endpoint: Rc<Endpoint<M>>,
    stripes: Rc<Stripes>,
    disks: Rc<Disks<M>>,
    cache: RefCell<Cache>,
    buffers: BufferPool,
    /// Memory for parts of blocks that are not in the cache.
    parts: BufferPool,
    /// Woken when a block of the cache may have become idle.
    room: Condition,
    /// The same for background tasks, which are woken after the demand tasks.
    room_in_background: Condition,
    /// Number of blocks prefetched after each read.
    prefetch_blocks: u64,
    /// Longest time for which written blocks wait for more data.
    write_back_after: Option<Duration>,
    /// True if a task is scheduled to write back waiting blocks.
    writes_back: Cell<bool>,
    pub(super) fences: Fences,
    lookups: Lookups,
}

/// Counters of lookups by reads.
#[derive(Default)]
struct Lookups {
    hits: Cell<u64>,
    misses: Cell<u64>,
    hit_bytes: Cell<u64>,
    missed_bytes: Cell<u64>,
    prefetches: Cell<u64>,
}

impl Lookups {
    fn note(&self, is_hit: bool, bytes: u64) {
        let (count, sum) = match is_hit {
            true => (&self.hits, &self.hit_bytes),
            false => (&self.misses, &self.missed_bytes),
        };
        count.set(count.get() + 1);
        sum.set(sum.get() + bytes);
    }
}

/// A byte range of one block.
struct Part {
    key: BlockKey,
    range: Range<u64>,
}

/// The client of a write.
pub(super) struct Writer<'a> {
    pub(super) caller: Caller,
    /// The account of the connection over which the write arrived.
    pub(super) account: &'a Rc<Account>,
    /// Lease of the locks under which the data were written, if the client sent one.
    pub(super) lease: Option<u64>,
}

/// The data of a write.
pub(super) enum Data {
    /// Data that arrived with the request.
    Here(Payload),
    /// Data to be fetched from a node's memory.
    At(NodeId, Fetch),
}

impl Data {
    /// Returns the data of a write requested by this caller.
    pub(super) fn of(caller: Caller, fetch: Option<Fetch>, payload: Payload) -> Self {
        fetch.map_or(Data::Here(payload), |fetch| Data::At(caller.node, fetch))
    }

    pub(super) fn bytes(&self) -> u64 {
        match self {
            Data::Here(data) => data.len(),
            Data::At(_, fetch) => u64::from(fetch.bytes),
        }
    }
}

impl Part {
    fn new(stripe: &OpenStripe, offset: u64, bytes: u64) -> Result<Part, Box<Failure>> {
        let block_bytes = stripe.block_bytes();
        let (block, start) = (offset / block_bytes, offset % block_bytes);
        let key = BlockKey { stripe: stripe.key(), block };
        check_length(offset)?;
        if bytes > block_bytes - start {
            return Err(Failure::invalid(format!(
                "{bytes} bytes at offset {offset} cross the end of a block of {block_bytes}"
            ))
            .into());
        }
        Ok(Part { key, range: start..start + bytes })
    }
}

impl<M: Machine> Blocks<M> {
    /// Creates an empty cache.
    pub(super) fn new(
        machine: M,
        endpoint: Rc<Endpoint<M>>,
        stripes: Rc<Stripes>,
        disks: Rc<Disks<M>>,
        settings: &IoNodeSettings,
    ) -> Self {
        // In addition to the cached blocks, each disk may be loading the rest of a partly written block.
        let buffers = (settings.cache_blocks + machine.disks().len()) as u64;
        Blocks {
            endpoint,
            stripes,
            disks,
            cache: RefCell::new(Cache::new(settings.cache_blocks)),
            buffers: BufferPool::new(buffers * settings.block_bytes_max),
            parts: BufferPool::new(
                (machine.disks().len() as u64).max(1) * PART_BLOCKS * settings.block_bytes_max,
            ),
            room: Condition::new(),
            room_in_background: Condition::new(),
            prefetch_blocks: settings.prefetch_blocks,
            write_back_after: settings.write_back_after,
            writes_back: Cell::new(false),
            fences: Fences::default(),
            lookups: Lookups::default(),
            machine,
        }
    }

    /// Reads part of a block. If the client needs only that part, and the block is not in the cache, only
    /// that part is read from the disk. If answers that leave slowly hold all memory for such parts, the
    /// block goes through the cache.
    pub(super) async fn read(
        self: &Rc<Self>,
        file: FileId,
        stripe: u32,
        (offset, bytes): (u64, u64),
        is_alone: bool,
        user: DiskUser,
    ) -> Result<Payload, Box<Failure>> {
        let stripe = self.stripes.get(file, stripe)?;
        let part = Part::new(&stripe, offset, bytes)?;
        stripe.losses.check(&(offset..offset + bytes))?;
        self.machine.compute(Work::LookUpCache).await;
        let cached = self.cache.borrow_mut().read(part.key, &part.range);
        self.lookups.note(cached.is_some(), bytes);
        match cached {
            Some(data) => Ok(data),
            None => {
                // All earlier writes are in the cache, or else on the disk.
                let is_alone = is_alone && !self.cache.borrow().contains(part.key);
                match is_alone.then(|| self.parts.try_take(bytes)).flatten() {
                    Some(into) => self.read_alone(&stripe, offset, into, user).await,
                    None => self.read_through(&stripe, part, user).await,
                }
            }
        }
    }

    /// Reads part of a block from the disk, bypassing the cache.
    async fn read_alone(
        &self,
        stripe: &Rc<OpenStripe>,
        offset: u64,
        into: Buf,
        user: DiskUser,
    ) -> Result<Payload, Box<Failure>> {
        let bytes = into.len();
        if bytes == 0 {
            return Ok(Payload::empty());
        }
        let buffer = self.read_disk(stripe, offset, into, user).await?;
        Ok(buffer.slice(0..bytes))
    }

    /// Reads a part that is not, or not yet, in the cache, through the cache.
    async fn read_through(
        self: &Rc<Self>,
        stripe: &Rc<OpenStripe>,
        part: Part,
        user: DiskUser,
    ) -> Result<Payload, Box<Failure>> {
        let pin = self.pin(stripe, part.key, user.urgency).await;
        let loaded = self.make_valid(stripe, pin.place, &part.range, user).await;
        let is_part = part.range.end - part.range.start < stripe.block_bytes();
        if loaded.as_ref().is_err_and(|failure| failure.kind == FailureKind::Damaged && is_part) {
            return self.read_part(stripe, pin.place, part, user).await;
        }
        loaded?;
        let data = self.cache.borrow_mut().block(pin.place).read(&part.range);
        Ok(data.expect("it has just been made valid"))
    }

    /// Reads part of a damaged block, bypassing the cache: the damage may be elsewhere in the block.
    async fn read_part(
        &self,
        stripe: &OpenStripe,
        place: CacheSlot,
        part: Part,
        user: DiskUser,
    ) -> Result<Payload, Box<Failure>> {
        let Range { start, end } = part.range;
        let into = self.buffers.take(end - start).await;
        let offset = part.key.block * stripe.block_bytes() + start;
        let mut buffer = self.read_disk(stripe, offset, into, user).await?;
        machine::sometimes!("a read succeeds in a part of a damaged block");
        // Add bytes that were written to the block during the read.
        let mut cache = self.cache.borrow_mut();
        let block = cache.block(place);
        if let Some(written) = &block.buffer {
            for run in block.valid.within(&(start..end)) {
                buffer.put(run.start - start, &written.slice(run));
            }
        }
        Ok(buffer.slice(0..end - start))
    }

    /// Writes to part of a block, unless the writer's connection has ended. In that case the client may have
    /// repeated this write over another connection, and have written other data there since.
    pub(super) async fn write(
        self: &Rc<Self>,
        file: FileId,
        stripe: u32,
        offset: u64,
        data: Data,
        Writer { caller, account, lease }: Writer<'_>,
    ) -> Result<(), Box<Failure>> {
        let stripe = self.stripes.get(file, stripe)?;
        self.fences.check(lease)?;
        machine::sometimes!("a write waits for a bypass or truncation", if !stripe.bars.is_empty());
        stripe.bars.none().await;
        stripe.writers.answer(account.client)?;
        let part = Part::new(&stripe, offset, data.bytes())?;
        check_length(offset + data.bytes())?;
        let room = self.find_room(&stripe, &(offset..offset + data.bytes())).await?;
        self.machine.compute(Work::LookUpCache).await;
        let pin = self.pin_unbarred(&stripe, part.key, caller.class.into()).await;
        let place = pin.place;
        let data = match data {
            Data::Here(data) => {
                self.wait_until_loaded(place).await;
                self.machine.compute(Work::Copy { bytes: data.len() }).await;
                Ok(data)
            }
            // Straight into the buffer: the Memget makes the only copy.
            Data::At(node, fetch) => self.fetch(node, fetch).await,
        };
        // A reader may have begun to load the block while the data arrived.
        self.wait_until_loaded(place).await;
        let outcome = data.and_then(|data| {
            machine::sometimes!("a file is removed while a write waits", if stripe.removed.get());
            machine::sometimes!("a fence is raised while a write waits", if self.fences.check(lease).is_err());
            machine::sometimes!("a client disconnects while its write waits", if account.is_over());
            stripe.check_not_removed()?;
            // No await from here until the data are in the block: no write may slip in after a fence was
            // raised, or after the client repeated the write over another connection.
            self.fences.check(lease)?;
            account.check()?;
            stripe.writers.note(caller.node);
            Ok(self.put(&stripe, place, part.range, data, (caller.node, room)))
        });
        match outcome {
            Ok(true) => self.start_writing(&stripe, place).await,
            Ok(false) => self.write_back_later(),
            Err(_) => {}
        }
        outcome.map(drop)
    }

    /// Pins a block for a write when no operation bars writes to its stripe. An operation that begins later waits for
    /// the pin; one that began during the search for a slot does not know of it.
    async fn pin_unbarred(
        self: &Rc<Self>,
        stripe: &Rc<OpenStripe>,
        key: BlockKey,
        urgency: Urgency,
    ) -> pin::PinnedBlock<'_, M> {
        loop {
            let pin = self.pin(stripe, key, urgency).await;
            if stripe.bars.is_empty() {
                return pin;
            }
            machine::sometimes!("a bypass or truncation begins while a write waits for a block");
            drop(pin);
            stripe.bars.none().await;
        }
    }

    /// Reserves space for a part of a stripe, in addition to all space reserved before. Fails with `NoSpace`
    /// if its disk is full.
    async fn find_room(
        self: &Rc<Self>,
        stripe: &Rc<OpenStripe>,
        part: &Range<u64>,
    ) -> Result<ReservedSpace, Box<Failure>> {
        let bytes = part.end - part.start;
        if let Some(room) = self.disks.take_room(stripe, bytes) {
            return Ok(room);
        }
        if let Some(room) = self.disks.look_for_room(stripe, bytes).await? {
            return Ok(room);
        }
        if self.disks.has(stripe, part).await? {
            machine::sometimes!("a full disk accepts an overwrite");
            return Ok(ReservedSpace::default());
        }
        machine::sometimes!("a full disk writes its cached blocks");
        // Cached writes may need less space than was reserved for them.
        let unwritten = self.cache.borrow().unwritten_stripes();
        for other in unwritten.into_iter().filter_map(|key| self.stripes.find(key)) {
            self.write_out(&other).await;
        }
        if let Some(room) = self.disks.look_for_room(stripe, bytes).await? {
            return Ok(room);
        }
        let text =
            format!("disk {} is full: no space for {bytes} bytes of {}", stripe.home.disk, stripe.label);
        Err(Failure::new(FailureKind::NoSpace, text).into())
    }

    /// Gets the data of a write from the node that has them.
    async fn fetch(&self, node: NodeId, fetch: Fetch) -> Result<Payload, Box<Failure>> {
        let Fetch { memory, offset, bytes } = fetch;
        self.machine.compute(Work::CallMemget).await;
        self.machine.compute(Work::SuspendThread).await;
        let request = Request::Memget { memory, offset, bytes };
        let (_, data) = self.endpoint.call(node, request, Payload::empty()).await?;
        let bytes = u64::from(bytes);
        if data.len() != bytes {
            return Err(Failure::invalid(format!("{} bytes from a Memget of {bytes}", data.len())).into());
        }
        self.machine.compute(Work::ReturnMemget { bytes }).await;
        self.machine.compute(Work::ResumeThread).await;
        Ok(data)
    }

    /// Puts a writer's data into the buffer of a block. Returns true if all of the block is dirty now.
    fn put(
        &self,
        stripe: &OpenStripe,
        place: CacheSlot,
        range: Range<u64>,
        data: Payload,
        (writer, room): (NodeId, ReservedSpace),
    ) -> bool {
        let mut cache = self.cache.borrow_mut();
        let block = cache.block(place);
        let offset = block.key.block * stripe.block_bytes() + range.start;
        stripe.length.reach(offset + data.len());
        stripe.losses.clear(&(offset..offset + data.len()));
        block.write(range.start, data, writer);
        block.room.join(room, stripe.block_bytes());
        block.dirty == RangeSet::from(0..stripe.block_bytes())
    }

    /// Loads the blocks after the one at `offset` into the cache, as far as slots are free now.
    pub(super) fn prefetch(self: &Rc<Self>, file: FileId, stripe: u32, offset: u64, user: DiskUser) {
        let Ok(stripe) = self.stripes.get(file, stripe) else { return };
        let (block, blocks) =
            (offset / stripe.block_bytes(), stripe.length.bytes().div_ceil(stripe.block_bytes()));
        for block in (block + 1..blocks).take(self.prefetch_blocks as usize) {
            let key = BlockKey { stripe: stripe.key(), block };
            if self.cache.borrow().contains(key) {
                continue;
            }
            let Some(place) = self.try_insert(&stripe, key) else { return };
            self.lookups.prefetches.set(self.lookups.prefetches.get() + 1);
            let (blocks, stripe) = (self.clone(), stripe.clone());
            self.machine.spawn("prefetch", async move {
                let pin = blocks.pinned(place);
                // Ignore the error: a block that cannot be prefetched fails when a client requests it.
                let _ = blocks.make_valid(&stripe, pin.place, &(0..stripe.block_bytes()), user).await;
                Ok(())
            });
        }
    }

    /// Drops the blocks of a stripe from `first` on, once they are idle. Bytes left dirty by writes that had
    /// begun before are written.
    pub(super) async fn forget(self: &Rc<Self>, stripe: &WriteExclusion, first: u64) {
        loop {
            self.start_writing_out(stripe).await;
            if self.cache.borrow_mut().forget(stripe.key(), first) {
                return;
            }
            self.room.wait().await;
        }
    }

    /// Drops all blocks of a stripe, once they are idle. Returns the dirty bytes that were discarded: those
    /// that no task was writing to the disk.
    pub(super) async fn give_up_all(&self, stripe: &WriteExclusion) -> RangeSet {
        let mut given_up = RangeSet::default();
        loop {
            for (block, bytes) in self.cache.borrow_mut().give_up(stripe.key()) {
                let start = block * stripe.block_bytes();
                given_up.extend(bytes.ranges().map(|run| start + run.start..start + run.end));
            }
            if self.cache.borrow_mut().forget(stripe.key(), 0) {
                return given_up;
            }
            self.room.wait().await;
        }
    }

    /// Records discarded bytes of a stripe as lost, since the stripe continues to exist.
    pub(super) fn lose_given_up(&self, stripe: &OpenStripe, given_up: &RangeSet, failure: &Failure) {
        given_up.ranges().for_each(|run| stripe.losses.note(run, failure));
        stripe.length.fall_back(self.cache.borrow().dirty_end(stripe.key(), stripe.block_bytes()));
        if !given_up.is_empty() {
            machine::sometimes!("a failed removal loses cached writes");
            stripe.writers.fail(failure);
        }
    }

    /// Discards the dirty bytes of a stripe that no task is writing to the disk.
    pub(super) fn give_up(&self, stripe: StripeKey) {
        self.cache.borrow_mut().give_up(stripe);
    }

    /// Returns the counts of lookups, and the occupancy of the cache.
    pub(super) fn counts(&self) -> CacheCounts {
        let Lookups { hits, misses, hit_bytes, missed_bytes, prefetches } = &self.lookups;
        let CacheOccupancy { blocks_max, blocks, dirty_blocks, dirty_bytes } =
            self.cache.borrow().occupancy();
        CacheCounts {
            hits: hits.get(),
            misses: misses.get(),
            hit_bytes: hit_bytes.get(),
            missed_bytes: missed_bytes.get(),
            prefetches: prefetches.get(),
            blocks_max,
            blocks,
            dirty_blocks,
            dirty_bytes,
        }
    }

    /// Promotes background disk requests for this block of a stripe to demand.
    pub(super) fn promote(&self, stripe: &OpenStripe, block: u64) {
        self.disks.promote(stripe.home, block * stripe.block_bytes());
    }
}
