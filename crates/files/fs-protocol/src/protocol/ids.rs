//! Identifiers of files, memory and barriers in messages.

use serde::{Deserialize, Serialize};

/// Identifies a file for its whole life, independent of its names; drawn at random by its creator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileId(pub u64);

/// Memory that a compute node has opened to other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MemoryId {
    /// For the duration of a collective operation.
    Collective(CollectiveId),
    /// For the duration of a file request of this node, by its number.
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
