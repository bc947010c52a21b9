//! Messages between nodes, and their encoding.
//!
//! A header is `"SF"`, one byte of version, then a [`Frame`] in postcard's encoding (its format is stable and
//! published); data travel beside it as the message's payload. Nothing is trusted: decoding garbage,
//! truncated headers or unknown versions gives an error that says what was expected.
//!
//! ```text
//! 'S' 'F' version | Request tag body            a node asks; tag is its own
//! 'S' 'F' version | Reply   tag body            the other answers with the same tag
//! ```

use std::fmt;

use layout::{Selection, Striping, View};
use machine::{Class, Message};
use namespace::{FileNumber, Inode, TreeAnswer, TreeOperation, TreeRefusal, WrittenContents};
use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize};

use crate::directory::{Entry, ListedStretch};
use crate::error::Failure;
use crate::range_locks::{LockMode, LockRange};

/// The version of the protocol. Another version is refused.
pub const VERSION: u8 = 16;

/// The version of the labels on stripes, which outlives that of the protocol: files stay readable.
pub const LABEL_VERSION: u8 = 2;

/// The version of labels that did not tell when a file was begun. They are read still.
const LABEL_WITHOUT_BEGINNING: u8 = 1;

/// The version of what is noted on stripes when their file is committed.
const COMMITTED_VERSION: u8 = 1;

const FRAME_MAGIC: [u8; 2] = *b"SF";
const LABEL_MAGIC: [u8; 2] = *b"SL";
const COMMITTED_MAGIC: [u8; 2] = *b"SC";

/// Block requests, their answers and single Memputs and Memgets have shorter headers, for which memory is asked once.
const SHORT_BYTES: usize = 48;

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

/// Who asked what, or the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Frame {
    /// A question; the answer carries the same tag.
    Request(u64, Request),
    /// The answer to the request of that tag.
    Reply(u64, Reply),
}

