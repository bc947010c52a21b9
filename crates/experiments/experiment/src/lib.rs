//! Experiments: jobs on files of a simulated machine, as values.
//!
//! An [`Experiment`] describes jobs, their files and nodes, and the machine. [`Experiment::trial`] runs it once, checks
//! every byte, and returns the elapsed time. All randomness is derived from the seed and the number of the trial. A
//! [`Case`] is an experiment of the reports, described by the settings that users choose: a group of compute nodes
//! accesses one file in a pattern. [`summarise`] combines several trials.
//!
//! - `experiment.rs`: the value and its check; `error.rs`: errors.
//! - `case.rs`, `options.rs`: the experiments of the reports; `access_pattern.rs`: names of their access patterns;
//!   `array_calls.rs`: the calls of an equivalent MPI program.
//! - `placement_case.rs`: jobs that share disks, placed by a policy; `placement_outcome.rs`: the outcome of a trial.
//! - `replay.rs`: the replay of a request log.
//! - `fields.rs`, `choices.rs`: user settings by name; `placement_fields.rs`: settings of jobs that share disks.
//! - `trial.rs`: one run of an experiment; `summary.rs`: statistics of several trials.

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
    FIELDS, Field, FieldOf, FieldSet, FieldValues, FieldValuesOf, Given, MachineChoice, Shown, UNLIMITED,
    field_names,
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
