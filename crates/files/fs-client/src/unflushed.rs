//! Writes that I/O nodes have accepted and not flushed yet.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use machine::NodeId;

use super::own_flushes::{Acceptance, OwnFlushes};
use crate::protocol::FileId;

/// The offset basis and the prime of FNV-1a of 64 bits (Fowler, Noll, Vo).
const FNV: (u64, u64) = (0xcbf2_9ce4_8422_2325, 0x100_0000_01b3);

/// The writes to a file that are not flushed, as far as one client knows.
#[derive(Default)]
pub(super) struct Unflushed {
    /// For each I/O node, the run that has accepted data.
    accepted: BTreeMap<NodeId, Acceptance>,
    /// I/O nodes that have been started anew since, and have lost accepted data.
    lost: BTreeSet<NodeId>,
    /// How often something was noted.
    changes: u64,
}

/// What was unflushed at a moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct UnflushedMark {
    /// A hash of the runs of I/O nodes that had accepted data; 0 if nothing was unflushed.
    pub(super) runs: u64,
    /// Whether some was lost.
    pub(super) has_lost: bool,
    changes: u64,
}

impl Unflushed {
    /// Notes that a run of the node has accepted data. Data that an earlier run had accepted are lost, unless they are
    /// on the media.
    pub(super) fn accept(&mut self, node: NodeId, mut accepted: Acceptance, own_flushes: &OwnFlushes) {
        self.changes += 1;
        let before = self.accepted.get(&node).copied();
        accepted.disconnects =
            before.map_or(accepted.disconnects, |before| before.disconnects.min(accepted.disconnects));
        self.accepted.insert(node, accepted);
        let is_of_other_run = |before: Acceptance| before.incarnation != accepted.incarnation;
        if before.is_some_and(|before| is_of_other_run(before) && !own_flushes.has_flushed(node, before)) {
            self.lost.insert(node);
        }
    }

    /// Notes that the data accepted `before` are not flushed after all.
    pub(super) fn accept_still(&mut self, node: NodeId, before: Acceptance) {
        self.changes += 1;
        let since = *self.accepted.entry(node).or_insert(before);
        if since.incarnation != before.incarnation {
            self.lost.insert(node);
        }
    }

    /// Notes that what a node had accepted is lost.
    pub(super) fn lose(&mut self, node: NodeId) {
        self.changes += 1;
        self.lost.insert(node);
    }

    /// For each I/O node, the run that has accepted data that are not flushed.
    pub(super) fn accepted(&self) -> &BTreeMap<NodeId, Acceptance> {
        &self.accepted
    }

    /// Takes [`accepted`](Self::accepted) out, to be flushed.
    pub(super) fn take_accepted(&mut self) -> BTreeMap<NodeId, Acceptance> {
        self.changes += 1;
        mem::take(&mut self.accepted)
    }

    /// Whether some of the data may be lost: the client's count of lost connections, now `disconnects`, has grown since
    /// they were accepted.
    pub(super) fn may_have_lost(&self, disconnects: u64) -> bool {
        !self.lost.is_empty() || self.accepted.values().any(|accepted| accepted.disconnects != disconnects)
    }

    /// Adds the unflushed writes to another file.
    fn add(&mut self, other: Unflushed) {
        other.accepted.into_iter().for_each(|(node, accepted)| self.accept_still(node, accepted));
        self.lost.extend(other.lost);
    }

    /// Notes that a run of a node has done a flush of all files. Returns false if data that an earlier run had accepted
    /// are lost.
    pub(super) fn flush_by(&mut self, node: NodeId, incarnation: u64) -> bool {
        let accepted = self.accepted.remove(&node);
        !self.lost.remove(&node) && accepted.is_none_or(|accepted| accepted.incarnation == incarnation)
    }

    fn is_nothing(&self) -> bool {
        self.accepted.is_empty() && self.lost.is_empty()
    }

    /// The nodes that have lost something; they are forgotten.
    pub(super) fn take_lost(&mut self) -> BTreeSet<NodeId> {
        mem::take(&mut self.lost)
    }

    pub(super) fn mark(&self) -> UnflushedMark {
        let (basis, prime) = FNV;
        let bytes = self.accepted.iter().flat_map(|(node, accepted)| {
            node.0.to_le_bytes().into_iter().chain(accepted.incarnation.to_le_bytes())
        });
        let runs = match self.accepted.is_empty() {
            true => 0,
            false => bytes.fold(basis, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(prime)).max(1),
        };
        UnflushedMark { runs, has_lost: !self.lost.is_empty(), changes: self.changes }
    }

