//! Which waiting request a disk serves next: pure decisions, without futures.
//!
//! A request in a disk's queue says for which job it is, whether it reads or writes, how urgent it is, and how much it
//! moves. A [`DiskSchedule`] keeps the waiting requests and decides which is next. There are
//!
//! - *first come, first served* (`fifo.rs`) and *cyclic scan* (`scan.rs`): one for each class, those on demand before
//!   all in the background (`classes.rs`)
//! - *round-robin* (`round_robin.rs`): the jobs take turns
//! - *read-priority* (`read_priority.rs`): any read before any write
//!
//! The last two keep a job's backlog of writes from stopping all reads of other jobs from the same disk (Sinclair, Tang
//! and Varman 1996). The promises of all schedules, and those of some, are in `laws.rs`, as tests.

mod classes;
mod fifo;
#[cfg(test)]
mod laws;
mod read_priority;
mod round_robin;
mod scan;

use std::fmt;
use std::str::FromStr;

use machine::{Class, NodeId};

use crate::endpoint::Caller;
use crate::protocol::Direction;
use classes::Classes;
use fifo::Fifo;
use read_priority::ReadPriority;
use round_robin::RoundRobin;
use scan::Scan;

/// The order in which a disk's waiting requests are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Scheduling {
    /// First come, first served.
    Fcfs,
    /// Cyclic scan, by logical block: a reader of one object from front to back keeps the disk.
    #[default]
    CyclicScan,
    /// Cyclic scan, by physical position where the disk tells it.
    PhysicalCyclicScan,
    /// Cyclic scan, by logical block, in closed sweeps: a sweep serves the requests present at its beginning.
    FairScan,
    /// The jobs take turns, one request a turn.
    RoundRobin,
    /// Any read before any write. Reads without end keep writes waiting for ever.
    ReadPriority,
    /// Any read before any write, but for a write that several reads have passed.
    BoundedReadPriority,
}

/// Which requests a sweep of cyclic scan serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sweeps {
    /// Every request ahead of the arm.
    Open,
    /// The requests present at its beginning: none waits for more than the rest of one sweep and then its own.
    Closed,
}

/// Reads that may pass a waiting write under bounded read-priority. While both wait without end, writes have one turn
/// after this number of reads: few enough not to delay readers much, and a backlog gets shorter all the same.
const READS_BEFORE_WRITE: usize = 16;

impl Scheduling {
    /// All of them.
    pub const ALL: [Scheduling; 7] = [
        Scheduling::Fcfs,
        Scheduling::CyclicScan,
        Scheduling::PhysicalCyclicScan,
        Scheduling::FairScan,
        Scheduling::RoundRobin,
        Scheduling::ReadPriority,
        Scheduling::BoundedReadPriority,
    ];

    /// Their names, in that order.
    pub const NAMES: [&str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = Self::ALL[at].name();
            at += 1;
        }
        names
    };

    /// The name by which options, plans and results call it.
    pub const fn name(self) -> &'static str {
        match self {
            Scheduling::Fcfs => "fcfs",
            Scheduling::CyclicScan => "cyclic-scan",
            Scheduling::PhysicalCyclicScan => "physical-cyclic-scan",
            Scheduling::FairScan => "fair-scan",
            Scheduling::RoundRobin => "round-robin",
            Scheduling::ReadPriority => "read-priority",
            Scheduling::BoundedReadPriority => "bounded-read-priority",
        }
    }

    /// What it is, in a line for users.
    pub fn meaning(self) -> &'static str {
        match self {
            Scheduling::Fcfs => "First come, first served",
            Scheduling::CyclicScan => "By ascending position, then again from the lowest (C-SCAN)",
            Scheduling::PhysicalCyclicScan => "C-SCAN by physical position instead of the offset in the file",
            Scheduling::FairScan => "C-SCAN of which each sweep serves those who waited when it began",
            Scheduling::RoundRobin => "The clients take turns, one request a turn",
            Scheduling::ReadPriority => "Any read before any write; writes may wait for ever",
            Scheduling::BoundedReadPriority => {
                "Any read before any write, but for one that 16 reads have passed"
            }
        }
    }

    /// Returns an empty schedule of this kind.
    pub(crate) fn schedule(self) -> Box<dyn DiskSchedule> {
        match self {
            Scheduling::Fcfs => Box::new(Classes::of(Fifo::default)),
            Scheduling::CyclicScan | Scheduling::PhysicalCyclicScan => {
                Box::new(Classes::of(|| Scan::new(Sweeps::Open)))
            }
            Scheduling::FairScan => Box::new(Classes::of(|| Scan::new(Sweeps::Closed))),
            Scheduling::RoundRobin => Box::new(RoundRobin::default()),
            Scheduling::ReadPriority => Box::new(ReadPriority::new(None)),
            Scheduling::BoundedReadPriority => Box::new(ReadPriority::new(Some(READS_BEFORE_WRITE))),
        }
    }
}

impl fmt::Display for Scheduling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Scheduling {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Scheduling::ALL.into_iter().find(|scheduling| scheduling.name() == text);
        found.ok_or_else(|| {
            format!("no scheduling {text:?}: expected one of {}", Scheduling::NAMES.join(", "))
        })
    }
}

/// Where a request lies, as far as the schedule cares: which object, then which byte of it; or the physical position.
pub(crate) type Position = (u64, u64);

/// A request for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiskRequest {
    pub(crate) user: DiskUser,
    pub(crate) direction: Direction,
    pub(crate) position: Position,
    /// What it moves, in bytes, as far as that is known before its turn; it may be less.
    pub(crate) bytes: u64,
}

/// Whom a disk works for, and how urgently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiskUser {
    /// The job: the client that has asked, or the one that has asked for a group.
    pub(crate) job: NodeId,
    pub(crate) urgency: Urgency,
}

impl From<Caller> for DiskUser {
    fn from(caller: Caller) -> Self {
        DiskUser { job: caller.node, urgency: caller.class.into() }
    }
}

/// How urgent a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    Demand,
    /// With those on demand, but it has been accepted already, and of these a closed sweep takes few.
    Behind,
    Background,
}

impl From<Class> for Urgency {
    fn from(class: Class) -> Self {
        match class {
            Class::Control | Class::Demand => Urgency::Demand,
            Class::Background => Urgency::Background,
        }
    }
}

/// The number by which a queue knows a request.
pub(crate) type Number = usize;

/// The requests that wait for a disk, and which of them is next.
pub(crate) trait DiskSchedule {
    /// Adds a request, under a number that no other that waits has.
    fn push(&mut self, request: DiskRequest, number: Number);

    /// Takes out the request to serve next, with the arm at `arm`; none only if no request waits.
    fn pop(&mut self, arm: Position) -> Option<(DiskRequest, Number)>;

    /// Whether any waits in the background.
    fn has_background(&self) -> bool;

    /// Lets those at `position` that wait in the background wait on demand.
    fn promote(&mut self, position: Position);

    /// Forgets a request that is not wanted any more.
    fn remove(&mut self, number: Number);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_of_one_schedule_and_leads_back_to_it() {
        for scheduling in Scheduling::ALL {
            assert_eq!(scheduling.name().parse(), Ok(scheduling));
        }
        assert!("lifo".parse::<Scheduling>().is_err_and(|why| why.contains("round-robin")));
    }

    #[test]
    fn the_bound_of_reads_is_what_users_are_told() {
        let meaning = Scheduling::BoundedReadPriority.meaning();
        assert!(meaning.contains(&format!(" {READS_BEFORE_WRITE} reads")));
    }
}
