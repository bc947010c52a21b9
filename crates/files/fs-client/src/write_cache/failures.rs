//! Records failures of a member's flushes, and reports them.
//!
//! Each caller that waits for a flush gets the result of that flush. A failure that no caller waits for is reported
//! once, unless a later flush has written the data that remained in the logs.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::protocol::FileId;

/// The failures of a member's flushes.
#[derive(Default)]
pub(super) struct FlushFailures {
    /// Failures of flushes whose data no later flush has written, by the numbers of the flushes.
    of_flushes: RefCell<BTreeMap<u32, Failure>>,
    /// The first unreported failure.
    unreported: RefCell<Option<Failure>>,
    /// Reason why some data will never be flushed, if it is not yet reported.
    given_up: RefCell<Option<Box<Error>>>,
}

/// A failure of a flush of one file or of all files.
struct Failure {
    file: Option<FileId>,
    error: Box<Error>,
}

/// Maximum number of failures that are kept by flush number. It can be small, because a waiting caller reads the result
/// when the flush completes.
const KEPT_MAX: usize = 16;

impl FlushFailures {
    /// Records that the flush of this number has failed.
    pub(super) fn note(&self, number: u32, file: Option<FileId>, error: &Error) {
        let mut of_flushes = self.of_flushes.borrow_mut();
        of_flushes.insert(number, Failure { file, error: Box::new(error.clone()) });
        if of_flushes.len() > KEPT_MAX {
            of_flushes.pop_first();
        }
        self.note_unreported(file, error);
    }

    /// Records that a flush could not start.
    pub(super) fn note_unreported(&self, file: Option<FileId>, error: &Error) {
        let mut unreported = self.unreported.borrow_mut();
        // A failure of all files takes precedence, because a flush of one file does not clear it.
        if unreported.as_ref().is_none_or(|unreported| unreported.file.is_some() && file.is_none()) {
            *unreported = Some(Failure { file, error: Box::new(error.clone()) });
        }
    }

    /// Records that the writes to a file, or to all files, were flushed.
    pub(super) fn clear(&self, file: Option<FileId>) {
        let mends = |failure: &Failure| file.is_none() || failure.file == file;
        self.of_flushes.borrow_mut().retain(|_, failure| !mends(failure));
        self.unreported.borrow_mut().take_if(|unreported| mends(unreported));
    }

    /// Records that some data will never be flushed.
    pub(super) fn give_up(&self, why: Box<Error>) {
        self.given_up.borrow_mut().get_or_insert(why);
    }

    /// Drops the flush numbers, because the numbering starts again.
    pub(super) fn forget_numbers(&self) {
        self.of_flushes.borrow_mut().clear();
    }

    /// Returns the result of the completed flush `number`. This is success if a later flush has written the same files.
    pub(super) fn outcome_of(&self, number: u32) -> Result<()> {
        let of_flushes = self.of_flushes.borrow();
        of_flushes.get(&number).map_or(Ok(()), |failure| Err(failure.error.clone()))
    }

    /// Returns true if there is an unreported failure.
    pub(super) fn has_unreported(&self) -> bool {
        self.unreported.borrow().is_some() || self.given_up.borrow().is_some()
    }

    /// Fails once if data were discarded. For a caller whose remaining data have all been flushed.
    pub(super) fn report_given_up(&self) -> Result<()> {
        self.given_up.borrow_mut().take().map_or(Ok(()), Err)
    }

    /// Fails with an unreported failure, if any, and marks it as reported.
    pub(super) fn report(&self) -> Result<()> {
        self.report_given_up()?;
        self.unreported.borrow_mut().take().map_or(Ok(()), |unreported| Err(unreported.error))
    }

    /// Records that a failure has been reported to a caller.
    pub(super) fn mark_reported(&self) {
        self.unreported.borrow_mut().take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> Error {
        Error::Invalid(text.into())
    }

    fn text_of(outcome: Result<()>) -> Option<String> {
        outcome.err().map(|error| error.to_string())
    }

    #[test]
    fn all_waiters_of_a_flush_get_its_failure_and_others_get_it_once() {
        let failures = FlushFailures::default();
        failures.note(3, None, &error("three"));
        failures.note(4, None, &error("four"));
        for _ in 0..2 {
            assert_eq!(text_of(failures.outcome_of(3)).as_deref(), Some("three"));
        }
        assert_eq!(
            (text_of(failures.report()).as_deref(), text_of(failures.report())),
            (Some("three"), None)
        );
        failures.clear(None);
        assert_eq!((text_of(failures.outcome_of(3)), text_of(failures.outcome_of(4))), (None, None));
    }

    #[test]
    fn a_flush_of_one_file_clears_no_failure_of_other_files() {
        let failures = FlushFailures::default();
        failures.note(1, Some(FileId(1)), &error("one"));
        failures.note(2, None, &error("all"));
        failures.clear(Some(FileId(1)));
        assert_eq!(
            (text_of(failures.outcome_of(1)), text_of(failures.outcome_of(2))),
            (None, Some("all".into()))
        );
        failures.clear(Some(FileId(2)));
        assert_eq!(text_of(failures.report()).as_deref(), Some("all"));
        failures.note_unreported(Some(FileId(1)), &error("one"));
        failures.clear(Some(FileId(1)));
        assert!(!failures.has_unreported());
    }

    #[test]
    fn abandoned_writes_are_reported_after_a_successful_flush() {
        let failures = FlushFailures::default();
        failures.give_up(error("removed").into());
        failures.clear(None);
        assert_eq!(text_of(failures.report_given_up()).as_deref(), Some("removed"));
        assert!(!failures.has_unreported());
    }
}
