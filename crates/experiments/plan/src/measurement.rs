//! Stored data of a trial. All of them are whole numbers, so that a file preserves them exactly.

use description::MachineDescription;
use experiment::{PlacementCase, PlacementOutcome, Trial};
use machine::Duration;
use serde::{Deserialize, Serialize};

/// Measurement of one trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// Virtual time from the common start until all data are in place, in nanoseconds.
    pub elapsed_ns: u64,
    /// Number of bytes that all compute nodes transferred.
    pub bytes_moved: u64,
    /// Number of movements of all disks.
    pub disk_movements: u64,
    /// Statistics of the write cache, if the trial used one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes: Option<FlushCount>,
    /// Measurement of jobs that share disks, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed: Option<PlacedMeasurement>,
    /// Number of timed events.
    pub events: u64,
    /// Number of messages.
    pub messages: u64,
    /// Hash of all events of the trial. Equal trials have equal hashes.
    pub digest: u64,
    /// Busy times of the disks: arm movement, or rotation of the medium for a request.
    pub disks: Busy,
    /// Busy times of the buses: transfer of bytes.
    pub buses: Busy,
    /// Busy times of the links between nodes and the network, separately for each direction: a link is busy while a
    /// message occupies it.
    pub links: Busy,
    /// Busy times of the links between routers, if any: a link is busy while a message occupies it.
    pub router_links: Busy,
    /// Busy times of the compute nodes' processors: threads and interrupts.
    pub compute_processors: Busy,
    /// Busy times of the I/O nodes' processors.
    pub io_processors: Busy,
}

/// Measurement of jobs that share disks in a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedMeasurement {
    /// End of each job by number, in nanoseconds since the start of the first job.
    pub ends_ns: Vec<u64>,
    /// Number of blocks that all jobs have read.
    pub blocks_read: u64,
    /// Number of blocks that all disks have written.
    pub blocks_written: u64,
    /// r: mean time of a disk to read a block, in nanoseconds.
    pub read_ns: u64,
    /// w: mean time of a disk to write a block, in nanoseconds.
    pub write_ns: u64,
    /// Maximum number of pending writes at any disk.
    pub pending_writes_most: u64,
    /// Maximum number of blocks in pending writes at any disk.
    pub pending_blocks_most: u64,
    /// For a copy: growth rate of the first queue that grew, in thousandths of blocks per second, measured from a
    /// hundred blocks to the maximum of the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<u64>,
    /// For a copy: pending blocks of each disk, at the start of each of [`BACKLOG_STEPS`] equal parts of the time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backlogs: Vec<Vec<u64>>,
}

/// Number of equal parts of the time at which the queue lengths of a copy are stored.
pub const BACKLOG_STEPS: u64 = 128;

/// Minimum number of blocks of a queue that counts as growing: the writes of several reads, and several times the
/// threshold of a copy.
const GROWING_BLOCKS: u64 = 100;

impl PlacedMeasurement {
    /// Returns the measurement of `trial` of `case`.
    pub(crate) fn of(case: &PlacementCase, trial: &Trial) -> Self {
        let outcome = case.outcome(trial);
        let most = outcome.pending_most();
        PlacedMeasurement {
            ends_ns: outcome.ends.iter().map(|end| end.as_nanos()).collect(),
            blocks_read: outcome.blocks_read,
            blocks_written: outcome.blocks_written,
            read_ns: (outcome.read_ms * 1e6).round() as u64,
            write_ns: (outcome.write_ms * 1e6).round() as u64,
            pending_writes_most: most.writes,
            pending_blocks_most: most.blocks,
            growth: case.is_copy().then(|| growth(&outcome)).flatten(),
            backlogs: if case.is_copy() { backlogs(&outcome) } else { Vec::new() },
        }
    }

    /// Returns the measured f = w / r, without unit.
    pub fn ratio(&self) -> f64 {
        self.write_ns as f64 / self.read_ns as f64
    }

    /// Returns the end of the first job to finish, in seconds.
    pub fn first_s(&self) -> f64 {
        let first = self.ends_ns.iter().min().copied().unwrap_or(0);
        Duration::from_nanos(first).as_secs_f64()
    }

    /// Returns the ends of the jobs in seconds, in ascending order.
    pub fn finish_times(&self) -> Vec<f64> {
        let mut ends = self.ends_ns.clone();
        ends.sort_unstable();
        ends.into_iter().map(|end| Duration::from_nanos(end).as_secs_f64()).collect()
    }
}

/// Returns the growth rate of the queue that was the first to grow, or `None` if no queue grew.
fn growth(outcome: &PlacementOutcome) -> Option<u64> {
    let growing = outcome.backlogs.iter().filter_map(|all| Some((all.first_above(GROWING_BLOCKS)?, all)));
    let (begin, first) = growing.min_by_key(|(begin, _)| *begin)?;
    let end = first.first_above(first.most().blocks - 1)?;
    let growth = first.growth(begin, end).filter(|growth| *growth > 0.0)?;
    Some((growth * 1e3).round() as u64)
}

fn backlogs(outcome: &PlacementOutcome) -> Vec<Vec<u64>> {
    let at = |step| Duration::from_nanos(outcome.elapsed.as_nanos() / BACKLOG_STEPS * step);
    let of = |backlog: &experiment::DiskBacklog| {
        (0..BACKLOG_STEPS).map(|step| backlog.blocks_at(at(step))).collect()
    };
    outcome.backlogs.iter().map(of).collect()
}

