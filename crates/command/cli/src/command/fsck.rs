//! `starfish fsck`: has the agents read files back, and reports damage; uses the crate `fsck`.

use std::io::{self, Write};
use std::path::Path;

use clap::Args;
use command_line::failure::{Failure, Result};
use command_line::progress::Progress;
use command_line::say;
use command_line::{TextTable, counted};
use fsck::{FsckOptions, Report, fsck};
use layout::Extent;
use node::Size;
use transfer::local::{self, STANDARD};

use crate::options::agents::AgentsArgs;
use crate::options::experiment::ProgressArgs;
use crate::output::row_format::{RowFormat, print_json};

/// Read files back on the agents, verify checksums, and report damaged, missing or foreign stripes.
///
/// Without names, all files are read, and the records of the namespace are checked. The check also finds stripes of
/// unknown files, and files on a disk that no agent has. The data stay on the agents: each agent reads its own disks,
/// with lower priority than other requests. The report names agents that do not answer and disks that cannot be used,
/// which are not checked. Exit code 1: a problem was not repaired, or the check was incomplete.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Paths of files; a directory means all files in it.
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    agents: AgentsArgs,

    /// Repair the namespace: its records, and unknown files, which are named in /lost+found. All agents must answer,
    /// and all disks must work.
    #[arg(long, conflicts_with = "names")]
    repair: bool,

    /// With --repair: remove stripes of unknown files, instead of naming these files.
    #[arg(long, requires = "repair")]
    remove_unnamed: bool,

    /// With --repair: create a new namespace if the old one is permanently lost, with its disk and all copies. All
    /// files are named in /lost+found.
    #[arg(long, requires = "repair")]
    new_namespace: bool,

    /// With --repair: accept disks of another namespace, which was lost or set aside. The files on these disks are
    /// unknown to this namespace.
    #[arg(long, requires = "repair", conflicts_with = "new_namespace")]
    take_disks: bool,

    /// Maximum number of bytes read per second, on all disks together.
    #[arg(long, value_name = "SIZE", value_parser = rate)]
    rate: Option<Size>,

    /// Output format: a row for each finding. With CSV, all other output is printed on standard error, and damaged
    /// parts of a file are written as OFFSET+BYTES, separated by blanks. JSON is one object.
    #[arg(long, value_enum, default_value_t = RowFormat::Table)]
    format: RowFormat,

    #[command(flatten)]
    progress: ProgressArgs,
}

const EXAMPLES: &str = "\
Examples:
  starfish fsck                                    all files of the configured agents
  starfish fsck big.dat --rate 20MiB               no faster than 20 MiB/s
  starfish fsck --repair                           check and repair
  starfish fsck --format json | jq '.findings[].file'";

fn rate(text: &str) -> std::result::Result<Size, String> {
    let size: Size = text.parse()?;
    if size.0 > 0 { Ok(size) } else { Err("expected a rate of at least one byte per second".into()) }
}

/// Runs the command.
pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let cluster = arguments.agents.cluster()?;
    let progress = Progress::bytes(arguments.progress.show, "reading back");
    let options = FsckOptions {
        names: arguments.names,
        rate: arguments.rate.map(|rate| rate.0),
        repair: arguments.repair,
        remove_unnamed: arguments.remove_unnamed,
        new_namespace: arguments.new_namespace,
        take_disks: arguments.take_disks,
    };
    let report = fsck(&cluster, options, &progress)?;
    progress.finish();
    match arguments.format {
        RowFormat::Table => local::print(table(&report))?,
        RowFormat::Csv => {
            summary(&report).iter().for_each(|line| say!("{line}"));
            local::write_or_print(Path::new(STANDARD), |output| write_csv(&report, output))?;
        }
        RowFormat::Json => print_json(&report)?,
    }
    outcome(&report)
}

