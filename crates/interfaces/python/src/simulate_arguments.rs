//! Converts requests from Python to cases, and simulates the cases.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use description::{Description, MachineDescription};
use experiment::AccessPattern;
use experiment::{
    Case, Choices, Comparison, ComparisonError, DiskLayout, Field, Given, Method, Summary, TrialNumbers,
    summarise,
};
use plan::PlannedTrial;
use pyo3::prelude::*;

use crate::error::{Failure, Result};
use crate::interruptible_wait::Watch;

/// The arguments of `starfish.simulate`, with the same names.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SimulateArguments {
    machine_name: String,
    machine_text: String,
    method: Vec<String>,
    pattern: Vec<String>,
    record_bytes: Vec<u64>,
    layout: Vec<String>,
    trials: usize,
    seed: u64,
    /// Fields of the cases, by name.
    options: Vec<(String, OptionValue)>,
}

/// The value of an option in Python.
pub(crate) enum OptionValue {
    Flag(bool),
    Whole(u64),
    Text(String),
    /// Any other value, as text.
    Other(String),
}

impl<'py> FromPyObject<'_, 'py> for OptionValue {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // Check for a flag first: Python's `bool` is also an `int`.
        if let Ok(flag) = value.extract::<bool>() {
            return Ok(OptionValue::Flag(flag));
        }
        if let Ok(number) = value.extract::<u64>() {
            return Ok(OptionValue::Whole(number));
        }
        match value.extract::<String>() {
            Ok(text) => Ok(OptionValue::Text(text)),
            Err(_) => Ok(OptionValue::Other(value.repr()?.to_string())),
        }
    }
}

impl OptionValue {
    /// Returns the value in the form that fields accept.
    pub(crate) fn given(&self) -> Given<'_> {
        match self {
            OptionValue::Flag(flag) => Given::Flag(*flag),
            OptionValue::Whole(number) => Given::Whole(*number),
            OptionValue::Text(text) => Given::Text(text),
            OptionValue::Other(shown) => Given::Other(shown.clone()),
        }
    }
}

/// Outcome of the trials of one case.
pub(crate) struct Outcome {
    /// Summary of all trials.
    pub(crate) summary: Summary,
    /// Total run time of the trials on this host, in seconds.
    pub(crate) wall_s: f64,
}

/// A trial and its run time on this host, in seconds.
type Timed = (TrialNumbers, f64);

impl SimulateArguments {
    /// Returns the machine name as given by the user.
    pub(crate) fn machine_name(&self) -> &str {
        &self.machine_name
    }

    /// Returns the number of trials per case. Fails if it is 0.
    pub(crate) fn trials(&self) -> Result<usize> {
        if self.trials > 0 {
            Ok(self.trials)
        } else {
            Err(Failure::Invalid("trials: expected at least 1".into()))
        }
    }

    /// Returns all combinations in the order of result rows. Fails if any is invalid.
    pub(crate) fn cases(&self) -> Result<Vec<Case>> {
        let mut choices = Choices::default();
        for (name, value) in &self.options {
            let field = Field::expect(name).map_err(Failure::Invalid)?;
            let chosen = field.choose(&mut choices, value.given());
            chosen.map_err(|why| Failure::Invalid(format!("{name}: {why}")))?;
        }
        let compared = Comparison {
            machine: MachineDescription::parse(&self.machine_text, &self.machine_name)?,
            methods: chosen("method", &self.method, &Method::ALL)?,
            layouts: chosen("layout", &self.layout, &[DiskLayout::Contiguous, DiskLayout::Random])?,
            patterns: chosen("pattern", &self.pattern, &AccessPattern::all().collect::<Vec<_>>())?,
            records: self.record_bytes.clone(),
            seed: self.seed,
        };
        choices.cases(&compared).map_err(|error| match error {
            ComparisonError::Case { what, error } => prefixed(&what, error.into()),
            refused => Failure::Invalid(refused.to_string()),
        })
    }
}

/// Runs `trials` trials of each case on `threads` threads. The outcomes do not depend on the number of threads.
pub(crate) fn simulate(cases: &[Case], trials: usize, threads: usize, watch: &Watch) -> Result<Vec<Outcome>> {
    let planned: Vec<PlannedTrial<'_>> =
        cases.iter().flat_map(|case| PlannedTrial::of(case, trials as u64)).collect();
    let results: Vec<Mutex<Option<Result<Timed>>>> = planned.iter().map(|_| Mutex::default()).collect();
    let failed = AtomicBool::new(false);
    watch.set(0);
    let stop = || failed.load(Ordering::Relaxed) || watch.is_cancelled();
    plan::run(&planned, threads, &stop, &|index, outcome, wall| {
        let outcome = outcome.map_err(|error| about(&cases[index / trials], error.into()));
        failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
        let timed = outcome.map(|trial| (TrialNumbers::from(&trial), wall.as_secs_f64()));
        *results[index].lock().expect("no thread panicked with the lock") = Some(timed);
        watch.add(1);
    });
    let done =
        results.into_iter().filter_map(|slot| slot.into_inner().expect("no thread panicked with the lock"));
    let done = done.collect::<Result<Vec<_>>>()?;
    Ok(done.chunks(trials).map(outcome).collect())
}

fn outcome(trials: &[Timed]) -> Outcome {
    let wall_s = trials.iter().map(|(_, wall_s)| wall_s).sum();
    let trials: Vec<TrialNumbers> = trials.iter().map(|(numbers, _)| *numbers).collect();
    Outcome { summary: summarise(&trials), wall_s }
}

/// Returns the failure with the simulated case in its message.
fn about(case: &Case, failure: Failure) -> Failure {
    let Case { method, pattern, problem, .. } = case;
    prefixed(&format!("{method} {pattern} with records of {} bytes", problem.record_bytes), failure)
}

fn prefixed(what: &str, failure: Failure) -> Failure {
    match failure {
        Failure::Invalid(text) => Failure::Invalid(format!("{what}: {text}")),
        Failure::Simulation(text) => Failure::Simulation(format!("{what}: {text}")),
        other => other,
    }
}

/// Returns the values with these names, without duplicates. The name `all` stands for all values in `all`.
fn chosen<T: FromStr<Err: Display> + Copy>(what: &str, names: &[String], all: &[T]) -> Result<Vec<T>> {
    if names.iter().any(|name| name == "all") {
        return Ok(all.to_vec());
    }
    let mut seen: Vec<&String> = Vec::new();
    let mut values = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
            values.push(parse(what, name)?);
        }
    }
    Ok(values)
}

fn parse<T: FromStr<Err: Display>>(what: &str, text: &str) -> Result<T> {
    text.parse().map_err(|error| Failure::Invalid(format!("{what}: {error}")))
}