/// Statistics of a write cache in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlushCount {
    /// Number of flushes.
    pub flushes: u64,
    /// Number of flushes because of a full directory.
    pub directory_flushes: u64,
    /// Number of blocks that the busiest disk wrote in the largest flush.
    pub blocks_of_a_disk_most: u64,
    /// Number of blocks that the least busy disk wrote in the same flush.
    pub blocks_of_a_disk_fewest: u64,
    /// Mean latency of a write, in nanoseconds.
    pub write_mean_ns: u64,
    /// Latency that 99 % of the writes do not exceed, in nanoseconds.
    pub write_99_ns: u64,
    /// Longest latency of a write, in nanoseconds.
    pub write_longest_ns: u64,
    /// Time in all flushes for sending the directories to the I/O nodes, at the slowest member, in nanoseconds.
    #[serde(default)]
    pub telling_ns: u64,
    /// Time in all flushes, after the sending, for waiting for the other members, in nanoseconds.
    #[serde(default)]
    pub meeting_ns: u64,
    /// Time in all flushes, after the waiting, for the work of the I/O nodes, in nanoseconds.
    #[serde(default)]
    pub moving_ns: u64,
}

impl FlushCount {
    fn of(trial: &Trial) -> Option<Self> {
        let tally = trial.flushes()?;
        let latencies = &trial.jobs.first()?.writes.latencies;
        let nanos = |latency: Option<Duration>| latency.map_or(0, Duration::as_nanos);
        Some(FlushCount {
            flushes: tally.flushes,
            directory_flushes: tally.directory_flushes(),
            blocks_of_a_disk_most: tally.blocks_most,
            blocks_of_a_disk_fewest: tally.blocks_fewest,
            write_mean_ns: nanos(latencies.mean()),
            write_99_ns: nanos(latencies.percentile(99.0)),
            write_longest_ns: nanos(latencies.longest()),
            telling_ns: tally.times.sending.as_nanos(),
            meeting_ns: tally.times.barrier.as_nanos(),
            moving_ns: tally.times.moving.as_nanos(),
        })
    }
}

/// Busy times of the parts of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Busy {
    /// Number of parts.
    pub parts: u64,
    /// Busy time of all parts together, in nanoseconds.
    pub total_ns: u64,
    /// Busy time of the busiest part, in nanoseconds.
    pub most_ns: u64,
}

impl Measurement {
    /// Returns the measurement of a trial on this machine.
    pub(crate) fn new(machine: &MachineDescription, trial: &Trial) -> Self {
        let statistics = &trial.statistics;
        let (compute, io) = statistics.nodes.split_at(machine.nodes.compute.value as usize);
        let links = statistics.nodes.iter().flat_map(|node| [node.link_out, node.link_in]);
        let processor = |node: &sim::NodeStatistics| node.processor_threads + node.processor_interrupts;
        Measurement {
            elapsed_ns: trial.elapsed.as_nanos(),
            bytes_moved: trial.bytes_moved,
            disk_movements: trial.disk_movements,
            flushes: FlushCount::of(trial),
            placed: None,
            events: trial.events,
            messages: statistics.messages,
            digest: trial.digest,
            disks: Busy::of(statistics.disks.iter().map(|disk| disk.mechanics.busy())),
            buses: Busy::of(statistics.buses.iter().map(|bus| bus.busy)),
            links: Busy::of(links.map(|link| link.held)),
            router_links: Busy::of(statistics.router_links.iter().map(|link| link.link.held)),
            compute_processors: Busy::of(compute.iter().map(processor)),
            io_processors: Busy::of(io.iter().map(processor)),
        }
    }

    /// Returns the throughput in MiB/s.
    pub fn throughput_mib_s(&self) -> f64 {
        self.bytes_moved as f64 / f64::from(1 << 20) / self.elapsed_s()
    }

    /// Returns the virtual time of the measured part, in seconds.
    pub fn elapsed_s(&self) -> f64 {
        Duration::from_nanos(self.elapsed_ns).as_secs_f64()
    }

    /// Returns the share of the time in which parts were busy, as the mean over the parts; `None` if there are no
    /// parts.
    ///
    /// All work counts at its start, so the last work may extend beyond the end of the measured time. Therefore the
    /// result is limited to 1.
    pub fn mean_utilisation(&self, busy: Busy) -> Option<f64> {
        let time = (busy.parts * self.elapsed_ns) as f64;
        (busy.parts > 0).then(|| (busy.total_ns as f64 / time).min(1.0))
    }

    /// Returns the share of the time in which the busiest part was busy; `None` if there are no parts.
    pub fn most_utilisation(&self, busy: Busy) -> Option<f64> {
        (busy.parts > 0).then(|| (busy.most_ns as f64 / self.elapsed_ns as f64).min(1.0))
    }
}

impl Busy {
    fn of(parts: impl Iterator<Item = Duration>) -> Busy {
        parts.map(|busy| busy.as_nanos()).fold(Busy::default(), |sum, busy| Busy {
            parts: sum.parts + 1,
            total_ns: sum.total_ns + busy,
            most_ns: sum.most_ns.max(busy),
        })
    }
}
