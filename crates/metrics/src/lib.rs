//! Numbers of a running node for Prometheus: which there are, their text, and who asks for it.
//!
//! ```text
//!  node thread                      a thread of the server
//!
//!  fs::IoNodeCounts  --- asked --->  Samples: of families  --- text --->  GET /metrics
//!    plain numbers                     agent.rs, process.rs                 server.rs
//! ```
//!
//! The file system counts in plain numbers, on its own thread, whether anybody asks or not; only here they get the
//! names and units of [OpenMetrics](https://prometheus.io/docs/specs/om/open_metrics_spec/). What is shown is a picture
//! of one moment, made when it is asked for.
//!
//! - [`MetricFamily`] in `family.rs`: what there is a number of, with its name, unit, labels and meaning
//! - [`Samples`] in `samples.rs`: numbers of families at one moment, and their text
//! - [`agent`], [`process`]: the families there are, and their samples
//! - [`MetricsServer`] in `server.rs`: the server
//!
//! What is not here, on purpose: counting, and how a server's thread reaches the node's. Other nodes, such as a mount,
//! have families of their own beside `agent.rs`, and the same server.

pub mod agent;
mod family;
pub mod process;
mod samples;
mod server;

pub use family::{MetricFamily, MetricKind, MetricUnit};
pub use samples::{MetricValue, Samples};
pub use server::{METRICS_VARIABLE, MetricsServer, parse_address};
