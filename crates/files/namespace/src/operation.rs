//! Operations on a namespace, and their answers: plain data that are sent in messages.

use serde::{Deserialize, Serialize};

use crate::checked::{Repair, SurveyedRecord};
use crate::inode::{DeviceKind, FileLayout, FileNumber, Inode, InodeKind, UnixTime};

/// A path relative to a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// Directory in which the path starts, unless it begins with `/`.
    pub base: FileNumber,
    /// The path: names separated by `/`. Symbolic links within the path are followed.
    pub path: Vec<u8>,
}

impl Location {
    /// Returns a path relative to the root.
    pub fn of_path(path: impl Into<Vec<u8>>) -> Self {
        Location { base: FileNumber::ROOT, path: path.into() }
    }
}

/// An operation on a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TreeOperation {
    /// Returns the origin of the namespace and its number of inodes. Fails with `NoNamespace` if the namespace does not
    /// exist. Answered by [`TreeAnswer::Used`].
    Describe,
    /// Creates a namespace.
    Begin {
        /// A random number, after which the numbers of files start.
        origin: u64,
        /// Mode of the root.
        mode: u16,
        /// Owner of the root.
        uid: u32,
        /// Group of the root.
        gid: u32,
    },
    /// Adds a list of disks, unless the list exists. Answered by [`TreeAnswer::Number`].
    EnterDisks {
        /// Identities of the disks.
        disks: Vec<u64>,
    },
    /// Returns the disks in a list. Answered by [`TreeAnswer::Disks`].
    ReadDisks {
        /// Number of the list.
        list: u32,
    },
    /// Resolves a path. Answered by [`TreeAnswer::Inode`], like all operations below unless noted.
    Look {
        /// The path.
        at: Location,
        /// True to follow a symbolic link at the end of the path.
        follow: bool,
    },
    /// Returns an inode.
    Get {
        /// Number of the inode.
        number: FileNumber,
    },
    /// Lists a directory. Answered by [`TreeAnswer::Entries`].
    List {
        /// The directory.
        directory: FileNumber,
        /// Only names after this name are returned.
        after: Vec<u8>,
        /// Maximum length of the answer in bytes; but at least one entry is returned if any is left.
        bytes_max: u32,
    },
    /// Creates an inode with a name.
    Make {
        /// Path of the new name.
        at: Location,
        /// Kind of the new inode.
        new: NewInode,
        /// Permissions.
        mode: u16,
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
        /// True to fail if the name exists; otherwise an existing file is returned.
        exclusive: bool,
    },
    /// Gives a file an additional name.
    Link {
        /// Number of the file.
        number: FileNumber,
        /// Path of the new name.
        at: Location,
    },
    /// Renames a file or directory. Answered by [`TreeAnswer::Removed`].
    Rename {
        /// The old name.
        from: Location,
        /// The new name.
        to: Location,
        /// Treatment of an existing file or directory with the new name.
        mode: RenameMode,
    },
    /// Removes a name. Answered by [`TreeAnswer::Removed`].
    Remove {
        /// The name.
        at: Location,
        /// Permitted target of the name.
        what: RemovalTarget,
    },
    /// Changes attributes.
    Change {
        /// Number of the inode.
        number: FileNumber,
        /// The changes.
        changes: AttributeChanges,
    },
    /// Records a change of a file's contents.
    Wrote {
        /// The file.
        number: FileNumber,
        /// The change.
        written: WrittenContents,
    },
    /// Reserves bytes after the end of the file, exclusively for one client. The length of the file changes only when
    /// these bytes are written. Answered by [`TreeAnswer::Appended`].
    Append {
        /// The file.
        number: FileNumber,
        /// Number of bytes.
        bytes: u64,
        /// End of the caller's unreported writes in the file. The reserved bytes start after this offset.
        after: u64,
    },
    /// Sets an extended attribute. Answered by [`TreeAnswer::Done`].
    SetExtended {
        /// Number of the inode.
        number: FileNumber,
        /// The attribute.
        name: Vec<u8>,
        /// The value.
        value: Vec<u8>,
        /// Condition on an existing value.
        mode: SetValue,
    },
    /// Returns the value of an extended attribute. Answered by [`TreeAnswer::Value`].
    GetExtended {
        /// Number of the inode.
        number: FileNumber,
        /// The attribute.
        name: Vec<u8>,
    },
    /// Lists the extended attributes of an inode. Answered by [`TreeAnswer::Names`].
    ListExtended {
        /// Number of the inode.
        number: FileNumber,
    },
    /// Removes an extended attribute. Answered by [`TreeAnswer::Done`].
    RemoveExtended {
        /// Number of the inode.
        number: FileNumber,
        /// The attribute.
        name: Vec<u8>,
    },
    /// Lists the orphans, whose contents can be removed. Answered by [`TreeAnswer::Numbers`].
    ListOrphans {
        /// Only numbers greater than this number are returned.
        after: FileNumber,
        /// Maximum number of numbers in the answer.
        most: u32,
    },
    /// Reports that the contents of these orphans were removed from these disks. Orphans without contents on other
    /// disks are forgotten. Answered by [`TreeAnswer::Forgotten`].
    Forget {
        /// The files.
        numbers: Vec<FileNumber>,
        /// Identities of the disks.
        disks: Vec<u64>,
    },
    /// Returns the records, for a check. Answered by [`TreeAnswer::Records`].
    Survey {
        /// Only records after this key, which an earlier answer returned, are returned.
        after: Vec<u8>,
        /// Maximum length of the answer in bytes; but at least one record is returned if any is left.
        bytes_max: u32,
    },
    /// Repairs a defect found by a check. Answered by [`TreeAnswer::Done`].
    Mend {
        /// The repair.
        repair: Repair,
    },
}

