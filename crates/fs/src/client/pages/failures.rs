//! Failed writes of a file that nobody waited for, until those who have it open have been told.
//!
//! - Each handle is told of what has failed since it was told last, by the first failure of which nobody had been told
//!   when it came: what one of them hears is not lost for the others.
//! - A handle that is opened later is told of what nobody has been told of yet.

use std::cell::{Cell, RefCell};

use crate::error::{Error, Result};

/// The failures of a file.
#[derive(Default)]
pub(super) struct Failures {
    /// How many there have been.
    noted: Cell<u64>,
    /// How many of them a handle has been told of.
    told: Cell<u64>,
    /// The first that came when nobody was still to be told of another, after the last such.
    first: RefCell<Option<Box<Error>>>,
}

/// How many of the failures of a file one who has it open has been told of.
pub(super) struct Told(Cell<u64>);

impl Failures {
    /// Keeps the failure of `outcome`, if it is one.
    pub(super) fn note(&self, outcome: Result<()>) {
        let Err(failure) = outcome else { return };
        if !self.is_untold() {
            self.first.replace(Some(failure));
        }
        self.noted.set(self.noted.get() + 1);
    }

    /// Whether there is a failure of which nobody has been told.
    pub(super) fn is_untold(&self) -> bool {
        self.noted > self.told
    }

    /// For one who opens the file now.
    pub(super) fn told(&self) -> Told {
        Told(self.told.clone())
    }

    /// Fails if something failed that this one has not been told of, and is still to be told.
    pub(super) fn check(&self, told: &Told) -> Result<()> {
        if self.noted <= told.0 {
            return Ok(());
        }
        self.first.borrow().clone().map_or(Ok(()), Err)
    }

    /// Fails if something failed that this one has not been told of, and is with this.
    pub(super) fn tell(&self, told: &Told) -> Result<()> {
        let outcome = self.check(told);
        told.0.set(self.noted.get());
        self.told.set(self.noted.get());
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
        let failures = Failures::default();
        let (one, other) = (failures.told(), failures.told());
        failures.note(Ok(()));
        assert!(!failures.is_untold());
        failures.note(failure("first"));
        failures.note(failure("second"));
        assert!(failures.is_untold());
        assert_eq!(failures.check(&one), failure("first"), "and nobody has been told by this");
        assert_eq!([failures.tell(&one), failures.tell(&one)], [failure("first"), Ok(())]);
        assert_eq!([failures.tell(&other), failures.tell(&other)], [failure("first"), Ok(())]);
        failures.note(failure("third"));
        assert_eq!([failures.tell(&other), failures.tell(&one)], [failure("third"), failure("third")]);
    }

    #[test]
    fn who_comes_later_is_told_what_nobody_has_been() {
        let failures = Failures::default();
        failures.note(failure("first"));
        let (later, last) = (failures.told(), failures.told());
        assert_eq!(failures.tell(&later), failure("first"));
        assert_eq!(failures.tell(&failures.told()), Ok(()), "somebody has been told");
        assert_eq!(failures.tell(&last), failure("first"), "it was there before");
    }
}
