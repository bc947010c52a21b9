//! Unmounts directories and lists mounts.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};
use node::{Error, ErrorKind, Result};

/// The program that mounts and unmounts for users.
pub(crate) const FUSERMOUNT: &str = "fusermount3";

/// File system type of our mounts in the kernel.
pub(crate) const KIND: &str = "fuse.starfish";

/// Explanation for agents that do not answer when a directory is unmounted.
const AGENTS_GONE: &str = "Agents that were shut down cleanly have flushed all data: their logs end with \
                           \"stopped: all accepted data are on its disks\". Killed agents have not";

/// True if a namespace is mounted in exactly this directory, even if its program has ended.
pub fn is_mount_of_ours(directory: &Path) -> bool {
    let mounts = fs::read("/proc/self/mounts").unwrap_or_default();
    // The last mount hides earlier ones.
    let mut last = mounts.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut words = line.split(|&byte| byte == b' ').skip(1);
        let (place, kind) = (words.next()?, words.next()?);
        (unescaped(place) == directory.as_os_str().as_bytes()).then(|| kind == KIND.as_bytes())
    });
    last.next_back().unwrap_or(false)
}

/// A mount of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedMount {
    /// Name of the file system in the list of mounts.
    pub source: String,
    /// The directory on which it is mounted.
    pub directory: PathBuf,
}

/// Returns the mounts of a user, including those whose programs have ended.
pub fn mounts_of(user: u32) -> Vec<ListedMount> {
    mounts_in(&fs::read("/proc/self/mounts").unwrap_or_default(), user)
}

fn mounts_in(list: &[u8], user: u32) -> Vec<ListedMount> {
    let of_user = format!("user_id={user}");
    let mounts = list.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut words = line.split(|&byte| byte == b' ');
        let (source, place, kind, options) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let is_his = options.split(|&byte| byte == b',').any(|option| option == of_user.as_bytes());
        (kind == KIND.as_bytes() && is_his).then(|| ListedMount {
            source: String::from_utf8_lossy(&unescaped(source)).into_owned(),
            directory: OsString::from_vec(unescaped(place)).into(),
        })
    });
    mounts.collect()
}

/// Undoes the kernel's escapes in its list of mounts: a backslash and three octal digits.
fn unescaped(word: &[u8]) -> Vec<u8> {
    let (mut text, mut rest) = (Vec::new(), word);
    while let [first, after @ ..] = rest {
        let digits = after.first_chunk::<3>().filter(|_| *first == b'\\');
        let code = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        text.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    text
}

/// Flushes to stable storage all files that were written and closed through a mount. No system call does this for a
/// FUSE mount. Instead, the program of the mount does it when its root directory is flushed.
///
/// # Errors
/// Fails if the flush fails. Succeeds if nothing is mounted there, the program has ended, or the mount belongs to
/// another user.
pub fn sync(directory: &Path) -> Result<()> {
    let path = place_of(directory);
    if !is_mount_of_ours(&path) {
        return Ok(());
    }
    let flushed = fs::File::open(&path).and_then(|root| root.sync_all());
    match flushed.map_err(|error| (error.raw_os_error().map(Errno::from_raw), error)) {
        Ok(()) | Err((Some(Errno::ENOTCONN | Errno::ECONNABORTED | Errno::EACCES | Errno::ENOENT), _)) => {
            Ok(())
        }
        Err((number, error)) => {
            let what = format!("data written in {}", path.display());
            Err(match number {
                Some(Errno::ECONNREFUSED | Errno::ECONNRESET | Errno::EHOSTUNREACH) => {
                    let why = "agents do not answer, so some data may not be on the disks";
                    Error::new(ErrorKind::Gone, what, why).with_remedy(AGENTS_GONE)
                }
                _ => Error::new(ErrorKind::Io, what, format!("some data are not on the disks: {error}")),
            })
        }
    }
}

/// Unmounts a directory. If the mount is in use and `lazy` is set, the mount disappears from the directory at once, and
/// ends with its last use.
///
/// # Errors
/// Fails if no Starfish mount is there, if it is in use, or if this user may not unmount it.
pub fn unmount(directory: &Path, lazy: bool) -> Result<()> {
    let path = place_of(directory);
    let failed = |why: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Io, format!("cannot unmount {}", path.display()), why)
    };
    if !is_mount_of_ours(&path) {
        let is_there = fs::symlink_metadata(&path).is_ok();
        let why = if is_there { "no Starfish namespace is mounted there" } else { "no such directory" };
        return Err(failed(&why));
    }
    let flags = if lazy { MntFlags::MNT_DETACH } else { MntFlags::empty() };
    match umount2(&path, flags | MntFlags::UMOUNT_NOFOLLOW) {
        Ok(()) => Ok(()),
        Err(Errno::EPERM) => ask_fusermount(&path, lazy).map_err(|why| in_use(failed(&why.trim()), &why)),
        Err(error) => Err(in_use(failed(&error.desc()), error.desc())),
    }
}

