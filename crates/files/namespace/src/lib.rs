//! The namespace: directories, the inodes of files, and all operations on names.
//!
//! Each [operation](TreeOperation) is one [transaction](machine::Transaction): a crash leaves the old state or the new
//! one. This crate does not block, and does not access nodes, disks or the clock. Clients locate the bytes of a file by
//! its [`FileLayout`].
//!
//! Map of the code, in reading order:
//!
//! - `inode.rs`: attributes of a file; `file_name.rs`: valid names; `refusal.rs`: reasons for refusing an operation
//! - `operation.rs`: operations and their answers; `perform.rs`: execution of operations
//! - `keys.rs`: keys of the records in the store; `store.rs`: reading and writing records
//! - `walk.rs`: resolution of paths
//! - `creating.rs`, `renaming.rs`, `removing.rs`: creating, renaming and removing names; `listing.rs`: listing names
//! - `attribute_changes.rs`: attributes, sizes, versions; `extended.rs`: extended attributes
//! - `disk_lists.rs`: the disks of files
//! - `checked.rs`, `survey.rs`: all records, for a check; `check.rs`: defects of records and their repairs
//!
//! The namespace does not check permissions. The kernel of a host with a mount checks them, since it knows the users.

mod attribute_changes;
mod check;
mod checked;
mod creating;
mod disk_lists;
mod extended;
mod file_name;
mod inode;
mod keys;
mod listing;
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

pub use check::{Defect, defects};
pub use checked::{Repair, SurveyedRecord};
pub use file_name::{FILE_NAME_BYTES_MAX, LINK_DEPTH_MAX, PATH_BYTES_MAX, check_name};
pub use inode::{DeviceKind, FileLayout, FileNumber, Inode, InodeKind, RUN_STEP, UnixTime};
pub use operation::{
    AttributeChanges, DirectoryEntry, Location, NewInode, RemovalTarget, RenameMode, SetTime, SetValue,
    TreeAnswer, TreeOperation, TreeUse, UNFINISHED, WrittenContents,
};
pub use perform::{Performed, perform};
pub use refusal::TreeRefusal;
