//! Collective operations on listed extents of files, which the members send in directories.
//!
//! The procedure is that for a dense view (`disk_directed.rs`): the I/O node lists the blocks of each of its
//! disks, and may sort them by physical position. A few buffers take them one after the other. Here the
//! directories, which the members have sent before, define the blocks, their files, and the owner of each
//! byte. A block may be moved in part only.
//!
//! ```text
//!  directories of all members --> pieces by block --> latest writes only --> blocks of each disk, sorted --> buffers
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use layout::Piece;
use machine::{Buf, Disk, Machine, NodeId, Payload, TaskGroup, Work};

use super::IoNode;
use super::block_transfer::{BlockParts, BlockTransfer, MovedBlock, StripePart, StripeWrites};
use super::client_account::Account;
use super::staged_requests::{Staged, StagedSize};
use crate::directory::{ListedStretch, PieceBudget, bytes_of, length};
use crate::error::{Failure, FailureKind, Result as FsResult};
use crate::exchange::{Exchange, ExchangeGroup};
use crate::pieces_by_block::{BlockPieces, PiecesByBlock};
use crate::protocol::{Direction, FileId, Listed, MemoryId, Reply};
use crate::strided_pieces::PieceRun;

/// Limit of staged entries of one client.
const ENTRIES_OF_CLIENT_MAX: u64 = 1 << 20;

/// Staged directories of clients for coming operations.
pub(super) type Directories = Staged<(FileId, Vec<ListedStretch>)>;

impl<M: Machine> IoNode<M> {
    /// Stages a part of a client's directory.
    pub(super) async fn take_directory(
        &self,
        client: NodeId,
        memory: MemoryId,
        stretches: Vec<(FileId, Vec<ListedStretch>)>,
    ) -> Result<Reply, Box<Failure>> {
        let entries = stretches.iter().flat_map(|(_, of_file)| of_file).map(ListedStretch::count).sum();
        self.machine.compute(Work::TakeEntries { entries }).await;
        let weight = StagedSize { count: length(&stretches), bytes: bytes_of(&stretches) };
        let most = ENTRIES_OF_CLIENT_MAX;
        let refused = |count| {
            Failure::invalid(format!("directories of {count} entries from {client}; at most {most} here"))
        };
        self.directories.add(client, memory, stretches, weight, most, refused)?;
        Ok(Reply::Done)
    }

    pub(super) async fn serve_listed(
        self: &Rc<Self>,
        client: NodeId,
        account: &Rc<Account>,
        request: Listed,
    ) -> Result<Reply, Box<Failure>> {
        let served = async || self.move_listed(client, account, Rc::new(request)).await;
        self.in_turn(account, served).await
    }

    async fn move_listed(
        self: &Rc<Self>,
        client: NodeId,
        account: &Rc<Account>,
        request: Rc<Listed>,
    ) -> Result<Reply, Box<Failure>> {
        let members = self.check_members(&request.members)?;
        self.machine.compute(Work::HandleRequest).await;
        let (blocks, hidden) = self.deal(account, &request, &members).await?;
        let counts = blocks.iter().map(|of_disk| of_disk.len() as u64).collect();
        let block_bytes =
            blocks.iter().flatten().map(|block| block.stripe.stripe.block_bytes()).max().unwrap_or(0);
        let (queue_buffers, _queue_memory) =
            self.collectives.queue_buffers_for(request.queued, members.len(), block_bytes).await;
        account.check()?;
        let (memory, queue_bytes) = (request.memory, block_bytes);
        let group = ExchangeGroup { memory, members, own: None, dimensions: 1, queue_buffers, queue_bytes };
        let exchange = Exchange::new(self.endpoint.clone(), group);
        let stripes = stripes_of(&blocks);
        let group = TaskGroup::new();
        for (disk, blocks) in blocks.into_iter().enumerate().filter(|(_, blocks)| !blocks.is_empty()) {
            let blocks = self.plan_listed(&request, disk, blocks).await;
            let block_bytes = blocks.iter().map(|block| block.stripe.stripe.block_bytes()).max().unwrap_or(0);
            let blocks = blocks.into_iter().map(Some);
            let direction = request.direction;
            BlockTransfer::new(self, client, direction, &exchange, blocks, (block_bytes, 1))
                .start(&group, account);
        }
        self.end_transfer(group, &exchange, &stripes, true).await?;
        Ok(Reply::Moved { blocks: counts, hidden })
    }

