//! Block requests through the cache: the traditional method at the I/O node.
//!
//! A read finds its block in the cache or loads it, replies, and then brings the next block of the same stripe in.
//! A write goes into the cache and is answered at once; when every byte of the block has been written (*WriteFull*)
//! the block is queued for its disk. The rest is written by the next flush.

use std::ops::Range;
use std::rc::Rc;

use machine::{Buf, Class, Disk, Machine, NodeId, Payload, Work};

use super::IoNode;
use super::stripes::{Barred, OpenStripe};
use crate::byte_set::ByteSet;
use crate::cache::{BlockKey, Place};
use crate::disk_queue::Line;
use crate::endpoint::Asker;
use crate::error::{Failure, FailureKind};
use crate::protocol::{Fetch, FileId, Request};

/// The most bytes a stripe has: so few that those that a disk adds for itself do not make a number that is too large.
const STRIPE_BYTES_MAX: u64 = layout::FILE_BYTES_MAX / 2;

/// Part of one block: which block, and which bytes of it.
struct Part {
    key: BlockKey,
    range: Range<u64>,
}

/// A block in use, until this is dropped.
struct Pin<'a, M: Machine> {
    node: &'a IoNode<M>,
    place: Place,
}

impl<M: Machine> Drop for Pin<'_, M> {
    fn drop(&mut self) {
        self.node.unpin(self.place);
    }
}

/// The turn of a block to be written to its disk, until this is dropped.
struct AtDisk<'a, M: Machine> {
    node: &'a IoNode<M>,
    place: Place,
}

impl<M: Machine> Drop for AtDisk<'_, M> {
    fn drop(&mut self) {
        let mut cache = self.node.cache.borrow_mut();
        let block = cache.block(self.place);
        block.at_disk = false;
        block.written.wake_all();
    }
}

/// The data of a write.
pub(super) enum Data {
    /// They have come with the request.
    Here(Payload),
    /// They are to be fetched from a node's memory.
    At(NodeId, Fetch),
}

impl Data {
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
        if offset > STRIPE_BYTES_MAX {
            return Err(Failure::invalid(format!("offset {offset}: no stripe has that many bytes")).into());
        }
        if bytes > block_bytes - start {
            return Err(Failure::invalid(format!(
                "{bytes} bytes at offset {offset} cross the end of a block of {block_bytes}"
            ))
            .into());
        }
        Ok(Part { key, range: start..start + bytes })
    }
}

impl<M: Machine> IoNode<M> {
    pub(super) async fn read(
        self: &Rc<Self>,
        file: FileId,
        stripe: u32,
        offset: u64,
        bytes: u64,
        class: Class,
    ) -> Result<Payload, Box<Failure>> {
        let stripe = self.stripes.get(file, stripe)?;
        let part = Part::new(&stripe, offset, bytes)?;
        stripe.losses.check(&(offset..offset + bytes))?;
        self.machine.compute(Work::LookUpCache).await;
        let cached = self.cache.borrow_mut().read(part.key, &part.range);
        match cached {
            Some(data) => Ok(data),
            None => self.read_through(&stripe, part, class).await,
        }
    }

    /// Reads what is not in the cache, or not yet.
    async fn read_through(
        self: &Rc<Self>,
        stripe: &Rc<OpenStripe>,
        part: Part,
        class: Class,
    ) -> Result<Payload, Box<Failure>> {
        let pin = self.pin(stripe, part.key, class).await;
        let loaded = self.make_valid(stripe, pin.place, &part.range, class).await;
        let is_part = part.range.end - part.range.start < stripe.block_bytes();
        if loaded.as_ref().is_err_and(|failure| failure.kind == FailureKind::Damaged && is_part) {
            return self.read_part(stripe, pin.place, part, class).await;
        }
        loaded?;
        let data = self.cache.borrow_mut().block(pin.place).read(&part.range);
        Ok(data.expect("it has just been made valid"))
    }

    /// Reads part of a block that is damaged, which may be elsewhere in it, past the cache.
    async fn read_part(
        &self,
        stripe: &OpenStripe,
        place: Place,
        part: Part,
        class: Class,
    ) -> Result<Payload, Box<Failure>> {
        let Range { start, end } = part.range;
        let into = self.cache_buffers.take(end - start).await;
        let offset = part.key.block * stripe.block_bytes() + start;
        let mut buffer = self.read_disk(stripe, offset, into, class).await?;
        // What has been written to it meanwhile.
        let mut cache = self.cache.borrow_mut();
        let block = cache.block(place);
        for run in block.valid.runs() {
            let both = run.start.max(start)..run.end.min(end);
            if let Some(written) = block.buffer.as_ref().filter(|_| both.start < both.end) {
                buffer.put(both.start - start, &written.slice(both));
            }
        }
        Ok(buffer.slice(0..end - start))
    }

