//! Merges that share disks, on agents started for the benchmark with slowed disks, and predictions of the same jobs by
//! the simulated machine.
//!
//! - this file: results of the jobs, measured or predicted
//! - `measure.rs`: runs them on agents; `prediction.rs`: on the simulated machine
//! - `results.rs`: rows, as text, CSV, JSON and a page

pub mod measure;
pub mod prediction;
pub mod results;

use experiment::{DiskBacklog, Outcome, PendingWrites, PlacementCase};

/// Results of merges that share disks: means over trials, except for the queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeTimes {
    /// Seconds until the disks had the last write of all jobs.
    pub seconds: f64,
    /// Seconds until the disks had the last write of the first finished job.
    pub first_seconds: f64,
    /// Maximum of pending writes at a disk in any trial.
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