/// Requests to another node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// How many disks have you?
    Describe,
    /// Make these stripes of a new file, which is unfinished until it is published.
    Create {
        /// The file's name.
        name: String,
        /// Its identity.
        file: FileId,
        /// How it is striped.
        striping: Striping,
        /// When it was begun, in nanoseconds since 1970.
        begun: u64,
        /// The finished file of that name, if there is one: it is to be replaced.
        replaces: Option<FileId>,
        /// Which stripes go to which of the I/O node's disks.
        stripes: Vec<StripeHome>,
    },
    /// Open all the stripes you have of the file of this name.
    Open {
        /// The file's name.
        name: String,
    },
    /// Which names have you stripes of?
    List {
        /// Only names that come after this one.
        after: String,
    },
    /// Remove all the stripes you have of the finished file of this name.
    Unlink {
        /// The file's name.
        name: String,
    },
    /// Remove the stripes you have of unfinished files of this name.
    Discard {
        /// The name.
        name: String,
        /// Only of this file.
        file: Option<FileId>,
        /// Only those that have not been committed; there has to be one.
        uncommitted: bool,
    },
    /// Bring everything written to the file onto the media, and note on its stripes that it is so for this size of it.
    Commit {
        /// The file.
        file: FileId,
        /// The size of the file in bytes.
        bytes: u64,
        /// Fail if you are another run than this one, which has accepted data of the file.
        incarnation: Option<u64>,
    },
    /// Give the stripes that you have of an unfinished file, all of which have been committed, the file's name.
    Publish {
        /// The name.
        name: String,
        /// The file.
        file: FileId,
        /// The file that has the name until then.
        replaces: Option<FileId>,
    },
    /// Cut or extend stripes of an open file to these lengths.
    Resize {
        /// The file.
        file: FileId,
        /// New size of the file, in bytes.
        bytes: u64,
        /// Pairs of stripe index and length in bytes.
        stripes: Vec<(u32, u64)>,
    },
    /// Bring everything written to the file onto the media.
    Flush {
        /// The file.
        file: FileId,
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
    },
    /// Take part of one block; the data are the payload, or to be fetched.
    Write {
        /// The file.
        file: FileId,
        /// The stripe.
        stripe: u32,
        /// Offset in bytes within the stripe; the data do not cross the end of a block.
        offset: u64,
        /// Where to fetch the data with Memget, if they are not the payload.
        fetch: Option<Fetch>,
    },
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
    Enter {
        /// Which meeting.
        meeting: MeetingId,
        /// The failure before the barrier, if there was one.
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
    /// Read back part of the stripe that a disk of yours has under this name, and say what of it is damaged. It is done
    /// in the background; not more than [`SCRUB_BYTES_MAX`] bytes.
    Scrub {
        /// The file's name.
        name: String,
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
    },
    /// Have the members of the group flush together, unless that has been begun.
    Gather {
        /// The group.
        group: u64,
        /// Sequence number of the flush that is wanted, or of an earlier one than will do; 1 for the first.
        flush: u32,
        /// Only what has been written to this file.
        file: Option<FileId>,
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
    /// As [`Write`](Request::Write), but answered when the data are at the disk; see
    /// [`write_through`](crate::File::write_through).
    WriteThrough {
        /// The file.
        file: FileId,
        /// The stripe.
        stripe: u32,
        /// Offset in bytes within the stripe; the data do not cross the end of a block.
        offset: u64,
        /// Where to fetch the data with Memget, if they are not the payload.
        fetch: Option<Fetch>,
    },
    /// As [`Directory`](Request::Directory), with several stretches in one where they go on regularly.
    Stretches {
        /// The memory, which names the operation.
        memory: MemoryId,
        /// What there is of each file; as much as a header holds.
        stretches: Vec<(FileId, Vec<ListedStretch>)>,
    },
    /// As [`Gather`](Request::Gather), of all files, because I have run out of room: wait for other members that are
    /// about to.
    GatherForRoom {
        /// The group.
        group: u64,
        /// Sequence number of the flush that is wanted, or of an earlier one than will do; 1 for the first.
        flush: u32,
    },
    /// Record what you do from now on, until somebody ends that. A recording that goes on is begun anew.
    StartRecording,
    /// What does the clock of your recording show?
    ReadRecordingClock,
    /// End your recording, and keep it for me until I have fetched it.
    StopRecording,
    /// Give me the next part of the recording that you keep for me.
    FetchRecording,
    /// Which identities have your disks?
    DescribeDisks,
    /// Mark your disks as those of a set that has a namespace.
    MarkDisks {
        /// Where its numbers begin, which tells it from others.
        origin: u64,
        /// Whether it takes the place of another one, whose marks there may be.
        anew: bool,
    },
    /// Open these stripes of a numbered file.
    Attach {
        /// Which stripes.
        stripes: NumberedStripes,
        /// Make those that there are not.
        create: bool,
    },
    /// Bring what there is of these stripes of a numbered file onto the media.
    FlushNumbered(NumberedStripes),
    /// Bring all that I have written onto the media, whatever files it is of. Answered by [`Reply::Accepted`], or by
    /// [`Reply::Done`] if that is not known of stripes that have been closed since.
    FlushOwn,
    /// Remove all stripes that you have of these numbered files, of [`REMOVED_MAX`] at most, and make none of them any
    /// more. Answered by [`Reply::NumberedRemoved`].
    RemoveNumbered {
        /// The files.
        files: Vec<FileId>,
    },
    /// Which numbered files have you stripes of?
    ListNumbered {
        /// Only files of greater numbers than this one; of all, without it.
        after: Option<FileId>,
    },
    /// Perform an operation on names.
    Tree {
        /// Which.
        operation: Box<TreeOperation>,
        /// Whether I have what is answered open from now on, and need its contents until I let go of it.
        hold: bool,
    },
    /// I have closed a file that I held; once for each time.
    LetGo {
        /// Its number.
        number: FileNumber,
    },
    /// Bring all that has been done with names onto the medium.
    FlushTree,
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
    /// I have come to a meeting of my team, as often as its members meet; answer when all have.
    MeetTeam {
        /// Which meeting; the group is the team.
        meeting: MeetingId,
        /// What I have come for.
        step: TeamStep,
        /// What I bring, for all to know.
        value: u64,
        /// The failure before the meeting, if there was one.
        failure: Option<Failure>,
    },
    /// Give me a lock on part of a file, take it back, or say who keeps me from having it.
    Lock(LockRequest),
    /// I am still there: my locks are still mine.
    RenewLease {
        /// My lease.
        lease: u64,
    },
    /// As [`Read`](Request::Read), by somebody who goes on elsewhere: neither the rest of the block nor the next one
    /// will be wanted.
    ReadAlone {
        /// The file.
        file: FileId,
        /// The stripe.
        stripe: u32,
        /// Offset in bytes within the stripe.
        offset: u64,
        /// How many bytes; not across the end of a block.
        bytes: u32,
    },
    /// Where are data next in these stripes, and up to where?
    FindData {
        /// The file.
        file: FileId,
        /// Pairs of stripe index and the offset in bytes within the stripe from which on.
        stripes: Vec<(u32, u64)>,
    },
    /// As [`Write`](Request::Write), the data with it, to a stripe of a numbered file that is not known to be open:
    /// open it before, or make it.
    WriteNumbered {
        /// The file.
        file: FileId,
        /// How it is striped.
        striping: Striping,
        /// The stripe.
        stripe: u32,
        /// The identity of the disk that the stripe is on.
        disk: u64,
        /// Offset in bytes within the stripe.
        offset: u64,
    },
    /// As [`LetGo`](Request::LetGo), of a file that I have written to. Answered with the file as it is then; or as
    /// `LetGo` is, if it can go.
    LetGoWritten {
        /// Its number.
        number: FileNumber,
        /// How, as in [`TreeOperation::Wrote`].
        written: WrittenContents,
    },
    /// As [`Write`](Request::Write), the data with it, of what was written under locks: refused if their lease is
    /// [fenced](Request::Fence).
    WriteUnderLease {
        /// The lease.
        lease: u64,
        /// The file.
        file: FileId,
        /// The stripe.
        stripe: u32,
        /// Offset in bytes within the stripe.
        offset: u64,
    },
    /// Refuse from now on what was written under these leases, of [`FENCED_MAX`] at most: they have ended.
    Fence {
        /// The leases.
        leases: Vec<u64>,
    },
}

impl Request {
    /// The class in which it is asked, unless the caller has a reason for another.
    pub fn class(&self) -> Class {
        match self {
            Request::Describe
            | Request::Examine
            | Request::Create { .. }
            | Request::Open { .. }
            | Request::List { .. }
            | Request::Unlink { .. }
            | Request::Discard { .. }
            | Request::Commit { .. }
            | Request::Publish { .. }
            | Request::Resize { .. }
            | Request::Flush { .. }
            | Request::Promote { .. }
            | Request::Join { .. }
            | Request::Gather { .. }
            | Request::GatherForRoom { .. }
            | Request::FlushTogether { .. }
            | Request::Leave { .. }
            | Request::StartRecording
            | Request::ReadRecordingClock
            | Request::StopRecording
            | Request::DescribeDisks
            | Request::MarkDisks { .. }
            | Request::Attach { .. }
            | Request::FlushNumbered(_)
            | Request::FlushOwn
            | Request::RemoveNumbered { .. }
            | Request::ListNumbered { .. }
            | Request::Tree { .. }
            | Request::LetGo { .. }
            | Request::LetGoWritten { .. }
            | Request::FlushTree
            | Request::FormTeam { .. }
            | Request::Lock(_)
            | Request::RenewLease { .. }
            | Request::Fence { .. }
            | Request::FindData { .. }
            | Request::Scrub { .. } => Class::Control,
            Request::Read { .. }
            | Request::ReadAlone { .. }
            | Request::Write { .. }
            | Request::WriteThrough { .. }
            | Request::WriteNumbered { .. }
            | Request::WriteUnderLease { .. }
            | Request::Collective(_)
            | Request::Directory { .. }
            | Request::Stretches { .. }
            | Request::MoveListed(_)
            | Request::Memput { .. }
            | Request::Memget { .. }
            | Request::Enter { .. }
            | Request::Select(_)
            | Request::MoveSelected(_)
            | Request::MeetTeam { .. }
            | Request::FetchRecording
            | Request::MemputPieces { .. }
            | Request::MemgetPieces { .. } => Class::Demand,
        }
    }
}

/// The most bytes of names in one answer to [`Request::List`]. Their number takes some more.
pub(crate) const LISTED_BYTES_MAX: usize = 32 * 1024;

/// The most numbered files in one [`Request::RemoveNumbered`]; the header of more would be too long.
pub const REMOVED_MAX: usize = 4096;

/// The most leases in one [`Request::Fence`], and in one answer about a lock.
pub const FENCED_MAX: usize = 1024;

/// Stripes in an answer to [`Request::ListNumbered`] after which no further file is begun.
pub(crate) const LISTED_STRIPES: usize = 1000;

/// The most bytes that are read back for one [`Request::Scrub`]. If every other unit of them is damaged, the answer
/// still has its place in a header.
pub const SCRUB_BYTES_MAX: u32 = 4 << 20;

/// The most bytes in one answer to [`Request::FetchRecording`].
pub(crate) const RECORDED_BYTES_MAX: usize = 16 * 1024;

/// The most pieces in one message; the header of more would be too long.
pub(crate) const PIECES_MAX: usize = 4096;

/// The most files and entries in one [`Request::Directory`]; the header of more might be too long.
pub(crate) const ENTRIES_MAX: usize = 1200;

/// Data of a compute node's memory that an I/O node is to fetch with Memget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetch {
    /// The memory.
    pub memory: MemoryId,
    /// Offset in bytes within it.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u32,
}

