//! Records and repairs of a namespace check: plain data for messages.

use serde::{Deserialize, Serialize};

use crate::inode::{FileLayout, FileNumber, Inode};

/// A record of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SurveyedRecord {
    /// An inode.
    Inode(Inode),
    /// An entry of a directory.
    Entry {
        /// The directory.
        directory: FileNumber,
        /// The name.
        name: Vec<u8>,
        /// The inode it leads to.
        number: FileNumber,
    },
    /// An orphan: an inode without names.
    Orphan(FileNumber),
    /// An extended attribute of this inode.
    Extended(FileNumber),
    /// A record that cannot be read, by its key.
    Unreadable(Vec<u8>),
}

/// A repair of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Repair {
    /// Removes an unreadable record.
    Erase {
        /// Key of the record.
        key: Vec<u8>,
    },
    /// Removes an entry that leads to no inode.
    RemoveEntry {
        /// The directory.
        directory: FileNumber,
        /// The name.
        name: Vec<u8>,
    },
    /// Corrects the counts of an inode and the parent of a directory.
    Recount {
        /// The inode.
        number: FileNumber,
        /// Number of links.
        links: u32,
        /// Number of entries of a directory.
        entries: Option<u64>,
        /// Parent of a directory.
        parent: Option<FileNumber>,
    },
    /// Gives an inode without names a name in `/lost+found`.
    Find {
        /// The inode.
        number: FileNumber,
    },
    /// Marks a file without names as an orphan, to be removed.
    Doom {
        /// The file.
        number: FileNumber,
    },
    /// Creates a file in `/lost+found` for contents without an inode.
    Adopt {
        /// Number of the file.
        number: FileNumber,
        /// Location of its contents.
        layout: FileLayout,
        /// Length in bytes.
        bytes: u64,
        /// Number of its first stripes that were created, as in [`Inode`], including missing ones.
        stored_stripes: u32,
    },
    /// Never assigns this number to a file. Contents exist under it but no inode: the records are older than the
    /// contents.
    Reserve {
        /// The number.
        number: FileNumber,
    },
}
