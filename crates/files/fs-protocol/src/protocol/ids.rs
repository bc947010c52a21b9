//! What files, memory and meetings are called in messages.

use serde::{Deserialize, Serialize};

/// Identifies a file for its whole life, whatever its name; drawn at random by its creator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileId(pub u64);

/// Memory that a compute node has opened to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MemoryId {
    /// For the time of a collective operation.
    Collective(MeetingId),
    /// For the time of a file request of the node's own, by its number.
    Request(u64),
}

/// An operation of a group: the members meet at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MeetingId {
    /// The group that works together.
    pub group: u64,
    /// Sequence number of the operation within the group.
    pub operation: u32,
}
