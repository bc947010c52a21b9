//! Benchmark of the user's own agents (`starfish bench --agents`).
//!
//! - `task.rs`: one workload on the agents: creates the file, runs the clients, removes the file
//! - `prediction.rs`: the same workload on a simulated machine
//! - `report.rs`: the report

pub mod prediction;
pub mod report;
pub mod task;
