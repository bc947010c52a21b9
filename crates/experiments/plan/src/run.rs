//! Runs trials on all processors.
//!
//! A trial depends only on its experiment and its number. So the results do not depend on the number of threads or on
//! the order in which trials end. If a trial fails, the others continue.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use experiment::Trial;

use crate::journal::{Journal, JournalError};
use crate::measurement::Measurement;
use crate::planned_trial::{PlannedTrial, TrialKey};

/// Reason why a trial failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrialError {
    /// The experiment failed.
    #[error(transparent)]
    Experiment(#[from] experiment::Error),
    /// The simulator panicked. This is a defect of the simulator.
    #[error("the simulator panicked, which is a defect: {0}")]
    Panicked(String),
}

/// A failed trial.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Key of the trial.
    pub key: TrialKey,
    /// Description of the trial for people.
    pub what: String,
    /// Reason of the failure.
    pub why: String,
}

/// Progress of [`execute`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of completed trials, including those already in the journal.
    pub trials_done: usize,
    /// Number of all trials.
    pub trials: usize,
    /// Sum of [`PlannedTrial::cost`] over the trials that were run in this call.
    pub cost_done: u64,
    /// Sum of [`PlannedTrial::cost`] over all trials that this call has to run.
    pub cost: u64,
}

/// Returns the number of threads that this computer can run at the same time.
pub fn threads_here() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the results of `work` for each number below `count`, in order. Uses all processors.
///
/// # Panics
/// If `work` panics.
pub fn on_all_threads<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let some = || {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        numbers.take_while(|&number| number < count).map(|number| (number, work(number))).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads_here()).map(|_| scope.spawn(some)).collect();
        let done =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        done.flatten().collect()
    });
    all.sort_by_key(|&(number, _)| number);
    all.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Runs `planned` in order on `threads` threads. For each trial, calls `done` with its index, its outcome and its run
/// time on this computer.
///
/// The thread that ran a trial calls `done`. Each thread calls `stop` before a trial, and starts no more trials if
/// `stop` returns true. Running trials are finished.
pub fn run(
    planned: &[PlannedTrial<'_>],
    threads: usize,
    stop: &(dyn Fn() -> bool + Sync),
    done: &(dyn Fn(usize, Result<Trial, TrialError>, Duration) + Sync),
) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, planned.len().max(1)) {
            scope.spawn(|| {
                while !stop() {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = planned.get(index) else { break };
                    let start = Instant::now();
                    let outcome = trial(one);
                    done(index, outcome, start.elapsed());
                }
            });
        }
    });
}

/// Runs `planned` until a trial fails, and calls `done` after each trial. Returns the trials in order, each with its
/// run time on this computer.
///
/// # Errors
/// The first failure in the order of the trials.
pub fn run_all(
    planned: &[PlannedTrial<'_>],
    threads: usize,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<(Trial, Duration)>, Failure> {
    let failed = AtomicBool::new(false);
    let slots: Vec<Mutex<Option<_>>> = planned.iter().map(|_| Mutex::default()).collect();
    run(planned, threads, &|| failed.load(Ordering::Relaxed), &|index, outcome, wall| {
        failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
        let outcome = outcome.map(|trial| (trial, wall));
        *slots[index].lock().unwrap_or_else(PoisonError::into_inner) =
            Some(outcome.map_err(|error| Failure::new(&planned[index], &error)));
        done();
    });
    slots.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

impl Failure {
    fn new(one: &PlannedTrial<'_>, error: &TrialError) -> Failure {
        Failure { key: one.key, what: one.describe(), why: error.to_string() }
    }
}

fn trial(one: &PlannedTrial<'_>) -> Result<Trial, TrialError> {
    // Unwind safety: the trial owns all its state, which is dropped after a panic.
    let outcome = catch_unwind(AssertUnwindSafe(|| one.case.trial(one.number)));
    match outcome {
        Ok(outcome) => Ok(outcome?),
        Err(panic) => Err(TrialError::Panicked(panic_text(&*panic))),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Runs the trials of `planned` that `journal` lacks, and writes each to the journal when it completes.
///
/// Calls `progress` at the start and after each trial. A trial that `stop` interrupts is neither in the journal nor
/// among the returned failures. The failures are in the order of the trials.
///
/// # Errors
/// If writing the journal fails. Then no more trials are started.
pub fn execute(
    planned: &[PlannedTrial<'_>],
    journal: &mut Journal,
    threads: usize,
    stop: &(dyn Fn() -> bool + Sync),
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Vec<Failure>, JournalError> {
    let missing: Vec<PlannedTrial<'_>> =
        planned.iter().filter(|one| journal.get(one.key).is_none()).cloned().collect();
    let so_far = Progress {
        trials_done: planned.len() - missing.len(),
        trials: planned.len(),
        cost_done: 0,
        cost: missing.iter().map(|one| one.cost).sum(),
    };
    progress(so_far);
    let broken = AtomicBool::new(false);
    let state = Mutex::new(State { journal, so_far, failures: Vec::new(), error: None });
    run(&missing, threads, &|| stop() || broken.load(Ordering::Relaxed), &|index, outcome, wall| {
        let one = &missing[index];
        let outcome = outcome.map(|trial| one.case.measurement(&trial));
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.take(index, one, outcome, wall);
        broken.fetch_or(state.error.is_some(), Ordering::Relaxed);
        progress(state.so_far);
    });
    let State { mut failures, error, .. } = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    failures.sort_by_key(|(index, _)| *index);
    error.map_or_else(|| Ok(failures.into_iter().map(|(_, failure)| failure).collect()), Err)
}

/// State that the threads share.
struct State<'a> {
    journal: &'a mut Journal,
    so_far: Progress,
    failures: Vec<(usize, Failure)>,
    error: Option<JournalError>,
}

impl State<'_> {
    fn take(
        &mut self,
        index: usize,
        one: &PlannedTrial<'_>,
        outcome: Result<Measurement, TrialError>,
        wall: Duration,
    ) {
        match outcome {
            Ok(measurement) => {
                let written = self.journal.record(one.key, measurement, wall);
                self.error = self.error.take().or(written.err());
            }
            Err(error) => self.failures.push((index, Failure::new(one, &error))),
        }
        self.so_far.trials_done += 1;
        self.so_far.cost_done += one.cost;
    }
}
