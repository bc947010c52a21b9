//! Replays the calls of a log of format 2: collective calls as collective calls, other calls as independent requests.
//!
//! A collective call is one operation of the members that opened the file. It accesses their selections by the method
//! of the replay. An independent call with one piece is a file request. An independent call with several pieces becomes
//! one request to each I/O node that holds some of the pieces. Through a write cache or a page cache, calls of both
//! kinds transfer each piece separately.

use fs::{CollectiveMethod, Group, Participants, SelectedSettings};
use layout::{Operation, Selection};
use machine::{Machine, NodeId, mix};
use request_log::{LoggedCall, Stretch};

use super::{ReplayAccess, ReplayPart};
use crate::{Error, Member, Outcome, ReplayJob};

/// Maximum number of pieces of all calls together, because each piece is transferred and checked separately.
const PIECES_MAX: u64 = 1 << 25;

/// Returns, for each collective open in the log, the group of its members, if this member takes part.
pub(super) fn groups<M: Machine>(job: &ReplayJob, member: &Member<M>) -> Vec<Option<Group>> {
    let openings = job.log().calls().map_or(&[][..], |calls| &calls.openings);
    let group = |(index, members): (u64, &Vec<usize>)| {
        let rank = members.iter().position(|&node| node == member.group.rank)?;
        let nodes: Vec<NodeId> = members.iter().map(|&node| member.group.members[node]).collect();
        Some(Group::new(mix(member.group.id ^ mix(index + 1)), nodes, rank))
    };
    (0..).zip(openings.iter().map(|opening| &opening.members)).map(group).collect()
}

/// Rejects a log whose calls would take too long.
pub(super) fn check(job: &ReplayJob) -> Result<(), Error> {
    let Some(calls) = job.log().calls() else { return Ok(()) };
    let pieces = calls.pieces();
    if pieces > PIECES_MAX {
        let why = format!("calls of {pieces} pieces in total: the limit is {PIECES_MAX}; replay fewer calls");
        return Err(Error::Invalid(why));
    }
    match job.access {
        ReplayAccess::Batches { .. } => {
            Err(Error::Invalid("a log with collective calls cannot be replayed in batches".into()))
        }
        _ => Ok(()),
    }
}

impl<M: Machine> ReplayPart<M> {
    /// Replays the call of this index.
    pub(super) async fn call(&self, index: u32, outcome: &mut Outcome) -> Result<(), Error> {
        let LoggedCall { file, moves, together, .. } = self.job.log.call(index);
        let opening = together.map(|turn| turn.opening);
        let group = opening.and_then(|opening| self.groups[opening as usize].as_ref());
        let Some((operation, selection)) = moves else {
            return self.sync_with(group.unwrap_or(&self.member.group)).await;
        };
        match (self.job.access, group) {
            (ReplayAccess::Calls { method, queued }, Some(group)) => {
                let settings = SelectedSettings { method, queued, to_media: false };
                let company = Participants::Group(group);
                self.move_selected(*file, (*operation, selection), company, settings, outcome).await
            }
            (ReplayAccess::Calls { .. } | ReplayAccess::Requests, _) if selection.runs() > 1 => {
                let method = CollectiveMethod::DiskDirected { presort: true };
                let settings = SelectedSettings { method, queued: true, to_media: false };
                self.move_selected(*file, (*operation, selection), Participants::Alone, settings, outcome)
                    .await
            }
            _ => self.move_pieces(*file, (*operation, selection), outcome).await,
        }
    }

    /// Transfers every piece separately, as a plain request.
    async fn move_pieces(
        &self,
        file: u32,
        (operation, selection): (Operation, &Selection),
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        let most = u64::from(u32::MAX);
        for chunk in selection.chunks() {
            for done in (0..chunk.bytes).step_by(most as usize) {
                let bytes = most.min(chunk.bytes - done) as u32;
                let stretch = Stretch { file, bytes, offset: chunk.file_offset + done };
                match operation {
                    Operation::Read => self.read(stretch, outcome).await?,
                    Operation::Write => self.write(stretch, outcome).await?,
                }
            }
        }
        Ok(())
    }

    /// Transfers the selection in one operation, together with the members in `company`.
    async fn move_selected(
        &self,
        file: u32,
        (operation, selection): (Operation, &Selection),
        company: Participants<'_, M>,
        settings: SelectedSettings,
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        let opened = self.plain(file);
        let memory = self.member.contents.memory(selection.bytes());
        let now = || self.machine().now();
        let making = now();
        if operation == Operation::Write {
            for chunk in selection.chunks() {
                self.make_in(&memory, (file, chunk.file_offset, chunk.bytes), chunk.memory_offset);
            }
        }
        let begin = now();
        outcome.own_work += begin.since(making);
        let tally = match operation {
            Operation::Read => {
                opened.read_selected(company, selection, &memory, settings).await?;
                &mut outcome.reads
            }
            Operation::Write => {
                opened.write_selected(company, selection, &memory, settings).await?;
                self.unflushed.borrow_mut().insert(file);
                &mut outcome.writes
            }
        };
        let end = now();
        tally.take_in(selection.bytes(), end.since(begin));
        if operation == Operation::Read {
            for chunk in selection.chunks() {
                self.check_in(&memory, (file, chunk.file_offset, chunk.bytes), chunk.memory_offset)?;
            }
        }
        outcome.own_work += now().since(end);
        Ok(())
    }
}
