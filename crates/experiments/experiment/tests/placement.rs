//! Tests of jobs that share disks: the race between jobs, its remedies, and invariants of every run.

use std::cell::RefCell;
use std::rc::Rc;

use description::MachineDescription;
use experiment::{
    BatchReading, Contents, PlacedJob, PlacementCase, PlacementOptions, PlacementOutcome, Trial,
};
use machine::{Duration, Instant, NodeId, NotedEvent, Recorder, RowId};
use placement::Policy;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn machine(jobs: u32, disks: u32) -> MachineDescription {
    let (jobs, disks) = (jobs.to_string(), disks.to_string());
    let set = [("nodes.compute", &*jobs), ("nodes.io", &*disks)];
    MachineDescription::load_with("shared-disks-1996", &set).expect("it is built in")
}

/// Returns the report's merges (section 2.1).
fn merges(policy: Policy, jobs: u32) -> PlacementCase {
    let options = PlacementOptions { policy, jobs, ..PlacementOptions::default() };
    PlacementCase { machine: machine(jobs, 5), options, seed: 1 }
}

/// Returns a copy of the case, modified by `change`.
fn with(case: &PlacementCase, change: impl FnOnce(&mut PlacementOptions)) -> PlacementCase {
    let mut case = case.clone();
    change(&mut case.options);
    case
}

/// Checks invariants of every run: as many blocks are written as read, each disk is either busy or idle, and a job ends
/// with its last write. The trial itself has checked that each byte is in its place.
fn check(case: &PlacementCase, trial: &Trial) {
    let outcome = case.outcome(trial);
    let blocks = u64::from(case.options.jobs) * case.job_blocks();
    assert_eq!((outcome.blocks_read, outcome.blocks_written), (blocks, blocks), "{case}");
    let reads: u64 = trial.statistics.disks.iter().map(|disk| disk.counts.reads).sum();
    assert_eq!(
        reads,
        blocks / case.options.run_blocks * case.options.run_blocks.div_ceil(case.options.read_blocks),
        "{case}"
    );
    for disk in &trial.statistics.disks {
        let accesses = disk.counts.read_time + disk.counts.write_time;
        assert_eq!(accesses, disk.mechanics.busy(), "{case}: nothing else takes time at a disk");
        assert!(accesses <= trial.elapsed, "{case}");
    }
    for (job, end) in trial.jobs.iter().zip(&outcome.ends) {
        let timeline = job.timeline.as_ref().expect("it has one");
        let last = timeline.writes.last().expect("it writes");
        assert!(last.is_done && job.elapsed >= last.at, "{case}: a job is done when its last write is");
        assert_eq!(timeline.writes.iter().filter(|step| step.is_done).count() * 2, timeline.writes.len());
        assert!(*end <= outcome.elapsed);
    }
    assert_eq!(outcome.ends.iter().max(), Some(&outcome.elapsed), "{case}");
}

