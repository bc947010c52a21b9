//! Requests to move the data of several nodes, or of many places, at once.

use crate::settings::CollectiveMethod;
use std::fmt;

use layout::{Selection, View};
use serde::{Deserialize, Serialize};

use super::ids::{FileId, MemoryId};

/// A disk-directed request: one for a whole collective operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Collective {
    /// The file.
    pub file: FileId,
    /// Whether data go to the disks or come from them.
    pub direction: Direction,
    /// Whether each disk's blocks are taken in the order of their physical position.
    pub presort: bool,
    /// Whether Memputs and Memgets are queued.
    pub queued: bool,
    /// Which part of the file each member has.
    pub view: View,
    /// The members' memory.
    pub memory: MemoryId,
    /// The nodes of the group; member *i* has the part of node *i* of the view.
    pub members: Vec<u64>,
}

/// A collective operation on the stretches that its members have told in directories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    /// Whether data go to the disks or come from them.
    pub direction: Direction,
    /// Whether each disk's blocks are taken in the order of their physical position.
    pub presort: bool,
    /// Whether Memputs and Memgets are queued.
    pub queued: bool,
    /// The members' memory.
    pub memory: MemoryId,
    /// The nodes of the group, in order.
    pub members: Vec<u64>,
}

/// Bytes of a file that a client has selected, and where in its memory they are, one right after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectedPart {
    /// Offset in bytes within the memory.
    pub at: u64,
    /// The selected bytes.
    pub selection: Selection,
    /// The stripes of the I/O node that it may touch, each of which has to be open there.
    pub stripes: Vec<u32>,
}

/// What a member of a group tells an I/O node of what it has selected. What was told for an earlier operation of the
/// same group is forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selecting {
    /// The memory, which names the operation.
    pub memory: MemoryId,
    /// The file.
    pub file: FileId,
    /// In how many parts the I/O node is told; one, which may be empty, if it has nothing of it.
    pub parts: u32,
    /// One of these parts.
    pub part: SelectedPart,
}

/// An operation on what clients have selected of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selected {
    /// The file.
    pub file: FileId,
    /// Whether data go to the disks or come from them.
    pub direction: Direction,
    /// Whether each disk's blocks are taken in the order of their physical position.
    pub presort: bool,
    /// Whether Memputs and Memgets are queued.
    pub queued: bool,
    /// Whether what is written is to be on the media when this is answered.
    pub to_media: bool,
    /// The memory of all who take part.
    pub memory: MemoryId,
    /// Whose selections are moved.
    pub selectors: Selectors,
}

/// Whose selections an operation moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Selectors {
    /// The selections of the nodes of a group, in order; each has [told](Selecting) its own.
    Members(Vec<u64>),
    /// The selection of the node that makes the request, alone.
    Asker(SelectedPart),
}

/// The direction in which data move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// From the disks to the compute nodes.
    Read,
    /// From the compute nodes to the disks.
    Write,
}

/// What the members of a team do together, all of them the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TeamStep {
    /// They meet, and tell each other what they have brought.
    Meet,
    /// They move data.
    Move {
        /// The direction.
        direction: Direction,
        /// Whether they exchange the data among themselves.
        in_two_phases: bool,
    },
    /// They bring what they have written onto the media.
    Sync,
}

impl TeamStep {
    /// Reading what all have selected by a method.
    pub fn read(method: CollectiveMethod) -> TeamStep {
        TeamStep::Move { direction: Direction::Read, in_two_phases: method == CollectiveMethod::TwoPhase }
    }

    /// Writing what all have selected by a method.
    pub fn write(method: CollectiveMethod) -> TeamStep {
        TeamStep::Move { direction: Direction::Write, in_two_phases: method == CollectiveMethod::TwoPhase }
    }
}

/// The name of a step in the message for members that do different things.
impl fmt::Display for TeamStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TeamStep::Meet => "a meeting",
            TeamStep::Move { direction: Direction::Read, in_two_phases: false } => "a read",
            TeamStep::Move { direction: Direction::Read, in_two_phases: true } => "a read in two phases",
            TeamStep::Move { direction: Direction::Write, in_two_phases: false } => "a write",
            TeamStep::Move { direction: Direction::Write, in_two_phases: true } => "a write in two phases",
            TeamStep::Sync => "a sync",
        })
    }
}
