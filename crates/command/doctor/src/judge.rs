//! Problems of agents, and notes about them.
//!
//! Slowness is relative. Measurements are compared for *units*, which are devices or computers (see below). A unit is
//! slow if its upper quartile (the second best of five measurements, the third best of ten) is below two thirds of the
//! median of the other units. So an occasional disturbance does not make an agent slow, and a single good measurement
//! does not hide that an agent is slow. (A disk may follow a delay with a burst.)
//!
//! - For writes, a unit is a device, because agents with disks on the same device disturb each other, so that a
//!   comparison between them would be meaningless. For reads, which the memory may serve, a unit is a computer.
//! - A unit is not compared with units that have an advantage: units on the computer of this program, which need no
//!   network, and units on computers with less work of other programs.

use command_line::failure::Failure;
use node::Size;

use crate::agent::{AgentFinding, HeldUpFinding};

/// Share of free space below which a disk is nearly full, unless it has [`FREE_BYTES_PLENTY`].
const FREE_SHARE_MIN: f64 = 0.02;

/// Number of free bytes above which a disk is not nearly full, however large the disk is.
const FREE_BYTES_PLENTY: u64 = 64 << 30;

/// Number of free bytes below which a disk is nearly full, unless the disk is small.
const FREE_BYTES_MIN: u64 = 1 << 30;

/// Maximum share of a disk that [`FREE_BYTES_MIN`] can be. On a smaller disk this share is the limit instead.
const FREE_SHARE_OF_SMALL: f64 = 0.1;

/// Clock difference in seconds above which times in logs of different agents cannot be compared.
const CLOCK_SECONDS_MAX: f64 = 1.0;

/// Share of the other units' throughput below which a unit is slow. Half would certainly be slow. Equal disks and
/// networks differ by some percent, and the upper quartile of five measurements hardly differs more.
const SLOW_SHARE: f64 = 2.0 / 3.0;

/// Remedy if a client delays other clients.
pub const KEEPS_APART: &str =
    "start agents with --scheduling round-robin or bounded-read-priority to isolate clients";

/// Maximum number of agents named in one sentence.
const NAMED_MAX: usize = 4;

/// Returns the problems of agents that answer.
pub(crate) fn problems(findings: &[AgentFinding]) -> Vec<Failure> {
    let mut problems: Vec<Failure> = findings.iter().flat_map(alone).collect();
    for (index, finding) in findings.iter().enumerate() {
        let same = |other: &&AgentFinding| other.node.is_some() && other.node == finding.node;
        if let Some(same) = findings[..index].iter().find(same) {
            let failure = about(&[finding], format!("it is the same agent as {}", same.agent));
            problems.push(failure.remedy("Name every agent once."));
        }
    }
    problems.extend(slow(&units(findings, shares_device, per_disk), &DISK));
    problems.extend(slow(&units(findings, shares_computer, |finding| best(&finding.reads_mib_s)), &NETWORK));
    problems
}

/// Returns notes that explain the figures without being problems.
pub(crate) fn notes(findings: &[AgentFinding]) -> Vec<String> {
    let mut notes = Vec::new();
    for unit in units(findings, shares_device, |_| None).iter().filter(|unit| unit.agents.len() > 1) {
        notes.push(format!(
            "{} share one disk. They are measured as one, and a file on all of them is no faster than that \
             disk.",
            capitalised(&names(&unit.agents))
        ));
    }
    for unit in units(findings, shares_computer, |_| None).iter().filter(|unit| unit.is_busy) {
        let share = unit.agents.iter().filter_map(|agent| agent.other_work).fold(0.0, f64::max);
        let whose = if unit.is_here {
            "This computer".to_owned()
        } else {
            format!("The computer of {}", names(&unit.agents))
        };
        notes.push(format!(
            "{whose} is busy: other programs used {:.0} % of its processors. The throughputs may be lower \
             than usual.",
            100.0 * share
        ));
    }
    notes.extend(findings.iter().flat_map(held_up));
    notes
}

