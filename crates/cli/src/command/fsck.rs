//! `starfish fsck`: reads everything back where it lies, and says what is wrong with it.

use std::rc::Rc;
use std::time::Instant;

use clap::{Args, ValueEnum};
use command_line::TextTable;
use command_line::failure::{Failure, Result};
use command_line::progress::{Progress, Show};
use fs::{Check, Checking, Finding, FindingKind};
use layout::Extent;
use serde::Serialize;

use crate::date;
use crate::local;
use crate::store::agents::AgentsArgs;
use crate::this_node;
use node::{ConnectedNode, Size};

/// Read files back on the agents, verify checksums, and report what is damaged, missing, foreign or unfinished.
///
/// Without names, all files are read. The data stay on the agents: each reads its own disks, in the background of
/// all other requests. All agents must answer. Exit code 1 means that a problem was found.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The files' names.
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    agents: AgentsArgs,

    /// Limit on the bytes read per second, on all disks together.
    #[arg(long, value_name = "SIZE", value_parser = rate)]
    rate: Option<Size>,

    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Whether to show progress.
    #[arg(long, value_enum, default_value_t = Show::Auto, value_name = "WHEN")]
    progress: Show,
}

const EXAMPLES: &str = "\
Examples:
  starfish fsck                                    all files of the agents that are configured
  starfish fsck big.dat --rate 20MiB               no faster than 20 MiB/s
  starfish fsck --format json | jq '.findings[].file'";

/// Output format of the findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table for people.
    Table,
    /// One JSON object.
    Json,
}

fn rate(text: &str) -> std::result::Result<Size, String> {
    let size: Size = text.parse()?;
    if size.0 > 0 { Ok(size) } else { Err("expected at least one byte a second".into()) }
}

/// What was found, as JSON has it.
#[derive(Serialize)]
struct Report {
    /// Number of files read back so far, and of their bytes on all disks.
    files: usize,
    bytes: u64,
    seconds: f64,
    findings: Vec<Row>,
    /// What could not be looked at, and why.
    failures: Vec<String>,
}

/// Something that is wrong.
#[derive(Serialize)]
struct Row {
    file: String,
    kind: &'static str,
    stripe: Option<u32>,
    agent: Option<String>,
    disk: Option<u32>,
    /// Which bytes of the file are damaged: offset and number.
    damaged: Vec<[u64; 2]>,
    text: String,
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let agents = arguments.agents.find()?;
    let (names, rate) = (arguments.names, arguments.rate.map(|rate| rate.0));
    let progress = Progress::bytes(arguments.progress, "reading back");
    let shown = progress.clone();
    let report = this_node::run(agents, move |connection| async move {
        let begun = Instant::now();
        let hear = move |checking| match checking {
            Checking::Expected(bytes) => shown.expect(bytes),
            Checking::Done(bytes) => shown.add(bytes),
        };
        let check = connection.told("checking files", connection.client.check(&names, rate, hear).await)?;
        Ok(Report::of(&connection, check, begun.elapsed().as_secs_f64()))
    })?;
    progress.finish();
    match arguments.format {
        Format::Table => local::print(report.table())?,
        Format::Json => {
            let text = serde_json::to_string_pretty(&report);
            local::print([text.map_err(|error| Failure::new("printing JSON", error))?])?;
        }
    }
    report.outcome()
}

impl Report {
    fn of(connection: &ConnectedNode, check: Check, seconds: f64) -> Report {
        let row = |name: &Rc<str>, finding: Finding| Row {
            file: name.to_string(),
            kind: kind(finding.kind),
            stripe: finding.stripe,
            agent: finding.place.map(|(node, _)| connection.name(node).to_owned()),
            disk: finding.place.map(|(_, disk)| disk),
            damaged: finding.damaged.iter().map(|extent| [extent.offset, extent.bytes]).collect(),
            text: match finding.since {
                Some(since) => format!("{}; it was begun {}", finding.text, date::of(since)),
                None => finding.text,
            },
        };
        let (files, bytes) = (check.files.len(), check.bytes);
        let explain = |error: &fs::Error| connection.explain("checking files", error).to_string();
        let failures = check.failures.iter().map(explain).collect();
        let findings = check.files.into_iter().flat_map(|(name, file)| {
            let name: Rc<str> = name.into();
            file.findings.into_iter().map(move |finding| row(&name, finding))
        });
        Report { files, bytes, seconds, findings: findings.collect(), failures }
    }

    /// Number of files with a problem.
    fn hurt(&self) -> usize {
        let mut names: Vec<&str> = self.findings.iter().map(|row| row.file.as_str()).collect();
        names.dedup();
        names.len()
    }

    fn table(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.findings.is_empty() {
            let mut table = TextTable::new(6);
            table.row(["file", "stripe", "agent", "disk", "kind", "what is wrong"]);
            for row in &self.findings {
                let number =
                    |number: Option<u32>| number.map_or_else(|| "-".into(), |number| number.to_string());
                let agent = row.agent.clone().unwrap_or_else(|| "-".into());
                let what = if row.damaged.is_empty() { row.text.clone() } else { ranges(&row.damaged) };
                let cells = [number(row.stripe), agent, number(row.disk), row.kind.to_owned(), what];
                table.row([row.file.clone()].into_iter().chain(cells));
            }
            lines.extend(table.lines());
            lines.push(String::new());
        }
        lines.extend(self.failures.iter().cloned());
        let read = Size(self.bytes).rounded();
        let files = if self.files == 1 { "1 file".to_owned() } else { format!("{} files", self.files) };
        let verdict = match self.hurt() {
            0 if self.failures.is_empty() => "all is well",
            0 => "nothing wrong was found in it",
            _ => "see above",
        };
        lines.push(format!("{files}, {read} read back in {:.1} s: {verdict}.", self.seconds));
        lines
    }

    fn outcome(&self) -> Result<()> {
        let remedy = "`starfish get --skip-damaged` saves what can be read of a file, and `starfish rm` removes \
                      it; `starfish rm --unfinished` removes what was never finished.";
        match self.hurt() {
            0 if self.failures.is_empty() => Ok(()),
            0 => Err(Failure::new("fsck", "not all could be looked at")),
            1 => Err(Failure::new("fsck", "something is wrong with one file").remedy(remedy)),
            hurt => Err(Failure::new("fsck", format!("something is wrong with {hurt} files")).remedy(remedy)),
        }
    }
}

fn kind(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Damaged => "damaged",
        FindingKind::Missing => "missing",
        FindingKind::Foreign => "foreign",
        FindingKind::Orphaned => "orphaned",
        FindingKind::Unfinished => "unfinished",
    }
}

/// Number of damaged parts shown in a line of the table.
const RANGES_MAX: usize = 4;

/// The first parts of a file, by their first and last bytes.
fn ranges(damaged: &[[u64; 2]]) -> String {
    let range = |&[offset, bytes]: &[u64; 2]| local::range(Extent::new(offset, bytes));
    let mut parts: Vec<String> = damaged.iter().take(RANGES_MAX).map(range).collect();
    let more = damaged.len().saturating_sub(RANGES_MAX);
    parts.extend((more > 0).then(|| format!("{more} more parts")));
    format!("bytes {}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_ranges_are_not_all_listed() {
        assert_eq!(ranges(&[[0, 4096], [8192, 1]]), "bytes 0 to 4095, 8192");
        let many: Vec<[u64; 2]> = (0..7).map(|at| [at * 10, 2]).collect();
        assert_eq!(ranges(&many), "bytes 0 to 1, 10 to 11, 20 to 21, 30 to 31, 3 more parts");
    }
}
