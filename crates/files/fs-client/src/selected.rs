//! Reads and writes a selection of a file, in closed form: alone, or together with the members of a group or a team.
//!
//! Each member sends its selection to each I/O node that has a stripe, in one message if a header can hold it. So an
//! I/O node recognises a complete selection, also after a restart. A member that is alone enters no barrier: its
//! selection is part of the request to move it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::mem;

use layout::{Selection, SelectionError};
use machine::{Machine, Memory, Message, NodeId, Payload, Work};
use postcard::ser_flavors::Size;

use super::file::{joint_outcome, run_of};
use super::group_operation::{BarrierMembers, BarrierResult, CommonOperation, Moved, attempts, moved_by};
use super::team::TeamTurn;
use super::{File, Group};
use crate::Features;
use crate::endpoint::Mailbox;
use crate::error::{Error, Result};
use crate::protocol::{Direction, MemoryId, Request, Selected, SelectedPart, Selecting, Selectors};
use crate::settings::CollectiveMethod;

/// Settings of the access to a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectedSettings {
    /// Method, which determines the nodes that move the data. In two phases the members of a group or a team do, which
    /// must then be able to reach each other; a member that is alone does not use two phases.
    pub method: CollectiveMethod,
    /// True if the pieces of several blocks for one member are sent together (gather/scatter).
    pub queued: bool,
    /// True if a write flushes its data to stable storage before it completes, instead of only sending them to the
    /// disks.
    pub to_media: bool,
}

impl Default for SelectedSettings {
    /// Returns disk-directed settings: each disk in the order of physical positions, pieces of several blocks for one
    /// member sent together, and no flush of written data.
    fn default() -> Self {
        let method = CollectiveMethod::DiskDirected { presort: true };
        SelectedSettings { method, queued: true, to_media: false }
    }
}

/// Participants in the access to a selection.
pub enum Participants<'a, M: Machine> {
    /// Only this node.
    Alone,
    /// All members of a group.
    Group(&'a Group),
    /// All members of a team, in this turn.
    Team(&'a TeamTurn<'a, M>),
}

impl<M: Machine> Clone for Participants<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Machine> Copy for Participants<'_, M> {}

/// A part of a selection, short enough for one message, and its offset in memory in bytes.
struct Part {
    at: u64,
    selection: Selection,
}

/// Limit in bytes of the rest of a header, without the names of stripes.
const OTHER_BYTES: usize = 512;

/// Limit in bytes of an encoded stripe name.
const STRIPE_BYTES: usize = 5;

/// Minimum size in bytes of a part, even with very many stripes.
const PART_BYTES_MIN: usize = 4096;

/// An operation, as this member sees it.
pub(super) struct SelectedOperation<'a> {
    pub(super) direction: Direction,
    pub(super) selection: &'a Selection,
    pub(super) memory: &'a Memory,
    pub(super) settings: SelectedSettings,
    /// The lease of the locks under which a single member writes, if any. A collective write ignores locks.
    pub(super) lease: Option<u64>,
}

impl<'a> SelectedOperation<'a> {
    /// Returns a read into `memory`.
    pub(super) fn read(selection: &'a Selection, memory: &'a Memory, settings: SelectedSettings) -> Self {
        SelectedOperation { direction: Direction::Read, selection, memory, settings, lease: None }
    }

    /// Returns a write from `memory`, without locks.
    pub(super) fn write(selection: &'a Selection, memory: &'a Memory, settings: SelectedSettings) -> Self {
        SelectedOperation { direction: Direction::Write, selection, memory, settings, lease: None }
    }
}

impl<M: Machine> File<M> {
    /// Reads the selection into `memory` together with `company`. The selected bytes are packed in file order. The
    /// memory must be zeroed, because it is left untouched where the file has no bytes.
    ///
    /// # Errors
    /// Fails if the memory is too small or not all bytes can be read; in company also if another member fails.
    pub async fn read_selected(
        &self,
        company: Participants<'_, M>,
        selection: &Selection,
        memory: &Memory,
        settings: SelectedSettings,
    ) -> Result<Moved> {
        let operation = SelectedOperation::read(selection, memory, settings);
        self.move_selected(company, &operation, Ok(()), async |_| Ok(Vec::new())).await
    }

    /// Writes the selection from `memory` together with `company`. Unselected bytes do not change. A byte selected by
    /// several members gets the value of one of them.
    ///
    /// # Errors
    /// Fails as [`read_selected`](Self::read_selected) does.
    pub async fn write_selected(
        &self,
        company: Participants<'_, M>,
        selection: &Selection,
        memory: &Memory,
        settings: SelectedSettings,
    ) -> Result<Moved> {
        let operation = SelectedOperation::write(selection, memory, settings);
        let moved = self.move_selected(company, &operation, Ok(()), async |_| Ok(Vec::new())).await?;
        self.note_end(selection.end());
        Ok(moved)
    }

