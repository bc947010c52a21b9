//! Simulates experiments for a command. Runs all trials on all processors and shows the progress.

use std::time::Duration;

use experiment::{Case, Contents, Summary, Trial, TrialNumbers, summarise};
use plan::{PlannedCase, PlannedTrial};

use command_line::failure::{Failure, Result};
use command_line::progress::Progress;
use transfer::memory;

/// Result of a case.
pub(crate) struct Outcome {
    /// Summary of all trials.
    pub(crate) summary: Summary,
    /// First trial.
    pub(crate) first: Trial,
    /// Total run time of the trials on this computer.
    pub(crate) wall: Duration,
}

/// Number of trials in a batch. After a batch, only the numbers for the summary stay in memory.
const AT_ONCE: usize = 1024;

/// Remedy if even the records of the simulated blocks do not fit into memory.
const BLOCKS: &str = "Choose larger blocks, for example --block 1MiB, or a smaller --file-size.";

/// Fails if the concurrent trials and the results of these cases do not fit into memory.
pub(crate) fn check_memory(cases: &[Case], trials: usize) -> Result<()> {
    let threads = plan::threads_here();
    let at_once = |case| std::iter::repeat_n(case as &dyn PlannedCase, trials.min(threads));
    let running = plan::stored_bytes(cases.iter().flat_map(at_once), threads);
    let results = (cases.len() as u64).saturating_mul((trials * size_of::<TrialNumbers>()) as u64);
    if results > running {
        return memory::check_stored("simulating", results, "Choose fewer --trials.");
    }
    let is_real = cases.iter().any(|case| case.contents == Contents::Real);
    let remedy = if is_real { memory::PHANTOM } else { BLOCKS };
    memory::check_stored("simulating", running.saturating_add(results), remedy)
}

/// Runs `trials` trials of each case on all processors. `done` holds the first trials, with their run times, if they
/// have already been run.
pub(crate) fn run(
    cases: &[Case],
    trials: usize,
    done: Vec<(Trial, Duration)>,
    progress: &Progress,
) -> Result<Vec<Outcome>> {
    progress.add(done.len() as u64);
    let planned = cases.iter().flat_map(|case| PlannedTrial::of(case, trials as u64));
    let mut planned = planned.skip(done.len()).peekable();
    let (mut outcomes, mut taken) = (Vec::new(), CompletedTrials::default());
    let mut part = done;
    loop {
        for timed in part {
            taken.take(timed);
            if taken.numbers.len() == trials {
                outcomes.extend(std::mem::take(&mut taken).outcome());
            }
        }
        if planned.peek().is_none() {
            return Ok(outcomes);
        }
        let next: Vec<PlannedTrial<'_>> = planned.by_ref().take(AT_ONCE).collect();
        let ran = plan::run_all(&next, plan::threads_here(), &|| progress.add(1));
        part =
            ran.map_err(|failure| Failure::new(format!("cannot simulate {}", failure.what), failure.why))?;
    }
}

/// Results of the completed trials of a case.
#[derive(Default)]
struct CompletedTrials {
    first: Option<Trial>,
    numbers: Vec<TrialNumbers>,
    wall: Duration,
}

impl CompletedTrials {
    fn take(&mut self, (trial, wall): (Trial, Duration)) {
        self.numbers.push((&trial).into());
        self.wall += wall;
        self.first.get_or_insert(trial);
    }

    /// Returns the outcome, or `None` if there were no trials.
    fn outcome(self) -> Option<Outcome> {
        let CompletedTrials { first, numbers, wall } = self;
        first.map(|first| Outcome { summary: summarise(&numbers), first, wall })
    }
}
