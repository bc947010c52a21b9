//! What a node may ask another for.

use layout::Striping;
use machine::Class;
use namespace::{FileNumber, TreeOperation, WrittenContents};
use serde::{Deserialize, Serialize};

use super::block_write::BlockWrite;
use super::collective::{Collective, Listed, Selected, Selecting, TeamStep};
use super::ids::{FileId, MeetingId, MemoryId};
use super::lock::LockChange;
#[cfg(doc)]
use super::*;
use crate::directory::{Entry, ListedStretch};
use crate::error::Failure;

/// Requests to another node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// How many disks have you, and what can you do?
    Describe,
    /// Cut or extend stripes of an open file to these lengths.
    Resize {
        /// The file.
        file: FileId,
        /// Pairs of stripe index and length in bytes.
        stripes: Vec<(u32, u64)>,
    },
    /// Give me part of one block; the data come as the payload of the reply.
    Read {
        /// The file.
        file: FileId,
        /// The stripe.
        stripe: u32,
        /// Offset in bytes within the stripe.
        offset: u64,
        /// How many bytes; not across the end of a block.
        bytes: u32,
        /// Whether I go on elsewhere: neither the rest of the block nor the next one will be wanted.
        is_alone: bool,
    },
    /// Take part of one block.
    Write(BlockWrite),
    /// Move the whole file between your disks and the memory of a group of compute nodes.
    Collective(Box<Collective>),
    /// Place the payload in your memory.
    Memput {
        /// The memory.
        memory: MemoryId,
        /// Offset in bytes within it.
        offset: u64,
    },
    /// Give me bytes of your memory; they come as the payload of the reply.
    Memget {
        /// The memory.
        memory: MemoryId,
        /// Offset in bytes within it.
        offset: u64,
        /// How many bytes.
        bytes: u32,
    },
    /// I have come to the meeting; answer when all have.
    Meet {
        /// Which meeting; its group is the team, if I have come as a member of one.
        meeting: MeetingId,
        /// What I have come for, as a member of a team.
        step: Option<TeamStep>,
        /// What I bring for all members of the team to know, of [`BROUGHT_BYTES_MAX`] bytes at most.
        brings: Vec<u8>,
        /// The failure before the meeting, if there was one.
        failure: Option<Failure>,
    },
    /// Place the pieces that the payload consists of, in order, in your memory: a queued Memput.
    MemputPieces {
        /// The memory.
        memory: MemoryId,
        /// Offset and length in bytes of each piece.
        pieces: Vec<(u64, u32)>,
    },
    /// Give me pieces of your memory; they come one after the other as the payload of the reply: a queued Memget.
    MemgetPieces {
        /// The memory.
        memory: MemoryId,
        /// Offset and length in bytes of each piece.
        pieces: Vec<(u64, u32)>,
    },
    /// Somebody waits now for the block that I asked for in the background: serve it as if on demand.
    ///
    /// Done at once, also if there is no such request (any more).
    Promote {
        /// The file.
        file: FileId,
        /// The stripe.
        stripe: u32,
        /// Offset in bytes within the stripe: any of the block.
        offset: u64,
    },
    /// How are you? For diagnosis.
    Examine,
    /// Read back part of the stripe of a file that a disk of yours has, and say what of it is damaged. It is done
    /// in the background; not more than [`SCRUB_BYTES_MAX`] bytes.
    Scrub {
        /// The file.
        file: FileId,
        /// Index of the disk within its node.
        disk: u32,
        /// Offset in bytes within the stripe.
        offset: u64,
        /// How many bytes; none, to ask only which stripe it is.
        bytes: u32,
    },
    /// These are some of the stretches of files that I have in this memory for a collective operation. What is told for
    /// an earlier operation of the same group is forgotten.
    Directory {
        /// The memory, which names the operation.
        memory: MemoryId,
        /// Entries of each file; of files and entries together as many as a header holds.
        entries: Vec<(FileId, Vec<Entry>)>,
    },
    /// Move the stretches of files that the members of a group have told you in directories between your disks and
    /// their memory.
    MoveListed(Box<Listed>),
    /// Count me among the members of a job, whose writes are cached and flushed together. Answered when no flush is
    /// going on.
    Join {
        /// The job's name.
        job: String,
        /// What a person calls the member.
        member: String,
        /// A number for the I/O nodes that it knows: only members that know the same ones flush together.
        io_nodes: u64,
    },
    /// Have the members of the group flush together, unless that has been begun.
    Gather {
        /// The group.
        group: u64,
        /// Sequence number of the flush that is wanted, or of an earlier one than will do; 1 for the first.
        flush: u32,
        /// Only what has been written to this file.
        file: Option<FileId>,
        /// Whether I have run out of room: then wait for other members that are about to.
        for_room: bool,
    },
    /// The members of the group flush together now: come to the first meeting of that flush.
    FlushTogether {
        /// The group.
        group: u64,
        /// Sequence number of the flush; 1 for the first.
        flush: u32,
        /// Only what has been written to this file.
        file: Option<FileId>,
    },
    /// Count me among the members of the group, or of the team, no more.
    Leave {
        /// The group.
        group: u64,
    },
    /// As [`Directory`](Request::Directory), with several stretches in one where they go on regularly.
    Stretches {
        /// The memory, which names the operation.
        memory: MemoryId,
        /// What there is of each file; as much as a header holds.
        stretches: Vec<(FileId, Vec<ListedStretch>)>,
    },
    /// Record what you do, for me or whoever asks for it.
    Record(RecordingStep),
    /// Which identities have your disks?
    DescribeDisks,
    /// Mark your disks as those of a set that has a namespace.
    MarkDisks {
        /// Where its numbers begin, which tells it from others.
        origin: u64,
        /// Whether it takes the place of another one, whose marks there may be.
        anew: bool,
    },
    /// Open these stripes of a file.
    Attach {
        /// Which stripes.
        stripes: StripePlaces,
        /// Make those that there are not.
        create: bool,
    },
    /// Bring something onto the media. Answered by [`Reply::Accepted`], or by [`Reply::Done`] of an I/O node that is
    /// never started anew.
    Flush(Flushing),
    /// Remove all stripes that you have of these files, of [`REMOVED_MAX`] at most, and make none of them any
    /// more. Answered by [`Reply::Removed`].
    Remove {
        /// The files.
        files: Vec<FileId>,
    },
    /// Which files have you stripes of?
    ListStripes {
        /// Only files of greater numbers than this one; of all, without it.
        after: Option<FileId>,
    },
    /// Perform an operation on names.
    Tree {
        /// Which.
        operation: Box<TreeOperation>,
        /// If set, I have the file in the answer open for this from now on, and need its contents until I let go of it.
        hold: Option<OpenFor>,
    },
    /// I have closed a file that I held; once for each time. If I have written to it, the answer is the file as it is
    /// then, unless it can go.
    LetGo {
        /// Its number.
        number: FileNumber,
        /// The use for which I had opened it: contents of an earlier handle may be reported as a reader closes.
        used: OpenFor,
        /// What I have written, as in [`TreeOperation::Wrote`].
        written: Option<WrittenContents>,
    },
    /// This is what I have selected of a file for a collective operation, or a part of that.
    Select(Box<Selecting>),
    /// Move what the members of a group have selected of a file, or what I have, between your disks and their memory.
    MoveSelected(Box<Selected>),
    /// Count me among the members of a team. Answered when all of them have come.
    FormTeam {
        /// The team's name; it is nobody else's until all have come.
        name: String,
        /// Which of the members I am, from 0.
        rank: u32,
        /// How many there are.
        size: u32,
    },
    /// I am still there, and my locks are still mine; and do this about a lock, if I say what.
    Lock {
        /// My lease; 0 if I have none.
        lease: u64,
        /// Which lock, and what about it.
        change: Option<LockChange>,
    },
    /// Where are data next in these stripes, and up to where? Only of an I/O node with
    /// [`FINDING_DATA`](crate::Features::FINDING_DATA).
    FindData {
        /// The file.
        file: FileId,
        /// Pairs of stripe index and the offset in bytes within the stripe from which on.
        stripes: Vec<(u32, u64)>,
    },
    /// Refuse from now on what was written under these leases, of [`FENCED_MAX`] at most: they have ended.
    Fence {
        /// The leases.
        leases: Vec<u64>,
    },
    /// I was not connected for a while, and have files open that I have held before, of `HELD_MAX` at most.
    HoldAgain {
        /// The number of each file, with the number of times that I hold it.
        files: Vec<(FileNumber, OpenCount)>,
    },
}

