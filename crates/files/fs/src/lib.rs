//! The file system: one source for simulated and real machines.
//!
//! It is generic over the trait `Machine` of the crate `machine`, and never asks which machine it runs on. Its crates,
//! in the order in which a read passes through them:
//!
//! - `fs-client`: a compute node's half; start here, at [`Client`] and [`File`]. Caches are [`PageCache`], and
//!   [`WriteCache`] for writes that a group of compute nodes flushes together
//! - `fs-protocol`: the common part of clients and I/O nodes: messages, calls, settings, errors
//! - `fs-io-node`: an I/O node's half, [`serve`], for block requests and collective ones
//!
//! This crate exports their items that other crates use.

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
