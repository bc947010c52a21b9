//! Detects when one job's backlog of writes at a disk delays another job's reads: pure state, without
//! futures.
//!
//! Write-behind passes writes to the disk after their job has continued. If these writes may pass other jobs'
//! reads, their job gets ahead and the others stand still: a *race* (`crates/experiments/placement`). At the
//! disk a race shows as follows: a job's reads wait while many writes of others are served, and about as many
//! such writes still wait.
//!
//! ```text
//! reads of a    r . . . . . . . . . . . . . . . . . . r    delayed by b
//! writes of b   . w w w w w w w w w w w w w w w w w w .    and as many wait as before
//! ```
//!
//! Only waiting requests are counted, so a disk that is not busy costs nothing.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use machine::NodeId;

use crate::protocol::Direction;
use crate::schedule::DiskRequest;

/// Limit of writes of others that may be served between two of a job's reads without counting as a delay.
/// Orders that separate jobs let no more pass: round-robin one of each job, bounded read-priority one, a
/// closed sweep 32 and the 32 of the sweep before.
const PASSING_MAX: u64 = 64;

/// Jobs with requests waiting at a disk, and the writes that have passed the reads of each.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    jobs: BTreeMap<NodeId, JobAtDisk>,
    /// Number of waiting writes, and of served ones.
    waiting: u64,
    served: u64,
}

/// Waiting requests of a job; kept as long as it has any.
#[derive(Debug, Default)]
struct JobAtDisk {
    reads: u64,
    writes: u64,
    /// Number of its writes served since the job began to wait.
    served: u64,
    /// Numbers of served and of waiting writes of other jobs, when one of this job's reads was served last,
    /// or began to wait alone.
    since: (u64, u64),
}

/// Reads of a job were delayed by the writes of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeldUp {
    /// The job with the most waiting writes.
    pub(crate) by: NodeId,
    /// Number of waiting writes of that job.
    pub(crate) writes: u64,
}

impl Backlog {
    /// Counts a request that begins to wait.
    pub(crate) fn add(&mut self, request: &DiskRequest) {
        let job = self.jobs.entry(request.user.job).or_default();
        match request.direction {
            Direction::Write => {
                job.writes += 1;
                self.waiting += 1;
            }
            Direction::Read => {
                job.reads += 1;
                if job.reads == 1 {
                    job.since = (self.served - job.served, self.waiting - job.writes);
                }
            }
        }
    }

    /// Removes a cancelled request.
    pub(crate) fn remove(&mut self, request: &DiskRequest) {
        let Some(job) = self.jobs.get_mut(&request.user.job) else { return };
        match request.direction {
            Direction::Write => {
                job.writes -= 1;
                self.waiting -= 1;
            }
            Direction::Read => job.reads -= 1,
        }
        self.forget_if_gone(request.user.job);
    }

    /// Counts a waiting request as served. Returns the cause of its delay if the request was delayed.
    pub(crate) fn serve(&mut self, request: &DiskRequest) -> Option<HeldUp> {
        let job = self.jobs.get_mut(&request.user.job)?;
        let mut held_up = None;
        match request.direction {
            Direction::Write => {
                job.writes -= 1;
                job.served += 1;
                self.waiting -= 1;
                self.served += 1;
            }
            Direction::Read => {
                let now = (self.served - job.served, self.waiting - job.writes);
                let before = std::mem::replace(&mut job.since, now);
                job.reads -= 1;
                if now.0 - before.0 > PASSING_MAX && now.1 >= before.1 - before.1 / 4 {
                    held_up = self.most_writes_but_of(request.user.job);
                }
            }
        }
        self.forget_if_gone(request.user.job);
        held_up
    }

    /// Returns the job with the most waiting writes among the other jobs, the first of several.
    fn most_writes_but_of(&self, job: NodeId) -> Option<HeldUp> {
        let others = self.jobs.iter().filter(|&(&other, at)| other != job && at.writes > 0);
        let most = others.max_by_key(|&(&other, at)| (at.writes, Reverse(other)));
        most.map(|(&by, at)| HeldUp { by, writes: at.writes })
    }

