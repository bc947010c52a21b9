//! Records and repairs of a namespace check: plain data that are sent in messages.

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
        /// The inode of this name.
        number: FileNumber,
    },
    /// An orphan: an inode without names.
    Orphan(FileNumber),
    /// An extended attribute of this inode.
    Extended(FileNumber),
    /// The key of a record that cannot be read.
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
    /// Removes an entry without an inode.
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
        /// Number of entries, if the inode is a directory.
        entries: Option<u64>,
        /// Parent, if the inode is a directory.
        parent: Option<FileNumber>,
    },
    /// Gives an inode without names a name in `/lost+found`.
    Find {
        /// The inode.
        number: FileNumber,
    },
    /// Marks a file without names as an orphan, so that it is removed.
    Doom {
        /// The file.
        number: FileNumber,
    },
    /// Creates a file in `/lost+found` for contents without an inode.
    Adopt {
        /// Number of the file.
        number: FileNumber,
        /// Location of the contents.
        layout: FileLayout,
        /// Length in bytes.
        bytes: u64,
        /// Number of the first stripes that were created, including missing stripes, as in [`Inode`].
        stored_stripes: u32,
    },
    /// Ensures that this number is never assigned to a new file: contents with this number exist but no inode, because
    /// the records are older than the contents.
    Reserve {
        /// The number.
        number: FileNumber,
    },
}
