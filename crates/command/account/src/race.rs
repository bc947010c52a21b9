//! Account of one run of jobs that share disks: the leading job, the start of a race, and the prediction of the
//! analysis.

use command_line::counted;
use experiment::{PlacedJob, PlacementCase, PlacementOutcome, Trial, WaitCause};
use fs::Scheduling;
use machine::Duration;
use placement::{BlockTimes, ManyDisks, TwoDisks};

/// A race requires that the first job ends before this share of the total time.
const TOGETHER: f64 = 0.8;

/// Events of one trial.
pub struct Race<'a> {
    case: &'a PlacementCase,
    trial: &'a Trial,
    outcome: &'a PlacementOutcome,
}

/// Prediction of the analysis for a case, with the measured times r and w.
struct Analysis {
    /// Ratio that must be above 1 for a race to be possible, and its symbol.
    ratio: f64,
    called: &'static str,
    /// Threshold N* in blocks.
    threshold: u64,
}

/// Returns the reservation about a threshold if there are fewer jobs than disks.
pub fn proviso(jobs: u32, disks: u32) -> &'static str {
    if jobs < disks { " (the analysis assumes as many jobs as disks)" } else { "" }
}

impl<'a> Race<'a> {
    /// Returns the race of a trial of a case.
    pub fn of(case: &'a PlacementCase, trial: &'a Trial, outcome: &'a PlacementOutcome) -> Self {
        Race { case, trial, outcome }
    }

