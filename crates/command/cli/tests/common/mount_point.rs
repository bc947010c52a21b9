//! Directory in which a test mounts the files of agents.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Store, finish};

/// Agents and a directory in which their files are mounted. Dropping it unmounts the directory. The constructors return
/// `None` if mounting is impossible on this computer.
pub(crate) struct MountPoint {
    pub(crate) store: Store,
    pub(crate) path: PathBuf,
}

impl MountPoint {
    /// Starts two agents and mounts nothing yet.
    pub(crate) fn new() -> Option<MountPoint> {
        MountPoint::of(Store::start(&[1, 1]))
    }

    /// Uses these agents instead of new ones.
    pub(crate) fn of(store: Store) -> Option<MountPoint> {
        let is_possible = MountPoint::is_possible(&store);
        let path = store.directory.path().join("mounted here");
        is_possible.then_some(MountPoint { store, path })
    }

    /// Returns true if the files of these agents can be mounted on this computer.
    pub(crate) fn is_possible(store: &Store) -> bool {
        let path = store.directory.path().join("mounted here");
        fs::create_dir(&path).expect("a directory");
        let path = path.to_str().expect("text");
        let output = finish(store.command(&["mount", path, "--background", "--log", "first.log"]));
        if output.status.success() {
            unmounted(|| store.command(&["umount", path]));
            return true;
        }
        prerequisites::cannot_mount(&String::from_utf8_lossy(&output.stderr));
        false
    }

    /// Returns a command that has the directory as an argument, after `words`.
    pub(crate) fn command(&self, words: &[&str], options: &[&str]) -> Command {
        let path = self.path.to_str().expect("text");
        self.store.command(&[words, &[path], options].concat())
    }

    /// Unmounts the directory.
    pub(crate) fn unmount(&self) {
        unmounted(|| self.command(&["umount"], &[]));
    }

    /// Blocks until the directory is mounted: see [`wait_until_mounted`].
    pub(crate) fn wait_until_mounted(&self) {
        wait_until_mounted(&self.path);
    }

    pub(crate) fn is_mounted(&self) -> bool {
        mount::is_mount_of_ours(&self.path)
    }
}

/// Unmounts all mounts of the agents, including a second mount that a failed test has left.
impl Drop for MountPoint {
    fn drop(&mut self) {
        for mount in mount::mounts_of(nix::unistd::getuid().as_raw()) {
            if mount.directory.starts_with(self.store.directory.path()) {
                let _ = mount::unmount(&mount.directory, true);
            }
        }
    }
}

/// Blocks until a directory is mounted. Panics after 20 seconds.
pub(crate) fn wait_until_mounted(path: &Path) {
    within(Duration::from_secs(20), "it is mounted", || mount::is_mount_of_ours(path));
}

/// Unmounts by this command. Retries while the directory is busy: a process that another test starts holds copies of
/// this process's open files until that process executes its program.
pub(crate) fn unmounted(command: impl Fn() -> Command) {
    within(Duration::from_secs(20), "it is unmounted", || {
        let output = finish(command());
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() || why.contains("busy"), "{why}");
        output.status.success()
    });
}

/// Blocks until the condition holds. Panics if it does not hold within `time`.
pub(crate) fn within(time: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < time, "{what} within {time:?}");
        thread::sleep(Duration::from_millis(50));
    }
}
