//! How long a file is, as far as a client knows.
//!
//! Two ends make a length: the end of the file as far as is known here, and the end of this client's *own* writes that
//! others may not count yet. A length heard from others never cuts off own writes; once others count these too, they
//! are no longer kept apart, and the length is the one that others tell.
//!
//! An open file keeps apart what has not been committed; the page cache in front of it, what has not been sent.

use std::cell::Cell;

/// The length of a file.
pub(super) struct Length {
    bytes: Cell<u64>,
    /// Where the furthest of one's own writes ends that others may not count.
    own_end: Cell<u64>,
}

impl Length {
    /// The length that others have told.
    pub(super) fn heard(bytes: u64) -> Self {
        Length { bytes: Cell::new(bytes), own_end: Cell::new(0) }
    }

    /// In bytes, as far as is known here.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Where the furthest of one's own writes ends that others may not count; 0 if there is none.
    pub(super) fn own_end(&self) -> u64 {
        self.own_end.get()
    }

    /// Takes in a length from others, which may lack what was done here.
    pub(super) fn hear(&self, bytes: u64) {
        self.bytes.set(bytes.max(self.own_end.get()));
    }

    /// Notes a write of one's own that ends at `end`.
    pub(super) fn reach(&self, end: u64) {
        self.bytes.set(self.bytes.get().max(end));
        self.own_end.set(self.own_end.get().max(end));
    }

    /// Notes that the file ends at `end` now.
    pub(super) fn cut(&self, end: u64) {
        self.bytes.set(end);
        self.own_end.set(self.own_end.get().min(end));
    }

    /// Notes that others count what was done here up to `end`: none of it is kept apart, if that was all.
    pub(super) fn settle(&self, end: u64) {
        if self.own_end.get() <= end {
            self.own_end.set(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(length: &Length) -> (u64, u64) {
        (length.bytes(), length.own_end())
    }

    #[test]
    fn what_is_heard_does_not_cut_off_what_was_written_here() {
        let length = Length::heard(100);
        length.reach(50);
        length.reach(150);
        length.hear(120);
        assert_eq!(ends(&length), (150, 150));
        length.hear(200);
        assert_eq!(ends(&length), (200, 150));
    }

    #[test]
    fn what_others_count_is_theirs_to_tell() {
        let length = Length::heard(0);
        length.reach(150);
        length.settle(149);
        length.hear(10);
        assert_eq!(ends(&length), (150, 150), "the last byte was not among it");
        length.settle(150);
        length.hear(10);
        assert_eq!(ends(&length), (10, 0), "somebody has cut the file");
    }

    #[test]
    fn a_cut_takes_ones_own_end_along() {
        let length = Length::heard(100);
        length.reach(150);
        length.cut(120);
        assert_eq!(ends(&length), (120, 120));
        length.cut(130);
        length.hear(40);
        assert_eq!(ends(&length), (120, 120), "what is beyond one's own writes is for others to say");
    }
}
