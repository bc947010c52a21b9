//! Collective requests: the disk-directed method at the I/O node (Kotz 1994).
//!
//! One request describes the whole transfer. For each disk the I/O node lists the blocks of the file that lie
//! on it, and may sort them by physical position. A few buffers take the blocks one after the other: while
//! one buffer is at the disk, another exchanges its pieces with the compute nodes' memory.
//!
//! ```text
//!  buffer 0:  [disk: block 0][pieces to nodes][ waits ][disk: block 2][pieces ...
//!  buffer 1:  [    waits    ][disk: block 1  ][pieces to nodes][ waits ][disk: ...
//! ```

use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use layout::{BlockRequest, BlockRequests, Extent, Piece};
use machine::{Buf, Disk, Machine, NodeId, Payload, TaskGroup, Work};

use super::IoNode;
use super::block_transfer::{BlockParts, BlockTransfer, MovedBlock, StripePart, StripeWrites};
use super::client_account::Account;
use crate::error::{Failure, FailureKind, Result as FsResult};
use crate::exchange::{Exchange, ExchangeGroup};
use crate::protocol::{Collective, Direction, Reply};

/// Limit of blocks that are listed, and sorted, at a time.
pub(super) const LISTED_MAX: usize = 1 << 18;

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

    /// Serves a collective request at its turn. Its future is created only then, to save memory.
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
        let is_write = request.direction == Direction::Write;
        let mut parts = Vec::new();
        for stripe in stripes {
            let end = stripe.label.striping.stripe_bytes(request.view.file_bytes(), stripe.label.stripe);
            let writes = is_write.then_some(StripeWrites { end, lease: None });
            parts.push(Rc::new(self.make_ready(account, stripe, writes).await?));
        }
        let buffers = TaskGroup::new();
        for part in &parts {
            let blocks = self.blocks_of_view(&request, part).await;
            let room = (part.stripe.block_bytes(), 1);
            BlockTransfer::new(self, client, request.direction, &exchange, blocks, room)
                .start(&buffers, account);
        }
        self.end_transfer(buffers, &exchange, &parts, true).await
    }

    /// Fails for an invalid group: for example if its size is not that of the view.
    fn check(&self, request: &Collective) -> Result<Vec<NodeId>, Box<Failure>> {
        let (members, nodes) = (request.members.len(), request.view.nodes());
        if members as u64 != u64::from(nodes) {
            let text = format!("a group of {members} nodes with a view for {nodes}");
            return Err(Failure::invalid(text).into());
        }
        self.check_members(&request.members)
    }

    /// Returns the members of a group. Fails if one of them is not connected or occurs twice: so there are no
    /// more members than connections.
    pub(super) fn check_members(&self, members: &[u64]) -> Result<Vec<NodeId>, Box<Failure>> {
        let members: Vec<NodeId> = members.iter().map(|&member| NodeId(member)).collect();
        let mut seen = BTreeSet::new();
        for &member in &members {
            if !self.accounts.is_connected(member) {
                // The member may not have reconnected since this I/O node was restarted.
                let text = format!("{member} is of the group, and is not connected to this I/O node");
                return Err(Failure::new(FailureKind::NotOpen, text).into());
            }
            if !seen.insert(member) {
                return Err(Failure::invalid(format!("a group that has {member} twice")).into());
            }
        }
        Ok(members)
    }

    /// Prepares to list the blocks of a stripe in the order in which they will be moved.
    async fn blocks_of_view(
        self: &Rc<Self>,
        request: &Rc<Collective>,
        part: &Rc<StripePart>,
    ) -> BlocksOfView<M> {
        let label = &part.stripe.label;
        let (striping, file_bytes) = (label.striping, request.view.file_bytes());
        let blocks = striping.stripe_bytes(file_bytes, label.stripe).div_ceil(striping.block_bytes());
        self.machine.compute(Work::ListBlocks { blocks }).await;
        if request.presort {
            self.machine.compute(Work::SortBlocks { blocks }).await;
        }
        let rest = striping.blocks_of_stripe(label.stripe, file_bytes);
        let (node, part, request) = (self.clone(), part.clone(), request.clone());
        BlocksOfView { node, part, request, listed: Vec::new(), rest }
    }
}

/// The blocks of a stripe that are still to be moved.
struct BlocksOfView<M: Machine> {
    node: Rc<IoNode<M>>,
    part: Rc<StripePart>,
    request: Rc<Collective>,
    /// The blocks to be moved next, in reverse order.
    listed: Vec<BlockRequest>,
    /// The other blocks. They are not listed all at once, since the request determines their number and may
    /// name any number.
    rest: BlockRequests,
}

impl<M: Machine> Iterator for BlocksOfView<M> {
    type Item = Option<MovedBlock<BlockOfView>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.listed.is_empty() {
            self.list();
        }
        let parts = BlockOfView { request: self.request.clone(), block: self.listed.pop()? };
        Some(Some(MovedBlock { stripe: self.part.clone(), parts }))
    }
}

impl<M: Machine> BlocksOfView<M> {
    /// Lists the next blocks, in the order in which they will be moved.
    fn list(&mut self) {
        self.listed.extend(self.rest.by_ref().take(LISTED_MAX));
        if self.request.presort {
            let home = self.part.stripe.home;
            let disk = self.node.disks.of(home);
            self.listed.sort_by_cached_key(|block| disk.position(home.object, block.stripe_offset));
        }
        self.listed.reverse();
    }
}

/// A block of a file, all of which is moved: the view defines the owner of each piece.
struct BlockOfView {
    request: Rc<Collective>,
    block: BlockRequest,
}

impl BlockOfView {
    /// Returns the members' pieces of the block, in the order of the file.
    fn pieces(&self) -> impl Iterator<Item = Piece> {
        self.request.view.pieces(Extent::new(self.block.file_offset, self.block.bytes))
    }
}

impl<M: Machine> BlockParts<M> for BlockOfView {
    fn stripe_offset(&self) -> u64 {
        self.block.stripe_offset
    }

    async fn runs(&self) -> Result<Vec<Range<u64>>, Box<Failure>> {
        // The members' pieces cover the block, or the file ends within it.
        let whole = 0..self.block.bytes;
        Ok(vec![whole])
    }

    async fn put(&self, exchange: &Rc<Exchange<M>>, buffer: &Buf) -> FsResult<()> {
        let data = |piece: &Piece| {
            let at = piece.file_offset - self.block.file_offset;
            buffer.slice(at..at + piece.bytes)
        };
        exchange.put(self.pieces(), data).await
    }

    async fn get(blocks: &[&Self], exchange: &Exchange<M>, buffers: &mut [Buf]) -> FsResult<()> {
        for (block, buffer) in blocks.iter().zip(buffers) {
            let start = block.block.file_offset;
            let place = |piece: &Piece, data: &Payload| buffer.put(piece.file_offset - start, data);
            exchange.get(block.pieces(), place).await?;
        }
        Ok(())
    }
}
