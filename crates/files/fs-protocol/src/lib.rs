//! Code shared by clients and I/O nodes of the file system: messages, calls, and common types.
//!
//! - `protocol/`: the messages and their encoding; `features.rs`: parts of the protocol that some releases
//!   lack.
//! - `endpoint.rs`: calls and their answers; `wait_timeouts.rs`: the time limit of waits for other nodes.
//! - `settings.rs`: settings of nodes, in the configuration of the report and in that of the agents;
//!   `scheduling.rs`: the orders in which a disk may serve its requests.
//! - `directory.rs`: the extents that members of a group read or write; `selected_parts.rs`: the members' selections
//!   within a block.
//! - `exchange.rs`: scatters an extent over the compute nodes' memories, and gathers it from them.
//! - `coverage.rs`: the bytes of a block as bits; `keyed_mutex.rs`: mutual exclusion by key.
//! - `name.rs`: names of jobs and teams; `number.rs`: names of stripes on their disks; `error.rs`: errors;
//!   `span_names.rs`: names of requests in recordings; `traffic.rs` and `time_histogram.rs`: counters of requests.
//! - `range_locks.rs`: locks on ranges of a file; `scrub_unit.rs`: the unit of reported damage.

pub mod coverage;
pub mod directory;
pub mod endpoint;
pub mod error;
pub mod exchange;
pub mod features;
pub mod keyed_mutex;
pub mod name;
pub mod number;
pub mod protocol;
pub mod range_locks;
pub mod scheduling;
pub mod scrub_unit;
pub mod selected_parts;
pub mod settings;
pub mod span_names;
pub mod time_histogram;
pub mod traffic;
pub mod wait_timeouts;

pub use directory::{Entry, EntryRun, ListedStretch};
pub use error::{Error, Failure, FailureKind, KeptNamespace, Result};
pub use features::Features;
pub use name::{NAME_BYTES_MAX, NameError};
pub use number::{number_of, object_name};
pub use protocol::{FileId, HeldLock, ListedStripe, OpenFor, TeamStep};
pub use range_locks::{LockMode, LockRange};
pub use scheduling::Scheduling;
pub use settings::{
    Answers, ClientSettings, CollectiveMethod, Configuration, IoNodeSettings, Prefetching, Service, Sharing,
    Threads, TwoPhaseExchange, TwoPhaseFlush,
};
pub use time_histogram::TimeHistogram;
pub use traffic::{ServedRequests, TrafficCounts};

/// The release of this file system, as shown to users. Nodes of different releases work together if they use the same
/// protocol [version](protocol::VERSION), even if their [features](Features) differ.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");
