//! What an agent says of itself, of its disks and of its computer.

use std::time::{Duration, Instant, SystemTime};

use fs::{DiskExamination, Examination, HeldUpExamination};
use machine::{Computer, Machine, NodeId};
use node::agents;
use serde::Serialize;

use command_line::failure::Result;
use transfer::cluster::Cluster;

/// What is known of an agent.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AgentFinding {
    /// What the user calls it.
    pub agent: String,
    /// Whether it answers as an agent.
    pub reachable: bool,
    /// Its version.
    pub version: Option<String>,
    /// Number of its disks.
    pub disks: usize,
    /// Bytes free on each disk, where known.
    pub free_bytes: Vec<Option<u64>>,
    /// Size of each disk, where known.
    pub disk_bytes: Vec<Option<u64>>,
    /// The device of its computer that each disk lies on, where known; not of disks that are slowed down to a model.
    pub devices: Vec<Option<u64>>,
    /// Why disks cannot be used, of those that cannot.
    pub failures: Vec<String>,
    /// For each disk, the reads that another client's writes have held up there, if any have been.
    pub held_up: Vec<Option<HeldUpFinding>>,
    /// Its computer: equal numbers, equal computers.
    pub computer: Option<u64>,
    /// Whether that is the one this program runs on.
    pub is_here: bool,
    /// Time until it answered, in milliseconds.
    pub round_trip_ms: Option<f64>,
    /// By how much its clock is ahead of this computer's.
    pub clock_ahead_s: Option<f64>,
    /// Of the rounds the median, in MiB/s.
    pub write_mib_s: Option<f64>,
    /// The same of reads.
    pub read_mib_s: Option<f64>,
    /// Each round.
    pub writes_mib_s: Vec<f64>,
    /// The same of reads.
    pub reads_mib_s: Vec<f64>,
    /// The share of its computer's processors that neither agents nor this program used while it was measured.
    pub other_work: Option<f64>,
    /// Its node.
    #[serde(skip)]
    pub node: Option<NodeId>,
}

/// Reads that had to wait while many writes of another client went on.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HeldUpFinding {
    /// How many there have been since the agent was started.
    pub reads: u64,
    /// The most writes of one client that waited then.
    pub writes_most: u64,
    /// How long ago the last of them was, in seconds.
    pub ago_s: f64,
}

impl From<HeldUpExamination> for HeldUpFinding {
    fn from(HeldUpExamination { reads, writes_most, ago }: HeldUpExamination) -> Self {
        HeldUpFinding { reads, writes_most, ago_s: ago.as_secs_f64() }
    }
}

/// An agent's answer, and when it came.
pub(crate) struct Examined {
    pub(crate) examination: Examination,
    pub(crate) node: NodeId,
    pub(crate) round_trip: Duration,
    /// By how many seconds its clock is ahead.
    pub(crate) ahead: Option<f64>,
    /// The computer this program runs on.
    pub(crate) own: Option<Computer>,
    pub(crate) at: Instant,
}

/// Asks the agent of this name how it is. Connects as `connecting` says.
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
        // It looked at its clock about in the middle.
        let ours = date.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() + round_trip / 2;
        let ahead = examination.date.map(|its| its.as_secs_f64() - ours.as_secs_f64());
        // Less than that nobody can tell.
        let ahead = ahead.map(|ahead| if ahead.abs() > round_trip.as_secs_f64() { ahead } else { 0.0 });
        let own = connection.machine.computer();
        Ok(Examined { examination, node, round_trip, ahead, own, at: Instant::now() })
    })
}

/// Other work that takes more of a computer's processors than this makes it busy.
const OTHER_WORK_MAX: f64 = 0.5;

impl AgentFinding {
    /// Whether other programs kept the agent's computer busy while it was measured.
    pub(crate) fn is_busy(&self) -> bool {
        self.other_work.is_some_and(|share| share > OTHER_WORK_MAX)
    }

    pub(crate) fn forget_measurements(&mut self) {
        self.writes_mib_s.clear();
        self.reads_mib_s.clear();
    }

    /// What an agent of this name has said of itself.
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
