//! What an I/O node has done, and its present state, in numbers, for those who watch it.
//!
//! The parts of the node count as they go: an addition each, or a step of a histogram; times are the machine's. The
//! present state is looked up when it is asked for. Counting changes nothing that happens.
//!
//! - A number that is named after something done only grows.
//! - Every access that has had its turn at a disk is counted once, with its wait before and its time at the disk.
//! - A disk that does not answer delays no answer with numbers: see `disk_health.rs`.

use std::rc::Rc;

use machine::{Machine, Space};

use super::IoNode;
use crate::settings::IoNodeSettings;
use crate::time_histogram::TimeHistogram;
use crate::traffic::TrafficCounts;

/// What an I/O node has done since its start, and has now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoNodeCounts {
    /// What it has served and moved.
    pub traffic: TrafficCounts,
    /// Requests refused because their client had too many under way already.
    pub refused: u64,
    /// The clients that are there and have asked for anything but blocks.
    pub clients: u64,
    /// The stripes that are open now.
    pub open_stripes: u64,
    /// The requests for blocks that wait for a thread.
    pub pool: PoolCounts,
    /// The blocks in memory.
    pub cache: CacheCounts,
    /// The disks, in their order.
    pub disks: Vec<IoNodeDiskCounts>,
}

/// The threads that serve requests for blocks, and the requests that wait for one now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounts {
    /// Requests that wait on demand: a client waits for their answers.
    pub waiting_on_demand: u64,
    /// Requests that wait in the background.
    pub waiting_in_background: u64,
    /// Threads that serve a request.
    pub busy_threads: u64,
}

/// The cache of an I/O node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Reads that found all they wanted.
    pub hits: u64,
    /// Reads that had to wait for a disk, or for a prefetch that was under way.
    pub misses: u64,
    /// Bytes of the reads that found all they wanted.
    pub hit_bytes: u64,
    /// Bytes of the others.
    pub missed_bytes: u64,
    /// Blocks of which a read was begun before any client had asked for them.
    pub prefetches: u64,
    /// How many blocks there may be.
    pub blocks_max: u64,
    /// How many there are.
    pub blocks: u64,
    /// How many of them have bytes that are not at their disk.
    pub dirty_blocks: u64,
    /// How many such bytes there are.
    pub dirty_bytes: u64,
}

/// A disk of an I/O node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoNodeDiskCounts {
    /// How long accesses have waited for their turn.
    pub waits: TimeHistogram,
    /// How long reads were at the disk.
    pub reads: TimeHistogram,
    /// How long writes were at the disk.
    pub writes: TimeHistogram,
    /// How long it took to bring an object onto the medium.
    pub flushes: TimeHistogram,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Reads, writes and flushes that failed.
    pub failures: u64,
    /// Reads that were held up by writes of others: a race may be on.
    pub held_up_reads: u64,
    /// Accesses that wait for their turn now.
    pub waiting: u64,
    /// Bytes of writes that wait for their turn or have it.
    pub pending_write_bytes: u64,
    /// How much it holds; none if that is not known.
    pub space: Option<Space>,
    /// Whether it says how much it holds, and in time.
    pub answers: bool,
}

/// An I/O node, for who starts it and watches it.
pub struct IoNodeService<M: Machine>(Rc<IoNode<M>>);

impl<M: Machine> Clone for IoNodeService<M> {
    fn clone(&self) -> Self {
        IoNodeService(self.0.clone())
    }
}

impl<M: Machine> IoNodeService<M> {
    /// An I/O node of this machine, which does not serve yet.
    pub fn new(machine: M, settings: IoNodeSettings) -> Self {
        IoNodeService(Rc::new(IoNode::new(machine, settings)))
    }

    /// Serves requests until the network is closed, then writes out what the cache still holds.
    ///
    /// # Errors
    /// If the node cannot go on, or not all could be written out.
    pub async fn serve(&self) -> machine::Result<()> {
        let node = &self.0;
        node.endpoint.clone().listen(node).await?;
        node.write_out_all().await
    }

    /// What the node has done, and its present state. Answers within about a second, even if disks do not answer.
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

    /// Returns true if this node is the metadata server and the disks may hold contents of removed files that no client
    /// has open.
    pub async fn has_removed_files(&self) -> bool {
        self.0.keeper.has_removed_files().await
    }
}
