//! The file system: one source for simulated and real machines.
//!
//! It is generic over the trait `Machine` of the crate `machine`, and never depends on which machine it runs. Its
//! crates, in the order in which a read passes through them:
//!
//! - `fs-client`: the compute node's part; start with [`Client`] and [`File`]. Its caches are [`PageCache`], and
//!   [`WriteCache`] for writes that a group of compute nodes flushes together
//! - `fs-protocol`: the common part of clients and I/O nodes: messages, calls, settings, errors
//! - `fs-io-node`: the I/O node's part, [`serve`], for block requests and collective requests
//!
//! This crate exports the items of these crates that other crates use.

pub use fs_client::{
    Advice, Check, CheckedFile, Checking, Client, ClientCounts, CollectiveSettings, DamagedFileReader,
    DiskExamination, DisksByIdentity, Division, ENTRY_BYTES, Examination, File, FileEntries, Finding,
    FindingKind, Group, HeldUpExamination, ListedSettings, MoveTimes, Moved, NewTree, NodeRecording,
    NumberedFile, OpenTreeFile, PageCache, PageCacheCounts, PageCacheSettings, PagedFile, Partial,
    Participants, Prefetch, SalvagedExtent, Section, SelectedSettings, SomeEntries, TeamMembership, TeamTurn,
    Tree, WriteCache, WriteCacheSettings, Written,
};
pub use fs_io_node::{
    CacheCounts, IoNodeCounts, IoNodeDiskCounts, IoNodeService, PoolCounts, REMOVED_AT_ONCE, serve,
};
pub use fs_protocol::{
    Answers, ClientSettings, CollectiveMethod, Configuration, Entry, EntryRun, Error, Failure, FailureKind,
    Features, FileId, HeldLock, IoNodeSettings, KeptNamespace, ListedStretch, ListedStripe, LockMode,
    LockRange, OpenFor, Prefetching, RELEASE, Result, Scheduling, ServedRequests, Service, Sharing, TeamStep,
    Threads, TimeHistogram, TrafficCounts, TwoPhaseExchange, TwoPhaseFlush, number_of, object_name, protocol,
};
