//! The promises of disk schedules, as tests.

use std::collections::{BTreeMap, BTreeSet};

use machine::NodeId;
use proptest::prelude::*;

use super::*;

/// Returns a demand read of one block by a job.
pub(super) fn read(job: u64, block: u64) -> DiskRequest {
    request(job, Direction::Read, Urgency::Demand, block)
}

/// Returns a write-behind of one block by a job.
pub(super) fn written_behind(job: u64, block: u64) -> DiskRequest {
    request(job, Direction::Write, Urgency::Behind, block)
}

fn request(job: u64, direction: Direction, urgency: Urgency, block: u64) -> DiskRequest {
    DiskRequest { user: DiskUser { job: NodeId(job), urgency }, direction, position: (0, block), bytes: 1 }
}

/// A disk that serves one request a step, with a log of arrivals and services.
struct Disk {
    schedule: Box<dyn DiskSchedule>,
    arm: Position,
    /// Every request that has arrived, indexed by its number, with its step.
    arrived: Vec<(DiskRequest, usize)>,
    waiting: BTreeSet<Number>,
    /// Numbers in order of service, with their steps.
    served: Vec<(Number, usize)>,
    step: usize,
}

impl Disk {
    fn new(scheduling: Scheduling) -> Self {
        let schedule = schedule_of(scheduling);
        let (arrived, waiting, served) = Default::default();
        Disk { schedule, arm: (0, 0), arrived, waiting, served, step: 0 }
    }

    fn add(&mut self, request: DiskRequest) {
        let number = self.arrived.len();
        self.schedule.push(request, number);
        self.waiting.insert(number);
        self.arrived.push((request, self.step));
    }

    /// Serves the next request, and returns it.
    fn serve(&mut self) -> Option<DiskRequest> {
        let next = self.schedule.pop(self.arm);
        assert_eq!(next.is_some(), !self.waiting.is_empty(), "it serves a request exactly if one waits");
        self.step += 1;
        let (request, number) = next?;
        assert!(self.waiting.remove(&number), "{number} has been served before");
        self.arm = request.position;
        self.served.push((number, self.step));
        Some(self.arrived[number].0)
    }

    fn serve_some(&mut self, turns: usize) {
        for _ in 0..turns {
            self.serve();
        }
    }

    fn serve_all(&mut self) -> Vec<DiskRequest> {
        std::iter::from_fn(|| self.serve()).collect()
    }

    /// Returns the longest wait of the served requests, in steps.
    fn longest_wait(&self) -> usize {
        self.served.iter().map(|&(number, step)| step - self.arrived[number].1).max().unwrap_or(0)
    }

    /// Returns the requests in order of service, as they arrived.
    fn order(&self) -> impl Iterator<Item = (Number, DiskRequest)> {
        self.served.iter().map(|&(number, _)| (number, self.arrived[number].0))
    }
}

fn blocks(requests: &[DiskRequest]) -> Vec<u64> {
    requests.iter().map(|request| request.position.1).collect()
}

#[test]
fn first_come_is_first_served() {
    let mut disk = Disk::new(Scheduling::Fcfs);
    for block in [5, 1, 9, 3] {
        disk.add(if block == 1 { written_behind(1, block) } else { read(block, block) });
    }
    assert_eq!(blocks(&disk.serve_all()), [5, 1, 9, 3]);
}

#[test]
fn jobs_take_turns_and_idle_jobs_are_skipped() {
    let mut disk = Disk::new(Scheduling::RoundRobin);
    (10..18).for_each(|block| disk.add(written_behind(1, block)));
    (20..22).for_each(|block| disk.add(read(2, block)));
    let first: Vec<_> = (0..2).filter_map(|_| disk.serve()).collect();
    disk.add(read(3, 30));
    disk.add(read(1, 19));
    let rest = disk.serve_all();
    assert_eq!(blocks(&[first, rest].concat()), [10, 20, 30, 11, 21, 12, 13, 14, 15, 16, 17, 19]);
}

#[test]
fn a_turn_at_an_idle_disk_counts() {
    let mut disk = Disk::new(Scheduling::RoundRobin);
    disk.add(read(1, 10));
    disk.serve();
    disk.add(read(1, 11));
    disk.add(read(2, 20));
    assert_eq!(blocks(&disk.serve_all()), [20, 11]);
}

