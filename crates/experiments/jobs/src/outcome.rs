//! The outcome of a job.

use std::collections::BTreeSet;

use fs::{MoveTimes, Section, WriteCache};
use machine::{Duration, Machine};

use crate::{JobTimeline, Latencies};

/// What came of a job, or of one member's part in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// From the common start until all requests were answered and all that was written was on the media.
    pub elapsed: Duration,
    /// How long the flush at the end took of that.
    pub flush: Duration,
    /// How long clients were busy making what they wrote and checking what they read, all of them together. It is part
    /// of the elapsed time, but of no latency.
    pub own_work: Duration,
    /// What was read.
    pub reads: Tally,
    /// What was written.
    pub writes: Tally,
    /// How long each operation on names took; of a job that does such.
    pub names: Latencies,
    /// What the write cache did, if there was one.
    pub flushes: Option<FlushTally>,
    /// What it did when, of a job that reads runs and writes behind.
    pub timeline: Option<JobTimeline>,
}

/// What the write cache of a job did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlushTally {
    /// How often it was flushed, the last time at the end.
    pub flushes: u64,
    /// Which of these flushes, counted from 1, a member asked for because its directory was full.
    pub by_directory: BTreeSet<u32>,
    /// Blocks that the busiest disk wrote in the largest flush.
    pub blocks_most: u64,
    /// Blocks that the idlest disk wrote in it.
    pub blocks_fewest: u64,
    /// Bytes that gave way to what another member had written later, in the same flush.
    pub hidden_bytes: u64,
    /// Where the time of all flushes went, as the member saw it for which they took longest.
    pub times: MoveTimes,
}

impl FlushTally {
    /// The tally of one member, from its write cache.
    pub(crate) fn of<M: Machine>(cache: &WriteCache<M>) -> Self {
        let of_directory = |(flush, section)| (section == Section::Directory).then_some(flush);
        let moved = cache.moved();
        let fullest = moved.iter().max_by_key(|moved| moved.blocks.iter().sum::<u64>());
        let blocks = fullest.map_or(&[][..], |moved| &moved.blocks);
        let mut times = MoveTimes::default();
        moved.iter().for_each(|moved| times.add(&moved.times));
        FlushTally {
            flushes: u64::from(cache.flushes()),
            by_directory: cache.causes().into_iter().filter_map(of_directory).collect(),
            blocks_most: blocks.iter().copied().max().unwrap_or(0),
            blocks_fewest: blocks.iter().copied().min().unwrap_or(0),
            hidden_bytes: moved.iter().map(|moved| moved.hidden).sum(),
            times,
        }
    }

    /// How many flushes a member asked for because its directory was full.
    pub fn directory_flushes(&self) -> u64 {
        self.by_directory.len() as u64
    }

    fn add(&mut self, other: &FlushTally) {
        self.flushes = self.flushes.max(other.flushes);
        self.by_directory.extend(&other.by_directory);
        // One member knows of the disks.
        self.blocks_most = self.blocks_most.max(other.blocks_most);
        self.blocks_fewest = self.blocks_fewest.max(other.blocks_fewest);
        self.hidden_bytes = self.hidden_bytes.max(other.hidden_bytes);
        if other.times.total() > self.times.total() {
            self.times = other.times;
        }
    }
}

/// Requests of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Bytes of all of them.
    pub bytes: u64,
    /// From asking for each to having its data, or knowing that an I/O node has them; of jobs that measure this.
    pub latencies: Latencies,
}

impl Tally {
    pub(crate) fn take_in(&mut self, bytes: u64, latency: Duration) {
        self.bytes += bytes;
        self.latencies.record(latency);
    }

    fn add(&mut self, other: &Tally) {
        self.bytes += other.bytes;
        self.latencies.add(&other.latencies);
    }

    /// How many requests there were.
    pub fn requests(&self) -> u64 {
        self.latencies.count()
    }
}

impl Outcome {
    /// Bytes moved, both ways.
    pub fn bytes(&self) -> u64 {
        self.reads.bytes + self.writes.bytes
    }

    /// Takes in what came of another member that began at the same time.
    pub fn add(&mut self, other: &Outcome) {
        self.elapsed = self.elapsed.max(other.elapsed);
        self.flush = self.flush.max(other.flush);
        self.own_work += other.own_work;
        self.reads.add(&other.reads);
        self.writes.add(&other.writes);
        self.names.add(&other.names);
        if let Some(flushes) = &other.flushes {
            self.flushes.get_or_insert_default().add(flushes);
        }
        // Such a job has one member.
        self.timeline = self.timeline.take().or_else(|| other.timeline.clone());
    }
}
