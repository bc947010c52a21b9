//! Merges that share disks, on agents that are started for the benchmark with slowed-down disks, and predictions of the
//! same jobs by the simulated machine.
//!
//! - this file: measured or predicted results of the jobs
//! - `measure.rs`: runs the jobs on agents; `prediction.rs`: runs them on the simulated machine
//! - `results.rs`: rows, as text, CSV, JSON and a page

pub mod measure;
pub mod prediction;
pub mod results;

use experiment::{DiskBacklog, Outcome, PendingWrites, PlacementCase};

/// Results of merges that share disks: means over trials, except that the queue is a maximum.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeTimes {
    /// Seconds until the last write of all jobs was on the disks.
    pub seconds: f64,
    /// Seconds until the last write of the job that finished first was on the disks.
    pub first_seconds: f64,
    /// Maximum number of pending writes at any disk in any trial.
    pub queue: PendingWrites,
}

impl MergeTimes {
    /// Returns the times of one trial.
    pub fn of(case: &PlacementCase, jobs: &[Outcome]) -> Self {
        let ends = case.ends(jobs).into_iter().map(|end| end.as_secs_f64());
        MergeTimes {
            seconds: ends.clone().fold(0.0, f64::max),
            first_seconds: ends.fold(f64::INFINITY, f64::min),
            queue: case.backlogs(jobs).iter().map(DiskBacklog::most).max().unwrap_or_default(),
        }
    }

    /// Returns the means of several trials.
    pub fn mean(trials: &[MergeTimes]) -> Self {
        let mean = |of: fn(&MergeTimes) -> f64| trials.iter().map(of).sum::<f64>() / trials.len() as f64;
        MergeTimes {
            seconds: mean(|times| times.seconds),
            first_seconds: mean(|times| times.first_seconds),
            queue: trials.iter().map(|times| times.queue).max().unwrap_or_default(),
        }
    }
}
