//! Experiments as data: plans, their runs, their results.
//!
//! ```text
//!   plan.toml --.
//!   plan.toml --+-> Plan: cells -> the trials, each once -> run -> Journal -> results -> Table: CSV, Parquet
//!               |                                                ^        |
//!               '------- a rerun does only what is missing ------'--------'
//! ```
//!
//! A [`Plan`] is a TOML file that says what is to be simulated: every combination of its variants, of what is to
//! vary, of patterns and of record sizes is a [`PlannedCell`]. It is of one [`PlanKind`], which is a parameter of all
//! types that have cells: of access methods, or of jobs that share disks. It is checked as a whole before anything
//! runs. The trials of all cells are [`PlannedTrial`]s, in which equal ones occur once, also across plans.
//! [`execute`] runs those that a [`Journal`] does not have yet. [`results()`] brings plans and journal together, and
//! [`cell_table`] and [`trial_table`] make tidy tables of them.
//!
//! - `value.rs`: TOML values that know where they stand
//! - `reference.rs`: the keys of a plan beside the fields of its cases
//! - `plan.rs`: the file, its check, its cells; `settings.rs`: what is chosen for cells; `misfits.rs`, `unheeded.rs`:
//!   all that is wrong with it, and settings that would do nothing
//! - `kind.rs`: what plans of one kind have and others have not; `pattern_plan.rs`, `placement_plan.rs`: the two kinds;
//!   `plan_set.rs`: plans that are run together, of whichever kind
//! - `planned_trial.rs`, `run.rs`: trials, and the threads that run them; `selection.rs`: some of them by name
//! - `measurement.rs`, `journal.rs`: what is kept of a trial, and where; `measure.rs`: what is told of it
//! - `decisive.rs`: which lines of the simulator's sources its identity is made of
//! - `results.rs`, `table.rs`: results, and the files they are written to

#[cfg(test)]
mod decisive;
mod journal;
mod kind;
mod measure;
mod measurement;
mod misfits;
mod pattern_plan;
mod placement_plan;
mod plan;
mod plan_set;
mod planned_trial;
pub mod reference;
mod results;
mod run;
mod selection;
mod settings;
mod table;
mod unheeded;
mod value;

pub use experiment::{
    AccessPattern, ArrayPattern, Case, DrawnLog, Method, PlacedJob, PlacementCase, PlacementOptions,
};
pub use journal::{Journal, JournalError, PROGRAM};
pub use kind::{PlaceKey, PlanKind};
pub use measure::{Measure, MeasureOf, Quantity};
pub use measurement::{BACKLOG_STEPS, Busy, FlushCount, Measurement, PlacedMeasurement};
pub use plan::{CELLS_MAX, Kind, Plan, PlannedCell, Publication, TRIALS_MAX};
pub use plan_set::{PlanSet, PlanSetError, is_of_placements, trials};
pub use planned_trial::{PlannedCase, PlannedTrial, TrialKey, shard, stored_bytes};
pub use results::{CellResult, cell_table, results, trial_table};
pub use run::{Failure, Progress, TrialError, execute, on_all_threads, run, run_all, threads_here};
pub use selection::TrialSelection;
pub use table::{Column, ResultTable, Type, Value};
