//! Counters of an I/O node's activity, and its present state, for monitoring.
//!
//! The parts of the node count each event, by an addition to a counter or to a step of a histogram. Times are measured
//! with the machine's clock. The present state is determined when it is requested. Counting does not change the
//! behaviour.
//!
//! - A counter named after an event only grows.
//! - Every access to a disk is counted once, with its wait in the queue and its time at the disk.
//! - A disk that does not answer does not delay a request for the counts: see `disk_health.rs`.

use std::rc::Rc;

use machine::{Machine, Space};

use super::IoNode;
use crate::settings::IoNodeSettings;
use crate::time_histogram::TimeHistogram;
use crate::traffic::TrafficCounts;

/// Activity of an I/O node since its start, and its present state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoNodeCounts {
    /// Served requests and transferred bytes.
    pub traffic: TrafficCounts,
    /// Number of requests that were refused because their client had too many requests in flight.
    pub refused: u64,
    /// Number of connected clients that have sent a request.
    pub clients: u64,
    /// Number of open stripes.
    pub open_stripes: u64,
    /// The threads, and the block requests that wait for a thread.
    pub pool: PoolCounts,
    /// The blocks in memory.
    pub cache: CacheCounts,
    /// The disks, in order of their indices.
    pub disks: Vec<IoNodeDiskCounts>,
}

/// The threads that serve block requests, and the requests waiting for a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounts {
    /// Number of demand requests waiting: a client waits for their answers.
    pub waiting_on_demand: u64,
    /// Number of background requests waiting.
    pub waiting_in_background: u64,
    /// Number of threads that serve a request.
    pub busy_threads: u64,
}

/// The cache of an I/O node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Number of reads whose bytes were all in the cache.
    pub hits: u64,
    /// Number of reads that had to wait for a disk, or for a prefetch in flight.
    pub misses: u64,
    /// Number of bytes of the reads whose bytes were all in the cache.
    pub hit_bytes: u64,
    /// Number of bytes of the reads that had to wait.
    pub missed_bytes: u64,
    /// Number of blocks that were read before any client had requested them.
    pub prefetches: u64,
    /// Maximum number of cached blocks.
    pub blocks_max: u64,
    /// Number of cached blocks.
    pub blocks: u64,
    /// Number of cached blocks with bytes that have not been written to their disk yet.
    pub dirty_blocks: u64,
    /// Number of these bytes.
    pub dirty_bytes: u64,
}

/// A disk of an I/O node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoNodeDiskCounts {
    /// Times for which accesses waited in the queue.
    pub waits: TimeHistogram,
    /// Times of reads at the disk.
    pub reads: TimeHistogram,
    /// Times of writes at the disk.
    pub writes: TimeHistogram,
    /// Times of flushes of an object to stable storage.
    pub flushes: TimeHistogram,
    /// Number of bytes that were read.
    pub bytes_read: u64,
    /// Number of bytes that were written.
    pub bytes_written: u64,
    /// Number of reads, writes and flushes that failed.
    pub failures: u64,
    /// Number of reads that were delayed by writes of other jobs, which can indicate a race.
    pub held_up_reads: u64,
    /// Number of accesses waiting in the queue.
    pub waiting: u64,
    /// Number of bytes of writes in the queue or at the disk.
    pub pending_write_bytes: u64,
    /// Space of the disk; `None` if unknown.
    pub space: Option<Space>,
    /// True if the disk answers in time when it is asked for its space.
    pub answers: bool,
}

/// An I/O node, with an interface to run and monitor it.
pub struct IoNodeService<M: Machine>(Rc<IoNode<M>>);

impl<M: Machine> Clone for IoNodeService<M> {
    fn clone(&self) -> Self {
        IoNodeService(self.0.clone())
    }
}

impl<M: Machine> IoNodeService<M> {
    /// Creates an I/O node on this machine. It does not serve requests yet.
    pub fn new(machine: M, settings: IoNodeSettings) -> Self {
        IoNodeService(Rc::new(IoNode::new(machine, settings)))
    }

    /// Serves requests until the network is closed, and then writes all dirty blocks to stable storage.
    ///
    /// # Errors
    /// If the node cannot continue, or some data could not be written.
    pub async fn serve(&self) -> machine::Result<()> {
        let node = &self.0;
        node.endpoint.clone().listen(node).await?;
        node.write_out_all().await
    }

    /// Returns the node's activity and present state. Completes within about a second, even if disks do not
    /// answer.
    pub async fn counts(&self) -> IoNodeCounts {
        let node = &self.0;
        let health = node.disk_health.ask().await;
        let mut disks = node.disks.counts();
        for (disk, health) in disks.iter_mut().zip(health) {
            disk.answers = health.is_ok();
            disk.space = health.ok().flatten();
        }
        IoNodeCounts {
            traffic: node.endpoint.traffic.counts(),
            refused: node.refused.get(),
            clients: node.accounts.count(),
            open_stripes: node.stripes.count(),
            pool: node.pool.counts(),
            cache: node.blocks.counts(),
            disks,
        }
    }

    /// Returns true if this node is the metadata server, and the disks may still store contents of removed files that
    /// no client has open.
    pub async fn has_removed_files(&self) -> bool {
        self.0.metadata_server.has_removed_files().await
    }
}
