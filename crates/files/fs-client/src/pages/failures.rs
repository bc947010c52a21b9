//! Failed background writes of a file, kept until they have been reported to all handles of the file.
//!
//! - Each handle reports failures since its last report, by the first one that occurred when no failure was unreported.
//!   A report to one handle does not lose the failure for the others.
//! - Of several calls at a time through one handle, all report a failure.
//! - A handle that is opened later reports failures that no handle has reported yet.

use std::cell::{Cell, RefCell};

use crate::error::{Error, Result};

/// The failures of a file.
#[derive(Default)]
pub(super) struct WriteFailures {
    /// Number of failures.
    noted: Cell<u64>,
    /// Number of failures that a handle has reported.
    reported: Cell<u64>,
    /// The last failure that occurred when no other one was unreported.
    first: RefCell<Option<Box<Error>>>,
}

/// Number of the file's failures that a handle has reported.
pub(super) struct Reported(Cell<u64>);

impl Reported {
    /// Returns the number of failures reported before a call that begins now.
    pub(super) fn before_call(&self) -> u64 {
        self.0.get()
    }
}

impl WriteFailures {
    /// Records the failure of `outcome`, if it is one.
    pub(super) fn note(&self, outcome: Result<()>) {
        let Err(failure) = outcome else { return };
        if !self.is_unreported() {
            self.first.replace(Some(failure));
        }
        self.noted.set(self.noted.get() + 1);
    }

    /// Returns true if there is a failure that no handle has reported.
    pub(super) fn is_unreported(&self) -> bool {
        self.noted > self.reported
    }

    /// Discards all failures without a report.
    pub(super) fn forget(&self) {
        self.first.take();
        self.reported.set(self.noted.get());
    }

    /// Returns the state of a handle that is opened now.
    pub(super) fn cursor(&self) -> Reported {
        Reported(self.reported.clone())
    }

    /// Fails if the file has a failure that this handle has not reported. The failure remains unreported.
    pub(super) fn check(&self, cursor: &Reported) -> Result<()> {
        self.check_since(cursor.before_call())
    }

    /// Fails if the file has more than `reported` failures.
    pub(super) fn check_since(&self, reported: u64) -> Result<()> {
        if self.noted.get() <= reported {
            return Ok(());
        }
        self.first.borrow().clone().map_or(Ok(()), Err)
    }

    /// Fails if the file has a failure that this handle had not reported when a call began, and marks it as reported.
    /// `before_call` is the number of failures reported before the call.
    pub(super) fn report(&self, cursor: &Reported, before_call: u64) -> Result<()> {
        let outcome = self.check_since(before_call);
        machine::sometimes!("two calls report the same failed write", if outcome.is_err() && cursor.0.get() > before_call);
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

    /// Returns the report of a call that begins and ends now.
    fn report(failures: &WriteFailures, handle: &Reported) -> Result<()> {
        failures.report(handle, handle.before_call())
    }

    #[test]
    fn concurrent_calls_through_a_handle_all_report_a_failure() {
        let failures = WriteFailures::default();
        let handle = failures.cursor();
        let before = handle.before_call();
        failures.note(failure("first"));
        assert_eq!(failures.report(&handle, before), failure("first"));
        assert_eq!(failures.report(&handle, before), failure("first"));
        assert_eq!(report(&failures, &handle), Ok(()), "it began later");
    }

    #[test]
    fn each_handle_reports_the_first_failure_once() {
        let failures = WriteFailures::default();
        let (one, other) = (failures.cursor(), failures.cursor());
        failures.note(Ok(()));
        assert!(!failures.is_unreported());
        failures.note(failure("first"));
        failures.note(failure("second"));
        assert!(failures.is_unreported());
        assert_eq!(failures.check(&one), failure("first"), "a check does not count as a report");
        assert_eq!([report(&failures, &one), report(&failures, &one)], [failure("first"), Ok(())]);
        assert_eq!([report(&failures, &other), report(&failures, &other)], [failure("first"), Ok(())]);
        failures.note(failure("third"));
        assert_eq!(
            [report(&failures, &other), report(&failures, &one)],
            [failure("third"), failure("third")]
        );
    }

    #[test]
    fn a_later_handle_reports_an_unreported_failure() {
        let failures = WriteFailures::default();
        failures.note(failure("first"));
        let (later, last) = (failures.cursor(), failures.cursor());
        assert_eq!(report(&failures, &later), failure("first"));
        assert_eq!(report(&failures, &failures.cursor()), Ok(()), "it was reported before");
        assert_eq!(report(&failures, &last), failure("first"), "it was there before");
    }

    #[test]
    fn a_forgotten_failure_is_not_reported() {
        let failures = WriteFailures::default();
        let handle = failures.cursor();
        failures.note(failure("first"));
        failures.forget();
        assert!(!failures.is_unreported());
        assert_eq!([failures.check(&handle), report(&failures, &failures.cursor())], [Ok(()), Ok(())]);
        failures.note(failure("second"));
        assert_eq!(report(&failures, &handle), failure("second"));
    }
}
