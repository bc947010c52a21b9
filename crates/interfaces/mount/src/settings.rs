//! Settings of a mount.

use std::time::Duration;

/// Scope of the locks of programs (`flock`, `fcntl`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockScope {
    /// All mounts of the same files that have this scope: the metadata server keeps the locks.
    Everywhere,
    /// This mount only: the kernel keeps the locks.
    Here,
    /// No locks: requests for them fail.
    Nowhere,
}

/// Settings of a mount.
#[derive(Clone, Debug)]
pub struct MountSettings {
    /// Name of the file system in the list of mounts, without commas.
    pub source: String,
    /// True for a read-only mount.
    pub read_only: bool,
    /// True if users other than the mounting user have access. Otherwise not even root has access.
    pub allow_other: bool,
    /// True if no file uses the kernel's page cache. The kernel then refuses shared mappings.
    pub direct: bool,
    /// Time for which the kernel may cache names and attributes.
    pub attribute_timeout: Duration,
    /// Scope of locks.
    pub locks: LockScope,
    /// True if set-user-ID programs run with the rights of their owners, which needs root.
    pub set_user: bool,
    /// True if devices can be opened, which needs root.
    pub devices: bool,
    /// True if programs cannot be run from the mount.
    pub no_execution: bool,
}

impl Default for MountSettings {
    fn default() -> Self {
        MountSettings {
            source: "starfish".into(),
            read_only: false,
            allow_other: false,
            direct: false,
            attribute_timeout: Duration::from_secs(1),
            locks: LockScope::Everywhere,
            set_user: false,
            devices: false,
            no_execution: false,
        }
    }
}
