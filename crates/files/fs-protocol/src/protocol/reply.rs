//! What a node answers.

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
        /// Its [features](crate::Features), in bits.
        features: u64,
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
    /// To [`Request::Write`], [`Request::Resize`], [`Request::Flush`] and what is [selected](Selecting), instead of
    /// [`Reply::Done`], by an I/O node that may be started anew.
    Accepted {
        /// Which run of the I/O node it is, or the first of those that it continues: what another one accepted and did
        /// not flush is lost. To [`Flushing::Names`], which run of the store of names, as in [`Reply::Tree`].
        run: u64,
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
    /// To [`Request::Meet`], of an I/O node: all have come.
    Met {
        /// The members of a job that take part, in order; those of a team know each other.
        members: Vec<u64>,
        /// What each member of a team has brought, by rank: a list of byte strings in postcard's encoding, which is
        /// made once for all of them.
        brought: Vec<u8>,
    },
    /// To [`RecordingStep::ReadClock`].
    RecordingClock {
        /// The time of an event that is recorded now, in nanoseconds since 1970.
        unix_ns: u64,
    },
    /// To [`RecordingStep::Stop`].
    Recorded {
        /// Time 0 of what is recorded, in nanoseconds since 1970.
        zero_unix_ns: u64,
        /// How many bytes there are to be fetched.
        bytes: u64,
    },
    /// To [`RecordingStep::Fetch`].
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
    /// To [`Request::Remove`].
    Removed {
        /// The disks from which they have gone, by their identities; those whose identity cannot be read are left out.
        disks: Vec<u64>,
        /// Why they have not gone from a disk.
        failure: Option<Failure>,
    },
    /// To [`Request::ListStripes`]: the stripes of the first of the files, as many as an answer holds.
    StripesListed {
        /// The stripes, sorted by file.
        stripes: Vec<ListedStripe>,
        /// Whether there are others after these.
        more: bool,
        /// Why the stripes of a disk are missing.
        failure: Option<Failure>,
    },
    /// To [`Request::Tree`] and [`Request::LetGo`].
    Tree {
        /// The answer.
        answer: Box<TreeAnswer>,
        /// The directories that were changed, as in [`Performed`](namespace::Performed).
        directories: Vec<Inode>,
        /// Which run of the store of names it is: what another one has done and not flushed may be lost.
        run: u64,
        /// True if the client [holds](Request::Tree) the file and another client has it open for writing.
        has_other_writers: bool,
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
    /// To [`Request::Lock`].
    Lock(LockAnswer),
    /// To [`Request::FindData`].
    DataFound {
        /// The index of each stripe that has any there, and where they begin and end within it.
        data: Vec<(u32, u64, u64)>,
    },
}