fn checked(case: &PlacementCase, number: u64) -> PlacementOutcome {
    let trial = case.trial(number).expect("it runs");
    check(case, &trial);
    case.outcome(&trial)
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

#[test]
fn jobs_of_policy_3_finish_together_and_those_of_policy_2_do_not() {
    for seed in 1..=5 {
        let share = |policy| {
            let outcome = checked(&PlacementCase { seed, ..merges(policy, 5) }, 0);
            seconds(outcome.first()) / seconds(outcome.elapsed)
        };
        let (together, raced) = (share(Policy::SharedWithinJob), share(Policy::SeparateWithinJob));
        assert!(together > 0.9, "seed {seed}: the first of policy 3 ends after {together} of the time");
        assert!(raced < 0.7, "seed {seed}: the first of policy 2 ends after {raced} of the time");
    }
}

/// Published results of the report: figure 2 for policies 3 and 4 with five jobs.
#[test]
fn policy_3_takes_as_long_as_published_and_policy_4_hardly_longer() {
    let mean = |policy, jobs| {
        (0..3).map(|trial| seconds(checked(&merges(policy, jobs), trial).elapsed)).sum::<f64>() / 3.0
    };
    let published = 70.0;
    let third = mean(Policy::SharedWithinJob, 5);
    assert!((third / published - 1.0).abs() < 0.03, "{third} s");
    for jobs in 3..=5 {
        let longer = mean(Policy::AllDisks, jobs) / mean(Policy::SharedWithinJob, jobs);
        assert!((1.0..1.12).contains(&longer), "{jobs} jobs: {longer}");
    }
}

/// Figure 8 of the report: published results for three jobs and 2000 blocks.
#[test]
fn small_buffers_limit_the_race() {
    let times = [Some(2000), Some(12_000), None].map(|buffer_blocks| {
        let case = with(&merges(Policy::SeparateWithinJob, 3), |merge| merge.buffer_blocks = buffer_blocks);
        let outcome = checked(&case, 0);
        if let Some(blocks) = buffer_blocks {
            assert!(
                outcome.pending_most().blocks <= blocks / 3,
                "each of the three jobs has a third of the buffer blocks"
            );
        }
        seconds(outcome.elapsed)
    });
    assert!((times[0] / 46.0 - 1.0).abs() < 0.12, "{times:?}");
    assert!(times[0] < times[1] && times[1] <= 1.05 * times[2], "{times:?}");
}

fn copies(read_blocks: u64, write_blocks: u64) -> PlacementCase {
    let options = PlacementOptions {
        kind: PlacedJob::Copy,
        jobs: 2,
        disks: 2,
        run_blocks: 10_000,
        read_blocks,
        write_blocks,
        ..PlacementOptions::default()
    };
    PlacementCase { machine: machine(2, 2), options, seed: 1 }
}

/// While a copy races, the queue of writes grows by the read rate of one disk minus the write rate of the other: 1/r -
/// 1/w (section 3.2 of the report).
#[test]
fn the_queue_of_a_racing_copy_grows_as_predicted() {
    for read_blocks in [4, 8] {
        let outcome = checked(&copies(read_blocks, 1), 0);
        // The second job has a queue, too, after the first job has ended.
        let mut backlogs: Vec<_> = outcome.backlogs.iter().collect();
        backlogs.sort_by_key(|backlog| backlog.first_above(100).expect("both have a queue"));
        let (backlog, other) = (backlogs[0], backlogs[1]);
        let begin = backlog.first_above(100).expect("it races");
        let end = backlog.first_above(backlog.most().blocks - 1).expect("it exists");
        let growth = backlog.growth(begin, end).expect("it grows");
        let predicted = 1000.0 / outcome.read_ms - 1000.0 / outcome.write_ms;
        assert!(
            (growth / predicted - 1.0).abs() < 0.1,
            "b_r = {read_blocks}: {growth}, predicted {predicted}"
        );
        let there =
            other.steps.iter().take_while(|(time, _)| *time <= end).map(|(_, pending)| pending.blocks);
        let there = there.max().unwrap_or(0);
        assert!(there < 50, "b_r = {read_blocks}: the other disk has {there}");
    }
}

#[test]
fn a_copy_with_large_writes_does_not_race() {
    let outcome = checked(&copies(8, 40), 0);
    assert!(outcome.ratio() < 0.7, "f is {}", outcome.ratio());
    assert!(outcome.pending_most().blocks <= 200, "{:?}", outcome.pending_most());
}

#[test]
fn interleaves_race_if_writes_are_slow_enough() {
    let share = |read_blocks, write_blocks| {
        let options = PlacementOptions {
            kind: PlacedJob::Interleave,
            run_blocks: 2500,
            read_blocks,
            write_blocks,
            ..PlacementOptions::default()
        };
        let case = PlacementCase { machine: machine(5, 5), options, seed: 1 };
        let outcome = checked(&case, 0);
        seconds(outcome.first()) / seconds(outcome.elapsed)
    };
    assert!(share(1, 10) > 0.95, "f^ < 1: they end together");
    assert!(share(12, 1) < 0.4, "f^ is 22: they take turns");
}

/// Effects of processor time, of a late start, and of demand reads, as described in the report.
#[test]
fn work_demand_reads_and_late_starts_prolong_jobs() {
    let usual = merges(Policy::SharedWithinJob, 1);
    let alone = checked(&usual, 0);
    let busy = checked(&with(&usual, |merge| merge.work = Duration::from_millis(2)), 0);
    assert!(seconds(busy.elapsed) > 40.0, "20,000 blocks of 2 ms");
    assert!(seconds(alone.elapsed) < 26.0);
    // With large enough writes, the reads limit the throughput of the job.
    let read_limited = with(&usual, |merge| merge.write_blocks = 400);
    let demand = with(&read_limited, |merge| merge.reading = BatchReading::OnDemand);
    assert!(checked(&demand, 0).elapsed > checked(&read_limited, 0).elapsed);
    let late = with(&merges(Policy::SharedWithinJob, 2), |merge| merge.stagger = Duration::from_secs(3));
    let outcome = checked(&late, 0);
    let plain = checked(&merges(Policy::SharedWithinJob, 2), 0);
    assert!(outcome.elapsed > plain.elapsed && outcome.ends[0] < outcome.ends[1]);
}

/// Real bytes take the same time as phantom contents. The trial checks all bytes.
#[test]
fn real_bytes_take_the_same_time_as_phantom_contents() {
    let case = with(&merges(Policy::AllDisks, 3), |merge| {
        *merge = PlacementOptions { run_blocks: 30, runs: 7, write_blocks: 9, ..*merge };
    });
    let real = with(&case, |merge| merge.contents = Contents::Real);
    assert_eq!(checked(&case, 3), checked(&real, 3));
}

#[test]
fn a_trial_is_repeatable_and_differs_from_others() {
    let case = with(&merges(Policy::SeparateWithinJob, 5), |merge| merge.run_blocks = 100);
    let digest = |number| case.trial(number).expect("it runs").digest;
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
}

/// The accesses of a disk and the gaps between them add up to the duration of the trial.
#[test]
fn busy_and_idle_times_of_a_disk_add_up_to_the_trial() {
    let case = with(&merges(Policy::SeparateWithinJob, 5), |merge| merge.run_blocks = 200);
    let accesses: Rc<RefCell<Accesses>> = Rc::default();
    let trial = case.recorded_trial(0, accesses.clone()).expect("it runs");
    check(&case, &trial);
    let accesses = &accesses.borrow().ended;
    let start = accesses.iter().map(|(_, begin, _)| *begin).min().expect("it reads at once");
    for (disk, statistics) in trial.statistics.disks.iter().enumerate() {
        let (mut idle, mut free) = (Duration::ZERO, start);
        for (_, begin, end) in accesses.iter().filter(|(of, ..)| *of == disk) {
            idle += begin.since(free);
            free = *end;
        }
        idle += (start + trial.elapsed).since(free);
        assert_eq!(idle + statistics.mechanics.busy(), trial.elapsed, "disk {disk}");
    }
    let last = accesses.iter().map(|(_, _, end)| *end).max().expect("there are some");
    assert_eq!(last.since(start), trial.elapsed, "the last write ends the trial");
}

/// Recorder of the accesses of each disk, with their start and end times.
#[derive(Default)]
struct Accesses {
    /// Disk of each row, if the row belongs to a disk.
    rows: Vec<Option<usize>>,
    begun: Instant,
    ended: Vec<(usize, Instant, Instant)>,
}

impl Recorder for Accesses {
    fn row(&mut self, _: NodeId, name: &str, _: bool) -> RowId {
        self.rows.push(name.strip_prefix("disk ").and_then(|number| number.parse().ok()));
        RowId(self.rows.len() as u32 - 1)
    }

    fn note(&mut self, row: RowId, time: Instant, event: NotedEvent<'_>) {
        match (self.rows[row.0 as usize], event) {
            // Accesses of a disk do not overlap, so the next end after a start belongs to the same access.
            (Some(_), NotedEvent::Begin { .. }) => self.begun = time,
            (Some(disk), NotedEvent::End) => self.ended.push((disk, self.begun, time)),
            _ => {}
        }
    }
}

#[test]
fn invalid_placement_cases_are_rejected_before_a_run() {
    let usual = merges(Policy::SeparateWithinJob, 5);
    let why = |case: PlacementCase| case.check().expect_err("refused").to_string();
    assert!(why(merges(Policy::DedicatedWriteDisks, 5)).contains("without a disk to read from"));
    let crowded = merges(usual.options.policy, 6);
    assert!(why(crowded).contains("6 jobs need 6 disks"));
    assert!(why(with(&usual, |merge| merge.disks = 6)).contains("compute nodes and"));
    assert!(why(with(&usual, |merge| merge.read_blocks = 0)).contains("0 blocks are read"));
    assert!(why(with(&usual, |merge| merge.buffer_blocks = Some(2659))).contains("may wait forever"));
    assert!(with(&usual, |merge| merge.buffer_blocks = Some(2660)).check().is_ok());
    let large = with(&usual, |merge| merge.run_blocks = 100_000);
    assert!(why(large).contains("have room for"));
    assert!(why(with(&usual, |merge| merge.kind = PlacedJob::Copy)).contains("two jobs on two disks"));
}
