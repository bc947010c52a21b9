//! Plans: their trials, running some of them, and tables of the results.
//!
//! Keys identify trials, and outcomes are the text of a journal. So any part of a plan can run on any host, and the
//! outcomes of parts are merged by reading them into one journal.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plan::{Failure as TrialFailure, Journal, Plan, PlanKind, PlanSet, PlannedTrial, ResultTable, TrialKey};

use crate::error::{Failure, Result};
use crate::interruptible_wait::Watch;

/// Text and file of each plan from Python.
pub(crate) type PlanTexts = Vec<(String, String)>;

/// Maximum number of failed trials in a message.
const FAILURES_SHOWN: usize = 5;

/// Properties of a plan.
pub(crate) struct PlanProperties {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) trials: u64,
    pub(crate) seed: u64,
    pub(crate) cells: usize,
}

/// Returns the properties of the plan in this text.
pub(crate) fn facts(text: String, file: String) -> Result<PlanProperties> {
    fn of<K>(plans: Vec<Plan<K>>) -> Vec<PlanProperties> {
        let facts = |plan: Plan<K>| {
            let Plan { name, title, trials, seed, cells, .. } = plan;
            PlanProperties { name, title, trials, seed, cells: cells.len() }
        };
        plans.into_iter().map(facts).collect()
    }
    let mut facts = match PlanSet::parse(&[(text, file)])? {
        PlanSet::Patterns(plans) => of(plans),
        PlanSet::Placements(plans) => of(plans),
    };
    Ok(facts.remove(0))
}

/// Returns the trials of `plans` that are not in the journal at `known`, long trials first.
pub(crate) fn missing<'a>(plans: &'a PlanSet, known: Option<&Path>) -> Result<Vec<PlannedTrial<'a>>> {
    let mut journal = Journal::in_memory();
    if let Some(path) = known.filter(|path| path.exists()) {
        journal.merge(path)?;
    }
    Ok(plans.trials().into_iter().filter(|one| journal.get(one.key).is_none()).collect())
}

/// Returns the trials with these keys.
pub(crate) fn chosen<'a>(plans: &'a PlanSet, keys: &[String]) -> Result<Vec<PlannedTrial<'a>>> {
    let mut wanted = BTreeSet::new();
    for key in keys {
        wanted.insert(key.parse::<TrialKey>().map_err(Failure::Invalid)?);
    }
    let planned: Vec<PlannedTrial<'a>> =
        plans.trials().into_iter().filter(|one| wanted.remove(&one.key)).collect();
    if wanted.is_empty() { Ok(planned) } else { Err(Failure::Invalid(DIFFERENT.to_owned())) }
}

const DIFFERENT: &str = "the plan differs from the one that was split: expected the same version of \
                         Starfish, and the same machine files at the same paths";

/// Outcome of trials: the text of a journal, and a report of failed trials, if any.
pub(crate) type Outcome = (String, Option<String>);

/// Runs `planned`, except trials already in the journal at `path`, and returns the outcomes of all of them.
pub(crate) fn run(
    planned: &[PlannedTrial<'_>],
    path: Option<PathBuf>,
    threads: usize,
    watch: &Watch,
) -> Result<Outcome> {
    let mut journal = path.map_or_else(|| Ok(Journal::in_memory()), |path| Journal::open(&path))?;
    let failures = plan::execute(planned, &mut journal, threads, &|| watch.is_cancelled(), &|progress| {
        watch.set(progress.trials_done as u64);
    })?;
    let keys: BTreeSet<TrialKey> = planned.iter().map(|one| one.key).collect();
    let mut outcome = Journal::in_memory();
    for (key, measurement, wall) in journal.entries().filter(|(key, ..)| keys.contains(key)) {
        outcome.record(key, measurement.clone(), wall)?;
    }
    let failed = (!failures.is_empty()).then(|| failure_text(&failures));
    Ok((outcome.to_text(), failed))
}

/// Returns a report of failed trials.
pub(crate) fn failure_text(failures: &[TrialFailure]) -> String {
    let shown =
        failures.iter().take(FAILURES_SHOWN).map(|failure| format!("{}: {}", failure.what, failure.why));
    let mut lines: Vec<String> = shown.collect();
    if failures.len() > FAILURES_SHOWN {
        lines.push(format!("and {} more trials failed", failures.len() - FAILURES_SHOWN));
    }
    lines.join("\n")
}

/// Adds the entries of `part` to the journal at `path`, except those that the journal already contains.
pub(crate) fn append(path: &Path, part: &str) -> Result<()> {
    let mut journal = Journal::open(path)?;
    let part = merge(&[part.to_owned()])?;
    for (key, measurement, wall) in part.entries() {
        if journal.get(key).is_none() {
            journal.record(key, measurement.clone(), wall)?;
        }
    }
    Ok(())
}

/// Returns the table of the results of `plans` in `parts`, which must be complete: a row for each cell, or for each
/// trial.
pub(crate) fn table(plans: &PlanSet, parts: &[String], of_trials: bool) -> Result<ResultTable> {
    let journal = merge(parts)?;
    match plans {
        PlanSet::Patterns(plans) => table_of(plans, &journal, of_trials),
        PlanSet::Placements(plans) => table_of(plans, &journal, of_trials),
    }
}

fn table_of<K: PlanKind>(plans: &[Plan<K>], journal: &Journal, of_trials: bool) -> Result<ResultTable> {
    let results = plan::results(plans, journal);
    let missing: u64 = results.iter().map(|cell| cell.plan.trials - cell.trials.len() as u64).sum();
    if missing > 0 {
        let text =
            format!("{missing} trials are missing: expected the outcome of every shard of these plans");
        return Err(Failure::Invalid(text));
    }
    Ok(if of_trials { plan::trial_table(&results) } else { plan::cell_table(&results) })
}

/// Returns a journal with the entries of all parts.
fn merge(parts: &[String]) -> Result<Journal> {
    let mut journal = Journal::in_memory();
    for part in parts {
        journal.merge_text(part, "a shard's outcome")?;
    }
    if journal.foreign() > 0 {
        let text = "outcomes of different versions of Starfish: install the same version on every computer";
        return Err(Failure::Invalid(text.to_owned()));
    }
    if journal.damaged() > 0 {
        return Err(Failure::Invalid(
            "this text is not the outcome of a shard: expected a result of Shard.run".into(),
        ));
    }
    Ok(journal)
}
