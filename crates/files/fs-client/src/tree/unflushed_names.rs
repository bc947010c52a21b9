//! What this client has had changed of names and of what the keeper knows of files, and what of it may be lost.
//!
//! The keeper answers before its medium has what was done. Each answer says which run of its store it is of, so whoever
//! flushes learns whether a crash has come between: what the run before had done may be lost then.

use std::cell::RefCell;

use machine::{Machine, NodeId, Payload};
use namespace::{FileNumber, Inode, TreeAnswer, TreeOperation};

use super::Tree;
use crate::durability::{Durability, Unflushed};
use crate::error::{Error, Result};
use crate::protocol::{Flushing, Reply, Request};
use crate::unexpected;

/// Maximum number of files and directories whose changes are remembered. Only a flush of all names reports the loss of
/// changes of others, which were changed before these.
const NUMBERS_MAX: usize = 16 * 1024;

/// Changes that are not known to be on the medium.
#[derive(Default)]
pub(super) struct UnflushedNames {
    /// Runs of the keeper's store, which are others than those of the node.
    durability: Durability,
    /// Those of any name.
    all: RefCell<Unflushed<()>>,
    /// Those of each file and directory.
    by_number: RefCell<Unflushed<FileNumber>>,
}

/// Whose loss a flush tells.
#[derive(Clone, Copy)]
pub(super) enum Flushed {
    /// Nobody's.
    Nobody,
    /// That of a file or directory.
    One(FileNumber),
    /// Everybody's.
    All,
}

impl UnflushedNames {
    /// Notes a change by a run of the keeper's store.
    fn note(&self, keeper: NodeId, run: u64, numbers: impl Iterator<Item = FileNumber>) {
        let stamp = self.durability.accepted(keeper, run, 0);
        self.all.borrow_mut().note((), stamp, &self.durability);
        let mut by_number = self.by_number.borrow_mut();
        numbers.for_each(|number| by_number.note(number, stamp, &self.durability));
        by_number.bound(NUMBERS_MAX, &self.durability);
    }

    /// Notes that a run has flushed what it had changed up to a number.
    fn note_flushed(&self, keeper: NodeId, run: u64, number: u64) {
        self.durability.hear(keeper, run, 0);
        self.durability.flushed(keeper, run, number);
    }

    /// True if changes may be lost. Reported once.
    fn take_lost(&self, whose: Flushed) -> bool {
        match whose {
            Flushed::Nobody => false,
            Flushed::One(number) => self.by_number.borrow_mut().take_lost_of(number, &self.durability),
            Flushed::All => self.all.borrow_mut().take_lost_of((), &self.durability),
        }
    }
}

impl<M: Machine> Tree<M> {
    /// Brings all that has been done with names onto the medium.
    ///
    /// # Errors
    /// If the keeper cannot; or once, if it has lost some of what this client has done ([`Error::NamesLost`]).
    pub async fn flush(&self) -> Result<()> {
        self.flush_names(Flushed::All).await
    }

    /// As [`flush`](Self::flush), for who wants to know of a file or directory whether what was done with it is lost.
    ///
    /// # Errors
    /// As those of [`flush`](Self::flush), as far as they concern it.
    pub async fn flush_of(&self, number: FileNumber) -> Result<()> {
        self.flush_names(Flushed::One(number)).await
    }

    pub(super) async fn flush_names(&self, whose: Flushed) -> Result<()> {
        let (keeper, unflushed) = (self.keeper(), &self.inner.unflushed_names);
        let noted = unflushed.durability.last();
        let endpoint = &self.cache().client().inner.endpoint;
        match endpoint.call(keeper, Request::Flush(Flushing::Names), Payload::empty()).await? {
            (Reply::Accepted { run }, _) => {
                unflushed.note_flushed(keeper, run, noted);
                if unflushed.take_lost(whose) { Err(Error::NamesLost { keeper }.into()) } else { Ok(()) }
            }
            _ => Err(unexpected(keeper)),
        }
    }

    /// How often what the keeper had said before may have come undone: it was gone, or its store is in another run.
    pub(super) fn crashes(&self) -> u64 {
        self.disconnects() + self.inner.unflushed_names.durability.new_runs(self.keeper())
    }

    /// Notes in which run of the keeper's store it has answered, and what that has done, if it is to be flushed.
    pub(super) fn note_change(&self, change: Change, answer: &TreeAnswer, directories: &[Inode], run: u64) {
        let (keeper, unflushed) = (self.keeper(), &self.inner.unflushed_names);
        unflushed.durability.hear(keeper, run, 0);
        let Change::Of(number) = change else { return };
        let made = match answer {
            TreeAnswer::Inode(inode) if !directories.is_empty() => Some(inode.number),
            _ => None,
        };
        let numbers = directories.iter().map(|directory| directory.number).chain(number).chain(made);
        unflushed.note(keeper, run, numbers);
    }
}

/// What a request changes.
#[derive(Clone, Copy)]
pub(super) enum Change {
    /// Nothing that anybody would miss.
    Nothing,
    /// What this is the number of, if it has one by then, and directories that the answer names.
    Of(Option<FileNumber>),
}

impl Change {
    pub(super) fn by(request: &Request) -> Self {
        match request {
            Request::LetGo { number, written: Some(_), .. } => Change::Of(Some(*number)),
            Request::Tree { operation, .. } => match &**operation {
                // They would be doomed again.
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

    const KEEPER: NodeId = NodeId(1);
    const ONE: FileNumber = FileNumber(1);
    const OTHER: FileNumber = FileNumber(2);

    #[test]
    fn what_another_run_has_flushed_is_lost_for_who_asks_once() {
        let names = UnflushedNames::default();
        let flush = |run| names.note_flushed(KEEPER, run, names.durability.last());
        names.note(KEEPER, 7, [ONE, OTHER].into_iter());
        flush(7);
        names.note(KEEPER, 7, [OTHER].into_iter());
        // The first of them is lost, whoever has made the last.
        names.note(KEEPER, 8, [OTHER].into_iter());
        flush(8);
        assert!(!names.take_lost(Flushed::Nobody) && !names.take_lost(Flushed::One(ONE)));
        assert!(names.take_lost(Flushed::One(OTHER)) && !names.take_lost(Flushed::One(OTHER)));
        assert!(names.take_lost(Flushed::All) && !names.take_lost(Flushed::All));
    }

    #[test]
    fn what_was_done_after_a_flush_had_begun_is_not_flushed_with_it() {
        let names = UnflushedNames::default();
        names.note(KEEPER, 7, [ONE].into_iter());
        let begun = names.durability.last();
        names.note(KEEPER, 7, [ONE].into_iter());
        names.note_flushed(KEEPER, 7, begun);
        names.note_flushed(KEEPER, 8, begun);
        assert!(names.take_lost(Flushed::One(ONE)) && names.take_lost(Flushed::All));
    }
}
