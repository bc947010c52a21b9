//! Replaying request logs.
//!
//! - `agents.rs`: a replay on agents
//! - `report.rs`: what is told of it

pub mod agents;
pub mod report;
