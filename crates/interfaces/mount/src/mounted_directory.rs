//! Starts and ends a mount.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fuser::{BackgroundSession, Config, MountOption, SessionACL};
use nix::mount::{MsFlags, mount};
use node::{Error, ErrorKind, Pending, Result, Tree};

use crate::counts::MountCounter;
use crate::kernel_requests::KernelRequests;
use crate::mounted_tree::{KernelSide, serve};
use crate::request_memory::spare_memory;
use crate::settings::MountSettings;
use crate::unmounting::{FUSERMOUNT, KIND, find_program, is_mount_of_ours, unmount};

/// The FUSE device.
const DEVICE: &str = "/dev/fuse";

/// Remedy for a missing `fusermount3`.
const INSTALL: &str = "Install the package fuse3";

/// A directory in which the namespace of a set is mounted.
pub struct MountedDirectory {
    directory: PathBuf,
    kernel: BackgroundSession,
    serving: Pending<()>,
    counter: MountCounter,
}

impl MountedDirectory {
    /// Mounts a namespace in a directory. Programs get only error numbers; for unexpected errors the callback receives
    /// the full error, on another thread.
    ///
    /// # Errors
    /// Fails if the directory is not suitable, or the kernel or `fusermount3` refuses the mount.
    pub fn begin(
        tree: &Tree,
        directory: &Path,
        settings: MountSettings,
        on_error: impl Fn(&Error) + Send + 'static,
    ) -> Result<MountedDirectory> {
        let directory = check_directory(directory)?;
        check_device(&directory)?;
        if !settings.read_only {
            tree.run(
                "cannot check the striping of new files",
                |node, _| async move { node.check_new_files() },
            )
            .wait()?;
        }
        let (tasks, taken) = flume::unbounded();
        let counter = MountCounter { tasks: tasks.downgrade() };
        let (giver, taker) = spare_memory();
        let door = KernelRequests::new(tasks, settings.clone(), taker);
        let failed = |error: io::Error| refused(&directory, &settings, &error);
        let kernel = match may_mount() {
            true => mount_as_root(&directory, &settings).and_then(|device| {
                fuser::Session::from_fd(door, device, access(&settings), config(&settings))
            }),
            false => fuser::Session::new(door, &directory, &config(&settings)),
        };
        let kernel = kernel.map_err(failed)?;
        let notifier = kernel.notifier();
        let kept = settings.clone();
        let on_error = Box::new(on_error);
        let serving = tree.run("cannot serve the mount", move |node, _| {
            serve(node, kept, KernelSide { notifier, on_error, tasks: taken, spare: giver })
        });
        let kernel = kernel.spawn().map_err(failed)?;
        Ok(MountedDirectory { directory, kernel, serving, counter })
    }

    /// Returns the absolute path of the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns a handle on the counters of the mount.
    pub fn counter(&self) -> MountCounter {
        self.counter.clone()
    }

    /// Waits until the directory is unmounted, by any process, and all written data are with the agents.
    ///
    /// # Errors
    /// Fails if the connection to the kernel broke, or a file could not be closed.
    pub fn wait(self) -> Result<()> {
        let MountedDirectory { directory, kernel, serving, counter: _ } = self;
        let ended = kernel.join().map_err(|error| failure(&directory, error));
        serving.wait().and(ended)
    }
}

fn config(settings: &MountSettings) -> Config {
    let mut options = vec![
        MountOption::FSName(settings.source.clone()),
        MountOption::Subtype("starfish".into()),
        MountOption::DefaultPermissions,
        if settings.read_only { MountOption::RO } else { MountOption::RW },
        if settings.set_user { MountOption::Suid } else { MountOption::NoSuid },
        if settings.devices { MountOption::Dev } else { MountOption::NoDev },
    ];
    if settings.no_execution {
        options.push(MountOption::NoExec);
    }
    let mut config = Config::default();
    config.mount_options = options;
    config.acl = access(settings);
    config
}

fn access(settings: &MountSettings) -> SessionACL {
    if settings.allow_other { SessionACL::All } else { SessionACL::Owner }
}

