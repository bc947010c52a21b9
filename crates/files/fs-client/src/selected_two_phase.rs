//! Two-phase I/O of the selections of a group's or a team's members.
//!
//! ```text
//!  all      each member opens its memory and its selection to the others | barrier
//!  read     each member reads the selected bytes of its part, and puts them where they belong
//!  write    each member gets the selected bytes of its part, and writes them
//! ```
//!
//! The extent from the first to the last selected byte is divided among the members in whole blocks, so that no two
//! members write the same block. Each member processes its part in stages that fit in memory. It reads and writes only
//! bytes that some member has selected. So holes cost nothing and are not touched, and memory use does not depend on
//! the length of the extent.

use std::rc::Rc;
use std::slice;

use layout::{Extent, SELECTION_NODES_MAX, Selection, SelectionError};
use machine::{BufferPool, Machine, Memory, Message, NodeId, Payload, Work};

use super::group_operation::{ExchangeMembers, MoveTimes, Moved};
use super::selected::SelectedOperation;
use super::{File, unexpected};
use crate::error::{Error, Result};
use crate::exchange::{Exchange, ExchangeGroup, Exchanged, Own};
use crate::protocol::{Direction, MemoryId, Reply, Request};
use crate::selected_parts::{Overlap, SelectedParts, Selector, nearest};
use crate::settings::CollectiveMethod;

/// Limit in bytes of a stage of a member's part in memory, unless a block is longer.
const STAGED_BYTES_MAX: u64 = 16 << 20;

/// Limit in bytes of a member's encoded selection.
const SELECTION_BYTES_MAX: u64 = 64 << 20;

/// Size in bytes of the length before the encoded selection.
const LENGTH_BYTES: u64 = 8;

impl<M: Machine> File<M> {
    /// Moves the selections of all members in two phases, or fails if this member's `fits` is an error. After the
    /// transfer the first member calls `then` with the end of all selections; the result of `then` is sent to all
    /// members.
    pub(super) async fn move_selected_in_two_phases(
        &self,
        company: &impl ExchangeMembers<M>,
        operation: &SelectedOperation<'_>,
        fits: Result<()>,
        then: impl AsyncFn(u64) -> Result<Vec<u8>>,
    ) -> Result<Moved> {
        let SelectedOperation { direction, selection, memory, settings, .. } = *operation;
        let inner = &self.client.inner;
        let machine = inner.endpoint.machine();
        let [id, published] = company.next_two().map(MemoryId::Collective);
        let fits =
            fits.and_then(|()| self.check_selection(selection, memory)).and_then(|()| encoded(selection));
        let (fits, encoded) = fits.map_or_else(|error| (Err(error), Vec::new()), |encoded| (Ok(()), encoded));
        let _opened = (inner.open_memory(id, memory), inner.open_memory(published, &Memory::real(encoded)));
        let begun = machine.now();
        let entered = company.enter_barrier_after(&self.client, fits).await;
        let all_entered = machine.now();
        let outcome = match entered {
            Ok(()) => {
                let selected = self.selected_by_all(company, published, selection).await;
                let end = selected.as_ref().map_or(0, |selectors| end_of(selectors));
                let moved = match selected {
                    Ok(selectors) => self.exchange_selected(company, operation, id, selectors).await,
                    Err(error) => Err(error),
                };
                let settled = match settings.to_media {
                    true => self.settle(direction, company, moved).await,
                    false => company.enter_barrier_after(&self.client, moved).await,
                };
                match settled {
                    Ok(()) if company.rank() == 0 => then(end).await,
                    settled => settled.map(|()| Vec::new()),
                }
            }
            Err(error) => Err(error),
        };
        let entered =
            company.enter_barrier(&self.client, outcome.as_ref().cloned().map_err(|error| &**error)).await;
        // Prefer the local error: it has more detail than the failure that the barrier returns.
        let message = outcome.and(entered)?.first_contribution();
        let (barrier, moving) = (all_entered.since(begun), machine.now().since(all_entered));
        Ok(Moved {
            times: MoveTimes { barrier, moving, ..MoveTimes::default() },
            message,
            ..Moved::default()
        })
    }

