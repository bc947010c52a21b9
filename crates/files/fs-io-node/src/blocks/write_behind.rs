//! Writing dirty blocks to their disks, while their writers continue.
//!
//! One task of a block is at the disk at a time: otherwise the older of two writes might reach the disk last.
//! A task takes the bytes that are dirty when its turn comes, so bytes written while it waited are included.
//!
//! A disk takes about as long for a few bytes as for a block. So a block with many dirty runs is read first,
//! and all from the first run to the last is written at once:
//!
//! ```text
//! dirty      ..xx..xx..xx..xx..xx..xx.......     six writes
//! and read   ..xx--xx--xx--xx--xx--xx.......     one read, one write
//! ```

use std::ops::Range;
use std::rc::Rc;

use layout::Extent;
use machine::{Disk, Machine, NodeId, Payload, Work};

use super::{Blocks, Part};
use crate::cache::{BlockKey, CacheSlot};
use crate::disks::RUNS_MAX;
use crate::error::Failure;
use crate::free_space::ReservedSpace;
use crate::open_stripe::OpenStripe;
use crate::protocol::{Direction, FileId};
use crate::schedule::{DiskUser, Urgency};

/// The bytes of a block that a task writes to the disk, each run with its offset in the stripe.
struct DirtyBytes {
    /// The dirty runs.
    runs: Vec<(u64, Payload)>,
    /// All bytes from the first dirty run to the last, if they are to be written at once.
    span: Option<(u64, Payload)>,
    /// Space reserved until the bytes are on the disk.
    _room: ReservedSpace,
}

/// A block's turn to be written to its disk, until this is dropped.
struct DiskWriteTurn<'a, M: Machine> {
    blocks: &'a Blocks<M>,
    place: CacheSlot,
}

impl<M: Machine> Drop for DiskWriteTurn<'_, M> {
    fn drop(&mut self) {
        let mut cache = self.blocks.cache.borrow_mut();
        let block = cache.block(self.place);
        block.at_disk = false;
        block.written.wake_all();
    }
}

impl<M: Machine> Blocks<M> {
    /// Queues the block for its disk, and starts a task that will write its dirty bytes. The thread that
    /// fills a block does the queueing itself, so that other threads need not yield to the task first.
    pub(super) async fn start_writing(self: &Rc<Self>, stripe: &Rc<OpenStripe>, place: CacheSlot) {
        {
            let mut cache = self.cache.borrow_mut();
            let block = cache.block(place);
            if block.write_queued {
                return;
            }
            block.write_queued = true;
            block.writers += 1;
        }
        let operation = stripe.writes.begin();
        self.machine.compute(Work::QueueDiskRequest).await;
        let (blocks, stripe) = (self.clone(), stripe.clone());
        self.machine.spawn("write-behind", async move {
            let written =
                blocks.machine.contain("writing a block", blocks.write_behind(&stripe, place)).await;
            let outcome = written.flatten();
            blocks.end_writing(place);
            if let Err(error) = outcome {
                stripe.writers.fail(&(*error).into());
            }
            drop(operation);
            blocks.wake_for_room();
            Ok(())
        });
    }

    /// Limits the time for which a dirty block waits for more data: the rest of the block may never arrive.
    pub(super) fn write_back_later(self: &Rc<Self>) {
        let Some(after) = self.write_back_after else { return };
        if self.writes_back.replace(true) {
            return;
        }
        let (blocks, due) = (self.clone(), self.machine.now() + after);
        self.machine.spawn("write-back", async move {
            blocks.machine.sleep_until(due).await;
            // Writes from now on need another task.
            blocks.writes_back.set(false);
            blocks.start_writing_all().await;
            Ok(())
        });
    }

