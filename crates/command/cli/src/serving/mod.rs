//! Agents and mounts as long-running processes.
//!
//! - `detached.rs`: agents in the background, which the crate `agent-set` starts; `agent_log.rs`: their log
//! - `metrics_server.rs`: the metrics server, with the values of `agent_metrics.rs` and `mount_metrics.rs`
//! - `removed_files.rs`: removal of the contents of removed files if no client does that

pub(crate) mod agent_log;
pub(crate) mod agent_metrics;
pub(crate) mod detached;
pub(crate) mod metrics_server;
pub(crate) mod mount_metrics;
pub(crate) mod removed_files;
