//! `starfish fsck`: reads everything back where it lies, and says what is wrong with it. The namespace is checked by
//! `fsck/tree.rs`, and what has no name gets one by `fsck/adoption.rs`.

mod adoption;
mod tree;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::mem;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use clap::Args;
use command_line::failure::{Failure, Result};
use command_line::progress::Progress;
use command_line::say;
use command_line::{TextTable, counted};
use fs::{Check, Checking, FileId, Finding, FindingKind};
use layout::Extent;
use namespace::FileNumber;
use serde::Serialize;

use crate::options::agents::AgentsArgs;
use crate::options::experiment::ProgressArgs;
use crate::output::row_format::{RowFormat, print_json};
use node::{ConnectedNode, Size};
use transfer::local::{self, STANDARD};
use transfer::namespace::{Namespace, shown};
use tree::{LostStripes, TreeCheck, is_named};

/// Read files back on the agents, verify checksums, and report what is damaged, missing or foreign.
///
/// Without names, all files are read, and the records of the namespace are checked: also whether there are stripes of
/// files that it does not know, or files on a disk that none of the agents has. The data stay on the agents: each reads
/// its own disks, in the background of all other requests. What is on agents that do not answer, or on disks that
/// cannot be used, is not checked: they are named. Exit code 1 means that a problem was found, and not mended, or that
/// not all could be checked.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Paths of files; a directory stands for all files in it.
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    #[command(flatten)]
    agents: AgentsArgs,

    /// Mend the namespace: its records, and files that it does not know, which get names in /lost+found. All agents
    /// must answer, and all disks must work.
    #[arg(long, conflicts_with = "names")]
    repair: bool,

    /// With --repair: remove stripes of files that the namespace does not know, instead of giving them names.
    #[arg(long, requires = "repair")]
    remove_unnamed: bool,

    /// With --repair: begin a new namespace if the one of these files is lost for good, with the disk it was on and all
    /// copies. All files get names in /lost+found.
    #[arg(long, requires = "repair")]
    new_namespace: bool,

    /// With --repair: accept disks that are marked as belonging to another namespace, which is lost or was put away.
    /// This namespace does not know their files.
    #[arg(long, requires = "repair", conflicts_with = "new_namespace")]
    take_disks: bool,

    /// Limit on the bytes read per second, on all disks together.
    #[arg(long, value_name = "SIZE", value_parser = rate)]
    rate: Option<Size>,

    /// Output format: a row for each finding. As CSV, all else goes to standard error, and damaged parts of a file are
    /// written OFFSET+BYTES, with blanks between them; JSON is one object.
    #[arg(long, value_enum, default_value_t = RowFormat::Table)]
    format: RowFormat,

    #[command(flatten)]
    progress: ProgressArgs,
}

const EXAMPLES: &str = "\
Examples:
  starfish fsck                                    all files of the agents that are configured
  starfish fsck big.dat --rate 20MiB               no faster than 20 MiB/s
  starfish fsck --repair                           and mend the namespace
  starfish fsck --format json | jq '.findings[].file'";

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
    /// Number of inodes of the namespace, if there is one and all of it was checked.
    inodes: Option<usize>,
    /// How many of them are of files that have been removed, and whose contents are still to go.
    removed: Option<usize>,
    /// What was mended.
    mended: Vec<String>,
    /// Whether something is missing that may be on a disk that is away.
    #[serde(skip)]
    is_disk_away: bool,
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
    let cluster = arguments.agents.cluster()?;
    let rate = arguments.rate.map(|rate| rate.0);
    let progress = Progress::bytes(arguments.progress.show, "reading back");
    let wish = Wish {
        names: arguments.names,
        rate,
        mend: arguments.repair.then_some(arguments.remove_unnamed),
        new_namespace: arguments.new_namespace,
        take_disks: arguments.take_disks,
        progress: progress.clone(),
        expected: Cell::new(0),
    };
    let report = match arguments.repair {
        // What is on an agent that is away must not be taken for lost.
        true => cluster.run(move |connection| async move { wish.carry_out(&connection).await }),
        false => cluster.run_with_present(move |connection| async move { wish.carry_out(&connection).await }),
    }?;
    progress.finish();
    match arguments.format {
        RowFormat::Table => local::print(report.table())?,
        RowFormat::Csv => {
            report.summary().iter().for_each(|line| say!("{line}"));
            local::write_or_print(Path::new(STANDARD), |output| report.write_csv(output))?;
        }
        RowFormat::Json => print_json(&report)?,
    }
    report.outcome()
}

/// What is to be checked, and how.
struct Wish {
    names: Vec<String>,
    rate: Option<u64>,
    /// Whether the namespace is to be mended, and then whether unnamed stripes are to be removed.
    mend: Option<bool>,
    /// Whether a namespace that is lost is to be replaced by a new one.
    new_namespace: bool,
    /// Whether disks of another namespace become disks of this one.
    take_disks: bool,
    progress: Progress,
    /// Bytes to read back, as far as known.
    expected: Cell<u64>,
}

