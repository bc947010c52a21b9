//! What can be asked of a namespace, and the answers: plain data, which travel.

use serde::{Deserialize, Serialize};

use crate::checked::{Repair, SurveyedRecord};
use crate::inode::{DeviceKind, FileLayout, FileNumber, Inode, InodeKind, UnixTime};

/// A path, from a directory on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// Where it begins, unless the path begins with `/`.
    pub base: FileNumber,
    /// The path: names with `/` between them. Links on the way are followed.
    pub path: Vec<u8>,
}

impl Location {
    /// A path from the root on.
    pub fn of_path(path: impl Into<Vec<u8>>) -> Self {
        Location { base: FileNumber::ROOT, path: path.into() }
    }
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TreeOperation {
    /// Is there a namespace, and how much is in it? Answered by [`TreeAnswer::Used`].
    Describe,
    /// Begin a namespace.
    Begin {
        /// Drawn at random: numbers of files come after it.
        origin: u64,
        /// The mode of the root.
        mode: u16,
        /// Its user.
        uid: u32,
        /// Its group.
        gid: u32,
    },
    /// Enter a list of disks, by their identities, unless it is there. Answered by [`TreeAnswer::Number`].
    EnterDisks {
        /// The disks.
        disks: Vec<u64>,
    },
    /// Which disks are in this list? Answered by [`TreeAnswer::Disks`].
    ReadDisks {
        /// The number of the list.
        list: u32,
    },
    /// Where does the path lead? Answered by [`TreeAnswer::Inode`], as all that follow unless it is said.
    Look {
        /// The path.
        at: Location,
        /// Whether a link at its end is followed.
        follow: bool,
    },
    /// What is this?
    Get {
        /// Its number.
        number: FileNumber,
    },
    /// What is in the directory? Answered by [`TreeAnswer::Entries`].
    List {
        /// The directory.
        directory: FileNumber,
        /// Only names that come after this one.
        after: Vec<u8>,
        /// The most bytes of an answer; some at least are given.
        bytes_max: u32,
    },
    /// Make something.
    Make {
        /// Its path.
        at: Location,
        /// What it is.
        new: NewInode,
        /// Its permissions.
        mode: u16,
        /// Its user.
        uid: u32,
        /// Its group.
        gid: u32,
        /// Whether it is refused if there is something; otherwise a file that is there is the answer.
        exclusive: bool,
    },
    /// Give a file another name.
    Link {
        /// Its number.
        number: FileNumber,
        /// The path.
        at: Location,
    },
    /// Move a name. Answered by [`TreeAnswer::Removed`].
    Rename {
        /// The name.
        from: Location,
        /// What it shall be.
        to: Location,
        /// What happens to what has that name.
        mode: RenameMode,
    },
    /// Remove a name. Answered by [`TreeAnswer::Removed`].
    Remove {
        /// The name.
        at: Location,
        /// What may be there.
        what: WhatToRemove,
    },
    /// Change attributes.
    Change {
        /// Whose.
        number: FileNumber,
        /// What is changed.
        changes: AttributeChanges,
    },
    /// The file's contents have been changed.
    Wrote {
        /// The file.
        number: FileNumber,
        /// How.
        written: WrittenContents,
    },
    /// Reserve bytes behind the end of the file, which no other client gets. The file has its length until they are
    /// written. Answered by [`TreeAnswer::Appended`].
    Append {
        /// The file.
        number: FileNumber,
        /// The number of bytes.
        bytes: u64,
        /// The end of the caller's writes that are not reported yet: the bytes lie behind it.
        after: u64,
    },
    /// Give an extended attribute a value. Answered by [`TreeAnswer::Done`].
    SetExtended {
        /// Whose.
        number: FileNumber,
        /// The attribute.
        name: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
        /// Whether there has to be one.
        mode: SetValue,
    },
    /// The value of an extended attribute. Answered by [`TreeAnswer::Value`].
    GetExtended {
        /// Whose.
        number: FileNumber,
        /// The attribute.
        name: Vec<u8>,
    },
    /// Which extended attributes are there? Answered by [`TreeAnswer::Names`].
    ListExtended {
        /// Of which.
        number: FileNumber,
    },
    /// Remove an extended attribute. Answered by [`TreeAnswer::Done`].
    RemoveExtended {
        /// Whose.
        number: FileNumber,
        /// The attribute.
        name: Vec<u8>,
    },
    /// Which files have no names, so that their contents can go? Answered by [`TreeAnswer::Numbers`].
    ListDoomed {
        /// Only numbers greater than this one.
        after: FileNumber,
        /// The most numbers of an answer.
        most: u32,
    },
    /// The contents of these files, which have no names, are gone from these disks. Those that have contents on no
    /// other are forgotten. Answered by [`TreeAnswer::Forgotten`].
    Forget {
        /// The files.
        numbers: Vec<FileNumber>,
        /// The disks, by their identities.
        disks: Vec<u64>,
    },
    /// The records there are, to be checked. Answered by [`TreeAnswer::Records`].
    Survey {
        /// Only those that come after this key, which an earlier answer has named.
        after: Vec<u8>,
        /// The most bytes of an answer; some at least are given.
        bytes_max: u32,
    },
    /// Mend what a check has found. Answered by [`TreeAnswer::Done`].
    Mend {
        /// How.
        repair: Repair,
    },
}

/// The extended attribute of what a program makes under a name of its own and gives its name when it is whole. The
/// value is that first name, so of what has another one it means nothing. It goes when that name is changed, in the
/// same step.
pub const UNFINISHED: &[u8] = b"user.starfish.unfinished";

/// What is told of a file that was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenContents {
    /// It is at least this long now, in bytes.
    pub end: u64,
    /// How many of its first stripes have been made.
    pub stored_stripes: u32,
    /// How many bytes were written, at most: what was written twice may be counted twice.
    pub bytes: u64,
}