/// A stripe of a file and the disk, counted within its I/O node, that it lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StripeHome {
    /// Index of the stripe.
    pub stripe: u32,
    /// Index of the disk within its node.
    pub disk: u32,
}

/// Stripes of a numbered file that are on the disks of one I/O node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedStripes {
    /// The file.
    pub file: FileId,
    /// How it is striped.
    pub striping: Striping,
    /// Pairs of stripe index and identity of the disk.
    pub places: Vec<(u32, u64)>,
}

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

/// A collective operation on whatever its members have told in directories.
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
    /// Which bytes.
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
    /// One of them.
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
    /// The memory of whoever takes part.
    pub memory: MemoryId,
    /// Who does.
    pub selectors: Selectors,
}

/// Whose selections an operation moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Selectors {
    /// Those of the nodes of a group, in order; each has [told](Selecting) what it has selected.
    Members(Vec<u64>),
    /// That of the node that asks for it, who needs nobody else.
    Asker(SelectedPart),
}

/// Which way data move.
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
        /// Which way.
        direction: Direction,
        /// Whether they exchange the data among themselves.
        in_two_phases: bool,
    },
    /// They bring what they have written onto the media.
    Sync,
}

/// As it is called where members do different things.
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

/// Replies to requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// It is done; data asked for are the payload.
    Done,
    /// It could not be done.
    Failed(Failure),
    /// To [`Request::Describe`].
    Described {
        /// The number of disks of the I/O node.
        disks: u32,
        /// The largest block it can handle, in bytes.
        block_bytes_max: u64,
    },
    /// To [`Request::Open`]: what was found under the name.
    Opened {
        /// One entry for each object of that name: a disk may have one of a finished file, and one of an unfinished.
        stripes: Vec<FoundStripe>,
    },
    /// To [`Request::List`]: the first of the names, as many as an answer holds.
    Listed {
        /// The names, sorted.
        names: Vec<String>,
        /// Whether there are others after these.
        more: bool,
    },
    /// To [`Request::Examine`].
    Examined {
        /// The release of the I/O node's program.
        release: String,
        /// Its clock on the wall: nanoseconds since 1970 began. None if it has none.
        date: Option<u64>,
        /// The computer it runs on, if that is known.
        computer: Option<ExaminedComputer>,
        /// Its disks.
        disks: Vec<ExaminedDisk>,
    },
    /// To [`Request::Write`], [`Request::Flush`], [`Request::Commit`] and what is [selected](Selecting), instead of
    /// [`Reply::Done`], by an I/O node that may be started anew.
    Accepted {
        /// Which run of the I/O node it is, or the first of those that it continues: what another one accepted and did
        /// not flush is lost.
        incarnation: u64,
    },
    /// To [`Request::Scrub`].
    Scrubbed {
        /// What the stripe says it is.
        label: Label,
        /// Its length in bytes.
        bytes: u64,
        /// Damaged ranges, in order.
        damage: Vec<Damage>,
        /// The same of the first such part, for a person to read.
        why: Option<String>,
    },
    /// To [`Request::MoveListed`], and to [`Request::MoveSelected`] for a group.
    Moved {
        /// How many blocks of each disk had a part in it.
        blocks: Vec<u64>,
        /// How many bytes of members gave way to what another member had written later.
        hidden: u64,
    },
    /// To [`Request::Join`].
    Joined {
        /// The group of the job's members.
        group: u64,
        /// How many flushes it has begun: the member takes part in all that follow.
        flushes: u32,
    },
    /// To [`Request::Gather`].
    Flushing {
        /// Sequence number of the flush that has been begun.
        flush: u32,
    },
    /// To [`Request::Enter`], of an I/O node: all have come.
    Met {
        /// The members that take part, in order.
        members: Vec<u64>,
    },
    /// To [`Request::ReadRecordingClock`].
    RecordingClock {
        /// The time of an event that is recorded now, in nanoseconds since 1970.
        unix_ns: u64,
    },
    /// To [`Request::StopRecording`].
    Recorded {
        /// Time 0 of what is recorded, in nanoseconds since 1970.
        zero_unix_ns: u64,
        /// How many bytes there are to be fetched.
        bytes: u64,
    },
    /// To [`Request::FetchRecording`].
    RecordedPart {
        /// The next bytes of a section of a trace; none after the last.
        bytes: Vec<u8>,
    },
    /// To [`Request::DescribeDisks`].
    DisksDescribed {
        /// The identity of each disk; none if that cannot be read or made.
        identities: Vec<Option<u64>>,
    },
    /// To [`Request::Attach`]: the stripes that are open now.
    Attached {
        /// Pairs of stripe index and length in bytes. Those that there are not are left out.
        stripes: Vec<(u32, u64)>,
    },
    /// To [`Request::RemoveNumbered`].
    NumberedRemoved {
        /// The disks from which they have gone, by their identities; those whose identity cannot be read are left out.
        disks: Vec<u64>,
    },
    /// To [`Request::ListNumbered`]: the stripes of the first of the files, as many as an answer holds.
    NumberedListed {
        /// The stripes, sorted by file.
        stripes: Vec<ListedStripe>,
        /// Whether there are others after these.
        more: bool,
    },
    /// To [`Request::Tree`], [`Request::LetGo`] and [`Request::LetGoWritten`].
    Tree {
        /// The answer.
        answer: Box<TreeAnswer>,
        /// The directories that were changed, as in [`Performed`](namespace::Performed).
        directories: Vec<Inode>,
    },
    /// To [`Request::Tree`]: why it is not done.
    Refused(TreeRefusal),
    /// To [`Request::FormTeam`]: all have come.
    TeamFormed {
        /// The group of its members.
        group: u64,
        /// The members, by rank.
        members: Vec<u64>,
    },
    /// To [`Request::MeetTeam`]: all have come.
    TeamMet {
        /// What each of them has brought, by rank.
        values: Vec<u64>,
    },
    /// To [`Request::Lock`] and [`Request::RenewLease`].
    Lock(LockAnswer),
    /// To [`Request::FindData`].
    DataFound {
        /// The index of each stripe that has any there, and where they begin and end within it.
        data: Vec<(u32, u64, u64)>,
    },
}

