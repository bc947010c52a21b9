//! Writing back: written data go on to the medium while more is coming, not all of them with the flush.
//!
//! The system keeps what is written in its page cache for half a minute, or until a tenth of the memory is full of it.
//! A program that writes less than that and then flushes would find that the disk had been idle before. So the system
//! is told of each group of which a write has reached the end. That is a hint: what the system does not write back
//! then, the flush does.
//!
//! ```text
//! written   | group 0 | group 1 | group 2 | group 3 |
//! told of   |----0----|                              at once
//!                      |-----1 and 2-----|           when it has taken group 0: it may have to wait for the disk
//! ```

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;

use nix::libc;

use super::blocking;

/// What of a file is to be written back.
#[derive(Debug, Default)]
pub(crate) struct WriteBack {
    waiting: RefCell<Option<Range<u64>>>,
    is_busy: Cell<bool>,
}

impl WriteBack {
    /// Has these bytes of the file written back soon.
    pub(crate) fn begin(self: &Rc<Self>, file: BorrowedFd<'_>, range: Range<u64>) {
        let joined = join(self.waiting.take(), range);
        *self.waiting.borrow_mut() = Some(joined);
        if self.is_busy.get() {
            return;
        }
        // Another descriptor, since the file may be closed meanwhile.
        let Ok(file) = file.try_clone_to_owned() else { return };
        let file = Arc::new(file);
        self.is_busy.set(true);
        let own = self.clone();
        let writing = async move {
            while let Some(range) = own.waiting.take() {
                let file = file.clone();
                blocking(move || tell(file.as_fd(), range)).await;
            }
            own.is_busy.set(false);
        };
        compio::runtime::spawn(writing).detach();
    }
}

/// The least range that has both.
fn join(one: Option<Range<u64>>, other: Range<u64>) -> Range<u64> {
    one.map_or(other.clone(), |one| one.start.min(other.start)..one.end.max(other.end))
}

/// Tells the system to begin writing back; that may take as long as the disk has much to do.
fn tell(file: BorrowedFd<'_>, range: Range<u64>) {
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
    fn what_waits_is_joined() {
        assert_eq!(join(None, 3..5), 3..5);
        assert_eq!(join(Some(3..5), 5..9), 3..9);
        assert_eq!(join(Some(7..9), 1..2), 1..9);
    }
}