    /// Starts writing all dirty blocks that no task is writing yet. Returns true if there were any; otherwise
    /// does not wait.
    pub(super) async fn start_writing_all(self: &Rc<Self>) -> bool {
        let unwritten = self.cache.borrow().unwritten(None);
        let is_any = !unwritten.is_empty();
        for key in unwritten {
            match self.stripes.find(key.stripe) {
                Some(stripe) => self.start_writing_block(&stripe, key).await,
                // Its stripe was replaced by another open stripe of the same file and index, so no request
                // can name it.
                None => self.give_up(key.stripe),
            }
        }
        is_any
    }

    /// Ends a task that was to write a block, and wakes the tasks that wait for its write.
    fn end_writing(&self, place: CacheSlot) {
        let mut cache = self.cache.borrow_mut();
        let block = cache.block(place);
        block.end_writing();
        block.written.wake_all();
    }

    async fn write_behind(&self, stripe: &OpenStripe, place: CacheSlot) -> machine::Result<()> {
        let (start, writer) = {
            let mut cache = self.cache.borrow_mut();
            let block = cache.block(place);
            (block.key.block * stripe.block_bytes(), block.writer)
        };
        let job = writer.expect("what is to be written has been written by somebody");
        self.read_between_runs(stripe, place, job).await;
        let user = DiskUser { job, urgency: Urgency::Behind };
        let part = Extent::new(start, stripe.block_bytes());
        let turn = self.disks.turn(stripe.home, part, Direction::Write, user).await;
        let at_disk = self.enter_disk(place).await;
        // Taken only now, to include the bytes written while the request waited.
        let outcome = self.write_dirty(stripe, place, self.take_dirty(stripe, place)).await;
        drop(at_disk);
        self.machine.compute(Work::CompleteDiskRequest).await;
        drop(turn);
        outcome
    }

    /// Reads a block with many dirty runs. If that fails, the runs are written one by one.
    async fn read_between_runs(&self, stripe: &OpenStripe, place: CacheSlot, job: NodeId) {
        let span = {
            let mut cache = self.cache.borrow_mut();
            let dirty = &cache.block(place).dirty;
            dirty.span().filter(|_| dirty.len() > RUNS_MAX)
        };
        if let Some(span) = span {
            // Demand priority: a write to the rest of the block may be waiting for this read.
            let user = DiskUser { job, urgency: Urgency::Demand };
            let _ = self.make_valid(stripe, place, &span, user).await;
        }
    }

    fn take_dirty(&self, stripe: &OpenStripe, place: CacheSlot) -> DirtyBytes {
        let mut cache = self.cache.borrow_mut();
        let block = cache.block(place);
        let (dirty, room) = (std::mem::take(&mut block.dirty), std::mem::take(&mut block.room));
        // Bytes written from now on need another task.
        block.write_queued = false;
        let start = block.key.block * stripe.block_bytes();
        let buffer = block.buffer.as_ref().expect("a dirty block keeps its buffer while it loads");
        let bytes = |run: Range<u64>| (start + run.start, buffer.slice(run));
        // Operations that bypass the cache wait for this write. One in flight may have written between the
        // runs since the block was read.
        let is_current = |span: &Range<u64>| block.valid.contains(span) && stripe.bypasses.is_empty();
        let many = dirty.span().filter(|_| dirty.len() > RUNS_MAX);
        DirtyBytes {
            span: many.filter(is_current).map(bytes),
            runs: dirty.ranges().map(bytes).collect(),
            _room: room,
        }
    }

    async fn write_dirty(
        &self,
        stripe: &OpenStripe,
        place: CacheSlot,
        DirtyBytes { runs, span, _room }: DirtyBytes,
    ) -> machine::Result<()> {
        let begin = |runs: &[(u64, Payload)]| {
            runs.iter().for_each(|(offset, data)| stripe.length.begin_write(offset + data.len()));
        };
        if let Some((offset, data)) = span {
            let end = offset + data.len();
            stripe.length.begin_write(end);
            let written = self.write_run(stripe, offset, data).await;
            if written.is_err() {
                machine::sometimes!("a write with gaps fails, and is repeated without them");
                // The disk may have no space for the bytes between the runs.
                begin(&runs);
            }
            stripe.length.end_write(end, written.is_ok());
            if written.is_ok() {
                return written;
            }
        } else {
            begin(&runs);
        }
        let mut outcome = Ok(());
        for (offset, data) in runs {
            let range = offset..offset + data.len();
            let written = self.write_run(stripe, offset, data).await;
            stripe.length.end_write(range.end, written.is_ok());
            if let Err(error) = &written {
                self.lose(stripe, place, range, &machine::Error::clone(error).into());
            }
            outcome = outcome.and(written);
        }
        outcome
    }

