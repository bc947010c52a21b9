//! The length of a stripe, for its readers and on its disk.
//!
//! Accepted writes count at once, long before they are on the disk. So there are three ends:
//!
//! ```text
//!   on the disk  <=  end of the writes to the disk in flight  <=  end of all accepted data: the length
//! ```
//!
//! If a write is lost that had extended the stripe, the stripe ends at the last byte that remains: on the
//! disk, in a write in flight, or in the cache. The range beyond that end does not read as zeros: it no
//! longer belongs to the stripe.

use std::cell::{Cell, RefCell};

pub(super) struct StripeLength {
    bytes: Cell<u64>,
    /// Length in bytes on the disk, as far as this node knows.
    on_disk: Cell<u64>,
    /// End offsets of the writes to the disk in flight.
    going: RefCell<Vec<u64>>,
}

impl StripeLength {
    /// Creates the length of a stripe with `bytes` bytes, all of them on its disk.
    pub(super) fn on_disk(bytes: u64) -> Self {
        StripeLength { bytes: Cell::new(bytes), on_disk: Cell::new(bytes), going: RefCell::default() }
    }

    /// Returns the length in bytes, including data that are only in the cache.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Returns the length in bytes on the disk, as far as this node knows.
    pub(super) fn bytes_on_disk(&self) -> u64 {
        self.on_disk.get()
    }

    /// Extends the length to at least `end`.
    pub(super) fn reach(&self, end: u64) {
        self.bytes.set(self.bytes.get().max(end));
    }

    /// Records that the disk was set to end the stripe at `end`. Returns the smaller of the disk's old end
    /// and `end`: beyond it the contents are as set by the disk.
    pub(super) fn set_end(&self, end: u64) -> u64 {
        self.bytes.set(end);
        end.min(self.on_disk.replace(end))
    }

    /// Begins a write to the disk that ends at `end`.
    pub(super) fn begin_write(&self, end: u64) {
        self.going.borrow_mut().push(end);
    }

    /// Completes such a write; `is_taken` is true if the disk has written it.
    pub(super) fn end_write(&self, end: u64, is_taken: bool) {
        let mut going = self.going.borrow_mut();
        let at = going.iter().position(|&other| other == end).expect("it has begun");
        going.swap_remove(at);
        if is_taken {
            self.on_disk.set(self.on_disk.get().max(end));
        }
    }

    /// Recomputes the length after writes that extended the stripe may have been lost. The cache has dirty
    /// bytes up to `dirty_end`.
    pub(super) fn fall_back(&self, dirty_end: u64) {
        let going = self.going.borrow().iter().copied().max().unwrap_or(0);
        let end = self.on_disk.get().max(going).max(dirty_end);
        machine::sometimes!("a failed write shortens a stripe", if end < self.bytes.get());
        self.bytes.set(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_stripe_includes_accepted_writes() {
        let length = StripeLength::on_disk(10);
        length.reach(5);
        assert_eq!(length.bytes(), 10);
        length.reach(30);
        assert_eq!(length.bytes(), 30);
        assert_eq!((length.set_end(20), length.bytes()), (10, 20));
    }

    #[test]
    fn a_lost_write_shortens_a_stripe_to_the_end_of_its_other_data() {
        let length = StripeLength::on_disk(10);
        for end in [20, 30, 40, 50] {
            length.reach(end);
        }
        length.begin_write(30);
        length.begin_write(40);
        length.end_write(40, false);
        length.fall_back(35);
        assert_eq!(length.bytes(), 35, "in the cache");
        length.fall_back(0);
        assert_eq!(length.bytes(), 30, "in flight");
        length.end_write(30, true);
        length.fall_back(0);
        assert_eq!(length.bytes(), 30, "on the disk");
    }
}