    pub(super) async fn write(
        self: &Rc<Self>,
        file: FileId,
        stripe: u32,
        offset: u64,
        data: Data,
        Asker { node: writer, class, .. }: Asker,
    ) -> Result<(), Box<Failure>> {
        let stripe = self.stripes.get(file, stripe)?;
        stripe.bars.none().await;
        stripe.check(writer)?;
        let part = Part::new(&stripe, offset, data.bytes())?;
        self.check_space(&stripe, offset + data.bytes()).await?;
        self.machine.compute(Work::LookUpCache).await;
        let pin = self.pin(&stripe, part.key, class).await;
        let place = pin.place;
        let data = match data {
            Data::Here(data) => {
                self.wait_until_loaded(place).await;
                self.machine.compute(Work::Copy { bytes: data.len() }).await;
                Ok(data)
            }
            // Straight into the buffer: no copy but the one that a Memget makes.
            Data::At(node, fetch) => self.fetch(node, fetch).await,
        };
        // It may have begun to load, for a reader, while the data came.
        self.wait_until_loaded(place).await;
        let outcome = data.and_then(|data| {
            stripe.check_not_removed()?;
            stripe.note_writer(writer);
            Ok(self.put(&stripe, place, part.range, offset, &data))
        });
        if let Ok(true) = outcome {
            self.start_writing(&stripe, place).await;
        }
        outcome.map(drop)
    }

    /// Fails if a stripe extended to `end` would be larger than its disk, or than the largest stripe.
    pub(super) async fn check_space(&self, stripe: &OpenStripe, end: u64) -> Result<(), Box<Failure>> {
        let known = &self.disk_bytes[stripe.disk];
        if end > STRIPE_BYTES_MAX {
            return Err(Failure::invalid(format!("{end} bytes: no stripe has that many")).into());
        }
        if end <= stripe.bytes.get() || end <= known.get() {
            return Ok(());
        }
        let space = self.machine.disks()[stripe.disk].space().await?;
        known.set(space.map_or(u64::MAX, |space| space.bytes));
        if end <= known.get() {
            return Ok(());
        }
        let text =
            format!("{end} bytes of a stripe on disk {}, which has {} in all", stripe.disk, known.get());
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

    /// Puts data into the buffer of a block; says whether all of the block has now been written.
    fn put(&self, stripe: &OpenStripe, place: Place, range: Range<u64>, offset: u64, data: &Payload) -> bool {
        stripe.reach(offset + data.len());
        stripe.losses.mend(&(offset..offset + data.len()));
        let mut cache = self.cache.borrow_mut();
        let block = cache.block(place);
        block.buffer.as_mut().expect("not loading").put(range.start, data);
        block.mark_written(range);
        block.dirty == ByteSet::whole(stripe.block_bytes())
    }

    /// Brings the blocks after the one at `offset` into the cache, as far as there is room for them now.
    pub(super) fn prefetch(self: &Rc<Self>, file: FileId, stripe: u32, offset: u64, class: Class) {
        let Ok(stripe) = self.stripes.get(file, stripe) else { return };
        let (block, blocks) =
            (offset / stripe.block_bytes(), stripe.bytes.get().div_ceil(stripe.block_bytes()));
        for block in (block + 1..blocks).take(self.settings.prefetch_blocks as usize) {
            let key = BlockKey { stripe: stripe.key(), block };
            if self.cache.borrow().contains(key) {
                continue;
            }
            let Some(place) = self.try_insert(&stripe, key) else { return };
            let (node, stripe) = (self.clone(), stripe.clone());
            self.machine.spawn("prefetch", async move {
                let pin = Pin { node: &node, place };
                // A block that cannot be prefetched fails when it is requested on demand.
                let _ = node.make_valid(&stripe, pin.place, &(0..stripe.block_bytes()), class).await;
                Ok(())
            });
        }
    }

    /// Finds or makes a place for the block and pins it. Who waits for one on demand is woken before the others.
    async fn pin(self: &Rc<Self>, stripe: &Rc<OpenStripe>, key: BlockKey, class: Class) -> Pin<'_, M> {
        let room = if class == Class::Background { &self.room_in_background } else { &self.room };
        loop {
            let found = self.cache.borrow_mut().pin(key);
            if let Some(place) = found.or_else(|| self.try_insert(stripe, key)) {
                return Pin { node: self, place };
            }
            if self.cache.borrow_mut().make_room() {
                // Replies in flight still hold the memory of evicted blocks. Wait for it in FIFO order and keep it,
                // or later requests overtake this one.
                let buffer = self.cache_buffers.take(stripe.block_bytes()).await;
                let mut cache = self.cache.borrow_mut();
                if !cache.contains(key) && cache.make_room() {
                    return Pin { node: self, place: cache.insert(key, buffer) };
                }
                continue;
            }
            // All blocks are in use or dirty: have the dirty ones written.
            let unwritten = self.cache.borrow().unwritten(None);
            for key in unwritten {
                if let Some(stripe) = self.stripes.find(key.stripe) {
                    self.start_writing_block(&stripe, key).await;
                }
            }
            room.wait().await;
        }
    }

