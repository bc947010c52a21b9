//! Checks the namespace and repairs it.
//!
//! ```text
//! agents:           which stripes of numbered files exist?        first, since an inode is created before its stripes
//! metadata server:  all records                                   again after a problem: clients may be changing them
//! agents:           do the stripes of unknown files still exist?  a removal removes the stripes before the inode
//! ```
//!
//! A missing stripe is damage only if the inode of the file records that the stripe was created, because stripes
//! without data are never created. A missing disk of a stripe is damage. Missing stripes or disks of orphans are no
//! damage.
//!
//! `adoption.rs` describes the recovery of files without an inode.

use std::collections::{BTreeMap, BTreeSet};

use command_line::counted;
use command_line::failure::{Failure, Result};
use fs::{DisksByIdentity, FileId};
use machine::{NO_DISK, NodeId};
use namespace::{Defect, FileNumber, Inode, Repair, SurveyedRecord, TreeOperation, defects};
use transfer::namespace::{Namespace, StripeOfMissingDisk, is_removed, shown};

use super::FsckFinding;
use super::adoption::{Adoption, Stripe, adopt};

/// Maximum number of times that the records are read, if clients may be changing them.
const LOOKS: usize = 3;

/// Maximum number of repair rounds. Several may be needed, because one problem can hide another.
const ROUNDS: usize = 8;

/// Missing stripe of a file.
struct LostStripe {
    file: FileNumber,
    stripe: u32,
    why: String,
    /// True if the stripe may be on an absent disk.
    may_be_away: bool,
}

/// Result of repairing a namespace.
#[derive(Default)]
pub(super) struct RepairResult {
    /// Description of each repair.
    pub(super) done: Vec<String>,
    /// Failed repairs, with reasons.
    pub(super) failures: Vec<String>,
    /// Damage of adopted files. Later checks cannot find this damage any more.
    pub(super) findings: Vec<FsckFinding>,
}

/// Contents of a namespace, and its problems.
pub(super) struct TreeCheck {
    /// Path of each file, by its number.
    paths: BTreeMap<FileNumber, Vec<u8>>,
    defects: Vec<Defect>,
    /// Stripes of unknown files, by file.
    unnamed: BTreeMap<FileId, Vec<Stripe>>,
    /// Missing stripes.
    lost: Vec<LostStripe>,
    /// Reasons that some stripes could not be listed.
    pub(super) failures: Vec<fs::Error>,
    /// Number of inodes.
    pub(super) inodes: usize,
    /// Number of orphans: removed files whose contents still exist.
    pub(super) removed: usize,
    /// Files that have a name and stripes.
    pub(super) stored: BTreeSet<FileId>,
}

impl TreeCheck {
    /// Reads all records of a namespace and lists all stripes.
    pub(super) async fn of(namespace: &Namespace) -> Result<TreeCheck> {
        let connection = &namespace.connection;
        let fs::Partial { found: listed, failures } = connection.client.list_numbered_partly().await;
        let (records, defects) = surveyed(namespace).await?;
        let mut known: BTreeMap<FileNumber, &Inode> = BTreeMap::new();
        for record in &records {
            if let SurveyedRecord::Inode(inode) = record {
                known.insert(inode.number, inode);
            }
        }
        let mut unnamed: BTreeMap<FileId, Vec<Stripe>> = BTreeMap::new();
        for (node, stripe) in &listed {
            if !known.contains_key(&FileNumber(stripe.file.0)) {
                unnamed.entry(stripe.file).or_default().push((*node, *stripe));
            }
        }
        if !unnamed.is_empty() {
            let again = connection.client.list_numbered_partly().await.found;
            let still: BTreeSet<FileId> = again.into_iter().map(|(_, stripe)| stripe.file).collect();
            unnamed.retain(|file, _| still.contains(file));
        }
        let places = connection
            .explained("cannot get the list of disks", connection.client.disks_by_identity().await)?;
        let lost = all_lost(namespace, &places, &known, &listed).await?;
        let named = |file: &FileId| known.get(&FileNumber(file.0)).is_some_and(|inode| inode.links > 0);
        let stored = listed.iter().map(|(_, stripe)| stripe.file).filter(named).collect();
        let inodes = known.len();
        let removed = records.iter().filter(|record| matches!(record, SurveyedRecord::Orphan(_))).count();
        Ok(TreeCheck { paths: paths(&records), defects, unnamed, lost, failures, inodes, removed, stored })
    }

