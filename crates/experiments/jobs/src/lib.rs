//! Jobs: programs that use files. They are generic over the machine, so that simulation and measurement run the same
//! code.
//!
//! A [`Job`] is a value that describes the work of its members. A [`Member`] is a node that takes part. Each member
//! prepares, runs, finishes and checks its [`Part`] of the job:
//!
//! ```text
//!   prepare   each member: open the file, get memory              untimed
//!   run       all members at the same time                             --.
//!   finish    the first member, when all have run               |  the elapsed time of the job
//!   check     the data read, or the file's contents           --'  untimed
//! ```
//!
//! - `member.rs`: a node that takes part in a job; `outcome.rs`, `latencies.rs`: results.
//! - `pattern.rs`: a group accesses a file in one of the reports' patterns, by any method.
//! - `arrays.rs`: a group writes one or two arrays, each to a file, with or without a write cache.
//! - `sequential.rs`: a program reads or writes a file sequentially through a page cache.
//! - `workload.rs`, `requests.rs`, `clients.rs`: requests in any order, several in flight, with a mix of reads and
//!   writes.
//! - `names.rs`: the member creates, stats, lists or removes small files in a directory.
//! - `replay.rs`: each member replays the requests of a node of a request log.
//! - `merge.rs`, `interleave.rs`: the member merges or interleaves runs; `run_part.rs`: code that both jobs share;
//!   `runs.rs`: reads and writes of runs; `timeline.rs`: record of the progress over time.
//! - `round_trips.rs`: the member only exchanges messages.
//! - `local.rs`: a program reads a file of its node's disk, without the file system.
//! - `contents.rs`: contents of files, and their checks; `error.rs`: errors.
//!
//! To add a kind of job, add a file, a variant of [`Job`] and a variant of [`Part`]. The compiler reports all other
//! places to change.

mod arrays;
mod clients;
mod contents;
mod error;
mod interleave;
mod latencies;
mod local;
mod member;
mod merge;
mod names;
mod outcome;
mod pattern;
mod replay;
mod requests;
mod round_trips;
mod run_part;
mod runs;
mod sequential;
mod timeline;
mod workload;

use std::fmt;

use machine::Machine;

pub use arrays::{ArrayPattern, ArraysJob};
pub use clients::fill;
pub use contents::Contents;
pub use error::Error;
pub use interleave::InterleaveJob;
pub use latencies::Latencies;
pub use local::{LocalProgram, LocalReader};
pub use member::Member;
pub use merge::{BatchReading, MergeJob};
pub use names::{NamesJob, NamesWork};
pub use outcome::{FlushTally, Outcome, Tally};
pub use pattern::{PatternAccess, PatternJob};
pub use replay::{ReplayAccess, ReplayJob, Think};
pub use round_trips::RoundTripsJob;
pub use runs::{Run, RunSet};
pub use sequential::Sequential;
pub use timeline::{JobTimeline, JobWait, PendingWrites, WaitCause, WriteStep};
pub use workload::{Order, Workload};

use arrays::ArraysPart;
use clients::WorkloadPart;
use interleave::InterleavePart;
use local::LocalPart;
use merge::MergePart;
use names::NamesPart;
use pattern::PatternPart;
use replay::ReplayPart;
use round_trips::RoundTripsPart;
use sequential::SequentialPart;

/// A job: the work of its members.
#[derive(Clone, Debug, PartialEq)]
pub enum Job {
    /// A group accesses a file in a pattern.
    Pattern(PatternJob),
    /// A group writes one or two arrays, each to a file.
    Arrays(ArraysJob),
    /// Each member is a program that accesses a file sequentially, through its page cache.
    Sequential(Sequential),
    /// Each member sends requests for the file of this name, with several in flight.
    Requests(String, Workload),
    /// Each member replays the requests of a node of a request log.
    Replay(ReplayJob),
    /// The member merges runs.
    Merge(MergeJob),
    /// The member interleaves runs, or copies one.
    Interleave(InterleaveJob),
    /// The member creates, stats, lists or removes small files in a directory.
    Names(NamesJob),
    /// Each member exchanges empty messages with I/O nodes.
    RoundTrips(RoundTripsJob),
    /// Each member is a program that reads a file from a disk of its node.
    Local(LocalProgram),
}

/// Part of one member in a job.
pub enum Part<M: Machine> {
    /// Part of a [`Job::Pattern`].
    Pattern(Box<PatternPart<M>>),
    /// Part of a [`Job::Arrays`].
    Arrays(Box<ArraysPart<M>>),
    /// Part of a [`Job::Sequential`].
    Sequential(Box<SequentialPart<M>>),
    /// Part of a [`Job::Requests`].
    Requests(Box<WorkloadPart<M>>),
    /// Part of a [`Job::Replay`].
    Replay(Box<ReplayPart<M>>),
    /// Part of a [`Job::Merge`].
    Merge(Box<MergePart<M>>),
    /// Part of a [`Job::Interleave`].
    Interleave(Box<InterleavePart<M>>),
    /// Part of a [`Job::Names`].
    Names(Box<NamesPart<M>>),
    /// Part of a [`Job::RoundTrips`].
    RoundTrips(Box<RoundTripsPart<M>>),
    /// Part of a [`Job::Local`].
    Local(Box<LocalPart<M>>),
}

