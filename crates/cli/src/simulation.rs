//! Simulating experiments for a command: all trials on all processors, with progress.

use std::time::Duration;

use experiment::{Case, Summary, Trial, summarise};
use plan::{PlannedCase, PlannedTrial};

use crate::memory;
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

/// Refuses trials whose files would not fit into memory together, as many trials as run at once.
pub(crate) fn check_memory(cases: &[Case], trials: usize) -> Result<()> {
    let of_trials = cases.iter().flat_map(|case| std::iter::repeat_n(case as &dyn PlannedCase, trials));
    let needed = plan::stored_bytes(of_trials, plan::threads_here());
    memory::check_stored("simulating", needed, memory::PHANTOM)
}

/// Runs `trials` trials of each case on as many threads as there are processors. The first ones may have been run
/// already: `done` has what came of them, and how long each took.
pub(crate) fn run(
    cases: &[Case],
    trials: usize,
    mut done: Vec<(Trial, Duration)>,
    progress: &Progress,
) -> Result<Vec<Outcome>> {
    progress.add(done.len() as u64);
    let planned: Vec<PlannedTrial<'_>> =
        cases.iter().flat_map(|case| PlannedTrial::of(case, trials as u64)).skip(done.len()).collect();
    let rest = plan::run_all(&planned, plan::threads_here(), &|| progress.add(1));
    done.extend(rest.map_err(|failure| Failure::new(format!("simulating {}", failure.what), failure.why))?);
    Ok(done.chunks(trials).map(outcome).collect())
}

fn outcome(trials: &[(Trial, Duration)]) -> Outcome {
    let wall = trials.iter().map(|(_, wall)| *wall).sum();
    let trials: Vec<Trial> = trials.iter().map(|(trial, _)| trial.clone()).collect();
    Outcome { summary: summarise(&trials), first: trials[0].clone(), wall }
}