    /// Returns the name of a file for the report: its path, or its number if it has none.
    pub(super) fn called(&self, number: FileNumber) -> String {
        self.paths.get(&number).map_or_else(|| format!("number {number}"), |path| shown(path))
    }

    /// Returns the findings.
    pub(super) fn findings(&self, namespace: &Namespace) -> Vec<FsckFinding> {
        let name = |node: NodeId| namespace.connection.name(node).to_owned();
        let records = self.defects.iter().map(|complaint| FsckFinding {
            file: "namespace".into(),
            kind: "record",
            stripe: None,
            agent: Some(namespace.metadata_server().to_owned()),
            disk: None,
            damaged: Vec::new(),
            text: complaint.text.clone(),
        });
        let unnamed = self.unnamed.iter().flat_map(|(file, stripes)| {
            stripes.iter().map(move |(node, stripe)| FsckFinding {
                file: format!("number {:016x}", file.0),
                kind: "unnamed",
                stripe: stripe.stripe.map(|(stripe, _)| stripe),
                agent: Some(name(*node)),
                disk: Some(stripe.disk),
                damaged: Vec::new(),
                text: "the namespace does not contain this file".into(),
            })
        });
        records.chain(unnamed).chain(missing(&self.lost, |file| self.called(file))).collect()
    }

    /// True if missing stripes may be on an absent disk.
    pub(super) fn is_disk_away(&self) -> bool {
        self.lost.iter().any(|lost| lost.may_be_away)
    }

    /// Repairs as many problems as possible. If the repair of one file fails, continues with the other files.
    pub(super) async fn repair(&self, namespace: &Namespace, remove_unnamed: bool) -> Result<RepairResult> {
        if let Some(error) = self.failures.first() {
            // If not all stripes could be listed, unlisted stripes must not be considered lost.
            return Err(namespace.connection.explain("cannot list the stripes", error).into());
        }
        // Reserve these numbers first. Otherwise a file that is created at this moment could get one of them.
        for file in self.unnamed.keys() {
            let repair = Repair::Reserve { number: FileNumber(file.0) };
            namespace.perform(b"cannot repair the namespace", TreeOperation::Mend { repair }).await?;
        }
        let mut mended = RepairResult {
            done: repair_records(namespace, self.defects.clone()).await?,
            ..RepairResult::default()
        };
        if remove_unnamed {
            let files: Vec<FileId> = self.unnamed.keys().copied().collect();
            let connection = &namespace.connection;
            connection.explained("cannot remove stripes", connection.client.remove_numbered(&files).await)?;
            mended
                .done
                .extend(files.iter().map(|file| format!("number {:016x}: its stripes were removed", file.0)));
        } else {
            for (file, adoption) in adopt(namespace, &self.unnamed).await? {
                match adoption {
                    Ok(adoption) => mended.note(file, adoption),
                    Err(failure) => mended.failures.push(failure.to_string()),
                }
            }
        }
        namespace.connection.explained("cannot remove contents", namespace.tree.remove_orphans().await)?;
        namespace.flush().await?;
        Ok(mended)
    }
}

impl RepairResult {
    fn note(&mut self, file: FileId, adoption: Adoption) {
        let number = format!("number {:016x}", file.0);
        match adoption {
            Adoption::Named { count, lost, short } => {
                let path = format!("/lost+found/{:016x}", file.0);
                self.done.push(match lost {
                    0 => format!("{number}: now named {path}"),
                    lost => format!("{number}: now named {path}, without {lost} of its {count} stripes"),
                });
                self.findings.extend(short.into_iter().map(|(stripe, bytes)| FsckFinding {
                    file: path.clone(),
                    kind: "missing",
                    stripe: Some(stripe),
                    agent: None,
                    disk: None,
                    damaged: Vec::new(),
                    text: format!(
                        "it ends after {bytes} bytes, before the other stripes: the rest is a hole or lost, \
                         and reads as zeros"
                    ),
                }));
            }
            Adoption::Removed => self.done.push(format!(
                "{number}: it was removed while an agent was disconnected; the stripes on that agent are \
                 removed now"
            )),
            Adoption::Unknown => self.done.push(format!(
                "{number}: none of its stripes has a readable label; --remove-unnamed removes them"
            )),
        }
    }
}

/// Returns missing stripes as findings.
fn missing(lost: &[LostStripe], called: impl Fn(FileNumber) -> String) -> impl Iterator<Item = FsckFinding> {
    lost.iter().map(move |lost| FsckFinding {
        file: called(lost.file),
        kind: "missing",
        stripe: Some(lost.stripe),
        agent: None,
        disk: None,
        damaged: Vec::new(),
        text: lost.why.clone(),
    })
}

