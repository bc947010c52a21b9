//! Reserved space on the file system of a database. Without a reserve no file could be removed on a full disk: removing
//! a name takes a commit, and a commit needs some pages. While part of the reserve is released, transactions that add
//! entries fail. Otherwise programs that continue to create files would use up the space that is needed to remove
//! files.

use std::cell::Cell;
use std::fs::File;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::statvfs::statvfs;

/// Size of the reserve in bytes. The next constant is the size of each released part: about twenty commits in the
/// journal.
const BYTES: u64 = 1 << 20;
const GIVEN_BYTES: u64 = BYTES / 4;

/// Length of the file after the whole reserve is released. Distinguishes the file from one to which space was never
/// allocated.
const GIVEN_AWAY: u64 = 1;

/// Free space required to allocate the reserve, as a multiple of its size.
const FREE_TIMES: u64 = 4;

/// Reserve of a database: a file next to the database, with allocated space but no contents.
pub(super) struct Reserve {
    path: PathBuf,
    /// True if nothing is left to allocate: the reserve is complete, or the file system does not support allocation.
    is_settled: Cell<bool>,
}

impl Reserve {
    /// Creates the reserve of a database. The file is created when it is first [filled](Self::fill).
    pub(super) fn of(database: &Path) -> Self {
        Reserve { path: database.with_extension("reserve"), is_settled: false.into() }
    }

    /// Allocates the whole reserve if there is enough space; otherwise a later call retries.
    pub(super) fn fill(&self) {
        if !self.is_settled.get() {
            self.is_settled.set(self.allocate().unwrap_or(false));
        }
    }

    fn allocate(&self) -> Result<bool> {
        let space = statvfs(self.path.parent().unwrap_or(Path::new(".")))?;
        if space.blocks_available() * space.fragment_size() < FREE_TIMES * BYTES {
            return Ok(false);
        }
        let file = File::options().create(true).truncate(false).write(true).open(&self.path)?;
        match fallocate(&file, FallocateFlags::empty(), 0, BYTES as i64) {
            Ok(()) | Err(Errno::EOPNOTSUPP) => Ok(true),
            Err(error) => Err(Error::from(error)),
        }
    }

    /// Allocates space for `bytes` bytes of the journal at once, if possible. Otherwise the journal would take the
    /// space later, when other writes have already been accepted for the same space.
    pub(super) fn take_for_journal(&self, bytes: u64) {
        let journal = self.path.with_extension("db-wal");
        let take = || {
            let file = File::options().write(true).open(journal)?;
            // The length must not change: it marks the end of the journal's contents.
            Ok(fallocate(&file, FallocateFlags::FALLOC_FL_KEEP_SIZE, 0, bytes as i64)?)
        };
        let _: Result<()> = take();
    }

    /// Releases a part of the reserve to the file system, for use by the next commit. Returns true if a part was left
    /// to release.
    pub(super) fn give(&self) -> bool {
        self.is_settled.set(false);
        let bytes = self.bytes();
        let left = bytes.saturating_sub(GIVEN_BYTES).max(GIVEN_AWAY);
        let give = || File::options().write(true).open(&self.path)?.set_len(left);
        bytes > left && give().is_ok()
    }

    /// Returns true if the whole reserve is released.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes() <= GIVEN_AWAY
    }

    /// Returns true if a released part has not been allocated again.
    pub(super) fn is_broken(&self) -> bool {
        !self.is_settled.get() && (GIVEN_AWAY..BYTES).contains(&self.bytes())
    }

    fn bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |file| file.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_released_in_parts_and_filled_again() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let reserve = Reserve::of(&place.path().join("some.db"));
        assert!(!reserve.give() && reserve.is_empty() && !reserve.is_broken());
        for _ in 0..2 {
            reserve.fill();
            assert!(reserve.bytes() == BYTES && !reserve.is_broken());
            for given in 1..=BYTES / GIVEN_BYTES {
                assert!(!reserve.is_empty() && reserve.give());
                assert_eq!(reserve.bytes(), (BYTES - given * GIVEN_BYTES).max(GIVEN_AWAY));
                // A reserve opened after a restart is in the same state.
                assert!(reserve.is_broken() && Reserve::of(&place.path().join("some.db")).is_broken());
            }
            assert!(reserve.is_empty() && !reserve.give() && reserve.is_broken());
        }
    }
}