    /// Moves the selections of all members, or fails if this member's `fits` is an error. After the transfer, and
    /// before the others know of it, the first member calls `then` with the end of all selections; the result of `then`
    /// is sent to all members.
    pub(super) async fn move_selected(
        &self,
        company: Participants<'_, M>,
        operation: &SelectedOperation<'_>,
        fits: Result<()>,
        then: impl AsyncFn(u64) -> Result<Vec<u8>>,
    ) -> Result<Moved> {
        let name = match operation.direction {
            Direction::Read => "selected read",
            Direction::Write => "selected write",
        };
        let about = || [("file", self.id().0), ("bytes", operation.selection.bytes())];
        let _span = self.notes().span(name, about);
        let method = operation.settings.method;
        match (method, company) {
            (CollectiveMethod::TwoPhase, Participants::Group(group)) => {
                return self.move_selected_in_two_phases(group, operation, fits, then).await;
            }
            (CollectiveMethod::TwoPhase, Participants::Team(turn)) if !turn.is_alone() => {
                return self.move_selected_in_two_phases(turn, operation, fits, then).await;
            }
            _ => {}
        }
        let parts = fits.and_then(|()| self.parts_of(operation));
        match company {
            Participants::Group(group) => self.move_with(group, operation, parts, then).await,
            Participants::Team(turn) if !turn.is_alone() => {
                self.move_with(turn, operation, parts, then).await
            }
            Participants::Team(_) | Participants::Alone => {
                self.move_alone(operation, parts?).await?;
                let message = then(operation.selection.end()).await?;
                Ok(Moved { message, ..Moved::default() })
            }
        }
    }

    /// Fails if the memory is too small for the selection.
    pub(super) fn check_selection(&self, selection: &Selection, memory: &Memory) -> Result<()> {
        let (selected, memory) = (selection.bytes(), memory.len());
        if selected <= memory {
            return Ok(());
        }
        let why = format!("{}: {selected} bytes are selected for a memory of {memory}", self.name());
        Err(Error::Invalid(why).into())
    }

    /// Splits the selection into parts that each fit in a header.
    fn parts_of(&self, operation: &SelectedOperation<'_>) -> Result<Vec<Part>> {
        let SelectedOperation { selection, memory, .. } = *operation;
        self.check_selection(selection, memory)?;
        let invalid = |why: String| Error::Invalid(format!("{}: {why}", self.name()));
        let stripes = self.striping().stripe_count() as usize;
        let rest = Message::HEADER_BYTES_MAX.saturating_sub(OTHER_BYTES + STRIPE_BYTES * stripes);
        let mut parts = Vec::new();
        cut(0, selection.clone(), rest.max(PART_BYTES_MIN), &mut parts)
            .map_err(|why| invalid(why.to_string()))?;
        Ok(parts)
    }

