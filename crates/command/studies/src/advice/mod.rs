//! Advice before a run, checked on the simulated machine.
//!
//! - `placement.rs`: placement of the files of jobs that share disks
//! - `io.rs`: gains of a recorded program by other methods and settings

pub mod io;
pub mod placement;
