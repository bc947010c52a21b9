//! `starfish doctor`: what is wrong with the agents, and what to do about it.
//!
//! Each agent is asked on its own, all at once; then each is measured, one after the other, so that none disturbs
//! another. What is wrong is told as failures are: what, why, and a remedy.

use std::io::{self, Read};
use std::time::{Duration, Instant, SystemTime};

use clap::{Args, ValueEnum};
use fs::{Examination, FileId};
use machine::NodeId;
use pdiol::Agent;
use serde::Serialize;

use crate::agent_set::at_once;
use crate::failure::{Failure, Result};
use crate::interrupt::Interruption;
use crate::local::{self, Hashing};
use crate::node;
use crate::progress::{Progress, Show};
use crate::store::agents::AgentsArgs;
use crate::store::session::{self, Session};
use crate::store::stream;
use crate::table::Table;
use pdiol::Size;

/// Look for what is wrong with the agents, and say what to do about it.
///
/// Asks each agent for its version, its disks with the space that is free, and its clock, and measures how fast it
/// writes and reads a temporary file. Writing is to its disks; reading may be from its memory, so that tells of the
/// network. Ends with what is wrong, and with exit code 1 if something is.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    agents: AgentsArgs,

    /// Without the measurement, which takes up to four seconds for each agent.
    #[arg(long)]
    quick: bool,

    /// Size of the temporary file on each agent; less is written to a slow one.
    #[arg(long, value_name = "SIZE", default_value = "32MiB", value_parser = measured)]
    file_size: Size,

    /// How to print what was found.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

const EXAMPLES: &str = "\
Examples:
  starfish doctor                                  of the agents that are configured, or were started last
  starfish doctor --agents node1:7117,node2:7117 --quick
  starfish doctor --format json | jq .problems";

/// How findings are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for people.
    Table,
    /// Comma-separated values, a row for each agent; what is wrong goes to standard error.
    Csv,
    /// One JSON object.
    Json,
}

/// A disk with less than this is nearly full, whatever its size.
const FREE_BYTES_MIN: u64 = 1 << 30;

/// A disk of which less than one part in so many is free is nearly full.
const FREE_PARTS: u64 = 50;

/// Clocks that differ by more make the times in logs useless.
const CLOCK_SECONDS_MAX: f64 = 1.0;

/// An agent is slow if its throughput is less than this share of the median.
const SLOW_SHARE: f64 = 0.5;

/// Longer than this no agent is written to.
const WRITING_MAX: Duration = Duration::from_secs(2);

/// The blocks of the temporary file; no agent allows less.
const BLOCK_BYTES: u64 = 64 << 10;

fn measured(text: &str) -> std::result::Result<Size, String> {
    let size: Size = text.parse()?;
    if (BLOCK_BYTES..=64 << 30).contains(&size.0) {
        Ok(size)
    } else {
        Err("expected from 64KiB to 64GiB".into())
    }
}

/// What is known of an agent.
#[derive(Clone, Debug, Default, Serialize)]
struct Finding {
    agent: String,
    /// Whether it answers as an agent.
    reachable: bool,
    version: Option<String>,
    disks: usize,
    /// Bytes free on each disk, where known.
    free_bytes: Vec<Option<u64>>,
    /// Size of each disk, where known.
    disk_bytes: Vec<Option<u64>>,
    round_trip_ms: Option<f64>,
    /// By how much its clock is ahead of this computer's.
    clock_ahead_s: Option<f64>,
    write_mib_s: Option<f64>,
    read_mib_s: Option<f64>,
    #[serde(skip)]
    node: Option<NodeId>,
}

/// What is wrong, as JSON has it.
#[derive(Serialize)]
struct Report<'a> {
    agents: &'a [Finding],
    problems: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let names = arguments.agents.names()?;
    let (mut findings, mut problems) = (Vec::new(), Vec::new());
    for (name, examined) in names.iter().zip(at_once(&names, |name| examine(name))) {
        let found = examined.unwrap_or_else(|failure| {
            problems.push(failure);
            Finding { agent: name.clone(), ..Finding::default() }
        });
        findings.push(found);
    }
    if !arguments.quick {
        measure_all(&mut findings, arguments.file_size.0, &mut problems)?;
    }
    problems.extend(judge(&findings));
    print(arguments.format, &findings, &problems)?;
    match problems.len() {
        0 => Ok(()),
        1 => Err(Failure::new("doctor", "one thing is wrong")),
        count => Err(Failure::new("doctor", format!("{count} things are wrong"))),
    }
}