    /// Lets tasks look again whether there is room.
    fn wake_for_room(&self) {
        self.room.wake_all();
        self.room_in_background.wake_all();
    }

    /// Puts an empty block into the cache, if there are a place and memory for it now, or can be had from idle blocks.
    fn try_insert(&self, stripe: &OpenStripe, key: BlockKey) -> Option<Place> {
        let mut cache = self.cache.borrow_mut();
        if !cache.make_room() {
            return None;
        }
        // What gave up its place has left no memory if an answer is still leaving with it.
        while self.cache_buffers.free_bytes() < stripe.block_bytes() && cache.push_out() {}
        let buffer = self.cache_buffers.try_take(stripe.block_bytes())?;
        Some(cache.insert(key, buffer))
    }

    fn unpin(&self, place: Place) {
        let mut cache = self.cache.borrow_mut();
        cache.unpin(place);
        cache.discard(place);
        drop(cache);
        self.wake_for_room();
    }

    fn block_of(&self, place: Place) -> u64 {
        self.cache.borrow_mut().block(place).key.block
    }

    async fn wait_until_loaded(&self, place: Place) {
        loop {
            let loaded = {
                let mut cache = self.cache.borrow_mut();
                let block = cache.block(place);
                if !block.loading {
                    return;
                }
                block.loaded.clone()
            };
            loaded.wait().await;
        }
    }

    /// Sees to it that `range` of the pinned block is in the buffer.
    async fn make_valid(
        &self,
        stripe: &OpenStripe,
        place: Place,
        range: &Range<u64>,
        class: Class,
    ) -> Result<(), Box<Failure>> {
        if class == Class::Demand {
            // Another task may be loading it in the background.
            self.promote_turn(stripe, self.block_of(place));
        }
        self.wait_until_loaded(place).await;
        if self.cache.borrow_mut().block(place).valid.contains(range) {
            return Ok(());
        }
        self.load(stripe, place, class).await
    }

    /// Reads the block from its disk, under what has been written to it meanwhile.
    async fn load(&self, stripe: &OpenStripe, place: Place, class: Class) -> Result<(), Box<Failure>> {
        let (key, own) = {
            let mut cache = self.cache.borrow_mut();
            let block = cache.block(place);
            block.loading = true;
            // A block that is partly written keeps its buffer; the disk's bytes come beside it.
            let own = if block.valid.is_empty() { block.buffer.take() } else { None };
            (block.key, own)
        };
        let into = match own {
            Some(buffer) => buffer,
            None => self.cache_buffers.take(stripe.block_bytes()).await,
        };
        let read = self.machine.contain(
            "reading a block",
            self.read_disk(stripe, key.block * stripe.block_bytes(), into, class),
        );
        let outcome = read.await.and_then(|outcome| outcome);
        // A read that fails keeps its buffer.
        let has_none = outcome.is_err() && self.cache.borrow_mut().block(place).buffer.is_none();
        let empty = if has_none { Some(self.cache_buffers.take(stripe.block_bytes()).await) } else { None };
        let mut cache = self.cache.borrow_mut();
        let block = cache.block(place);
        block.loading = false;
        block.loaded.wake_all();
        match outcome {
            Ok(mut buffer) => {
                if let Some(written) = &block.buffer {
                    for run in block.valid.runs() {
                        buffer.put(run.start, &written.slice(run.clone()));
                    }
                }
                block.buffer = Some(buffer);
                block.valid = ByteSet::whole(stripe.block_bytes());
                Ok(())
            }
            Err(error) => {
                block.buffer = block.buffer.take().or(empty);
                Err(error.into())
            }
        }
    }

    /// Fills `into` with what the disk has of the stripe from `offset` on.
    async fn read_disk(
        &self,
        stripe: &OpenStripe,
        offset: u64,
        into: Buf,
        class: Class,
    ) -> machine::Result<Buf> {
        self.machine.compute(Work::QueueDiskRequest).await;
        let _turn = self.turn(stripe, offset, class).await;
        let outcome = self.machine.disks()[stripe.disk].read(stripe.object, offset, into).await;
        self.machine.compute(Work::CompleteDiskRequest).await;
        outcome
    }