    /// Notes that what was unflushed at `mark` has been flushed by another client, if nothing has been noted since.
    /// Otherwise it is flushed once more.
    pub(super) fn flushed_by_other(&mut self, mark: UnflushedMark) -> bool {
        let is_unchanged = self.changes == mark.changes;
        if is_unchanged {
            self.accepted.clear();
        }
        is_unchanged
    }
}

/// Maximum number of closed files whose unflushed writes are remembered: about 16 MB of them.
const CLOSED_MAX: usize = 32 * 1024;

/// The number from which on entries are kept if a quarter of them, those with the lowest numbers, is forgotten. There
/// is an entry.
pub(super) fn first_kept(numbers: impl Iterator<Item = u64>) -> u64 {
    let mut numbers: Vec<u64> = numbers.collect();
    let quarter = numbers.len() / 4;
    *numbers.select_nth_unstable(quarter).1
}

/// Unflushed writes to closed files with numbers.
///
/// Closing does not flush, and a caller that opens such a file again and flushes it, or has it replace another, must
/// hear of disconnects since. If there are too many files, those closed first are forgotten. Only a flush of all files
/// then reports the loss of their data.
#[derive(Default)]
pub(super) struct ClosedFiles(RefCell<ClosedOnes>);

#[derive(Default)]
struct ClosedOnes {
    /// What is not flushed of each file, with its number in the order of closing.
    files: BTreeMap<FileId, (u64, Unflushed)>,
    /// The number of the last file that was closed.
    last: u64,
    /// Unflushed writes to forgotten files.
    forgotten: Unflushed,
}

impl ClosedOnes {
    /// Forgets a quarter of the files: rarely, since all are looked at.
    fn forget_first(&mut self) {
        let first_kept = first_kept(self.files.values().map(|(number, _)| *number));
        for (_, (_, unflushed)) in self.files.extract_if(.., |_, (number, _)| *number < first_kept) {
            self.forgotten.add(unflushed);
        }
    }
}

impl ClosedFiles {
    /// Remembers what was not flushed of a file that is closed.
    pub(super) fn keep(&self, file: FileId, unflushed: Unflushed) {
        if unflushed.is_nothing() {
            return;
        }
        let mut closed = self.0.borrow_mut();
        closed.last += 1;
        let number = closed.last;
        closed.files.insert(file, (number, unflushed));
        if closed.files.len() > CLOSED_MAX {
            closed.forget_first();
        }
    }

    /// What was not flushed of a file, which is open again, or removed.
    pub(super) fn take(&self, file: FileId) -> Unflushed {
        self.0.borrow_mut().files.remove(&file).map(|(_, unflushed)| unflushed).unwrap_or_default()
    }

    /// Takes out the unflushed writes to forgotten files, for a flush of all files.
    pub(super) fn take_forgotten(&self) -> Unflushed {
        mem::take(&mut self.0.borrow_mut().forgotten)
    }

