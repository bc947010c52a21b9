//! Reading and writing what is selected of a file, in closed form: alone, or with the others of a group or a team.
//!
//! Each member tells each I/O node that has a stripe what it has selected, in one message if a header can hold it; so
//! an I/O node knows whether it has been told everything, also after it was started anew. A member that is alone meets
//! nobody: its selection goes with the request to move it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::mem;

use layout::{Selection, SelectionError};
use machine::{Machine, Memory, Message, NodeId, Payload, Work};
use postcard::ser_flavors::Size;

use super::file::run_of;
use super::team::TeamTurn;
use super::together::{CommonOperation, Gathering, Met, Moved, attempts, moved_by};
use super::{File, Group};
use crate::endpoint::Mailbox;
use crate::error::{Error, Result};
use crate::protocol::{Direction, MemoryId, Request, Selected, SelectedPart, Selecting, Selectors};
use crate::settings::CollectiveMethod;

/// How what is selected is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectedSettings {
    /// Who moves the data. In two phases the members of a group or a team do, which must then be able to reach each
    /// other; a member that is alone does not use two phases.
    pub method: CollectiveMethod,
    /// Whether what several blocks have for a member travels together (gather/scatter).
    pub queued: bool,
    /// Whether what is written is on the media when that is done, not only at the disks.
    pub to_media: bool,
}

impl Default for SelectedSettings {
    /// Disk-directed, each disk in the order of physical positions; what several blocks have for a member travels
    /// together; what is written is not flushed.
    fn default() -> Self {
        let method = CollectiveMethod::DiskDirected { presort: true };
        SelectedSettings { method, queued: true, to_media: false }
    }
}

/// With whom a node reads or writes what it has selected.
pub enum Company<'a, M: Machine> {
    /// Alone.
    Alone,
    /// With a group.
    Group(&'a Group),
    /// With a team, at its turn.
    Team(&'a TeamTurn<'a, M>),
}

impl<M: Machine> Clone for Company<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Machine> Copy for Company<'_, M> {}

/// A part of what is selected, as short as a message, and where in memory it begins.
struct Part {
    at: u64,
    selection: Selection,
}

/// The room that the rest of a header takes at most, but for the names of stripes.
const OTHER_BYTES: usize = 512;

/// The most bytes that the name of a stripe takes.
const STRIPE_BYTES: usize = 5;

/// The least room for a part, however many stripes there are.
const PART_BYTES_MIN: usize = 4096;

/// An operation, as this member sees it.
pub(super) struct SelectedOperation<'a> {
    pub(super) direction: Direction,
    pub(super) selection: &'a Selection,
    pub(super) memory: &'a Memory,
    pub(super) settings: SelectedSettings,
}

impl<M: Machine> File<M> {
    /// Reads what is selected into `memory`, one byte right after the other in the order of the file, together with
    /// `company`. The memory is to be zeros: where the file has no bytes it is left as it is.
    ///
    /// # Errors
    /// If the memory is too small, or not all of it can be read; in company also what fails for another member.
    pub async fn read_selected(
        &self,
        company: Company<'_, M>,
        selection: &Selection,
        memory: &Memory,
        settings: SelectedSettings,
    ) -> Result<Moved> {
        let operation = SelectedOperation { direction: Direction::Read, selection, memory, settings };
        self.move_selected(company, &operation, Ok(()), async |_| Ok(Vec::new())).await
    }

    /// Writes what is selected from `memory`, together with `company`. What no member has selected does not change;
    /// where several members have selected the same byte, it is then some member's.
    ///
    /// # Errors
    /// As those of [`read_selected`](Self::read_selected).
    pub async fn write_selected(
        &self,
        company: Company<'_, M>,
        selection: &Selection,
        memory: &Memory,
        settings: SelectedSettings,
    ) -> Result<Moved> {
        let operation = SelectedOperation { direction: Direction::Write, selection, memory, settings };
        let moved = self.move_selected(company, &operation, Ok(()), async |_| Ok(Vec::new())).await?;
        self.note_end(selection.end());
        Ok(moved)
    }