/// What is brought onto the media.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Flushing {
    /// What there is of these stripes of a file.
    Stripes(StripePlaces),
    /// All that I have written, whatever files it is of. Answered by [`Reply::Done`] if that is not known of stripes
    /// that have been closed since.
    Own,
    /// All that has been done with names. The answer names a run of their store.
    Names,
}

/// A step of recording what a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordingStep {
    /// Record what you do from now on, until somebody ends that. A recording that goes on is begun anew.
    Start,
    /// What does the clock of your recording show?
    ReadClock,
    /// End your recording, and keep it for me until I have fetched it.
    Stop,
    /// Give me the next part of the recording that you keep for me.
    Fetch,
}

/// The use for which a client opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpenFor {
    /// Reading only.
    Reading,
    /// Writing, too.
    Writing,
}

/// The number of times that a client has a file open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCount {
    /// For reading only.
    pub reading: u64,
    /// For writing, too.
    pub writing: u64,
}

impl OpenCount {
    /// Counts the file as opened once more.
    pub fn add(&mut self, used: OpenFor) {
        *self.of(used) += 1;
    }

    /// Counts the file as closed once. Of a use that is not counted nothing is taken.
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
    /// True if its payload is written to a disk, which checks its checksums then.
    pub fn goes_to_disk(&self) -> bool {
        matches!(self, Request::Write(_))
    }

