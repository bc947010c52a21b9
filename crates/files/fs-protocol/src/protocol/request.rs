//! Requests between nodes.

use layout::Striping;
use machine::Class;
use namespace::{FileNumber, TreeOperation, WrittenContents};
use serde::{Deserialize, Serialize};

use super::block_write::BlockWrite;
use super::collective::{Collective, Listed, Selected, Selecting, TeamStep};
use super::ids::{CollectiveId, FileId, MemoryId};
use super::lock::LockChange;
#[cfg(doc)]
use super::*;
use crate::directory::{Entry, ListedStretch};
use crate::error::Failure;

/// Requests to another node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Returns the number of disks and the features of the I/O node.
    Describe,
    /// Truncates or extends stripes of an open file to these lengths.
    Resize {
        /// The file.
        file: FileId,
        /// Pairs of stripe index and length in bytes.
        stripes: Vec<(u32, u64)>,
    },
    /// Reads part of one block; the data are the payload of the reply.
    Read {
        /// The file.
        file: FileId,
        /// The stripe.
        stripe: u32,
        /// Offset in bytes within the stripe.
        offset: u64,
        /// Length in bytes; the range must not cross the end of a block.
        bytes: u32,
        /// True if the client will need neither the rest of the block nor the next block.
        is_alone: bool,
    },
    /// Writes part of one block.
    Write(BlockWrite),
    /// Transfers the whole file between the I/O node's disks and the memory of a group of compute nodes.
    Collective(Box<Collective>),
    /// Puts the payload into the receiver's memory.
    Memput {
        /// The memory.
        memory: MemoryId,
        /// Offset in bytes within the memory.
        offset: u64,
    },
    /// Returns bytes of the receiver's memory as the payload of the reply.
    Memget {
        /// The memory.
        memory: MemoryId,
        /// Offset in bytes within the memory.
        offset: u64,
        /// Length in bytes.
        bytes: u32,
    },
    /// Enters a barrier; answered when all members have entered.
    EnterBarrier {
        /// The barrier. Its group is the team, if the sender enters as a member of a team.
        barrier: CollectiveId,
        /// The step for which a member of a team enters.
        step: Option<TeamStep>,
        /// The member's contribution, which all members of the team receive; at most [`CONTRIBUTION_BYTES_MAX`]
        /// bytes.
        contribution: Vec<u8>,
        /// The member's failure before the barrier, if any.
        failure: Option<Failure>,
    },
    /// Puts pieces into the receiver's memory: a queued Memput. The payload consists of these pieces in order.
    MemputPieces {
        /// The memory.
        memory: MemoryId,
        /// Offset and length in bytes of each piece.
        pieces: Vec<(u64, u32)>,
    },
    /// Returns pieces of the receiver's memory, one after the other, as the payload of the reply: a queued
    /// Memget.
    MemgetPieces {
        /// The memory.
        memory: MemoryId,
        /// Offset and length in bytes of each piece.
        pieces: Vec<(u64, u32)>,
    },
    /// Promotes the sender's background requests for a block to demand, since a client now waits for it.
    ///
    /// Succeeds at once, even if there is no such request, or no longer.
    Promote {
        /// The file.
        file: FileId,
        /// The stripe.
        stripe: u32,
        /// Offset in bytes within the stripe, anywhere in the block.
        offset: u64,
    },
    /// Returns the state of the node, for diagnosis.
    Examine,
    /// Reads back part of a file's stripe on a disk of the receiver, at background priority, and reports the damaged
    /// ranges. The part has at most [`SCRUB_BYTES_MAX`] bytes.
    Scrub {
        /// The file.
        file: FileId,
        /// Index of the disk within its node.
        disk: u32,
        /// Offset in bytes within the stripe.
        offset: u64,
        /// Length in bytes; 0 to request only the stripe's label.
        bytes: u32,
    },
    /// Sends some of the extents of files that the client reads into or writes from a memory in a collective operation.
    /// They replace the client's extents for an earlier operation of the same group.
    Directory {
        /// The memory, which identifies the operation.
        memory: MemoryId,
        /// Entries of each file; files and entries together are limited by the size of a header.
        entries: Vec<(FileId, Vec<Entry>)>,
    },
    /// Transfers the extents that the members of a group have sent in directories between the receiver's disks and the
    /// members' memory.
    MoveListed(Box<Listed>),
    /// Joins a job, whose members cache writes and flush them together. Answered when no flush is in progress.
    Join {
        /// Name of the job.
        job: String,
        /// Name of the member, for people.
        member: String,
        /// Hash of the list of I/O nodes that the member uses: only members with the same list flush together.
        io_nodes: u64,
    },
    /// Begins a flush of all members of the group, unless the flush has begun.
    Gather {
        /// The group.
        group: u64,
        /// Minimum sequence number of the flush, which is 1 for the first flush.
        flush: u32,
        /// The file to flush; `None` for all files.
        file: Option<FileId>,
        /// True if the flush is needed because the sender's cache is full. Then the flush waits for other members whose
        /// caches will be full soon.
        for_room: bool,
    },
    /// Requests that a member of the group takes part in a flush now: the member must enter the flush's first barrier.
    FlushTogether {
        /// The group.
        group: u64,
        /// Sequence number of the flush; 1 for the first flush.
        flush: u32,
        /// The file to flush; `None` for all files.
        file: Option<FileId>,
    },
    /// Leaves the group, or the team.
    Leave {
        /// The group.
        group: u64,
    },
    /// Like [`Directory`](Request::Directory), but each regular run of entries is one item.
    Stretches {
        /// The memory, which identifies the operation.
        memory: MemoryId,
        /// Entries and runs of each file, limited by the size of a header.
        stretches: Vec<(FileId, Vec<ListedStretch>)>,
    },
    /// Controls the recording of the receiver's activity. Any client can send it.
    Record(RecordingStep),
    /// Returns the identities of the receiver's disks.
    DescribeDisks,
    /// Marks the receiver's disks as part of a set with a namespace.
    MarkDisks {
        /// Origin of the namespace's file numbers, which distinguishes it from other namespaces.
        origin: u64,
        /// True if the namespace replaces another namespace, whose marks may exist.
        anew: bool,
    },
    /// Opens stripes of a file.
    Attach {
        /// The stripes.
        stripes: StripePlaces,
        /// True to create missing stripes.
        create: bool,
    },
    /// Flushes to stable storage. Answered by [`Reply::Accepted`], or by [`Reply::Done`] of an I/O node that
    /// is never restarted.
    Flush(Flushing),
    /// Removes all of the receiver's stripes of these files, at most [`REMOVED_MAX`] files, and prevents that their
    /// stripes are created again. Answered by [`Reply::Removed`].
    Remove {
        /// The files.
        files: Vec<FileId>,
    },
    /// Lists the receiver's stripes by file.
    ListStripes {
        /// Lower limit, exclusive, of the file numbers to list; `None` for all files.
        after: Option<FileId>,
    },
    /// Performs an operation on names.
    Tree {
        /// The operation.
        operation: Box<TreeOperation>,
        /// If set, the client *holds* the file in the answer: it has the file open for this use from now on, and needs
        /// the contents until it releases the file.
        hold: Option<OpenFor>,
    },
    /// Reports that the client has closed a file that it held. Sent once for each open. If the client has written to
    /// the file, the answer is the file's current inode, unless the file is an orphan that no client holds any more.
    CloseFile {
        /// Number of the file.
        number: FileNumber,
        /// Use for which the client had opened the file: a close of a file opened for reading can report writes made
        /// through an earlier handle.
        used: OpenFor,
        /// The client's writes, as in [`TreeOperation::Wrote`].
        written: Option<WrittenContents>,
    },
    /// Sends the client's selection of a file for a collective operation, or a part of that selection.
    Select(Box<Selecting>),
    /// Transfers the selections of a group's members, or of the sender, between the receiver's disks and the clients'
    /// memory.
    MoveSelected(Box<Selected>),
    /// Joins a team. Answered when all members have joined.
    FormTeam {
        /// Name of the team; it is reserved for the team until all members have joined.
        name: String,
        /// Rank of the sender, from 0.
        rank: u32,
        /// Number of members.
        size: u32,
    },
    /// Renews the sender's lease, and performs an operation on a lock if one is included.
    Lock {
        /// The sender's lease; 0 if it has none.
        lease: u64,
        /// The lock and the operation on it.
        change: Option<LockChange>,
    },
    /// Finds the next data in these stripes. Only for an I/O node with
    /// [`FINDING_DATA`](crate::Features::FINDING_DATA).
    FindData {
        /// The file.
        file: FileId,
        /// Pairs of stripe index and start of the search, as a byte offset within the stripe.
        stripes: Vec<(u32, u64)>,
    },
    /// Rejects writes under these leases from now on, since the leases have ended; at most [`FENCED_MAX`] leases.
    Fence {
        /// The leases.
        leases: Vec<u64>,
    },
    /// Restores the sender's holds on its open files after a reconnection; at most [`HELD_MAX`] files.
    ReclaimOpenFiles {
        /// Number of each file, with the number of times that the client holds it.
        files: Vec<(FileNumber, OpenCount)>,
    },
}

