//! Collective requests: the disk-directed method at the I/O node (Kotz 1994).
//!
//! One request describes the whole transfer. For each disk the I/O node lists the blocks of the file that lie on it,
//! may sort them by physical position, and lets a few buffers take them one after the other: while one buffer is at the
//! disk, another exchanges its pieces with the compute nodes' memory.
//!
//! ```text
//!  buffer 0:  [disk: block 0][pieces to nodes][ waits ][disk: block 2][pieces ...
//!  buffer 1:  [    waits    ][disk: block 1  ][pieces to nodes][ waits ][disk: ...
//! ```

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::iter::once;
use std::rc::Rc;

use layout::{BlockRequest, BlockRequests, Extent, Piece};
use machine::{Buf, BufferPool, Disk, Line, Machine, NodeId, NotedSpan, Payload, TaskGroup, Work};

use super::IoNode;
use super::account::Account;
use super::open_stripe::{Barred, OpenStripe};
use crate::error::{Failure, FailureKind};
use crate::exchange::{Exchange, ExchangeGroup};
use crate::protocol::{Collective, Direction, Reply};
use crate::schedule::{DiskUser, Urgency};

/// One stripe's part of a collective request.
struct StripeTransfer<M: Machine> {
    node: Rc<IoNode<M>>,
    /// The node that has asked for the operation.
    client: NodeId,
    request: Rc<Collective>,
    stripe: Rc<OpenStripe>,
    exchange: Rc<Exchange<M>>,
    blocks: RefCell<Blocks>,
    buffers: BufferPool,
    /// Blocks are written in the order in which they were taken, whichever has its data first: the disk seeks less.
    writes: Line,
}

/// The blocks of a stripe that are still to be moved.
struct Blocks {
    /// The blocks to be moved next, in reverse order: the next one is the last.
    listed: Vec<BlockRequest>,
    /// The others, not listed all at once: the request says how many there are, and may say any number.
    rest: BlockRequests,
}

/// Blocks that are listed, and sorted, at a time.
const LISTED_MAX: usize = 1 << 18;

impl<M: Machine> IoNode<M> {
    pub(super) async fn serve_collective(
        self: &Rc<Self>,
        client: NodeId,
        account: &Rc<Account>,
        request: Collective,
    ) -> Result<Reply, Box<Failure>> {
        let served = async || self.move_all(client, account, Rc::new(request)).await.map(|()| Reply::Done);
        self.in_turn(account, served).await
    }

    /// Serves a collective request when it is its turn. Until then there is no future for it.
    pub(super) async fn in_turn(
        &self,
        account: &Account,
        serve: impl AsyncFnOnce() -> Result<Reply, Box<Failure>>,
    ) -> Result<Reply, Box<Failure>> {
        let turn = self.collectives.turn(account).await?;
        let served = self.contained("collective request", Box::pin(serve())).await;
        drop(turn);
        served
    }

    async fn move_all(
        self: &Rc<Self>,
        client: NodeId,
        account: &Rc<Account>,
        request: Rc<Collective>,
    ) -> Result<(), Box<Failure>> {
        let members = self.check(&request)?;
        self.machine.compute(Work::HandleRequest).await;
        let stripes = self.stripes.of_file(request.file);
        if stripes.is_empty() {
            let text = format!("file {:016x} is not open", request.file.0);
            return Err(Failure::new(FailureKind::NotOpen, text).into());
        }
        let block_bytes = stripes.iter().map(|stripe| stripe.block_bytes()).max().unwrap_or(0);
        let (queue_buffers, _queue_memory) =
            self.collectives.queue_buffers_for(request.queued, request.members.len(), block_bytes).await;
        account.check()?;
        let group = ExchangeGroup {
            memory: request.memory,
            members,
            own: None,
            dimensions: request.view.dimensions().len() as u64,
            queue_buffers,
            queue_bytes: block_bytes,
        };
        let exchange = Exchange::new(self.endpoint.clone(), group);
        let buffers = TaskGroup::new();
        // If it fails at one stripe, the buffers of others have begun: they move data into memory that the client may
        // give up as soon as it is answered.
        let started = self.start_buffers(client, account, &request, &stripes, &exchange, &buffers).await;
        let barred = started.unwrap_or_else(|failure| {
            buffers.note::<()>(Err(failure));
            Vec::new()
        });
        let outcome = buffers.join().await;
        let finished = exchange.finish().await;
        outcome.and(finished.map_err(Box::<Failure>::from))?;
        for stripe in barred {
            // What others read meanwhile may be from before.
            self.blocks.forget(&stripe, 0).await;
            self.flush_disk(&stripe).await?;
            let end = stripe.label.striping.stripe_bytes(request.view.file_bytes(), stripe.label.stripe);
            stripe.losses.mend(&(0..end));
        }
        Ok(())
    }

