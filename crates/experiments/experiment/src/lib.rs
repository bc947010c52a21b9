//! Experiments: jobs on files of a simulated machine, as values.
//!
//! An [`Experiment`] says what is done, with which files, by which nodes, on which machine; [`Experiment::trial`] does
//! it once, with all that is random drawn from the seed and the trial's number, checks every byte, and tells how long
//! it took. A [`Case`] is the experiment of the reports, by the names that users have for its parts: a group of compute
//! nodes accesses one file in a pattern. [`summarise`] makes one line of several trials.
//!
//! - `experiment.rs`: the value, and what makes no sense of it; `error.rs`: what can go wrong
//! - `trial.rs`: one trial, step by step
//! - `case.rs`, `options.rs`: the experiments of the reports; `access_pattern.rs`: what nodes do in them, by its name;
//!   `array_calls.rs`: the calls that MPI programs make of one
//! - `placement_case.rs`: jobs that share disks, placed by a policy; `placement_outcome.rs`: what a trial of it tells
//! - `replay.rs`: the replay of a request log
//! - `fields.rs`, `choices.rs`: what users can choose of them, by name; `placement_fields.rs`: of jobs that share disks
//! - `summary.rs`: several trials

mod access_pattern;
mod array_calls;
mod case;
mod choices;
mod error;
mod experiment;
mod fields;
mod options;
mod placement_case;
mod placement_fields;
mod placement_outcome;
mod replay;
mod summary;
mod trial;

pub use access_pattern::{AccessPattern, DrawnLog};
pub use case::Case;
pub use choices::{Choices, Comparison, ComparisonError, OF_NO_MATRIX, unheeded_by};
pub use error::Error;
pub use experiment::{Beginning, DiskLayout, Experiment, FilePlace, Launch, StoredFile};
pub use fields::{
    FIELDS, Field, FieldOf, FieldSet, Given, MachineChoice, Shown, Takes, TakesOf, UNLIMITED, field_names,
};
pub use jobs::{
    ArrayPattern, ArraysJob, BatchReading, Contents, Error as JobError, FlushTally, InterleaveJob, Job,
    JobTimeline, JobWait, LocalProgram, MergeJob, NamesJob, NamesWork, Order, Outcome, PatternAccess,
    PatternJob, PendingWrites, ReplayAccess, ReplayJob, RoundTripsJob, Run, RunSet, Sequential, Think,
    WaitCause, Workload, WriteStep,
};
pub use options::{Method, Options, Queued};
pub use placement_case::{PlacedJob, PlacementCase, PlacementOptions};
pub use placement_fields::{PLACEMENT_FIELDS, PlacementChoices, PlacementField, unheeded_by_kind};
pub use placement_outcome::{DiskBacklog, PlacementOutcome};
pub use replay::Replay;
pub use summary::{Summary, TrialNumbers, summarise};
pub use trial::Trial;