    async fn write_run(&self, stripe: &OpenStripe, offset: u64, data: Payload) -> machine::Result<()> {
        let (bytes, disk) = (data.len(), self.disks.of(stripe.home));
        let written =
            self.machine.contain("writing to a disk", disk.write(stripe.home.object, offset, data)).await;
        let written = written.flatten();
        self.disks.count_bytes(stripe.home, Direction::Write, bytes, &written);
        written
    }

    /// Waits until no task is writing this block to the disk. Only one task waits here at a time, since only
    /// one is queued to write the dirty bytes.
    async fn enter_disk(&self, place: CacheSlot) -> DiskWriteTurn<'_, M> {
        loop {
            let written = {
                let mut cache = self.cache.borrow_mut();
                let block = cache.block(place);
                if !std::mem::replace(&mut block.at_disk, true) {
                    return DiskWriteTurn { blocks: self, place };
                }
                block.written.clone()
            };
            machine::sometimes!("two writes of a block are ready for the disk");
            written.wait().await;
        }
    }

    /// Records that a range of a stripe, which lies in this block, could not be written to the disk.
    fn lose(&self, stripe: &OpenStripe, place: CacheSlot, range: Range<u64>, failure: &Failure) {
        let mut cache = self.cache.borrow_mut();
        let block = cache.block(place);
        let start = block.key.block * stripe.block_bytes();
        stripe.losses.note(range.clone(), failure);
        machine::sometimes!("a block is written again while its earlier write fails", if !block.dirty.is_empty());
        for again in block.lose(&(range.start - start..range.end - start)).ranges() {
            stripe.losses.clear(&(start + again.start..start + again.end));
        }
        stripe.length.fall_back(cache.dirty_end(stripe.key(), stripe.block_bytes()));
    }

    /// Starts writing all dirty blocks of a stripe.
    pub(crate) async fn start_writing_out(self: &Rc<Self>, stripe: &Rc<OpenStripe>) {
        let unwritten = self.cache.borrow().unwritten(Some(stripe.key()));
        for key in unwritten {
            self.start_writing_block(stripe, key).await;
        }
    }

    /// Starts writing a block, if it is still cached and no task has begun in the meantime.
    pub(super) async fn start_writing_block(self: &Rc<Self>, stripe: &Rc<OpenStripe>, key: BlockKey) {
        let place = self.cache.borrow().find_unwritten(key);
        if let Some(place) = place {
            self.start_writing(stripe, place).await;
        }
    }

    /// Waits until this part of one block, which has been written to the cache, is at its disk.
    pub(crate) async fn write_through(
        self: &Rc<Self>,
        file: FileId,
        stripe: u32,
        range: Range<u64>,
    ) -> Result<(), Box<Failure>> {
        let stripe = self.stripes.get(file, stripe)?;
        let part = Part::new(&stripe, range.start, range.end - range.start)?;
        loop {
            self.start_writing_block(&stripe, part.key).await;
            let in_flight = self.cache.borrow_mut().in_flight(part.key, &part.range);
            match in_flight {
                Some(written) => written.wait().await,
                None => return stripe.losses.check(&range),
            }
        }
    }

    /// Writes all dirty blocks of a stripe and waits for them.
    pub(crate) async fn write_out(self: &Rc<Self>, stripe: &Rc<OpenStripe>) {
        self.start_writing_out(stripe).await;
        stripe.writes.none().await;
    }
}