/// Describes the disks of an agent on which a client waited for another client's writes.
fn held_up(finding: &AgentFinding) -> impl Iterator<Item = String> {
    let disks = finding.held_up.iter().enumerate().filter_map(|(disk, held_up)| Some((disk, (*held_up)?)));
    disks.map(|(disk, HeldUpFinding { reads, writes_most, ago_s })| {
        format!(
            "{}: {reads} reads from disk {disk} were delayed by writes of another client, of which up to \
             {writes_most} were queued; the last {ago_s:.0} s ago. If this slows programs down: \
             {KEEPS_APART}.",
            capitalised(&names(&[finding]))
        )
    })
}

fn alone(finding: &AgentFinding) -> Vec<Failure> {
    let mut problems = Vec::new();
    let ours = fs::RELEASE;
    if let Some(version) = finding.version.as_deref().filter(|version| *version != ours) {
        let failure = about(&[finding], format!("it has version {version}, and this program {ours}"));
        problems.push(failure.remedy("They are compatible, but install the same version on both."));
    }
    for why in &finding.failures {
        problems.push(
            about(&[finding], why.clone()).remedy("Is the disk mounted? Mount it and restart the agent."),
        );
    }
    for (disk, (free, bytes)) in finding.free_bytes.iter().zip(&finding.disk_bytes).enumerate() {
        let (Some(free), Some(bytes)) = (*free, *bytes) else { continue };
        if is_nearly_full(free, bytes) {
            let state = if free == 0 { "full" } else { "nearly full" };
            let (free, bytes) = (Size(free).rounded(), Size(bytes).rounded());
            let why = format!("disk {disk} is {state}: {free} of {bytes} free");
            problems.push(about(&[finding], why).remedy(
                "Every file needs space on every disk. Remove files with `starfish rm`, or free space on \
                 that disk.",
            ));
        }
    }
    if let Some(ahead) = finding.clock_ahead_s.filter(|ahead| ahead.abs() > CLOCK_SECONDS_MAX) {
        let side = if ahead > 0.0 { "ahead of" } else { "behind" };
        let failure = about(&[finding], format!("its clock is {:.1} s {side} this computer's", ahead.abs()));
        problems.push(failure.remedy("Synchronise both with a time server (chrony, systemd-timesyncd)."));
    }
    problems
}

fn is_nearly_full(free: u64, bytes: u64) -> bool {
    let of_all = |share: f64| (bytes as f64 * share) as u64;
    let share = of_all(FREE_SHARE_MIN).min(FREE_BYTES_PLENTY);
    free < FREE_BYTES_MIN.min(of_all(FREE_SHARE_OF_SMALL)).max(share)
}

/// Agents whose measurements are taken together: they share a device or a computer.
struct Unit<'a> {
    agents: Vec<&'a AgentFinding>,
    /// Upper quartile of the throughput, in MiB/s.
    best: Option<f64>,
    is_here: bool,
    is_busy: bool,
}

/// Groups the agents into units. Two agents belong to the same unit if they `share` something, directly or through
/// other agents.
fn units<'a>(
    findings: &'a [AgentFinding],
    share: fn(&AgentFinding, &AgentFinding) -> bool,
    best: impl Fn(&AgentFinding) -> Option<f64>,
) -> Vec<Unit<'a>> {
    let mut units: Vec<Vec<&AgentFinding>> = Vec::new();
    for finding in findings.iter().filter(|finding| finding.reachable) {
        let (same, others) = units
            .into_iter()
            .partition(|unit: &Vec<&AgentFinding>| unit.iter().any(|other| share(finding, other)));
        units = others;
        let mut joined: Vec<&AgentFinding> = same.into_iter().flatten().collect();
        joined.push(finding);
        units.push(joined);
    }
    let unit = |agents: Vec<&'a AgentFinding>| Unit {
        best: agents.iter().filter_map(|agent| best(agent)).reduce(f64::max),
        is_here: agents.iter().all(|agent| agent.is_here),
        is_busy: agents.iter().any(|agent| agent.is_busy()),
        agents,
    };
    units.into_iter().map(unit).collect()
}

