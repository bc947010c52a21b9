//! Work: what a node's processor is asked to do, by name.
//!
//! The file system marks its work where it does it; a machine description says what each kind costs, in
//! cycles and for some in cycles for each unit. A simulated machine charges that to the node's processor. A
//! real one does nothing: there the work itself takes the time.

/// A piece of work done by a file system on a node's processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A compute node turns part of a file request into a request to one I/O node.
    BuildRequest,
    /// A compute node takes in the reply to one of its requests.
    HandleReply,
    /// An I/O node decodes a request and dispatches it.
    HandleRequest,
    /// An I/O node starts a thread for one request.
    StartThread,
    /// An I/O node hands a request to a waiting thread of its pool.
    WakeThread,
    /// An I/O node looks a block up in its cache.
    LookUpCache,
    /// An I/O node puts a request into a disk's queue.
    QueueDiskRequest,
    /// A disk's driver takes in the completion of a request.
    CompleteDiskRequest,
    /// An I/O node copies the data of a message to where the thread that will serve it finds them.
    AcceptData {
        /// How many bytes.
        bytes: u64,
    },
    /// Bytes are copied from memory to memory.
    Copy {
        /// How many bytes.
        bytes: u64,
    },
    /// An I/O node lists the blocks of a collective request that lie on one of its disks.
    ListBlocks {
        /// How many blocks.
        blocks: u64,
    },
    /// An I/O node sorts such a list.
    SortBlocks {
        /// How many blocks.
        blocks: u64,
    },
    /// A node finds the next piece of an extent that goes to, or comes from, one compute node's memory.
    MatchPiece {
        /// How many dimensions the array in the file has.
        dimensions: u64,
    },
    /// A node begins to put data into another node's memory.
    CallMemput,
    /// The other node places such data.
    HandleMemput {
        /// How many bytes of data.
        bytes: u64,
    },
    /// The first node learns that its data are in place.
    ReturnMemput,
    /// A node begins to get data from another node's memory.
    CallMemget,
    /// The other node sends such data.
    HandleMemget {
        /// How many bytes of data.
        bytes: u64,
    },
    /// The first node takes in such data.
    ReturnMemget {
        /// How many bytes of data.
        bytes: u64,
    },
    /// A node does its part of a barrier.
    Barrier,
    /// A node puts a piece into the queue for its destination.
    QueuePiece {
        /// How many bytes are copied into the queue: none for a queued Memget.
        bytes: u64,
    },
    /// The destination finds out where queued pieces go, or come from.
    UnpackPieces {
        /// How many pieces.
        pieces: u64,
    },
    /// A thread goes to sleep until an interrupt wakes it.
    SuspendThread,
    /// A thread that was woken by an interrupt goes on.
    ResumeThread,
    /// The destination of a queued Memget copies the pieces' data together.
    PackData {
        /// How many bytes.
        bytes: u64,
    },
}

impl Work {
    /// The names of all kinds, as machine descriptions use them, at their [`index`](Self::index).
    pub const NAMES: [&'static str; 25] = [
        "build_request",
        "handle_reply",
        "handle_request",
        "start_thread",
        "wake_thread",
        "look_up_cache",
        "queue_disk_request",
        "complete_disk_request",
        "accept_data",
        "copy",
        "list_blocks",
        "sort_blocks",
        "match_piece",
        "call_memput",
        "handle_memput",
        "return_memput",
        "call_memget",
        "handle_memget",
        "return_memget",
        "barrier",
        "queue_piece",
        "unpack_pieces",
        "pack_data",
        "suspend_thread",
        "resume_thread",
    ];

    /// The kind of work as a number below the count of [`NAMES`](Self::NAMES).
    pub const fn index(self) -> usize {
        match self {
            Work::BuildRequest => 0,
            Work::HandleReply => 1,
            Work::HandleRequest => 2,
            Work::StartThread => 3,
            Work::WakeThread => 4,
            Work::LookUpCache => 5,
            Work::QueueDiskRequest => 6,
            Work::CompleteDiskRequest => 7,
            Work::AcceptData { .. } => 8,
            Work::Copy { .. } => 9,
            Work::ListBlocks { .. } => 10,
            Work::SortBlocks { .. } => 11,
            Work::MatchPiece { .. } => 12,
            Work::CallMemput => 13,
            Work::HandleMemput { .. } => 14,
            Work::ReturnMemput => 15,
            Work::CallMemget => 16,
            Work::HandleMemget { .. } => 17,
            Work::ReturnMemget { .. } => 18,
            Work::Barrier => 19,
            Work::QueuePiece { .. } => 20,
            Work::UnpackPieces { .. } => 21,
            Work::PackData { .. } => 22,
            Work::SuspendThread => 23,
            Work::ResumeThread => 24,
        }
    }

    /// The kind's name, as machine descriptions use it.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// How many units a cost per unit is multiplied with: bytes, or whatever the work counts; zero for work without
    /// a size.
    pub const fn units(self) -> u64 {
        match self {
            Work::AcceptData { bytes }
            | Work::Copy { bytes }
            | Work::HandleMemput { bytes }
            | Work::HandleMemget { bytes }
            | Work::ReturnMemget { bytes }
            | Work::QueuePiece { bytes }
            | Work::PackData { bytes } => bytes,
            Work::ListBlocks { blocks } | Work::SortBlocks { blocks } => blocks,
            Work::MatchPiece { dimensions } => dimensions,
            Work::UnpackPieces { pieces } => pieces,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_at_their_index() {
        assert_eq!(Work::BuildRequest.name(), "build_request");
        assert_eq!(Work::Copy { bytes: 1 }.name(), "copy");
        assert_eq!(Work::MatchPiece { dimensions: 1 }.name(), "match_piece");
        assert_eq!(Work::PackData { bytes: 1 }.name(), "pack_data");
        assert_eq!(Work::ReturnMemget { bytes: 1 }.name(), "return_memget");
        assert_eq!(Work::Barrier.name(), "barrier");
    }
}
