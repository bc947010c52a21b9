//! The file system: one source for simulated and real machines.
//!
//! Everything here is generic over [`machine::Machine`] and never asks which one it runs on.
//!
//! Map of the code, in the order in which a read passes through it:
//!
//! - [`Client`], [`File`] in `client/`: a compute node's half; start here
//! - [`WriteCache`] in `client/write_cache/`: what a group of compute nodes writes, cached there and flushed together
//! - [`PageCache`], [`PagedFile`] in `client/pages/`: pages in the client's memory, prefetched and written behind
//! - `endpoint.rs`: calls and their answers; `protocol/`: what travels, and its bytes
//! - `settings.rs`: how nodes work, in the configuration of the report and in that of the agents
//! - [`serve`] in `io_node/`: an I/O node's half, for block requests and collective ones
//! - `directory.rs`: what the members of a group have to move; `dealt.rs`: the same, dealt to blocks;
//!   `selected_parts.rs`: what they have selected of a block
//! - `exchange.rs`: scattering an extent over the compute nodes' memories, and gathering it from them
//! - `cache.rs`, `byte_set.rs`, `coverage.rs`, `piece_run.rs`, `request_queue.rs`, `schedule/`: decisions without
//!   futures
//! - `disk_queue.rs`: turns at a disk, and `backlog.rs`: the jobs that are held up there; `turns.rs`: turns at other
//!   things; `room.rs`: how much more a disk can be given
//! - `patience.rs`: how long a node waits for others
//! - `name.rs`, `error.rs`: what a file may be called; what can go wrong; `number.rs`: what stripes of files without
//!   names are called; `noted.rs`: what is noted of requests;
//!   `traffic.rs` and `time_histogram.rs`: what is counted of them
//! - `range_locks.rs`: which owner has which parts of a file locked; `scrub_unit.rs`: how finely damage is told

mod backlog;
mod byte_set;
mod cache;
mod client;
mod coverage;
mod dealt;
mod directory;
mod disk_queue;
mod endpoint;
mod error;
mod exchange;
mod io_node;
mod name;
mod noted;
mod number;
mod patience;
mod piece_run;
pub mod protocol;
mod range_locks;
mod request_queue;
mod room;
mod schedule;
mod scrub_unit;
mod selected_parts;
mod settings;
mod time_histogram;
mod traffic;
mod turns;

pub use client::{
    Advice, Check, CheckedFile, Checking, Client, ClientCounts, CollectiveMethod, CollectiveSettings,
    Company, DiskExamination, DisksByIdentity, Division, ENTRY_BYTES, Examination, File, FileEntries,
    FileParts, FileStat, Finding, FindingKind, Group, HeldUpExamination, ListedSettings, MoveTimes, Moved,
    NewTree, NodeRecording, NumberedFile, OpenTreeFile, PageCache, PageCacheCounts, PageCacheSettings,
    PagedFile, Partial, Prefetch, Remains, Remnant, Section, SelectedSettings, SomeEntries, TeamMembership,
    TeamTurn, Tree, WriteCache, WriteCacheSettings, Written,
};
pub use directory::{Entry, EntryRun, ListedStretch};
pub use error::{Error, Failure, FailureKind, KeptNamespace, Result};
pub use io_node::{
    CacheCounts, IoNodeCounts, IoNodeDiskCounts, IoNodeService, PoolCounts, REMOVED_AT_ONCE, serve,
};
pub use name::{NAME_BYTES_MAX, NameError, check as check_name};
pub use number::{number_of, object_name};
pub use protocol::{FileId, HeldLock, ListedStripe, OpenFor, TeamStep};
pub use range_locks::{LockMode, LockRange};
pub use schedule::Scheduling;
pub use settings::{
    Answers, ClientSettings, Configuration, IoNodeSettings, Prefetching, Service, Sharing, Threads,
    TwoPhaseExchange, TwoPhaseFlush,
};
pub use time_histogram::TimeHistogram;
pub use traffic::{ServedRequests, TrafficCounts};

/// The release of this file system, as its users know it. Nodes of different releases understand each other if their
/// protocol is of the same [version](protocol::VERSION).
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");