fn in_use(error: Error, why: &str) -> Error {
    if why.to_ascii_lowercase().contains("busy") {
        error.with_remedy(
            "Processes use the mount: `fuser -vm DIR` lists them. --lazy unmounts it when the last process leaves it",
        )
    } else {
        error
    }
}

fn ask_fusermount(path: &Path, lazy: bool) -> std::result::Result<(), String> {
    let program = find_program(OsStr::new(FUSERMOUNT));
    let mut command = Command::new(program.as_deref().unwrap_or(Path::new(FUSERMOUNT)));
    command.arg("-u").args(lazy.then_some("-z")).arg("--").arg(path).stdin(Stdio::null());
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(format!("{FUSERMOUNT}: {error}")),
    }
}

/// Returns the absolute path of a directory without accessing the directory, since an access fails if the program of
/// the mount has ended.
fn place_of(directory: &Path) -> PathBuf {
    if let Ok(path) = directory.canonicalize() {
        return path;
    }
    let path = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    match (path.parent().and_then(|parent| parent.canonicalize().ok()), path.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => path,
    }
}

/// Returns the path of a program, searched in `PATH` and the usual directories.
pub(crate) fn find_program(name: &OsStr) -> Option<PathBuf> {
    let path = env::var_os("PATH").map_or_else(Vec::new, OsStringExt::into_vec);
    let usual: [&[u8]; 2] = [b"/bin", b"/usr/bin"];
    let directories = path.split(|&byte| byte == b':').chain(usual);
    directories.map(|directory| Path::new(OsStr::from_bytes(directory)).join(name)).find(|path| path.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_paths_of_the_mount_list_are_decoded() {
        assert_eq!(unescaped(br"/mnt/a\040b\134c"), b"/mnt/a b\\c");
        assert_eq!(unescaped(br"/mnt/a\04"), br"/mnt/a\04", "no code");
    }

    #[test]
    fn listed_mounts_are_filtered_by_type_and_user() {
        let list = b"/dev/sda1 / ext4 rw,relatime 0 0\n\
            a:1+1 /mnt/my\\040files fuse.starfish rw,nosuid,user_id=1000,group_id=1000 0 0\n\
            a:1 /mnt/other fuse.starfish rw,user_id=10,group_id=1000 0 0\n\
            x /mnt/x fuse.sshfs rw,user_id=1000 0 0\n";
        let mount = ListedMount { source: "a:1+1".into(), directory: "/mnt/my files".into() };
        assert_eq!(mounts_in(list, 1000), [mount]);
        assert_eq!(mounts_in(list, 1), []);
    }

    #[test]
    fn unmount_rejects_paths_that_are_not_our_mounts() {
        assert!(!is_mount_of_ours(Path::new("/")));
        let error = unmount(Path::new("/"), false).expect_err("not ours");
        assert!(error.to_string().contains("no Starfish namespace"), "{error}");
        let error = unmount(Path::new("/nowhere/at all"), false).expect_err("it is not there");
        assert!(error.to_string().contains("no such directory"), "{error}");
    }
}
