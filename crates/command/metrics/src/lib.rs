//! Prometheus metrics of a running node: their families, their text form, and the HTTP server.
//!
//! ```text
//!  node thread                      a thread of the server
//!
//!  fs::IoNodeCounts  --- request --> Samples: of families  --- text --->  GET /metrics
//!    plain numbers                     agent.rs, mount.rs, process.rs       server.rs
//! ```
//!
//! The file system counts in plain numbers on its own thread, even if no server runs. Only this crate adds the names
//! and units of [OpenMetrics](https://prometheus.io/docs/specs/om/open_metrics_spec/). Each answer is computed on
//! request, and all its values are of one moment.
//!
//! - [`MetricFamily`] in `family.rs`: samples that have the same meaning, with name, unit and labels
//! - [`Samples`] in `samples.rs`: values of families at one moment, and their text form
//! - [`agent`], [`mount`], [`process`]: all families, and their samples
//! - [`MetricsServer`] in `server.rs`: the server
//!
//! This crate deliberately does not count, and has no channel between the server's threads and the node's thread.

pub mod agent;
mod family;
pub mod mount;
pub mod process;
mod samples;
mod server;

use machine::Class;

pub use family::{MetricFamily, MetricKind, MetricUnit};
pub use samples::{MetricValue, Samples};
pub use server::{METRICS_VARIABLE, MetricsServer, parse_address};

/// Returns the label value of a request class.
fn class_name(class: Class) -> &'static str {
    match class {
        Class::Control => "control",
        Class::Demand => "demand",
        Class::Background => "background",
    }
}
