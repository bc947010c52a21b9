//! Random identities of nodes, of files, and of everything else that must be unique.

use fs::FileId;
use machine::NodeId;

use crate::error::{Error, ErrorKind, Result};

/// Returns a number that no other draw has returned, with near certainty.
///
/// # Errors
/// If the system has no random numbers.
pub fn random() -> Result<u64> {
    getrandom::u64().map_err(|error| Error::new(ErrorKind::Io, "cannot get a random number", error))
}

/// Returns the name of a new node. All such names have the same length, so that no name is a prefix of another.
///
/// # Errors
/// As those of [`random`].
pub fn new_node_id() -> Result<NodeId> {
    Ok(NodeId(random()? | 1 << 63))
}

/// Returns the identity of a new file.
///
/// # Errors
/// As those of [`random`].
pub fn new_file_id() -> Result<FileId> {
    random().map(FileId)
}