    /// Returns the nonempty selections of all members, in their order.
    async fn selected_by_all(
        &self,
        company: &impl ExchangeMembers<M>,
        published: MemoryId,
        own: &Selection,
    ) -> Result<Rc<[Selector]>> {
        let mut selectors = Vec::with_capacity(company.members().len());
        for (member, &node) in (0..).zip(company.members().iter()) {
            let selection = match member as usize == company.rank() {
                true => own.clone(),
                false => self.selected_by(node, published).await?,
            };
            if !selection.is_empty() {
                selectors.push(Selector { member, at: 0, selection });
            }
        }
        Ok(selectors.into())
    }

    /// Fetches the selection of another member.
    async fn selected_by(&self, node: NodeId, published: MemoryId) -> Result<Selection> {
        let refused = |why: String| Error::Protocol { node, why };
        let length = self.read_published(node, published, 0, LENGTH_BYTES).await?;
        let length = length.try_into().map(u64::from_le_bytes).unwrap_or(u64::MAX);
        if length > SELECTION_BYTES_MAX {
            return Err(refused(format!("sends {length} bytes of its selection")).into());
        }
        let mut encoded = Vec::with_capacity(length as usize);
        for at in (0..length).step_by(Message::PAYLOAD_BYTES_MAX as usize) {
            let bytes = Message::PAYLOAD_BYTES_MAX.min(length - at);
            encoded.extend(self.read_published(node, published, LENGTH_BYTES + at, bytes).await?);
        }
        self.client.inner.endpoint.machine().compute(Work::TakeEntries { entries: 1 }).await;
        postcard::from_bytes(&encoded).map_err(|error| refused(format!("its selection: {error}")).into())
    }

    async fn read_published(
        &self,
        node: NodeId,
        memory: MemoryId,
        offset: u64,
        bytes: u64,
    ) -> Result<Vec<u8>> {
        let request = Request::Memget { memory, offset, bytes: bytes as u32 };
        let answer = self.client.inner.endpoint.call(node, request, Payload::empty()).await?;
        let (Reply::Done, data) = answer else { return Err(unexpected(node)) };
        let length = data.len();
        data.to_vec().filter(|_| length == bytes).ok_or_else(|| {
            let why = format!("answered a Memget of {bytes} bytes with {length}");
            Error::Protocol { node, why }.into()
        })
    }

    /// Processes this member's part, stage by stage.
    async fn exchange_selected(
        &self,
        company: &impl ExchangeMembers<M>,
        operation: &SelectedOperation<'_>,
        id: MemoryId,
        selectors: Rc<[Selector]>,
    ) -> Result<()> {
        let block_bytes = self.striping().block_bytes();
        let part = part_of(&selectors, company, block_bytes);
        let _span = self.notes().span("two phases", || [("bytes", part.bytes)]);
        let own =
            Own { memory: operation.memory.clone(), exchange: self.client.inner.settings.two_phase_exchange };
        let group = ExchangeGroup {
            memory: id,
            members: company.members().to_vec(),
            own: Some(own),
            dimensions: 1,
            queue_buffers: operation.settings.queued.then_some(2 * company.members().len() as u64),
            queue_bytes: block_bytes,
        };
        let exchange = Exchange::new(self.client.inner.endpoint.clone(), group);
        let (mut at, mut moved) = (part.offset, Ok(()));
        let next = |at| nearest(&selectors, at, block_bytes).filter(|&found| found < part.end());
        while let (Ok(()), Some(found)) = (&moved, next(at)) {
            let start = found - found % block_bytes;
            let stage = Extent::new(start, STAGED_BYTES_MAX.max(block_bytes)).clip(part.end());
            moved = self.move_stage(&exchange, operation, &selectors, stage).await;
            at = stage.end();
        }
        // Also after a failure: queued messages are still in flight.
        moved.and(exchange.finish().await)
    }