impl Wish {
    async fn carry_out(self, connection: &ConnectedNode) -> Result<Report> {
        let begun = Instant::now();
        if self.mend.is_some() {
            connection.incompleteness()?;
        }
        let namespace = self.namespace(connection).await?;
        let mut report = match &*self.names {
            [] => self.all(&namespace).await?,
            names => self.paths(&namespace, names).await?,
        };
        report.seconds = begun.elapsed().as_secs_f64();
        report.note_incompleteness(connection);
        Ok(report)
    }

    /// The namespace; a new one, if that is wanted.
    async fn namespace(&self, connection: &ConnectedNode) -> Result<Namespace> {
        if !self.new_namespace {
            let namespace = Namespace::of(connection).await?;
            // What it does not know is not to be taken for its own, unless that is said.
            let tree = &namespace.tree;
            let disks = if self.take_disks { tree.take_disks().await } else { tree.check_disks().await };
            connection.explained("the disks", disks)?;
            return Ok(namespace);
        }
        match Namespace::find(connection).await? {
            Some(namespace) => {
                let why = format!("the namespace is there: agent {} keeps it", namespace.keeper());
                Err(Failure::new("--new-namespace", why).remedy("Leave it out."))
            }
            None => Ok(Namespace::begin_anew(connection).await?),
        }
    }

    async fn read_back(&self, connection: &ConnectedNode, files: &[FileId]) -> Result<Check> {
        let (shown, before) = (self.progress.clone(), self.expected.get());
        let expected = Rc::new(Cell::new(before));
        let now = expected.clone();
        let hear = move |checking| match checking {
            Checking::Expected(bytes) => {
                now.set(before + bytes);
                shown.expect(before + bytes);
            }
            Checking::Done(bytes) => shown.add(bytes),
        };
        let check = connection.explained("fsck", connection.client.check(files, self.rate, hear).await)?;
        self.expected.set(expected.get());
        Ok(check)
    }

    /// All records, and all files.
    async fn all(&self, namespace: &Namespace) -> Result<Report> {
        let connection = &namespace.connection;
        let mut report = Report::of(connection, Check::default(), |_| String::new());
        let mut check = TreeCheck::of(namespace).await?;
        if let Some(remove_unnamed) = self.mend {
            let mended = check.mend(namespace, remove_unnamed).await?;
            report.mended = mended.done;
            report.failures.extend(mended.failures);
            report.findings.extend(mended.findings);
            check = TreeCheck::of(namespace).await?;
        }
        report.inodes = Some(check.inodes);
        report.removed = Some(check.removed);
        report.findings.extend(check.findings(namespace));
        report.is_disk_away = check.is_disk_away();
        let failures = check.failures.clone();
        report.add(Report::of(connection, Check { failures, ..Check::default() }, |_| String::new()));
        if !check.stored.is_empty() {
            let stored: Vec<FileId> = check.stored.iter().copied().collect();
            let contents = self.read_back(connection, &stored).await?;
            let contents = gone_left_out(namespace, contents).await?;
            report.add(Report::of(connection, contents, |number| check.called(number)));
        }
        Ok(report)
    }

    /// The contents of the files that these paths lead to.
    async fn paths(&self, namespace: &Namespace, names: &[String]) -> Result<Report> {
        let connection = &namespace.connection;
        let (mut paths, mut inodes, mut failures) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for name in names {
            let found = match namespace.look(name.as_bytes()).await {
                Ok(found) => found,
                Err(error) => {
                    failures.push(error.to_string());
                    continue;
                }
            };
            let within = if found.inode.is_directory() { namespace.walk(&found).await? } else { Vec::new() };
            for found in within.into_iter().chain([found]).filter(|found| found.inode.layout().is_some()) {
                paths.insert(found.inode.number, shown(&found.path));
                inodes.insert(found.inode.number, found.inode);
            }
        }
        if inodes.is_empty() {
            let report = Report::of(connection, Check::default(), |_| String::new());
            return Ok(Report { failures, ..report });
        }
        let wanted: Vec<FileId> = inodes.keys().map(|number| FileId(number.0)).collect();
        let lost = LostStripes::of(namespace, &inodes).await?;
        let contents = gone_left_out(namespace, self.read_back(connection, &wanted).await?).await?;
        let called = |number: FileNumber| paths[&number].clone();
        let mut report = Report::of(connection, contents, called);
        report.findings.extend(lost.findings(called));
        report.failures.extend(failures);
        report.is_disk_away = lost.is_disk_away();
        Ok(report)
    }
}

/// Leaves out that files have no stripes: they are all hole, or have been removed meanwhile.
async fn gone_left_out(namespace: &Namespace, mut check: Check) -> Result<Check> {
    check.failures.retain(|error| !matches!(error, fs::Error::NotFound { .. }));
    let is_removed = |finding: &Finding| finding.kind == FindingKind::Removed;
    for (number, file) in &mut check.files {
        if file.findings.iter().any(is_removed) && !is_named(namespace, FileNumber(number.0)).await? {
            file.findings.retain(|finding| !is_removed(finding));
        }
    }
    Ok(check)
}