fn shares_computer(one: &AgentFinding, other: &AgentFinding) -> bool {
    one.computer.is_some() && one.computer == other.computer
}

fn shares_device(one: &AgentFinding, other: &AgentFinding) -> bool {
    shares_computer(one, other)
        && one.devices.iter().flatten().any(|device| other.devices.contains(&Some(*device)))
}

/// Returns the upper quartile of the measurements.
fn best(measured: &[f64]) -> Option<f64> {
    let mut sorted = measured.to_vec();
    sorted.sort_by(|one, other| other.total_cmp(one));
    sorted.get(sorted.len() / 4).copied()
}

/// Returns the upper quartile of the write throughput, divided by the number of disks. Each write uses all disks of the
/// agent.
fn per_disk(finding: &AgentFinding) -> Option<f64> {
    best(&finding.writes_mib_s).map(|all| all / finding.disks.max(1) as f64)
}

/// Texts for a kind of measurement.
struct Measured {
    what: &'static str,
    does: &'static str,
    remedy: &'static str,
}

const DISK: Measured = Measured {
    what: "its disk is slow",
    does: "written",
    remedy: "A striped file is as fast as its slowest disk. Check for other programs that use the disk, and \
             for a failing disk (smartctl), or leave the agent out.",
};

const NETWORK: Measured = Measured {
    what: "its network is slow",
    does: "read",
    remedy: "A striped file is as fast as its slowest agent. Check for other traffic on its network, or \
             leave the agent out.",
};

