//! `starfish reproduce placement`: simulates the figures of jobs that share disks.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use command_line::TextTable;
use command_line::failure::{Failure, Result};
use plan::Journal;
use reproduce::PlacementStudy;
use transfer::local;

use super::{
    Arguments, Numbers, REPORT, TABLES, simulate, simulated_now, trials_there, with_statements, write_texts,
};
use crate::command::run;

/// Figures that the page draws without a plan, because they only show placements.
const DRAWN: [u32; 2] = [1, 5];

/// Runs `starfish reproduce` for this study.
pub(super) fn run(arguments: &Arguments, whole: &PlacementStudy) -> Result<()> {
    let mut study = whole.clone();
    choose(&mut study, arguments)?;
    for plan in &mut study.plans {
        plan.trials = arguments.trials.unwrap_or(plan.trials);
    }
    let folder = arguments.out.clone().unwrap_or_else(|| Path::new("results").join(&study.name));
    let mut journal = run::open_journal(&folder, &[TABLES, REPORT], false)?;
    let start = Instant::now();
    let new = simulate(&study.plans, &mut journal, &folder, arguments)?;
    let elapsed = start.elapsed();
    let shown = shown(whole, &study, &journal);
    write(&shown, &journal, &folder, &command(arguments, &shown))?;
    local::print(summary(&shown, &journal))?;
    local::print([String::new(), simulated_now(new, plan::trials(&study.plans).len(), elapsed)])?;
    local::print([TABLES, REPORT].map(|name| folder.join(name).display().to_string()))
}

/// Keeps only the selected figures. Fails if the study does not have all of them.
fn choose(study: &mut PlacementStudy, arguments: &Arguments) -> Result<()> {
    if let Numbers::Some(tables) = &arguments.tables
        && let Some(number) = tables.first()
    {
        let failure = Failure::usage("--tables", format!("{} has no table {number}", study.name));
        return Err(failure.remedy("It has figures only: give --figures."));
    }
    let Some(Numbers::Some(figures)) = &arguments.figures else { return Ok(()) };
    let known: BTreeSet<u32> = study.figures().into_iter().chain(DRAWN).collect();
    if let Some(missing) = figures.difference(&known).next() {
        let failure = Failure::usage("--figures", format!("{} has no figure {missing}", study.name));
        let known: Vec<String> = known.iter().map(u32::to_string).collect();
        return Err(failure.remedy(format!("It has {}.", known.join(","))));
    }
    study.keep(figures);
    Ok(())
}

/// Returns the part of the study to show: the selected part, and all other plans whose cells are all in the journal.
fn shown(whole: &PlacementStudy, asked: &PlacementStudy, journal: &Journal) -> PlacementStudy {
    let mut shown = whole.clone();
    for plan in &mut shown.plans {
        let asked = asked.plans.iter().find(|asked| asked.name == plan.name);
        plan.trials = asked.map_or_else(|| trials_there(plan, journal), |asked| asked.trials);
    }
    shown.plans.retain(|plan| plan.trials > 0);
    shown
}

/// Returns a command that reproduces these results. It does not include the output directory.
fn command(arguments: &Arguments, shown: &PlacementStudy) -> String {
    let figures: Vec<String> = shown.figures().iter().map(u32::to_string).collect();
    let is_whole = shown.plans.iter().any(|plan| plan.number().is_none());
    let figures = if is_whole { String::new() } else { format!(" --figures {}", figures.join(",")) };
    let trials = arguments.trials.map_or(String::new(), |trials| format!(" --trials {trials}"));
    format!("starfish reproduce {}{figures}{trials}", shown.name)
}

/// Writes the two files.
fn write(study: &PlacementStudy, journal: &Journal, folder: &Path, command: &str) -> Result<()> {
    let results = study.results(journal);
    let page = results.page(&study.name, command, env!("CARGO_PKG_VERSION")).html();
    write_texts(folder, &[(TABLES, results.csv()), (REPORT, page)])
}

/// Returns a line for each plan, and a line for each statement of the report.
fn summary(study: &PlacementStudy, journal: &Journal) -> Vec<String> {
    let mut plans = TextTable::new(2);
    plans.row(["figure", "what", "cells", "trials"]);
    for plan in &study.plans {
        let number = plan.number().map_or(String::new(), |number| number.to_string());
        plans.row([number, plan.title.clone(), plan.cells.len().to_string(), plan.trials.to_string()]);
    }
    with_statements(&plans, &study.results(journal).statements())
}