/// Subject of a flush.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flushing {
    /// Existing stripes among these stripes of a file.
    Stripes(StripePlaces),
    /// All writes of the client, to any file. Answered by [`Reply::Done`] if stripes were closed since, for which the
    /// node cannot guarantee the flush.
    Own,
    /// All operations on names. The answer contains the incarnation of the metadata store.
    Names,
    /// Existing stripes among these stripes of a file, for all members of a team. Fails if a write of any member has
    /// failed; the next flush of that member fails, too. Only for an I/O node with
    /// [`TEAM_FLUSHES`](crate::Features::TEAM_FLUSHES).
    Team {
        /// The stripes.
        stripes: StripePlaces,
        /// The members.
        members: Vec<u64>,
    },
}

/// A step of recording a node's activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordingStep {
    /// Starts recording, until a client stops the recording. A recording in progress is restarted.
    Start,
    /// Returns the time of the recording's clock.
    ReadClock,
    /// Stops the recording, and keeps it for the sender to fetch.
    Stop,
    /// Returns the next part of the kept recording.
    Fetch,
}

/// Use for which a client opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpenFor {
    /// Reading only.
    Reading,
    /// Writing, or reading and writing.
    Writing,
}

/// Number of times that a client has a file open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCount {
    /// Opens for reading only.
    pub reading: u64,
    /// Opens for writing, or reading and writing.
    pub writing: u64,
}