/// Missing stripes of known files.
pub(super) struct LostStripes(Vec<LostStripe>);

impl LostStripes {
    /// Returns the missing stripes of files with these inodes.
    pub(super) async fn of(namespace: &Namespace, inodes: &BTreeMap<FileNumber, Inode>) -> Result<Self> {
        let connection = &namespace.connection;
        let places = connection
            .explained("cannot get the list of disks", connection.client.disks_by_identity().await)?;
        let inodes = inodes.iter().map(|(number, inode)| (*number, inode)).collect();
        Ok(LostStripes(all_lost(namespace, &places, &inodes, &[]).await?))
    }

    /// True if missing stripes may be on an absent disk.
    pub(super) fn is_disk_away(&self) -> bool {
        self.0.iter().any(|lost| lost.may_be_away)
    }

    /// Returns the missing stripes as findings.
    pub(super) fn findings(
        &self,
        called: impl Fn(FileNumber) -> String,
    ) -> impl Iterator<Item = FsckFinding> {
        missing(&self.0, called)
    }
}

/// Returns all records, and their problems. A problem that is absent in a later survey was a change in progress, and is
/// left out.
async fn surveyed(namespace: &Namespace) -> Result<(Vec<SurveyedRecord>, Vec<Defect>)> {
    let mut records = namespace.survey().await?;
    let mut found = defects(&records);
    for _ in 1..LOOKS {
        if found.is_empty() {
            break;
        }
        records = namespace.survey().await?;
        let again = defects(&records);
        found.retain(|complaint| again.contains(complaint));
    }
    Ok((records, found))
}

async fn repair_records(namespace: &Namespace, mut found: Vec<Defect>) -> Result<Vec<String>> {
    let mut done = Vec::new();
    for _ in 0..ROUNDS {
        if found.is_empty() {
            break;
        }
        for Defect { text, repair } in found {
            namespace.perform(b"cannot repair the namespace", TreeOperation::Mend { repair }).await?;
            done.push(format!("{text}: repaired"));
        }
        (_, found) = surveyed(namespace).await?;
    }
    if found.is_empty() {
        return Ok(done);
    }
    Err(Failure::new(
        "cannot repair the namespace",
        format!("problems remain after the repairs: {}", counted(found.len(), "problem")),
    ))
}

/// Returns all missing stripes. For each file, the report has one of its names and the number of its other names.
async fn all_lost(
    namespace: &Namespace,
    places: &DisksByIdentity,
    inodes: &BTreeMap<FileNumber, &Inode>,
    listed: &[Stripe],
) -> Result<Vec<LostStripe>> {
    let mut lost = lost_disks(namespace, places, inodes).await?;
    lost.extend(lost_stripes(namespace, places, inodes, listed).await?);
    for lost in &mut lost {
        match inodes.get(&lost.file).map_or(1, |inode| inode.links) {
            0 | 1 => {}
            2 => lost.why += "; the file has another name, too",
            names => lost.why += &format!("; the file has {} other names, too", names - 1),
        }
    }
    Ok(lost)
}

/// Returns stripes of non-empty files whose disks no agent has.
async fn lost_disks(
    namespace: &Namespace,
    places: &DisksByIdentity,
    inodes: &BTreeMap<FileNumber, &Inode>,
) -> Result<Vec<LostStripe>> {
    let lost = namespace.stripes_on_disks_that_are_nowhere(places, inodes.values().copied()).await?;
    let missing = match namespace.connection.incompleteness() {
        Ok(()) => String::new(),
        Err(error) => format!("; {}: {}", error.what(), error.why()),
    };
    let found = lost.into_iter().map(|StripeOfMissingDisk { file, stripe, disk }| {
        let why = match disk {
            NO_DISK => "no agent had its disk when the file was named".to_owned(),
            disk if missing.is_empty() => format!("no agent has its disk, {disk:016x}"),
            disk => format!("its disk, {disk:016x}, cannot be used{missing}"),
        };
        LostStripe { file, stripe, why, may_be_away: disk != NO_DISK }
    });
    Ok(found.collect())
}

