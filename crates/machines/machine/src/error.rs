//! Errors of a machine. Two errors are separate variants only if callers handle them differently.

use crate::NodeId;
use crate::checksums::ChecksumMismatch;

/// Failure of the machine: the network, a disk, or a disk's contents.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The other node is disconnected.
    #[error("{node} disconnected: {why}")]
    PeerGone {
        /// The disconnected node.
        node: NodeId,
        /// Reason, as far as this side knows.
        why: String,
    },
    /// This node's network is closed.
    #[error("the network is closed")]
    Closed,
    /// The other node does not have this node's cluster key, so both refuse to communicate.
    #[error("{what}: {mismatch}")]
    OtherKey {
        /// The operation and the other node.
        what: String,
        /// The difference between the keys of the two sides.
        mismatch: KeyMismatch,
    },
    /// The other node speaks another version of the protocol.
    #[error("{what}: it uses protocol version {theirs}, this node version {ours}")]
    OtherVersion {
        /// The operation and the other node.
        what: String,
        /// Protocol version of the other node.
        theirs: u32,
        /// Protocol version of this node.
        ours: u32,
    },
    /// Another process already uses the listening address, a disk or the metadata store of this node.
    #[error("{what}: {why}")]
    InUse {
        /// Kind of the part.
        part: NodePart,
        /// The address or the disk.
        what: String,
        /// The other process, as far as known.
        why: String,
    },
    /// A program other than a Starfish node answers at an address.
    #[error("{what}: the program at this address is not a Starfish node")]
    OtherProgram {
        /// The operation in progress.
        what: String,
    },
    /// The disk has no object of this name.
    #[error("{what} does not exist")]
    NotFound {
        /// The object and its disk.
        what: String,
    },
    /// The disk already has an object of this name.
    #[error("{what} already exists")]
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
    /// The disk does not support objects of this length.
    #[error("{what} would be longer than the largest file of its file system")]
    TooLarge {
        /// The object and its disk.
        what: String,
    },
    /// The object on the disk is damaged.
    #[error("{what} is damaged: {why}")]
    Damaged {
        /// The object and its disk.
        what: String,
        /// The defect.
        why: String,
    },
    /// Data were altered in the memory of a node while in transit.
    #[error("the memory of a computer altered data in transit: {0}")]
    Altered(#[from] ChecksumMismatch),
    /// A task of the node failed.
    #[error("{task}: {why}")]
    Failed {
        /// The task.
        task: String,
        /// Reason of the failure.
        why: String,
    },
    /// Any other failure of a device or of the operating system.
    #[error("{what}: {why}")]
    Io {
        /// The operation, and the file or device that it was applied to.
        what: String,
        /// The message of the operating system.
        why: String,
    },
}

/// Exclusive part of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodePart {
    /// Listening address.
    Address,
    /// Disk.
    Disk,
    /// Metadata store.
    Metadata,
}

/// Reason why two nodes do not trust each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyMismatch {
    /// The keys differ, or an attacker changed the handshake.
    #[error("it has a different cluster key")]
    Differ,
    /// Only the other side encrypts.
    #[error("it encrypts its connections, but this side does not")]
    ClearHere,
    /// Only this side encrypts.
    #[error("it does not encrypt its connections, but this side does")]
    ClearThere,
}

/// Result of an operation of the machine. The error is boxed to keep results small: each poll returns a result, and few
/// results are errors.
pub type Result<T> = std::result::Result<T, Box<Error>>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Each async function on the path of a request returns a result, and each enclosing future copies this result.
    #[test]
    fn a_result_is_as_small_as_a_pointer() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }
}
