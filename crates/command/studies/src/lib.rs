//! Studies: measurements, and their predictions by the simulator.
//!
//! - `bench/`: benchmarks, of agents and of this computer
//! - `replay/`: request logs, replayed on agents
//! - `advice/`: advice before a run
//! - `described.rs`: the simulated machines of the predictions

pub mod advice;
pub mod bench;
pub mod described;
pub mod replay;