#[expect(clippy::disallowed_methods, reason = "clocks on the wall are compared")]
fn examine(name: &str) -> Result<Finding> {
    let agent = Agent::named(name)?;
    let name = agent.name.clone();
    session::run(vec![agent], |session| async move {
        let client = &session.client;
        let node = client.io_nodes()[0];
        let (asked, date) = (Instant::now(), SystemTime::now());
        let Examination { release, date: its, disks } = session.told(&name, client.examine(node).await)?;
        let round_trip = asked.elapsed();
        // It looked at its clock about in the middle.
        let ours = date.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() + round_trip / 2;
        let ahead = its.map(|its| its.as_secs_f64() - ours.as_secs_f64());
        Ok(Finding {
            agent: name,
            reachable: true,
            version: Some(release),
            disks: disks.len(),
            free_bytes: disks.iter().map(|disk| disk.map(|space| space.free)).collect(),
            disk_bytes: disks.iter().map(|disk| disk.map(|space| space.bytes)).collect(),
            round_trip_ms: Some(round_trip.as_secs_f64() * 1e3),
            // Less than that nobody can tell.
            clock_ahead_s: ahead
                .map(|ahead| if ahead.abs() > round_trip.as_secs_f64() { ahead } else { 0.0 }),
            node: Some(node),
            ..Finding::default()
        })
    })
}

/// Measures one agent after the other.
fn measure_all(findings: &mut [Finding], bytes: u64, problems: &mut Vec<Failure>) -> Result<()> {
    let interruption = Interruption::prepare()?;
    let progress = Progress::count(Show::Auto, "measuring", findings.len() as u64);
    for finding in findings.iter_mut() {
        if finding.reachable {
            match measure(&finding.agent, bytes, interruption.clone()) {
                Ok((write, read)) => (finding.write_mib_s, finding.read_mib_s) = (Some(write), Some(read)),
                Err(failure) => problems.push(failure),
            }
        }
        progress.add(1);
    }
    progress.finish();
    Ok(())
}

/// Writes a temporary file to the agent's disks, reads it and removes it. Returns both throughputs in MiB/s.
fn measure(name: &str, bytes: u64, interruption: Interruption) -> Result<(f64, f64)> {
    let agent = Agent::named(name)?;
    let (owned, file) = (name.to_owned(), format!("starfish-doctor-{:016x}", node::random()?));
    session::run(vec![agent], move |session| async move {
        let remedy = format!("Remove it with `starfish rm {file} --agents {owned}`.");
        let left = Failure::new(&file, "it may be left, there was no time to remove it").remedy(remedy);
        let half_done = interruption.begin(left);
        let measured = interruption.unless(write_and_read(&session, &file, bytes)).await;
        let removed = match session.client.unlink(&file).await {
            Err(error) if matches!(*error, fs::Error::NotFound { .. }) => Ok(()),
            other => session.told(&file, other),
        };
        match measured {
            None => Err(half_done.undone("doctor", removed)),
            Some(measured) => measured.and_then(|measured| removed.map(|()| measured)),
        }
    })
}

async fn write_and_read(session: &Session, name: &str, bytes: u64) -> Result<(f64, f64)> {
    let created = session.client.create(name, FileId(node::random()?), BLOCK_BYTES).await;
    let file = session.told(name, created)?;
    let progress = Progress::bytes(Show::Never, name);
    let input = Hashing::new(Zeros { left: bytes, until: Instant::now() + WRITING_MAX }, false);
    let start = Instant::now();
    let (_, written) = stream::upload(session, &file, input, &progress).await?;
    let write = mib_s(written, start.elapsed());
    let file = session.open(name).await?;
    let start = Instant::now();
    stream::download(session, &file, Hashing::new(io::sink(), false), &progress).await?;
    Ok((write, mib_s(written, start.elapsed())))
}

fn mib_s(bytes: u64, elapsed: Duration) -> f64 {
    bytes as f64 / f64::from(1 << 20) / elapsed.as_secs_f64()
}

/// So many bytes, fewer if they take long.
struct Zeros {
    left: u64,
    until: Instant,
}

