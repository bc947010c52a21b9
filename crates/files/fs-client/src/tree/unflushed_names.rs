//! This client's unflushed changes to names and inodes, and their losses.
//!
//! The metadata server answers before a change is on its medium. Each answer contains the incarnation of the server's
//! store. So a client that flushes can detect that the store has crashed since the client's changes: changes that an
//! earlier incarnation made may be lost.

use std::cell::RefCell;

use machine::{Machine, NodeId, Payload};
use namespace::{FileNumber, Inode, TreeAnswer, TreeOperation};

use super::Tree;
use crate::error::{Error, Result};
use crate::protocol::{Flushing, Reply, Request};
use crate::unexpected;
use crate::write_stamps::{Durability, Unflushed};

/// Maximum number of files and directories whose changes are recorded. If there are more, the oldest records are
/// dropped. The loss of a change without a record is reported only by a flush of all names.
const NUMBERS_MAX: usize = 16 * 1024;

/// Changes that may not be on the medium yet.
#[derive(Default)]
pub(super) struct UnflushedNames {
    /// Incarnations of the metadata server's store. They are different from the incarnations of its node.
    durability: Durability,
    /// Changes to any names.
    all: RefCell<Unflushed<()>>,
    /// Changes by file or directory.
    by_number: RefCell<Unflushed<FileNumber>>,
}

/// The losses that a flush reports.
#[derive(Clone, Copy)]
pub(super) enum ReportedLosses {
    /// No losses.
    Nobody,
    /// Losses of a file or directory.
    One(FileNumber),
    /// All losses.
    All,
}

impl UnflushedNames {
    /// Records a change made by an incarnation of the metadata server's store.
    fn note(&self, metadata_server: NodeId, run: u64, numbers: impl Iterator<Item = FileNumber>) {
        let stamp = self.durability.accepted(metadata_server, run, 0);
        self.all.borrow_mut().note((), stamp, &self.durability);
        let mut by_number = self.by_number.borrow_mut();
        numbers.for_each(|number| by_number.note(number, stamp, &self.durability));
        by_number.bound(NUMBERS_MAX, &self.durability);
    }

    /// Records that an incarnation has flushed its changes up to a number.
    fn note_flushed(&self, metadata_server: NodeId, run: u64, number: u64) {
        self.durability.note_incarnation(metadata_server, run, 0);
        self.durability.flushed(metadata_server, run, number);
    }

    /// Returns the changes whose losses a flush that begins reports.
    fn claimed(&self, whose: ReportedLosses) -> Unflushed<()> {
        match whose {
            ReportedLosses::Nobody => Unflushed::default(),
            ReportedLosses::One(number) => self.by_number.borrow().of(number),
            ReportedLosses::All => self.all.borrow().of(()),
        }
    }

    /// Returns true if changes may be lost, or `claimed` ones: another flush may have reported those since this one
    /// began. Reports each loss once otherwise.
    fn take_lost(&self, whose: ReportedLosses, mut claimed: Unflushed<()>) -> bool {
        let is_lost = match whose {
            ReportedLosses::Nobody => false,
            ReportedLosses::One(number) => self.by_number.borrow_mut().take_lost_of(number, &self.durability),
            ReportedLosses::All => self.all.borrow_mut().take_lost_of((), &self.durability),
        };
        claimed.take_lost_of((), &self.durability) || is_lost
    }
}

impl<M: Machine> Tree<M> {
    /// Flushes all changes to names to stable storage.
    ///
    /// # Errors
    /// Fails if the metadata server cannot flush. Fails once with [`Error::NamesLost`] if the metadata server has lost
    /// changes of this client.
    pub async fn flush(&self) -> Result<()> {
        self.flush_names(ReportedLosses::All).await.map(drop)
    }

    /// Flushes as [`flush`](Self::flush) does, but reports only the losses of one file or directory.
    ///
    /// # Errors
    /// Fails as [`flush`](Self::flush) does, but only for losses of this file or directory.
    pub async fn flush_of(&self, number: FileNumber) -> Result<()> {
        self.flush_names(ReportedLosses::One(number)).await.map(drop)
    }

    /// Flushes all changes to names. Returns the incarnation of the metadata server's store.
    pub(super) async fn flush_names(&self, whose: ReportedLosses) -> Result<u64> {
        let (metadata_server, unflushed) = (self.metadata_server(), &self.inner.unflushed_names);
        let (noted, claimed) = (unflushed.durability.last(), unflushed.claimed(whose));
        let endpoint = &self.cache().client().inner.endpoint;
        match endpoint.call(metadata_server, Request::Flush(Flushing::Names), Payload::empty()).await? {
            (Reply::Accepted { run }, _) => {
                unflushed.note_flushed(metadata_server, run, noted);
                self.check_lost(whose, claimed).map(|()| run)
            }
            _ => Err(unexpected(metadata_server)),
        }
    }

    fn check_lost(&self, whose: ReportedLosses, claimed: Unflushed<()>) -> Result<()> {
        match self.inner.unflushed_names.take_lost(whose, claimed) {
            true => {
                machine::sometimes!("a flush reports lost changes of names");
                Err(Error::NamesLost { metadata_server: self.metadata_server() }.into())
            }
            false => Ok(()),
        }
    }

    /// Returns the number of changes until now, for [`note_flushed_by_first`](Self::note_flushed_by_first).
    pub(super) fn last_change(&self) -> u64 {
        self.inner.unflushed_names.durability.last()
    }

