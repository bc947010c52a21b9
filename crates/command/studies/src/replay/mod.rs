//! Replay of request logs.
//!
//! - `agents.rs`: a replay on agents
//! - `report.rs`: its report

pub mod agents;
pub mod report;
