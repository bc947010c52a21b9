//! Identifiers of files, memory and barriers in messages.

use serde::{Deserialize, Serialize};

/// Identifies a file as long as it exists, independent of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileId(pub u64);

/// Memory that a compute node has opened to other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MemoryId {
    /// Opened for the duration of a collective operation.
    Collective(CollectiveId),
    /// Opened for the duration of a file request of this node, with this number.
    Request(u64),
}

/// Identifies an operation of a group, with its barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CollectiveId {
    /// The group.
    pub group: u64,
    /// Sequence number of the operation within the group.
    pub operation: u32,
}