    /// Starts the buffers of all stripes, one stripe after the other. Those that are written are barred.
    async fn start_buffers(
        self: &Rc<Self>,
        client: NodeId,
        account: &Rc<Account>,
        request: &Rc<Collective>,
        stripes: &[Rc<OpenStripe>],
        exchange: &Rc<Exchange<M>>,
        buffers: &TaskGroup<Box<Failure>>,
    ) -> Result<Vec<Barred>, Box<Failure>> {
        let mut barred = Vec::new();
        for stripe in stripes {
            // The cache is bypassed: what it holds goes to the disk first, and is not valid after.
            self.blocks.write_out(stripe).await;
            stripe.writers.tell(client)?;
            match request.direction {
                Direction::Read => stripe.losses.check(&(0..u64::MAX))?,
                Direction::Write => {
                    let stripe = stripe.bypass_cache();
                    self.blocks.forget(&stripe, 0).await;
                    barred.push(stripe);
                }
            }
            let transfer = Rc::new(self.plan(client, request, stripe, exchange.clone()).await?);
            for _ in 0..self.settings.buffers_per_disk {
                let (transfer, group, account) = (transfer.clone(), buffers.clone(), account.clone());
                buffers.spawn(&self.machine, "collective buffer", async move {
                    transfer.move_blocks(&group, &account).await
                });
            }
        }
        Ok(barred)
    }

    /// Refuses a group that cannot be one: of a size that is not the view's, or otherwise.
    fn check(&self, request: &Collective) -> Result<Vec<NodeId>, Box<Failure>> {
        let (members, nodes) = (request.members.len(), request.view.nodes());
        if members as u64 != u64::from(nodes) {
            let text = format!("a group of {members} nodes with a view for {nodes}");
            return Err(Failure::invalid(text).into());
        }
        self.check_members(&request.members)
    }

    /// The members of a group. Refuses one of nodes that are not there, or with one of them twice: so there are no more
    /// members than connections.
    pub(super) fn check_members(&self, members: &[u64]) -> Result<Vec<NodeId>, Box<Failure>> {
        let members: Vec<NodeId> = members.iter().map(|&member| NodeId(member)).collect();
        let mut seen = BTreeSet::new();
        for &member in &members {
            if !self.accounts.is_there(member) {
                // It may not have been since this I/O node was started anew.
                let text = format!("{member} is of the group, and is not connected to this I/O node");
                return Err(Failure::new(FailureKind::NotOpen, text).into());
            }
            if !seen.insert(member) {
                return Err(Failure::invalid(format!("a group that has {member} twice")).into());
            }
        }
        Ok(members)
    }

    /// Makes ready to list the blocks of the stripe in the order in which they will be moved.
    async fn plan(
        self: &Rc<Self>,
        client: NodeId,
        request: &Rc<Collective>,
        stripe: &Rc<OpenStripe>,
        exchange: Rc<Exchange<M>>,
    ) -> Result<StripeTransfer<M>, Box<Failure>> {
        let striping = stripe.label.striping;
        let file_bytes = request.view.file_bytes();
        let end = striping.stripe_bytes(file_bytes, stripe.label.stripe);
        let blocks = end.div_ceil(striping.block_bytes());
        self.machine.compute(Work::ListBlocks { blocks }).await;
        if request.direction == Direction::Write {
            // All the space first, so that sorting knows where each block will be.
            self.disks.extend(stripe, end).await?;
        }
        if request.presort {
            self.machine.compute(Work::SortBlocks { blocks }).await;
        }
        let rest = striping.blocks_of_stripe(stripe.label.stripe, file_bytes);
        Ok(StripeTransfer {
            node: self.clone(),
            client,
            request: request.clone(),
            stripe: stripe.clone(),
            exchange,
            blocks: RefCell::new(Blocks { listed: Vec::new(), rest }),
            buffers: BufferPool::new(striping.block_bytes() * self.settings.buffers_per_disk as u64),
            writes: Line::new(),
        })
    }
}

