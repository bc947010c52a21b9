//! Studies: what is measured, beside what the simulator says of the same.
//!
//! - `bench/`: benchmarks, of agents and of this computer
//! - `replay/`: request logs, replayed on agents
//! - `advice/`: what is advised before something is run
//! - `described.rs`: the machines that they are predicted for

pub mod advice;
pub mod bench;
pub mod described;
pub mod replay;
