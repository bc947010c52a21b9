//! `starfish doctor`: finds problems of the agents, and suggests remedies.
//!
//! The command queries all agents in parallel, then measures them one after the other, several times. It reports each
//! problem with a reason and a remedy. The crate `doctor` implements all of this.

use std::path::PathBuf;

use clap::Args;
use command_line::TextTable;
use command_line::failure::{Failure, Result};
use doctor::mounts::ask_here;
use doctor::{AgentFinding, Diagnosis, diagnose};
use node::Size;

use crate::options::agents::AgentsArgs;
use crate::output::row_format::RowFormat;

/// Check the agents for problems, and suggest remedies.
///
/// Requests the version, the disks with their free space, and the clock of each agent. Then measures how fast each
/// agent writes and reads a temporary file. Each agent is measured five times (ten times if a computer is busy), in
/// turn with the others; the median is shown. Writes go to the agent's disks, as with `put`. Reads may come from its
/// memory, so they measure the network. Problems are listed at the end, with exit code 1 if there are any. An agent is
/// slow if even its better measurements are below two thirds of the other agents' measurements. The command also shows
/// the metadata server. It also reports a second metadata server, and mounts of these agents, by this user on this
/// computer, that do not answer.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    agents: AgentsArgs,

    /// Skip the measurement, which takes up to three seconds for each agent, or longer if an agent is very slow.
    #[arg(long)]
    quick: bool,

    /// Maximum size of the temporary file on an agent. Most agents get a smaller file, which takes half a second to
    /// write.
    #[arg(long, value_name = "SIZE", default_value = "32MiB", value_parser = measured)]
    file_size: Size,

    /// Output format: a row for each agent. With CSV, problems are printed on standard error. JSON is one object.
    #[arg(long, value_enum, default_value_t = RowFormat::Table)]
    format: RowFormat,

    /// Only request the agents of the mount in this directory; see `mounts.rs` of the crate `doctor`.
    #[arg(long, hide = true, value_name = "DIR")]
    ask_mount: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  starfish doctor                                  the configured agents, or those started last
  starfish doctor --agents node1:7117,node2:7117 --quick
  starfish doctor --format json | jq .problems";

/// Minimum size of a temporary file whose throughput is meaningful: a few blocks.
const FILE_BYTES_MIN: u64 = 1 << 20;

fn measured(text: &str) -> std::result::Result<Size, String> {
    let size: Size = text.parse()?;
    if (FILE_BYTES_MIN..=64 << 30).contains(&size.0) {
        Ok(size)
    } else {
        Err("expected from 1MiB to 64GiB".into())
    }
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    if let Some(directory) = &arguments.ask_mount {
        return ask_here(directory);
    }
    let measured_bytes = (!arguments.quick).then_some(arguments.file_size.0);
    let agents = &arguments.agents;
    let diagnosis = diagnose(&agents.names()?, &agents.connecting(), measured_bytes)?;
    arguments.format.print_report(&diagnosis, lines, csv, remarks)?;
    match diagnosis.problems.len() {
        0 => Ok(()),
        1 => Err(Failure::new("doctor", "1 problem found")),
        count => Err(Failure::new("doctor", format!("{count} problems found"))),
    }
}

fn lines(diagnosis: &Diagnosis) -> Vec<String> {
    let notes = diagnosis.notes.iter().flat_map(|note| [note.clone(), String::new()]);
    let agents = table(&diagnosis.agents).into_iter().chain([String::new()]);
    agents.chain(notes).chain(problem_lines(&diagnosis.problems)).collect()
}

/// Returns the notes and problems.
fn remarks(diagnosis: &Diagnosis) -> Vec<String> {
    let problems = diagnosis.problems.iter().map(|problem| format!("starfish: {problem}"));
    diagnosis.notes.iter().cloned().chain(problems).collect()
}

fn problem_lines(problems: &[Failure]) -> Vec<String> {
    if problems.is_empty() {
        return vec!["No problems found.".into()];
    }
    std::iter::once("Problems and remedies:".to_owned())
        .chain(problems.iter().map(Failure::to_string))
        .collect()
}

fn table(findings: &[AgentFinding]) -> Vec<String> {
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
    table.lines().collect()
}

const CSV_HEAD: &str =
    "agent,reachable,version,disks,free_bytes_min,round_trip_ms,clock_ahead_s,write_mib_s,read_mib_s";

fn csv(diagnosis: &Diagnosis) -> Vec<String> {
    std::iter::once(CSV_HEAD.to_owned()).chain(diagnosis.agents.iter().map(csv_row)).collect()
}

fn csv_row(finding: &AgentFinding) -> String {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.6}"));
    let least = finding.free_bytes.iter().flatten().min();
    [
        // HOST:PORT needs no quotes, because it contains neither commas nor quotation marks.
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