/// Moves one block after the other with a buffer until none is left, something has failed, or the client is gone.
pub(super) async fn move_each<Block, Buffer>(
    mut buffer: Buffer,
    buffers: &TaskGroup<Box<Failure>>,
    account: &Account,
    next_block: impl Fn() -> Option<Block>,
    move_block: impl AsyncFn(Block, Buffer) -> Result<Buffer, Box<Failure>>,
) -> Result<(), Box<Failure>> {
    while !buffers.has_failed() {
        account.check()?;
        let Some(block) = next_block() else { break };
        buffer = move_block(block, buffer).await?;
    }
    Ok(())
}

impl<M: Machine> StripeTransfer<M> {
    /// The task of one buffer: moves blocks until none is left.
    async fn move_blocks(
        &self,
        buffers: &TaskGroup<Box<Failure>>,
        account: &Account,
    ) -> Result<(), Box<Failure>> {
        let buffer = self.buffers.take(self.stripe.block_bytes()).await;
        let move_block = async |block, buffer| match self.request.direction {
            Direction::Read => self.read_block(block, buffer).await,
            Direction::Write => self.write_block(block, buffer).await,
        };
        move_each(buffer, buffers, account, || self.next_block(), move_block).await
    }

    fn next_block(&self) -> Option<BlockRequest> {
        let mut blocks = self.blocks.borrow_mut();
        let Blocks { listed, rest } = &mut *blocks;
        if listed.is_empty() {
            listed.extend(rest.take(LISTED_MAX));
            if self.request.presort {
                let home = self.stripe.home;
                let disk = self.node.disks.of(home);
                listed.sort_by_cached_key(|block| disk.position(home.object, block.stripe_offset));
            }
            listed.reverse();
        }
        listed.pop()
    }

    /// Notes that a block is moved.
    fn moving(&self, block: BlockRequest) -> NotedSpan<'_> {
        let (job, file) = (self.client.0, self.request.file.0);
        let about =
            || [("job", job), ("file", file), ("offset", block.stripe_offset), ("bytes", block.bytes)];
        self.node.machine.notes().span("move block", about)
    }

    async fn read_block(&self, block: BlockRequest, buffer: Buf) -> Result<Buf, Box<Failure>> {
        let _span = self.moving(block);
        let user = DiskUser { job: self.client, urgency: Urgency::Demand };
        let buffer = self.node.disks.read(self.stripe.home, block.stripe_offset, buffer, user).await?;
        let data = |piece: &Piece| {
            let at = piece.file_offset - block.file_offset;
            buffer.slice(at..at + piece.bytes)
        };
        let pieces = self.request.view.pieces(Extent::new(block.file_offset, block.bytes));
        self.exchange.put(pieces, data).await?;
        Ok(buffer)
    }

    async fn write_block(&self, block: BlockRequest, mut buffer: Buf) -> Result<Buf, Box<Failure>> {
        let _span = self.moving(block);
        let place_in_line = self.writes.join();
        // The compute nodes' pieces cover the block, or the file ends within it: nothing to read first.
        let place = |piece: &Piece, data: &Payload| buffer.put(piece.file_offset - block.file_offset, data);
        let pieces = self.request.view.pieces(Extent::new(block.file_offset, block.bytes));
        self.exchange.get(pieces, place).await?;
        let (home, whole) = (self.stripe.home, once(0..block.bytes));
        let written = self.node.disks.write_runs(home, block.stripe_offset, &buffer, whole, self.client);
        place_in_line.begin(written).await?;
        Ok(buffer)
    }
}
