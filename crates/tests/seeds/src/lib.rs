//! Runs of the file system on simulated machines, each drawn from a seed, to find situations that no test shows.
//!
//! ```text
//!   seed --> machine, settings, programs of clients, faults --> run --> histories --> laws kept, or a broken law
//! ```
//!
//! A run depends only on its [`Kind`] and its seed, so that two words repeat a failure. Some
//! thousand runs are part of all tests (`tests/seeds.rs`); the program `seeds` continues until it is stopped.
//!
//! - `kind.rs`: kinds of runs; `draw.rs`: pseudorandom numbers from a seed
//! - `testbed.rs`: simulated machines of the runs; `crashing_nodes.rs`: I/O nodes that crash and restart;
//!   `formatted.rs`: their disks in the format of real disks
//! - `metadata_server_crashes.rs`: clients with open files when the metadata server, or all I/O nodes, crash
//! - `schedule.rs`: programs of clients and faults, as values; `focus.rs`: schedules that aim at rare places;
//!   `jobs.rs`, `job_settings.rs`: schedules with write caches; `run`: their runs; `shrink.rs`: small ones that fail
//! - `contents.rs`, `names.rs`: histories of files and of directories, against which a run is checked
//! - `planted.rs`: bugs that the program `planted` puts into the code, to show which of them the schedules find
//! - `sweep.rs`: many runs on all processors, with their failures in groups
//! - `coverage.rs`: rare places that runs reach, and faults that last during operations; `marks.rs`: marks of places
//!   in the sources; `kind_names.rs`: names of faults and operations; `coverage_page.rs`, `sweep_log.rs`: reports
//!
//! The operations and requests themselves are in the crate `promises`.

mod contents;
mod coverage;
mod coverage_page;
mod crashing_nodes;
mod draw;
mod focus;
mod formatted;
mod job_settings;
mod jobs;
mod kind;
mod kind_names;
mod marks;
pub mod metadata_server_crashes;
mod names;
pub mod planted;
mod run;
mod schedule;
mod shrink;
mod sweep;
mod sweep_log;
mod testbed;

pub use coverage::{CoverageCounts, Hit, RunCoverage, marks_line};
pub use coverage_page::coverage_page;
pub use job_settings::JobSettings;
pub use kind::{Kind, errors_of_panics};
pub use kind_names::{FAULTS, OPERATIONS, Role};
pub use marks::marks;
pub use run::{BrokenLaw, RunResult, observe, run};
pub use schedule::{ClientOperation, CollectiveAccess, Fault, FileTarget, Schedule, TimedFault};
pub use shrink::shrink;
pub use sweep::{Counts, FailureGroup, Failures, Sweep};
pub use sweep_log::SweepLog;
