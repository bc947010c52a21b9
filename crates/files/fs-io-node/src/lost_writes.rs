//! Accepted writes to a stripe that did not reach its disk.
//!
//! The writer gets the failure at its next flush. Reads of the lost bytes fail, too: the bytes on the disk,
//! often zeros, were never written by a client.

use std::cell::RefCell;
use std::ops::Range;

use machine::RangeSet;

use crate::error::{Failure, FailureKind};

/// The lost bytes of a stripe, until they are written again.
#[derive(Default)]
pub(super) struct LostWrites {
    bytes: RefCell<RangeSet>,
    /// Reason for the last loss.
    why: RefCell<String>,
}

impl LostWrites {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.borrow().is_empty()
    }

    pub(super) fn note(&self, range: Range<u64>, failure: &Failure) {
        self.bytes.borrow_mut().insert(range);
        self.why.borrow_mut().clone_from(&failure.text);
    }

    /// Marks a range as written again.
    pub(super) fn clear(&self, range: &Range<u64>) {
        if !self.is_empty() {
            self.bytes.borrow_mut().remove(range);
        }
    }

    /// Returns the first lost range at or after an offset.
    pub(super) fn after(&self, offset: u64) -> Option<Range<u64>> {
        self.bytes.borrow().within(&(offset..u64::MAX)).next()
    }

    /// Removes the losses beyond the stripe's new end.
    pub(super) fn cut(&self, end: u64) {
        self.bytes.borrow_mut().truncate(end);
    }

    /// Fails if any byte of the range was lost.
    pub(super) fn check(&self, range: &Range<u64>) -> Result<(), Box<Failure>> {
        if self.is_empty() || !self.bytes.borrow().overlaps(range) {
            return Ok(());
        }
        machine::sometimes!("a read finds a lost write");
        let text = format!("data written there did not reach the disk: {}", self.why.borrow());
        Err(Failure::new(FailureKind::Damaged, text).into())
    }
}