    /// Puts the block into the queue of its disk, and leaves it to a task to write what is dirty of it then. Who fills
    /// a block does that itself, so that other threads need not let the task go first.
    async fn start_writing(self: &Rc<Self>, stripe: &Rc<OpenStripe>, place: Place) {
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
        let (node, stripe) = (self.clone(), stripe.clone());
        self.machine.spawn("write-behind", async move {
            let written = node.machine.contain("writing a block", node.write_behind(&stripe, place)).await;
            let outcome = written.and_then(|outcome| outcome);
            node.cache.borrow_mut().block(place).end_writing();
            if let Err(error) = outcome {
                stripe.fail(&(*error).into());
            }
            drop(operation);
            node.wake_for_room();
            Ok(())
        });
    }

    async fn write_behind(&self, stripe: &OpenStripe, place: Place) -> machine::Result<()> {
        let start = self.cache.borrow_mut().block(place).key.block * stripe.block_bytes();
        let turn = self.turn(stripe, start, Line::Behind).await;
        let at_disk = self.enter_disk(place).await;
        // Taken only now, so that what was written while the request waited goes with it.
        let runs: Vec<(u64, Payload)> = {
            let mut cache = self.cache.borrow_mut();
            let block = cache.block(place);
            let dirty = std::mem::take(&mut block.dirty);
            // What is written from now on needs another task.
            block.write_queued = false;
            let buffer = block.buffer.as_ref();
            let buffer = buffer.expect("a dirty block keeps its buffer while it loads");
            dirty.runs().iter().map(|run| (start + run.start, buffer.slice(run.clone()))).collect()
        };
        runs.iter().for_each(|(offset, data)| stripe.begin_write(offset + data.len()));
        let mut outcome = Ok(());
        for (offset, data) in runs {
            let (range, disk) = (offset..offset + data.len(), &self.machine.disks()[stripe.disk]);
            let written =
                self.machine.contain("writing to a disk", disk.write(stripe.object, offset, data)).await;
            let written = written.and_then(|written| written);
            stripe.end_write(range.end, written.is_ok());
            if let Err(error) = &written {
                self.lose(stripe, place, range, &machine::Error::clone(error).into());
            }
            outcome = outcome.and(written);
        }
        drop(at_disk);
        self.machine.compute(Work::CompleteDiskRequest).await;
        drop(turn);
        outcome
    }

    /// Waits until nobody writes this block to the disk. Only one task waits here at a time, as only one is going to
    /// write what is dirty.
    async fn enter_disk(&self, place: Place) -> AtDisk<'_, M> {
        loop {
            let written = {
                let mut cache = self.cache.borrow_mut();
                let block = cache.block(place);
                if !std::mem::replace(&mut block.at_disk, true) {
                    return AtDisk { node: self, place };
                }
                block.written.clone()
            };
            written.wait().await;
        }
    }

    /// Notes that a range of a stripe, which lies in this block, could not be written to the disk.
    fn lose(&self, stripe: &OpenStripe, place: Place, range: Range<u64>, failure: &Failure) {
        let mut cache = self.cache.borrow_mut();
        let block = cache.block(place);
        let start = block.key.block * stripe.block_bytes();
        stripe.losses.note(range.clone(), failure);
        for again in block.lose(&(range.start - start..range.end - start)) {
            stripe.losses.mend(&(start + again.start..start + again.end));
        }
        stripe.fall_back(cache.dirty_end(stripe.key(), stripe.block_bytes()));
    }

    /// Starts writing all that is dirty of a stripe.
    pub(super) async fn start_writing_out(self: &Rc<Self>, stripe: &Rc<OpenStripe>) {
        let unwritten = self.cache.borrow().unwritten(Some(stripe.key()));
        for key in unwritten {
            self.start_writing_block(stripe, key).await;
        }
    }

    /// Starts writing a block, if it is still there and nobody has begun to meanwhile.
    async fn start_writing_block(self: &Rc<Self>, stripe: &Rc<OpenStripe>, key: BlockKey) {
        let place = self.cache.borrow().find_unwritten(key);
        if let Some(place) = place {
            self.start_writing(stripe, place).await;
        }
    }

    /// Writes all that is dirty of a stripe and waits for it.
    pub(super) async fn write_out(self: &Rc<Self>, stripe: &Rc<OpenStripe>) {
        self.start_writing_out(stripe).await;
        stripe.writes.none().await;
    }

    /// Forgets the blocks of a stripe from `first` on, once they are idle. What writes that had begun before leave
    /// dirty is written.
    pub(super) async fn forget_blocks(self: &Rc<Self>, stripe: &Barred, first: u64) {
        loop {
            self.start_writing_out(stripe).await;
            if self.cache.borrow_mut().forget(stripe.key(), first) {
                return;
            }
            self.room.wait().await;
        }
    }

    /// Forgets all blocks of a stripe, once they are idle. What is not on its way to the disk never gets there.
    pub(super) async fn give_up_blocks(&self, stripe: &Barred) {
        loop {
            self.cache.borrow_mut().give_up(stripe.key());
            if self.cache.borrow_mut().forget(stripe.key(), 0) {
                return;
            }
            self.room.wait().await;
        }
    }
}
