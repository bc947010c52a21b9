//! Numbers of a running node for Prometheus: their families, their text, and the server that answers with it.
//!
//! ```text
//!  node thread                      a thread of the server
//!
//!  fs::IoNodeCounts  --- asked --->  Samples: of families  --- text --->  GET /metrics
//!    plain numbers                     agent.rs, mount.rs, process.rs       server.rs
//! ```
//!
//! The file system counts in plain numbers, on its own thread, whether or not they are asked for; only here they get
//! the names and units of [OpenMetrics](https://prometheus.io/docs/specs/om/open_metrics_spec/). An answer shows one
//! moment, and is made when it is asked for.
//!
//! - [`MetricFamily`] in `family.rs`: numbers of one meaning, with name, unit and labels
//! - [`Samples`] in `samples.rs`: numbers of families at one moment, and their text
//! - [`agent`], [`mount`], [`process`]: all families, and their samples
//! - [`MetricsServer`] in `server.rs`: the server
//!
//! What is not here, on purpose: counting, and how a server's thread reaches the node's.

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

/// What a class of requests is called.
fn class_name(class: Class) -> &'static str {
    match class {
        Class::Control => "control",
        Class::Demand => "demand",
        Class::Background => "background",
    }
}
