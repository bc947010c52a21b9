//! Options of the experiments of the reports.

use std::fmt;
use std::str::FromStr;

use description::MachineDescription;
use fs::{
    Configuration, Division, IoNodeSettings, PageCacheSettings, Prefetch, Scheduling, Threads,
    WriteCacheSettings,
};
use machine::Duration;

/// An access method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Compute nodes request blocks; I/O nodes cache, prefetch and write behind.
    Traditional,
    /// Compute nodes request blocks in a distribution that suits the disks, and then exchange data with each other.
    TwoPhase,
    /// Compute nodes make one collective request; each I/O node chooses the order in which it accesses its disks.
    DiskDirected,
    /// Compute nodes write into their memory. When one of them is full, all flush together. For writes only.
    WriteCached,
}

/// Options of the methods. The defaults are the settings of the report (section 5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Size in bytes of a block, and of a stripe unit.
    pub block_bytes: u64,
    /// Number of outstanding requests for each compute node and disk (the reports' K).
    pub outstanding: usize,
    /// Order in which a disk's requests are served; traditional only.
    pub scheduling: Scheduling,
    /// True if each request has a separate thread; traditional only.
    pub thread_per_request: bool,
    /// Number of blocks to prefetch after each read; traditional only.
    pub prefetch_blocks: u64,
    /// True if an I/O node fetches the data of a write with Memget, false if the request contains them. Not for the
    /// disk-directed method.
    pub memget_writes: bool,
    /// Memputs and Memgets that are queued and sent in batches; not for the traditional method.
    pub queued: Queued,
    /// True if each disk's blocks are sorted by physical position; disk-directed only.
    pub presort: bool,
    /// Size in bytes of each compute node's page cache, 0 for no page cache; traditional only.
    pub page_cache_bytes: u64,
    /// Pages that a page cache prefetches; adaptive by default.
    pub window: Option<Prefetch>,
    /// Size in bytes of each compute node's write cache; `None` for the size of the configuration; write-cached only.
    pub write_cache_bytes: Option<u64>,
    /// Division of the write cache between data and directory; `None` for that of the configuration; write-cached only.
    pub division: Option<Division>,
    /// Fullness, from 0.1 to 1, at which half of the write cache is flushed in the background; `None` for that of the
    /// configuration. Write-cached only.
    pub flush_at: Option<f64>,
    /// Maximum age of a write before it is flushed; `None` for that of the configuration; write-cached only.
    pub flush_after: Option<Duration>,
    /// Number of buffers of an I/O node for each disk in a collective operation; disk-directed and write-cached only.
    pub buffers: u64,
    /// True if each node makes one call for its whole part of an array, as an MPI program on agents does.
    pub calls: bool,
}

/// Memputs and Memgets that are queued for their destination and sent one block at a time (gather/scatter).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// No Memputs and Memgets.
    Never,
    /// All Memputs and Memgets.
    Always,
    /// Memputs and Memgets of records smaller than a block, as in the report's comparison of methods.
    SmallRecords,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            block_bytes: 8192,
            outstanding: 4,
            scheduling: Scheduling::CyclicScan,
            thread_per_request: false,
            prefetch_blocks: 1,
            memget_writes: false,
            queued: Queued::SmallRecords,
            presort: false,
            page_cache_bytes: 0,
            window: None,
            write_cache_bytes: None,
            division: None,
            flush_at: None,
            flush_after: None,
            buffers: IoNodeSettings::report().buffers_per_disk as u64,
            calls: false,
        }
    }
}

impl Options {
    /// Returns the settings of the I/O nodes of a machine. The cache has two buffers for each compute node, disk and
    /// outstanding request. A thread pool has one thread for each buffer (sections 2.2 and 3.2 of the report).
    pub fn io_nodes(&self, machine: &MachineDescription) -> IoNodeSettings {
        let (nodes, disks) = (machine.nodes.compute.value as usize, machine.disks.per_io_node.value as usize);
        let buffers = 2 * self.outstanding * nodes * disks;
        let threads = if self.thread_per_request { Threads::PerRequest } else { Threads::Pool(buffers) };
        IoNodeSettings {
            scheduling: self.scheduling,
            cache_blocks: buffers,
            block_bytes_max: self.block_bytes,
            threads,
            prefetch_blocks: self.prefetch_blocks,
            buffers_per_disk: self.buffers as usize,
            ..IoNodeSettings::report()
        }
    }

    /// Returns the settings of each compute node's page cache, if it has one.
    pub fn page_cache(&self) -> Option<PageCacheSettings> {
        let (bytes, prefetch) = (self.page_cache_bytes, self.window.unwrap_or(Prefetch::Adaptive));
        (bytes > 0).then_some(PageCacheSettings {
            bytes,
            prefetch,
            write_behind: true,
            ..PageCacheSettings::default()
        })
    }

    /// Returns the settings of each compute node's write cache. Settings that were not chosen are those of the
    /// configuration.
    pub fn write_cache(&self, configuration: Configuration, queued: bool) -> WriteCacheSettings {
        let usual = match configuration {
            Configuration::Report => WriteCacheSettings::report(),
            Configuration::Agent => WriteCacheSettings::agent(),
        };
        WriteCacheSettings {
            bytes: self.write_cache_bytes.unwrap_or(usual.bytes),
            division: self.division.unwrap_or(usual.division),
            queued,
            background: self.flush_at.or(usual.background),
            flush_after: self.flush_after.or(usual.flush_after),
        }
    }

    /// True if Memputs and Memgets of records of this size in bytes are queued.
    pub fn is_queued(&self, record_bytes: u64) -> bool {
        match self.queued {
            Queued::Never => false,
            Queued::Always => true,
            Queued::SmallRecords => record_bytes < self.block_bytes,
        }
    }
}

impl Method {
    /// Methods of the STARFISH report, which can read and write every pattern.
    pub const ALL: [Method; 3] = [Method::Traditional, Method::TwoPhase, Method::DiskDirected];
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Method::Traditional => "traditional",
            Method::TwoPhase => "two-phase",
            Method::DiskDirected => "disk-directed",
            Method::WriteCached => "write-cached",
        })
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Method::ALL.into_iter().chain([Method::WriteCached]);
        let found = all.find(|method| method.to_string() == text);
        found.ok_or_else(|| {
            format!("no method {text:?}: traditional, two-phase, disk-directed or write-cached")
        })
    }
}

impl fmt::Display for Queued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Queued::Never => "never",
            Queued::Always => "always",
            Queued::SmallRecords => "small-records",
        })
    }
}

impl FromStr for Queued {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = [Queued::Never, Queued::Always, Queued::SmallRecords]
            .into_iter()
            .find(|queued| queued.to_string() == text);
        found.ok_or_else(|| format!("expected never, always or small-records, not {text:?}"))
    }
}