/// What a client wants of the lock on a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockRequest {
    /// The client's lease; 0 if it has none.
    pub lease: u64,
    /// The file.
    pub number: FileNumber,
    /// Whose lock it is, of those that the client tells apart.
    pub owner: u64,
    /// Which part.
    pub range: LockRange,
    /// What is to be done.
    pub step: LockStep,
    /// Whether an earlier run of the I/O node has given it.
    pub claims: bool,
}

/// What is to be done with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LockStep {
    /// See whether one could have it.
    Test(LockMode),
    /// Have it, in place of what the owner has of that part.
    Set(LockMode),
    /// Have none.
    Release,
}

/// An answer about locks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LockAnswer {
    /// It is done, and this is the client's lease.
    Done {
        /// The lease.
        lease: u64,
    },
    /// Somebody else has a lock that does not allow it.
    Held {
        /// The client's lease.
        lease: u64,
        /// That lock.
        lock: HeldLock,
    },
    /// The lease has ended, and all locks of it are lost.
    Lost,
    /// The client has as many as it may have.
    TooMany,
    /// The node was started a moment ago, and somebody may have locks of its earlier run: ask again.
    NotYet,
    /// It is done, and this is the client's lease; before the lock is relied on, these are to be
    /// [fenced](Request::Fence).
    DoneAfter {
        /// The lease.
        lease: u64,
        /// Leases that have ended with exclusive locks on the file.
        ended: Vec<u64>,
    },
}

