//! Collective operations on listed stretches of files: directories from the members, and what is done by them.
//!
//! As for a dense view (`disk_directed.rs`), the I/O node lists the blocks of each of its disks, may sort them by
//! physical position, and lets a few buffers take them one after the other. But which blocks, of which files, and whose
//! each byte of them is, it learns from the directories that the members have sent before; of a block there may be
//! parts only.
//!
//! ```text
//!  directories of all members --> pieces by block --> latest writes only --> blocks of each disk, sorted --> buffers
//! ```

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use layout::Extent;
use machine::{Buf, BufferPool, Disk, Machine, NodeId, Payload, TaskGroup, Work};

use super::IoNode;
use super::account::Account;
use super::disk_directed::move_each;
use super::open_stripe::{Barred, OpenStripe};
use crate::dealt::{BlockPieces, Dealt};
use crate::directory::{ListedStretch, length};
use crate::error::{Failure, FailureKind};
use crate::exchange::Exchange;
use crate::piece_run::PieceRun;
use crate::protocol::{Direction, FileId, Listed, MemoryId, Reply};
use crate::schedule::{DiskUser, Urgency};

/// The most entries that one client may have told and not yet had moved.
const ENTRIES_OF_CLIENT_MAX: u64 = 1 << 20;

/// The most runs of a block that are written one by one; a block of more is read first and then written as a whole.
const RUNS_MAX: usize = 4;

/// What clients have told of their memory for operations to come.
#[derive(Default)]
pub(super) struct Directories(RefCell<BTreeMap<(NodeId, u64), Told>>);

/// What a client has told for the operations of a group.
struct Told {
    /// The memory, which names the operation.
    memory: MemoryId,
    stretches: Vec<(FileId, Vec<ListedStretch>)>,
}

impl Directories {
    /// Adds to what a client has told for an operation.
    fn add(
        &self,
        client: NodeId,
        memory: MemoryId,
        mut stretches: Vec<(FileId, Vec<ListedStretch>)>,
    ) -> Result<(), Box<Failure>> {
        let group = group_of(memory)?;
        let mut all = self.0.borrow_mut();
        // What it has told for an earlier operation of the group is forgotten.
        let of_client = all.range((client, 0)..=(client, u64::MAX));
        let kept = of_client.filter(|((_, other), told)| *other != group || told.memory == memory);
        let count = kept.map(|(_, told)| length(&told.stretches)).sum::<u64>() + length(&stretches);
        if count > ENTRIES_OF_CLIENT_MAX {
            let text =
                format!("directories of {count} entries from {client}; at most {ENTRIES_OF_CLIENT_MAX} here");
            return Err(Failure::invalid(text).into());
        }
        let told = all.entry((client, group)).or_insert_with(|| Told { memory, stretches: Vec::new() });
        if told.memory != memory {
            *told = Told { memory, stretches: Vec::new() };
        }
        told.stretches.append(&mut stretches);
        Ok(())
    }

    /// Takes what a client has told for an operation: nothing, if it has told nothing.
    fn take(
        &self,
        client: NodeId,
        memory: MemoryId,
    ) -> Result<Vec<(FileId, Vec<ListedStretch>)>, Box<Failure>> {
        let told = self.0.borrow_mut().remove(&(client, group_of(memory)?));
        Ok(told.filter(|told| told.memory == memory).map(|told| told.stretches).unwrap_or_default())
    }

    /// Forgets a client that is gone.
    pub(super) fn forget(&self, client: NodeId) {
        self.0.borrow_mut().retain(|(other, _), _| *other != client);
    }
}

fn group_of(memory: MemoryId) -> Result<u64, Box<Failure>> {
    match memory {
        MemoryId::Collective(meeting) => Ok(meeting.group),
        MemoryId::Request(_) => Err(Failure::invalid("a directory of memory that is not of a group").into()),
    }
}

/// One disk's part of an operation.
struct DiskTransfer<M: Machine> {
    node: Rc<IoNode<M>>,
    /// Who has asked for it all.
    asker: NodeId,
    request: Rc<Listed>,
    exchange: Rc<Exchange<M>>,
    /// Blocks that are still to be moved, the next one last.
    blocks: RefCell<Vec<ListedBlock>>,
    buffers: BufferPool,
    block_bytes: u64,
}

