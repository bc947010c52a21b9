//! Write-back: sends written data to the medium while more data arrive, instead of all of them at the flush.
//!
//! The system keeps written data in its page cache for half a minute, or until they fill a tenth of the memory. If a
//! program writes less than that and then flushes, the disk would be idle until the flush. So this module requests the
//! write-back of each group after a write has reached its end. The request is only a hint: the flush writes the
//! remaining data.
//!
//! ```text
//! written   | group 0 | group 1 | group 2 | group 3 |
//! requested |----0----|                              at once
//!                      |-----1 and 2-----|           when the first request returns, which can block
//! ```

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;

use nix::libc;

use super::blocking;

/// Ranges of a file to write back.
#[derive(Debug, Default)]
pub(crate) struct WriteBack {
    waiting: RefCell<Option<Range<u64>>>,
    is_busy: Cell<bool>,
}

impl WriteBack {
    /// Starts writing these bytes of the file back soon.
    pub(crate) fn begin(self: &Rc<Self>, file: BorrowedFd<'_>, range: Range<u64>) {
        let joined = join(self.waiting.take(), range);
        *self.waiting.borrow_mut() = Some(joined);
        if self.is_busy.get() {
            return;
        }
        // Another descriptor, since the file may be closed before this completes.
        let Ok(file) = file.try_clone_to_owned() else { return };
        let file = Arc::new(file);
        self.is_busy.set(true);
        let own = self.clone();
        let writing = async move {
            while let Some(range) = own.waiting.take() {
                let file = file.clone();
                blocking(move || start_write_back(file.as_fd(), range)).await;
            }
            own.is_busy.set(false);
        };
        compio::runtime::spawn(writing).detach();
    }
}

/// Returns the smallest range that contains both ranges.
fn join(one: Option<Range<u64>>, other: Range<u64>) -> Range<u64> {
    one.map_or(other.clone(), |one| one.start.min(other.start)..one.end.max(other.end))
}

/// Requests that the system begins the write-back. Can block for a long time if the disk is busy.
fn start_write_back(file: BorrowedFd<'_>, range: Range<u64>) {
    let bytes = range.end - range.start;
    if let (Ok(start), Ok(bytes)) = (range.start.try_into(), bytes.try_into()) {
        #[expect(unsafe_code, reason = "there is no safe function for it")]
        // SAFETY: the call takes numbers only, and the descriptor is open for as long as it is borrowed.
        unsafe {
            libc::sync_file_range(file.as_raw_fd(), start, bytes, libc::SYNC_FILE_RANGE_WRITE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_ranges_are_joined() {
        assert_eq!(join(None, 3..5), 3..5);
        assert_eq!(join(Some(3..5), 5..9), 3..9);
        assert_eq!(join(Some(7..9), 1..2), 1..9);
    }
}