/// A lock that keeps somebody out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldLock {
    /// Whose it is, if he is of the same client.
    pub owner: Option<u64>,
    /// On which part of the file.
    pub range: LockRange,
    /// What it lets others have.
    pub mode: LockMode,
}

/// An I/O node's report on its computer: see [`machine::Computer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExaminedComputer {
    /// Which one it is.
    pub id: u64,
    /// How many processors it has.
    pub processors: u32,
    /// Nanoseconds for which they have worked, all together.
    pub worked: u64,
    /// Nanoseconds for which they have worked for this node.
    pub worked_for_node: u64,
}

/// An I/O node's report on one of its disks, as far as known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExaminedDisk {
    /// Its size and what of it is free, in bytes.
    pub space: Option<(u64, u64)>,
    /// Identifies its device among those of the computer.
    pub device: Option<u64>,
    /// Whether it is as fast as it is whatever other disks on its device do.
    pub has_own_pace: bool,
    /// Why it cannot be used, if that is so.
    pub failure: Option<String>,
    /// Reads that have been held up there, if any have been.
    pub held_up: Option<ExaminedHeldUp>,
}

/// Reads that had to wait while many writes of another client went on, with about as many waiting in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExaminedHeldUp {
    /// How many there have been.
    pub reads: u64,
    /// The most writes of one client that waited then.
    pub writes_most: u64,
    /// Nanoseconds since the last of them.
    pub ago: u64,
}