impl OpenCount {
    /// Counts an open of the file.
    pub fn add(&mut self, used: OpenFor) {
        *self.of(used) += 1;
    }

    /// Counts a close of the file. A count of 0 stays 0.
    pub fn remove(&mut self, used: OpenFor) {
        let count = self.of(used);
        *count = count.saturating_sub(1);
    }

    /// True if the file is not open.
    pub fn is_nothing(self) -> bool {
        self == OpenCount::default()
    }

    fn of(&mut self, used: OpenFor) -> &mut u64 {
        match used {
            OpenFor::Reading => &mut self.reading,
            OpenFor::Writing => &mut self.writing,
        }
    }
}

impl Request {
    /// True if the payload is written to a disk, which then verifies its checksums.
    pub fn goes_to_disk(&self) -> bool {
        matches!(self, Request::Write(_))
    }

    /// Returns the class of the request, which the caller can override.
    pub fn class(&self) -> Class {
        match self {
            Request::Describe
            | Request::Examine
            | Request::Resize { .. }
            | Request::Promote { .. }
            | Request::Join { .. }
            | Request::Gather { .. }
            | Request::FlushTogether { .. }
            | Request::Leave { .. }
            | Request::Record(RecordingStep::Start | RecordingStep::ReadClock | RecordingStep::Stop)
            | Request::DescribeDisks
            | Request::MarkDisks { .. }
            | Request::Attach { .. }
            | Request::Flush(_)
            | Request::Remove { .. }
            | Request::ListStripes { .. }
            | Request::Tree { .. }
            | Request::CloseFile { .. }
            | Request::ReclaimOpenFiles { .. }
            | Request::FormTeam { .. }
            | Request::Lock { .. }
            | Request::Fence { .. }
            | Request::FindData { .. }
            | Request::Scrub { .. } => Class::Control,
            Request::Read { .. }
            | Request::Write(_)
            | Request::Collective(_)
            | Request::Directory { .. }
            | Request::Stretches { .. }
            | Request::MoveListed(_)
            | Request::Memput { .. }
            | Request::Memget { .. }
            | Request::EnterBarrier { .. }
            | Request::Select(_)
            | Request::MoveSelected(_)
            | Request::Record(RecordingStep::Fetch)
            | Request::MemputPieces { .. }
            | Request::MemgetPieces { .. } => Class::Demand,
        }
    }
}

/// Maximum number of files in one [`Request::Remove`]: more would make the header too long.
pub const REMOVED_MAX: usize = 4096;

/// Maximum number of leases in one [`Request::Fence`], and in one answer about a lock.
pub const FENCED_MAX: usize = 1024;

/// Maximum number of files in one [`Request::ReclaimOpenFiles`]: more could make the header too long.
pub const HELD_MAX: usize = 2048;

/// Number of stripes in an answer to [`Request::ListStripes`] after which no further file is added.
pub const LISTED_STRIPES: usize = 1000;

/// Maximum number of bytes read back for one [`Request::Scrub`]. Even if every other unit is damaged, the answer fits
/// in a header.
pub const SCRUB_BYTES_MAX: u32 = 4 << 20;

/// Maximum number of bytes in one answer to [`RecordingStep::Fetch`].
pub const RECORDED_BYTES_MAX: usize = 16 * 1024;

/// Maximum number of bytes of a member's contribution to a barrier of a team.
pub const CONTRIBUTION_BYTES_MAX: usize = 512;

/// Maximum number of bytes of all members' contributions together: the list of contributions must fit in a header.
pub const CONTRIBUTIONS_BYTES_MAX: usize = 56 << 10;

/// Maximum number of pieces in one message: more would make the header too long.
pub const PIECES_MAX: usize = 4096;

/// Maximum number of files and entries in one [`Request::Directory`]: more could make the header too long.
pub const ENTRIES_MAX: usize = 1200;

/// Stripes of a file on the disks of one I/O node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StripePlaces {
    /// The file.
    pub file: FileId,
    /// Striping of the file.
    pub striping: Striping,
    /// Pairs of stripe index and identity of the disk.
    pub places: Vec<(u32, u64)>,
}
