//! Accounts of runs: explanations of their duration, and traces of them.
//!
//! - `explain.rs`: an account of busy resources, of waits and of the limiting factor, for simulated and real runs.
//! - `recorded_run.rs`: the sums of a trace, for such an account.
//! - `explained.rs`: records a command on agents while it runs, for such an account.
//! - `race.rs`, `job_tracks.rs`: work of jobs that share disks, as an account and in a trace.
//! - `trace_file.rs`: the trace of a simulated run; `node_names.rs`: names of nodes in it.

pub mod explain;
pub mod explained;
pub mod job_tracks;
pub mod node_names;
pub mod race;
pub mod recorded_run;
pub mod trace_file;
