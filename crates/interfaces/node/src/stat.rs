//! Metadata of a file.

use layout::Striping;
use namespace::{Inode, UnixTime};

/// Metadata of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Size in bytes.
    pub bytes: u64,
    /// Block size in bytes, which is also the size of pages.
    pub block_bytes: u64,
    /// Number of stripes, each on another disk.
    pub stripes: u32,
    /// Owner, permissions and times.
    pub attributes: FileAttributes,
}

/// Attributes of a file in the namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileAttributes {
    /// Permissions: the lower 12 bits of a mode.
    pub mode: u16,
    /// Owner of the file.
    pub uid: u32,
    /// Group of the file.
    pub gid: u32,
    /// Time of access.
    pub accessed: UnixTime,
    /// Time of the last change of contents.
    pub modified: UnixTime,
    /// Time of the last change of contents or attributes.
    pub changed: UnixTime,
}

impl From<&Inode> for FileAttributes {
    fn from(inode: &Inode) -> FileAttributes {
        let &Inode { mode, uid, gid, accessed, modified, changed, .. } = inode;
        FileAttributes { mode, uid, gid, accessed, modified, changed }
    }
}

impl Stat {
    pub(crate) fn of(bytes: u64, striping: Striping, inode: &Inode) -> Self {
        let (block_bytes, stripes) = (striping.block_bytes(), striping.stripe_count());
        Stat { bytes, block_bytes, stripes, attributes: inode.into() }
    }
}
