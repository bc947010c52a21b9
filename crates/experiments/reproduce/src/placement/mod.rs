//! The study of jobs that share disks: plans of placements, and what came of them.
//!
//! - this file: the study, and its results cell by cell
//! - `csv.rs`: a row for each trial
//! - `analysis.rs`: what is known of a cell before it runs, and what its disks have to do at least
//! - `said.rs`: what the report says in words, and what came out
//! - `page.rs`: the page, `drawings.rs`: placements drawn on it

mod analysis;
mod csv;
mod drawings;
mod page;
mod said;

use std::collections::BTreeSet;

use ::page::{NumbersPage, NumbersTable};
use plan::{CellResult, Journal, PlacedMeasurement, PlacementCase, PlacementOptions, Plan};

use crate::{StudyError, TextFile};

/// Plans of jobs that share disks, which belong together.
#[derive(Clone, Debug)]
pub struct PlacementStudy {
    /// What it is called.
    pub name: String,
    /// Its plans, by the number of their figure; those without one last.
    pub plans: Vec<Plan<PlacementCase>>,
}

/// What came of them, as far as it is there.
#[derive(Clone, Debug)]
pub struct PlacementResults<'a> {
    cells: Vec<PlacedCell<'a>>,
}

/// What came of one cell.
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

    /// The numbers of its figures.
    pub fn figures(&self) -> BTreeSet<u32> {
        self.plans.iter().filter_map(Plan::number).collect()
    }

    /// Leaves out all but these figures.
    pub fn keep(&mut self, figures: &BTreeSet<u32>) {
        self.plans.retain(|plan| plan.number().is_some_and(|figure| figures.contains(&figure)));
    }

    /// What a journal has of it.
    pub fn results<'a>(&'a self, journal: &'a Journal) -> PlacementResults<'a> {
        let cells = plan::results(&self.plans, journal).into_iter();
        PlacementResults { cells: cells.filter(|cell| !cell.trials.is_empty()).collect() }
    }
}

impl PlacementResults<'_> {
    /// A row for each trial, as the text of a CSV file.
    pub fn csv(&self) -> String {
        csv::csv(&self.cells)
    }

    /// The page of these results, which `command` makes again with this version of the program.
    pub fn page(&self, name: &str, command: &str, version: &str) -> NumbersPage {
        page::page(name, &self.cells, command, version)
    }

    /// What the report says in words, and what came out.
    pub fn statements(&self) -> NumbersTable {
        said::table(&self.cells)
    }
}

/// What is asked of a cell.
trait Placed {
    /// What was chosen for it.
    fn options(&self) -> &PlacementOptions;

    /// What its jobs did, trial by trial.
    fn placed(&self) -> impl Iterator<Item = &PlacedMeasurement>;

    /// When all jobs were done, in seconds, of each trial.
    fn seconds(&self) -> Vec<f64>;

    /// The same, on average.
    fn mean_seconds(&self) -> f64 {
        mean(self.seconds().into_iter())
    }

    /// Whether it is a part of this figure.
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

/// The mean of some values; not a number if there are none.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}
