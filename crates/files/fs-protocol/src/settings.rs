//! How nodes work, and the two configurations in which they do.
//!
//! [`IoNodeSettings::report`] and [`ClientSettings::report`] are what the STARFISH report describes: its tables come
//! from them. [`IoNodeSettings::agent`] and [`ClientSettings::agent`] are what real agents and their clients ship with,
//! and what predictions of them are made with, so that predicted and measured differ in the machine alone. Every
//! promise of the file system is kept under both, on both machines.

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
    /// Both.
    pub const ALL: [Configuration; 2] = [Configuration::Report, Configuration::Agent];

    /// How its I/O nodes serve.
    pub fn io_node(self) -> IoNodeSettings {
        match self {
            Configuration::Report => IoNodeSettings::report(),
            Configuration::Agent => IoNodeSettings::agent(),
        }
    }

    /// How its clients work.
    pub fn client(self) -> ClientSettings {
        match self {
            Configuration::Report => ClientSettings::report(),
            Configuration::Agent => ClientSettings::agent(),
        }
    }
}

/// How an I/O node serves.
#[derive(Clone, Debug, PartialEq)]
pub struct IoNodeSettings {
    /// The order in which a disk's waiting requests are served.
    pub scheduling: Scheduling,
    /// How many blocks the cache holds. The reports give it two for each compute node, disk and outstanding
    /// request (`2 K` for each compute node and disk).
    pub cache_blocks: usize,
    /// The largest block of any file, in bytes.
    pub block_bytes_max: u64,
    /// Who serves block requests.
    pub threads: Threads,
    /// Whose block request is served next.
    pub sharing: Sharing,
    /// How many block requests are in service at a time.
    pub service: Service,
    /// Who waits until the answer to a block request has left.
    pub answers: Answers,
    /// How many blocks ahead of each read are prefetched.
    pub prefetch_blocks: u64,
    /// How urgent these blocks are.
    pub prefetching: Prefetching,
    /// How many block requests a disk is given at a time. With a second one a disk need not wait for the I/O node
    /// between two.
    pub requests_at_disk: usize,
    /// How long written bytes of a block that is not full wait in the cache for more, at most. Without this until a
    /// flush, or until their place is needed.
    pub write_back_after: Option<Duration>,
    /// How many buffers a collective request uses for each disk.
    pub buffers_per_disk: usize,
    /// A number that no other run of this I/O node has, by which a client that has written to an earlier run learns
    /// that this run is over. 0 if there is never another run.
    pub incarnation: u64,
    /// The earlier run that this one continues: it ended with all on the disks that it had accepted, and so had those
    /// that it continued itself. Clients hear its number with what is accepted, so that nothing is lost for them.
    pub continues: Option<u64>,
    /// How long a client may take to act on a request or a message before it is given up. Without a limit it is waited
    /// for as long as it is connected.
    pub patience: Option<Duration>,
    /// What it can do: all, unless a test has it be of an earlier release.
    pub features: Features,
}

/// Who serves block requests at an I/O node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// A fixed number of threads, made beforehand, take requests from a queue ("queued requests").
    Pool(usize),
    /// Each request gets a new thread ("thread requests").
    PerRequest,
}

/// Whose block request an I/O node serves next, among those of the same class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// The request that came first.
    Arrival,
    /// The request of the client that has been served least: each gets the same share of the bytes.
    Fair,
}

/// How many block requests an I/O node has in service at a time, from when they leave the queue until their answers
/// have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// As many as there are threads.
    Unbounded,
    /// As many as there are threads and blocks in the cache, since each request keeps the memory of a block. One client
    /// may have at most as many as are left free then, so that a client that takes no answers leaves half to others.
    Bounded,
}

/// Who waits until the answer to a block request has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// The thread that has served it.
    ByThread,
    /// A task of its own: a client that is slow to take its answers keeps no thread.
    Apart,
}

/// How urgent prefetched blocks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefetching {
    /// As urgent as the read that they follow.
    LikeTheRead,
    /// Behind all blocks that a client has asked for.
    InBackground,
}

impl Prefetching {
    /// The class of blocks that are read ahead of a read of this class.
    pub fn class(self, read: Class) -> Class {
        match self {
            Prefetching::LikeTheRead => read,
            Prefetching::InBackground => Class::Background,
        }
    }
}

impl IoNodeSettings {
    /// The I/O nodes of the STARFISH report, except for the sizes that its experiments vary.
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
            // On the report's machines no client is ever given up.
            patience: None,
            features: Features::all(),
        }
    }

    /// The agents, with the memory that they have unless they are told otherwise.
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
            // As Linux has its page cache wait.
            write_back_after: Some(Duration::from_secs(5)),
            buffers_per_disk: 2,
            incarnation: 0,
            continues: None,
            patience: Some(Duration::from_secs(10)),
            features: Features::all(),
        }
    }

    /// The run that clients hear of with what is accepted: the first of those since which nothing accepted was lost.
    pub fn lossless_since(&self) -> u64 {
        self.continues.unwrap_or(self.incarnation)
    }

    /// The number of block requests in service at a time, if that is bounded.
    pub fn service_slots(&self) -> Option<usize> {
        match (self.service, self.threads) {
            (Service::Unbounded, _) => None,
            (Service::Bounded, Threads::Pool(threads)) => Some(self.cache_blocks.min(threads)),
            (Service::Bounded, Threads::PerRequest) => Some(self.cache_blocks),
        }
    }
}

/// Who moves the data of a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveMethod {
    /// The I/O nodes, each in the order that suits its disks.
    DiskDirected {
        /// Whether each disk takes its blocks in the order of their physical position.
        presort: bool,
    },
    /// The compute nodes: each reads or writes one contiguous part of the file, and they exchange data after a read
    /// and before a write.
    TwoPhase,
}

/// How a client works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// The reports' K: how many block requests of one file request are under way to each disk at once.
    pub outstanding_per_disk: usize,
    /// Whether I/O nodes fetch the data of a write with Memget, instead of finding them in the request: small
    /// requests, one copy less, one message more.
    pub memget_writes: bool,
    /// How pieces that are not queued are exchanged between the phases of two-phase I/O.
    pub two_phase_exchange: TwoPhaseExchange,
    /// Who flushes at the end of a two-phase write.
    pub two_phase_flush: TwoPhaseFlush,
}

/// How a member of a group exchanges pieces with the others between the phases of two-phase I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TwoPhaseExchange {
    /// One piece after the other, from the beginning of the member's part to its end: the thread sleeps until a piece
    /// is in place. If all members get all of the file, it serves one member after the other.
    OneByOne,
    /// All pieces of a block at once.
    AllAtOnce,
}

/// Which members of a group flush at the end of a two-phase write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TwoPhaseFlush {
    /// The first, for all: another member whose block did not reach its disk learns that by its own next flush.
    First,
    /// Each, so that each is told at once of what it has written and was lost.
    Each,
}

impl ClientSettings {
    /// The compute nodes of the STARFISH report, except for the settings that its experiments vary.
    pub fn report() -> Self {
        ClientSettings {
            outstanding_per_disk: 4,
            memget_writes: false,
            two_phase_exchange: TwoPhaseExchange::OneByOne,
            two_phase_flush: TwoPhaseFlush::First,
        }
    }

    /// The clients of agents. The callers bound the number of requests in flight: the page cache, or the windows in
    /// which whole files are moved.
    pub fn agent() -> Self {
        ClientSettings {
            outstanding_per_disk: 64,
            memget_writes: false,
            two_phase_exchange: TwoPhaseExchange::AllAtOnce,
            two_phase_flush: TwoPhaseFlush::Each,
        }
    }
}
