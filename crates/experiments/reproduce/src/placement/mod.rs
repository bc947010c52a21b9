//! The study of jobs that share disks: its plans, and their results.
//!
//! - This file: the study, and its results cell by cell.
//! - `csv.rs`: a row for each trial.
//! - `analysis.rs`: predictions of the analysis for a cell.
//! - `findings.rs`: the report's statements in words, compared with the results.
//! - `page.rs`: the page; `drawings.rs`: its drawings of placements.

mod analysis;
mod csv;
mod drawings;
mod findings;
mod page;

use std::collections::BTreeSet;

use ::page::{NumbersPage, NumbersTable};
use plan::{CellResult, Journal, PlacedMeasurement, PlacementCase, PlacementOptions, Plan};

use crate::{StudyError, TextFile};

/// Plans of jobs that share disks and form a study.
#[derive(Clone, Debug)]
pub struct PlacementStudy {
    /// Name of the study.
    pub name: String,
    /// Plans of the study, by the number of their figure. Plans without a figure are last.
    pub plans: Vec<Plan<PlacementCase>>,
}

/// Results of the study, as far as available.
#[derive(Clone, Debug)]
pub struct PlacementResults<'a> {
    cells: Vec<PlacedCell<'a>>,
}

/// Result of one cell.
type PlacedCell<'a> = CellResult<'a, PlacementCase>;

impl PlacementStudy {
    /// Reads and checks the study of these plans.
    pub fn parse(name: &str, plans: &[TextFile<'_>]) -> Result<PlacementStudy, StudyError> {
        let plans = plans.iter().map(|file| Plan::parse(file.text, file.name));
        let mut plans = plans.collect::<Result<Vec<Plan<PlacementCase>>, _>>()?;
        plans.sort_by_key(|plan| plan.number().unwrap_or(u32::MAX));
        if plans.is_empty() {
            Err(StudyError::Empty)
        } else {
            Ok(PlacementStudy { name: name.to_owned(), plans })
        }
    }

    /// Returns the numbers of the figures.
    pub fn figures(&self) -> BTreeSet<u32> {
        self.plans.iter().filter_map(Plan::number).collect()
    }

    /// Removes all plans except those of these figures.
    pub fn keep(&mut self, figures: &BTreeSet<u32>) {
        self.plans.retain(|plan| plan.number().is_some_and(|figure| figures.contains(&figure)));
    }

    /// Returns the results of the study from a journal.
    pub fn results<'a>(&'a self, journal: &'a Journal) -> PlacementResults<'a> {
        let cells = plan::results(&self.plans, journal).into_iter();
        PlacementResults { cells: cells.filter(|cell| !cell.trials.is_empty()).collect() }
    }
}

impl PlacementResults<'_> {
    /// Returns a row for each trial, as the text of a CSV file.
    pub fn csv(&self) -> String {
        csv::csv(&self.cells)
    }

    /// Returns the page of these results. `command` is the command that reproduces it with this version of the program.
    pub fn page(&self, name: &str, command: &str, version: &str) -> NumbersPage {
        page::page(name, &self.cells, command, version)
    }

    /// Returns the report's statements in words, compared with the results.
    pub fn statements(&self) -> NumbersTable {
        findings::table(&self.cells)
    }
}

/// Accessors of a cell's result.
trait Placed {
    /// Returns the options of the cell.
    fn options(&self) -> &PlacementOptions;

    /// Iterates over the measurements of the cell's jobs, trial by trial.
    fn placed(&self) -> impl Iterator<Item = &PlacedMeasurement>;

    /// Returns the time until all jobs were done in seconds, for each trial.
    fn seconds(&self) -> Vec<f64>;

    /// Returns the mean time until all jobs were done over the trials, in seconds.
    fn mean_seconds(&self) -> f64 {
        mean(self.seconds().into_iter())
    }

    /// True if the cell belongs to this figure.
    fn is_of(&self, figure: u32) -> bool;
}

impl Placed for PlacedCell<'_> {
    fn options(&self) -> &PlacementOptions {
        &self.cell.case.options
    }

    fn placed(&self) -> impl Iterator<Item = &PlacedMeasurement> {
        self.trials.iter().filter_map(|(_, measurement)| measurement.placed.as_ref())
    }

    fn seconds(&self) -> Vec<f64> {
        self.trials.iter().map(|(_, measurement)| measurement.elapsed_s()).collect()
    }

    fn is_of(&self, figure: u32) -> bool {
        self.plan.number() == Some(figure)
    }
}

/// Returns the mean of the values; NaN without values.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}
