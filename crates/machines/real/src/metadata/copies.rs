//! Copies of a store in a file on another disk or computer, each replacing the previous copy.
//!
//! The thread of the store copies the database to a file next to it (`sqlite.rs`). A separate thread transfers this
//! file to its destination: a disk or server there may take any time, and must not delay operations on names. Only one
//! copy is in flight at a time.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use flume::RecvTimeoutError;
use machine::{Error, Result};

use super::failures::describe;
use super::reports::Reports;
use super::sqlite::FILE;
use crate::disk::io_error;
use crate::settings::{MetadataCopies, MetadataPlace};

/// Time for which closing a store waits for each copy: the one in flight, and the last one. The program that stops an
/// agent waits 30 seconds for the agent.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Copies of a store.
pub(super) struct Copies {
    file: PathBuf,
    every: Duration,
    pub(super) due: Instant,
    /// [Changes](super::database::Database::changes) in the copy at the destination, if known.
    copied: Option<u64>,
    on_its_way: Option<CopyInFlight>,
    reports: Reports,
}

/// Copy in flight to its destination.
struct CopyInFlight {
    changes: u64,
    /// Receives a message once the copy has arrived; disconnected without one if the transfer failed.
    there: flume::Receiver<()>,
}

impl Copies {
    /// Creates the copies of a store. Fails if their directory is the store's, or missing.
    pub(super) fn of(store: &MetadataPlace, settings: &MetadataCopies, reports: &Reports) -> Result<Self> {
        let place = &settings.directory;
        let what = format!("directory for copies of metadata {}", place.display());
        let MetadataPlace::Directory(directory) = store else {
            let why =
                "the namespace is in a PostgreSQL server: copy it with the tools of that server".to_owned();
            return Err(Error::Io { what, why }.into());
        };
        let found = fs::canonicalize(place).map_err(|error| io_error(&what, error))?;
        if fs::canonicalize(directory).is_ok_and(|own| own == found) {
            let why = "a copy would overwrite the store itself: choose another directory".to_owned();
            return Err(Error::Io { what, why }.into());
        }
        let (file, every, due) = (place.join(FILE), settings.every, Instant::now() + settings.every);
        Ok(Copies { file, every, due, copied: None, on_its_way: None, reports: reports.clone() })
    }

    pub(super) fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    pub(super) fn put_off(&mut self) {
        self.due = Instant::now() + self.every;
    }

    /// Returns true if no copy is in flight, or the copy in flight ends within this time. Otherwise reports the delay.
    pub(super) fn has_ended(&mut self, within: Duration) -> bool {
        let Some(last) = self.on_its_way.take() else { return true };
        match last.there.recv_timeout(within) {
            Ok(()) => self.copied = Some(last.changes),
            Err(RecvTimeoutError::Disconnected) => {}
            Err(RecvTimeoutError::Timeout) => {
                let why = "the last copy is still in progress: does the disk or server respond?".to_owned();
                self.reports.failed(&Error::Io { what: describe_copy(&self.file), why });
                self.on_its_way = Some(last);
                return false;
            }
        }
        true
    }

    /// Returns true if the copy at the destination has these changes.
    pub(super) fn has(&self, changes: u64) -> bool {
        self.copied == Some(changes)
    }

    /// Starts the transfer of a copy with these changes to its destination.
    pub(super) fn send(&mut self, copy: File, changes: u64) {
        let (sender, there) = flume::bounded(1);
        let (file, reports) = (self.file.clone(), self.reports.clone());
        let send = move || match bring(copy, &file) {
            // A store that no longer waits does not need the message.
            Ok(()) => drop(sender.send(())),
            Err(error) => reports.failed(&error),
        };
        match thread::Builder::new().name("metadata copy".to_owned()).spawn(send) {
            Ok(_) => self.on_its_way = Some(CopyInFlight { changes, there }),
            Err(error) => self.reports.failed(&io_error(&describe_copy(&self.file), error)),
        }
    }
}

/// Writes a copy to its destination, which is a complete copy at any time.
fn bring(mut copy: File, to: &Path) -> Result<()> {
    let part = to.with_extension("part");
    let mut replace = || {
        // Do not follow links: another user's file must not be overwritten.
        let open = || {
            let mut options = File::options();
            options.write(true).create(true).truncate(true).custom_flags(nix::libc::O_NOFOLLOW).open(&part)
        };
        let mut file = match open() {
            Err(error) if error.raw_os_error() == Some(nix::libc::ELOOP) => {
                fs::remove_file(&part)?;
                open()?
            }
            opened => opened?,
        };
        io::copy(&mut copy, &mut file)?;
        file.sync_all()?;
        fs::rename(&part, to)?;
        File::open(to.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    replace().map_err(|error| {
        // A partial copy is useless; the next attempt starts from the beginning.
        let _ = fs::remove_file(&part);
        io_error(&describe_copy(to), error)
    })
}

fn describe_copy(file: &Path) -> String {
    format!("copy of the {}", describe(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_does_not_overwrite_the_target_of_a_symbolic_link() {
        let place = tempfile::tempdir().expect("a directory");
        let path = |name: &str| place.path().join(name);
        for (name, contents) in [("store", "names"), ("other", "precious")] {
            fs::write(path(name), contents).expect("room");
        }
        let to = path("copy.db");
        std::os::unix::fs::symlink(path("other"), to.with_extension("part")).expect("room");
        bring(File::open(path("store")).expect("it exists"), &to).expect("room");
        assert_eq!(fs::read(path("other")).expect("it exists"), b"precious");
        assert!(fs::symlink_metadata(&to).expect("it exists").is_file());
        assert_eq!(fs::read(&to).expect("it exists"), b"names");
    }
}
