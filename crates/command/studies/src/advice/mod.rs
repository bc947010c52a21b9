//! What is advised before something is run, and held against the simulated machine.
//!
//! - `placement.rs`: where jobs that share disks should have their files
//! - `io.rs`: what a program that was recorded would gain by other methods and settings

pub mod io;
pub mod placement;