    /// The class in which it is asked, unless the caller has a reason for another.
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
            | Request::LetGo { .. }
            | Request::HoldAgain { .. }
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
            | Request::Meet { .. }
            | Request::Select(_)
            | Request::MoveSelected(_)
            | Request::Record(RecordingStep::Fetch)
            | Request::MemputPieces { .. }
            | Request::MemgetPieces { .. } => Class::Demand,
        }
    }
}

/// The most files in one [`Request::Remove`]; the header of more would be too long.
pub const REMOVED_MAX: usize = 4096;

/// The most leases in one [`Request::Fence`], and in one answer about a lock.
pub const FENCED_MAX: usize = 1024;

/// The most files in one [`Request::HoldAgain`]; the header of more might be too long.
pub const HELD_MAX: usize = 2048;

/// Stripes in an answer to [`Request::ListStripes`] after which no further file is begun.
pub const LISTED_STRIPES: usize = 1000;

/// The most bytes that are read back for one [`Request::Scrub`]. If every other unit of them is damaged, the answer
/// still has its place in a header.
pub const SCRUB_BYTES_MAX: u32 = 4 << 20;

/// The most bytes in one answer to [`RecordingStep::Fetch`].
pub const RECORDED_BYTES_MAX: usize = 16 * 1024;

/// The most bytes that a member brings to a meeting of a team.
pub const BROUGHT_BYTES_MAX: usize = 512;

/// The most bytes that all members bring together: their list has room in a header.
pub const BROUGHT_BY_ALL_MAX: usize = 56 << 10;

/// The most pieces in one message; the header of more would be too long.
pub const PIECES_MAX: usize = 4096;

/// The most files and entries in one [`Request::Directory`]; the header of more might be too long.
pub const ENTRIES_MAX: usize = 1200;

/// Stripes of a file that are on the disks of one I/O node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StripePlaces {
    /// The file.
    pub file: FileId,
    /// Its striping.
    pub striping: Striping,
    /// Pairs of stripe index and identity of the disk.
    pub places: Vec<(u32, u64)>,
}