impl Job {
    /// Rejects a job whose settings are inconsistent for `members` members, with a message for the user.
    pub fn check(&self, members: u32) -> Result<(), Error> {
        match self {
            Job::Pattern(job) => job.check(members),
            Job::Arrays(job) => job.check(members),
            Job::Sequential(job) => job.check(members),
            Job::Requests(_, workload) => workload.check_members(members),
            Job::Replay(job) => job.check(members),
            Job::Merge(job) => job.check(members),
            Job::Interleave(job) => job.check(members),
            Job::Names(job) => job.check(members),
            Job::RoundTrips(job) => job.check(),
            Job::Local(job) => job.check(),
        }
    }

    /// True if the members are clients of the file system.
    pub fn has_clients(&self) -> bool {
        !matches!(self, Job::Local(_))
    }

    /// True if the members use a namespace. Then an I/O node must have a metadata store.
    pub fn has_names(&self) -> bool {
        matches!(self, Job::Names(_))
    }

    /// Prepares the part of a member. This is not timed. The file must exist, unless the job creates it.
    pub async fn prepare<M: Machine>(&self, member: Member<M>) -> Result<Part<M>, Error> {
        Ok(match self {
            Job::Pattern(job) => Part::Pattern(Box::new(PatternPart::prepare(job, member).await?)),
            Job::Arrays(job) => Part::Arrays(Box::new(ArraysPart::prepare(job, member).await?)),
            Job::Sequential(job) => Part::Sequential(Box::new(SequentialPart::prepare(job, member).await?)),
            Job::Requests(file, workload) => {
                Part::Requests(Box::new(WorkloadPart::prepare(file, workload, member).await?))
            }
            Job::Replay(job) => Part::Replay(Box::new(ReplayPart::prepare(job, member).await?)),
            Job::Merge(job) => Part::Merge(Box::new(MergePart::prepare(job, member).await?)),
            Job::Interleave(job) => Part::Interleave(Box::new(InterleavePart::prepare(job, member).await?)),
            Job::Names(job) => Part::Names(Box::new(NamesPart::prepare(job, member).await?)),
            Job::RoundTrips(job) => Part::RoundTrips(Box::new(RoundTripsPart::prepare(*job, member).await?)),
            Job::Local(job) => Part::Local(Box::new(LocalPart::prepare(job, member))),
        })
    }
}

impl<M: Machine> Part<M> {
    /// Runs the part.
    pub async fn run(&self) -> Result<Outcome, Error> {
        match self {
            Part::Pattern(part) => part.run().await,
            Part::Arrays(part) => part.run().await,
            Part::Sequential(part) => part.run().await,
            Part::Requests(part) => part.run().await,
            Part::Replay(part) => part.run().await,
            Part::Merge(part) => part.run().await,
            Part::Interleave(part) => part.run().await,
            Part::Names(part) => part.run().await,
            Part::RoundTrips(part) => part.run().await,
            Part::Local(part) => part.run().await,
        }
    }

    /// Flushes the data of all members to stable storage, unless the members have already done so. The first member
    /// calls this function after all members have run.
    pub async fn finish(&self) -> Result<(), Error> {
        match self {
            Part::Pattern(part) => part.finish().await,
            Part::Arrays(part) => part.finish().await,
            Part::Sequential(_)
            | Part::Requests(_)
            | Part::Replay(_)
            | Part::Merge(_)
            | Part::Interleave(_)
            | Part::Names(_)
            | Part::RoundTrips(_)
            | Part::Local(_) => Ok(()),
        }
    }

    /// Checks those results that `run` has not checked. This is done after the job.
    pub async fn check(&self) -> Result<(), Error> {
        match self {
            Part::Pattern(part) => part.check().await,
            Part::Arrays(part) => part.check().await,
            Part::Replay(part) => part.check().await,
            Part::Merge(part) => part.check().await,
            Part::Interleave(part) => part.check().await,
            Part::Names(part) => part.check().await,
            // These parts checked their data as they read it.
            Part::Sequential(_) | Part::Requests(_) | Part::RoundTrips(_) | Part::Local(_) => Ok(()),
        }
    }
}

impl fmt::Display for Job {
    /// Writes a short description of the job for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Job::Pattern(job) => job.fmt(f),
            Job::Arrays(job) => {
                let method = if job.write_cache.is_some() { "write-cached" } else { "traditional" };
                write!(f, "{method} {} with records of {} bytes", job.pattern, job.problem.record_bytes)
            }
            Job::Sequential(job) => job.fmt(f),
            Job::Requests(file, workload) => {
                write!(f, "requests of {} bytes to {file}", workload.record_bytes)
            }
            Job::Replay(job) => job.fmt(f),
            Job::Merge(job) => job.fmt(f),
            Job::Interleave(job) => job.fmt(f),
            Job::Names(job) => job.fmt(f),
            Job::RoundTrips(job) => write!(f, "{} round trips", job.round_trips),
            Job::Local(job) => write!(f, "reading {} from a disk used locally", job.object),
        }
    }
}