    /// Returns the account in plain words.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![String::new(), "Trial 0:".to_owned()];
        lines.extend(self.analysis_line());
        lines.push(self.queue_line());
        lines.push(self.race_line());
        lines.extend(self.job_lines());
        lines.extend(self.disk_lines());
        lines
    }

    /// Returns the analysis, or `None` if no race is possible: there is only one job, the jobs are placed so that none
    /// can race, or the disks take no time.
    fn analysis(&self) -> Option<Analysis> {
        let times = BlockTimes { read: self.outcome.read_ms, write: self.outcome.write_ms };
        let read_blocks = self.case.options.read_blocks as u32;
        if !self.case.can_race() || times.read <= 0.0 || times.write <= 0.0 {
            return None;
        }
        Some(if self.case.options.kind == PlacedJob::Copy {
            let two = TwoDisks { times, read_blocks };
            Analysis { ratio: times.ratio(), called: "f", threshold: u64::from(two.read_blocks) }
        } else {
            let many = ManyDisks::new(times, read_blocks, self.case.options.disks);
            Analysis { ratio: many.ratio(), called: "f^ = f (d - 1)", threshold: many.threshold_blocks() }
        })
    }

    fn analysis_line(&self) -> Vec<String> {
        match self.analysis() {
            None if self.case.can_race() => {
                vec!["  The analysis: no race is possible, because these disks take no time.".to_owned()]
            }
            None => vec![
                "  The analysis: no race is possible, because there is only one job, some jobs read from the \
                 disk they write to, or no job reads from a disk that another writes to."
                    .to_owned(),
            ],
            Some(Analysis { ratio, called, threshold }) => {
                let (possible, above) = if ratio > 1.0 { ("", "above") } else { ("not ", "not above") };
                let scheduling = self.case.options.scheduling;
                let assumed = if scheduling == Scheduling::Fcfs {
                    String::new()
                } else {
                    format!(" if disks served first come, first served, and not {scheduling}")
                };
                vec![format!(
                    "  The analysis: {called} is {ratio:.2}, {above} 1: a race is {possible}possible, from {threshold} \
                     pending blocks at a disk on{}{assumed}.",
                    proviso(self.case.options.jobs, self.case.options.disks)
                )]
            }
        }
    }

    /// Describes the longest queue and its job.
    fn queue_line(&self) -> String {
        let backlogs = self.outcome.backlogs.iter().enumerate();
        let Some((disk, longest)) = backlogs.max_by_key(|(_, backlog)| backlog.most()) else {
            return "  No disk had a queue of writes.".to_owned();
        };
        let most = longest.most();
        let at =
            longest.steps.iter().find(|(_, pending)| *pending == most).map_or(Duration::ZERO, |step| step.0);
        format!(
            "  The longest queue: {} ({}) at disk {disk}, {:.1} s after the start{}.",
            counted(most.writes, "write"),
            counted(most.blocks, "block"),
            at.as_secs_f64(),
            self.analysis().map_or(String::new(), |analysis| {
                format!(", {:.1} times the threshold", most.blocks as f64 / analysis.threshold as f64)
            })
        )
    }

    /// Describes the start of a race, if there was one.
    fn race_line(&self) -> String {
        let threshold = self.analysis().map_or(0, |analysis| analysis.threshold);
        let began = self.began(threshold);
        match began {
            Some((disk, time)) => {
                let ahead = self.ahead_at(time);
                format!(
                    "  A race: job {ahead} was ahead when the queue of disk {disk} passed the threshold for good, {:.1} s \
                     after the start; its backlog then grew to {:.0} times that.",
                    time.as_secs_f64(),
                    self.outcome.backlogs[disk].most().blocks as f64 / threshold as f64
                )
            }
            None => format!(
                "  No race: the first job was done after {:.0} % of the time of all.",
                100.0 * self.outcome.first().as_secs_f64() / self.outcome.elapsed.as_secs_f64()
            ),
        }
    }

    /// Returns the disk and the start time of a race, or `None` without a race. The disk is the one whose queue was the
    /// first to exceed twice the threshold while at least two jobs were working. The start is the last time before, at
    /// which the queue was at the threshold. Without a job that ends long before the others there is no race.
    fn began(&self, threshold: u64) -> Option<(usize, Duration)> {
        let first = self.outcome.first().as_secs_f64();
        if threshold == 0 || first > TOGETHER * self.outcome.elapsed.as_secs_f64() {
            return None;
        }
        let mut ends = self.outcome.ends.clone();
        ends.sort_unstable();
        let last_but_one = ends.len().checked_sub(2).map(|place| ends[place])?;
        let grown = self.outcome.backlogs.iter().enumerate().filter_map(|(disk, backlog)| {
            let high = backlog.first_above(2 * threshold).filter(|time| *time < last_but_one)?;
            let before = backlog.steps.iter().take_while(|(time, _)| *time <= high);
            let low = before.filter(|(_, pending)| pending.blocks <= threshold).last();
            Some((disk, low.map_or(Duration::ZERO, |(time, _)| *time)))
        });
        grown.min_by_key(|(_, time)| *time)
    }

    /// Returns the job that had started the most block writes until this time.
    fn ahead_at(&self, time: Duration) -> usize {
        let started = |job: usize| {
            let since = time.as_nanos().saturating_sub((self.case.options.stagger * job as u64).as_nanos());
            let timeline = self.trial.jobs[job].timeline.as_ref();
            timeline.map_or(0, |timeline| timeline.started_by(Duration::from_nanos(since)))
        };
        (0..self.trial.jobs.len()).max_by_key(|&job| (started(job), usize::MAX - job)).unwrap_or(0)
    }

    /// Describes each job, in the order of their ends: its duration, and its waits by reason.
    fn job_lines(&self) -> Vec<String> {
        let mut order: Vec<usize> = (0..self.outcome.ends.len()).collect();
        order.sort_by_key(|&job| self.outcome.ends[job]);
        let line = |job: usize| {
            let waited = |is_meant: fn(WaitCause) -> bool| {
                let timeline = self.trial.jobs[job].timeline.as_ref();
                timeline.map_or(0.0, |timeline| timeline.waited(is_meant).as_secs_f64())
            };
            let input = waited(|cause| matches!(cause, WaitCause::Input(_)));
            let room = waited(|cause| cause == WaitCause::Room);
            let rest = waited(|cause| cause == WaitCause::Writes);
            let room =
                if room > 0.0 { format!(", {room:.1} s for room in its portion") } else { String::new() };
            format!(
                "  Job {job} was done after {:.1} s: it waited {input:.1} s for input{room}, and {rest:.1} s for its last \
                 writes.",
                self.outcome.ends[job].as_secs_f64()
            )
        };
        order.into_iter().map(line).collect()
    }

    fn disk_lines(&self) -> Vec<String> {
        let statistics = &self.trial.statistics;
        let line = |(disk, of_disk): (usize, &sim::DiskStatistics)| {
            let busy = 100.0 * statistics.utilisation(of_disk.counts.read_time + of_disk.counts.write_time);
            let most = self.outcome.backlogs[disk].most();
            format!(
                "  Disk {disk} was busy for {busy:.0} % of the time, with at most {} ({}) pending.",
                counted(most.writes, "write"),
                counted(most.blocks, "block")
            )
        };
        statistics.disks.iter().enumerate().map(line).collect()
    }
}
