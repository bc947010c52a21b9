//! Reserved room on the file system of a database. Without it no file could be removed on a full disk: removing a name
//! takes a commit, and a commit takes some pages. While some of it is given, nothing is added to the database: else
//! programs that go on making files would use up what is there to remove some.

use std::cell::Cell;
use std::fs::File;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::statvfs::statvfs;

/// The whole of it, and how much is given at a time: some twenty commits that wait in the journal.
const BYTES: u64 = 1 << 20;
const GIVEN_BYTES: u64 = BYTES / 4;

/// What is left of the file when all was given, by which it differs from one that never had any space.
const GIVEN_AWAY: u64 = 1;

/// The reserve is made only where this many times its size is free.
const FREE_TIMES: u64 = 4;

/// The reserve of a database: a file beside it that holds nothing and has its space.
pub(super) struct Reserve {
    path: PathBuf,
    /// Whether it need not be made: it is there, or there is no such thing on this file system.
    is_settled: Cell<bool>,
}

impl Reserve {
    /// The reserve of a database. Its file is not there before it is [filled](Self::fill).
    pub(super) fn of(database: &Path) -> Self {
        Reserve { path: database.with_extension("reserve"), is_settled: false.into() }
    }

    /// Makes it whole, if there is enough room: otherwise some later time.
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

    /// Has the journal take now what `bytes` of it take on the file system, if there is enough room. It would take that
    /// while data come that were promised the same room.
    pub(super) fn take_for_journal(&self, bytes: u64) {
        let journal = self.path.with_extension("db-wal");
        let take = || {
            let file = File::options().write(true).open(journal)?;
            // Its length stays: what is in it ends there.
            Ok(fallocate(&file, FallocateFlags::FALLOC_FL_KEEP_SIZE, 0, bytes as i64)?)
        };
        let _: Result<()> = take();
    }

    /// Gives some of it back to the file system, where it is soon taken; says whether there was anything to give.
    pub(super) fn give(&self) -> bool {
        self.is_settled.set(false);
        let bytes = self.bytes();
        let left = bytes.saturating_sub(GIVEN_BYTES).max(GIVEN_AWAY);
        let give = || File::options().write(true).open(&self.path)?.set_len(left);
        bytes > left && give().is_ok()
    }

    /// Whether nothing is left to give.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes() <= GIVEN_AWAY
    }

    /// Whether some of it was given and has not come back.
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
    fn it_is_given_in_parts_and_filled_again() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let reserve = Reserve::of(&place.path().join("some.db"));
        assert!(!reserve.give() && reserve.is_empty() && !reserve.is_broken());
        for _ in 0..2 {
            reserve.fill();
            assert!(reserve.bytes() == BYTES && !reserve.is_broken());
            for given in 1..=BYTES / GIVEN_BYTES {
                assert!(!reserve.is_empty() && reserve.give());
                assert_eq!(reserve.bytes(), (BYTES - given * GIVEN_BYTES).max(GIVEN_AWAY));
                // As after a restart.
                assert!(reserve.is_broken() && Reserve::of(&place.path().join("some.db")).is_broken());
            }
            assert!(reserve.is_empty() && !reserve.give() && reserve.is_broken());
        }
    }
}
