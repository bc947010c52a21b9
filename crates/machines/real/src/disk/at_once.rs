//! Reads and writes of disk files that need no waiting run directly on the node's own thread.
//!
//! Copying a page that the system has in memory takes ten microseconds. Going through the runtime takes longer, and
//! some file systems pass even such a copy to a kernel thread.
//!
//! ```text
//! read:  at once, as far as the system has it  --- not all of it ---> the runtime, which waits for the disk
//! write: at once, if the file lies in memory   --- it does not -----> the runtime
//! ```

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;

use compio::buf::IoBuf;
use nix::errno::Errno;
use nix::libc;
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use nix::sys::uio::pwritev;

use crate::bytes::ByteRun;

/// Extent to which files of a directory can be used without waiting.
#[derive(Debug)]
pub(crate) struct AtOnce(Cell<Extent>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// All files are in memory.
    Everything,
    /// The file system can limit reads to the page cache.
    WhatIsCached,
    /// No access without waiting: the file system cannot limit reads to the page cache.
    Nothing,
}

impl AtOnce {
    /// Determines the extent for the file system of this directory.
    pub(crate) fn of(directory: &Path) -> Self {
        let in_memory = statfs(directory).is_ok_and(|system| system.filesystem_type() == TMPFS_MAGIC);
        AtOnce(Cell::new(if in_memory { Extent::Everything } else { Extent::WhatIsCached }))
    }

    /// Returns true if all files are in memory.
    pub(crate) fn is_everything(&self) -> bool {
        self.0.get() == Extent::Everything
    }

    /// Appends up to `bytes` bytes from `position` on, if available without waiting; `memory` must have room for them.
    /// Returns the number of bytes read, 0 at the end of the file, or `None` if the caller has to wait.
    pub(crate) fn read(
        &self,
        file: BorrowedFd<'_>,
        memory: &mut Vec<u8>,
        bytes: usize,
        position: u64,
    ) -> io::Result<Option<usize>> {
        let flags = match self.0.get() {
            Extent::Everything => 0,
            Extent::WhatIsCached => libc::RWF_NOWAIT,
            Extent::Nothing => return Ok(None),
        };
        let spare = memory.spare_capacity_mut();
        let part = libc::iovec { iov_base: spare.as_mut_ptr().cast(), iov_len: bytes.min(spare.len()) };
        let position = libc::off_t::try_from(position).map_err(|_| io::ErrorKind::FileTooLarge)?;
        #[expect(
            unsafe_code,
            reason = "safe functions read this way into memory only that was filled with zeros before"
        )]
        // SAFETY: the system writes at most `iov_len` bytes from `iov_base` on. That many bytes belong to `memory`
        // alone, and the system keeps no reference to them after the call.
        let read = unsafe { libc::preadv2(file.as_raw_fd(), &raw const part, 1, position, flags) };
        let Ok(read) = usize::try_from(read) else {
            return match Errno::last() {
                Errno::EAGAIN | Errno::EINTR => Ok(None),
                Errno::EOPNOTSUPP | Errno::ENOSYS if flags == libc::RWF_NOWAIT => {
                    self.0.set(Extent::Nothing);
                    Ok(None)
                }
                error => Err(error.into()),
            };
        };
        #[expect(unsafe_code, reason = "the counterpart of the call above")]
        // SAFETY: `read` bytes after the first `len` have just been written, within the capacity.
        unsafe {
            memory.set_len(memory.len() + read);
        }
        Ok(Some(read))
    }

    /// Writes these bytes from `position` on, as far as possible without waiting. Returns the number of bytes written.
    pub(crate) fn write(&self, file: BorrowedFd<'_>, runs: &[ByteRun], position: u64) -> io::Result<usize> {
        if self.0.get() != Extent::Everything {
            return Ok(0);
        }
        let slices: Vec<IoSlice<'_>> = runs.iter().map(|run| IoSlice::new(run.as_init())).collect();
        let position = libc::off_t::try_from(position).map_err(|_| io::ErrorKind::FileTooLarge)?;
        match pwritev(file, &slices, position) {
            Err(Errno::EINTR) => Ok(0),
            outcome => Ok(outcome?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn recently_written_data_are_read_at_once_or_not_at_all() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(b"a file of some length").expect("room");
        for extent in [Extent::Everything, Extent::WhatIsCached, Extent::Nothing] {
            let at_once = AtOnce(Cell::new(extent));
            let mut memory = b"> ".to_vec();
            memory.reserve(4);
            let read = at_once.read(file.as_fd(), &mut memory, 4, 2).expect("readable");
            assert_eq!(memory, b"> file"[..2 + read.unwrap_or(0)].to_vec());
            // A file system without support for such reads is recorded as one.
            let expected = (at_once.0.get() != Extent::Nothing).then_some(4);
            assert_eq!((extent, read), (extent, expected));
        }
    }

    #[test]
    fn a_read_past_the_end_returns_no_bytes() {
        let file = tempfile::tempfile().expect("a file");
        let mut memory = Vec::with_capacity(100);
        let at_once = AtOnce(Cell::new(Extent::Everything));
        let read = at_once.read(file.as_fd(), &mut memory, 100, 5);
        assert_eq!((read.expect("readable"), memory.len()), (Some(0), 0));
    }

    #[test]
    fn writes_complete_at_once_only_in_memory() {
        let file = tempfile::tempfile().expect("a file");
        let runs = [b"one ".to_vec(), b"two".to_vec()].map(ByteRun::Owned);
        let write = |extent| AtOnce(Cell::new(extent)).write(file.as_fd(), &runs, 0).expect("room");
        assert_eq!(write(Extent::WhatIsCached), 0);
        assert_eq!(file.metadata().expect("a file").len(), 0);
        assert_eq!(write(Extent::Everything), 7);
        assert_eq!(file.metadata().expect("a file").len(), 7);
    }
}
