//! State of an open directory: the names returned to the kernel, each with its position, and the number of entries the
//! kernel accepts at a time.

use std::cell::{Cell, RefCell};

use namespace::FileNumber;

/// Number of bytes of entries per request: the initial value, and the maximum.
const ASKED_BYTES_MAX: u32 = 32 << 10;

/// An open directory.
pub(crate) struct OpenDirectory {
    pub(crate) number: FileNumber,
    /// Names returned so far.
    given: RefCell<Vec<Box<[u8]>>>,
    asked_bytes: Cell<u32>,
}

impl OpenDirectory {
    pub(crate) fn new(number: FileNumber) -> Self {
        OpenDirectory { number, given: RefCell::default(), asked_bytes: Cell::new(ASKED_BYTES_MAX) }
    }

    /// Forgets the returned names: the listing restarts.
    pub(crate) fn begin(&self) {
        self.given.borrow_mut().clear();
    }

    /// Returns the name that was returned at a position.
    pub(crate) fn given(&self, place: usize) -> Option<Vec<u8>> {
        self.given.borrow().get(place).map(|name| name.to_vec())
    }

    /// Returns the position of a name that the listing reaches at `place`: `place` if the same name was returned there
    /// before, otherwise a new position. So a program that seeks back and reads again does not use more memory each
    /// time.
    pub(crate) fn place_of(&self, place: usize, name: &[u8]) -> usize {
        let given = self.given.borrow();
        if given.get(place).is_some_and(|given| **given == *name) { place } else { given.len() }
    }

    /// Records that a name was returned at its position.
    pub(crate) fn note_given(&self, place: usize, name: Vec<u8>) {
        let mut given = self.given.borrow_mut();
        if place == given.len() {
            given.push(name.into());
        }
    }

    /// Returns the number of bytes of entries to request.
    pub(crate) fn asked_bytes(&self) -> u32 {
        self.asked_bytes.get()
    }

    /// Records the number of entries that fitted into the kernel's buffer. The next request is for about the same
    /// number, because older kernels accept one page at a time, and the metadata server would read the other entries in
    /// vain.
    pub(crate) fn note_taken(&self, taken: usize, of: usize) {
        let asked = u64::from(self.asked_bytes.get());
        let next = if taken == of { asked * 2 } else { asked * (taken as u64 + 1) / of as u64 };
        self.asked_bytes.set(next.min(ASKED_BYTES_MAX.into()) as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(open: &OpenDirectory, mut place: usize, names: &[&str]) -> Vec<usize> {
        let give = |name: &&str| {
            let given = open.place_of(place, name.as_bytes());
            open.note_given(given, name.as_bytes().to_vec());
            place = given + 1;
            given
        };
        names.iter().map(give).collect()
    }

    #[test]
    fn entries_listed_again_keep_their_positions() {
        let open = OpenDirectory::new(FileNumber::ROOT);
        assert_eq!(list(&open, 0, &["a", "b", "d", "e"]), [0, 1, 2, 3]);
        for _ in 0..3 {
            assert_eq!(list(&open, 1, &["b", "d"]), [1, 2]);
        }
        // The entry `c`, added between `b` and `d`, and the entries after it get new positions; `b` keeps its position.
        assert_eq!(list(&open, 1, &["b", "c", "d"]), [1, 4, 5]);
        assert_eq!(open.given(2), Some(b"d".to_vec()));
        assert_eq!(list(&open, 4, &["c", "d", "e", "f"]), [4, 5, 6, 7]);
        open.begin();
        assert_eq!(list(&open, 0, &["a"]), [0]);
        assert_eq!(open.given(1), None);
    }

    #[test]
    fn the_request_size_follows_the_entries_that_the_kernel_takes() {
        let open = OpenDirectory::new(FileNumber::ROOT);
        let entry_bytes = 130;
        let mut offered = 0;
        for room in [21, 21, 21, 1000, 1000, 1000, 1000, 1000] {
            let there = open.asked_bytes() as usize / entry_bytes;
            offered = there.max(1);
            open.note_taken(offered.min(room), offered);
            if room == 21 {
                assert!((21..30).contains(&(open.asked_bytes() as usize / entry_bytes)), "{offered}");
            }
        }
        assert_eq!(offered, ASKED_BYTES_MAX as usize / entry_bytes, "it has room again");
        open.note_taken(0, 200);
        assert!(open.asked_bytes() > 0);
    }
}
