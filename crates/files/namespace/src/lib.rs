//! The namespace: directories, the inodes that names lead to, and all that is done with names.
//!
//! Each [operation](TreeOperation) is one [transaction](machine::Transaction): whoever is stopped in the middle leaves
//! the old state or the new one. Nothing here waits, knows nodes or disks, or has a clock: what the bytes of a file are
//! is known to those who have its [`FileLayout`].
//!
//! Map of the code, in reading order:
//!
//! - `inode.rs`: what is known of a file; `file_name.rs`: what a name is; `refusal.rs`: why something is not done
//! - `operation.rs`: what can be asked, and the answers; `perform.rs`: who does what
//! - `keys.rs`: how all of it lies in the store; `store.rs`: reading and writing it there
//! - `walk.rs`: where a path leads
//! - `making.rs`, `renaming.rs`, `removing.rs`: names that come, move and go; `listing.rs`: those there are
//! - `changing.rs`: attributes, sizes, versions; `extended.rs`: extended attributes
//! - `disk_lists.rs`: the disks that files lie on
//! - `checked.rs`, `survey.rs`: all records, to be checked; `check.rs`: what is wrong with them, and how it is mended
//!
//! Permissions are not looked at: that is done where users are known, which is the kernel of a computer that has the
//! tree mounted.

mod changing;
mod check;
mod checked;
mod disk_lists;
mod extended;
mod file_name;
mod inode;
mod keys;
mod listing;
mod making;
mod operation;
mod perform;
mod refusal;
mod removing;
mod renaming;
mod store;
mod survey;
mod walk;

#[cfg(test)]
mod laws;

pub use check::{Complaint, complaints};
pub use checked::{Repair, SurveyedRecord};
pub use file_name::{FILE_NAME_BYTES_MAX, LINK_DEPTH_MAX, PATH_BYTES_MAX, check_name};
pub use inode::{DeviceKind, FileLayout, FileNumber, Inode, InodeKind, RUN_STEP, UnixTime};
pub use operation::{
    AttributeChanges, DirectoryEntry, Location, NewInode, RenameMode, SetTime, SetValue, TreeAnswer,
    TreeOperation, TreeUse, UNFINISHED, WhatToRemove, WrittenContents,
};
pub use perform::{Performed, perform};
pub use refusal::TreeRefusal;
