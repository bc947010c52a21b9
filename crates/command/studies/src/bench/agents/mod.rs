//! Benchmark of the user's own agents (`starfish bench --agents`).
//!
//! - `task.rs`: one workload on the agents: create the file, have clients use it, remove it
//! - `prediction.rs`: the same on a simulated machine
//! - `report.rs`: the report

pub mod prediction;
pub mod report;
pub mod task;
