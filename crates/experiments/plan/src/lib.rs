//! Experiments as data: plans, their runs, and their results.
//!
//! ```text
//!   plan.toml --.
//!   plan.toml --+-> Plan: cells -> the trials, each once -> run -> Journal -> results -> Table: CSV, Parquet
//!               |                                                ^        |
//!               '------ a rerun runs only missing trials --------'--------'
//! ```
//!
//! A [`Plan`] is a TOML file that describes simulations. Each combination of its variants, varied values, patterns and
//! record sizes is a [`PlannedCell`]. A plan has one [`PlanKind`]: access methods, or jobs that share disks. The kind
//! is a parameter of all types that have cells. The whole plan is checked before any simulation runs. The trials of all
//! cells are [`PlannedTrial`]s; equal trials occur once, even across plans. [`execute`] runs the trials that a
//! [`Journal`] lacks. [`results()`] combines plans and journal, and [`cell_table`] and [`trial_table`] convert the
//! results to tidy tables.
//!
//! - `value.rs`: TOML values with their places in the file.
//! - `reference.rs`: the keys of a plan that are not fields of its cases.
//! - `plan.rs`: the file, its check and its cells; `settings.rs`: settings of cells; `plan_errors.rs`,
//!   `ignored_settings.rs`: all mistakes of a plan, and settings without effect.
//! - `kind.rs`: differences between the kinds of plans; `pattern_plan.rs`, `placement_plan.rs`: the two kinds;
//!   `plan_set.rs`: plans of one kind that run together.
//! - `planned_trial.rs`, `run.rs`: trials, and the threads that run them; `selection.rs`: selection of trials by name.
//! - `measurement.rs`, `journal.rs`: the stored data of a trial, and their file; `measure.rs`: the reported quantities.
//! - `simulator_sources.rs`: the source lines that determine the simulator's hash.
//! - `results.rs`, `table.rs`: results, and the files they are written to.

mod ignored_settings;
mod journal;
mod kind;
mod measure;
mod measurement;
mod pattern_plan;
mod placement_plan;
mod plan;
mod plan_errors;
mod plan_set;
mod planned_trial;
pub mod reference;
mod results;
mod run;
mod selection;
mod settings;
#[cfg(test)]
mod simulator_sources;
mod table;
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
