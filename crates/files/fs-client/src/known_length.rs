//! The length of a file, as far as a client knows it.
//!
//! A length has two parts: the known end of the file, and the end of this client's *own* writes that others may not
//! count yet. A length reported by others never cuts off own writes. Once others count these writes, the reported
//! length alone is valid.
//!
//! An open file keeps uncommitted writes apart; the page cache in front of it, unsent ones.

use std::cell::Cell;

/// The length of a file.
pub(super) struct Length {
    bytes: Cell<u64>,
    /// End of own writes that others may not count yet.
    own_end: Cell<u64>,
}

impl Length {
    /// Returns a length that others have reported.
    pub(super) fn reported(bytes: u64) -> Self {
        Length { bytes: Cell::new(bytes), own_end: Cell::new(0) }
    }

    /// Returns the length in bytes, as far as this client knows it.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Returns the end of own writes that others may not count yet; 0 if there are no such writes.
    pub(super) fn own_end(&self) -> u64 {
        self.own_end.get()
    }

    /// Updates the length to one that others report, which may lack own writes.
    pub(super) fn note_reported(&self, bytes: u64) {
        machine::sometimes!("a reported length is less than the end of local writes", if bytes < self.own_end.get());
        self.bytes.set(bytes.max(self.own_end.get()));
    }

    /// Records an own write that ends at `end`.
    pub(super) fn reach(&self, end: u64) {
        self.bytes.set(self.bytes.get().max(end));
        self.own_end.set(self.own_end.get().max(end));
    }

    /// Records that the file now ends at `end`.
    pub(super) fn cut(&self, end: u64) {
        self.bytes.set(end);
        self.settle_beyond(end);
    }

    /// Records that others count all own writes that end beyond `end`.
    pub(super) fn settle_beyond(&self, end: u64) {
        self.own_end.set(self.own_end.get().min(end));
    }

    /// Records that others count own writes up to `end`. Own writes are no longer kept apart if none ends later.
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
    fn a_shorter_reported_length_does_not_cut_off_local_writes() {
        let length = Length::reported(100);
        length.reach(50);
        length.reach(150);
        length.note_reported(120);
        assert_eq!(ends(&length), (150, 150));
        length.note_reported(200);
        assert_eq!(ends(&length), (200, 150));
    }

    #[test]
    fn a_reported_length_can_cut_off_settled_writes() {
        let length = Length::reported(0);
        length.reach(150);
        length.settle(149);
        length.note_reported(10);
        assert_eq!(ends(&length), (150, 150), "the last byte was not among it");
        length.settle(150);
        length.note_reported(10);
        assert_eq!(ends(&length), (10, 0), "another client has truncated the file");
    }

    #[test]
    fn a_reported_length_cuts_off_all_but_the_writes_that_are_left() {
        let length = Length::reported(0);
        length.reach(150);
        length.settle_beyond(30);
        length.note_reported(10);
        assert_eq!(ends(&length), (30, 30));
    }

    #[test]
    fn a_truncation_also_shortens_the_end_of_local_writes() {
        let length = Length::reported(100);
        length.reach(150);
        length.cut(120);
        assert_eq!(ends(&length), (120, 120));
        length.cut(130);
        length.note_reported(40);
        assert_eq!(ends(&length), (120, 120), "others report the length beyond own writes");
    }
}
