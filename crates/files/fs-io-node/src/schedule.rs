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

use machine::{Class, NodeId};

use crate::endpoint::Caller;
use crate::protocol::Direction;
use crate::scheduling::Scheduling;
use classes::Classes;
use fifo::Fifo;
use read_priority::ReadPriority;
use round_robin::RoundRobin;
use scan::Scan;

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

/// Returns an empty schedule of a kind.
pub(crate) fn schedule_of(scheduling: Scheduling) -> Box<dyn DiskSchedule> {
    match scheduling {
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
