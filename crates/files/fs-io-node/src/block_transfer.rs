//! Moving blocks, or parts of them, between disks and the memory of clients. The parts are defined by a view
//! (`disk_directed.rs`), by directories (`listed.rs`) or by selections (`selected.rs`).
//!
//! A few buffers for each disk take its blocks one after the other. Bytes between the parts of a block must
//! not change.

use std::cell::RefCell;
use std::iter;
use std::ops::Range;
use std::rc::Rc;

use machine::{Buf, BufferPool, Machine, NodeId, OrderedQueue, Payload, QueuePosition, TaskGroup, yield_now};

use super::IoNode;
use super::client_account::Account;
use super::collective_admission::PatchedBlock;
use super::disks::RUNS_MAX;
use super::open_stripe::{OpenStripe, WriteExclusion};
use super::portion_sizes::PortionSizes;
use crate::error::{Failure, Result as FsResult};
use crate::exchange::Exchange;
use crate::keyed_mutex::KeyedGuard;
use crate::protocol::Direction;
use crate::schedule::{DiskUser, Urgency};

/// The parts of a block to be moved.
pub(super) trait BlockParts<M: Machine>: Sized {
    /// Returns the offset in bytes of the block within its stripe.
    fn stripe_offset(&self) -> u64;

    /// Returns the bytes of the block to be moved: disjoint ranges, in order, not touching each other. Yields
    /// to other tasks while it scans many pieces.
    async fn runs(&self) -> Result<Vec<Range<u64>>, Box<Failure>>;

    /// Puts these bytes from `buffer`, which has the block, into the members' memory. The buffer is free when
    /// this completes.
    async fn put(&self, exchange: &Rc<Exchange<M>>, buffer: &Buf) -> FsResult<()>;

    /// Gets the bytes of several blocks from the members, each block's into the buffer of the same index.
    async fn get(blocks: &[&Self], exchange: &Exchange<M>, buffers: &mut [Buf]) -> FsResult<()>;
}

/// A block with its parts to be moved.
pub(super) struct MovedBlock<P> {
    pub(super) stripe: Rc<StripePart>,
    pub(super) parts: P,
}

/// A stripe with blocks in an operation.
pub(super) struct StripePart {
    pub(super) stripe: Rc<OpenStripe>,
    /// If the stripe is written: prevents new writes of single blocks during the operation.
    barred: Option<WriteExclusion>,
    /// Lease of the locks under which the stripe is written, if the client sent one.
    lease: Option<u64>,
    /// Length before the operation, if no other operation of this kind was in flight. The bytes beyond it are
    /// zeros until another one begins.
    bytes_before: Option<u64>,
}

/// A disk's part of an operation, or a stripe's. `blocks` yields the blocks still to be moved, or `None` as
/// long as the search for more has to continue.
pub(super) struct BlockTransfer<M: Machine, I> {
    pub(super) node: Rc<IoNode<M>>,
    /// The node that requested the operation.
    pub(super) client: NodeId,
    pub(super) direction: Direction,
    pub(super) exchange: Rc<Exchange<M>>,
    blocks: RefCell<I>,
    buffers: BufferPool,
    block_bytes: u64,
    portions: PortionSizes,
    /// Queue of writes: blocks are written in the order in which they were taken, whichever has its data
    /// first, so that the disk seeks less.
    writes: OrderedQueue,
}

/// Writes of an operation to a stripe.
pub(super) struct StripeWrites {
    /// End of the last written byte, as an offset in the stripe.
    pub(super) end: u64,
    /// Lease of the locks under which the stripe is written, if the client sent one.
    pub(super) lease: Option<u64>,
}

impl StripePart {
    /// True if no operation has written from this offset on, so that the stripe has zeros there.
    fn is_new_from(&self, offset: u64) -> bool {
        self.bytes_before.is_some_and(|bytes| offset >= bytes)
            && self.barred.as_ref().is_some_and(WriteExclusion::is_alone)
    }
}

impl<M: Machine> IoNode<M> {
    /// Prepares a stripe: the operation bypasses the cache. If it writes, space is allocated up to the end of the
    /// writes in advance, so that the physical position of each block is known for sorting.
    pub(super) async fn make_ready(
        self: &Rc<Self>,
        account: &Rc<Account>,
        stripe: Rc<OpenStripe>,
        writes: Option<StripeWrites>,
    ) -> Result<StripePart, Box<Failure>> {
        self.blocks.write_out(&stripe).await;
        stripe.writers.answer(account.client)?;
        let Some(StripeWrites { end, lease }) = writes else {
            stripe.losses.check(&(0..u64::MAX))?;
            return Ok(StripePart { stripe, barred: None, lease: None, bytes_before: None });
        };
        let barred = stripe.bypass_cache();
        let is_alone = barred.is_alone();
        machine::sometimes!("two operations that bypass the cache overlap", if !is_alone);
        self.blocks.forget(&barred, 0).await;
        let bytes_before = is_alone.then(|| stripe.length.bytes());
        let _change = self.blocks.fences.begin_change(lease)?;
        self.disks.extend(&stripe, end).await?;
        Ok(StripePart { stripe, barred: Some(barred), lease, bytes_before })
    }

