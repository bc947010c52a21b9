//! How long a stripe is: for its readers, and on its disk.
//!
//! Accepted writes count at once, long before the disk has them. So there are three ends:
//!
//! ```text
//!   on the disk  <=  where writes to the disk end that are under way  <=  all that was accepted: the length
//! ```
//!
//! If a write is lost that had made the stripe longer, the stripe ends where the last byte is that is left of it: on
//! the disk, on the way there, or in the cache. What lay beyond does not read as zeros: the stripe does not have it any
//! more.

use std::cell::{Cell, RefCell};

/// The length of an open stripe.
pub(super) struct StripeLength {
    bytes: Cell<u64>,
    /// Its length on the disk, as far as is known here.
    on_disk: Cell<u64>,
    /// Where the writes to the disk end that are under way.
    going: RefCell<Vec<u64>>,
}

impl StripeLength {
    /// The length of a stripe that has `bytes` bytes, all of them on its disk.
    pub(super) fn on_disk(bytes: u64) -> Self {
        StripeLength { bytes: Cell::new(bytes), on_disk: Cell::new(bytes), going: RefCell::default() }
    }

    /// In bytes, with what is still in the cache.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// On its disk, as far as is known here.
    pub(super) fn bytes_on_disk(&self) -> u64 {
        self.on_disk.get()
    }

    /// Notes that the stripe reaches at least to `end`.
    pub(super) fn reach(&self, end: u64) {
        self.bytes.set(self.bytes.get().max(end));
    }

    /// Notes that the disk has been told that the stripe ends at `end`. Gives the lesser of the disk's old end and
    /// `end`: what lies beyond is as the disk has been told.
    pub(super) fn set_end(&self, end: u64) -> u64 {
        self.bytes.set(end);
        end.min(self.on_disk.replace(end))
    }

    /// Notes that a write to the disk begins that ends at `end`.
    pub(super) fn begin_write(&self, end: u64) {
        self.going.borrow_mut().push(end);
    }

    /// Notes that such a write is over, and whether the disk has taken it.
    pub(super) fn end_write(&self, end: u64, is_taken: bool) {
        let mut going = self.going.borrow_mut();
        let at = going.iter().position(|&other| other == end).expect("it has begun");
        going.swap_remove(at);
        if is_taken {
            self.on_disk.set(self.on_disk.get().max(end));
        }
    }

    /// Notes that writes that extended the stripe may be lost. The rest reaches to `dirty_end` in the cache.
    pub(super) fn fall_back(&self, dirty_end: u64) {
        let going = self.going.borrow().iter().copied().max().unwrap_or(0);
        self.bytes.set(self.on_disk.get().max(going).max(dirty_end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripe_is_as_long_as_what_was_accepted() {
        let length = StripeLength::on_disk(10);
        length.reach(5);
        assert_eq!(length.bytes(), 10);
        length.reach(30);
        assert_eq!(length.bytes(), 30);
        assert_eq!((length.set_end(20), length.bytes()), (10, 20));
    }

    #[test]
    fn a_lost_write_leaves_the_stripe_as_long_as_there_is_anything_of_it() {
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
        assert_eq!(length.bytes(), 30, "on its way");
        length.end_write(30, true);
        length.fall_back(0);
        assert_eq!(length.bytes(), 30, "on the disk");
    }
}
