//! Simulating experiments for a command: all trials on all processors, with progress.

use std::time::Duration;

use experiment::{Case, Summary, Trial, summarise};
use plan::PlannedTrial;

use command_line::failure::{Failure, Result};
use command_line::progress::Progress;

/// What came of a case.
pub(crate) struct Outcome {
    /// Of all its trials.
    pub(crate) summary: Summary,
    /// The first of its trials.
    pub(crate) first: Trial,
    /// Time its trials took on this computer, one after the other.
    pub(crate) wall: Duration,
}

/// Runs `trials` trials of each case on as many threads as there are processors.
pub(crate) fn run(cases: &[Case], trials: usize, progress: &Progress) -> Result<Vec<Outcome>> {
    let planned: Vec<PlannedTrial<'_>> =
        cases.iter().flat_map(|case| PlannedTrial::of(case, trials as u64)).collect();
    let done = plan::run_all(&planned, plan::threads_here(), &|| progress.add(1));
    let done = done.map_err(|failure| Failure::new(format!("simulating {}", failure.what), failure.why))?;
    Ok(done.chunks(trials).map(outcome).collect())
}

fn outcome(trials: &[(Trial, Duration)]) -> Outcome {
    let wall = trials.iter().map(|(_, wall)| *wall).sum();
    let trials: Vec<Trial> = trials.iter().map(|(trial, _)| trial.clone()).collect();
    Outcome { summary: summarise(&trials), first: trials[0].clone(), wall }
}
