//! Identity of a file in the operating system.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Device and inode, which distinguish a file from all others, including later files of the same name.
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