    /// Waits until the buffers of an operation on these stripes have moved all blocks. Completes its writes, which
    /// bypassed the cache, and flushes them to stable storage if `to_media`.
    pub(super) async fn end_transfer(
        &self,
        buffers: TaskGroup<Box<Failure>>,
        exchange: &Rc<Exchange<M>>,
        parts: &[Rc<StripePart>],
        to_media: bool,
    ) -> Result<(), Box<Failure>> {
        let outcome = buffers.join().await;
        let finished = exchange.finish().await;
        let written = || parts.iter().filter(|part| part.barred.is_some());
        for part in written() {
            // Blocks read into the cache during the operation may be older than its writes, also if it failed.
            self.blocks.forget(&part.stripe.bypass_cache(), 0).await;
        }
        outcome.and(finished.map_err(Box::<Failure>::from))?;
        for part in written().filter(|_| to_media) {
            self.flush_disk(&part.stripe).await?;
        }
        Ok(())
    }
}

impl<M, P, I> BlockTransfer<M, I>
where
    M: Machine,
    P: BlockParts<M> + 'static,
    I: Iterator<Item = Option<MovedBlock<P>>> + 'static,
{
    /// Creates a transfer of blocks of at most `block_bytes` bytes, `blocks_at_once` at a time.
    pub(super) fn new(
        node: &Rc<IoNode<M>>,
        client: NodeId,
        direction: Direction,
        exchange: &Rc<Exchange<M>>,
        blocks: I,
        (block_bytes, blocks_at_once): (u64, u64),
    ) -> Rc<Self> {
        let buffers = node.settings.buffers_per_disk;
        let portions =
            PortionSizes::new(blocks_at_once as usize, block_bytes, exchange.member_count(), buffers);
        let buffers = BufferPool::new(block_bytes * buffers as u64 * blocks_at_once);
        let (node, exchange, blocks) = (node.clone(), exchange.clone(), RefCell::new(blocks));
        Rc::new(BlockTransfer {
            node,
            client,
            direction,
            exchange,
            blocks,
            buffers,
            block_bytes,
            portions,
            writes: OrderedQueue::new(),
        })
    }

    /// Starts a task for each buffer.
    pub(super) fn start(self: Rc<Self>, buffers: &TaskGroup<Box<Failure>>, account: &Rc<Account>) {
        for _ in 0..self.node.settings.buffers_per_disk {
            let (transfer, others, account) = (self.clone(), buffers.clone(), account.clone());
            buffers.spawn(&self.node.machine, "collective buffer", async move {
                transfer.move_blocks(&others, &account).await
            });
        }
    }

    /// Moves blocks through one buffer until there are no more, an error occurs, or the client disconnects.
    async fn move_blocks(
        &self,
        buffers: &TaskGroup<Box<Failure>>,
        account: &Account,
    ) -> Result<(), Box<Failure>> {
        let mut buffer = Vec::new();
        for _ in 0..self.portions.most() {
            buffer.push(self.buffers.take(self.block_bytes).await);
        }
        while !buffers.has_failed() {
            account.check()?;
            let Some(found) = self.next_blocks() else { break };
            let Some(first) = found.first() else {
                yield_now().await;
                continue;
            };
            let (file, offset) = (first.stripe.stripe.file().0, first.parts.stripe_offset());
            let about = || [("job", self.client.0), ("file", file), ("offset", offset)];
            let name = if found.len() == 1 { "move block" } else { "move blocks" };
            let _span = self.node.machine.notes().span(name, about);
            buffer = match self.direction {
                Direction::Read => self.read_blocks(&found, buffer).await?,
                Direction::Write => self.write_blocks(&found, buffer).await?,
            };
        }
        Ok(())
    }

    /// Returns the next blocks for a buffer; an empty list if the search for more has to continue; `None` at
    /// the end.
    fn next_blocks(&self) -> Option<Vec<MovedBlock<P>>> {
        let mut blocks = self.blocks.borrow_mut();
        let first = match blocks.next()? {
            Some(first) => first,
            None => return Some(Vec::new()),
        };
        let others = self.portions.next(1 + blocks.size_hint().0) - 1;
        let others = iter::from_fn(|| blocks.next().flatten()).take(others);
        Some(iter::once(first).chain(others).collect())
    }

    /// Fills a buffer with a block from the disk.
    async fn load(&self, block: &MovedBlock<P>, buffer: Buf) -> Result<Buf, Box<Failure>> {
        let (stripe, offset) = (&block.stripe.stripe, block.parts.stripe_offset());
        let user = DiskUser { job: self.client, urgency: Urgency::Demand };
        Ok(self.node.disks.read(stripe.home, offset, buffer, user).await?)
    }

    async fn read_blocks(
        &self,
        blocks: &[MovedBlock<P>],
        mut buffers: Vec<Buf>,
    ) -> Result<Vec<Buf>, Box<Failure>> {
        for block in blocks {
            let buffer = self.load(block, buffers.remove(0)).await?;
            block.parts.put(&self.exchange, &buffer).await?;
            // The buffer is free again: queued pieces have been copied, others have arrived.
            buffers.push(buffer);
        }
        Ok(buffers)
    }

    async fn write_blocks(
        &self,
        blocks: &[MovedBlock<P>],
        buffers: Vec<Buf>,
    ) -> Result<Vec<Buf>, Box<Failure>> {
        // Bytes between the runs must not change at the disk while the block is in a buffer. So writes of
        // single blocks are barred, and other operations, which may have other parts of the block, wait for
        // their turn.
        let _turns_at_blocks = self.take_turns(blocks).await;
        // Enter the queue only after taking the turns: a task in the queue waits for no turn at a block, so
        // two operations cannot deadlock.
        let places_in_line: Vec<QueuePosition> = blocks.iter().map(|_| self.writes.join()).collect();
        let mut runs = Vec::with_capacity(blocks.len());
        for block in blocks {
            if !runs.is_empty() {
                yield_now().await;
            }
            runs.push(block.parts.runs().await?);
        }
        let (mut filled, mut buffers) = (Vec::with_capacity(buffers.len()), buffers.into_iter());
        for ((block, runs), buffer) in blocks.iter().zip(&runs).zip(buffers.by_ref()) {
            let around = runs.len() > RUNS_MAX;
            filled.push(if around { self.load_around(block, buffer).await? } else { buffer });
        }
        let parts: Vec<&P> = blocks.iter().map(|block| &block.parts).collect();
        P::get(&parts, &self.exchange, &mut filled).await?;
        let ready = blocks.iter().zip(runs).zip(&filled).zip(places_in_line);
        for (((block, runs), buffer), place_in_line) in ready {
            place_in_line.begin(self.write_runs(block, runs, buffer)).await?;
        }
        filled.extend(buffers);
        Ok(filled)
    }

    /// Takes the turns at several blocks. All operations take turns in the same order to avoid a deadlock.
    async fn take_turns(&self, blocks: &[MovedBlock<P>]) -> Vec<KeyedGuard<'_, PatchedBlock>> {
        let place = |MovedBlock { stripe, parts }: &MovedBlock<P>| {
            (stripe.stripe.file(), stripe.stripe.label.stripe, parts.stripe_offset())
        };
        let mut places: Vec<PatchedBlock> = blocks.iter().map(place).collect();
        places.sort_unstable();
        let mut turns = Vec::with_capacity(places.len());
        for place in places {
            turns.push(self.node.collectives.patched.take(place).await);
        }
        turns
    }

    /// Writes the runs of a block from a buffer.
    async fn write_runs(
        &self,
        block: &MovedBlock<P>,
        mut runs: Vec<Range<u64>>,
        buffer: &Buf,
    ) -> Result<(), Box<Failure>> {
        let (stripe, offset) = (&block.stripe.stripe, block.parts.stripe_offset());
        if runs.len() > RUNS_MAX {
            let end = runs.last().expect("more than one").end;
            runs.truncate(1);
            runs[0] = 0..end;
        }
        let disks = &self.node.disks;
        let _change = self.node.blocks.fences.begin_change(block.stripe.lease)?;
        disks.write_runs(stripe.home, offset, buffer, runs.iter().cloned(), self.client).await?;
        for Range { start, end } in runs {
            stripe.losses.clear(&(offset + start..offset + end));
        }
        Ok(())
    }

    /// Fills a buffer with the bytes between the many runs of a block.
    async fn load_around(&self, block: &MovedBlock<P>, mut buffer: Buf) -> Result<Buf, Box<Failure>> {
        if !block.stripe.is_new_from(block.parts.stripe_offset()) {
            let (start, bytes) = (block.parts.stripe_offset(), block.stripe.stripe.block_bytes());
            block.stripe.stripe.losses.check(&(start..start + bytes))?;
            return self.load(block, buffer).await;
        }
        buffer.put(0, &Payload::zeros(self.block_bytes));
        Ok(buffer)
    }
}