/// A block and what is to be moved of it.
struct ListedBlock {
    stripe: Rc<StripePart>,
    pieces: BlockPieces,
}

/// A stripe that has blocks in an operation.
struct StripePart {
    stripe: Rc<OpenStripe>,
    /// If it is written, nobody else begins to write it meanwhile.
    _barred: Option<Barred>,
    /// Its length before the operation: beyond it are zeros.
    bytes_before: u64,
}

impl<M: Machine> IoNode<M> {
    /// Takes in a part of a client's directory.
    pub(super) async fn take_directory(
        &self,
        asker: NodeId,
        memory: MemoryId,
        stretches: Vec<(FileId, Vec<ListedStretch>)>,
    ) -> Result<Reply, Box<Failure>> {
        let entries = stretches.iter().flat_map(|(_, of_file)| of_file).map(ListedStretch::count).sum();
        self.machine.compute(Work::TakeEntries { entries }).await;
        self.directories.add(asker, memory, stretches)?;
        Ok(Reply::Done)
    }

    pub(super) async fn serve_listed(
        self: &Rc<Self>,
        asker: NodeId,
        account: &Rc<Account>,
        request: Listed,
    ) -> Result<Reply, Box<Failure>> {
        let served = self.move_listed(asker, account, Rc::new(request));
        self.in_turn(account, served).await
    }

    async fn move_listed(
        self: &Rc<Self>,
        asker: NodeId,
        account: &Rc<Account>,
        request: Rc<Listed>,
    ) -> Result<Reply, Box<Failure>> {
        let members = self.check_members(&request.members)?;
        self.machine.compute(Work::HandleRequest).await;
        let (blocks, hidden) = self.deal(asker, &request, &members).await?;
        let counts = blocks.iter().map(|of_disk| of_disk.len() as u64).collect();
        let block_bytes =
            blocks.iter().flatten().map(|block| block.stripe.stripe.block_bytes()).max().unwrap_or(0);
        let (queue_buffers, _queue_memory) =
            self.collectives.queue_buffers_for(request.queued, members.len(), block_bytes).await;
        account.check()?;
        let (endpoint, memory) = (self.endpoint.clone(), request.memory);
        let exchange = Exchange::new(endpoint, 1, memory, members, None, queue_buffers, block_bytes);
        let stripes = stripes_of(&blocks);
        let group = TaskGroup::new();
        for (disk, blocks) in blocks.into_iter().enumerate().filter(|(_, blocks)| !blocks.is_empty()) {
            let transfer = Rc::new(self.plan_listed(asker, &request, disk, exchange.clone(), blocks).await);
            for _ in 0..self.settings.buffers_per_disk {
                let (transfer, others, account) = (transfer.clone(), group.clone(), account.clone());
                group.spawn(&self.machine, "collective buffer", async move {
                    transfer.move_blocks(&others, &account).await
                });
            }
        }
        let outcome = group.join().await;
        let finished = exchange.finish().await;
        outcome.and(finished.map_err(Box::<Failure>::from))?;
        if request.direction == Direction::Write {
            for part in &stripes {
                // What others read meanwhile may be from before.
                self.blocks.forget(&part.stripe.bar_writes(), 0).await;
                self.flush_disk(&part.stripe).await?;
            }
        }
        Ok(Reply::Moved { blocks: counts, hidden })
    }

