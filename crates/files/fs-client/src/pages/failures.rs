//! Failed writes of a file for which no caller waited, kept until all handles of the file have been told.
//!
//! - Each handle is told of failures since it was told last, by the first one that came when no failure was untold:
//!   telling one handle does not lose the failure for the others.
//! - A handle that is opened later is told of failures of which no handle has been told yet.

use std::cell::{Cell, RefCell};

use crate::error::{Error, Result};

/// The failures of a file.
#[derive(Default)]
pub(super) struct WriteFailures {
    /// How many there have been.
    noted: Cell<u64>,
    /// How many of them a handle has been told of.
    reported: Cell<u64>,
    /// The last failure that came when no other one was untold.
    first: RefCell<Option<Box<Error>>>,
}

/// How many of the failures of a file a handle has been told of.
pub(super) struct Reported(Cell<u64>);

impl WriteFailures {
    /// Keeps the failure of `outcome`, if it is one.
    pub(super) fn note(&self, outcome: Result<()>) {
        let Err(failure) = outcome else { return };
        if !self.is_unreported() {
            self.first.replace(Some(failure));
        }
        self.noted.set(self.noted.get() + 1);
    }

    /// Whether there is a failure of which no handle has been told.
    pub(super) fn is_unreported(&self) -> bool {
        self.noted > self.reported
    }

    /// Forgets all of them: nobody is told any more.
    pub(super) fn forget(&self) {
        self.first.take();
        self.reported.set(self.noted.get());
    }

    /// The state of a handle that is opened now.
    pub(super) fn cursor(&self) -> Reported {
        Reported(self.reported.clone())
    }

    /// Fails if something failed of which this handle has not been told; the handle is still to be told.
    pub(super) fn check(&self, cursor: &Reported) -> Result<()> {
        if self.noted <= cursor.0 {
            return Ok(());
        }
        self.first.borrow().clone().map_or(Ok(()), Err)
    }

    /// Fails if something failed of which this handle has not been told, and counts it as told.
    pub(super) fn tell(&self, cursor: &Reported) -> Result<()> {
        let outcome = self.check(cursor);
        cursor.0.set(self.noted.get());
        self.reported.set(self.noted.get());
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(text: &str) -> Result<()> {
        Err(Error::Invalid(text.into()).into())
    }

    #[test]
    fn each_is_told_once_by_the_first_of_what_failed_together() {
        let failures = WriteFailures::default();
        let (one, other) = (failures.cursor(), failures.cursor());
        failures.note(Ok(()));
        assert!(!failures.is_unreported());
        failures.note(failure("first"));
        failures.note(failure("second"));
        assert!(failures.is_unreported());
        assert_eq!(failures.check(&one), failure("first"), "and nobody has been told by this");
        assert_eq!([failures.tell(&one), failures.tell(&one)], [failure("first"), Ok(())]);
        assert_eq!([failures.tell(&other), failures.tell(&other)], [failure("first"), Ok(())]);
        failures.note(failure("third"));
        assert_eq!([failures.tell(&other), failures.tell(&one)], [failure("third"), failure("third")]);
    }

    #[test]
    fn who_comes_later_is_told_what_nobody_has_been() {
        let failures = WriteFailures::default();
        failures.note(failure("first"));
        let (later, last) = (failures.cursor(), failures.cursor());
        assert_eq!(failures.tell(&later), failure("first"));
        assert_eq!(failures.tell(&failures.cursor()), Ok(()), "somebody has been told");
        assert_eq!(failures.tell(&last), failure("first"), "it was there before");
    }

    #[test]
    fn nobody_is_told_what_was_forgotten() {
        let failures = WriteFailures::default();
        let handle = failures.cursor();
        failures.note(failure("first"));
        failures.forget();
        assert!(!failures.is_unreported());
        assert_eq!([failures.check(&handle), failures.tell(&failures.cursor())], [Ok(()), Ok(())]);
        failures.note(failure("second"));
        assert_eq!(failures.tell(&handle), failure("second"));
    }
}