/// Returns a failure for each unit that is much slower than the others.
fn slow(units: &[Unit<'_>], measured: &Measured) -> Vec<Failure> {
    let slow = units.iter().enumerate().filter_map(|(index, unit)| {
        let others = units.iter().enumerate().filter(|&(other, _)| other != index).map(|(_, other)| other);
        let fair =
            others.filter(|other| (other.is_busy || !unit.is_busy) && (!other.is_here || unit.is_here));
        let mut bests: Vec<f64> = fair.filter_map(|other| other.best).collect();
        bests.sort_by(f64::total_cmp);
        let usual = *bests.get(bests.len().checked_sub(1)? / 2)?;
        let own = unit.best.filter(|&own| own < SLOW_SHARE * usual)?;
        let Measured { what, does, remedy } = measured;
        let rounds = unit.agents.iter().map(|agent| agent.writes_mib_s.len()).max().unwrap_or(0);
        let why = format!(
            "{what}: at most about {own:.1} MiB/s {does} in {rounds} measurements; others reach {usual:.1} \
             MiB/s"
        );
        Some(about(&unit.agents, why).remedy(*remedy))
    });
    slow.collect()
}

fn about(agents: &[&AgentFinding], why: String) -> Failure {
    Failure::new(names(agents), why)
}

/// Returns the names of the agents, as the subject of a sentence.
fn names(agents: &[&AgentFinding]) -> String {
    let all: Vec<&str> = agents.iter().take(NAMED_MAX).map(|agent| &*agent.agent).collect();
    match agents.len() {
        1 => format!("agent {}", all[0]),
        count if count > NAMED_MAX => format!("agents {} and {} more", all.join(", "), count - NAMED_MAX),
        _ => format!("agents {}", all.join(", ")),
    }
}

/// Returns the text with a capital letter, for the beginning of a sentence.
fn capitalised(text: &str) -> String {
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    first.to_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use machine::NodeId;

    use super::*;

    fn finding(agent: &str) -> AgentFinding {
        AgentFinding {
            agent: agent.into(),
            reachable: true,
            version: Some(fs::RELEASE.into()),
            disks: 1,
            ..AgentFinding::default()
        }
    }

    /// Returns an agent on a separate computer, with these write measurements.
    fn writing(agent: &str, writes: &[f64]) -> AgentFinding {
        let computer = agent.bytes().map(u64::from).sum();
        AgentFinding { writes_mib_s: writes.to_vec(), computer: Some(computer), ..finding(agent) }
    }

    fn problem_lines(findings: &[AgentFinding]) -> String {
        problems(findings).iter().map(|problem| format!("{problem}\n")).collect()
    }

    #[test]
    fn healthy_agents_have_no_problems() {
        let well = AgentFinding {
            free_bytes: vec![Some(100 << 30)],
            disk_bytes: vec![Some(200 << 30)],
            clock_ahead_s: Some(-0.9),
            writes_mib_s: vec![50.0, 65.0],
            ..finding("a:1")
        };
        let faster = AgentFinding { agent: "b:1".into(), writes_mib_s: vec![90.0], ..well.clone() };
        let small = AgentFinding {
            free_bytes: vec![Some(20 << 20)],
            disk_bytes: vec![Some(20 << 20)],
            ..finding("a:2")
        };
        assert_eq!(problem_lines(&[well, faster, small, finding("c:1")]), "");
    }

    #[test]
    fn a_full_disk_a_wrong_clock_and_another_version_are_problems() {
        let sick = AgentFinding {
            free_bytes: vec![Some(3 << 30), None, Some(1 << 20), Some(0)],
            disk_bytes: vec![Some(200 << 30), None, Some(20 << 20), Some(20 << 20)],
            clock_ahead_s: Some(-75.0),
            version: Some("0.0.1".into()),
            ..finding("a:1")
        };
        let problems = problem_lines(&[sick]);
        for part in [
            "disk 0 is nearly full: 3.0 GiB of 200.0 GiB free",
            "disk 2 is nearly full: 1.0 MiB of 20.0 MiB free",
            "disk 3 is full: 0 B of 20.0 MiB free",
            "75.0 s behind",
            "version 0.0.1",
            "time server",
        ] {
            assert!(problems.contains(part), "{part}: {problems}");
        }
        assert!(!problems.contains("disk 1"), "{problems}");
    }

    #[test]
    fn a_large_disk_with_plenty_of_free_space_is_not_nearly_full() {
        let terabytes = |count: f64| (count * 1e12) as u64;
        assert!(!is_nearly_full(terabytes(1.9), terabytes(100.0)));
        assert!(is_nearly_full(terabytes(0.01), terabytes(100.0)));
        assert!(is_nearly_full(terabytes(0.01), terabytes(1.0)));
    }

    #[test]
    fn only_a_disk_that_is_slow_in_all_rounds_is_reported() {
        let well = || [writing("a:1", &[100.0, 90.0]), writing("c:1", &[30.0, 110.0])];
        for others in [&well()[..], &well()[..1]] {
            let slow = writing("b:1", &[49.0, 50.0, 20.0]);
            let problems = problem_lines(&[others, &[slow]].concat());
            assert!(
                problems.contains("agent b:1: its disk is slow: at most about 50.0 MiB/s written"),
                "{problems}"
            );
            assert!(
                problems.contains("others reach 100.0 MiB/s") && problems.contains("slowest disk"),
                "{problems}"
            );
            assert!(!problems.contains("agent a:1") && !problems.contains("agent c:1"), "{problems}");
        }
        let now_and_then = writing("b:1", &[10.0, 10.0, 80.0]);
        assert_eq!(problem_lines(&[&well()[..], &[now_and_then]].concat()), "");
        assert_eq!(problem_lines(&[writing("a:1", &[1.0])]), "");
        let by_a_burst =
            problem_lines(&[writing("a:1", &[19.0; 5]), writing("b:1", &[10.0, 9.0, 15.0, 9.0, 10.0])]);
        assert!(by_a_burst.contains("agent b:1") && by_a_burst.contains("10.0 MiB/s"), "{by_a_burst}");
    }

    #[test]
    fn an_agent_with_two_disks_is_judged_by_throughput_per_disk() {
        let two = |writes: &[f64]| AgentFinding { disks: 2, ..writing("b:1", writes) };
        assert_eq!(problem_lines(&[writing("a:1", &[20.0]), two(&[40.0])]), "");
        assert!(
            problem_lines(&[writing("a:1", &[20.0]), two(&[20.0])]).contains("agent b:1: its disk is slow")
        );
    }

    #[test]
    fn agents_that_share_a_disk_are_judged_together() {
        let on = |agent: &str, device: u64, writes: &[f64]| AgentFinding {
            computer: Some(1),
            devices: vec![Some(device)],
            ..writing(agent, writes)
        };
        let shared = [on("a:1", 5, &[100.0]), on("a:2", 5, &[10.0])];
        assert_eq!(problem_lines(&shared), "");
        assert_eq!(notes(&shared).len(), 1);
        assert!(notes(&shared)[0].starts_with("Agents a:1, a:2 share one disk."), "{:?}", notes(&shared));
        let of_another = AgentFinding { computer: Some(2), ..shared[1].clone() };
        assert_eq!(notes(&[shared[0].clone(), of_another]), [""; 0], "the number is of another computer");

        let slow = problem_lines(&[on("a:1", 5, &[30.0]), on("a:2", 5, &[10.0]), on("a:3", 6, &[100.0])]);
        assert!(slow.contains("agents a:1, a:2: its disk is slow: at most about 30.0 MiB/s"), "{slow}");
        let many: Vec<AgentFinding> = (0..64).map(|index| on(&format!("a:{index}"), 5, &[])).collect();
        assert!(notes(&many)[0].starts_with("Agents a:0, a:1, a:2, a:3 and 60 more share one disk"));
    }

    #[test]
    fn a_network_is_judged_by_the_fastest_agent_of_a_computer() {
        let reading = |agent: &str, computer: u64, reads: &[f64]| AgentFinding {
            reads_mib_s: reads.to_vec(),
            computer: Some(computer),
            ..finding(agent)
        };
        let two = [reading("a:1", 1, &[900.0]), reading("a:2", 1, &[100.0])];
        assert_eq!(problem_lines(&two), "");
        let third = problem_lines(&[&two[..], &[reading("b:1", 2, &[100.0])]].concat());
        assert!(third.contains("agent b:1: its network is slow: at most about 100.0 MiB/s read"), "{third}");
        // Agents on the computer of this program are read without a network.
        let here: Vec<AgentFinding> =
            two.iter().map(|agent| AgentFinding { is_here: true, ..agent.clone() }).collect();
        assert_eq!(problem_lines(&[&here[..], &[reading("b:1", 2, &[100.0])]].concat()), "");
    }

    #[test]
    fn a_busy_agent_is_compared_only_with_busy_agents() {
        let busy =
            |agent: &str, writes: &[f64]| AgentFinding { other_work: Some(0.9), ..writing(agent, writes) };
        assert_eq!(problem_lines(&[writing("a:1", &[100.0]), busy("b:1", &[20.0])]), "");
        assert!(problem_lines(&[busy("a:1", &[100.0]), busy("b:1", &[20.0])]).contains("agent b:1"));
        assert!(problem_lines(&[busy("a:1", &[100.0]), writing("b:1", &[20.0])]).contains("agent b:1"));
        let texts = notes(&[busy("a:1", &[]), writing("b:1", &[])]);
        assert_eq!(texts.len(), 1);
        assert!(
            texts[0].starts_with("The computer of agent a:1 is busy: other programs used 90 %"),
            "{texts:?}"
        );
        let here = notes(&[AgentFinding { is_here: true, ..busy("a:1", &[]) }]);
        assert!(here[0].starts_with("This computer is busy"), "{here:?}");
    }

    #[test]
    fn an_agent_with_two_addresses_is_reported() {
        let same = |agent| AgentFinding { node: Some(NodeId(7)), ..finding(agent) };
        assert!(
            problem_lines(&[same("a:1"), same("b:1")]).contains("agent b:1: it is the same agent as a:1")
        );
    }
}