#[test]
fn reads_precede_writes_even_in_the_background() {
    for scheduling in [Scheduling::ReadPriority, Scheduling::BoundedReadPriority] {
        let mut disk = Disk::new(scheduling);
        (0..3).for_each(|block| disk.add(written_behind(1, block)));
        disk.add(request(2, Direction::Read, Urgency::Background, 10));
        disk.add(read(2, 11));
        assert_eq!(blocks(&disk.serve_all()), [11, 10, 0, 1, 2]);
    }
}

#[test]
fn endless_reads_delay_writes_only_up_to_the_limit_of_the_schedule() {
    for (scheduling, writes) in [(Scheduling::ReadPriority, 0), (Scheduling::BoundedReadPriority, 5)] {
        let mut disk = Disk::new(scheduling);
        (0..9).for_each(|block| disk.add(written_behind(1, block)));
        for block in 0..5 * (READS_BEFORE_WRITE as u64 + 1) {
            disk.add(read(2, 10 + block));
            disk.serve();
        }
        let is_write = |request: &DiskRequest| request.direction == Direction::Write;
        assert_eq!(disk.order().filter(|(_, request)| is_write(request)).count(), writes);
    }
}

#[test]
fn promoted_requests_precede_background_requests() {
    for scheduling in Scheduling::ALL {
        let mut disk = Disk::new(scheduling);
        for block in 1..4 {
            disk.add(request(1, Direction::Read, Urgency::Background, block));
            disk.add(request(1, Direction::Read, Urgency::Background, block));
        }
        assert!(disk.schedule.has_background());
        disk.schedule.promote((0, 2));
        assert_eq!(
            blocks(&disk.serve_all()),
            [2, 2, 3, 3, 1, 1].map(|block| match scheduling {
                // These ignore the position of the arm.
                Scheduling::Fcfs | Scheduling::RoundRobin if block != 2 => 4 - block,
                Scheduling::ReadPriority | Scheduling::BoundedReadPriority if block != 2 => 4 - block,
                _ => block,
            }),
            "{scheduling:?}"
        );
        assert!(!disk.schedule.has_background());
    }
}

#[test]
fn removed_requests_are_not_served() {
    for scheduling in Scheduling::ALL {
        let mut disk = Disk::new(scheduling);
        for block in 0..4 {
            disk.add(read(block, block));
            disk.add(written_behind(block, block));
            disk.add(request(block, Direction::Read, Urgency::Background, block));
        }
        disk.schedule.promote((0, 1));
        for number in (0..12).filter(|number| number % 4 != 3) {
            disk.schedule.remove(number);
            disk.waiting.remove(&number);
        }
        let mut left: Vec<_> = disk.serve_all();
        left.sort_by_key(|request| request.position);
        assert_eq!(blocks(&left), [1, 2, 3], "{scheduling:?}");
        assert!(!disk.schedule.has_background());
    }
}

/// Limit of requests that wait at a time.
const WAITING_MAX: usize = 8;

/// Generates a request.
fn any_request() -> impl Strategy<Value = DiskRequest> {
    let kinds = prop_oneof![
        Just((Direction::Read, Urgency::Demand)),
        Just((Direction::Read, Urgency::Background)),
        Just((Direction::Write, Urgency::Demand)),
        Just((Direction::Write, Urgency::Behind)),
    ];
    (0..4_u64, kinds, 0..40_u64)
        .prop_map(|(job, (direction, urgency), block)| request(job, direction, urgency, block))
}

/// Returns the kind of a request: within a kind the schedule serves requests in order of arrival.
fn kind(scheduling: Scheduling, request: DiskRequest) -> Option<(u64, bool, bool)> {
    let DiskUser { job, urgency } = request.user;
    let (background, writes) = (urgency == Urgency::Background, request.direction == Direction::Write);
    match scheduling {
        Scheduling::Fcfs => Some((0, background, false)),
        Scheduling::RoundRobin => Some((job.0, background, false)),
        Scheduling::ReadPriority | Scheduling::BoundedReadPriority => Some((0, background, writes)),
        Scheduling::CyclicScan | Scheduling::PhysicalCyclicScan | Scheduling::FairScan => None,
    }
}