impl Report {
    /// What a check has found in files, which are called as `called` says.
    fn of(connection: &ConnectedNode, check: Check, called: impl Fn(FileNumber) -> String) -> Report {
        let row = |name: &Rc<str>, finding: Finding| Row {
            file: name.to_string(),
            kind: kind(finding.kind),
            stripe: finding.stripe,
            agent: finding.place.map(|(node, _)| connection.name(node).to_owned()),
            disk: finding.place.map(|(_, disk)| disk),
            damaged: finding.damaged.iter().map(|extent| [extent.offset, extent.bytes]).collect(),
            text: finding.text,
        };
        let (files, bytes) = (check.files.len(), check.bytes);
        let explain = |error: &fs::Error| {
            let what = error.node().map(|node| format!("agent {}", connection.name(node)));
            connection.explain(what.as_deref().unwrap_or("fsck"), error).to_string()
        };
        let failures = check.failures.iter().map(explain).collect();
        let findings = check.files.into_iter().flat_map(|(number, file)| {
            let name: Rc<str> = called(FileNumber(number.0)).into();
            file.findings.into_iter().map(move |finding| row(&name, finding))
        });
        let findings = findings.collect();
        Report {
            files,
            bytes,
            seconds: 0.0,
            findings,
            failures,
            inodes: None,
            removed: None,
            mended: Vec::new(),
            is_disk_away: false,
        }
    }

    /// Puts the agents that do not answer and the disks that cannot be used first among the failures, each once.
    fn note_incompleteness(&mut self, connection: &ConnectedNode) {
        let missing = connection.absent_agents().iter().chain(connection.failing_disks());
        let missing: Vec<String> = missing.map(node::Error::to_string).collect();
        self.is_disk_away |= !missing.is_empty();
        let mut failures = missing;
        for failure in mem::take(&mut self.failures) {
            // The same failure may be known here with its remedy.
            if !failures.iter().any(|known| known.starts_with(&failure)) {
                failures.push(failure);
            }
        }
        self.failures = failures;
    }

    fn add(&mut self, other: Report) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.findings.extend(other.findings);
        self.failures.extend(other.failures);
    }

    /// Number of files with a problem.
    fn hurt(&self) -> usize {
        let mut names: Vec<&str> = self.findings.iter().map(|row| row.file.as_str()).collect();
        names.sort_unstable();
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
        lines.extend(self.summary());
        lines
    }

    /// What could not be looked at, what was mended, how much was read back, and whether all is well.
    fn summary(&self) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(self.failures.iter().chain(&self.mended).cloned());
        lines.extend(self.inodes.map(|inodes| format!("The namespace has {}.", counted(inodes, "inode"))));
        let removed = self.removed.filter(|removed| *removed > 0);
        lines.extend(
            removed.map(|removed| {
                format!("The contents of {} are still to go.", counted(removed, "removed file"))
            }),
        );
        let read = Size(self.bytes).rounded();
        let verdict = match self.hurt() {
            0 if self.failures.is_empty() => "all is well",
            0 => "nothing wrong was found in it",
            _ => "see above",
        };
        lines.push(format!(
            "{}, {read} read back in {:.1} s: {verdict}.",
            counted(self.files, "file"),
            self.seconds
        ));
        lines
    }

    /// The findings below their head, of which there may be none.
    fn write_csv(&self, output: impl Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(output);
        writer.write_record(["file", "kind", "stripe", "agent", "disk", "damaged", "text"])?;
        for row in &self.findings {
            let number = |number: Option<u32>| number.map_or_else(String::new, |number| number.to_string());
            let damaged: Vec<String> =
                row.damaged.iter().map(|[offset, bytes]| format!("{offset}+{bytes}")).collect();
            let (stripe, disk, damaged) = (number(row.stripe), number(row.disk), damaged.join(" "));
            let agent = row.agent.as_deref().unwrap_or_default();
            writer.write_record([&row.file, row.kind, &stripe, agent, &disk, &damaged, &row.text])?;
        }
        writer.flush()
    }

    fn outcome(&self) -> Result<()> {
        const REMEDY: &str = "`starfish get --skip-damaged` saves what can be read of a file, and `starfish rm` removes \
                              it; `starfish fsck --repair` mends a namespace.";
        let remedy = match self.is_disk_away {
            true => format!(
                "First name all agents of the set, and start them with all their disks: what is missing may lie there. \
                 If it is lost: {REMEDY}"
            ),
            false => REMEDY.to_owned(),
        };
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
        FindingKind::Foreign => "foreign",
        FindingKind::Removed => "removed",
        FindingKind::Unreadable => "unreadable",
    }
}

/// Number of damaged parts shown in a line of the table.
const RANGES_MAX: usize = 4;

/// The first parts of a file, by their first and last bytes.
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
    fn many_ranges_are_not_all_listed() {
        assert_eq!(ranges(&[[0, 4096], [8192, 1]]), "bytes 0 to 4095, 8192");
        let many: Vec<[u64; 2]> = (0..7).map(|at| [at * 10, 2]).collect();
        assert_eq!(ranges(&many), "bytes 0 to 1, 10 to 11, 20 to 21, 30 to 31, 3 more parts");
    }
}
