//! The benchmark of the user's own agents (`starfish bench --agents`).
//!
//! - `task.rs`: one workload on the agents: make the file, have clients use it, remove it
//! - `prediction.rs`: the same on a simulated machine
//! - `report.rs`: what is told of it

pub mod prediction;
pub mod report;
pub mod task;