/// A stripe of a numbered file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedStripe {
    /// The file.
    pub file: FileId,
    /// Index of the disk within its node.
    pub disk: u32,
    /// Index of the stripe and its length in bytes; none if that cannot be read.
    pub stripe: Option<(u32, u64)>,
}

/// Bytes of a stripe that do not match their checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Offset in bytes within the stripe.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// A stripe found on a disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundStripe {
    /// Index of the disk within its node.
    pub disk: u32,
    /// What the stripe says it is.
    pub label: Label,
    /// Its length in bytes.
    pub bytes: u64,
    /// Whether it has the file's name.
    pub published: bool,
    /// The note of the file's last commit, if there was one.
    pub committed: Option<Committed>,
}

/// The note on each stripe of a file when it is committed: all that was written to the stripe before is on the
/// medium.
///
/// A file is committed when all of its stripes have one, and as long as the least of them says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// The size of the file in bytes.
    pub bytes: u64,
}

impl Committed {
    /// The note's bytes, as they lie on the disk.
    pub fn encode(&self) -> Vec<u8> {
        encode(COMMITTED_MAGIC, COMMITTED_VERSION, self)
    }

    /// Reads a note from a disk. An object that was never committed has an empty one.
    pub fn decode(bytes: &[u8]) -> Result<Option<Committed>, String> {
        if bytes.is_empty() { Ok(None) } else { decode(COMMITTED_MAGIC, COMMITTED_VERSION, bytes).map(Some) }
    }
}

