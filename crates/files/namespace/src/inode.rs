//! What is known of a file, whatever its names.

use std::fmt;

use layout::{FILE_BYTES_MAX, Striping};
use serde::{Deserialize, Serialize};

use crate::refusal::TreeRefusal;

/// Identifies a file, a directory or whatever else has names, for ever: numbers are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileNumber(pub u64);

impl FileNumber {
    /// The directory in which all paths begin.
    pub const ROOT: FileNumber = FileNumber(1);
}

impl fmt::Display for FileNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Nanoseconds since 1970 began, or before it.
pub type UnixTime = i64;

/// What is known of a file, a directory, a symbolic link, or something special.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inode {
    /// Its number.
    pub number: FileNumber,
    /// What it is.
    pub kind: InodeKind,
    /// Permissions: the lower 12 bits of a mode.
    pub mode: u16,
    /// The user whose it is.
    pub uid: u32,
    /// The group whose it is.
    pub gid: u32,
    /// How many names lead to it; of a directory 2, and 1 for each directory in it.
    pub links: u32,
    /// The length of a file in bytes, or of the target of a link; of a directory the number of its entries.
    pub size: u64,
    /// When it was read, as far as somebody has said so.
    pub accessed: UnixTime,
    /// When its contents were changed.
    pub modified: UnixTime,
    /// When any of this was changed.
    pub changed: UnixTime,
    /// When it was made.
    pub made: UnixTime,
    /// Grows with each change of contents, by [`RUN_STEP`] within a run of the store: who has seen a version has
    /// seen all changes up to it. Its remainder tells runs apart: if the last changes are lost with one, the next gives
    /// their versions to no others.
    pub version: u64,
    /// How many of a file's first stripes are known to have been made: one of these that is nowhere is lost. Of a later
    /// one that is nowhere it is not known whether there was any; it reads as zeros.
    pub stored_stripes: u32,
    /// How many bytes of a file nobody has written, as far as that is known: at least so many of its zeros are stored
    /// nowhere.
    pub unwritten: u64,
    /// The number of bytes behind the end of a file that clients have reserved for appends. Nobody reads them before
    /// their client has reported that it wrote them.
    pub reserved: u64,
}

impl Inode {
    /// How many bytes of a file may be stored, at most.
    pub fn stored_bytes(&self) -> u64 {
        self.size.saturating_sub(self.unwritten)
    }

    /// The end of the file with the bytes reserved for appends: the offset of the next append.
    pub fn append_end(&self) -> u64 {
        self.size.saturating_add(self.reserved)
    }

    /// Reserves `bytes` behind `after` and behind all that is reserved. Returns the offset of the first; none if the
    /// file would be too long.
    pub(crate) fn reserve(&mut self, bytes: u64, after: u64) -> Option<u64> {
        let offset = self.append_end().max(after);
        let end = offset.checked_add(bytes).filter(|end| *end <= FILE_BYTES_MAX)?;
        self.reserved = end - self.size;
        Some(offset)
    }

    /// Gives it its next version, in this run of the store.
    pub(crate) fn raise_version(&mut self, run: u64) {
        self.version = next_in_run(self.version, run);
    }

    /// Takes in that at most so many bytes of a file were written, up to `end`.
    pub fn note_written(&mut self, end: u64, bytes: u64) {
        let (stored, append_end) = (self.stored_bytes().saturating_add(bytes), self.append_end());
        self.size = self.size.max(end);
        self.unwritten = self.size.saturating_sub(stored);
        self.reserved = append_end.saturating_sub(self.size);
    }

    /// Cuts a file, or makes it longer by zeros that are stored nowhere.
    pub(crate) fn resize(&mut self, bytes: u64) {
        let stored = self.stored_bytes().min(bytes);
        // The next append begins where the file was cut, whatever was reserved behind that.
        let append_end = if bytes < self.size { bytes } else { self.append_end() };
        self.size = bytes;
        self.unwritten = bytes - stored;
        self.reserved = append_end.saturating_sub(bytes);
    }
}

/// How much a version, or the number of a file, is greater than the one that was given before. What is left of one by
/// division is another for two runs of the store but for an accident; there is room for a million changes a second of
/// one file for twelve days, and for as many files. It is a prime, so files begin on each disk in turn, however many
/// disks there are.
pub const RUN_STEP: u64 = (1 << 24) + 43;

/// The version or number to be given after this one, in this run of the store.
pub(crate) fn next_in_run(before: u64, run: u64) -> u64 {
    (before - before % RUN_STEP).saturating_add(RUN_STEP + run % RUN_STEP)
}

/// What an inode is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InodeKind {
    /// A file with contents.
    File(FileLayout),
    /// A directory.
    Directory {
        /// The directory in which it is; of the root itself.
        parent: FileNumber,
    },
    /// A symbolic link.
    Link {
        /// Where it leads: a path.
        target: Vec<u8>,
    },
    /// What has a name here, and its meaning elsewhere.
    Special {
        /// What it is.
        kind: DeviceKind,
        /// The number of the device.
        device: u32,
    },
}

/// What is special.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeviceKind {
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device of bytes.
    Character,
    /// A device of blocks.
    Block,
}

/// Where the contents of a file are: stripe *i* is on disk `first + i` of a list of disks, which begins anew after its
/// last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLayout {
    /// How the file is dealt to stripes.
    pub striping: Striping,
    /// The number of the list of disks.
    pub disks: u32,
    /// The index there of the disk of stripe 0.
    pub first: u32,
}

impl FileLayout {
    /// The disks of the stripes, in their order, of the list that it names.
    pub fn disks_in(self, list: &[u64]) -> impl Iterator<Item = u64> + '_ {
        let count = self.striping.stripe_count() as usize;
        list.iter().cycle().skip(self.first as usize).take(count).copied()
    }
}

impl Inode {
    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        matches!(self.kind, InodeKind::Directory { .. })
    }

    /// Where its contents are.
    ///
    /// # Errors
    /// If it is no file.
    pub fn contents(&self) -> Result<FileLayout, TreeRefusal> {
        self.layout().ok_or(if self.is_directory() { TreeRefusal::IsDirectory } else { TreeRefusal::Invalid })
    }

    /// Where its contents are, if it is a file.
    pub fn layout(&self) -> Option<FileLayout> {
        match self.kind {
            InodeKind::File(layout) => Some(layout),
            _ => None,
        }
    }
}