    /// Moves the members' selected bytes of a stage.
    async fn move_stage(
        &self,
        exchange: &Rc<Exchange<M>>,
        operation: &SelectedOperation<'_>,
        selectors: &Rc<[Selector]>,
        stage: Extent,
    ) -> Result<()> {
        let SelectedOperation { direction, memory, settings, .. } = *operation;
        let blocks = blocks_of(stage, self.striping().block_bytes(), selectors);
        let mut runs = Vec::new();
        for block in &blocks {
            let start = block.extent.offset;
            let of_block = block.runs().await.map_err(|Overlap { member }| {
                Error::Invalid(format!("{}: member {member} selects bytes twice", self.name()))
            })?;
            runs.extend(of_block.iter().map(|run| Extent::new(start + run.start, run.end - run.start)));
        }
        let all =
            Selection::list(&runs).map_err(|error| Error::Invalid(format!("{}: {error}", self.name())))?;
        let staged = memory.another(all.bytes());
        // No sorting: no other member sends the I/O nodes requests for these blocks.
        let method = CollectiveMethod::DiskDirected { presort: false };
        let settings = super::SelectedSettings { method, ..settings };
        let own = SelectedOperation { direction, selection: &all, memory: &staged, settings, lease: None };
        let all = Selector { member: 0, at: 0, selection: all.clone() };
        let buffers = BufferPool::new(self.striping().block_bytes());
        if direction == Direction::Read {
            self.move_own(&own).await?;
        }
        for block in &blocks {
            let part = all.part_of(block.extent).expect("somebody has selected some of it");
            let mut buffer = buffers.take(block.extent.bytes).await;
            match direction {
                Direction::Read => {
                    part.scatter(&staged.get(part.memory_offset(), part.bytes()), &mut buffer);
                    block.put(exchange, &buffer).await?;
                }
                Direction::Write => {
                    SelectedParts::get(&[block], exchange, slice::from_mut(&mut buffer)).await?;
                    staged.place(part.memory_offset(), &part.gather(&buffer).0);
                }
            }
        }
        match direction {
            Direction::Read => Ok(()),
            Direction::Write => self.move_own(&own).await,
        }
    }
}

/// Encodes a selection for the other members, preceded by its length in bytes.
fn encoded(selection: &Selection) -> Result<Vec<u8>> {
    if selection.nodes() > SELECTION_NODES_MAX as u64 {
        let many = SelectionError::TooManyNodes { nodes: selection.nodes() as usize };
        return Err(Error::Invalid(many.to_string()).into());
    }
    let mut bytes = vec![0; LENGTH_BYTES as usize];
    bytes = postcard::to_extend(selection, bytes).map_err(|error| Error::Invalid(error.to_string()))?;
    let length = bytes.len() as u64 - LENGTH_BYTES;
    if length > SELECTION_BYTES_MAX {
        let why = format!("the encoded selection has {length} bytes; the limit is {SELECTION_BYTES_MAX}");
        return Err(Error::Invalid(format!("{why}: select fewer ranges at once")).into());
    }
    bytes[..LENGTH_BYTES as usize].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

fn end_of(selectors: &[Selector]) -> u64 {
    selectors.iter().map(|selector| selector.selection.end()).max().unwrap_or(0)
}

/// Returns the part of the file that this member reads or writes for all members: whole blocks, divided about equally.
fn part_of<M: Machine>(
    selectors: &[Selector],
    company: &impl ExchangeMembers<M>,
    block_bytes: u64,
) -> Extent {
    let start = selectors.iter().map(|selector| selector.selection.span().offset).min().unwrap_or(0);
    let (first, end) = (start / block_bytes, end_of(selectors).div_ceil(block_bytes));
    let (blocks, members) = (u128::from(end.saturating_sub(first)), company.members().len() as u128);
    let share = |rank: usize| first + (blocks * rank as u128 / members) as u64;
    let (start, end) = (share(company.rank()), share(company.rank() + 1));
    Extent::new(start * block_bytes, (end - start) * block_bytes)
}

/// Returns the blocks of a stage in which some member has selected bytes.
fn blocks_of(stage: Extent, block_bytes: u64, selectors: &Rc<[Selector]>) -> Vec<SelectedParts> {
    let mut blocks = Vec::new();
    let mut at = stage.offset;
    while let Some(found) = nearest(selectors, at, block_bytes).filter(|&found| found < stage.end()) {
        let extent = Extent::new(found - found % block_bytes, block_bytes);
        blocks.push(SelectedParts { selectors: selectors.clone(), extent });
        at = extent.end();
    }
    blocks
}
