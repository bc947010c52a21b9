//! Operations on clients' selections of a file. A selection stays in closed form: the members' bytes of a
//! block are determined when the block's turn comes, and neither memory nor messages grow with the number of
//! pieces.
//!
//! The pieces themselves are packed and unpacked in `selected_parts.rs`.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::mem;
use std::ops::Range;
use std::rc::Rc;

use layout::Extent;
use machine::{Buf, Disk, Machine, NodeId, TaskGroup, Work};

use super::IoNode;
use super::block_transfer::{BlockParts, BlockTransfer, MovedBlock, StripePart, StripeWrites};
use super::client_account::Account;
use super::collective_admission::roomy_queue_bytes;
use super::disk_directed::LISTED_MAX;
use super::staged_requests::{Staged, StagedSize};
use crate::error::{Failure, FailureKind, Result as FsResult};
use crate::exchange::{Exchange, ExchangeGroup};
use crate::protocol::{Direction, FileId, Reply, Selected, SelectedPart, Selecting, Selectors};
use crate::selected_parts::{Overlap, SelectedParts, Selector, nearest};

/// Limit of nodes of staged selections of one client: some forty megabytes.
const NODES_OF_CLIENT_MAX: u64 = 1 << 19;

/// Number of nodes that each part of a selection counts for in addition to its own nodes: every block is
/// looked up in every part. Clients make no more parts than the size of messages requires.
const NODES_OF_PART: u64 = 1 << 10;

/// Limit of the bytes of a node of a selection.
const NODE_BYTES: u64 = 80;

/// Number of lookups of blocks, in all selections together, before this task yields to others.
const LOOKS_IN_A_ROW: usize = 16_384;

/// Staged selections of clients for coming operations.
pub(super) type Selections = Staged<Selecting>;

/// The selections of all members, and the stripes that they may touch.
struct AllSelected {
    members: Vec<NodeId>,
    selectors: Rc<[Selector]>,
    stripes: BTreeSet<u32>,
    /// Lease of the locks of the only member, if it sent one.
    lease: Option<u64>,
}

impl AllSelected {
    /// Returns the end of the last selected byte.
    fn end(&self) -> u64 {
        self.selectors.iter().map(|selector| selector.selection.end()).max().unwrap_or(0)
    }
}

impl<M: Machine> IoNode<M> {
    /// Stages a member's selection, or a part of it.
    pub(super) async fn take_selecting(
        &self,
        client: NodeId,
        selecting: Selecting,
    ) -> Result<Reply, Box<Failure>> {
        self.machine.compute(Work::TakeEntries { entries: 1 }).await;
        let nodes = selecting.part.selection.nodes();
        let stripes = size_of_val(&*selecting.part.stripes) as u64;
        let bytes = nodes.saturating_add(2).saturating_mul(NODE_BYTES).saturating_add(stripes);
        let weight = StagedSize { count: nodes.saturating_add(NODES_OF_PART), bytes };
        let most = NODES_OF_CLIENT_MAX;
        let (memory, refused) = (selecting.memory, |nodes| {
            let text = format!(
                "selections of {nodes} nodes from {client}; at most {most} here: select fewer ranges"
            );
            Failure::invalid(text)
        });
        self.selections.add(client, memory, vec![selecting], weight, most, refused)?;
        Ok(self.accepted())
    }

    pub(super) async fn serve_selected(
        self: &Rc<Self>,
        client: NodeId,
        account: &Rc<Account>,
        request: Selected,
    ) -> Result<Reply, Box<Failure>> {
        let served = async || self.move_selected(client, account, &request).await;
        self.in_turn(account, served).await
    }