/// What is to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NewInode {
    /// A file. The disk of its stripe 0 is chosen by its number.
    File {
        /// How it is dealt to stripes.
        striping: layout::Striping,
        /// The number of the list of disks, which has as many as there are stripes, or more.
        disks: u32,
    },
    /// As [`File`](Self::File), but unfinished until its name is changed: meanwhile it has the extended attribute
    /// [`UNFINISHED`].
    UnfinishedFile {
        /// How it is dealt to stripes.
        striping: layout::Striping,
        /// The number of the list of disks.
        disks: u32,
    },
    /// A file that lies where it is said.
    PlacedFile(FileLayout),
    /// A directory.
    Directory,
    /// A symbolic link.
    Link {
        /// Where it leads.
        target: Vec<u8>,
    },
    /// Something special.
    Special {
        /// What it is.
        kind: DeviceKind,
        /// The number of the device.
        device: u32,
    },
}

impl NewInode {
    /// How it is dealt to stripes, if it is a file.
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

/// What happens to what has the name that another shall have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RenameMode {
    /// It is replaced, in the same step.
    Replace,
    /// It stays, and the rename is refused.
    Keep,
    /// It gets the other's name.
    Exchange,
}

/// What a name that is to be removed may lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhatToRemove {
    /// Anything but a directory.
    File,
    /// An empty directory.
    Directory,
    /// A file that no client has open, and none can have had open since before its keeper was started; otherwise it
    /// is refused as busy.
    AbandonedFile,
}

/// Whether an extended attribute has to be there when it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SetValue {
    /// It may be there or not.
    Any,
    /// It must not.
    New,
    /// It must.
    Replace,
}

/// Attributes to be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributeChanges {
    /// Permissions.
    pub mode: Option<u16>,
    /// User.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Length of a file in bytes.
    pub size: Option<u64>,
    /// When it was read.
    pub accessed: Option<SetTime>,
    /// When its contents were changed.
    pub modified: Option<SetTime>,
}

/// A time to be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SetTime {
    /// That of the operation.
    Now,
    /// This one.
    At(UnixTime),
}

/// An entry of a directory, with what it leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryEntry {
    /// Its name.
    pub name: Vec<u8>,
    /// What it leads to.
    pub inode: Inode,
}

/// How much is in a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeUse {
    /// Where its numbers begin, which no other namespace has.
    pub origin: u64,
    /// How many inodes there are.
    pub inodes: u64,
}

/// The answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TreeAnswer {
    /// It is done.
    Done,
    /// What it is.
    Inode(Inode),
    /// How much there is.
    Used(TreeUse),
    /// Entries, in the order of their names as bytes.
    Entries {
        /// What the directory is.
        directory: Inode,
        /// The entries.
        entries: Vec<DirectoryEntry>,
        /// Whether there are others after these.
        more: bool,
    },
    /// The name is gone.
    Removed {
        /// What it led to, or what had the new name, if it has no name now: its contents can go.
        doomed: Option<FileNumber>,
    },
    /// Bytes that are the caller's.
    Appended {
        /// Offset of the first.
        offset: u64,
        /// The file, with these bytes reserved.
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
    /// Files, each with where its contents are.
    Numbers(Vec<(FileNumber, Option<FileLayout>)>),
    /// Of the files that had no names, those that are known no more.
    Forgotten(Vec<FileNumber>),
    /// Records.
    Records {
        /// What they say.
        records: Vec<SurveyedRecord>,
        /// The key of the last of them, if there are others.
        more_after: Option<Vec<u8>>,
    },
}
