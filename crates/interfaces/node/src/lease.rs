//! Pages lent by the node thread to an application's thread.
//!
//! A page is a payload. Its memory has an `Rc` as reference count, so it is bound to the node thread. Copying the page
//! for every reader would be a second copy; atomic reference counts would slow down the simulator. So the node thread
//! keeps the payload in its [`LentPages`] and lends an address:
//!
//! ```text
//!   node thread                                application's thread
//!
//!   LentPages: number -> payload  -- LentPage: address, length, number -->  reads
//!      ^                                                                 | dropped
//!      +---- checks when it lends again --- returned: numbers <----------+
//! ```
//!
//! The `unsafe` code in this file is sound for these reasons:
//!
//! - *The memory stays valid.* A lent payload stays in its `LentPages` until its number is in the list of returned
//!   numbers, and only the drop of its `LentPage` adds a number to this list. If a `LentPages` is dropped earlier, for
//!   example because the node thread panics, it leaks lent memory instead of freeing it.
//! - *The memory does not change.* The memory behind a payload is changed only through the one `Rc` to it
//!   (`Rc::get_mut`, in `crates/machines/machine/src/payload.rs`). While the `LentPages` has its clone, no other `Rc`
//!   to the memory is the only one, and the `LentPages` changes nothing.
//! - *No count changes on other threads.* A `LentPage` has an address, not an `Rc`; clones of the payload are made and
//!   dropped only on the node thread.

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

use machine::Payload;

/// Numbers of ended leases that the node thread has not yet collected.
type EndedLeases = Arc<Mutex<Vec<u64>>>;

/// Pages that the node thread has lent to other threads.
#[derive(Default)]
pub(crate) struct LentPages {
    lent: BTreeMap<u64, Payload>,
    last: u64,
    returned: EndedLeases,
}

/// Lent page of the page cache, or a part of one. Dropping it returns the memory to the cache. If the page is dropped
/// after the node thread has ended, its memory leaks.
pub struct LentPage {
    address: *const u8,
    bytes: usize,
    number: u64,
    returned: EndedLeases,
}

#[expect(unsafe_code, reason = "the bytes stay valid and unchanged until the drop: see above")]
// SAFETY: a `LentPage` only reads bytes at its address, and they do not change as long as it exists.
unsafe impl Send for LentPage {}

impl LentPages {
    /// Lends the bytes of a payload. Copies them first unless they are one contiguous run of real bytes.
    ///
    /// # Panics
    /// If the payload is a phantom of anything but zeros: no real machine has such a payload.
    pub(crate) fn lend(&mut self, payload: Payload) -> LentPage {
        self.take_back();
        let payload = match payload.as_contiguous() {
            Some(_) => payload,
            None => Payload::from(payload.to_vec().expect("real bytes on a real machine")),
        };
        let bytes = payload.as_contiguous().expect("one run");
        let (address, length) = (bytes.as_ptr(), bytes.len());
        self.last += 1;
        self.lent.insert(self.last, payload);
        LentPage { address, bytes: length, number: self.last, returned: self.returned.clone() }
    }

    /// Frees the returned pages.
    pub(crate) fn take_back(&mut self) {
        // A panic under the lock leaves the list valid: a number was pushed, or was not.
        for number in self.returned.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            self.lent.remove(&number);
        }
    }
}

impl Drop for LentPages {
    fn drop(&mut self) {
        self.take_back();
        if !self.lent.is_empty() {
            // Other threads may still read these pages.
            mem::forget(mem::take(&mut self.lent));
        }
    }
}

impl LentPage {
    /// Returns the bytes of the page, at least one.
    #[expect(unsafe_code, reason = "the bytes stay valid and unchanged as long as `self` exists: see above")]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the bytes of a slice that is valid and unchanged until `self` is dropped.
        unsafe { slice::from_raw_parts(self.address, self.bytes) }
    }
}

impl AsRef<[u8]> for LentPage {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl fmt::Debug for LentPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LentPage").field(&self.bytes).finish()
    }
}

impl Drop for LentPage {
    fn drop(&mut self) {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn lent_data_are_read_in_another_thread_and_returned() {
        let mut lending = LentPages::default();
        let payload = Payload::from(vec![7; 1000]);
        let lent = lending.lend(payload.slice(10..20));
        drop(payload);
        let read = thread::spawn(move || lent.as_slice().to_vec()).join().expect("no panic");
        assert_eq!(read, [7; 10]);
        lending.take_back();
        assert!(lending.lent.is_empty());
    }

    #[test]
    fn zeros_and_joined_payloads_are_lent_as_one_run() {
        let mut lending = LentPages::default();
        let joined =
            Payload::concat([&Payload::from(vec![1, 2]), &Payload::zeros(2), &Payload::from(vec![3])]);
        assert_eq!(lending.lend(joined).as_slice(), [1, 2, 0, 0, 3]);
        assert_eq!(lending.lend(Payload::empty()).as_slice(), []);
    }

    #[test]
    fn lent_data_outlive_the_lender() {
        let mut lending = LentPages::default();
        let lent = lending.lend(Payload::from(vec![9; 100]));
        drop(lending);
        assert_eq!(lent.as_slice(), [9; 100]);
    }
}
