//! Names of files on Starfish: names with the prefix, and names in a directory where a namespace is mounted.

use std::fs;
use std::path::{self, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

/// The prefix of names, as ROMIO has prefixes for file systems.
const PREFIX: &str = "starfish:";

/// The file system type of a mount in the kernel.
const MOUNT_TYPE: &str = "fuse.starfish";

/// A file on Starfish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedPlace {
    /// Path in the namespace.
    pub(crate) path: String,
    /// The agents of the mount, if the name was a path on a mount.
    pub(crate) agents: Option<String>,
    /// Path on the mount, if the name was such a path.
    on_mount: Option<PathBuf>,
}

impl NamedPlace {
    /// Makes the kernel ask the mount of this host for the name and attributes of the file. Otherwise the kernel would
    /// use its cached values for up to a second, because this process does not change the file through the mount. With
    /// this request, local programs see the change as soon as the call returns.
    pub(crate) fn revalidate(&self) {
        let Some(path) = &self.on_mount else { return };
        let how = AtFlags::STATX_FORCE_SYNC | AtFlags::SYMLINK_NOFOLLOW;
        // Ignore the result: a removed file has no attributes.
        let _ = statx(CWD, path, how, StatxFlags::BASIC_STATS);
    }
}

/// A mounted namespace.
struct MountedPlace {
    directory: PathBuf,
    /// The mounted directory of the namespace.
    root: String,
    agents: String,
}

/// Returns the file on Starfish that `name` denotes; `None` for any other name.
pub(crate) fn find(name: &str) -> Option<NamedPlace> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    find_among(name, &mounted(&mounts))
}

fn find_among(name: &str, mounts: &[MountedPlace]) -> Option<NamedPlace> {
    let rest = name.strip_prefix(PREFIX);
    let on_mount = on_mount(rest.unwrap_or(name), mounts);
    let unmounted = |path: &str| NamedPlace { path: path.to_owned(), agents: None, on_mount: None };
    on_mount.or_else(|| rest.map(unmounted))
}

fn on_mount(name: &str, mounts: &[MountedPlace]) -> Option<NamedPlace> {
    if mounts.is_empty() {
        return None;
    }
    let path = path::absolute(name).ok()?;
    // The file itself may not exist yet, so resolve its directory.
    let directory = path.parent().and_then(|directory| directory.canonicalize().ok());
    let path = match (directory, path.file_name()) {
        (Some(directory), Some(name)) => directory.join(name),
        _ => path,
    };
    let holds = mounts.iter().filter(|mount| path.starts_with(&mount.directory));
    let mount = holds.max_by_key(|mount| mount.directory.as_os_str().len())?;
    let within = path.strip_prefix(&mount.directory).ok()?;
    let within = Path::new(&mount.root).join(within).to_str()?.to_owned();
    Some(NamedPlace { path: within, agents: Some(mount.agents.clone()), on_mount: Some(path) })
}

/// Returns the mounted namespaces in the lines of mountinfo, see proc(5).
fn mounted(lines: &str) -> Vec<MountedPlace> {
    let place = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let (kind, source) = (after.next()?, after.next()?);
        let mut before = before.split(' ').skip(3);
        let (root, directory) = (before.next()?, before.next()?);
        (kind == MOUNT_TYPE).then(|| MountedPlace {
            directory: unescaped(directory).into(),
            root: unescaped(root),
            agents: unescaped(source),
        })
    };
    lines.lines().filter_map(place).collect()
}

/// Undoes the escapes of mountinfo: spaces, tabs, newlines and backslashes are a backslash and three octal digits.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut found = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                found.push(char::from(byte));
                found.push_str(&part[3..]);
            }
            None => {
                found.push('\\');
                found.push_str(part);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "22 1 8:1 / / rw - ext4 /dev/root rw\n\
        40 22 0:50 / /nowhere/a\\040b rw,nosuid shared:1 - fuse.starfish a:1,b:2 rw\n\
        41 22 0:51 /part /nowhere/a\\040b/in rw - fuse.starfish c rw";

    fn path(name: &str) -> Option<(String, Option<String>)> {
        find_among(name, &mounted(LINES)).map(|place| (place.path, place.agents))
    }

    #[test]
    fn names_with_our_prefix_or_on_our_mounts_are_recognized() {
        assert_eq!(path("starfish:dir/file"), Some(("dir/file".into(), None)));
        assert_eq!(path("/nowhere/a b/dir/file"), Some(("/dir/file".into(), Some("a:1,b:2".into()))));
        assert_eq!(path("starfish:/nowhere/a b/f"), path("/nowhere/a b/f"));
        assert_eq!(path("/nowhere/a b/in/file"), Some(("/part/file".into(), Some("c".into()))));
        assert_eq!((path("/nowhere/ab/file"), path("ufs:/nowhere/a b/f"), path("file")), (None, None, None));
        assert_eq!(unescaped("a\\134b\\zz"), "a\\b\\zz");
    }
}