    /// Distributes the members' entries to the blocks of each disk. Prepares the stripes to be written.
    async fn deal(
        self: &Rc<Self>,
        account: &Rc<Account>,
        request: &Listed,
        members: &[NodeId],
    ) -> Result<(Vec<Vec<ListedBlock>>, u64), Box<Failure>> {
        let is_write = request.direction == Direction::Write;
        let files = self.take_staged(request, members)?;
        let entries =
            files.values().flatten().flat_map(|(_, received)| received).map(ListedStretch::count).sum();
        self.machine.compute(Work::SortEntries { entries }).await;
        let mut blocks: Vec<Vec<ListedBlock>> = self.machine.disks().iter().map(|_| Vec::new()).collect();
        let (mut hidden, mut pieces) = (0, PieceBudget::of(members.len()));
        for (file, of_members) in files {
            let stripes = self.stripes.of_file(file);
            let Some(striping) = stripes.first().map(|stripe| stripe.label.striping) else {
                let text = format!("file {:016x} is not open", file.0);
                return Err(Failure::new(FailureKind::NotOpen, text).into());
            };
            let here: BTreeSet<u32> = stripes.iter().map(|stripe| stripe.label.stripe).collect();
            let mut dealt = PiecesByBlock::default();
            for (member, stretches) in &of_members {
                let added = dealt.add(striping, &here, *member, stretches, &mut pieces).await;
                added.map_err(|why| Failure::invalid(format!("file {:016x}: {why}", file.0)))?;
            }
            let (of_file, hidden_here) = dealt.into_blocks(is_write).await;
            hidden += hidden_here;
            let mut by_stripe: BTreeMap<u32, Vec<BlockPieces>> = BTreeMap::new();
            for (stripe, block) in of_file {
                by_stripe.entry(stripe).or_default().push(block);
            }
            for stripe in stripes {
                let Some(of_stripe) = by_stripe.remove(&stripe.label.stripe) else { continue };
                let disk = stripe.home.disk;
                let end = of_stripe.last().map_or(0, BlockPieces::end);
                let writes = is_write.then_some(StripeWrites { end, lease: None });
                let part = Rc::new(self.make_ready(account, stripe, writes).await?);
                let queued = request.queued;
                let listed =
                    |pieces| MovedBlock { stripe: part.clone(), parts: ListedParts { pieces, queued } };
                blocks[disk].extend(of_stripe.into_iter().map(listed));
            }
        }
        Ok((blocks, hidden))
    }

    /// Takes the members' staged entries for the operation, by file and member.
    fn take_staged(&self, request: &Listed, members: &[NodeId]) -> Result<ByFile, Box<Failure>> {
        let mut files = ByFile::new();
        for (index, &member) in (0..).zip(members) {
            for (file, stretches) in self.directories.take(member, request.memory)? {
                files.entry(file).or_default().push((index, stretches));
            }
        }
        Ok(files)
    }

    /// Sorts the blocks of a disk into the order in which they will be moved.
    async fn plan_listed(
        &self,
        request: &Listed,
        disk: usize,
        mut blocks: Vec<ListedBlock>,
    ) -> Vec<ListedBlock> {
        let count = blocks.len() as u64;
        self.machine.compute(Work::ListBlocks { blocks: count }).await;
        if request.presort {
            self.machine.compute(Work::SortBlocks { blocks: count }).await;
            let device = &self.machine.disks()[disk];
            let position = |block: &ListedBlock| {
                device.position(block.stripe.stripe.home.object, block.parts.pieces.stripe_offset)
            };
            blocks.sort_by_cached_key(position);
        }
        blocks
    }
}

/// Extents by file, with the index of their member in the group.
type ByFile = BTreeMap<FileId, Vec<(u32, Vec<ListedStretch>)>>;

/// Returns the stripes of the blocks, each once.
fn stripes_of(blocks: &[Vec<ListedBlock>]) -> Vec<Rc<StripePart>> {
    let mut stripes: Vec<Rc<StripePart>> = Vec::new();
    for block in blocks.iter().flatten() {
        if !stripes.last().is_some_and(|last| Rc::ptr_eq(last, &block.stripe)) {
            stripes.push(block.stripe.clone());
        }
    }
    stripes
}

/// The members' pieces of a block.
struct ListedParts {
    pieces: BlockPieces,
    /// True if a regular run of a member's pieces is fetched as one.
    queued: bool,
}

type ListedBlock = MovedBlock<ListedParts>;

impl<M: Machine> BlockParts<M> for ListedParts {
    fn stripe_offset(&self) -> u64 {
        self.pieces.stripe_offset
    }

    async fn runs(&self) -> Result<Vec<Range<u64>>, Box<Failure>> {
        Ok(self.pieces.runs().await)
    }

    async fn put(&self, exchange: &Rc<Exchange<M>>, buffer: &Buf) -> FsResult<()> {
        let start = self.pieces.file_offset();
        let data =
            |piece: &Piece| buffer.slice(piece.file_offset - start..piece.file_offset + piece.bytes - start);
        exchange.put(self.pieces.pieces().into_iter(), data).await
    }

    async fn get(blocks: &[&Self], exchange: &Exchange<M>, buffers: &mut [Buf]) -> FsResult<()> {
        for (block, buffer) in blocks.iter().zip(buffers) {
            block.get_alone(exchange, buffer).await?;
        }
        Ok(())
    }
}

impl ListedParts {
    async fn get_alone<M: Machine>(&self, exchange: &Exchange<M>, buffer: &mut Buf) -> FsResult<()> {
        let start = self.pieces.file_offset();
        if self.queued {
            let place = |run: &PieceRun, data: &Payload| {
                buffer.put_strided(run.first.file_offset - start, run.first.bytes, run.stride, data);
            };
            exchange.get(self.pieces.piece_runs(), place).await
        } else {
            let place = |piece: &Piece, data: &Payload| buffer.put(piece.file_offset - start, data);
            exchange.get(self.pieces.pieces().into_iter(), place).await
        }
    }
}
