//! What this client has had changed of names and of what the keeper knows of files, and what of it may be lost.
//!
//! The keeper answers before its medium has what was done. Each answer says which run of its store it is of, so whoever
//! flushes learns whether a crash has come between: what the run before had done may be lost then.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use machine::{Machine, Payload};
use namespace::{FileNumber, Inode, TreeAnswer, TreeOperation};

use super::Tree;
use crate::error::{Error, Result};
use crate::protocol::{Reply, Request};
use crate::unexpected;
use crate::unflushed::first_kept;

/// Maximum number of files and directories whose changes are remembered. Only a flush of all names reports the loss of
/// changes of others, which were changed before these.
const NUMBERS_MAX: usize = 16 * 1024;

/// Changes that are not known to be on the medium.
#[derive(Default)]
pub(super) struct UnflushedNames {
    /// How many have been noted.
    noted: Cell<u64>,
    all: Cell<Option<Changes>>,
    /// Those of each file and directory.
    by_number: RefCell<BTreeMap<FileNumber, Changes>>,
    /// The run that was heard of last, and how often that was another one than before.
    heard: Cell<Option<u64>>,
    others: Cell<u64>,
}

/// Some changes.
#[derive(Clone, Copy)]
struct Changes {
    /// The run that has made the first of them.
    run: u64,
    /// How many had been noted with the last one.
    last: u64,
}

impl Changes {
    fn with(self, last: u64) -> Self {
        Changes { last, ..self }
    }
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
    /// Notes which run an answer is of.
    fn hear(&self, run: u64) {
        if self.heard.replace(Some(run)).is_some_and(|before| before != run) {
            self.others.set(self.others.get() + 1);
        }
    }

    /// Notes a change by a run.
    fn note(&self, run: u64, numbers: impl Iterator<Item = FileNumber>) {
        let last = self.noted.get() + 1;
        self.noted.set(last);
        let first = Changes { run, last };
        self.all.set(Some(self.all.get().unwrap_or(first).with(last)));
        let mut by_number = self.by_number.borrow_mut();
        for number in numbers {
            let changes = by_number.entry(number).or_insert(first);
            *changes = changes.with(last);
        }
        if by_number.len() > NUMBERS_MAX {
            // A quarter of them: rarely, since all are looked at.
            let first_kept = first_kept(by_number.values().map(|changes| changes.last));
            by_number.retain(|_, changes| changes.last >= first_kept);
        }
    }

    /// Notes that a run has flushed the first so many changes that were noted, as far as it has made them.
    fn note_flushed(&self, run: u64, noted: u64) {
        let is_left = |changes: &Changes| changes.run != run || changes.last > noted;
        self.all.set(self.all.get().filter(is_left));
        self.by_number.borrow_mut().retain(|_, changes| is_left(changes));
    }

    /// Whether changes may be lost, now that another run has flushed: that is said once.
    fn take_lost(&self, whose: Flushed, run: u64) -> bool {
        let is_lost = |changes: &mut Changes| changes.run != run;
        match whose {
            Flushed::Nobody => false,
            Flushed::One(number) => {
                let mut by_number = self.by_number.borrow_mut();
                by_number.get_mut(&number).is_some_and(is_lost) && by_number.remove(&number).is_some()
            }
            Flushed::All => {
                let mut all = self.all.get();
                let lost = all.take_if(is_lost).is_some();
                self.all.set(all);
                lost
            }
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
        let noted = unflushed.noted.get();
        let endpoint = &self.cache().client().inner.endpoint;
        match endpoint.call(keeper, Request::FlushTree, Payload::empty()).await? {
            (Reply::TreeFlushed { run }, _) => {
                unflushed.hear(run);
                unflushed.note_flushed(run, noted);
                if unflushed.take_lost(whose, run) { Err(Error::NamesLost { keeper }.into()) } else { Ok(()) }
            }
            _ => Err(unexpected(keeper)),
        }
    }

    /// How often what the keeper had said before may have come undone: it was gone, or its store is in another run.
    pub(super) fn crashes(&self) -> u64 {
        self.disconnects() + self.inner.unflushed_names.others.get()
    }

    /// Notes in which run of the keeper's store it has answered, and what that has done, if it is to be flushed.
    pub(super) fn note_change(&self, change: Change, answer: &TreeAnswer, directories: &[Inode], run: u64) {
        self.inner.unflushed_names.hear(run);
        let Change::Of(number) = change else { return };
        let made = match answer {
            TreeAnswer::Inode(inode) if !directories.is_empty() => Some(inode.number),
            _ => None,
        };
        let numbers = directories.iter().map(|directory| directory.number).chain(number).chain(made);
        self.inner.unflushed_names.note(run, numbers);
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
            Request::LetGoWritten { number, .. } => Change::Of(Some(*number)),
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

    const ONE: FileNumber = FileNumber(1);
    const OTHER: FileNumber = FileNumber(2);

    #[test]
    fn what_another_run_has_flushed_is_lost_for_who_asks_once() {
        let names = UnflushedNames::default();
        names.note(7, [ONE, OTHER].into_iter());
        names.note_flushed(7, names.noted.get());
        names.note(7, [OTHER].into_iter());
        // The first of them is lost, whoever has made the last.
        names.note(8, [OTHER].into_iter());
        names.note_flushed(8, names.noted.get());
        let lost = |whose| names.take_lost(whose, 8);
        assert!(!lost(Flushed::Nobody) && !lost(Flushed::One(ONE)));
        assert!(lost(Flushed::One(OTHER)) && !lost(Flushed::One(OTHER)));
        assert!(lost(Flushed::All) && !lost(Flushed::All));
    }

    #[test]
    fn what_was_done_after_a_flush_had_begun_is_not_flushed_with_it() {
        let names = UnflushedNames::default();
        names.note(7, [ONE].into_iter());
        let begun = names.noted.get();
        names.note(7, [ONE].into_iter());
        names.note_flushed(7, begun);
        assert!(names.take_lost(Flushed::One(ONE), 8) && names.take_lost(Flushed::All, 8));
    }

    #[test]
    fn those_that_were_changed_first_are_forgotten_if_there_are_too_many() {
        let names = UnflushedNames::default();
        let note = |number| names.note(7, [FileNumber(number)].into_iter());
        (1..=NUMBERS_MAX as u64).for_each(note);
        // It has the lowest number, and is changed last.
        note(1);
        note(NUMBERS_MAX as u64 + 1);
        assert!(names.take_lost(Flushed::One(ONE), 8));
        assert!(!names.take_lost(Flushed::One(OTHER), 8), "it is forgotten");
        assert!(names.take_lost(Flushed::One(FileNumber(NUMBERS_MAX as u64 + 1)), 8));
        assert!(names.take_lost(Flushed::All, 8));
    }
}