    /// Returns the incarnation of the metadata server's store that made this client's last unflushed change to a file,
    /// if any.
    pub(super) fn run_of_last_change(&self, number: FileNumber) -> Option<u64> {
        let by_number = self.inner.unflushed_names.by_number.borrow();
        by_number.last().get(&number).map(|stamp| stamp.run)
    }

    /// Records that an incarnation has changed a file for all members of this client's team.
    pub(super) fn note_change_for_team(&self, number: FileNumber, run: u64) {
        self.inner.unflushed_names.note(self.metadata_server(), run, [number].into_iter());
    }

    /// Records that the first member of a team has made an incarnation flush the first `changes` changes.
    ///
    /// # Errors
    /// Fails once with [`Error::NamesLost`] if the metadata server has lost this client's changes to the file.
    pub(super) fn note_flushed_by_first(&self, run: u64, changes: u64, number: FileNumber) -> Result<()> {
        self.inner.unflushed_names.note_flushed(self.metadata_server(), run, changes);
        self.check_lost(ReportedLosses::One(number), Unflushed::default())
    }

    /// Returns the number of events after which earlier answers of the metadata server may no longer hold: disconnects,
    /// and new incarnations of its store.
    pub(super) fn crashes(&self) -> u64 {
        self.disconnects() + self.new_runs()
    }

    /// Returns the number of new incarnations of the metadata server's store, as far as its answers show.
    pub(super) fn new_runs(&self) -> u64 {
        self.inner.unflushed_names.durability.new_runs(self.metadata_server())
    }

    /// Records the incarnation of the metadata server's store in an answer, and the change that was made, if it must be
    /// flushed.
    pub(super) fn note_change(&self, change: Change, answer: &TreeAnswer, directories: &[Inode], run: u64) {
        let (metadata_server, unflushed) = (self.metadata_server(), &self.inner.unflushed_names);
        unflushed.durability.note_incarnation(metadata_server, run, 0);
        let Change::Of(number) = change else { return };
        let made = match answer {
            TreeAnswer::Inode(inode) if !directories.is_empty() => Some(inode.number),
            _ => None,
        };
        let numbers = directories.iter().map(|directory| directory.number).chain(number).chain(made);
        unflushed.note(metadata_server, run, numbers);
    }
}

/// The change that a request makes.
#[derive(Clone, Copy)]
pub(super) enum Change {
    /// No change, or a change whose loss does no harm.
    Nothing,
    /// The file with this number, if known, and the directories in the answer.
    Of(Option<FileNumber>),
}

impl Change {
    pub(super) fn by(request: &Request) -> Self {
        match request {
            Request::CloseFile { number, written: Some(_), .. } => Change::Of(Some(*number)),
            Request::Tree { operation, .. } => match &**operation {
                // If this change is lost, the files are orphans again, and are removed later.
                TreeOperation::Forget { .. } => Change::Nothing,
                operation if operation.only_reads() => Change::Nothing,
                operation => Change::Of(operation.number()),
            },
            _ => Change::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the answer to a flush that begins and ends now.
    fn take_lost(names: &UnflushedNames, whose: ReportedLosses) -> bool {
        names.take_lost(whose, names.claimed(whose))
    }

    const METADATA_SERVER: NodeId = NodeId(1);
    const ONE: FileNumber = FileNumber(1);
    const OTHER: FileNumber = FileNumber(2);

    #[test]
    fn a_name_change_lost_with_its_incarnation_is_reported_once() {
        let names = UnflushedNames::default();
        let flush = |run| names.note_flushed(METADATA_SERVER, run, names.durability.last());
        names.note(METADATA_SERVER, 7, [ONE, OTHER].into_iter());
        flush(7);
        names.note(METADATA_SERVER, 7, [OTHER].into_iter());
        // The first change is lost, no matter which incarnation made the last change.
        names.note(METADATA_SERVER, 8, [OTHER].into_iter());
        flush(8);
        assert!(!take_lost(&names, ReportedLosses::Nobody) && !take_lost(&names, ReportedLosses::One(ONE)));
        assert!(
            take_lost(&names, ReportedLosses::One(OTHER)) && !take_lost(&names, ReportedLosses::One(OTHER))
        );
        assert!(take_lost(&names, ReportedLosses::All) && !take_lost(&names, ReportedLosses::All));
    }

    #[test]
    fn a_flush_does_not_cover_name_changes_after_its_start() {
        let names = UnflushedNames::default();
        names.note(METADATA_SERVER, 7, [ONE].into_iter());
        let begun = names.durability.last();
        names.note(METADATA_SERVER, 7, [ONE].into_iter());
        names.note_flushed(METADATA_SERVER, 7, begun);
        names.note_flushed(METADATA_SERVER, 8, begun);
        assert!(take_lost(&names, ReportedLosses::One(ONE)) && take_lost(&names, ReportedLosses::All));
    }

    #[test]
    fn concurrent_flushes_all_report_a_loss() {
        let names = UnflushedNames::default();
        names.note(METADATA_SERVER, 7, [ONE].into_iter());
        for whose in [ReportedLosses::One(ONE), ReportedLosses::All] {
            let claimed = [names.claimed(whose), names.claimed(whose)];
            names.note_flushed(METADATA_SERVER, 8, 1);
            assert_eq!(claimed.map(|claimed| names.take_lost(whose, claimed)), [true, true]);
            assert!(!take_lost(&names, whose));
        }
    }
}
