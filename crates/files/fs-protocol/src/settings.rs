//! Settings of nodes, and the two configurations in which nodes work.
//!
//! [`IoNodeSettings::report`] and [`ClientSettings::report`] describe the nodes of the STARFISH report: its
//! tables come from them. Real agents and their clients ship with [`IoNodeSettings::agent`] and
//! [`ClientSettings::agent`]. Predictions of agents use the latter, too, so that prediction and measurement
//! differ only in the machine. Every promise of the file system is kept under both, on both machines.

use machine::{Class, Duration};

use crate::features::Features;
use crate::scheduling::Scheduling;

/// One of the two configurations in which nodes work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Configuration {
    /// The configuration of the STARFISH report.
    Report,
    /// The configuration of the agents and their clients.
    Agent,
}

impl Configuration {
    /// Both configurations.
    pub const ALL: [Configuration; 2] = [Configuration::Report, Configuration::Agent];

    /// Returns the settings of its I/O nodes.
    pub fn io_node(self) -> IoNodeSettings {
        match self {
            Configuration::Report => IoNodeSettings::report(),
            Configuration::Agent => IoNodeSettings::agent(),
        }
    }

    /// Returns the settings of its clients.
    pub fn client(self) -> ClientSettings {
        match self {
            Configuration::Report => ClientSettings::report(),
            Configuration::Agent => ClientSettings::agent(),
        }
    }
}

/// Settings of an I/O node.
#[derive(Clone, Debug, PartialEq)]
pub struct IoNodeSettings {
    /// Order in which a disk's waiting requests are served.
    pub scheduling: Scheduling,
    /// Size of the cache in blocks. The reports have two for each compute node, disk and outstanding request
    /// (`2 K` for each compute node and disk).
    pub cache_blocks: usize,
    /// Largest block of any file, in bytes.
    pub block_bytes_max: u64,
    /// Threads that serve block requests.
    pub threads: Threads,
    /// Order in which block requests of different clients are served.
    pub sharing: Sharing,
    /// Limit of block requests in service at a time.
    pub service: Service,
    /// Task that waits until the answer to a block request has left.
    pub answers: Answers,
    /// Number of blocks prefetched after each read.
    pub prefetch_blocks: u64,
    /// Priority of prefetched blocks.
    pub prefetching: Prefetching,
    /// Limit of block requests at a disk at a time. With a second request a disk need not wait for the I/O
    /// node between two.
    pub requests_at_disk: usize,
    /// Longest time for which written bytes of an incomplete block wait in the cache for more; `None` to wait
    /// until a flush, or until their slot is needed.
    pub write_back_after: Option<Duration>,
    /// Number of buffers that a collective request uses for each disk.
    pub buffers_per_disk: usize,
    /// A number unique to this incarnation of the I/O node. It shows a client that wrote to an earlier
    /// incarnation that this has ended. 0 if the node is never restarted.
    pub incarnation: u64,
    /// Earlier incarnation that this one continues: it shut down cleanly with all accepted data on the disks,
    /// as did those that it continued itself. This number is returned to clients with accepted writes, so
    /// that they do not count as lost.
    pub continues: Option<u64>,
    /// Time limit for a client to answer a request or receive a message before it is disconnected. Without a
    /// limit the node waits as long as the client is connected.
    pub wait_timeout: Option<Duration>,
    /// Features of the node: all, unless a test simulates an earlier release.
    pub features: Features,
}

/// Threads that serve block requests at an I/O node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// A fixed number of threads, created in advance, take requests from a queue ("queued requests").
    Pool(usize),
    /// Each request gets a new thread ("thread requests").
    PerRequest,
}

/// Order in which an I/O node serves block requests of the same class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// In order of arrival.
    Arrival,
    /// The request of the client that has been served least is next: each client gets the same share of the
    /// bytes.
    Fair,
}

/// Limit of block requests in service at a time, from leaving the queue until their answers have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// As many requests as threads.
    Unbounded,
    /// The smaller of the number of threads and the number of blocks in the cache, since each request keeps
    /// the memory of a block. One client may have at most as many requests as are then left free. So a client
    /// that receives no answers leaves half to others.
    Bounded,
}

/// Task that waits until the answer to a block request has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// The thread that served the request.
    ByThread,
    /// A separate task: a client that receives its answers slowly blocks no thread.
    Apart,
}

/// Priority of prefetched blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetching {
    /// The priority of the read that they follow.
    LikeTheRead,
    /// Below all blocks that clients have requested.
    InBackground,
}

impl Prefetching {
    /// Returns the class of blocks prefetched after a read of this class.
    pub fn class(self, read: Class) -> Class {
        match self {
            Prefetching::LikeTheRead => read,
            Prefetching::InBackground => Class::Background,
        }
    }
}