    /// Keeps the writes that such a flush has not brought onto the media, and no others.
    pub(super) fn note_flushed(&self, left: Unflushed, own_flushes: &OwnFlushes) {
        let mut closed = self.0.borrow_mut();
        closed.forgotten.add(left);
        closed.files.retain(|_, (_, unflushed)| {
            unflushed.accepted.retain(|&node, accepted| !own_flushes.has_flushed(node, *accepted));
            !unflushed.is_nothing()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(all: &[(u64, u64)]) -> Unflushed {
        let (mut unflushed, own) = (Unflushed::default(), OwnFlushes::default());
        all.iter().for_each(|&(node, run)| unflushed.accept(NodeId(node), own.acceptance(run, 0), &own));
        unflushed
    }

    #[test]
    fn marks_are_equal_for_the_same_runs_of_the_same_nodes() {
        assert_eq!(accepted(&[]).mark().runs, 0);
        let one = accepted(&[(1, 7), (2, 8)]).mark();
        assert_eq!(one.runs, accepted(&[(2, 8), (1, 7), (1, 7)]).mark().runs);
        for other in [&[(1, 7)][..], &[(1, 7), (2, 9)], &[(1, 7), (3, 8)], &[(1, 8), (2, 7)]] {
            assert_ne!(one.runs, accepted(other).mark().runs);
        }
    }

    #[test]
    fn what_another_run_has_accepted_is_lost() {
        let mut unflushed = accepted(&[(1, 7), (2, 8), (1, 9)]);
        assert!(unflushed.mark().has_lost);
        assert_eq!(unflushed.take_lost(), BTreeSet::from([NodeId(1)]));
        assert_eq!(unflushed.take_lost(), BTreeSet::new());
    }

    #[test]
    fn what_was_accepted_before_a_node_was_gone_may_be_lost() {
        let (mut unflushed, own) = (Unflushed::default(), OwnFlushes::default());
        assert!(!unflushed.may_have_lost(1));
        unflushed.accept(NodeId(1), own.acceptance(7, 1), &own);
        assert!(!unflushed.may_have_lost(1));
        unflushed.accept(NodeId(1), own.acceptance(7, 2), &own);
        assert!(unflushed.may_have_lost(2), "what was accepted first");
        unflushed.take_accepted();
        assert!(!unflushed.may_have_lost(2));
    }

    #[test]
    fn a_closed_file_is_remembered_while_few_are_closed_after_it() {
        let closed = ClosedFiles::default();
        closed.keep(FileId(0), Unflushed::default());
        assert!(closed.0.borrow().files.is_empty(), "all of it is flushed");
        let most = CLOSED_MAX as u64;
        (1..=most).for_each(|file| closed.keep(FileId(file), accepted(&[(1, 7)])));
        // It has the lowest number, and is the last to be closed.
        closed.keep(FileId(1), accepted(&[(1, 8)]));
        closed.keep(FileId(most + 1), accepted(&[(1, 7)]));
        assert_eq!(closed.take(FileId(1)).accepted().len(), 1);
        assert!(closed.take(FileId(1)).is_nothing(), "it was taken");
        assert!(closed.take(FileId(2)).is_nothing(), "it was the first to be closed");
        assert_eq!(closed.take(FileId(most + 1)).accepted().len(), 1);
    }

    #[test]
    fn a_flush_of_all_files_reports_what_forgotten_ones_have_lost() {
        let (closed, own) = (ClosedFiles::default(), OwnFlushes::default());
        let keep = |file, nodes| closed.keep(FileId(file), accepted(nodes));
        keep(0, &[(1, 7), (2, 8)]);
        (1..=CLOSED_MAX as u64).for_each(|file| keep(file, &[(3, 9)]));
        let mut forgotten = closed.take_forgotten();
        assert!(forgotten.flush_by(NodeId(3), 9) && forgotten.flush_by(NodeId(1), 7));
        closed.note_flushed(forgotten, &own);
        let mut forgotten = closed.take_forgotten();
        assert!(forgotten.flush_by(NodeId(1), 6), "that is flushed");
        assert!(!forgotten.flush_by(NodeId(2), 9) && forgotten.flush_by(NodeId(2), 10), "once");
        // Two runs have accepted data of files that are forgotten, so the first has lost them.
        keep(0, &[(4, 1)]);
        keep(CLOSED_MAX as u64 + 1, &[(4, 2)]);
        (1..=CLOSED_MAX as u64).for_each(|file| keep(file, &[(3, 9)]));
        assert!(!closed.take_forgotten().flush_by(NodeId(4), 2));
    }

    #[test]
    fn what_a_flush_of_all_files_has_brought_onto_the_media_needs_no_room() {
        let (closed, own) = (ClosedFiles::default(), OwnFlushes::default());
        closed.keep(FileId(1), accepted(&[(1, 7)]));
        closed.keep(FileId(2), accepted(&[(1, 7), (2, 7)]));
        let flush = own.begin();
        own.note_done(flush, NodeId(1), 7);
        closed.note_flushed(Unflushed::default(), &own);
        assert!(closed.take(FileId(1)).is_nothing());
        assert_eq!(closed.take(FileId(2)).accepted().keys().collect::<Vec<_>>(), [&NodeId(2)]);
        assert!(closed.0.borrow().files.is_empty());
    }

    #[test]
    fn what_was_noted_after_a_mark_stays_to_be_flushed() {
        let mut unflushed = accepted(&[(1, 7)]);
        let mark = unflushed.mark();
        let own = OwnFlushes::default();
        unflushed.accept(NodeId(1), own.acceptance(7, 0), &own);
        assert!(!unflushed.flushed_by_other(mark));
        assert_eq!(unflushed.accepted().len(), 1);
        assert!(unflushed.flushed_by_other(unflushed.mark()));
        assert!(unflushed.accepted().is_empty());
    }
}