/// True if this process can mount without `fusermount3`: it is root, perhaps in its own user namespace.
fn may_mount() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Mounts without `fusermount3` and returns the connection to the kernel. `fuser` could do this, but not with our file
/// system type.
fn mount_as_root(directory: &Path, settings: &MountSettings) -> io::Result<OwnedFd> {
    let device = OwnedFd::from(fs::File::options().read(true).write(true).open(DEVICE)?);
    let mode = fs::metadata(directory)?.mode() & nix::libc::S_IFMT;
    let (uid, gid) = (nix::unistd::getuid(), nix::unistd::getgid());
    let mut data = format!(
        "fd={},rootmode={mode:o},user_id={uid},group_id={gid},default_permissions",
        device.as_raw_fd()
    );
    if settings.allow_other {
        data.push_str(",allow_other");
    }
    let flags = [
        (!settings.set_user, MsFlags::MS_NOSUID),
        (!settings.devices, MsFlags::MS_NODEV),
        (settings.no_execution, MsFlags::MS_NOEXEC),
        (settings.read_only, MsFlags::MS_RDONLY),
    ];
    let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).collect::<MsFlags>();
    mount(Some(&*settings.source), directory, Some(KIND), flags, Some(&*data))?;
    Ok(device)
}

/// Returns the absolute path of the directory if a file system can be mounted there. Unmounts earlier mounts of ours in
/// this directory whose program was killed: they are useless, and a restart, for example by systemd, does not unmount
/// them.
fn check_directory(directory: &Path) -> Result<PathBuf> {
    let look = || directory.canonicalize().and_then(|path| fs::metadata(&path).map(|found| (path, found)));
    let mut found = look();
    while found.as_ref().is_err_and(|error| error.raw_os_error() == Some(nix::libc::ENOTCONN)) {
        unmount(directory, true)?;
        found = look();
    }
    match found {
        // A second mount would hide the first.
        Ok((path, _)) if is_mount_of_ours(&path) => {
            let remedy = format!("`starfish umount {}` unmounts it", directory.display());
            Err(failure(directory, "a Starfish namespace is already mounted there").with_remedy(remedy))
        }
        Ok((path, found)) if found.is_dir() => Ok(path),
        Ok(_) => Err(failure(directory, "it is not a directory")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(failure(directory, "no such directory").with_remedy("Create it first"))
        }
        Err(error) => Err(failure(directory, error)),
    }
}

/// Fails if neither this process nor `fusermount3` can mount.
fn check_device(directory: &Path) -> Result<()> {
    let Err(error) = fs::File::options().read(true).write(true).open(DEVICE) else {
        if may_mount() || find_program(OsStr::new(FUSERMOUNT)).is_some() {
            return Ok(());
        }
        return Err(failure(directory, format!("the program {FUSERMOUNT} is missing")).with_remedy(INSTALL));
    };
    let mode = fs::metadata(DEVICE).map(|device| device.mode() & 0o777).ok();
    let remedy = remedy_for_device(mode, nix::unistd::geteuid().is_root());
    Err(failure(directory, format!("{DEVICE}: {error}")).with_remedy(remedy))
}

/// Returns the remedy if the device cannot be opened. `mode` is its mode; `None` if the device is missing.
fn remedy_for_device(mode: Option<u32>, is_root: bool) -> String {
    match mode {
        Some(mode) if mode & 0o006 != 0o006 && !is_root => {
            format!(
                "Its mode is {mode:03o}: permit users to open it with `chmod 666 {DEVICE}` as root, or mount \
                 as root"
            )
        }
        Some(_) => format!("A container needs --device {DEVICE}"),
        None => {
            format!(
                "Load the kernel module with `modprobe fuse` as root; a container needs --device {DEVICE}"
            )
        }
    }
}

fn refused(directory: &Path, settings: &MountSettings, error: &io::Error) -> Error {
    let why = error.to_string();
    let failure = failure(directory, why.trim());
    match error.kind() {
        io::ErrorKind::PermissionDenied if settings.allow_other && why.contains("user_allow_other") => {
            failure.with_remedy("Add the line user_allow_other to /etc/fuse.conf, or leave out --allow-other")
        }
        io::ErrorKind::PermissionDenied => failure
            .with_remedy("Mount in a directory that you own; a container also needs permission to mount"),
        _ => failure,
    }
}

fn failure(directory: &Path, why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Io, format!("cannot mount in {}", directory.display()), why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_for_an_unopenable_device_fits_the_cause() {
        assert!(
            remedy_for_device(Some(0o600), false).starts_with("Its mode is 600: permit users to open it")
        );
        assert!(remedy_for_device(Some(0o666), false).starts_with("A container needs"));
        assert!(remedy_for_device(Some(0o600), true).starts_with("A container needs"));
        assert!(remedy_for_device(None, false).starts_with("Load the kernel module"));
    }
}
