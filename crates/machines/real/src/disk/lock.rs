//! Lock on a directory, so that only one node uses it, and a check of its write permissions.
//!
//! The directory itself is locked (flock), so clearing files away does not remove the lock. A file in it names the
//! process that holds the lock. On file systems that lock only files, such as NFS, that file is locked.
//!
//! A node that shuts down cleanly, with all accepted data on the disk, records this in the file for the next node. The
//! entry is valid until the computer reboots, since the data may still be in the system's page cache.
//!
//! A user with write permission for the directory can create files under the names of objects, and remove objects. A
//! directory writable by all users is therefore refused, unless users can remove only their own files (the sticky bit,
//! as for /tmp). A group is trusted, since many systems create one for each user and let it write by default.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use machine::{Error, NodeId, NodePart, Result};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::libc;
use nix::unistd::{AccessFlags, faccessat};

use super::failures::{describe, has_no_room, io_error, refuses_writing};
use super::identity::Identity;
use crate::release::once_released;

/// Name of the file that names the process with the lock.
const HOLDER: &str = ".starfish.lock";

/// Text before the number of an incarnation that shut down cleanly.
const ENDED: &str = "ended in order: run ";

/// Limit in bytes for reading the file; its text is always shorter.
const HOLDER_BYTES_MAX: u64 = 4096;

const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Directory that is locked for the lifetime of this value.
pub(super) struct Lock {
    pub(super) identity: Identity,
    /// True if the system refuses all writes to the directory.
    pub(super) is_read_only: bool,
    /// Last incarnation with this directory, if it shut down cleanly since the computer was booted.
    pub(super) last_run: Option<u64>,
    _directory: File,
    holder: Option<File>,
}

impl Lock {
    /// Takes the directory for `node`. Fails if another process has it, or if it is not safe from other users.
    pub(super) fn take(path: &Path, node: NodeId) -> Result<Self> {
        let failed = |error| io_error(&describe(path), error);
        let refused = |why: String| Error::Io { what: describe(path), why }.into();
        let directory =
            OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(path).map_err(failed)?;
        let metadata = directory.metadata().map_err(failed)?;
        if metadata.mode() & (OTHERS_WRITE | STICKY) == OTHERS_WRITE {
            return Err(refused("every user can write to it: prevent this with `chmod o-w`".to_owned()));
        }
        let mut holder = match open_holder(path) {
            Err(error) if refuses_writing(&error) => None,
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
                let why = format!("{HOLDER} in it is a symbolic link that no agent created: remove it");
                return Err(refused(why));
            }
            // The directory exists, so this is how /proc refuses new files.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(refused("no file can be created in it".to_owned()));
            }
            opened => Some(opened.map_err(failed)?),
        };
        let try_lock = || match directory.try_lock() {
            // The file system locks only files.
            Err(TryLockError::Error(error)) if locks_files_only(&error) => {
                holder.as_ref().map_or(Ok(()), File::try_lock)
            }
            locked => locked,
        };
        let locked = once_released(|error| matches!(error, TryLockError::WouldBlock), try_lock);
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                // The name of the process is helpful but not required.
                let text = holder.and_then(|holder| read(&holder).ok()).unwrap_or_default();
                let why = format!("it is in use by another agent ({})", text.trim());
                return Err(Error::InUse { part: NodePart::Disk, what: describe(path), why }.into());
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut last_run = None;
        if let Some(holder) = &mut holder {
            last_run = read(holder).ok().and_then(|text| ended(&text, &boot()?));
            clear(holder).map_err(failed)?;
            match writeln!(holder, "{node}, process {}", std::process::id()) {
                // The lock counts, not the text. A full disk must not prevent the start, since files are removed
                // through the node.
                Err(error) if has_no_room(&error) => {}
                written => written.map_err(failed)?,
            }
        }
        Ok(Lock {
            identity: Identity::of(&metadata),
            is_read_only: !can_write(path),
            last_run,
            _directory: directory,
            holder,
        })
    }

    /// Records a clean shutdown of this incarnation of the node, for the next node that takes the directory.
    pub(super) fn note_end(&self, run: u64) -> io::Result<()> {
        match (self.holder.as_ref(), boot()) {
            (Some(mut holder), Some(boot)) => {
                clear(holder)?;
                holder.write_all(format!("{ENDED}{run:016x}, {boot}\n").as_bytes())
            }
            _ => Ok(()),
        }
    }
}

fn read(holder: &File) -> io::Result<String> {
    let mut text = String::new();
    holder.take(HOLDER_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

fn clear(mut holder: &File) -> io::Result<()> {
    holder.set_len(0)?;
    holder.rewind()
}

/// Returns the incarnation that shut down cleanly according to the file, if the computer has not rebooted since.
fn ended(text: &str, boot: &str) -> Option<u64> {
    let (run, of_boot) = text.strip_prefix(ENDED)?.strip_suffix('\n')?.split_once(", ")?;
    u64::from_str_radix(run, 16).ok().filter(|_| of_boot == boot)
}

/// Returns the identity of the current boot, if the system reports it.
fn boot() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

fn can_write(path: &Path) -> bool {
    faccessat(AT_FDCWD, path, AccessFlags::W_OK | AccessFlags::X_OK, AtFlags::AT_EACCESS).is_ok()
}

fn open_holder(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).custom_flags(libc::O_NOFOLLOW);
    let holder = options.open(path.join(HOLDER))?;
    // Opening a pipe for both directions does not block, but reading from it would.
    if holder.metadata()?.is_file() { Ok(holder) } else { Err(ErrorKind::InvalidInput.into()) }
}

fn locks_files_only(error: &io::Error) -> bool {
    [Errno::EBADF, Errno::EINVAL, Errno::EISDIR, Errno::ENOTSUP, Errno::ENOLCK]
        .iter()
        .any(|errno| error.raw_os_error() == Some(*errno as i32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_incarnation_with_a_clean_shutdown_is_found_once() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let take = || Lock::take(directory.path(), NodeId(1)).expect("it is free");
        let lock = take();
        assert_eq!(lock.last_run, None);
        drop(lock);
        let lock = take();
        assert_eq!(lock.last_run, None, "that has not ended in order");
        lock.note_end(7).expect("room");
        drop(lock);
        assert_eq!(take().last_run, Some(7));
        assert_eq!(take().last_run, None, "another lock was taken since");
    }

    proptest! {
        #[test]
        fn incarnations_before_a_reboot_and_invalid_texts_are_ignored(run: u64, text in "[ -~]{0,60}\n?") {
            prop_assert_eq!(ended(&format!("{ENDED}{run:016x}, here\n"), "here"), Some(run));
            prop_assert_eq!(ended(&format!("{ENDED}{run:016x}, there\n"), "here"), None);
            prop_assert_eq!(ended(&text, "here"), None);
        }
    }
}
