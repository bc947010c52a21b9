//! Agents and mounts as long-running processes.
//!
//! - `detached.rs`: agents in the background, started by the crate `agent-set`; `agent_log.rs`: their log
//! - `metrics_server.rs`: the metrics server, with the values of `agent_metrics.rs` and `mount_metrics.rs`
//! - `removed_files.rs`: removes the contents of removed files if no client does

pub(crate) mod agent_log;
pub(crate) mod agent_metrics;
pub(crate) mod detached;
pub(crate) mod metrics_server;
pub(crate) mod mount_metrics;
pub(crate) mod removed_files;