impl IoNodeSettings {
    /// Returns the settings of the I/O nodes of the STARFISH report, except for the sizes that its
    /// experiments vary.
    pub fn report() -> Self {
        IoNodeSettings {
            scheduling: Scheduling::CyclicScan,
            cache_blocks: 1024,
            block_bytes_max: 64 * 1024,
            threads: Threads::Pool(128),
            sharing: Sharing::Arrival,
            service: Service::Unbounded,
            answers: Answers::ByThread,
            prefetch_blocks: 1,
            prefetching: Prefetching::LikeTheRead,
            requests_at_disk: 1,
            write_back_after: None,
            buffers_per_disk: 2,
            incarnation: 0,
            continues: None,
            // The report's machines never disconnect a client.
            wait_timeout: None,
            features: Features::all(),
        }
    }

    /// Returns the settings of the agents, with the default size of their memory.
    pub fn agent() -> Self {
        IoNodeSettings {
            scheduling: Scheduling::FairScan,
            cache_blocks: 256,
            block_bytes_max: 1 << 20,
            threads: Threads::Pool(512),
            sharing: Sharing::Fair,
            service: Service::Bounded,
            answers: Answers::Apart,
            prefetch_blocks: 1,
            prefetching: Prefetching::InBackground,
            requests_at_disk: 2,
            // The same delay as in the page cache of Linux.
            write_back_after: Some(Duration::from_secs(5)),
            buffers_per_disk: 2,
            incarnation: 0,
            continues: None,
            wait_timeout: Some(Duration::from_secs(10)),
            features: Features::all(),
        }
    }

    /// Returns the incarnation that is returned to clients with accepted writes: the first of those since
    /// which no accepted data were lost.
    pub fn lossless_since(&self) -> u64 {
        self.continues.unwrap_or(self.incarnation)
    }

    /// Returns the limit of block requests in service at a time, if there is one.
    pub fn service_slots(&self) -> Option<usize> {
        match (self.service, self.threads) {
            (Service::Unbounded, _) => None,
            (Service::Bounded, Threads::Pool(threads)) => Some(self.cache_blocks.min(threads)),
            (Service::Bounded, Threads::PerRequest) => Some(self.cache_blocks),
        }
    }
}

/// Method of moving the data of a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveMethod {
    /// The I/O nodes move the data, each in the order that suits its disks.
    DiskDirected {
        /// True if each disk serves its blocks in the order of their physical position.
        presort: bool,
    },
    /// The compute nodes move the data: each reads or writes one contiguous part of the file. They exchange
    /// data after a read and before a write.
    TwoPhase,
}

/// Settings of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// The reports' K: limit of block requests of one file request in flight to each disk.
    pub outstanding_per_disk: usize,
    /// True if I/O nodes fetch the data of a write with Memget, instead of receiving them in the request:
    /// small requests, one copy less, one message more.
    pub memget_writes: bool,
    /// Exchange of pieces that are not queued, between the phases of two-phase I/O.
    pub two_phase_exchange: TwoPhaseExchange,
    /// Members that flush at the end of a two-phase write.
    pub two_phase_flush: TwoPhaseFlush,
}

/// Exchange of a member's pieces with the others between the phases of two-phase I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TwoPhaseExchange {
    /// One piece after the other, through the member's part from beginning to end: the thread sleeps until a
    /// piece is in place. If all members get all of the file, it serves one member after the other.
    OneByOne,
    /// All pieces of a block at once.
    AllAtOnce,
}

/// Members of a group that flush at the end of a two-phase write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TwoPhaseFlush {
    /// The first member, for all. If a block of another member did not reach its disk, that member gets the
    /// error at its own next flush.
    First,
    /// Each member, so that it gets the errors of its writes at once.
    Each,
}

impl ClientSettings {
    /// Returns the settings of the compute nodes of the STARFISH report, except for those that its
    /// experiments vary.
    pub fn report() -> Self {
        ClientSettings {
            outstanding_per_disk: 4,
            memget_writes: false,
            two_phase_exchange: TwoPhaseExchange::OneByOne,
            two_phase_flush: TwoPhaseFlush::First,
        }
    }

    /// Returns the settings of the clients of agents. The callers limit the number of requests in flight: the
    /// page cache, or the windows for moving whole files.
    pub fn agent() -> Self {
        ClientSettings {
            outstanding_per_disk: 64,
            memget_writes: false,
            two_phase_exchange: TwoPhaseExchange::AllAtOnce,
            two_phase_flush: TwoPhaseFlush::Each,
        }
    }
}