impl Read for Zeros {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if Instant::now() > self.until {
            return Ok(0);
        }
        let count = (into.len() as u64).min(self.left) as usize;
        into[..count].fill(0);
        self.left -= count as u64;
        Ok(count)
    }
}

/// What is wrong with agents that answer.
fn judge(findings: &[Finding]) -> Vec<Failure> {
    let mut problems: Vec<Failure> = findings.iter().flat_map(judge_alone).collect();
    for (index, finding) in findings.iter().enumerate() {
        let same = |other: &&Finding| other.node.is_some() && other.node == finding.node;
        if let Some(same) = findings[..index].iter().find(same) {
            let failure = about(finding, format!("it is the same agent as {}", same.agent));
            problems.push(failure.remedy("Name every agent once."));
        }
    }
    problems.extend(slow(findings, "writes", |finding| finding.write_mib_s));
    problems.extend(slow(findings, "reads", |finding| finding.read_mib_s));
    problems
}

fn judge_alone(finding: &Finding) -> Vec<Failure> {
    let mut problems = Vec::new();
    let ours = fs::RELEASE;
    if let Some(version) = finding.version.as_deref().filter(|version| *version != ours) {
        let failure = about(finding, format!("it is of version {version}, and this program of {ours}"));
        problems.push(failure.remedy("They understand each other, but install the same version on both."));
    }
    for (disk, (free, bytes)) in finding.free_bytes.iter().zip(&finding.disk_bytes).enumerate() {
        let (Some(free), Some(bytes)) = (*free, *bytes) else { continue };
        if free < FREE_BYTES_MIN.max(bytes / FREE_PARTS) {
            let why = format!("disk {disk} is nearly full: {} of {} free", gib(free), gib(bytes));
            problems.push(about(finding, why).remedy(
                "Every file needs space on every disk. Remove some with `starfish rm`, or make room there.",
            ));
        }
    }
    if let Some(ahead) = finding.clock_ahead_s.filter(|ahead| ahead.abs() > CLOCK_SECONDS_MAX) {
        let side = if ahead > 0.0 { "ahead of" } else { "behind" };
        let failure = about(finding, format!("its clock is {:.1} s {side} this computer's", ahead.abs()));
        problems.push(failure.remedy("Let both follow a time server (chrony, systemd-timesyncd)."));
    }
    problems
}

/// The agents that are much slower than the median one.
fn slow(findings: &[Finding], verb: &str, throughput: impl Fn(&Finding) -> Option<f64>) -> Vec<Failure> {
    let mut all: Vec<f64> = findings.iter().filter_map(&throughput).collect();
    all.sort_by(f64::total_cmp);
    let Some(&median) = all.get(all.len() / 2) else { return Vec::new() };
    let slow = findings.iter().filter_map(|finding| Some((finding, throughput(finding)?)));
    let slow = slow.filter(|(_, own)| *own < SLOW_SHARE * median);
    slow.map(|(finding, own)| {
        let why = format!("it {verb} at {own:.1} MiB/s, half of the agents at {median:.1} MiB/s or more");
        about(finding, why).remedy(
            "A striped file is as fast as its slowest disk. See what else its disks and its network do, or leave the \
             agent out.",
        )
    })
    .collect()
}

fn about(finding: &Finding, why: String) -> Failure {
    Failure::new(format!("agent {}", finding.agent), why)
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
}

fn print(format: Format, findings: &[Finding], problems: &[Failure]) -> Result<()> {
    match format {
        Format::Table => local::print(table(findings).chain([String::new()]).chain(told(problems))),
        Format::Csv => {
            problems.iter().for_each(|problem| eprintln!("{problem}"));
            local::print(std::iter::once(CSV_HEAD.to_owned()).chain(findings.iter().map(csv_row)))
        }
        Format::Json => {
            let problems = problems.iter().map(plain).collect();
            let text = serde_json::to_string_pretty(&Report { agents: findings, problems });
            local::print([text.map_err(|error| Failure::new("writing JSON", error))?])
        }
    }
}

/// A failure without the name of the program.
fn plain(problem: &Failure) -> String {
    problem.to_string().trim_start_matches("starfish: ").to_owned()
}

fn told(problems: &[Failure]) -> Vec<String> {
    if problems.is_empty() {
        return vec!["All is well.".into()];
    }
    std::iter::once("What is wrong, and what to do about it:".to_owned())
        .chain(problems.iter().map(plain))
        .collect()
}

