//! What came of a job.

use machine::Duration;

use crate::Latencies;

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
    }
}
