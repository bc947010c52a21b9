//! What is kept of a trial: whole numbers, so that nothing is lost on the way to a file and back.

use description::MachineDescription;
use experiment::{PlacementCase, PlacementOutcome, Trial};
use machine::Duration;
use serde::{Deserialize, Serialize};

/// What was measured in one trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// Virtual time from the common start until all data are where they belong, in nanoseconds.
    pub elapsed_ns: u64,
    /// The bytes moved in it, for all compute nodes together.
    pub bytes_moved: u64,
    /// Disk movements of all disks in it.
    pub disk_movements: u64,
    /// What the write cache did, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes: Option<FlushCount>,
    /// What jobs that share disks did, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed: Option<PlacedMeasurement>,
    /// Timed events in it.
    pub events: u64,
    /// Messages in it.
    pub messages: u64,
    /// A mix of all events of the trial: equal for equal trials.
    pub digest: u64,
    /// The disks: arm moving, or medium passing for a purpose.
    pub disks: Busy,
    /// The buses: carrying bytes.
    pub buses: Busy,
    /// The links between nodes and the network, each direction by itself: held by a message.
    pub links: Busy,
    /// The links between routers, if there are any: held by a message.
    pub router_links: Busy,
    /// The processors of the compute nodes: threads and interrupts.
    pub compute_processors: Busy,
    /// The processors of the I/O nodes.
    pub io_processors: Busy,
}

/// What jobs that share disks did in a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedMeasurement {
    /// When each job was done, by number, in nanoseconds since the first began.
    pub ends_ns: Vec<u64>,
    /// Blocks that all jobs have read.
    pub blocks_read: u64,
    /// Blocks that all disks have written.
    pub blocks_written: u64,
    /// r: how long a disk took to read a block, on average, in nanoseconds.
    pub read_ns: u64,
    /// w: how long a disk took to write one.
    pub write_ns: u64,
    /// The most writes that were pending at one disk.
    pub pending_writes_most: u64,
    /// The most blocks of such writes.
    pub pending_blocks_most: u64,
    /// How fast a copy's queue grew that grew first, in thousandths of blocks a second, from a hundred blocks on to
    /// its longest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<u64>,
    /// Of each disk of a copy, the blocks that were pending at the beginning of each of [`BACKLOG_STEPS`] equal parts
    /// of the time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backlogs: Vec<Vec<u64>>,
}

/// In how many parts of its time a copy's queues are told.
pub const BACKLOG_STEPS: u64 = 128;

/// Blocks from which on a queue is one that grows: some reads' worth of writes, several times the threshold of a copy.
const GROWING_BLOCKS: u64 = 100;

impl PlacedMeasurement {
    /// What `trial` of `case` came to.
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

    /// f = w / r as it was measured, without unit.
    pub fn ratio(&self) -> f64 {
        self.write_ns as f64 / self.read_ns as f64
    }

    /// When the first job was done, in seconds.
    pub fn first_s(&self) -> f64 {
        let first = self.ends_ns.iter().min().copied().unwrap_or(0);
        Duration::from_nanos(first).as_secs_f64()
    }

    /// When the jobs were done, in seconds, in the order in which they were.
    pub fn finish_times(&self) -> Vec<f64> {
        let mut ends = self.ends_ns.clone();
        ends.sort_unstable();
        ends.into_iter().map(|end| Duration::from_nanos(end).as_secs_f64()).collect()
    }
}

/// The growth of the queue that grew first, unless none did.
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

/// What a write cache did in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlushCount {
    /// How often it was flushed.
    pub flushes: u64,
    /// How often because a directory was full.
    pub directory_flushes: u64,
    /// Blocks that the busiest disk wrote in the largest flush.
    pub blocks_of_a_disk_most: u64,
    /// Blocks that the idlest disk wrote in it.
    pub blocks_of_a_disk_fewest: u64,
    /// Mean latency of a write, in nanoseconds.
    pub write_mean_ns: u64,
    /// The latency that 99 % of the writes do not exceed.
    pub write_99_ns: u64,
    /// The longest.
    pub write_longest_ns: u64,
    /// Of all flushes together, in nanoseconds: telling the I/O nodes the directories, as the slowest member saw it.
    #[serde(default)]
    pub telling_ns: u64,
    /// Then waiting for the other members.
    #[serde(default)]
    pub meeting_ns: u64,
    /// Then the I/O nodes at work.
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
            telling_ns: tally.times.telling.as_nanos(),
            meeting_ns: tally.times.meeting.as_nanos(),
            moving_ns: tally.times.moving.as_nanos(),
        })
    }
}

/// How long the parts of one kind were busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Busy {
    /// How many there are.
    pub parts: u64,
    /// The busy time of all of them together, in nanoseconds.
    pub total_ns: u64,
    /// The busy time of the busiest, in nanoseconds.
    pub most_ns: u64,
}

impl Measurement {
    /// What a trial on this machine came to.
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

    /// Throughput in MiB/s.
    pub fn throughput_mib_s(&self) -> f64 {
        self.bytes_moved as f64 / f64::from(1 << 20) / self.elapsed_s()
    }

    /// Virtual time of the measured part, in seconds.
    pub fn elapsed_s(&self) -> f64 {
        Duration::from_nanos(self.elapsed_ns).as_secs_f64()
    }

    /// The part of the time in which `busy` parts were so, on average; `None` if there are none.
    ///
    /// Work counts in full when it begins, so the last may reach beyond the end; no part is called busier than all
    /// of the time for that.
    pub fn mean_utilisation(&self, busy: Busy) -> Option<f64> {
        let time = (busy.parts * self.elapsed_ns) as f64;
        (busy.parts > 0).then(|| (busy.total_ns as f64 / time).min(1.0))
    }

    /// The part of the time in which the busiest was busy; `None` if there are none.
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