/// The extended attribute of a file that a program creates under a temporary name and renames when it is complete. Its
/// value is the temporary name. On a file without this name the attribute has no effect. Renaming the file from the
/// temporary name removes the attribute atomically.
pub const UNFINISHED: &[u8] = b"user.starfish.unfinished";

/// A report of writes to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenContents {
    /// Minimum length of the file after the writes, in bytes.
    pub end: u64,
    /// Number of the first stripes of the file that have been created.
    pub stored_stripes: u32,
    /// Maximum number of bytes that were written. Overwritten bytes can count twice.
    pub bytes: u64,
}

/// A new inode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NewInode {
    /// A file. Its number determines the disk of stripe 0.
    File {
        /// Block size and number of stripes.
        striping: layout::Striping,
        /// Number of the list of disks, which must have at least as many disks as the file has stripes.
        disks: u32,
    },
    /// Like [`File`](Self::File), but unfinished until it is renamed: until then it has the extended attribute
    /// [`UNFINISHED`].
    UnfinishedFile {
        /// Block size and number of stripes.
        striping: layout::Striping,
        /// Number of the list of disks.
        disks: u32,
    },
    /// A file with a given layout.
    PlacedFile(FileLayout),
    /// A directory.
    Directory,
    /// A symbolic link.
    Link {
        /// Path of the target.
        target: Vec<u8>,
    },
    /// A special file.
    Special {
        /// Kind of the special file.
        kind: DeviceKind,
        /// Number of the device.
        device: u32,
    },
}

impl NewInode {
    /// Returns the striping if the inode is a file.
    pub fn striping(&self) -> Option<layout::Striping> {
        match self {
            NewInode::File { striping, .. } | NewInode::UnfinishedFile { striping, .. } => Some(*striping),
            NewInode::PlacedFile(layout) => Some(layout.striping),
            NewInode::Directory | NewInode::Link { .. } | NewInode::Special { .. } => None,
        }
    }

    pub(crate) fn kind(&self, number: FileNumber, parent: FileNumber, disks: u32) -> InodeKind {
        match self {
            NewInode::File { striping, disks: list } | NewInode::UnfinishedFile { striping, disks: list } => {
                let first = (number.0 % u64::from(disks.max(1))) as u32;
                InodeKind::File(FileLayout { striping: *striping, disks: *list, first })
            }
            NewInode::PlacedFile(layout) => InodeKind::File(*layout),
            NewInode::Directory => InodeKind::Directory { parent },
            NewInode::Link { target } => InodeKind::Link { target: target.clone() },
            NewInode::Special { kind, device } => InodeKind::Special { kind: *kind, device: *device },
        }
    }
}

/// Treatment of an existing file or directory with the new name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RenameMode {
    /// Replaces the existing file or directory atomically.
    Replace,
    /// Keeps the existing file or directory, and refuses the rename.
    Keep,
    /// Exchanges the names: the existing file or directory gets the old name.
    Exchange,
}

/// Permitted target of a name to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RemovalTarget {
    /// Anything except a directory.
    File,
    /// An empty directory.
    Directory,
    /// A file that no client has open. Otherwise the operation is refused with `Busy`, also if a client may have had
    /// the file open since before the metadata server started.
    AbandonedFile,
}

/// Condition on an existing value when an extended attribute is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SetValue {
    /// The attribute may exist or not.
    Any,
    /// The attribute must not exist.
    New,
    /// The attribute must exist.
    Replace,
}

/// Changes of attributes; `None` leaves an attribute as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributeChanges {
    /// New permissions.
    pub mode: Option<u16>,
    /// New owner.
    pub uid: Option<u32>,
    /// New group.
    pub gid: Option<u32>,
    /// New length of a file in bytes.
    pub size: Option<u64>,
    /// New time of the last access.
    pub accessed: Option<SetTime>,
    /// New time of the last change of contents.
    pub modified: Option<SetTime>,
}

/// A time to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SetTime {
    /// The time of the operation.
    Now,
    /// This time.
    At(UnixTime),
}

/// A directory entry with its inode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryEntry {
    /// The name.
    pub name: Vec<u8>,
    /// The inode of the name.
    pub inode: Inode,
}

/// Size of a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeUse {
    /// Start of the file numbers, which differs between namespaces.
    pub origin: u64,
    /// Number of inodes.
    pub inodes: u64,
}

/// An answer to an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TreeAnswer {
    /// The operation is complete.
    Done,
    /// An inode.
    Inode(Inode),
    /// The size of the namespace.
    Used(TreeUse),
    /// Entries, in the order of their names as bytes.
    Entries {
        /// The inode of the directory.
        directory: Inode,
        /// The entries.
        entries: Vec<DirectoryEntry>,
        /// True if more entries follow.
        more: bool,
    },
    /// The name was removed or renamed.
    Removed {
        /// The file that lost its last name, so that its contents can be removed: the file of the removed or replaced
        /// name.
        orphan: Option<FileNumber>,
    },
    /// Bytes reserved for the caller.
    Appended {
        /// Offset of the first byte.
        offset: u64,
        /// The inode of the file, with these bytes reserved.
        inode: Inode,
    },
    /// A number.
    Number(u32),
    /// Identities of disks.
    Disks(Vec<u64>),
    /// A value.
    Value(Vec<u8>),
    /// Names of extended attributes.
    Names(Vec<Vec<u8>>),
    /// Files with the locations of their contents.
    Numbers(Vec<(FileNumber, Option<FileLayout>)>),
    /// Files that are now forgotten.
    Forgotten(Vec<FileNumber>),
    /// Records.
    Records {
        /// The records.
        records: Vec<SurveyedRecord>,
        /// Key of the last record if more follow.
        more_after: Option<Vec<u8>>,
    },
}
