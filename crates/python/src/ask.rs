//! What Python asks for, as experiments, and the running of them.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use description::{Description, MachineDescription};
use experiment::{Case, Contents, DiskLayout, Method, Options, Summary, Trial, summarise};
use layout::{Pattern, Problem};
use plan::PlannedTrial;
use pyo3::prelude::*;

use crate::attend::Watch;
use crate::error::{Failure, Result};

/// The arguments of `starfish.simulate`, by their names there.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Ask {
    machine_name: String,
    machine_text: String,
    method: Vec<String>,
    pattern: Vec<String>,
    record_bytes: Vec<u64>,
    layout: Vec<String>,
    trials: usize,
    seed: u64,
    file_bytes: u64,
    block_bytes: u64,
    outstanding: usize,
    scheduling: String,
    thread_per_request: bool,
    prefetch_blocks: u64,
    memget_writes: bool,
    queued: String,
    presort: bool,
    shape: Option<String>,
    grid: Option<String>,
    phantom: bool,
}

/// What came of the trials of one experiment.
pub(crate) struct Outcome {
    /// Of all of them.
    pub(crate) summary: Summary,
    /// Seconds they took on this computer, one after the other.
    pub(crate) wall_s: f64,
}

/// A trial, and the seconds it took on this computer.
type Timed = (Trial, f64);

impl Ask {
    /// The machine as the user named it.
    pub(crate) fn machine_name(&self) -> &str {
        &self.machine_name
    }

    /// How many trials of each experiment.
    pub(crate) fn trials(&self) -> Result<usize> {
        if self.trials > 0 {
            Ok(self.trials)
        } else {
            Err(Failure::Invalid("trials: expected at least 1".into()))
        }
    }

    /// All combinations, each checked, in the order of the rows of the result.
    pub(crate) fn experiments(&self) -> Result<Vec<Case>> {
        let machine = MachineDescription::parse(&self.machine_text, &self.machine_name)?;
        let methods = chosen("method", &self.method, &Method::ALL)?;
        let layouts = chosen("layout", &self.layout, &[DiskLayout::Contiguous, DiskLayout::Random])?;
        let patterns = chosen("pattern", &self.pattern, &Pattern::all().collect::<Vec<_>>())?;
        let options = self.options()?;
        if options.presort && !methods.contains(&Method::DiskDirected) {
            return Err(Failure::Invalid("presort: only the disk-directed method can presort".into()));
        }
        if options.memget_writes && methods == [Method::DiskDirected] {
            let text = "memget_writes: the disk-directed method makes no write requests to fetch data for";
            return Err(Failure::Invalid(text.into()));
        }
        let mut experiments = Vec::new();
        for &layout in &layouts {
            for &record_bytes in &self.record_bytes {
                for &pattern in &patterns {
                    for &method in &methods {
                        let is_directed = method == Method::DiskDirected;
                        let presort = options.presort && is_directed;
                        let memget_writes = options.memget_writes && !is_directed;
                        let experiment = Case {
                            machine: machine.clone(),
                            method,
                            pattern,
                            problem: self.problem(record_bytes, machine.nodes.compute.value)?,
                            layout,
                            options: Options { presort, memget_writes, ..options },
                            contents: if self.phantom { Contents::Phantom } else { Contents::Real },
                            seed: self.seed,
                        };
                        experiment.check().map_err(|error| about(&experiment, error.into()))?;
                        experiments.push(experiment);
                    }
                }
            }
        }
        Ok(experiments)
    }

    fn problem(&self, record_bytes: u64, nodes: u32) -> Result<Problem> {
        let shape = self.shape.as_deref().map(|text| parse("shape", text)).transpose()?;
        let grid = self.grid.as_deref().map(|text| parse("grid", text)).transpose()?;
        Ok(Problem { shape, grid, ..Problem::new(self.file_bytes, record_bytes, nodes) })
    }

    fn options(&self) -> Result<Options> {
        Ok(Options {
            block_bytes: self.block_bytes,
            outstanding: self.outstanding,
            scheduling: parse("scheduling", &self.scheduling)?,
            thread_per_request: self.thread_per_request,
            prefetch_blocks: self.prefetch_blocks,
            memget_writes: self.memget_writes,
            queued: parse("queued", &self.queued)?,
            presort: self.presort,
            ..Options::default()
        })
    }
}

/// Runs `trials` trials of each experiment on so many threads. The outcomes do not depend on how many.
pub(crate) fn simulate(
    experiments: &[Case],
    trials: usize,
    threads: usize,
    watch: &Watch,
) -> Result<Vec<Outcome>> {
    let planned: Vec<PlannedTrial<'_>> =
        experiments.iter().flat_map(|experiment| PlannedTrial::of(experiment, trials as u64)).collect();
    let results: Vec<Mutex<Option<Result<Timed>>>> = planned.iter().map(|_| Mutex::default()).collect();
    let failed = AtomicBool::new(false);
    let stop = || failed.load(Ordering::Relaxed) || watch.is_cancelled();
    plan::run(&planned, threads, &stop, &|index, outcome, wall| {
        let outcome = outcome.map_err(|error| about(planned[index].case, error.into()));
        failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
        let timed = outcome.map(|trial| (trial, wall.as_secs_f64()));
        *results[index].lock().expect("a slot is used once") = Some(timed);
        watch.add(1);
    });
    let done = results.into_iter().filter_map(|slot| slot.into_inner().expect("a slot is used once"));
    let done = done.collect::<Result<Vec<_>>>()?;
    Ok(done.chunks(trials).map(outcome).collect())
}

fn outcome(trials: &[Timed]) -> Outcome {
    let wall_s = trials.iter().map(|(_, wall_s)| wall_s).sum();
    let trials: Vec<Trial> = trials.iter().map(|(trial, _)| trial.clone()).collect();
    Outcome { summary: summarise(&trials), wall_s }
}

/// The failure with what was to be simulated.
fn about(experiment: &Case, failure: Failure) -> Failure {
    let Case { method, pattern, problem, .. } = experiment;
    let what = format!("{method} {pattern} with records of {} bytes", problem.record_bytes);
    match failure {
        Failure::Invalid(text) => Failure::Invalid(format!("{what}: {text}")),
        Failure::Simulation(text) => Failure::Simulation(format!("{what}: {text}")),
        other => other,
    }
}

/// The values named, without repetition; `all` stands for `all`.
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