    fn forget_if_gone(&mut self, job: NodeId) {
        if self.jobs.get(&job).is_some_and(|at| at.reads + at.writes == 0) {
            self.jobs.remove(&job);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{DiskUser, Urgency, schedule_of};
    use crate::scheduling::Scheduling;

    const READER: u64 = 1;
    const WRITER: u64 = 2;

    fn request(job: u64, direction: Direction, block: u64) -> DiskRequest {
        let urgency = if direction == Direction::Write { Urgency::Behind } else { Urgency::Demand };
        DiskRequest {
            user: DiskUser { job: NodeId(job), urgency },
            direction,
            position: (job, block),
            bytes: 1,
        }
    }

    /// Simulates 2000 turns at a disk of this schedule: a reader with 3 reads waiting at a time competes with
    /// a writer. The writer always has `writes` writes waiting or, if `shrinks`, only at the beginning.
    /// Returns the number of delays of the reader, and the number of its reads.
    fn delays_by_a_writer(scheduling: Scheduling, writes: u64, shrinks: bool) -> (usize, usize) {
        let mut schedule = schedule_of(scheduling);
        let (mut backlog, mut waiting, mut block, mut arm) = (Backlog::default(), [0; 3], 0, (0, 0));
        let (mut held_up, mut reads) = (0, 0);
        for turn in 0..2000 {
            for (job, direction, most) in [
                (WRITER, Direction::Write, if shrinks && turn > 0 { 0 } else { writes }),
                (READER, Direction::Read, 3),
            ] {
                while waiting[job as usize] < most {
                    let new = request(job, direction, block);
                    backlog.add(&new);
                    schedule.push(new, 0);
                    waiting[job as usize] += 1;
                    block += 1;
                }
            }
            let (next, _) = schedule.pop(arm).expect("the reader does");
            arm = next.position;
            waiting[next.user.job.0 as usize] -= 1;
            reads += usize::from(next.direction == Direction::Read);
            if let Some(HeldUp { by, writes }) = backlog.serve(&next) {
                assert_eq!((by, next.user.job), (NodeId(WRITER), NodeId(READER)));
                assert!(writes >= PASSING_MAX);
                held_up += 1;
            }
        }
        (held_up, reads)
    }

    #[test]
    fn a_constant_write_backlog_delays_reads_only_in_order_of_arrival() {
        for scheduling in Scheduling::ALL {
            let (held_up, reads) = delays_by_a_writer(scheduling, 200, false);
            assert_eq!(held_up > 0, scheduling == Scheduling::Fcfs, "{scheduling}: {held_up} of {reads}");
        }
    }

    #[test]
    fn a_short_or_shrinking_backlog_delays_no_reads() {
        assert_eq!(delays_by_a_writer(Scheduling::Fcfs, 20, false).0, 0);
        assert_eq!(delays_by_a_writer(Scheduling::Fcfs, 200, true).0, 0);
    }

    #[test]
    fn a_job_is_not_delayed_by_its_own_writes() {
        let mut backlog = Backlog::default();
        (0..300).for_each(|block| backlog.add(&request(WRITER, Direction::Write, block)));
        let read = request(WRITER, Direction::Read, 500);
        backlog.add(&read);
        for block in 0..200 {
            assert_eq!(backlog.serve(&request(WRITER, Direction::Write, block)), None);
            backlog.add(&request(WRITER, Direction::Write, 1000 + block));
        }
        assert_eq!(backlog.serve(&read), None);
    }

    #[test]
    fn a_job_without_waiting_requests_is_forgotten() {
        let mut backlog = Backlog::default();
        for job in 0..100 {
            for direction in [Direction::Read, Direction::Write] {
                backlog.add(&request(job, direction, 0));
                backlog.add(&request(job, direction, 1));
            }
        }
        for job in 0..100 {
            for direction in [Direction::Read, Direction::Write] {
                backlog.remove(&request(job, direction, 0));
                backlog.serve(&request(job, direction, 1));
            }
        }
        assert!(backlog.jobs.is_empty() && backlog.waiting == 0);
    }
}
