//! Inodes: the attributes of files, independent of their names.

use std::fmt;

use layout::{FILE_BYTES_MAX, Striping};
use serde::{Deserialize, Serialize};

use crate::refusal::TreeRefusal;

/// Permanent number of a file, a directory or another inode. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileNumber(pub u64);

impl FileNumber {
    /// The root directory.
    pub const ROOT: FileNumber = FileNumber(1);
}

impl fmt::Display for FileNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Nanoseconds since the beginning of 1970; negative for earlier times.
pub type UnixTime = i64;

/// Attributes of a file, a directory, a symbolic link, or a special file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inode {
    /// Number of the inode.
    pub number: FileNumber,
    /// Kind of the inode.
    pub kind: InodeKind,
    /// Permissions: the lower 12 bits of a mode.
    pub mode: u16,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Number of names of the inode; for a directory, 2 plus the number of its subdirectories.
    pub links: u32,
    /// Length of a file, or of the target of a symbolic link, in bytes; for a directory, the number of entries.
    pub size: u64,
    /// Time of the last access that was reported.
    pub accessed: UnixTime,
    /// Time of the last change of contents.
    pub modified: UnixTime,
    /// Time of the last change of the inode.
    pub changed: UnixTime,
    /// Time of creation.
    pub made: UnixTime,
    /// Version of the contents. Each change adds [`RUN_STEP`] within an incarnation of the store. A client that has
    /// seen a version has seen all earlier changes. The remainder modulo [`RUN_STEP`] distinguishes incarnations: if a
    /// crash loses the last changes, the next incarnation does not reuse their versions.
    pub version: u64,
    /// Number of a file's first stripes that are known to have been created: if one of these is missing, it is lost. If
    /// a later stripe is missing, it was possibly never created, and reads as zeros.
    pub stored_stripes: u32,
    /// Number of bytes of a file that are known to be unwritten: at least this many zeros of the file are not stored.
    pub unwritten: u64,
    /// Number of bytes after the end of a file that clients have reserved for appends. These bytes cannot be read
    /// before their client has reported writing them.
    pub reserved: u64,
}

impl Inode {
    /// Returns the maximum number of bytes of the file that can be stored on disks.
    pub fn stored_bytes(&self) -> u64 {
        self.size.saturating_sub(self.unwritten)
    }

    /// Returns the end of the file including the bytes reserved for appends: the offset of the next append.
    pub fn append_end(&self) -> u64 {
        self.size.saturating_add(self.reserved)
    }

    /// Reserves `bytes` bytes after `after` and after all reserved bytes. Returns the offset of the first byte; `None`
    /// if the file would be too long.
    pub(crate) fn reserve(&mut self, bytes: u64, after: u64) -> Option<u64> {
        let offset = self.append_end().max(after);
        let end = offset.checked_add(bytes).filter(|end| *end <= FILE_BYTES_MAX)?;
        self.reserved = end - self.size;
        Some(offset)
    }

    /// Sets the next version in incarnation `run` of the store.
    pub(crate) fn raise_version(&mut self, run: u64) {
        self.version = next_in_run(self.version, run);
    }

    /// Records that at most `bytes` bytes of a file were written, up to offset `end`.
    pub fn note_written(&mut self, end: u64, bytes: u64) {
        let (stored, append_end) = (self.stored_bytes().saturating_add(bytes), self.append_end());
        self.size = self.size.max(end);
        self.unwritten = self.size.saturating_sub(stored);
        self.reserved = append_end.saturating_sub(self.size);
    }

    /// Truncates a file, or extends it with zeros that are not stored.
    pub(crate) fn resize(&mut self, bytes: u64) {
        let stored = self.stored_bytes().min(bytes);
        // After a truncation the next append begins at the new end, even if bytes beyond it were reserved.
        let append_end = if bytes < self.size { bytes } else { self.append_end() };
        self.size = bytes;
        self.unwritten = bytes - stored;
        self.reserved = append_end.saturating_sub(bytes);
    }
}

/// Step from one version, or file number, to the next within an incarnation of the store.
///
/// The remainder modulo this step identifies the incarnation of the store; two incarnations have the same remainder
/// only by chance. The numbers suffice for 2^40 changes of one file (a million a second for twelve days), and for 2^40
/// files. The step is prime, so that the first stripes of consecutive files are on each disk in turn, for any number of
/// disks.
pub const RUN_STEP: u64 = (1 << 24) + 43;

/// Returns the next version or number after `last`, in incarnation `run` of the store.
pub(crate) fn next_in_run(before: u64, run: u64) -> u64 {
    (before - before % RUN_STEP).saturating_add(RUN_STEP + run % RUN_STEP)
}

/// The kind of an inode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InodeKind {
    /// A file with contents.
    File(FileLayout),
    /// A directory.
    Directory {
        /// The directory that contains this directory; the root is its own parent.
        parent: FileNumber,
    },
    /// A symbolic link.
    Link {
        /// Path of the target.
        target: Vec<u8>,
    },
    /// A special file, whose meaning the operating system defines.
    Special {
        /// Kind of the special file.
        kind: DeviceKind,
        /// The number of the device.
        device: u32,
    },
}

/// The kind of a special file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeviceKind {
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A character device.
    Character,
    /// A block device.
    Block,
}

/// Location of the contents of a file: stripe *i* is on the disk with index `first + i`, modulo the length of the list,
/// in a list of disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLayout {
    /// Block size and number of stripes.
    pub striping: Striping,
    /// Number of the list of disks.
    pub disks: u32,
    /// Index, in the list, of the disk of stripe 0.
    pub first: u32,
}

impl FileLayout {
    /// Returns the disks of the stripes in order; `list` must be the list with the number `disks`.
    pub fn disks_in(self, list: &[u64]) -> impl Iterator<Item = u64> + '_ {
        let count = self.striping.stripe_count() as usize;
        list.iter().cycle().skip(self.first as usize).take(count).copied()
    }
}

impl Inode {
    /// True if the inode is a directory.
    pub fn is_directory(&self) -> bool {
        matches!(self.kind, InodeKind::Directory { .. })
    }

    /// Returns the location of the contents.
    ///
    /// # Errors
    /// Fails if the inode is not a file.
    pub fn contents(&self) -> Result<FileLayout, TreeRefusal> {
        self.layout().ok_or(if self.is_directory() { TreeRefusal::IsDirectory } else { TreeRefusal::Invalid })
    }

    /// Returns the location of the contents; `None` if the inode is not a file.
    pub fn layout(&self) -> Option<FileLayout> {
        match self.kind {
            InodeKind::File(layout) => Some(layout),
            _ => None,
        }
    }
}
