//! Examination of one agent: its own report of its disks and its computer.

use std::time::{Duration, Instant, SystemTime};

use fs::{DiskExamination, Examination, HeldUpExamination};
use machine::{Computer, Machine, NodeId};
use node::agents;
use serde::Serialize;

use command_line::failure::Result;
use transfer::cluster::Cluster;

/// Findings about an agent.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AgentFinding {
    /// Name of the agent, as the user gave it.
    pub agent: String,
    /// True if it answers as an agent.
    pub reachable: bool,
    /// Version of the agent's program.
    pub version: Option<String>,
    /// Number of disks.
    pub disks: usize,
    /// Bytes free on each disk, where known.
    pub free_bytes: Vec<Option<u64>>,
    /// Size of each disk in bytes, where known.
    pub disk_bytes: Vec<Option<u64>>,
    /// Device of the agent's computer that holds each disk, where known; `None` for disks that are slowed down to a
    /// model.
    pub devices: Vec<Option<u64>>,
    /// Reasons for which disks cannot be used.
    pub failures: Vec<String>,
    /// For each disk, the reads delayed by another client's writes, if any.
    pub held_up: Vec<Option<HeldUpFinding>>,
    /// Identity of its computer: equal numbers mean the same computer.
    pub computer: Option<u64>,
    /// True if this program runs on the same computer.
    pub is_here: bool,
    /// Time until it answered, in milliseconds.
    pub round_trip_ms: Option<f64>,
    /// Seconds by which its clock is ahead of this computer's.
    pub clock_ahead_s: Option<f64>,
    /// Median of the write measurements, in MiB/s.
    pub write_mib_s: Option<f64>,
    /// Median of the read measurements, in MiB/s.
    pub read_mib_s: Option<f64>,
    /// Write throughput of each round, in MiB/s.
    pub writes_mib_s: Vec<f64>,
    /// Read throughput of each round, in MiB/s.
    pub reads_mib_s: Vec<f64>,
    /// Share of its computer's processors used by other programs during the measurement, without agents and this
    /// program.
    pub other_work: Option<f64>,
    /// Identity of its node.
    #[serde(skip)]
    pub node: Option<NodeId>,
}

/// Reads delayed by many writes of another client.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HeldUpFinding {
    /// Number of delayed reads since the agent started.
    pub reads: u64,
    /// Maximum number of waiting writes of one client at such a time.
    pub writes_most: u64,
    /// Time since the last delayed read, in seconds.
    pub ago_s: f64,
}

impl From<HeldUpExamination> for HeldUpFinding {
    fn from(HeldUpExamination { reads, writes_most, ago }: HeldUpExamination) -> Self {
        HeldUpFinding { reads, writes_most, ago_s: ago.as_secs_f64() }
    }
}

/// Answer of an agent, and its time.
pub(crate) struct Examined {
    pub(crate) examination: Examination,
    pub(crate) node: NodeId,
    pub(crate) round_trip: Duration,
    /// Seconds by which its clock is ahead.
    pub(crate) ahead: Option<f64>,
    /// Computer that runs this program.
    pub(crate) own: Option<Computer>,
    pub(crate) at: Instant,
}

/// Asks the agent of this name for an examination. Connects with the settings of `connecting`.
#[expect(clippy::disallowed_methods, reason = "clocks on the wall are compared")]
pub(crate) fn examine(connecting: &Cluster, name: &str) -> Result<Examined> {
    let cluster = connecting.with_agents(agents::named([name])?);
    let name = name.to_owned();
    cluster.run(|connection| async move {
        let client = &connection.client;
        let node = client.io_nodes()[0];
        let (asked, date) = (Instant::now(), SystemTime::now());
        let examination = connection.explained(&name, client.examine(node).await)?;
        let round_trip = asked.elapsed();
        // The agent read its clock at about the middle of the round trip.
        let ours = date.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() + round_trip / 2;
        let ahead = examination.date.map(|its| its.as_secs_f64() - ours.as_secs_f64());
        // A difference below the round-trip time cannot be measured.
        let ahead = ahead.map(|ahead| if ahead.abs() > round_trip.as_secs_f64() { ahead } else { 0.0 });
        let own = connection.machine.computer();
        Ok(Examined { examination, node, round_trip, ahead, own, at: Instant::now() })
    })
}

/// Share of a computer's processors from which other work makes it busy.
const OTHER_WORK_MAX: f64 = 0.5;

impl AgentFinding {
    /// True if other programs kept the agent's computer busy during the measurement.
    pub(crate) fn is_busy(&self) -> bool {
        self.other_work.is_some_and(|share| share > OTHER_WORK_MAX)
    }

    pub(crate) fn forget_measurements(&mut self) {
        self.writes_mib_s.clear();
        self.reads_mib_s.clear();
    }

    /// Returns the findings in the answer of the agent with this name.
    pub(crate) fn of(name: &str, examined: &Examined) -> AgentFinding {
        let Examination { release, disks, computer, .. } = &examined.examination;
        let space = |disk: &DiskExamination| disk.space;
        let computer = computer.map(|computer| computer.id);
        AgentFinding {
            agent: name.to_owned(),
            reachable: true,
            version: Some(release.clone()),
            disks: disks.len(),
            free_bytes: disks.iter().map(|disk| space(disk).map(|space| space.free)).collect(),
            disk_bytes: disks.iter().map(|disk| space(disk).map(|space| space.bytes)).collect(),
            devices: disks.iter().map(|disk| disk.device.filter(|_| !disk.has_own_pace)).collect(),
            failures: disks.iter().filter_map(|disk| disk.failure.clone()).collect(),
            held_up: disks.iter().map(|disk| disk.held_up.map(HeldUpFinding::from)).collect(),
            computer,
            is_here: computer.is_some() && computer == examined.own.map(|own| own.id),
            round_trip_ms: Some(examined.round_trip.as_secs_f64() * 1e3),
            clock_ahead_s: examined.ahead,
            node: Some(examined.node),
            ..AgentFinding::default()
        }
    }
}