    /// Moves what all have selected, unless `fits` says that this member cannot. When it has been moved, and before the
    /// others know, the first member calls `then` with the end of all that is selected; what `then` gives is told to
    /// all members.
    pub(super) async fn move_selected(
        &self,
        company: Company<'_, M>,
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
            (CollectiveMethod::TwoPhase, Company::Group(group)) => {
                return self.move_selected_in_two_phases(group, operation, fits, then).await;
            }
            (CollectiveMethod::TwoPhase, Company::Team(turn)) if !turn.is_alone() => {
                return self.move_selected_in_two_phases(turn, operation, fits, then).await;
            }
            _ => {}
        }
        let parts = fits.and_then(|()| self.parts_of(operation));
        match company {
            Company::Group(group) => self.move_with(group, operation, parts, then).await,
            Company::Team(turn) if !turn.is_alone() => self.move_with(turn, operation, parts, then).await,
            Company::Team(_) | Company::Alone => {
                self.move_alone(operation, parts?).await?;
                let told = then(operation.selection.end()).await?;
                Ok(Moved { told, ..Moved::default() })
            }
        }
    }

    /// Refuses a memory that has no room for what is selected.
    pub(super) fn check_selection(&self, selection: &Selection, memory: &Memory) -> Result<()> {
        let (selected, memory) = (selection.bytes(), memory.len());
        if selected <= memory {
            return Ok(());
        }
        let why = format!("{}: {selected} bytes are selected for a memory of {memory}", self.name());
        Err(Error::Invalid(why).into())
    }

    /// What is selected, in parts that each have room in a header.
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
        gathering: &impl Gathering<M>,
        operation: &SelectedOperation<'_>,
        parts: Result<Vec<Part>>,
        then: impl AsyncFn(u64) -> Result<Vec<u8>>,
    ) -> Result<Moved> {
        let (parts, fits) = match parts {
            Ok(parts) => (parts, Ok(())),
            Err(error) => (Vec::new(), Err(error)),
        };
        let SelectedOperation { direction, selection, memory, settings } = *operation;
        let (accepted, disconnects) = (RefCell::new(Vec::new()), self.client.disconnects());
        let attempt = async |fits: &Result<()>| {
            let tell = async |id| {
                fits.clone()?;
                let told = self.tell_selection(direction, id, &parts).await?;
                accepted.replace(told);
                Ok(selection.end())
            };
            let ask = async |memory, met: Met| {
                let members = met.members.iter().map(|member| member.0).collect();
                let selectors = Selectors::Members(members);
                let request = self.request_to_move(direction, settings, memory, selectors);
                let moved = moved_by(self.answers_of_homes(|_| Some(request.clone())).await)?;
                then(met.greatest()?).await.map(|told| Moved { told, ..moved })
            };
            let operation = CommonOperation { memory, telling: "tell selection", tell, ask };
            self.client.attempt(gathering, operation).await
        };
        let reopen = || self.refresh();
        let moved = match attempts(attempt, reopen, fits).await {
            Ok(moved) => moved,
            Err(error) => {
                self.withdraw_selection(MemoryId::Collective(gathering.next())).await;
                return Err(error);
            }
        };
        if direction == Direction::Write && !settings.to_media {
            for (node, run, stripes) in accepted.take() {
                self.note_accepted(node, run, disconnects, &stripes);
            }
        }
        Ok(moved)
    }

    /// Opens the stripes that may have selected bytes, and makes the missing ones for a write; gives for each part the
    /// stripes that exist.
    async fn attach_selected(&self, direction: Direction, parts: &[Part]) -> Result<Vec<Vec<u32>>> {
        // Another client may have made them meanwhile.
        self.attachments().forget_absent();
        let mut touched = Vec::new();
        for part in parts {
            let span = part.selection.span();
            self.attach_extent(span, direction == Direction::Write).await?;
            touched.push(self.stripes_of(span).filter(|&stripe| !self.is_absent(stripe)).collect());
        }
        Ok(touched)
    }

    /// Tells each I/O node that has a stripe what is selected: also nothing, so that it knows that this is all. Which
    /// run of each has heard it, and of which stripes.
    async fn tell_selection(
        &self,
        direction: Direction,
        memory: MemoryId,
        parts: &[Part],
    ) -> Result<Vec<(NodeId, u64, Vec<u32>)>> {
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
                endpoint.begin(node, request, Payload::empty(), &mailbox, asked.len()).await;
                asked.push((node, stripes));
            }
        }
        let (mut told, mut outcome) = (Vec::new(), Ok(()));
        for _ in 0..asked.len() {
            let (token, answer) = mailbox.next().await;
            let (node, stripes) = (asked[token].0, mem::take(&mut asked[token].1));
            match answer.and_then(|(reply, _)| run_of(node, &reply)) {
                Ok(run) => told.push((node, run, stripes)),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome.map(|()| told)
    }

    /// Has all I/O nodes forget what this member has selected for an operation that has failed, in which no more of it
    /// is going to be moved: of what a member of a group has told they keep the latest, which is nothing now. Nobody
    /// waits for their answers.
    async fn withdraw_selection(&self, memory: MemoryId) {
        for node in self.all_homes() {
            let selecting = Selecting { memory, file: self.id(), parts: 1, part: nothing() };
            let request = Request::Select(Box::new(selecting));
            self.client.inner.endpoint.begin(node, request, Payload::empty(), &Mailbox::new(), 0).await;
        }
    }

    /// The I/O nodes that have a stripe.
    fn all_homes(&self) -> BTreeSet<NodeId> {
        (0..self.striping().stripe_count()).map(|stripe| self.home_of(stripe)).collect()
    }

    /// What an I/O node is told of a part, if it has any of the stripes that this touches.
    fn part_at(&self, node: NodeId, part: &Part, touched: &[u32]) -> Option<SelectedPart> {
        let stripes: Vec<u32> =
            touched.iter().copied().filter(|&stripe| self.home_of(stripe) == node).collect();
        let Part { at, selection } = part;
        (!stripes.is_empty()).then(|| SelectedPart { at: *at, selection: selection.clone(), stripes })
    }

    /// The request to move what `selectors` have selected.
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

    /// Moves what this node alone has selected, without a meeting.
    pub(super) async fn move_own(&self, operation: &SelectedOperation<'_>) -> Result<()> {
        self.move_alone(operation, self.parts_of(operation)?).await
    }

    /// Moves what this node alone has selected, one part after the other; each once more if an I/O node was started
    /// anew.
    async fn move_alone(&self, operation: &SelectedOperation<'_>, parts: Vec<Part>) -> Result<()> {
        let SelectedOperation { direction, memory, settings, .. } = *operation;
        for part in parts {
            let parts = [part];
            self.once_more(async || {
                let touched = self.attach_selected(direction, &parts).await?.remove(0);
                let (opened, disconnects) =
                    (self.client.inner.open_for_request(memory), self.client.disconnects());
                let request = |node| {
                    let selectors = Selectors::Asker(self.part_at(node, &parts[0], &touched)?);
                    Some(self.request_to_move(direction, settings, opened.id, selectors))
                };
                let mut outcome = Ok(());
                for (node, answer) in self.answers_of_homes(request).await {
                    match answer.and_then(|(reply, _)| run_of(node, &reply)) {
                        Ok(run) if direction == Direction::Write && !settings.to_media => {
                            self.note_accepted(node, run, disconnects, &touched);
                        }
                        answer => outcome = outcome.and(answer.map(drop)),
                    }
                }
                outcome
            })
            .await?;
        }
        Ok(())
    }
}

