//! The outcome of a job.

use std::collections::BTreeSet;

use fs::{MoveTimes, Section, WriteCache};
use machine::{Duration, Machine};

use crate::{JobTimeline, Latencies};

/// Outcome of a job, or of one member's part in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Time from the common start until all requests were completed and all written data were on stable storage.
    pub elapsed: Duration,
    /// Duration of the flush at the end. It is part of `elapsed`.
    pub flush: Duration,
    /// Total time that all clients spent on generating the data that they wrote and on checking the data that they
    /// read. This time is part of `elapsed`, but of no latency.
    pub own_work: Duration,
    /// Bytes and latencies of reads.
    pub reads: Tally,
    /// Bytes and latencies of writes.
    pub writes: Tally,
    /// Latencies of operations on names, for jobs with such operations.
    pub names: Latencies,
    /// Statistics of the write cache, if the job used one.
    pub flushes: Option<FlushTally>,
    /// Progress over time, for a job that reads runs and writes a run with write-behind.
    pub timeline: Option<JobTimeline>,
}

/// Statistics of a job's write cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlushTally {
    /// Number of flushes, including the one at the end.
    pub flushes: u64,
    /// Numbers (from 1) of the flushes that a member requested because its directory was full.
    pub by_directory: BTreeSet<u32>,
    /// Number of blocks that the busiest disk wrote in the largest flush.
    pub blocks_most: u64,
    /// Number of blocks that the least busy disk wrote in the same flush.
    pub blocks_fewest: u64,
    /// Number of bytes that another member's later write in the same flush replaced.
    pub hidden_bytes: u64,
    /// Breakdown of the time of all flushes, from the member with the longest total time.
    pub times: MoveTimes,
}

impl FlushTally {
    /// Returns the statistics of one member, from its write cache.
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

    /// Returns the number of flushes that a member requested because its directory was full.
    pub fn directory_flushes(&self) -> u64 {
        self.by_directory.len() as u64
    }

    fn add(&mut self, other: &FlushTally) {
        self.flushes = self.flushes.max(other.flushes);
        self.by_directory.extend(&other.by_directory);
        // Take the maximum instead of the sum, because only one member knows these numbers.
        self.blocks_most = self.blocks_most.max(other.blocks_most);
        self.blocks_fewest = self.blocks_fewest.max(other.blocks_fewest);
        self.hidden_bytes = self.hidden_bytes.max(other.hidden_bytes);
        if other.times.total() > self.times.total() {
            self.times = other.times;
        }
    }
}

/// Bytes and latencies of requests of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Number of bytes of all requests.
    pub bytes: u64,
    /// Latencies, for jobs that measure them: the time from a read request until its data were received, or from a
    /// write request until an I/O node acknowledged it.
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

    /// Returns the number of requests.
    pub fn requests(&self) -> u64 {
        self.latencies.count()
    }
}

impl Outcome {
    /// Returns the number of bytes read and written.
    pub fn bytes(&self) -> u64 {
        self.reads.bytes + self.writes.bytes
    }

    /// Adds the outcome of another member that started at the same time.
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
        // A job with a timeline has only one member.
        self.timeline = self.timeline.take().or_else(|| other.timeline.clone());
    }
}
