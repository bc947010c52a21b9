//! What a run did: why it took as long as it did, and traces of it.
//!
//! - `explain.rs`: an account of what was busy, what waited and what limited it, of simulated and of real runs;
//!   `recorded_run.rs`: what it needs of a trace
//! - `explained.rs`: a command on agents, recorded for as long as it runs, with such an account
//! - `race.rs`, `job_tracks.rs`: what jobs that share disks did, as an account and in a trace
//! - `trace_file.rs`: the trace of a simulated run; `node_names.rs`: what nodes are called there

pub mod explain;
pub mod explained;
pub mod job_tracks;
pub mod node_names;
pub mod race;
pub mod recorded_run;
pub mod trace_file;