/// The label of a stripe on its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The file it belongs to.
    pub file: FileId,
    /// How that file is striped.
    pub striping: Striping,
    /// Which of the stripes this is.
    pub stripe: u32,
    /// When the file was begun, in nanoseconds since 1970; zero if that is not known. On what marks a disk as one of a
    /// namespace, where the numbers of that begin.
    pub begun: u64,
    /// The file of that name that it was to replace.
    pub replaces: Option<FileId>,
}

/// A label of version 1. Files that have one were never unfinished.
#[derive(Deserialize)]
struct LabelWithoutBeginning {
    file: FileId,
    striping: Striping,
    stripe: u32,
}

impl From<LabelWithoutBeginning> for Label {
    fn from(label: LabelWithoutBeginning) -> Self {
        let LabelWithoutBeginning { file, striping, stripe } = label;
        Label { file, striping, stripe, begun: 0, replaces: None }
    }
}

impl Label {
    /// Whether a stripe with this label is of the same file as one with the other.
    pub(crate) fn is_of(&self, other: Label) -> bool {
        *self == Label { stripe: self.stripe, ..other }
    }

    /// The label's bytes, as they lie on the disk.
    pub fn encode(&self) -> Vec<u8> {
        encode(LABEL_MAGIC, LABEL_VERSION, self)
    }

    /// Reads a label from a disk.
    pub fn decode(bytes: &[u8]) -> Result<Label, String> {
        let label = if bytes.get(2) == Some(&LABEL_WITHOUT_BEGINNING) {
            decode::<LabelWithoutBeginning>(LABEL_MAGIC, LABEL_WITHOUT_BEGINNING, bytes)?.into()
        } else {
            decode::<Label>(LABEL_MAGIC, LABEL_VERSION, bytes)?
        };
        if label.stripe < label.striping.stripe_count() {
            Ok(label)
        } else {
            Err(format!("claims to be stripe {} of {}", label.stripe, label.striping.stripe_count()))
        }
    }
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Label { file, striping, stripe, .. } = self;
        let (count, block) = (striping.stripe_count(), striping.block_bytes());
        write!(f, "stripe {stripe} of {count} of file {:016x} in blocks of {block} bytes", file.0)
    }
}

impl Frame {
    /// The header that carries this frame.
    pub fn encode(&self) -> Vec<u8> {
        encode(FRAME_MAGIC, VERSION, self)
    }

    /// The version of the protocol in which a header is written, if it is another one.
    pub(crate) fn other_version(header: &[u8]) -> Option<u8> {
        let version = *header.strip_prefix(&FRAME_MAGIC)?.first()?;
        (version != VERSION).then_some(version)
    }

    /// Reads a header. The text of the error says what was expected.
    pub fn decode(header: &[u8]) -> Result<Frame, String> {
        if header.len() > Message::HEADER_BYTES_MAX {
            return Err(format!("a header of {} bytes is too long", header.len()));
        }
        decode(FRAME_MAGIC, VERSION, header)
    }
}

fn encode<T: Serialize>(magic: [u8; 2], version: u8, value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(SHORT_BYTES);
    bytes.extend([magic[0], magic[1], version]);
    postcard::serialize_with_flavor(value, Bytes(bytes)).expect("a vector takes any encoding")
}

/// Collects an encoding byte by byte: numbers are a few bytes each, for which a call that copies them takes longer.
struct Bytes(Vec<u8>);

impl Flavor for Bytes {
    type Output = Vec<u8>;

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
}

