//! What programs do with files: jobs, generic over the machine, so that the same code is simulated and measured.
//!
//! A [`Job`] is a value that says what its members do. A [`Member`] is a node that takes part in it. Each member has a
//! [`Part`] of the job, which is prepared, run, finished and checked:
//!
//! ```text
//!   prepare   each member: open the file, have memory             untimed
//!   run       all members at once                             --.
//!   finish    the first member, when all are through            |  the elapsed time of the job
//!   check     what was read, or what the file contains        --'  untimed
//! ```
//!
//! - `member.rs`: who takes part; what came of it in `outcome.rs`, `latencies.rs`
//! - `pattern.rs`: a group accesses a file in one of the reports' patterns, by any method
//! - `arrays.rs`: a group writes one or two arrays, each to a file, also through a write cache
//! - `sequential.rs`: a program behind a page cache goes through a file from front to back
//! - `workload.rs`, `requests.rs`, `clients.rs`: requests in any order, several in flight, reads mixed with writes
//! - `names.rs`: the member makes, looks at, lists or removes small files in a directory
//! - `replay.rs`: each member does what a node of a request log did;
//! - `merge.rs`, `interleave.rs`: the member merges runs, or interleaves them; `run_part.rs`: what both have;
//!   `runs.rs`: how it reads and writes them, `timeline.rs`: what it did when
//! - `round_trips.rs`: messages and their answers, and nothing else
//! - `local.rs`: a program reads a file of its own node's disk, without a file system
//! - `contents.rs`: what is in a file, and whether it arrived; `error.rs`: what can go wrong
//!
//! A new kind of job is a file beside these, a variant of [`Job`] and one of [`Part`]; the compiler names the places.

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

/// What the members of a job do.
#[derive(Clone, Debug, PartialEq)]
pub enum Job {
    /// A group accesses a file in a pattern.
    Pattern(PatternJob),
    /// A group writes one or two arrays, each to a file.
    Arrays(ArraysJob),
    /// Each member is a program that goes through a file from front to back, behind a page cache of its own.
    Sequential(Sequential),
    /// Each member makes requests of the file of this name, several in flight.
    Requests(String, Workload),
    /// Each member does what a node of a request log did.
    Replay(ReplayJob),
    /// The member merges runs.
    Merge(MergeJob),
    /// The member interleaves runs, or copies one.
    Interleave(InterleaveJob),
    /// The member makes, looks at, lists or removes small files in a directory.
    Names(NamesJob),
    /// Each member asks I/O nodes for nothing.
    RoundTrips(RoundTripsJob),
    /// Each member is a program that reads a file of a disk of its own node.
    Local(LocalProgram),
}

/// The part of one member in a job.
pub enum Part<M: Machine> {
    /// Of [`Job::Pattern`].
    Pattern(Box<PatternPart<M>>),
    /// Of [`Job::Arrays`].
    Arrays(Box<ArraysPart<M>>),
    /// Of [`Job::Sequential`].
    Sequential(Box<SequentialPart<M>>),
    /// Of [`Job::Requests`].
    Requests(Box<WorkloadPart<M>>),
    /// Of [`Job::Replay`].
    Replay(Box<ReplayPart<M>>),
    /// Of [`Job::Merge`].
    Merge(Box<MergePart<M>>),
    /// Of [`Job::Interleave`].
    Interleave(Box<InterleavePart<M>>),
    /// Of [`Job::Names`].
    Names(Box<NamesPart<M>>),
    /// Of [`Job::RoundTrips`].
    RoundTrips(Box<RoundTripsPart<M>>),
    /// Of [`Job::Local`].
    Local(Box<LocalPart<M>>),
}

impl Job {
    /// Refuses a job that makes no sense for `members` members, in words for the user who has chosen it.
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

    /// Whether its members are clients of the file system.
    pub fn has_clients(&self) -> bool {
        !matches!(self, Job::Local(_))
    }

    /// Whether its members use a namespace, for which an I/O node has to have a store of metadata.
    pub fn has_names(&self) -> bool {
        matches!(self, Job::Names(_))
    }

    /// Prepares the part of a member, which takes no time of the job. The file is there, unless the job makes it.
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
    /// Does it.
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

    /// What the first member does when all are through: brings what they have written onto the media, if they have not
    /// done that themselves.
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

    /// Checks what is left to be checked when all is over.
    pub async fn check(&self) -> Result<(), Error> {
        match self {
            Part::Pattern(part) => part.check().await,
            Part::Arrays(part) => part.check().await,
            Part::Replay(part) => part.check().await,
            Part::Merge(part) => part.check().await,
            Part::Interleave(part) => part.check().await,
            Part::Names(part) => part.check().await,
            // They have checked what they read when they read it.
            Part::Sequential(_) | Part::Requests(_) | Part::RoundTrips(_) | Part::Local(_) => Ok(()),
        }
    }
}

impl fmt::Display for Job {
    /// What it is, for people, in a few words.
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
