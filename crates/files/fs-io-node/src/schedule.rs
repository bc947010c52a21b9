//! Selection of the next waiting request of a disk: pure decisions, without futures.
//!
//! A request in a disk's queue has a job, a direction, an urgency and a size. A [`DiskSchedule`] keeps the
//! waiting requests and selects the next. The schedules are:
//!
//! - *First come, first served* (`fifo.rs`) and *cyclic scan* (`scan.rs`): one queue for each class, demand
//!   before background (`classes.rs`).
//! - *Round-robin* (`round_robin.rs`): one request of each job in turn.
//! - *Read-priority* (`read_priority.rs`): any read before any write.
//!
//! With the last two, a job's backlog of writes does not block all reads of other jobs from the same disk (Sinclair,
//! Tang and Varman 1996). The tests in `laws.rs` check the promises that all schedules, or some of them, make.

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

/// The requests that a sweep of cyclic scan serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sweeps {
    /// Every request ahead of the arm.
    Open,
    /// The requests that waited at its beginning, so that no request waits for more than the rest of one sweep and then
    /// its own sweep.
    Closed,
}

/// Maximum number of reads that overtake a waiting write under bounded read-priority. While both reads and writes
/// always wait, one write is served after this number of reads. The number is large enough that readers are hardly
/// delayed, and small enough that a backlog of writes becomes shorter.
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

/// Position of a request for the schedule: object and byte, or the physical position.
pub(crate) type Position = (u64, u64);

/// A request for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiskRequest {
    pub(crate) user: DiskUser,
    pub(crate) direction: Direction,
    pub(crate) position: Position,
    /// Number of bytes of the access, as known before its turn; the actual number can be smaller.
    pub(crate) bytes: u64,
}

/// The job for which a disk works, and the urgency of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiskUser {
    /// The job: the client that sent the request, even if it sent the request for a group.
    pub(crate) job: NodeId,
    pub(crate) urgency: Urgency,
}

impl From<Caller> for DiskUser {
    fn from(caller: Caller) -> Self {
        DiskUser { job: caller.node, urgency: caller.class.into() }
    }
}

/// Urgency of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    Demand,
    /// Write-behind: in the class of demand, but already accepted, so that a closed sweep includes only few of these
    /// requests.
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

/// Number by which a queue identifies a request.
pub(crate) type Number = usize;

/// The requests that wait for a disk, and their order.
pub(crate) trait DiskSchedule {
    /// Adds a request, under a number that no other waiting request has.
    fn push(&mut self, request: DiskRequest, number: Number);

    /// Removes the request to serve next, with the arm at `arm`, and returns it. Returns `None` only if no request
    /// waits.
    fn pop(&mut self, arm: Position) -> Option<(DiskRequest, Number)>;

    /// True if a background request waits.
    fn has_background(&self) -> bool;

    /// Promotes the background requests at `position` to demand.
    fn promote(&mut self, position: Position);

    /// Removes a cancelled request.
    fn remove(&mut self, number: Number);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_schedule_parses_from_its_name() {
        for scheduling in Scheduling::ALL {
            assert_eq!(scheduling.name().parse(), Ok(scheduling));
        }
        assert!("lifo".parse::<Scheduling>().is_err_and(|why| why.contains("round-robin")));
    }

    #[test]
    fn the_documented_limit_of_passing_reads_is_the_real_one() {
        let meaning = Scheduling::BoundedReadPriority.meaning();
        assert!(meaning.contains(&format!(" {READS_BEFORE_WRITE} reads")));
    }
}
