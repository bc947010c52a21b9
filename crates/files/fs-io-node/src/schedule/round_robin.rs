//! Round-robin: a queue for each job, served in turn, one request a turn; empty queues are skipped.
//!
//! ```text
//! job 1   w w w w w w w w        served   w1 r2 w1 r2 r3 w1 r2 w1 w1 ...
//! job 2   r r r
//! job 3         r   (comes later)
//! ```
//!
//! So a job waits for at most one request of each other job before its own next one, however many requests
//! they have. Within a job demand requests come before background requests, each class in order of arrival.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use machine::NodeId;

use super::classes::Classes;
use super::fifo::Fifo;
use super::{DiskRequest, DiskSchedule, Number, Position};

/// The queues of the jobs with waiting requests.
#[derive(Debug, Default)]
pub(super) struct RoundRobin {
    jobs: BTreeMap<NodeId, Classes<Fifo>>,
    /// The job that had the last turn.
    last: Option<NodeId>,
}

impl RoundRobin {
    /// Returns the job whose turn is next: the next higher number, and after the highest again the lowest.
    fn next_job(&self) -> Option<NodeId> {
        let after = self.last.map_or(Unbounded, Excluded);
        let mut later = self.jobs.range((after, Unbounded));
        later.next().or_else(|| self.jobs.iter().next()).map(|(&job, _)| job)
    }
}

impl DiskSchedule for RoundRobin {
    fn push(&mut self, request: DiskRequest, number: Number) {
        self.jobs.entry(request.user.job).or_default().push(request, number);
    }

    fn pop(&mut self, arm: Position) -> Option<(DiskRequest, Number)> {
        let job = self.next_job()?;
        self.last = Some(job);
        let queue = self.jobs.get_mut(&job).expect("it is one of them");
        let next = queue.pop(arm);
        if queue.is_empty() {
            self.jobs.remove(&job);
        }
        next
    }

    fn has_background(&self) -> bool {
        self.jobs.values().any(Classes::has_background)
    }

    fn promote(&mut self, position: Position) {
        self.jobs.values_mut().for_each(|queue| queue.promote(position));
    }

    fn remove(&mut self, number: Number) {
        self.jobs.retain(|_, queue| {
            queue.remove(number);
            !queue.is_empty()
        });
    }
}
