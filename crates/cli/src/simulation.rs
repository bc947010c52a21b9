//! Running experiments on simulated machines, all trials in parallel.
//!
//! A trial depends on its experiment and its number alone, so the results do not depend on how many threads
//! there are or which trial ends first.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use experiment::{Experiment, Summary, Trial, summarise};

use crate::failure::{Failure, Result};
use crate::progress::Progress;

/// What came of an experiment.
pub(crate) struct Outcome {
    /// Of all its trials.
    pub(crate) summary: Summary,
    /// The first of its trials.
    pub(crate) first: Trial,
    /// Time its trials took on this computer, one after the other.
    pub(crate) wall: Duration,
}

/// A trial, and the time it took on this computer.
type Timed = (Trial, Duration);

/// Runs `trials` trials of each experiment on as many threads as there are processors.
pub(crate) fn run(experiments: &[Experiment], trials: usize, progress: &Progress) -> Result<Vec<Outcome>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    run_on(threads, experiments, trials, progress)
}

fn run_on(
    threads: usize,
    experiments: &[Experiment],
    trials: usize,
    progress: &Progress,
) -> Result<Vec<Outcome>> {
    let jobs = experiments.len() * trials;
    let results: Vec<Mutex<Option<Result<Timed>>>> = (0..jobs).map(|_| Mutex::default()).collect();
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(jobs) {
            scope.spawn(|| {
                while !failed.load(Ordering::Relaxed) {
                    let job = next.fetch_add(1, Ordering::Relaxed);
                    let Some(slot) = results.get(job) else { break };
                    let result = trial(&experiments[job / trials], job % trials);
                    failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    *slot.lock().expect("a slot is used once") = Some(result);
                    progress.add(1);
                }
            });
        }
    });
    let done = results.into_iter().filter_map(|slot| slot.into_inner().expect("a slot is used once"));
    let done = done.collect::<Result<Vec<Timed>>>()?;
    Ok(done.chunks(trials).map(outcome).collect())
}

fn trial(experiment: &Experiment, number: usize) -> Result<Timed> {
    let start = Instant::now();
    let trial = experiment.trial(number as u64).map_err(|error| {
        let Experiment { method, pattern, problem, .. } = experiment;
        let what = format!(
            "simulating {method} {pattern} with records of {} bytes, trial {number}",
            problem.record_bytes
        );
        Failure::new(what, error)
    })?;
    Ok((trial, start.elapsed()))
}

fn outcome(trials: &[Timed]) -> Outcome {
    let wall = trials.iter().map(|(_, wall)| *wall).sum();
    let trials: Vec<Trial> = trials.iter().map(|(trial, _)| trial.clone()).collect();
    Outcome { summary: summarise(&trials), first: trials[0].clone(), wall }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Show;
    use description::{Description, MachineDescription};
    use experiment::{Contents, DiskLayout, Method, Options};
    use layout::Problem;

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let machine = MachineDescription::load("starfish-1996").expect("built in");
        let experiment = Experiment {
            machine,
            method: Method::DiskDirected,
            pattern: "rc".parse().expect("a pattern"),
            problem: Problem::new(1 << 20, 8192, 16),
            layout: DiskLayout::Random,
            options: Options::default(),
            contents: Contents::Phantom,
            seed: 3,
        };
        let progress = Progress::count(Show::Never, "", 0);
        let summary = |threads| {
            let outcomes = run_on(threads, std::slice::from_ref(&experiment), 3, &progress).expect("it runs");
            outcomes.into_iter().map(|outcome| outcome.summary).collect::<Vec<_>>()
        };
        assert_eq!(summary(1), summary(3));
    }
}
