//! Answers of nodes.

use namespace::{Inode, TreeAnswer, TreeRefusal};
use serde::{Deserialize, Serialize};

use super::label::Label;
use super::lock::LockAnswer;
use super::report::{Damage, ExaminedComputer, ExaminedDisk, ListedStripe};
#[cfg(doc)]
use super::*;
use crate::error::Failure;

/// Replies to requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// The request succeeded; requested data are the payload.
    Done,
    /// The request failed.
    Failed(Failure),
    /// Answer to [`Request::Describe`].
    Described {
        /// Number of disks of the I/O node.
        disks: u32,
        /// Largest block that the I/O node can handle, in bytes.
        block_bytes_max: u64,
        /// [Features](crate::Features) of the I/O node, as bits.
        features: u64,
    },
    /// Answer to [`Request::Examine`].
    Examined {
        /// Release of the I/O node's program.
        release: String,
        /// Wall-clock time of the I/O node in nanoseconds since 1970; `None` if it has no clock.
        date: Option<u64>,
        /// The computer on which the I/O node runs, if known.
        computer: Option<ExaminedComputer>,
        /// The disks of the I/O node.
        disks: Vec<ExaminedDisk>,
    },
    /// Answer to [`Request::Write`], [`Request::Resize`], [`Request::Flush`] and operations on
    /// [selections](Selecting), instead of [`Reply::Done`], by an I/O node that may be restarted.
    Accepted {
        /// Incarnation of the I/O node, or the first of the incarnations that it continues: unflushed data that other
        /// incarnations accepted are lost. In the answer to [`Flushing::Names`], the incarnation of the metadata store,
        /// as in [`Reply::Tree`].
        run: u64,
    },
    /// Answer to [`Request::Scrub`].
    Scrubbed {
        /// Label of the stripe.
        label: Label,
        /// Length of the stripe in bytes.
        bytes: u64,
        /// Damaged ranges, in order.
        damage: Vec<Damage>,
        /// Description of the first damage, for people.
        why: Option<String>,
    },
    /// Answer to [`Request::MoveListed`], and to [`Request::MoveSelected`] for a group.
    Moved {
        /// Number of transferred blocks of each disk.
        blocks: Vec<u64>,
        /// Number of bytes of a member that a later write of another member overwrote.
        hidden: u64,
    },
    /// Answer to [`Request::Join`].
    Joined {
        /// The group of the job's members.
        group: u64,
        /// Number of flushes that the group has begun: the member takes part in all later flushes.
        flushes: u32,
    },
    /// Answer to [`Request::Gather`].
    Flushing {
        /// Sequence number of the flush that was begun.
        flush: u32,
    },
    /// Answer of an I/O node to [`Request::EnterBarrier`]: all members have entered the barrier.
    BarrierDone {
        /// The members of a job that take part in the flush, in order; empty for a team, whose members know each other.
        members: Vec<u64>,
        /// The contributions of the members of a team, by rank: a list of byte strings in postcard's encoding. The list
        /// is encoded once for all answers.
        contributions: Vec<u8>,
    },
    /// Answer to [`RecordingStep::ReadClock`].
    RecordingClock {
        /// Time that an event recorded now has, in nanoseconds since 1970.
        unix_ns: u64,
    },
    /// Answer to [`RecordingStep::Stop`].
    Recorded {
        /// Wall-clock time at time 0 of the recording, in nanoseconds since 1970.
        zero_unix_ns: u64,
        /// Number of bytes of the recording, to be fetched.
        bytes: u64,
    },
    /// Answer to [`RecordingStep::Fetch`].
    RecordedPart {
        /// The next bytes of a section of a trace; empty after the last part.
        bytes: Vec<u8>,
    },
    /// Answer to [`Request::DescribeDisks`].
    DisksDescribed {
        /// Identity of each disk; `None` if it can be neither read nor created.
        identities: Vec<Option<u64>>,
    },
    /// Answer to [`Request::Attach`]: the stripes that are now open.
    Attached {
        /// Pairs of stripe index and length in bytes, without missing stripes.
        stripes: Vec<(u32, u64)>,
    },
    /// Answer to [`Request::Remove`].
    Removed {
        /// Identities of the disks from which the files were removed, except for disks whose identity cannot
        /// be read.
        disks: Vec<u64>,
        /// Reason why the files were not removed from a disk, if this failed.
        failure: Option<Failure>,
    },
    /// Answer to [`Request::ListStripes`]: the stripes of the first files, up to the maximum length of an answer.
    StripesListed {
        /// The stripes, sorted by file.
        stripes: Vec<ListedStripe>,
        /// True if more stripes follow.
        more: bool,
        /// Reason why the stripes of a disk are missing from the list, if any are missing.
        failure: Option<Failure>,
    },
    /// Answer to [`Request::Tree`] and [`Request::CloseFile`].
    Tree {
        /// The answer.
        answer: Box<TreeAnswer>,
        /// The changed directories, as in [`Performed`](namespace::Performed).
        directories: Vec<Inode>,
        /// Incarnation of the metadata store: unflushed operations of other incarnations may be lost.
        run: u64,
        /// True if the client [holds](Request::Tree) the file and another client has it open for writing.
        has_other_writers: bool,
    },
    /// Answer to [`Request::Tree`]: reason why the operation was refused.
    Refused(TreeRefusal),
    /// Answer to [`Request::FormTeam`]: all members have joined.
    TeamFormed {
        /// The group of the team's members.
        group: u64,
        /// The members, by rank.
        members: Vec<u64>,
    },
    /// Answer to [`Request::Lock`].
    Lock(LockAnswer),
    /// Answer to [`Request::FindData`].
    DataFound {
        /// For each stripe with further data: its index, and the start and end of the first data, as byte offsets
        /// within the stripe.
        data: Vec<(u32, u64, u64)>,
    },
}