    async fn move_selected(
        self: &Rc<Self>,
        client: NodeId,
        account: &Rc<Account>,
        request: &Selected,
    ) -> Result<Reply, Box<Failure>> {
        let all = self.all_selected(client, request)?;
        self.machine.compute(Work::HandleRequest).await;
        let stripes = all.stripes.iter().map(|&stripe| self.stripes.get(request.file, stripe));
        let stripes = stripes.collect::<Result<Vec<_>, _>>()?;
        let block_bytes = stripes.iter().map(|stripe| stripe.block_bytes()).max().unwrap_or(0);
        let queue_bytes = roomy_queue_bytes(all.members.len(), block_bytes);
        let (queue_buffers, _queue_memory) =
            self.collectives.queue_buffers_for(request.queued, all.members.len(), queue_bytes).await;
        account.check()?;
        let is_write = request.direction == Direction::Write;
        let mut parts = Vec::new();
        for stripe in stripes {
            let end = stripe.label.striping.stripe_bytes(all.end(), stripe.label.stripe);
            let writes = is_write.then_some(StripeWrites { end, lease: all.lease });
            let part = self.make_ready(account, stripe, writes).await?;
            parts.push(Rc::new(part));
        }
        let note_writers = || {
            for part in parts.iter().filter(|_| is_write && !request.to_media) {
                all.members.iter().for_each(|&member| part.stripe.writers.note(member));
            }
        };
        note_writers();
        let (memory, members) = (request.memory, all.members.clone());
        let group = ExchangeGroup { memory, members, own: None, dimensions: 1, queue_buffers, queue_bytes };
        let exchange = Exchange::new(self.endpoint.clone(), group);
        let moved: Vec<Rc<Cell<u64>>> = self.machine.disks().iter().map(|_| Rc::default()).collect();
        // Members are asked for their parts of several blocks at once, so that small parts make few messages.
        // A write does not use the queues, so these blocks have their memory.
        let blocks_in_queues =
            queue_buffers.filter(|_| is_write).unwrap_or(0) * queue_bytes / block_bytes.max(1);
        let buffer_count = (parts.len() * self.settings.buffers_per_disk).max(1) as u64;
        let blocks_at_once = 1 + blocks_in_queues / buffer_count;
        let buffers = TaskGroup::new();
        for part in &parts {
            let blocks = self.plan_selected(request, part, &all, &moved[part.stripe.home.disk]).await;
            let room = (part.stripe.block_bytes(), blocks_at_once);
            BlockTransfer::new(self, client, request.direction, &exchange, blocks, room)
                .start(&buffers, account);
        }
        let outcome = self.end_transfer(buffers, &exchange, &parts, request.to_media).await;
        // A flush during the operation has forgotten them, and may have missed its last writes.
        note_writers();
        outcome?;
        Ok(match request.selectors {
            Selectors::Members(_) => {
                Reply::Moved { blocks: moved.iter().map(|blocks| blocks.get()).collect(), hidden: 0 }
            }
            Selectors::Asker(_) | Selectors::Locked { .. } => self.accepted(),
        })
    }

    /// Returns the selections of all participants.
    fn all_selected(&self, client: NodeId, request: &Selected) -> Result<AllSelected, Box<Failure>> {
        let lease = match request.selectors {
            Selectors::Locked { lease, .. } => Some(lease),
            Selectors::Members(_) | Selectors::Asker(_) => None,
        };
        let (members, parts_by_member) = match &request.selectors {
            Selectors::Asker(part) | Selectors::Locked { part, .. } => {
                (vec![client], vec![(0, part.clone())])
            }
            Selectors::Members(members) => {
                let members = self.check_members(members)?;
                let mut parts_by_member = Vec::new();
                for (index, &member) in (0..).zip(&members) {
                    let parts = self.selections.take(member, request.memory)?;
                    check_parts(member, request.file, &parts)?;
                    parts_by_member.extend(parts.into_iter().map(|selecting| (index, selecting.part)));
                }
                (members, parts_by_member)
            }
        };
        let (mut selectors, mut stripes) = (Vec::new(), BTreeSet::new());
        for (member, SelectedPart { at, selection, stripes: touched }) in parts_by_member {
            if at.checked_add(selection.bytes()).is_none() {
                let text =
                    format!("{} bytes at {at} of its memory: beyond the end of memory", selection.bytes());
                return Err(Failure::invalid(text).into());
            }
            stripes.extend(touched);
            if !selection.is_empty() {
                selectors.push(Selector { member, at, selection });
            }
        }
        Ok(AllSelected { members, selectors: selectors.into(), stripes, lease })
    }

    /// Prepares to list the blocks of a stripe of which any member has selected bytes.
    async fn plan_selected(
        self: &Rc<Self>,
        request: &Selected,
        part: &Rc<StripePart>,
        all: &AllSelected,
        moved: &Rc<Cell<u64>>,
    ) -> SelectedBlocks<M> {
        let Selected { direction, presort, .. } = *request;
        let (striping, stripe) = (part.stripe.label.striping, u64::from(part.stripe.label.stripe));
        let end = match direction {
            // Bytes beyond are zeros, as the readers' memory is.
            Direction::Read => part.stripe.length.bytes(),
            Direction::Write => striping.stripe_bytes(all.end(), part.stripe.label.stripe),
        };
        let blocks = end.div_ceil(striping.block_bytes());
        self.machine.compute(Work::ListBlocks { blocks }).await;
        if presort {
            self.machine.compute(Work::SortBlocks { blocks }).await;
        }
        SelectedBlocks {
            node: self.clone(),
            part: part.clone(),
            selectors: all.selectors.clone(),
            presort,
            next: Some(stripe),
            end,
            found: Vec::new(),
            listed: Vec::new().into_iter(),
            moved: moved.clone(),
        }
    }
}

