//! Requests that transfer the data of several nodes, or of many extents, at once.

use crate::settings::CollectiveMethod;
use std::fmt;

use layout::{Selection, View};
use serde::{Deserialize, Serialize};

use super::ids::{FileId, MemoryId};

/// A disk-directed request: a single request for a whole collective operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Collective {
    /// The file.
    pub file: FileId,
    /// Direction of the data.
    pub direction: Direction,
    /// True if each disk serves its blocks in the order of their physical position.
    pub presort: bool,
    /// True if Memputs and Memgets are queued.
    pub queued: bool,
    /// The part of the file of each member.
    pub view: View,
    /// The members' memory.
    pub memory: MemoryId,
    /// The nodes of the group; member *i* has the part of node *i* of the view.
    pub members: Vec<u64>,
}

/// A collective operation on the extents that its members have listed in directories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    /// Direction of the data.
    pub direction: Direction,
    /// True if each disk serves its blocks in the order of their physical position.
    pub presort: bool,
    /// True if Memputs and Memgets are queued.
    pub queued: bool,
    /// The members' memory.
    pub memory: MemoryId,
    /// The nodes of the group, in the order of their ranks.
    pub members: Vec<u64>,
}

/// Selected bytes of a file, and their place in the client's memory, in which they are contiguous.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectedPart {
    /// Offset in bytes within the memory.
    pub at: u64,
    /// The selected bytes.
    pub selection: Selection,
    /// Stripes of the I/O node that the selection may touch; each must be open at the I/O node.
    pub stripes: Vec<u32>,
}

/// Selection of a group member, sent to an I/O node. It replaces the member's selection for an earlier operation of the
/// same group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selecting {
    /// The memory, which identifies the operation.
    pub memory: MemoryId,
    /// The file.
    pub file: FileId,
    /// Number of parts that are sent to the I/O node: at least one. If the I/O node has no selected bytes, the only
    /// part is empty.
    pub parts: u32,
    /// One of these parts.
    pub part: SelectedPart,
}

/// An operation on the bytes of a file that clients have selected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selected {
    /// The file.
    pub file: FileId,
    /// Direction of the data.
    pub direction: Direction,
    /// True if each disk serves its blocks in the order of their physical position.
    pub presort: bool,
    /// True if Memputs and Memgets are queued.
    pub queued: bool,
    /// True if written data must be on stable storage before the request is answered.
    pub to_media: bool,
    /// The memory of all participants.
    pub memory: MemoryId,
    /// The clients whose selections are transferred.
    pub selectors: Selectors,
}

/// The clients whose selections an operation transfers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Selectors {
    /// The nodes of a group, in order; each has [sent](Selecting) its selection.
    Members(Vec<u64>),
    /// Only the sender of the request.
    Asker(SelectedPart),
    /// Only the sender of the request, which has locks on the file. Only for an I/O node with
    /// [`LOCKED_SELECTIONS`](crate::Features::LOCKED_SELECTIONS).
    Locked {
        /// The selection of the sender.
        part: SelectedPart,
        /// The lease of its locks. The I/O node rejects the write if the lease is [fenced](super::Request::Fence).
        lease: u64,
    },
}

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// From the disks to the compute nodes.
    Read,
    /// From the compute nodes to the disks.
    Write,
}

/// A step that all members of a team perform together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TeamStep {
    /// A barrier with an exchange of the members' contributions.
    Barrier,
    /// A transfer of data.
    Move {
        /// Direction of the data.
        direction: Direction,
        /// True if the members exchange the data among themselves.
        in_two_phases: bool,
    },
    /// A flush of the members' writes to stable storage.
    Sync,
}

impl TeamStep {
    /// Returns the step of a collective read by a method.
    pub fn read(method: CollectiveMethod) -> TeamStep {
        TeamStep::Move { direction: Direction::Read, in_two_phases: method == CollectiveMethod::TwoPhase }
    }

    /// Returns the step of a collective write by a method.
    pub fn write(method: CollectiveMethod) -> TeamStep {
        TeamStep::Move { direction: Direction::Write, in_two_phases: method == CollectiveMethod::TwoPhase }
    }
}

/// Formats a step for the error message about members that perform different steps.
impl fmt::Display for TeamStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TeamStep::Barrier => "a barrier",
            TeamStep::Move { direction: Direction::Read, in_two_phases: false } => "a read",
            TeamStep::Move { direction: Direction::Read, in_two_phases: true } => "a read in two phases",
            TeamStep::Move { direction: Direction::Write, in_two_phases: false } => "a write",
            TeamStep::Move { direction: Direction::Write, in_two_phases: true } => "a write in two phases",
            TeamStep::Sync => "a sync",
        })
    }
}