/// What an I/O node is told of which a member has selected nothing.
fn nothing() -> SelectedPart {
    SelectedPart { at: 0, selection: Selection::empty(), stripes: Vec::new() }
}

/// Cuts a selection into parts that take at most `most` bytes of a header each; `at` is where it begins in memory.
fn cut(
    at: u64,
    selection: Selection,
    most: usize,
    parts: &mut Vec<Part>,
) -> std::result::Result<(), SelectionError> {
    if selection.is_empty() {
        return Ok(());
    }
    // A node takes two bytes at least.
    if selection.nodes() <= most as u64 / 2 && header_bytes(&selection) <= most {
        parts.push(Part { at, selection });
        return Ok(());
    }
    let half = selection.bytes() / 2;
    cut(at, selection.slice(0, half)?, most, parts)?;
    cut(at + half, selection.slice(half, selection.bytes() - half)?, most, parts)
}

/// How many bytes of a header a selection takes.
fn header_bytes(selection: &Selection) -> usize {
    postcard::serialize_with_flavor(selection, Size::default()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use layout::Extent;

    use super::*;
    use crate::protocol::{FileId, Frame, MeetingId};

    /// Extents of odd lengths at odd distances: none of them is like another.
    fn irregular(count: u64) -> Selection {
        let extents = (0..count).scan(1 << 40, |end, number| {
            let extent = Extent::new(*end + 1 + number * 7919 % 977, 1 + number * 104_729 % 991);
            *end = extent.end();
            Some(extent)
        });
        Selection::list(&extents.collect::<Vec<_>>()).expect("in order")
    }

    #[test]
    fn what_is_too_long_for_a_header_is_told_in_parts() {
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
    fn the_longest_part_has_its_place_in_a_header() {
        let stripes = 4000;
        let most = Message::HEADER_BYTES_MAX - OTHER_BYTES - STRIPE_BYTES * stripes;
        let mut parts = Vec::new();
        cut(1 << 60, irregular(50_000), most, &mut parts).expect("cut");
        let memory = MemoryId::Collective(MeetingId { group: u64::MAX, operation: u32::MAX });
        for Part { at, selection } in parts {
            let part = SelectedPart { at, selection, stripes: vec![u32::MAX; stripes] };
            let selecting = Selecting { memory, file: FileId(u64::MAX), parts: u32::MAX, part };
            let frame = Frame::Request(u64::MAX, Request::Select(Box::new(selecting)));
            assert!(frame.encode().len() <= Message::HEADER_BYTES_MAX);
        }
    }
}