/// Fails unless these are all parts of a member's selection of the file. Parts may be missing because they
/// were sent to an earlier incarnation of this node.
fn check_parts(member: NodeId, file: FileId, parts: &[Selecting]) -> Result<(), Box<Failure>> {
    let count = parts.first().map_or(1, |first| u64::from(first.parts));
    if parts.iter().any(|selecting| selecting.file != file) {
        return Err(Failure::invalid(format!("{member} has selected bytes of another file")).into());
    }
    if parts.len() as u64 != count {
        let text = format!("{member} has sent {} of {count} parts of its selection", parts.len());
        return Err(Failure::new(FailureKind::NotOpen, text).into());
    }
    Ok(())
}

/// The blocks of a stripe of which any member has selected bytes, as they are found.
struct SelectedBlocks<M: Machine> {
    node: Rc<IoNode<M>>,
    part: Rc<StripePart>,
    selectors: Rc<[Selector]>,
    presort: bool,
    /// Next block of the stripe to look up, as an index in the file, if any.
    next: Option<u64>,
    /// End of the search within the stripe, as an offset in bytes.
    end: u64,
    /// Offsets within the stripe of blocks that have been found and will be listed together.
    found: Vec<u64>,
    /// Offsets of the listed blocks that are still to be moved.
    listed: std::vec::IntoIter<u64>,
    /// Counts the moved blocks.
    moved: Rc<Cell<u64>>,
}

impl<M: Machine> Iterator for SelectedBlocks<M> {
    type Item = Option<MovedBlock<SelectedBlock>>;

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.listed.len(), None)
    }

    fn next(&mut self) -> Option<Self::Item> {
        if self.listed.len() == 0 {
            self.find();
            let finds_more = self.next.is_some() && self.found.len() < LISTED_MAX;
            if finds_more && (self.presort || self.found.is_empty()) {
                return Some(None);
            }
            self.list();
        }
        let stripe_offset = self.listed.next()?;
        self.moved.set(self.moved.get() + 1);
        let label = &self.part.stripe.label;
        let place = layout::StripePlace { stripe: label.stripe, offset: stripe_offset };
        let start = label.striping.file_offset_of(place).expect("a block of a file");
        let extent = Extent::new(start, label.striping.block_bytes());
        let parts = SelectedParts { selectors: self.selectors.clone(), extent };
        let parts = SelectedBlock { parts, stripe_offset };
        Some(Some(MovedBlock { stripe: self.part.clone(), parts }))
    }
}

impl<M: Machine> SelectedBlocks<M> {
    /// Finds blocks, for a limited number of lookups: the next selected block may be far away.
    fn find(&mut self) {
        let striping = self.part.stripe.label.striping;
        let (block_bytes, stripes) = (striping.block_bytes(), u64::from(striping.stripe_count()));
        let looks = (LOOKS_IN_A_ROW / self.selectors.len().max(1)).max(1);
        for _ in 0..looks {
            let Some(block) = self.next.filter(|_| self.found.len() < LISTED_MAX) else { return };
            let (start, stripe_offset) = (block.checked_mul(block_bytes), block / stripes * block_bytes);
            let Some(start) = start.filter(|_| stripe_offset < self.end) else {
                self.next = None;
                return;
            };
            self.next = nearest(&self.selectors, start, block_bytes).and_then(|offset| {
                match striping.block_at(offset) - block {
                    0 => {
                        self.found.push(stripe_offset);
                        block.checked_add(stripes)
                    }
                    // The first block of this stripe that is not before the selected byte.
                    behind => block.checked_add(behind.div_ceil(stripes) * stripes),
                }
            });
        }
    }

    /// Lists the blocks found, in the order in which they will be moved.
    fn list(&mut self) {
        if self.presort {
            let home = self.part.stripe.home;
            let disk = self.node.disks.of(home);
            self.found.sort_by_cached_key(|&offset| disk.position(home.object, offset));
        }
        self.listed = mem::take(&mut self.found).into_iter();
    }
}

/// A block of which any member has selected bytes.
struct SelectedBlock {
    parts: SelectedParts,
    /// Offset in bytes of the block within its stripe.
    stripe_offset: u64,
}

impl<M: Machine> BlockParts<M> for SelectedBlock {
    fn stripe_offset(&self) -> u64 {
        self.stripe_offset
    }

    async fn runs(&self) -> Result<Vec<Range<u64>>, Box<Failure>> {
        let runs = self.parts.runs().await;
        runs.map_err(|Overlap { member }| {
            Failure::invalid(format!("member {member} of the group selects bytes twice")).into()
        })
    }

    async fn put(&self, exchange: &Rc<Exchange<M>>, buffer: &Buf) -> FsResult<()> {
        self.parts.put(exchange, buffer).await
    }

    async fn get(blocks: &[&Self], exchange: &Exchange<M>, buffers: &mut [Buf]) -> FsResult<()> {
        let blocks: Vec<_> = blocks.iter().map(|block| &block.parts).collect();
        SelectedParts::get(&blocks, exchange, buffers).await
    }
}