fn table(findings: &[Finding]) -> impl Iterator<Item = String> {
    let mut table = Table::new(2);
    table.row(["agent", "version", "disks", "free", "round trip", "clock", "write", "read"]);
    for finding in findings {
        let number = |value: Option<f64>, digits: usize, unit: &str| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$} {unit}"))
        };
        let version = if finding.reachable { finding.version.as_deref().unwrap_or("?") } else { "no answer" };
        let least = finding.free_bytes.iter().flatten().min();
        table.row([
            finding.agent.clone(),
            version.to_owned(),
            finding.disks.to_string(),
            least.map_or_else(|| "-".to_owned(), |&free| gib(free)),
            number(finding.round_trip_ms, 2, "ms"),
            number(finding.clock_ahead_s, 3, "s"),
            number(finding.write_mib_s, 1, "MiB/s"),
            number(finding.read_mib_s, 1, "MiB/s"),
        ]);
    }
    table.lines().collect::<Vec<_>>().into_iter()
}

const CSV_HEAD: &str =
    "agent,reachable,version,disks,free_bytes_min,round_trip_ms,clock_ahead_s,write_mib_s,read_mib_s";

fn csv_row(finding: &Finding) -> String {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.6}"));
    let least = finding.free_bytes.iter().flatten().min();
    [
        // It is HOST:PORT, and so has neither commas nor quotes.
        finding.agent.clone(),
        finding.reachable.to_string(),
        finding.version.clone().unwrap_or_default(),
        finding.disks.to_string(),
        least.map_or_else(String::new, u64::to_string),
        number(finding.round_trip_ms),
        number(finding.clock_ahead_s),
        number(finding.write_mib_s),
        number(finding.read_mib_s),
    ]
    .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(agent: &str) -> Finding {
        Finding {
            agent: agent.into(),
            reachable: true,
            version: Some(fs::RELEASE.into()),
            ..Finding::default()
        }
    }

    fn problems(findings: &[Finding]) -> String {
        judge(findings).iter().map(|problem| format!("{problem}\n")).collect()
    }

    #[test]
    fn what_is_in_order_is_no_problem() {
        let space = (vec![Some(100 << 30)], vec![Some(200 << 30)]);
        let well = Finding {
            free_bytes: space.0,
            disk_bytes: space.1,
            clock_ahead_s: Some(-0.9),
            write_mib_s: Some(50.0),
            ..finding("a:1")
        };
        let faster = Finding { agent: "b:1".into(), write_mib_s: Some(90.0), ..well.clone() };
        assert_eq!(problems(&[well, faster, finding("c:1")]), "");
    }

    #[test]
    fn a_full_disk_a_wrong_clock_and_another_version_are() {
        let sick = Finding {
            free_bytes: vec![Some(3 << 30), None, Some(1 << 20)],
            disk_bytes: vec![Some(200 << 30), None, Some(4 << 20)],
            clock_ahead_s: Some(-75.0),
            version: Some("0.0.1".into()),
            ..finding("a:1")
        };
        let told = problems(&[sick]);
        for part in [
            "disk 0 is nearly full",
            "disk 2 is nearly full",
            "75.0 s behind",
            "version 0.0.1",
            "time server",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(!told.contains("disk 1"), "{told}");
    }

    #[test]
    fn one_that_is_much_slower_than_the_others_is_named() {
        let with = |agent, write| Finding { write_mib_s: Some(write), ..finding(agent) };
        let told = problems(&[with("a:1", 100.0), with("b:1", 20.0), with("c:1", 110.0)]);
        assert!(
            told.contains("agent b:1: it writes at 20.0 MiB/s") && told.contains("slowest disk"),
            "{told}"
        );
        assert_eq!(told.matches("agent ").count() - told.matches("the agent out").count(), 1, "{told}");
        assert!(problems(&[with("a:1", 100.0), with("b:1", 20.0)]).contains("agent b:1"));
        assert_eq!(problems(&[with("a:1", 1.0)]), "");
    }

    #[test]
    fn one_agent_by_two_names_is_noticed() {
        let same = |agent| Finding { node: Some(NodeId(7)), ..finding(agent) };
        assert!(problems(&[same("a:1"), same("b:1")]).contains("agent b:1: it is the same agent as a:1"));
    }
}
