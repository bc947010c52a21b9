//! Moving blocks, or parts of them, between disks and the memory of clients. A view (`disk_directed.rs`), directories
//! (`listed.rs`) or selections (`selected.rs`) say which parts.
//!
//! A few buffers of each disk take its blocks one after the other. What lies between the parts of a block must not
//! change.

use std::cell::RefCell;
use std::iter;
use std::ops::Range;
use std::rc::Rc;

use machine::{Buf, BufferPool, Line, Machine, NodeId, Payload, PlaceInLine, TaskGroup, give_way};

use super::IoNode;
use super::account::Account;
use super::collectives::PatchedBlock;
use super::disks::RUNS_MAX;
use super::open_stripe::{Barred, OpenStripe};
use super::portions::Portions;
use crate::error::{Failure, Result as FsResult};
use crate::exchange::Exchange;
use crate::protocol::Direction;
use crate::schedule::{DiskUser, Urgency};
use crate::turns::Turn;

/// What is to be moved of a block.
pub(super) trait BlockParts<M: Machine>: Sized {
    /// Offset in bytes of the block within its stripe.
    fn stripe_offset(&self) -> u64;

    /// The bytes of the block that are to be moved: disjoint ranges, in order, not touching each other. Gives way to
    /// other tasks while it looks at many pieces.
    async fn runs(&self) -> Result<Vec<Range<u64>>, Box<Failure>>;

    /// Puts these bytes from `buffer`, which has the block, into the members' memory. When this completes the buffer is
    /// free again.
    async fn put(&self, exchange: &Rc<Exchange<M>>, buffer: &Buf) -> FsResult<()>;

    /// Gets the bytes of several blocks from the members, those of each block into the buffer of the same index.
    async fn get(blocks: &[&Self], exchange: &Exchange<M>, buffers: &mut [Buf]) -> FsResult<()>;
}

/// A block and what is to be moved of it.
pub(super) struct MovedBlock<P> {
    pub(super) stripe: Rc<StripePart>,
    pub(super) parts: P,
}

/// A stripe that has blocks in an operation.
pub(super) struct StripePart {
    pub(super) stripe: Rc<OpenStripe>,
    /// If it is written, no write of single blocks begins meanwhile.
    barred: Option<Barred>,
    /// Its length before the operation, if no other of this kind was under way: beyond it are zeros, until one is.
    bytes_before: Option<u64>,
}

/// A disk's part of an operation, or a stripe's. The blocks are those still to be moved; none, where there may be
/// others that have not been found yet.
pub(super) struct BlockTransfer<M: Machine, I> {
    pub(super) node: Rc<IoNode<M>>,
    /// The node that has asked for the operation.
    pub(super) client: NodeId,
    pub(super) direction: Direction,
    pub(super) exchange: Rc<Exchange<M>>,
    blocks: RefCell<I>,
    buffers: BufferPool,
    block_bytes: u64,
    portions: Portions,
    /// Blocks are written in the order in which they were taken, whichever has its data first: the disk seeks less.
    writes: Line,
}

impl StripePart {
    /// Whether nothing has been written from this offset on: there are zeros.
    fn is_new_from(&self, offset: u64) -> bool {
        self.bytes_before.is_some_and(|bytes| offset >= bytes)
            && self.barred.as_ref().is_some_and(Barred::is_alone)
    }
}

impl<M: Machine> IoNode<M> {
    /// Makes a stripe ready: the cache is bypassed, and what is written, up to `written_end` of it, has its space
    /// first, so that sorting knows where each block will be.
    pub(super) async fn make_ready(
        self: &Rc<Self>,
        client: NodeId,
        stripe: Rc<OpenStripe>,
        written_end: Option<u64>,
    ) -> Result<StripePart, Box<Failure>> {
        self.blocks.write_out(&stripe).await;
        stripe.writers.tell(client)?;
        let Some(end) = written_end else {
            stripe.losses.check(&(0..u64::MAX))?;
            return Ok(StripePart { stripe, barred: None, bytes_before: None });
        };
        let barred = stripe.bypass_cache();
        let is_alone = barred.is_alone();
        self.blocks.forget(&barred, 0).await;
        let bytes_before = is_alone.then(|| stripe.length.bytes());
        self.disks.extend(&stripe, end).await?;
        Ok(StripePart { stripe, barred: Some(barred), bytes_before })
    }

    /// Takes in that stripes have been written past the cache, and brings them onto the media if that is wanted.
    pub(super) async fn wrote_parts(
        &self,
        stripes: &[Rc<StripePart>],
        to_media: bool,
    ) -> Result<(), Box<Failure>> {
        for part in stripes {
            // What others read meanwhile may be from before.
            self.blocks.forget(&part.stripe.bypass_cache(), 0).await;
            if to_media {
                self.flush_disk(&part.stripe).await?;
            }
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
    /// Of blocks of at most `block_bytes` bytes, `blocks_at_once` at a time.
    pub(super) fn new(
        node: &Rc<IoNode<M>>,
        client: NodeId,
        direction: Direction,
        exchange: &Rc<Exchange<M>>,
        blocks: I,
        (block_bytes, blocks_at_once): (u64, u64),
    ) -> Rc<Self> {
        let buffers = node.settings.buffers_per_disk;
        let portions = Portions::new(blocks_at_once as usize, block_bytes, exchange.member_count(), buffers);
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
            writes: Line::new(),
        })
    }

    /// Starts its buffers.
    pub(super) fn start(self: Rc<Self>, buffers: &TaskGroup<Box<Failure>>, account: &Rc<Account>) {
        for _ in 0..self.node.settings.buffers_per_disk {
            let (transfer, others, account) = (self.clone(), buffers.clone(), account.clone());
            buffers.spawn(&self.node.machine, "collective buffer", async move {
                transfer.move_blocks(&others, &account).await
            });
        }
    }

    /// The task of one buffer: moves blocks until none is left, something has failed, or the client is gone.
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
                give_way().await;
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

    /// The next blocks that a buffer moves; none where there may be others that have not been found yet.
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

    /// Fills a buffer with a block as it is on the disk.
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
            // Queued pieces have been copied, others have arrived: the buffer is free again.
            buffers.push(buffer);
        }
        Ok(buffers)
    }

    async fn write_blocks(
        &self,
        blocks: &[MovedBlock<P>],
        buffers: Vec<Buf>,
    ) -> Result<Vec<Buf>, Box<Failure>> {
        // What lies between the runs must not change at the disk while the block is in a buffer: writes of single
        // blocks are barred, and other operations, which may have other parts of the block, wait for their turn.
        let _turns_at_blocks = self.take_turns(blocks).await;
        // A task in the line waits for no turn at a block: two operations cannot wait for each other.
        let places_in_line: Vec<PlaceInLine> = blocks.iter().map(|_| self.writes.join()).collect();
        let mut runs = Vec::with_capacity(blocks.len());
        for block in blocks {
            if !runs.is_empty() {
                give_way().await;
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

    /// Takes the turns at several blocks. All operations take turns in the same order, so that no circle of them waits.
    async fn take_turns(&self, blocks: &[MovedBlock<P>]) -> Vec<Turn<'_, PatchedBlock>> {
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

    /// Writes the runs of a block, which a buffer has.
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
        disks.write_runs(stripe.home, offset, buffer, runs.iter().cloned(), self.client).await?;
        for Range { start, end } in runs {
            stripe.losses.mend(&(offset + start..offset + end));
        }
        Ok(())
    }

    /// Fills a buffer with what a block of many runs has between them.
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
