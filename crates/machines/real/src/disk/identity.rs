//! The identity of a file, by which the system tells its files apart.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// What tells a file from all others, those that have its name later among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(super) device: u64,
    pub(super) inode: u64,
}

impl Identity {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Identity { device: metadata.dev(), inode: metadata.ino() }
    }
}