    /// Deals what the members have told to the blocks of each disk. Stripes that are written are ready for it then.
    async fn deal(
        self: &Rc<Self>,
        asker: NodeId,
        request: &Listed,
        members: &[NodeId],
    ) -> Result<(Vec<Vec<ListedBlock>>, u64), Box<Failure>> {
        let is_write = request.direction == Direction::Write;
        let files = self.take_told(request, members)?;
        let entries = files.values().flatten().flat_map(|(_, told)| told).map(ListedStretch::count).sum();
        self.machine.compute(Work::SortEntries { entries }).await;
        let mut blocks: Vec<Vec<ListedBlock>> = self.machine.disks().iter().map(|_| Vec::new()).collect();
        let mut hidden = 0;
        for (file, of_members) in files {
            let stripes = self.stripes.of_file(file);
            let Some(striping) = stripes.first().map(|stripe| stripe.label.striping) else {
                let text = format!("file {:016x} is not open", file.0);
                return Err(Failure::new(FailureKind::NotOpen, text).into());
            };
            let here: BTreeSet<u32> = stripes.iter().map(|stripe| stripe.label.stripe).collect();
            let mut dealt = Dealt::default();
            for (member, stretches) in &of_members {
                let added = dealt.add(striping, &here, *member, stretches);
                added.map_err(|why| Failure::invalid(format!("file {:016x}: {why}", file.0)))?;
            }
            let (of_file, hidden_here) = dealt.into_blocks(is_write);
            hidden += hidden_here;
            let mut by_stripe: BTreeMap<u32, Vec<BlockPieces>> = BTreeMap::new();
            for (stripe, block) in of_file {
                by_stripe.entry(stripe).or_default().push(block);
            }
            for stripe in stripes {
                let Some(of_stripe) = by_stripe.remove(&stripe.label.stripe) else { continue };
                let disk = stripe.home.disk;
                let part = Rc::new(self.make_ready(asker, stripe, is_write, &of_stripe).await?);
                let listed = |pieces| ListedBlock { stripe: part.clone(), pieces };
                blocks[disk].extend(of_stripe.into_iter().map(listed));
            }
        }
        Ok((blocks, hidden))
    }

    /// What the members have told for the operation, by file and member.
    fn take_told(&self, request: &Listed, members: &[NodeId]) -> Result<ByFile, Box<Failure>> {
        let mut files = ByFile::new();
        for (index, &member) in (0..).zip(members) {
            for (file, stretches) in self.directories.take(member, request.memory)? {
                files.entry(file).or_default().push((index, stretches));
            }
        }
        Ok(files)
    }

    /// Makes a stripe ready: the cache is bypassed, and what is written has its space first, so that sorting knows
    /// where each block will be.
    async fn make_ready(
        self: &Rc<Self>,
        asker: NodeId,
        stripe: Rc<OpenStripe>,
        is_write: bool,
        blocks: &[BlockPieces],
    ) -> Result<StripePart, Box<Failure>> {
        self.blocks.write_out(&stripe).await;
        stripe.writers.tell(asker)?;
        let bytes_before = stripe.length.bytes();
        if !is_write {
            stripe.losses.check(&(0..u64::MAX))?;
            return Ok(StripePart { stripe, _barred: None, bytes_before });
        }
        let barred = stripe.bar_writes();
        self.blocks.forget(&barred, 0).await;
        let end = blocks.last().map_or(0, BlockPieces::end);
        if end > stripe.length.bytes() {
            self.disks.check_space(&stripe, end).await?;
            self.disks.of(stripe.home).resize(stripe.home.object, end).await?;
            stripe.set_end(end);
        }
        Ok(StripePart { stripe, _barred: Some(barred), bytes_before })
    }

    /// Puts the blocks of a disk into the order in which they will be moved.
    async fn plan_listed(
        self: &Rc<Self>,
        asker: NodeId,
        request: &Rc<Listed>,
        disk: usize,
        exchange: Rc<Exchange<M>>,
        mut blocks: Vec<ListedBlock>,
    ) -> DiskTransfer<M> {
        let count = blocks.len() as u64;
        self.machine.compute(Work::ListBlocks { blocks: count }).await;
        if request.presort {
            self.machine.compute(Work::SortBlocks { blocks: count }).await;
            let device = &self.machine.disks()[disk];
            let position = |block: &ListedBlock| {
                device.position(block.stripe.stripe.home.object, block.pieces.stripe_offset)
            };
            blocks.sort_by_cached_key(position);
        }
        blocks.reverse();
        let block_bytes = blocks.iter().map(|block| block.stripe.stripe.block_bytes()).max().unwrap_or(0);
        DiskTransfer {
            node: self.clone(),
            asker,
            request: request.clone(),
            exchange,
            blocks: RefCell::new(blocks),
            buffers: BufferPool::new(block_bytes * self.settings.buffers_per_disk as u64),
            block_bytes,
        }
    }
}

/// Stretches by file, each member's with its index in the group.
type ByFile = BTreeMap<FileId, Vec<(u32, Vec<ListedStretch>)>>;