proptest! {
    /// Each waiting request is served exactly once, nothing else is, and no step is idle while a request
    /// waits.
    #[test]
    fn each_request_is_served_once_without_idle_steps(
        steps in proptest::collection::vec((proptest::collection::vec(any_request(), 0..4), 0..4_usize), 1..60),
    ) {
        for scheduling in Scheduling::ALL {
            let mut disk = Disk::new(scheduling);
            for (requests, turns) in &steps {
                requests.iter().for_each(|&request| disk.add(request));
                disk.serve_some(*turns);
            }
            disk.serve_all();
            prop_assert_eq!(disk.served.len(), disk.arrived.len(), "{:?}", scheduling);
        }
    }

    /// Unless the arm decides, requests of the same job, class and direction are served in order of arrival.
    #[test]
    fn the_order_within_a_job_is_kept(
        steps in proptest::collection::vec((proptest::collection::vec(any_request(), 0..4), 0..4_usize), 1..60),
    ) {
        for scheduling in Scheduling::ALL {
            let mut disk = Disk::new(scheduling);
            for (requests, turns) in &steps {
                requests.iter().for_each(|&request| disk.add(request));
                disk.serve_some(*turns);
            }
            disk.serve_all();
            let mut last = BTreeMap::new();
            for (number, request) in disk.order() {
                let Some(kind) = kind(scheduling, request) else { continue };
                let before = last.insert(kind, number);
                prop_assert!(before < Some(number), "{scheduling:?}: {number} after {before:?}");
            }
        }
    }

    /// A demand request waits for at most a limited number of others, if the schedule promises that, in any
    /// order of arrival.
    #[test]
    fn demand_requests_wait_no_longer_than_the_schedule_promises(
        steps in proptest::collection::vec((any_request(), 1..4_usize), 1..300),
        stream in any::<bool>(),
    ) {
        let promised = [
            (Scheduling::Fcfs, WAITING_MAX),
            (Scheduling::FairScan, 2 * WAITING_MAX),
            // At worst all are of one job, or each of its requests waits for one of each of the three others.
            (Scheduling::RoundRobin, 4 * WAITING_MAX),
            (Scheduling::BoundedReadPriority, WAITING_MAX * (READS_BEFORE_WRITE + 1)),
        ];
        for (scheduling, most) in promised {
            let mut disk = Disk::new(scheduling);
            for &(request, count) in &steps {
                for number in 0..count.min(WAITING_MAX - disk.waiting.len()) {
                    // A stream just ahead of the arm: an open sweep would serve nothing else.
                    let block = if stream && number == 0 { disk.arm.1 + 1 } else { request.position.1 };
                    let urgency = match request.user.urgency {
                        Urgency::Background => Urgency::Demand,
                        urgency => urgency,
                    };
                    disk.add(super::laws::request(request.user.job.0, request.direction, urgency, block));
                }
                disk.serve();
            }
            disk.serve_all();
            prop_assert!(disk.longest_wait() <= most, "{scheduling:?}: {} steps", disk.longest_wait());
        }
    }

    /// Under read-priority a write is served only if no read waits, or if the limit of reads have passed it.
    #[test]
    fn a_write_precedes_a_read_only_after_the_limit_of_passing_reads(
        steps in proptest::collection::vec((any_request(), 0..3_usize), 1..200),
    ) {
        for scheduling in [Scheduling::ReadPriority, Scheduling::BoundedReadPriority] {
            let mut disk = Disk::new(scheduling);
            let mut passed = 0;
            for &(request, turns) in &steps {
                disk.add(request);
                for _ in 0..turns {
                    let writes = |disk: &Disk, number: &Number| disk.arrived[*number].0.direction == Direction::Write;
                    let reads_wait = disk.waiting.iter().any(|number| !writes(&disk, number));
                    let writes_wait = disk.waiting.iter().any(|number| writes(&disk, number));
                    let Some(next) = disk.serve() else { break };
                    match next.direction {
                        Direction::Read => passed = if writes_wait { passed + 1 } else { 0 },
                        Direction::Write => {
                            let may = scheduling == Scheduling::BoundedReadPriority && passed == READS_BEFORE_WRITE;
                            prop_assert!(!reads_wait || may, "{scheduling:?}: {passed}");
                            passed = 0;
                        }
                    }
                    prop_assert!(scheduling == Scheduling::ReadPriority || passed <= READS_BEFORE_WRITE);
                }
            }
        }
    }
}