fn table(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    if !report.findings.is_empty() {
        let mut table = TextTable::new(6);
        table.row(["file", "stripe", "agent", "disk", "kind", "problem"]);
        for row in &report.findings {
            let number = |number: Option<u32>| number.map_or_else(|| "-".into(), |number| number.to_string());
            let agent = row.agent.clone().unwrap_or_else(|| "-".into());
            let what = if row.damaged.is_empty() { row.text.clone() } else { ranges(&row.damaged) };
            let cells = [number(row.stripe), agent, number(row.disk), row.kind.to_owned(), what];
            table.row([row.file.clone()].into_iter().chain(cells));
        }
        lines.extend(table.lines());
        lines.push(String::new());
    }
    lines.extend(summary(report));
    lines
}

/// Returns lines about unreadable parts, repairs, the amount of data read, and the overall result.
fn summary(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(report.failures.iter().chain(&report.mended).cloned());
    lines.extend(report.inodes.map(|inodes| format!("The namespace has {}.", counted(inodes, "inode"))));
    let removed = report.removed.filter(|removed| *removed > 0);
    lines.extend(
        removed.map(|removed| {
            format!("The contents of {} are not removed yet.", counted(removed, "removed file"))
        }),
    );
    let read = Size(report.bytes).rounded();
    let verdict = match report.hurt() {
        0 if report.failures.is_empty() => "no problems found",
        0 => "no damage found in the checked parts",
        _ => "see above",
    };
    lines.push(format!(
        "{}, {read} read back in {:.1} s: {verdict}.",
        counted(report.files, "file"),
        report.seconds
    ));
    lines
}

/// Writes the findings, if any, below a header.
fn write_csv(report: &Report, output: impl Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(output);
    writer.write_record(["file", "kind", "stripe", "agent", "disk", "damaged", "text"])?;
    for row in &report.findings {
        let number = |number: Option<u32>| number.map_or_else(String::new, |number| number.to_string());
        let damaged: Vec<String> =
            row.damaged.iter().map(|[offset, bytes]| format!("{offset}+{bytes}")).collect();
        let (stripe, disk, damaged) = (number(row.stripe), number(row.disk), damaged.join(" "));
        let agent = row.agent.as_deref().unwrap_or_default();
        writer.write_record([&row.file, row.kind, &stripe, agent, &disk, &damaged, &row.text])?;
    }
    writer.flush()
}

fn outcome(report: &Report) -> Result<()> {
    const REMEDY: &str = "`starfish get --skip-damaged` saves the readable parts of a file, and `starfish \
                          rm` removes the file. `starfish fsck --repair` repairs the namespace.";
    let remedy = match report.is_disk_away {
        true => format!(
            "First name all agents of the set, and start them with all their disks: missing stripes may be \
             there. If they are lost: {REMEDY}"
        ),
        false => REMEDY.to_owned(),
    };
    match report.hurt() {
        0 if report.failures.is_empty() => Ok(()),
        0 => Err(Failure::new("fsck", "not all files and disks could be checked")),
        1 => Err(Failure::new("fsck", "1 file has problems").remedy(remedy)),
        hurt => Err(Failure::new("fsck", format!("{hurt} files have problems")).remedy(remedy)),
    }
}

/// Maximum number of damaged parts in a line of the table.
const RANGES_MAX: usize = 4;

/// Formats the first damaged parts of a file as ranges of bytes.
fn ranges(damaged: &[[u64; 2]]) -> String {
    let range = |&[offset, bytes]: &[u64; 2]| local::range(Extent::new(offset, bytes));
    let mut parts: Vec<String> = damaged.iter().take(RANGES_MAX).map(range).collect();
    let more = damaged.len().saturating_sub(RANGES_MAX);
    parts.extend((more > 0).then(|| counted(more, "more part")));
    format!("bytes {}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_of_ranges_is_shortened() {
        assert_eq!(ranges(&[[0, 4096], [8192, 1]]), "bytes 0 to 4095, 8192");
        let many: Vec<[u64; 2]> = (0..7).map(|at| [at * 10, 2]).collect();
        assert_eq!(ranges(&many), "bytes 0 to 1, 10 to 11, 20 to 21, 30 to 31, 3 more parts");
    }
}