    async fn move_with(
        &self,
        gathering: &impl BarrierMembers<M>,
        operation: &SelectedOperation<'_>,
        parts: Result<Vec<Part>>,
        then: impl AsyncFn(u64) -> Result<Vec<u8>>,
    ) -> Result<Moved> {
        let (parts, fits) = match parts {
            Ok(parts) => (parts, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        let SelectedOperation { direction, selection, memory, settings, .. } = *operation;
        let accepted = RefCell::new(Vec::new());
        let attempt = async |fits: &Result<()>| {
            let send = async |id| {
                fits.clone()?;
                let accepted_by = self.send_selection(direction, id, &parts).await?;
                accepted.replace(accepted_by);
                Ok(selection.end())
            };
            let ask = async |memory, entered: BarrierResult| {
                let members = entered.members.iter().map(|member| member.0).collect();
                let selectors = Selectors::Members(members);
                let request = self.request_to_move(direction, settings, memory, selectors);
                let moved = moved_by(self.answers_of_homes(|_| Some(request.clone())).await)?;
                then(entered.greatest()?).await.map(|message| Moved { message, ..moved })
            };
            let operation = CommonOperation { memory, span_name: "tell selection", send, ask };
            self.client.attempt(gathering, operation).await
        };
        let reopen = || self.refresh();
        let moved = match attempts(attempt, reopen, fits).await {
            Ok(moved) => moved,
            Err(error) => {
                machine::sometimes!("a member withdraws its selection");
                self.withdraw_selection(MemoryId::Collective(gathering.next())).await;
                return Err(error);
            }
        };
        if direction == Direction::Write && !settings.to_media {
            for (node, run, disconnects, stripes) in accepted.take() {
                self.note_accepted(node, run, disconnects, &stripes);
            }
        }
        Ok(moved)
    }

    /// Opens the stripes that may have selected bytes, and for a write creates missing ones. Returns the existing
    /// stripes of each part.
    async fn attach_selected(&self, direction: Direction, parts: &[Part]) -> Result<Vec<Vec<u32>>> {
        // Another client may have created them since.
        self.attachments().forget_absent();
        let mut touched = Vec::new();
        for part in parts {
            let span = part.selection.span();
            self.attach_extent(span, direction == Direction::Write).await?;
            touched.push(self.stripes_of(span).filter(|&stripe| !self.is_absent(stripe)).collect());
        }
        Ok(touched)
    }

    /// Sends each I/O node that has a stripe its part of the selection, even if empty, so that the node knows that
    /// nothing more follows. Returns each node that accepted it, its incarnation,
    /// its disconnect count when the request was sent, and the stripes.
    async fn send_selection(
        &self,
        direction: Direction,
        memory: MemoryId,
        parts: &[Part],
    ) -> Result<Vec<(NodeId, u64, u64, Vec<u32>)>> {
        let touched = self.attach_selected(direction, parts).await?;
        let endpoint = &self.client.inner.endpoint;
        endpoint.machine().compute(Work::DealEntries { entries: parts.len() as u64 }).await;
        let (mailbox, mut asked) = (Mailbox::new(), Vec::new());
        for node in self.all_homes() {
            let mut here: Vec<SelectedPart> = parts
                .iter()
                .zip(&touched)
                .filter_map(|(part, touched)| self.part_at(node, part, touched))
                .collect();
            if here.is_empty() {
                here.push(nothing());
            }
            let count = here.len() as u32;
            for part in here {
                let (stripes, file) = (part.stripes.clone(), self.id());
                let request = Request::Select(Box::new(Selecting { memory, file, parts: count, part }));
                let (token, disconnects) = (asked.len(), self.client.disconnects_of(node));
                asked.push((node, disconnects, stripes));
                endpoint.begin(node, request, Payload::empty(), &mailbox, token).await;
            }
        }
        let (mut accepted_by, mut outcome) = (Vec::new(), Ok(()));
        for _ in 0..asked.len() {
            let (token, answer) = mailbox.next().await;
            let (node, disconnects, ref mut stripes) = asked[token];
            let stripes = mem::take(stripes);
            match answer.and_then(|(reply, _)| run_of(node, &reply)) {
                Ok(run) => accepted_by.push((node, run, disconnects, stripes)),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome.map(|()| accepted_by)
    }

    /// Makes all I/O nodes discard this member's selection of a failed operation, of which nothing more will be moved.
    /// An I/O node keeps only the latest selection of each member, so an empty one replaces it. The client does not
    /// wait for answers.
    async fn withdraw_selection(&self, memory: MemoryId) {
        for node in self.all_homes() {
            let selecting = Selecting { memory, file: self.id(), parts: 1, part: nothing() };
            let request = Request::Select(Box::new(selecting));
            self.client.inner.endpoint.begin(node, request, Payload::empty(), &Mailbox::new(), 0).await;
        }
    }

    /// Returns the I/O nodes that have a stripe.
    fn all_homes(&self) -> BTreeSet<NodeId> {
        (0..self.striping().stripe_count()).map(|stripe| self.home_of(stripe)).collect()
    }

    /// Returns an I/O node's share of a part, or `None` if the part touches none of its stripes.
    fn part_at(&self, node: NodeId, part: &Part, touched: &[u32]) -> Option<SelectedPart> {
        let stripes: Vec<u32> =
            touched.iter().copied().filter(|&stripe| self.home_of(stripe) == node).collect();
        let Part { at, selection } = part;
        (!stripes.is_empty()).then(|| SelectedPart { at: *at, selection: selection.clone(), stripes })
    }

    /// Returns the request to move the selections of `selectors`.
    fn request_to_move(
        &self,
        direction: Direction,
        settings: SelectedSettings,
        memory: MemoryId,
        selectors: Selectors,
    ) -> Request {
        let SelectedSettings { method, queued, to_media } = settings;
        let presort = method == CollectiveMethod::DiskDirected { presort: true };
        let file = self.id();
        Request::MoveSelected(Box::new(Selected {
            file,
            direction,
            presort,
            queued,
            to_media,
            memory,
            selectors,
        }))
    }

    /// Moves the selection of this node alone, without a barrier.
    pub(super) async fn move_own(&self, operation: &SelectedOperation<'_>) -> Result<()> {
        self.move_alone(operation, self.parts_of(operation)?).await
    }

    /// Moves the selection of this node alone, one part after the other. Retries each part once if an I/O node
    /// restarted.
    async fn move_alone(&self, operation: &SelectedOperation<'_>, parts: Vec<Part>) -> Result<()> {
        let SelectedOperation { direction, memory, settings, lease, .. } = *operation;
        for part in parts {
            let parts = [part];
            self.retry_once(async || {
                let touched = self.attach_selected(direction, &parts).await?.remove(0);
                let opened = self.client.inner.open_for_request(memory);
                let rejecting = match lease {
                    Some(_) => self.nodes_that_can(Features::LOCKED_SELECTIONS, &touched).await,
                    None => BTreeSet::new(),
                };
                let request = |node| {
                    let part = self.part_at(node, &parts[0], &touched)?;
                    let selectors = match lease.filter(|_| rejecting.contains(&node)) {
                        Some(lease) => Selectors::Locked { part, lease },
                        None => Selectors::Asker(part),
                    };
                    Some(self.request_to_move(direction, settings, opened.id, selectors))
                };
                let runs = self.runs_of_homes(request).await;
                for (node, run) in &runs {
                    if let Ok((run, disconnects)) = run
                        && direction == Direction::Write
                        && !settings.to_media
                    {
                        self.note_accepted(*node, *run, *disconnects, &touched);
                    }
                }
                joint_outcome(runs.into_iter().map(|(_, run)| run))
            })
            .await?;
        }
        Ok(())
    }
}

/// Returns an empty selection, for an I/O node of which a member selects nothing.
fn nothing() -> SelectedPart {
    SelectedPart { at: 0, selection: Selection::empty(), stripes: Vec::new() }
}

/// Cuts a selection into parts of at most `most` bytes of a header each; `at` is its offset in memory.
fn cut(
    at: u64,
    selection: Selection,
    most: usize,
    parts: &mut Vec<Part>,
) -> std::result::Result<(), SelectionError> {
    if selection.is_empty() {
        return Ok(());
    }
    // A cheap bound avoids encoding huge selections: each node of a selection takes at least two bytes.
    if selection.nodes() <= most as u64 / 2 && header_bytes(&selection) <= most {
        parts.push(Part { at, selection });
        return Ok(());
    }
    let half = selection.bytes() / 2;
    cut(at, selection.slice(0, half)?, most, parts)?;
    cut(at + half, selection.slice(half, selection.bytes() - half)?, most, parts)
}

/// Returns the encoded size of a selection in bytes.
fn header_bytes(selection: &Selection) -> usize {
    postcard::serialize_with_flavor(selection, Size::default()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use layout::Extent;

    use super::*;
    use crate::protocol::{CollectiveId, FileId, Frame};

    /// Returns extents of odd lengths at odd distances, all different.
    fn irregular(count: u64) -> Selection {
        let extents = (0..count).scan(1 << 40, |end, number| {
            let extent = Extent::new(*end + 1 + number * 7919 % 977, 1 + number * 104_729 % 991);
            *end = extent.end();
            Some(extent)
        });
        Selection::list(&extents.collect::<Vec<_>>()).expect("in order")
    }

    #[test]
    fn a_selection_too_long_for_a_header_is_sent_in_parts() {
        let (regular, most) = (Selection::vector(Extent::new(5, 8), 1 << 40, 32).expect("a vector"), 60_000);
        for (selection, count) in [(regular, 1), (Selection::empty(), 0), (irregular(100_000), 8)] {
            let mut parts = Vec::new();
            cut(0, selection.clone(), most, &mut parts).expect("cut");
            assert_eq!(parts.len(), count);
            let mut at = 0;
            for part in &parts {
                assert_eq!(part.at, at);
                at += part.selection.bytes();
            }
            assert_eq!(at, selection.bytes());
            let all =
                parts.iter().flat_map(|part| part.selection.chunks().map(move |chunk| (part.at, chunk)));
            let all = all.map(|(at, chunk)| (chunk.file_offset, at + chunk.memory_offset));
            let places = selection.chunks().map(|chunk| (chunk.file_offset, chunk.memory_offset));
            // A cut may be within a chunk.
            let (all, mut places) = (all.take(200_000).collect::<Vec<_>>(), places.take(100_000));
            assert!(places.all(|place| all.binary_search(&place).is_ok()));
        }
    }

    #[test]
    fn the_longest_part_fits_into_a_header() {
        let stripes = 4000;
        let most = Message::HEADER_BYTES_MAX - OTHER_BYTES - STRIPE_BYTES * stripes;
        let mut parts = Vec::new();
        cut(1 << 60, irregular(50_000), most, &mut parts).expect("cut");
        let memory = MemoryId::Collective(CollectiveId { group: u64::MAX, operation: u32::MAX });
        for Part { at, selection } in parts {
            let part = SelectedPart { at, selection, stripes: vec![u32::MAX; stripes] };
            let selecting = Selecting { memory, file: FileId(u64::MAX), parts: u32::MAX, part };
            let frame = Frame::Request(u64::MAX, Request::Select(Box::new(selecting)));
            assert!(frame.encode().len() <= Message::HEADER_BYTES_MAX);
        }
    }
}