/// Returns created stripes that are missing although agents have their disks. Either another disk is in place of the
/// right one, or the stripes were removed by hand.
async fn lost_stripes(
    namespace: &Namespace,
    places: &DisksByIdentity,
    inodes: &BTreeMap<FileNumber, &Inode>,
    listed: &[Stripe],
) -> Result<Vec<LostStripe>> {
    let connection = &namespace.connection;
    let there = indices(listed);
    let (mut lost, mut listed_now) = (Vec::new(), None::<BTreeSet<_>>);
    // The contents of an orphan may already have been removed.
    for inode in inodes.values().filter(|inode| inode.links > 0) {
        let number = inode.number;
        let is_there = |stripe: &u32| there.contains(&(FileId(number.0), *stripe));
        let missing: Vec<u32> = (0..inode.stored_stripes).filter(|stripe| !is_there(stripe)).collect();
        if missing.is_empty() {
            continue;
        }
        let numbered =
            connection.explained("cannot get the list of disks", namespace.tree.numbered(inode).await)?;
        // A stripe whose disk is missing has been reported already.
        let is_somewhere = |stripe: &u32| places.contains_key(&numbered.disks[*stripe as usize]);
        let missing: Vec<u32> = missing.into_iter().filter(is_somewhere).collect();
        if missing.is_empty() {
            continue;
        }
        // A stripe may have been created after the stripes were listed, so look it up now.
        let found = match connection.client.numbered_stripes(&numbered).await {
            // The file may have been removed since.
            Err(error) if is_removed(&error) && !is_named(namespace, number).await? => continue,
            Err(error) if matches!(*error, fs::Error::Remote { .. }) => {
                // A stripe of this file cannot be opened. List the existing stripes instead.
                if listed_now.is_none() {
                    let listed = connection.client.list_numbered_partly().await.found;
                    listed_now = Some(indices(&listed));
                }
                let there = listed_now.iter().flatten().filter(|(file, _)| file.0 == number.0);
                let there: BTreeSet<u32> = there.map(|(_, stripe)| *stripe).collect();
                let missing = missing.into_iter().filter(|stripe| !there.contains(stripe));
                let why = connection.explain("its stripes", &error).why().to_owned();
                let of = |stripe| LostStripe { file: number, stripe, why: why.clone(), may_be_away: false };
                lost.extend(missing.map(of));
                continue;
            }
            found => connection.explained("cannot look up the stripes", found)?,
        };
        lost.extend(missing.into_iter().filter(|stripe| !found.contains_key(stripe)).map(|stripe| {
            let disk = numbered.disks[stripe as usize];
            let why = format!("it is missing on its disk, {disk:016x}");
            LostStripe { file: number, stripe, why, may_be_away: false }
        }));
    }
    Ok(lost)
}

/// Returns the file and the index of each stripe with a readable label.
fn indices(listed: &[Stripe]) -> BTreeSet<(FileId, u32)> {
    let index = |(_, listed): &Stripe| listed.stripe.map(|(stripe, _)| (listed.file, stripe));
    listed.iter().filter_map(index).collect()
}

/// True if a file has a name.
pub(super) async fn is_named(namespace: &Namespace, number: FileNumber) -> Result<bool> {
    match namespace.tree.inode(TreeOperation::Get { number }).await {
        Err(error) if matches!(*error, fs::Error::Refused(_)) => Ok(false),
        inode => Ok(namespace.connection.explained("cannot look up a file", inode)?.links > 0),
    }
}

/// Returns a path of each file and directory that has a path.
fn paths(records: &[SurveyedRecord]) -> BTreeMap<FileNumber, Vec<u8>> {
    let mut inside: BTreeMap<FileNumber, Vec<(&[u8], FileNumber)>> = BTreeMap::new();
    for record in records {
        if let SurveyedRecord::Entry { directory, name, number } = record {
            inside.entry(*directory).or_default().push((name, *number));
        }
    }
    let (mut paths, mut next) = (BTreeMap::new(), vec![(FileNumber::ROOT, Vec::new())]);
    while let Some((number, path)) = next.pop() {
        if paths.contains_key(&number) {
            continue;
        }
        for (name, number) in inside.get(&number).into_iter().flatten() {
            next.push((*number, [&*path, b"/", name].concat()));
        }
        paths.insert(number, path);
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_even_if_a_directory_contains_itself() {
        let entry = |directory, name: &str, number| SurveyedRecord::Entry {
            directory: FileNumber(directory),
            name: name.into(),
            number: FileNumber(number),
        };
        let records = [entry(1, "d", 5), entry(5, "x", 6), entry(5, "itself", 5), entry(9, "lost", 10)];
        let paths = paths(&records);
        assert_eq!(paths.get(&FileNumber(6)).map(Vec::as_slice), Some(&b"/d/x"[..]));
        assert!(!paths.contains_key(&FileNumber(10)));
    }
}
