//! Work: kinds of processor work of a node, by name.
//!
//! The file system marks each piece of work. A machine description states the cost of each kind in cycles, and for some
//! kinds in cycles per unit. A simulated machine charges that cost to the node's processor. A real machine does
//! nothing, because the work itself takes the time.

/// Declares the kinds of work: the meaning, the unit (if any), and the name in machine descriptions.
macro_rules! kinds_of_work {
    ($($(#[doc = $doc:literal])* $kind:ident $({ $(#[$unit_doc:meta])* $unit:ident })? = $name:literal,)*) => {
        /// Kind of processor work done by a file system on a node.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Work {
            $($(#[doc = $doc])* $kind $({ $(#[$unit_doc])* $unit: u64 })?,)*
        }

        enum Index {
            $($kind,)*
        }

        impl Work {
            /// Names of all kinds, as machine descriptions use them, by [`index`](Self::index).
            pub const NAMES: [&'static str; [$($name),*].len()] = [$($name),*];

            /// Meaning of each kind, in one or two sentences.
            pub const MEANINGS: [&'static str; [$($name),*].len()] = [$(concat!($($doc),*).trim_ascii_start()),*];

            /// Unit of each kind: `bytes`, or the items that the work processes; `None` for work without a size.
            pub const UNITS: [Option<&'static str>; [$($name),*].len()] = [$(kinds_of_work!(@name $($unit)?)),*];

            /// Returns the kind of work as a number below the length of [`NAMES`](Self::NAMES).
            pub const fn index(self) -> usize {
                match self {
                    $(Work::$kind { .. } => Index::$kind as usize,)*
                }
            }

            /// Returns the number of units (bytes or items) of the work; zero for work without a size.
            pub const fn units(self) -> u64 {
                match self {
                    $(Work::$kind { $($unit)? } => kinds_of_work!(@units $($unit)?),)*
                }
            }
        }
    };
    (@name) => { None };
    (@name $unit:ident) => { Some(stringify!($unit)) };
    (@units) => { 0 };
    (@units $unit:ident) => { $unit };
}

kinds_of_work! {
    /// A compute node turns part of a file request into a request to one I/O node.
    BuildRequest = "build_request",
    /// A compute node processes the reply to one of its requests.
    HandleReply = "handle_reply",
    /// An I/O node decodes a request and dispatches it.
    HandleRequest = "handle_request",
    /// An I/O node starts a thread for one request.
    StartThread = "start_thread",
    /// An I/O node passes a request to a waiting thread of its pool.
    WakeThread = "wake_thread",
    /// An I/O node looks a block up in its cache.
    LookUpCache = "look_up_cache",
    /// An I/O node puts a request into a disk's queue.
    QueueDiskRequest = "queue_disk_request",
    /// A disk's driver processes the completion of a request.
    CompleteDiskRequest = "complete_disk_request",
    /// An I/O node copies the data of a message to the memory of the thread that will serve it.
    AcceptData {
        /// Number of bytes.
        bytes
    } = "accept_data",
    /// Bytes are copied from memory to memory.
    Copy {
        /// Number of bytes.
        bytes
    } = "copy",
    /// An I/O node lists the blocks of a collective request that lie on one of its disks.
    ListBlocks {
        /// Number of blocks.
        blocks
    } = "list_blocks",
    /// An I/O node sorts a list of blocks of a collective request.
    SortBlocks {
        /// Number of blocks.
        blocks
    } = "sort_blocks",
    /// A node computes the next piece of an extent that one compute node's memory receives or sends.
    MatchPiece {
        /// Number of array dimensions in which the position of the piece is computed; 0 if the piece directly follows
        /// the previous one.
        dimensions
    } = "match_piece",
    /// A compute node moves a piece from one place in its own memory to another.
    MovePiece {
        /// Number of bytes.
        bytes
    } = "move_piece",
    /// A node begins to put data into another node's memory.
    CallMemput = "call_memput",
    /// The other node places the data of a Memput in its memory.
    HandleMemput {
        /// Number of bytes of data.
        bytes
    } = "handle_memput",
    /// The first node processes the reply to its Memput.
    ReturnMemput = "return_memput",
    /// A node begins to get data from another node's memory.
    CallMemget = "call_memget",
    /// The other node sends the data of a Memget.
    HandleMemget {
        /// Number of bytes of data.
        bytes
    } = "handle_memget",
    /// The first node receives the data of its Memget.
    ReturnMemget {
        /// Number of bytes of data.
        bytes
    } = "return_memget",
    /// A node does its part of a barrier.
    Barrier = "barrier",
    /// A node puts a piece into the queue for its destination.
    QueuePiece {
        /// Number of bytes copied into the queue; 0 for a queued Memget.
        bytes
    } = "queue_piece",
    /// The destination determines the memory that queued pieces go to, or come from.
    UnpackPieces {
        /// Number of pieces.
        pieces
    } = "unpack_pieces",
    /// The destination of a queued Memget copies the data of the pieces into one message.
    PackData {
        /// Number of bytes.
        bytes
    } = "pack_data",
    /// A compute node records a write in the directory of its write cache.
    AppendEntry = "append_entry",
    /// A compute node determines the I/O nodes of its directory's entries, and packs the entries for each I/O node.
    DealEntries {
        /// Number of entries.
        entries
    } = "deal_entries",
    /// An I/O node processes part of the directory of a compute node's write cache.
    TakeEntries {
        /// Number of entries.
        entries
    } = "take_entries",
    /// An I/O node sorts the directory entries of all compute nodes, and determines the later of two overlapping
    /// entries.
    SortEntries {
        /// Number of entries.
        entries
    } = "sort_entries",
    /// A thread goes to sleep until an interrupt wakes it.
    SuspendThread = "suspend_thread",
    /// A thread continues after an interrupt has woken it.
    ResumeThread = "resume_thread",
}

impl Work {
    /// Returns the kind's name, as machine descriptions use it.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// Returns the kind's unit, if it has a size.
    pub const fn unit(self) -> Option<&'static str> {
        Self::UNITS[self.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_work_has_its_name() {
        assert_eq!(Work::BuildRequest.name(), "build_request");
        assert_eq!(Work::Copy { bytes: 1 }.name(), "copy");
        assert_eq!(Work::MatchPiece { dimensions: 1 }.name(), "match_piece");
        assert_eq!(Work::PackData { bytes: 1 }.name(), "pack_data");
        assert_eq!(Work::ReturnMemget { bytes: 1 }.name(), "return_memget");
        assert_eq!(Work::Barrier.name(), "barrier");
    }

    #[test]
    fn each_kind_of_work_has_its_unit() {
        for (work, unit, units) in [
            (Work::Copy { bytes: 3 }, Some("bytes"), 3),
            (Work::SortBlocks { blocks: 4 }, Some("blocks"), 4),
            (Work::MatchPiece { dimensions: 2 }, Some("dimensions"), 2),
            (Work::UnpackPieces { pieces: 9 }, Some("pieces"), 9),
            (Work::Barrier, None, 0),
        ] {
            assert_eq!((work.unit(), work.units()), (unit, units), "{work:?}");
        }
    }
}