fn decode<T: for<'a> Deserialize<'a>>(magic: [u8; 2], version: u8, bytes: &[u8]) -> Result<T, String> {
    let Some(rest) = bytes.strip_prefix(&magic) else {
        return Err(format!("not Starfish's: it does not begin with \"{}\"", magic.escape_ascii()));
    };
    let Some((&found, body)) = rest.split_first() else {
        return Err("truncated before its version".into());
    };
    if found != version {
        return Err(format!("version {found}, but this program knows version {version}"));
    }
    match postcard::take_from_bytes(body) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(format!("{} bytes too many", rest.len())),
        Err(error) => Err(format!("garbled: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn another_version_is_refused_by_number() {
        let mut header = Frame::Request(1, Request::Describe).encode();
        header[2] = VERSION + 1;
        let error = Frame::decode(&header).unwrap_err();
        assert!(error.contains(&format!("version {}", VERSION + 1)), "{error}");
    }

    #[test]
    fn a_label_that_contradicts_itself_is_refused() {
        let striping = Striping::new(8192, 4).unwrap();
        let label = Label { file: FileId(7), striping, stripe: 4, begun: 1, replaces: None };
        assert!(Label::decode(&label.encode()).unwrap_err().contains("stripe 4 of 4"));
    }

    #[test]
    fn labels_of_earlier_releases_are_read() {
        let earlier = b"SL\x01\x07\x80\x40\x04\x03";
        let striping = Striping::new(8192, 4).unwrap();
        let label = Label { file: FileId(7), striping, stripe: 3, begun: 0, replaces: None };
        assert_eq!(Label::decode(earlier), Ok(label));
        assert_eq!(Label::decode(&label.encode()), Ok(label));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(tag: u64, offset: u64, bytes: u32, name in ".{0,50}") {
            let frames = [
                Frame::Request(tag, Request::Read { file: FileId(offset), stripe: bytes, offset, bytes }),
                Frame::Request(tag, Request::ReadAlone { file: FileId(offset), stripe: bytes, offset, bytes }),
                Frame::Request(tag, Request::WriteNumbered {
                    file: FileId(offset),
                    striping: Striping::new(4096, 3).expect("a striping"),
                    stripe: bytes,
                    disk: tag,
                    offset,
                }),
                Frame::Request(tag, Request::LetGoWritten {
                    number: FileNumber(offset),
                    written: WrittenContents { end: tag, stored_stripes: bytes, bytes: tag },
                }),
                Frame::Request(tag, Request::Open { name: name.clone() }),
                Frame::Reply(tag, Reply::Failed(Failure::invalid(name.clone()))),
                Frame::Request(tag, Request::FetchRecording),
                Frame::Reply(tag, Reply::RecordedPart { bytes: name.into_bytes() }),
                Frame::Request(tag, Request::FlushNumbered(NumberedStripes {
                    file: FileId(offset),
                    striping: Striping::new(4096, 3).expect("a striping"),
                    places: vec![(bytes, offset)],
                })),
                Frame::Reply(tag, Reply::NumberedListed {
                    stripes: vec![ListedStripe { file: FileId(tag), disk: bytes, stripe: Some((bytes, offset)) }],
                    more: true,
                }),
            ];
            for frame in frames {
                prop_assert_eq!(Frame::decode(&frame.encode()), Ok(frame));
            }
        }

        #[test]
        fn garbage_is_an_error_and_nothing_worse(bytes: Vec<u8>, cut in 0usize..40) {
            let _ = Frame::decode(&bytes);
            let mut dressed = vec![b'S', b'F', VERSION];
            dressed.extend(&bytes);
            let _ = Frame::decode(&dressed);
            dressed[1] = b'L';
            for version in [LABEL_WITHOUT_BEGINNING, LABEL_VERSION] {
                dressed[2] = version;
                let _ = Label::decode(&dressed);
            }
            dressed[1..3].copy_from_slice(&[b'C', COMMITTED_VERSION]);
            let _ = Committed::decode(&dressed);
            let whole = Frame::Request(9, Request::Unlink { name: "a name of some length".into() }).encode();
            if cut < whole.len() {
                prop_assert!(Frame::decode(&whole[..cut]).is_err());
            }
        }
    }
}
