//! What clients and I/O nodes of the file system have in common: messages, calls, and what both say of files.
//!
//! - `protocol/`: what travels, and its bytes; `features.rs`: which of it not every release knows
//! - `endpoint.rs`: calls and their answers; `patience.rs`: how long a node waits for others
//! - `settings.rs`: how nodes work, in the configuration of the report and in that of the agents;
//!   `scheduling.rs`: the orders in which a disk may serve its requests
//! - `directory.rs`: what the members of a group have to move; `selected_parts.rs`: what they have selected of a block
//! - `exchange.rs`: scattering an extent over the compute nodes' memories, and gathering it from them
//! - `coverage.rs`: the bytes of a block as bits; `turns.rs`: turns at things
//! - `name.rs`: names of jobs and teams; `number.rs`: what stripes are called on their disks; `error.rs`: what can go
//!   wrong; `noted.rs`: what is noted of requests; `traffic.rs` and `time_histogram.rs`: what is counted of them
//! - `range_locks.rs`: which owner has which parts of a file locked; `scrub_unit.rs`: how finely damage is told

pub mod coverage;
pub mod directory;
pub mod endpoint;
pub mod error;
pub mod exchange;
pub mod features;
pub mod name;
pub mod noted;
pub mod number;
pub mod patience;
pub mod protocol;
pub mod range_locks;
pub mod scheduling;
pub mod scrub_unit;
pub mod selected_parts;
pub mod settings;
pub mod time_histogram;
pub mod traffic;
pub mod turns;

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

/// The release of this file system, as its users know it. Nodes of different releases understand each other if their
/// protocol is of the same [version](protocol::VERSION), whatever [features](Features) they have.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");
