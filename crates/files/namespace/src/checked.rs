//! What a check of a namespace reads, and what it asks for: plain data, which travel.

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
        /// What it leads to.
        number: FileNumber,
    },
    /// An inode without names.
    Doomed(FileNumber),
    /// An extended attribute of this inode.
    Extended(FileNumber),
    /// A record that cannot be read, by its key.
    Unreadable(Vec<u8>),
}

/// A way to mend a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Repair {
    /// Remove a record that nobody can read.
    Erase {
        /// Its key.
        key: Vec<u8>,
    },
    /// Remove an entry that leads nowhere.
    RemoveEntry {
        /// The directory.
        directory: FileNumber,
        /// The name.
        name: Vec<u8>,
    },
    /// Count again what leads to an inode and what is in it.
    Recount {
        /// The inode.
        number: FileNumber,
        /// How many links it has.
        links: u32,
        /// Of a directory, how many entries.
        entries: Option<u64>,
        /// Of a directory, where it is.
        parent: Option<FileNumber>,
    },
    /// Give an inode without names one in `/lost+found`.
    Find {
        /// The inode.
        number: FileNumber,
    },
    /// Have a file without names removed.
    Doom {
        /// The file.
        number: FileNumber,
    },
    /// Have a file of this number, of which only the contents are left, under a name in `/lost+found`.
    Adopt {
        /// Its number.
        number: FileNumber,
        /// Where its contents are.
        layout: FileLayout,
        /// How long it is in bytes.
        bytes: u64,
        /// How many of its first stripes were made, as in [`Inode`]: also of those that are nowhere.
        stored_stripes: u32,
    },
    /// Give this number, which contents have that no inode knows, to no file any more: the records are of an earlier
    /// time than the contents.
    Reserve {
        /// The number.
        number: FileNumber,
    },
}
