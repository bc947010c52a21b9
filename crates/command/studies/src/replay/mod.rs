//! Replaying request logs.
//!
//! - `input.rs`: the options that say how a log is read
//! - `agents.rs`: a replay on agents
//! - `report.rs`: what is told of it

pub(crate) mod agents;
pub(crate) mod input;
pub(crate) mod report;
