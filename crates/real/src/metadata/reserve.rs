//! Reserved room on the file system of a database. Without it no file could be removed on a full disk: removing a name
//! takes a commit, and a commit takes some pages.

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

/// The reserve is made only where this many times its size is free.
const FREE_TIMES: u64 = 4;

/// The reserve of a database: a file beside it that holds nothing and has its space.
pub(super) struct Reserve {
    path: PathBuf,
    /// Whether it need not be made: it is there, or there is no such thing on this file system.
    is_settled: Cell<bool>,
}

impl Reserve {
    /// How often there is something to give, at most.
    pub(super) const GIVES: u64 = BYTES / GIVEN_BYTES;

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

    /// Gives some of it back to the file system, where it is soon taken.
    pub(super) fn give(&self) {
        self.is_settled.set(false);
        let give = || {
            let file = File::options().write(true).open(&self.path)?;
            file.set_len(file.metadata()?.len().saturating_sub(GIVEN_BYTES))
        };
        // What cannot be given is not there.
        let _: Result<()> = give();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_given_in_parts_and_filled_again() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let reserve = Reserve::of(&place.path().join("some.db"));
        let bytes = || std::fs::metadata(place.path().join("some.reserve")).map_or(0, |file| file.len());
        reserve.give();
        assert_eq!(bytes(), 0);
        for _ in 0..2 {
            reserve.fill();
            assert_eq!(bytes(), BYTES);
            for given in 1..=Reserve::GIVES {
                reserve.give();
                assert_eq!(bytes(), BYTES - given * GIVEN_BYTES);
            }
            reserve.give();
            assert_eq!(bytes(), 0);
        }
    }
}