/// The stripes that blocks are of, each once.
fn stripes_of(blocks: &[Vec<ListedBlock>]) -> Vec<Rc<StripePart>> {
    let mut stripes: Vec<Rc<StripePart>> = Vec::new();
    for block in blocks.iter().flatten() {
        if !stripes.last().is_some_and(|last| Rc::ptr_eq(last, &block.stripe)) {
            stripes.push(block.stripe.clone());
        }
    }
    stripes
}

impl<M: Machine> DiskTransfer<M> {
    /// A buffer's life.
    async fn move_blocks(
        &self,
        buffers: &TaskGroup<Box<Failure>>,
        account: &Account,
    ) -> Result<(), Box<Failure>> {
        let buffer = self.buffers.take(self.block_bytes).await;
        let move_block = async |block: ListedBlock, buffer| {
            let (file, offset) = (block.stripe.stripe.file().0, block.pieces.stripe_offset);
            let about = || [("job", self.asker.0), ("file", file), ("offset", offset)];
            let _span = self.node.machine.notes().span("move block", about);
            match self.request.direction {
                Direction::Read => self.read_block(&block, buffer).await,
                Direction::Write => self.write_block(&block, buffer).await,
            }
        };
        move_each(buffer, buffers, account, || self.blocks.borrow_mut().pop(), move_block).await
    }

    /// Fills a buffer with a block as it is on the disk.
    async fn load(&self, block: &ListedBlock, buffer: Buf) -> Result<Buf, Box<Failure>> {
        let (stripe, offset) = (&block.stripe.stripe, block.pieces.stripe_offset);
        let user = DiskUser { job: self.asker, urgency: Urgency::Demand };
        Ok(self.node.disks.read(stripe.home, offset, buffer, user).await?)
    }

    async fn read_block(&self, block: &ListedBlock, buffer: Buf) -> Result<Buf, Box<Failure>> {
        let buffer = self.load(block, buffer).await?;
        let start = block.pieces.file_offset();
        let data = |part: Extent| buffer.slice(part.offset - start..part.end() - start);
        self.exchange.put(block.pieces.pieces().into_iter(), data).await?;
        // Queued pieces have been copied, others have arrived: nobody needs the buffer any more.
        Ok(buffer)
    }

    async fn write_block(&self, block: &ListedBlock, mut buffer: Buf) -> Result<Buf, Box<Failure>> {
        let (node, stripe) = (&self.node, &block.stripe.stripe);
        let (mut runs, offset) = (block.pieces.runs(), block.pieces.stripe_offset);
        // What lies between the runs is not to change while it is here: writes of single blocks are barred, and other
        // operations wait for their turn.
        let mut _turn_at_block = None;
        if runs.len() > RUNS_MAX {
            _turn_at_block =
                Some(node.collectives.patched.take((stripe.file(), stripe.label.stripe, offset)).await);
            buffer = self.load_around(block, buffer).await?;
        }
        let start = block.pieces.file_offset();
        if self.request.queued {
            let place = |run: &PieceRun, data: &Payload| {
                buffer.put_strided(run.first.file_offset - start, run.first.bytes, run.stride, data);
            };
            self.exchange.get_runs(block.pieces.piece_runs(), place).await?;
        } else {
            let place = |offset, data: &Payload| buffer.put(offset - start, data);
            self.exchange.get(block.pieces.pieces().into_iter(), place).await?;
        }
        if runs.len() > RUNS_MAX {
            let end = runs.last().expect("more than one").end;
            runs.truncate(1);
            runs[0] = 0..end;
        }
        node.disks.write_runs(stripe.home, offset, &buffer, runs.iter().cloned(), self.asker).await?;
        for Range { start, end } in runs {
            stripe.losses.mend(&(offset + start..offset + end));
        }
        Ok(buffer)
    }

    /// Fills a buffer with what a block of many runs has between them.
    async fn load_around(&self, block: &ListedBlock, mut buffer: Buf) -> Result<Buf, Box<Failure>> {
        if block.pieces.stripe_offset < block.stripe.bytes_before {
            let (start, bytes) = (block.pieces.stripe_offset, block.stripe.stripe.block_bytes());
            block.stripe.stripe.losses.check(&(start..start + bytes))?;
            return self.load(block, buffer).await;
        }
        buffer.put(0, &Payload::zeros(self.block_bytes));
        Ok(buffer)
    }
}
