//! Examination of one agent: the agent reports on its disks and its computer.

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
    /// True if the agent answers.
    pub reachable: bool,
    /// Version of the agent's program.
    pub version: Option<String>,
    /// Number of disks.
    pub disks: usize,
    /// Number of free bytes on each disk; `None` if unknown.
    pub free_bytes: Vec<Option<u64>>,
    /// Size of each disk in bytes; `None` if unknown.
    pub disk_bytes: Vec<Option<u64>>,
    /// Number of the device, on the agent's computer, that holds each disk. `None` if unknown, or if the agent slows
    /// the disk down to the speed of a disk model.
    pub devices: Vec<Option<u64>>,
    /// Reasons for which disks of the agent cannot be used.
    pub failures: Vec<String>,
    /// For each disk, the reads that were delayed by another client's writes, if any.
    pub held_up: Vec<Option<HeldUpFinding>>,
    /// Identity of the agent's computer. Agents with equal identities run on the same computer.
    pub computer: Option<u64>,
    /// True if this program runs on the same computer.
    pub is_here: bool,
    /// Time until the agent answered, in milliseconds.
    pub round_trip_ms: Option<f64>,
    /// Seconds by which the agent's clock is ahead of this computer's clock.
    pub clock_ahead_s: Option<f64>,
    /// Median of the write measurements, in MiB/s.
    pub write_mib_s: Option<f64>,
    /// Median of the read measurements, in MiB/s.
    pub read_mib_s: Option<f64>,
    /// Write throughput of each round, in MiB/s.
    pub writes_mib_s: Vec<f64>,
    /// Read throughput of each round, in MiB/s.
    pub reads_mib_s: Vec<f64>,
    /// Share of the processors of the agent's computer that was used during the measurement by programs other than
    /// agents and this program.
    pub other_work: Option<f64>,
    /// Identity of the agent's node.
    #[serde(skip)]
    pub node: Option<NodeId>,
}

/// Reads that were delayed by many writes of another client.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HeldUpFinding {
    /// Number of delayed reads since the agent started.
    pub reads: u64,
    /// Maximum number of queued writes of one client while a read was delayed.
    pub writes_most: u64,
    /// Time since the last delayed read, in seconds.
    pub ago_s: f64,
}

impl From<HeldUpExamination> for HeldUpFinding {
    fn from(HeldUpExamination { reads, writes_most, ago }: HeldUpExamination) -> Self {
        HeldUpFinding { reads, writes_most, ago_s: ago.as_secs_f64() }
    }
}

/// Answer of an agent, and the time of the answer.
pub(crate) struct Examined {
    pub(crate) examination: Examination,
    pub(crate) node: NodeId,
    pub(crate) round_trip: Duration,
    /// Seconds by which the agent's clock is ahead.
    pub(crate) ahead: Option<f64>,
    /// State of the computer on which this program runs.
    pub(crate) own: Option<Computer>,
    pub(crate) at: Instant,
}

/// Requests an examination from the agent of this name. Connects with the settings of `connecting`.
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
        // A clock difference below the round-trip time cannot be measured.
        let ahead = ahead.map(|ahead| if ahead.abs() > round_trip.as_secs_f64() { ahead } else { 0.0 });
        let own = connection.machine.computer();
        Ok(Examined { examination, node, round_trip, ahead, own, at: Instant::now() })
    })
}

/// Share of a computer's processors above which the work of other programs makes the computer busy.
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

    /// Returns the findings about the agent of this name, according to its answer.
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
