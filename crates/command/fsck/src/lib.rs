//! Checks the files and the namespace of a set of agents. The agents read all data back from their disks. The check
//! reports all damage.
//!
//! - this file: the contents of files, and the report
//! - `tree.rs`: the namespace; `adoption.rs`: files without an inode

mod adoption;
mod tree;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::mem;
use std::rc::Rc;
use std::time::Instant;

use command_line::failure::{Failure, Result};
use command_line::progress::Progress;
use fs::{Check, Checking, FileId, Finding, FindingKind};
use namespace::FileNumber;
use node::ConnectedNode;
use serde::Serialize;
use transfer::cluster::Cluster;
use transfer::namespace::{Namespace, shown};
use tree::{LostStripes, TreeCheck, is_named};

/// Result of a check, in the form of the JSON output.
#[derive(Serialize)]
pub struct Report {
    /// Number of files read back so far.
    pub files: usize,
    /// Number of bytes read back so far, from all disks together.
    pub bytes: u64,
    /// Duration of the check in seconds.
    pub seconds: f64,
    /// Damage found.
    pub findings: Vec<FsckFinding>,
    /// Parts that could not be checked, with reasons.
    pub failures: Vec<String>,
    /// Number of inodes of the namespace, if there is one and all of it was checked.
    pub inodes: Option<usize>,
    /// Number of orphans: removed files whose contents still exist.
    pub removed: Option<usize>,
    /// Description of each repair.
    pub mended: Vec<String>,
    /// True if missing stripes may be on an absent disk.
    #[serde(skip)]
    pub is_disk_away: bool,
}

/// Damage of a file or of the namespace.
#[derive(Serialize)]
pub struct FsckFinding {
    /// Path of the file.
    pub file: String,
    /// Kind of damage, in one word.
    pub kind: &'static str,
    /// Index of the stripe, if one is damaged.
    pub stripe: Option<u32>,
    /// Agent that has the stripe, if known.
    pub agent: Option<String>,
    /// Index of the disk of that agent.
    pub disk: Option<u32>,
    /// Damaged ranges of the file, each as offset and number of bytes.
    pub damaged: Vec<[u64; 2]>,
    /// Description of the damage.
    pub text: String,
}

/// Scope and options of a check.
#[derive(Clone, Debug, Default)]
pub struct FsckOptions {
    /// Paths of files and directories. If empty, everything is checked.
    pub names: Vec<String>,
    /// Maximum number of bytes to read back in a second.
    pub rate: Option<u64>,
    /// True if the namespace is to be repaired.
    pub repair: bool,
    /// True if a repair removes stripes of unknown files.
    pub remove_unnamed: bool,
    /// True if a lost namespace is to be replaced by a new one.
    pub new_namespace: bool,
    /// True if disks of another namespace become disks of this one.
    pub take_disks: bool,
}

/// Checks files and the namespace, and repairs the namespace if `options.repair` is set. Adds the number of bytes read
/// back to `progress`.
///
/// Fails if there is nothing to check, or if an agent does not answer during a repair. Damage is reported, but is no
/// failure.
pub fn fsck(cluster: &Cluster, options: FsckOptions, progress: &Progress) -> Result<Report> {
    let repair = options.repair;
    let fsck = Fsck { options, progress: progress.clone(), expected: Cell::new(0) };
    match repair {
        // A repair needs all agents, because stripes of an absent agent must not be considered lost.
        true => cluster.run(move |connection| async move { fsck.carry_out(&connection).await }),
        false => cluster.run_with_present(move |connection| async move { fsck.carry_out(&connection).await }),
    }
}

/// State of a check.
struct Fsck {
    options: FsckOptions,
    progress: Progress,
    /// Number of bytes that will be read back, as far as known.
    expected: Cell<u64>,
}

impl Fsck {
    async fn carry_out(self, connection: &ConnectedNode) -> Result<Report> {
        let begun = Instant::now();
        if self.options.repair {
            connection.incompleteness()?;
        }
        let namespace = self.namespace(connection).await?;
        let mut report = match &*self.options.names {
            [] => self.all(&namespace).await?,
            names => self.paths(&namespace, names).await?,
        };
        report.seconds = begun.elapsed().as_secs_f64();
        report.note_incompleteness(connection);
        Ok(report)
    }

    /// Returns the existing namespace, or a new one if the user requested a new one.
    async fn namespace(&self, connection: &ConnectedNode) -> Result<Namespace> {
        if !self.options.new_namespace {
            let namespace = Namespace::of(connection).await?;
            // Disks of another namespace become disks of this one only if `take_disks` is set.
            let tree = &namespace.tree;
            let disks =
                if self.options.take_disks { tree.take_disks().await } else { tree.check_disks().await };
            connection.explained("cannot check the disks", disks)?;
            return Ok(namespace);
        }
        match Namespace::find(connection).await? {
            Some(namespace) => {
                let why = format!(
                    "a namespace exists: its metadata server is agent {}",
                    namespace.metadata_server()
                );
                Err(Failure::new("--new-namespace", why).remedy("Leave out --new-namespace."))
            }
            None => Ok(Namespace::begin_anew(connection).await?),
        }
    }

    async fn read_back(&self, connection: &ConnectedNode, files: &[FileId]) -> Result<Check> {
        let (shown, before) = (self.progress.clone(), self.expected.get());
        let expected = Rc::new(Cell::new(before));
        let now = expected.clone();
        let on_progress = move |checking| match checking {
            Checking::Expected(bytes) => {
                now.set(before + bytes);
                shown.expect(before + bytes);
            }
            Checking::Done(bytes) => shown.add(bytes),
        };
        let check = connection
            .explained("fsck", connection.client.check(files, self.options.rate, on_progress).await)?;
        self.expected.set(expected.get());
        Ok(check)
    }

    /// Checks all records and all files.
    async fn all(&self, namespace: &Namespace) -> Result<Report> {
        let connection = &namespace.connection;
        let mut report = Report::of(connection, Check::default(), |_| String::new());
        let mut check = TreeCheck::of(namespace).await?;
        if self.options.repair {
            let mended = check.repair(namespace, self.options.remove_unnamed).await?;
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

    /// Checks the contents of the files at these paths.
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

/// Removes findings about files that have no stripes, because they are entirely a hole or were removed during the
/// check.
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
    /// Returns the report of a check of files. `called` returns the name of a file.
    fn of(connection: &ConnectedNode, check: Check, called: impl Fn(FileNumber) -> String) -> Report {
        let row = |name: &Rc<str>, finding: Finding| FsckFinding {
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

    /// Inserts agents that do not answer and unusable disks at the beginning of the failures, each once.
    fn note_incompleteness(&mut self, connection: &ConnectedNode) {
        let missing = connection.absent_agents().iter().chain(connection.failing_disks());
        let missing: Vec<String> = missing.map(node::Error::to_string).collect();
        self.is_disk_away |= !missing.is_empty();
        let mut failures = missing;
        for failure in mem::take(&mut self.failures) {
            // `missing` may contain the same failure, followed by its remedy.
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

    /// Returns the number of files with a problem.
    pub fn hurt(&self) -> usize {
        let mut names: Vec<&str> = self.findings.iter().map(|row| row.file.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names.len()
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
