//! Errors below the seam, distinguished only where a caller might act on it.

use crate::NodeId;
use crate::checksums::ChecksumMismatch;

/// A failure of the machine: the network, a disk, or what lies on it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The other node cannot be reached any more.
    #[error("{node} is gone: {why}")]
    PeerGone {
        /// The node that was to be talked to.
        node: NodeId,
        /// The reason, as far as this side knows.
        why: String,
    },
    /// This node's network has been closed.
    #[error("the network is closed")]
    Closed,
    /// The other node does not have this one's cluster key, so neither talks to the other.
    #[error("{what}: {mismatch}")]
    OtherKey {
        /// The operation, and the other node.
        what: String,
        /// Which side has which key.
        mismatch: KeyMismatch,
    },
    /// The other node speaks another version of the protocol, so neither understands the other.
    #[error("{what}: it speaks version {theirs} of the protocol, this node version {ours}")]
    OtherVersion {
        /// What was being done, to whom.
        what: String,
        /// The version of the other node.
        theirs: u32,
        /// The version of this one.
        ours: u32,
    },
    /// Another process has what a node has for itself alone.
    #[error("{what}: {why}")]
    InUse {
        /// What it is of the node.
        part: NodePart,
        /// The address or the disk.
        what: String,
        /// Which process has it, as far as that is known.
        why: String,
    },
    /// No node answers at an address, but another program.
    #[error("{what}: that is not a Starfish node")]
    OtherProgram {
        /// The operation in progress.
        what: String,
    },
    /// No object of that name is on the disk.
    #[error("{what} does not exist")]
    NotFound {
        /// The object and its disk.
        what: String,
    },
    /// An object of that name is on the disk already.
    #[error("{what} exists already")]
    Exists {
        /// The object and its disk.
        what: String,
    },
    /// The disk is full.
    #[error("no space left on {what}")]
    NoSpace {
        /// The disk.
        what: String,
    },
    /// No object on that disk can be that long.
    #[error("{what} would be longer than the largest file of its file system")]
    TooLarge {
        /// The object and its disk.
        what: String,
    },
    /// The object on the disk is not one this version can read.
    #[error("{what} is damaged: {why}")]
    Damaged {
        /// The object and its disk.
        what: String,
        /// The defect found.
        why: String,
    },
    /// Data changed in the memory of a node on their way.
    #[error("the memory of a computer has changed data on their way: {0}")]
    Altered(#[from] ChecksumMismatch),
    /// A task of the node could not go on.
    #[error("{task}: {why}")]
    Failed {
        /// The task.
        task: String,
        /// Why not.
        why: String,
    },
    /// Another failure of a device or of the system under it.
    #[error("{what}: {why}")]
    Io {
        /// The operation, and its object.
        what: String,
        /// The system's message.
        why: String,
    },
}

/// What a node has for itself alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodePart {
    /// The address at which it listens.
    Address,
    /// One of its disks.
    Disk,
    /// Its store of metadata.
    Metadata,
}

/// The reason why two nodes do not trust each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyMismatch {
    /// The keys differ, or somebody in between changed the handshake.
    #[error("it has another cluster key than this side")]
    Differ,
    /// Only the other side encrypts.
    #[error("it encrypts its connections, and this side does not")]
    ClearHere,
    /// Only this side encrypts.
    #[error("it does not encrypt its connections, and this side does")]
    ClearThere,
}

/// The result of an operation of the machine. The error is in a box, so that a result is small: every answer to a
/// poll carries one, and hardly any of them is an error.
pub type Result<T> = std::result::Result<T, Box<Error>>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Every answer on the way of each request carries a result, and each future around it copies it.
    #[test]
    fn a_result_is_as_small_as_a_pointer() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }
}
