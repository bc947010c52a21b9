//! What a trial of jobs that share disks tells: when each was done, what a block cost, how long queues of writes were.

use jobs::{Outcome, PendingWrites, WriteStep};
use machine::Duration;

use crate::Trial;

/// What came of jobs that share disks. Times are since the first of them began.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementOutcome {
    /// When all jobs were done.
    pub elapsed: Duration,
    /// When the disk had the last write of each job, by number.
    pub ends: Vec<Duration>,
    /// Blocks that all jobs have read.
    pub blocks_read: u64,
    /// Blocks that all disks have written.
    pub blocks_written: u64,
    /// r: milliseconds that a disk took to read a block, on average.
    pub read_ms: f64,
    /// w: milliseconds that a disk took to write one.
    pub write_ms: f64,
    /// The writes that were pending at each disk.
    pub backlogs: Vec<DiskBacklog>,
}

/// The writes that jobs had started to one disk, and that were not done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskBacklog {
    /// How many, from each time on when that changed.
    pub steps: Vec<(Duration, PendingWrites)>,
}

impl PlacementOutcome {
    /// That of a trial whose jobs write to these disks, in blocks of so many bytes, each beginning so much later than
    /// the one before.
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

    /// When the first job was done.
    pub fn first(&self) -> Duration {
        self.ends.iter().copied().min().unwrap_or(Duration::ZERO)
    }

    /// f = w / r as it was measured, without unit.
    pub fn ratio(&self) -> f64 {
        self.write_ms / self.read_ms
    }

    /// The most writes that were pending at one disk.
    pub fn pending_most(&self) -> PendingWrites {
        self.backlogs.iter().map(DiskBacklog::most).max().unwrap_or_default()
    }
}

/// When the disk had the last write of each of these jobs, each of which has begun so much later than the one before.
pub(crate) fn ends(jobs: &[Outcome], stagger: Duration) -> Vec<Duration> {
    // What a job waits for after that is the flush, which a disk does when it is through with a request of others.
    let last_write = |outcome: &Outcome| {
        let last = outcome.timeline.as_ref().and_then(|timeline| timeline.writes.last());
        last.map_or(Duration::ZERO, |step| step.at)
    };
    jobs.iter().zip(0..).map(|(outcome, job)| stagger * job + last_write(outcome)).collect()
}

impl DiskBacklog {
    /// The writes that were pending at each disk, of jobs that write to the disks `outputs`.
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
        // Stable: of one instant, they stay in the order in which a job made them.
        steps.sort_by_key(|step| step.at);
        let all = jobs::JobTimeline { writes: steps, waits: Vec::new() };
        DiskBacklog { steps: all.pending().collect() }
    }

    /// The most that were pending.
    pub fn most(&self) -> PendingWrites {
        self.steps.iter().map(|(_, pending)| *pending).max().unwrap_or_default()
    }

    /// When more than `blocks` blocks were pending first.
    pub fn first_above(&self, blocks: u64) -> Option<Duration> {
        self.steps.iter().find(|(_, pending)| pending.blocks > blocks).map(|(time, _)| *time)
    }

    /// The blocks that were pending at a time.
    pub fn blocks_at(&self, time: Duration) -> u64 {
        let before = self.steps.partition_point(|(at, _)| *at <= time);
        before.checked_sub(1).map_or(0, |last| self.steps[last].1.blocks)
    }

    /// How fast the pending blocks grew from `begin` to `end`, in blocks a second, by least squares over the steps.
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
