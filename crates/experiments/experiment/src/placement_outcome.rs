//! Outcome of a trial of jobs that share disks: their ends, times per block, and lengths of write queues.

use jobs::{Outcome, PendingWrites, WriteStep};
use machine::Duration;

use crate::Trial;

/// Outcome of jobs that share disks. Times count from the start of the first job.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementOutcome {
    /// Time until all jobs have ended.
    pub elapsed: Duration,
    /// Time, for each job by number, at which the disk completed the job's last write.
    pub ends: Vec<Duration>,
    /// Number of blocks that all jobs have read.
    pub blocks_read: u64,
    /// Number of blocks that all disks have written.
    pub blocks_written: u64,
    /// r: mean time of a disk to read a block, in milliseconds.
    pub read_ms: f64,
    /// w: mean time of a disk to write a block, in milliseconds.
    pub write_ms: f64,
    /// Pending writes at each disk, over time.
    pub backlogs: Vec<DiskBacklog>,
}

/// Pending writes at one disk, over time. A write is pending from its start by the job to its completion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskBacklog {
    /// Number of pending writes after each change.
    pub steps: Vec<(Duration, PendingWrites)>,
}

impl PlacementOutcome {
    /// Returns the outcome of a trial whose jobs write to the disks `outputs`, in blocks of `block_bytes` bytes.
    /// Consecutive jobs start `stagger` apart.
    pub(crate) fn of(trial: &Trial, outputs: &[usize], block_bytes: u64, stagger: Duration) -> Self {
        let disks = &trial.statistics.disks;
        let sum = |of: fn(&sim::DiskCounts) -> u64| disks.iter().map(|disk| of(&disk.counts)).sum::<u64>();
        let read = trial.jobs.iter().map(|outcome| outcome.reads.bytes).sum::<u64>() / block_bytes;
        let written = sum(|counts| counts.bytes_written) / block_bytes;
        let per_block = |of: fn(&sim::DiskCounts) -> u64, blocks: u64| sum(of) as f64 / 1e6 / blocks as f64;
        PlacementOutcome {
            elapsed: trial.elapsed,
            ends: ends(&trial.jobs, stagger),
            blocks_read: read,
            blocks_written: written,
            read_ms: per_block(|counts| counts.read_time.as_nanos(), read),
            write_ms: per_block(|counts| counts.write_time.as_nanos(), written),
            backlogs: DiskBacklog::of_disks(disks.len(), &trial.jobs, outputs, stagger),
        }
    }

    /// Returns the end of the first job to finish.
    pub fn first(&self) -> Duration {
        self.ends.iter().copied().min().unwrap_or(Duration::ZERO)
    }

    /// Returns the measured f = w / r, without unit.
    pub fn ratio(&self) -> f64 {
        self.write_ms / self.read_ms
    }

    /// Returns the maximum number of pending writes at any disk.
    pub fn pending_most(&self) -> PendingWrites {
        self.backlogs.iter().map(DiskBacklog::most).max().unwrap_or_default()
    }
}

/// Returns the time at which the disk completed the last write of each job. Consecutive jobs start `stagger` apart.
pub(crate) fn ends(jobs: &[Outcome], stagger: Duration) -> Vec<Duration> {
    // The end of a job includes the flush, which may wait for a disk request of another job. So it is not used here.
    let last_write = |outcome: &Outcome| {
        let last = outcome.timeline.as_ref().and_then(|timeline| timeline.writes.last());
        last.map_or(Duration::ZERO, |step| step.at)
    };
    jobs.iter().zip(0..).map(|(outcome, job)| stagger * job + last_write(outcome)).collect()
}

impl DiskBacklog {
    /// Returns the pending writes at each disk, for jobs that write to the disks `outputs`.
    pub(crate) fn of_disks(
        disks: usize,
        jobs: &[Outcome],
        outputs: &[usize],
        stagger: Duration,
    ) -> Vec<DiskBacklog> {
        let backlog = |disk: usize| {
            let to_disk = jobs.iter().zip(0..).zip(outputs).filter(|&(_, &output)| output == disk);
            let steps = to_disk.flat_map(|((outcome, job), _)| {
                let steps = outcome.timeline.iter().flat_map(|timeline| &timeline.writes);
                steps.map(move |step| WriteStep { at: stagger * job + step.at, ..*step })
            });
            DiskBacklog::of(steps.collect())
        };
        (0..disks).map(backlog).collect()
    }

    fn of(mut steps: Vec<WriteStep>) -> Self {
        // A stable sort keeps simultaneous steps of a job in order.
        steps.sort_by_key(|step| step.at);
        let all = jobs::JobTimeline { writes: steps, waits: Vec::new() };
        DiskBacklog { steps: all.pending().collect() }
    }

    /// Returns the maximum number of pending writes.
    pub fn most(&self) -> PendingWrites {
        self.steps.iter().map(|(_, pending)| *pending).max().unwrap_or_default()
    }

    /// Returns the first time at which more than `blocks` blocks were pending.
    pub fn first_above(&self, blocks: u64) -> Option<Duration> {
        self.steps.iter().find(|(_, pending)| pending.blocks > blocks).map(|(time, _)| *time)
    }

    /// Returns the number of pending blocks at a time.
    pub fn blocks_at(&self, time: Duration) -> u64 {
        let before = self.steps.partition_point(|(at, _)| *at <= time);
        before.checked_sub(1).map_or(0, |last| self.steps[last].1.blocks)
    }

    /// Returns the growth rate of the number of pending blocks from `begin` to `end`, in blocks per second, by a
    /// least-squares fit over the steps. `None` if the steps do not determine a rate.
    pub fn growth(&self, begin: Duration, end: Duration) -> Option<f64> {
        let between = self.steps.iter().filter(|(time, _)| (begin..=end).contains(time));
        let points: Vec<(f64, f64)> =
            between.map(|(time, pending)| (time.as_secs_f64(), pending.blocks as f64)).collect();
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
        let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / spread;
        slope.is_finite().then_some(slope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_growth_of_a_backlog_is_its_slope() {
        let steps = (0..100).map(|step| {
            let pending = PendingWrites { writes: step, blocks: 3 * step };
            (Duration::from_millis(10 * step), pending)
        });
        let backlog = DiskBacklog { steps: steps.collect() };
        let growth = backlog.growth(Duration::ZERO, Duration::from_secs(1)).expect("a slope");
        assert!((growth - 300.0).abs() < 1e-6, "{growth}");
        assert_eq!(backlog.first_above(29), Some(Duration::from_millis(100)));
        assert_eq!(backlog.growth(Duration::from_secs(2), Duration::from_secs(3)), None);
    }
}
