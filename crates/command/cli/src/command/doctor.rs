//! `starfish doctor`: what is wrong with the agents, and what to do about it.
//!
//! Each agent is asked on its own, all at once; then they are measured, in turn and several times. What is wrong is
//! told as failures are: what, why, and a remedy. The crate `doctor` does the work.

use std::path::PathBuf;

use clap::Args;
use command_line::TextTable;
use command_line::failure::{Failure, Result};
use command_line::say;
use node::{ErrorKind, Size};
use serde::Serialize;

use crate::options::agents::AgentsArgs;
use crate::output::row_format::{RowFormat, print_json};
use agent_set::at_once;
use doctor::mounts::{self, MountFinding};
use doctor::names::{self, NamespaceFinding};
use doctor::{AgentFinding, examine, judge, measure};
use transfer::local;

/// Check the agents for problems, and say how to solve them.
///
/// Asks each agent for its version, its disks with their free space, and its clock. Then measures how fast it writes
/// and reads a temporary file, five times, or ten times if its computer is busy, in turn with the others; the median is
/// shown. Writes go to its disks, as with `put`; reads may come from its memory, so they measure the network. Problems
/// are listed at the end, with exit code 1 if there are any. An agent is slow if even its better measurements are below
/// two thirds of what others reach. It also says which agent keeps the namespace; two keepers are a problem. So is a
/// mount of these agents that this user has on this computer and that does not answer.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    agents: AgentsArgs,

    /// Skip the measurement, which takes up to three seconds for each agent, longer if it is very slow.
    #[arg(long)]
    quick: bool,

    /// Largest temporary file on an agent; most get a smaller one, written for half a second each time.
    #[arg(long, value_name = "SIZE", default_value = "32MiB", value_parser = measured)]
    file_size: Size,

    /// Output format: a row for each agent. As CSV, what is wrong goes to standard error; JSON is one object.
    #[arg(long, value_enum, default_value_t = RowFormat::Table)]
    format: RowFormat,

    /// Only ask the mount in this directory for its agents: see `mounts.rs` of the crate `doctor`.
    #[arg(long, hide = true, value_name = "DIR")]
    ask_mount: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  starfish doctor                                  of the agents that are configured, or were started last
  starfish doctor --agents node1:7117,node2:7117 --quick
  starfish doctor --format json | jq .problems";

/// Smallest temporary file whose rate is meaningful: a few blocks.
const FILE_BYTES_MIN: u64 = 1 << 20;

fn measured(text: &str) -> std::result::Result<Size, String> {
    let size: Size = text.parse()?;
    if (FILE_BYTES_MIN..=64 << 30).contains(&size.0) {
        Ok(size)
    } else {
        Err("expected from 1MiB to 64GiB".into())
    }
}

/// What was found, as JSON has it.
#[derive(Serialize)]
struct Report<'a> {
    agents: &'a [AgentFinding],
    /// What is known of the namespace, if there is one.
    namespace: Option<&'a NamespaceFinding>,
    /// This user's mounts of these agents on this computer.
    mounts: &'a [MountFinding],
    notes: &'a [String],
    problems: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    if let Some(directory) = &arguments.ask_mount {
        return mounts::ask_here(directory);
    }
    let (names, connecting) = (arguments.agents.names()?, arguments.agents.connecting());
    let (mut findings, mut before, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for (name, examined) in names.iter().zip(at_once(&names, |name| examine(&connecting, name))) {
        let examined = examined.map_err(|failure| problems.push(failure)).ok();
        let unknown = || AgentFinding { agent: name.clone(), ..AgentFinding::default() };
        findings.push(examined.as_ref().map_or_else(unknown, |examined| AgentFinding::of(name, examined)));
        before.push(examined);
    }
    if !arguments.quick {
        measure::all(&connecting, &mut findings, &before, arguments.file_size.0, &mut problems)?;
    }
    problems.extend(judge::problems(&findings));
    let mut notes = judge::notes(&findings);
    let mut namespace = None;
    // Agents that do not answer have been told of.
    if before.iter().any(Option::is_some) {
        // That agents are called wrongly is told below.
        match arguments.agents.cluster().map(|cluster| names::find(&cluster)) {
            Ok(Ok(found)) => {
                // One that does not answer may keep it.
                let is_known = found.is_some() || before.iter().all(Option::is_some);
                notes.extend(is_known.then(|| names::note(found.as_ref())));
                problems.extend(found.as_ref().and_then(names::problem));
                namespace = found;
            }
            // Two of them are a problem of their own; anything else has been told of.
            Ok(Err(failure)) if problems.is_empty() || failure.kind() == Some(ErrorKind::Invalid) => {
                problems.push(failure);
            }
            _ => {}
        }
    }
    let mounts = mounts::find(&names);
    notes.extend(mounts::notes(&mounts));
    problems.extend(mounts::problems(&mounts));
    let known = Known { namespace: namespace.as_ref(), mounts: &mounts };
    print(arguments.format, &findings, known, &notes, &problems)?;
    match problems.len() {
        0 => Ok(()),
        1 => Err(Failure::new("doctor", "one thing is wrong")),
        count => Err(Failure::new("doctor", format!("{count} things are wrong"))),
    }
}

/// What is known besides of agents.
struct Known<'a> {
    namespace: Option<&'a NamespaceFinding>,
    mounts: &'a [MountFinding],
}

fn print(
    format: RowFormat,
    findings: &[AgentFinding],
    known: Known<'_>,
    notes: &[String],
    problems: &[Failure],
) -> Result<()> {
    match format {
        RowFormat::Table => {
            let notes = notes.iter().flat_map(|note| [note.clone(), String::new()]);
            local::print(table(findings).chain([String::new()]).chain(notes).chain(problem_lines(problems)))
        }
        RowFormat::Csv => {
            notes.iter().for_each(|note| say!("{note}"));
            problems.iter().for_each(|problem| say!("starfish: {problem}"));
            local::print(std::iter::once(CSV_HEAD.to_owned()).chain(findings.iter().map(csv_row)))
        }
        RowFormat::Json => {
            let problems = problems.iter().map(Failure::to_string).collect();
            let Known { namespace, mounts } = known;
            let report = Report { agents: findings, namespace, mounts, notes, problems };
            print_json(&report)
        }
    }
}

fn problem_lines(problems: &[Failure]) -> Vec<String> {
    if problems.is_empty() {
        return vec!["All is well.".into()];
    }
    std::iter::once("What is wrong, and what to do about it:".to_owned())
        .chain(problems.iter().map(Failure::to_string))
        .collect()
}

fn table(findings: &[AgentFinding]) -> impl Iterator<Item = String> {
    let mut table = TextTable::new(2);
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
            least.map_or_else(|| "-".to_owned(), |&free| Size(free).rounded()),
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

fn csv_row(finding: &AgentFinding) -> String {
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
