//! Agents and mounts as processes that run for days.
//!
//! - `detached.rs`: agents in the background, which the crate `agent-set` starts; `agent_log.rs`: what they say
//! - `metrics_server.rs`: the server for numbers about them, which are those of `agent_metrics.rs` and
//!   `mount_metrics.rs`
//! - `removed_files.rs`: removal of the contents of removed files if no client does it

pub(crate) mod agent_log;
pub(crate) mod agent_metrics;
pub(crate) mod detached;
pub(crate) mod metrics_server;
pub(crate) mod mount_metrics;
pub(crate) mod removed_files;
