//! How a directory is mounted.

use std::time::Duration;

/// Where the locks of programs (`flock`, `fcntl`) hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockScope {
    /// In all mounts of the same files that have this scope: the agent that keeps the names keeps the locks.
    Everywhere,
    /// In this mount only: the kernel keeps them.
    Here,
    /// Nowhere: they are refused.
    Nowhere,
}

/// How a directory is mounted.
#[derive(Clone, Debug)]
pub struct MountSettings {
    /// What stands for the file system in the list of mounts: no commas.
    pub source: String,
    /// Whether nothing can be changed through it.
    pub read_only: bool,
    /// Whether other users than the one who mounts it see it. Without this not even root does.
    pub allow_other: bool,
    /// True if no file goes through the kernel's page cache. The kernel refuses shared mappings then.
    pub direct: bool,
    /// How long the kernel may believe names and attributes without asking.
    pub attribute_timeout: Duration,
    /// Where locks hold.
    pub locks: LockScope,
    /// Whether files can be run with the rights of their owners, which needs root.
    pub set_user: bool,
    /// Whether devices can be opened, which needs root.
    pub devices: bool,
    /// Whether nothing can be run from it.
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
