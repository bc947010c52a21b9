//! What is wrong with the namespace, and how it is mended.
//!
//! ```text
//! the agents:  which stripes of numbered files are there?      first, since a file has its inode before its stripes
//! the keeper:  all records                                     again, if anything is wrong: others may change them
//! the agents:  are the stripes that nobody knows still there?  a file that is removed loses its stripes first
//! ```
//!
//! That a stripe is nowhere is a finding if the file's inode says that it was made; of others it may be that nothing
//! was ever written to them. That the disk of one is nowhere is a finding. Of files that have been removed, and whose
//! contents are still to go, nothing is.
//!
//! How files without an inode get one is told in `adoption.rs`.

use std::collections::{BTreeMap, BTreeSet};

use command_line::counted;
use command_line::failure::{Failure, Result};
use fs::{DisksByIdentity, FileId};
use machine::{NO_DISK, NodeId};
use namespace::{Complaint, FileNumber, Inode, Repair, SurveyedRecord, TreeOperation, complaints};
use transfer::namespace::{Namespace, StripeOfNowhere, is_removed, shown};

use super::FsckFinding;
use super::adoption::{Adoption, Stripe, adopt};

/// How often records are looked at again that others may be changing.
const LOOKS: usize = 3;

/// How often what is found is mended: one thing may hide another.
const ROUNDS: usize = 8;

/// A stripe of a file that is nowhere.
struct LostStripe {
    file: FileNumber,
    stripe: u32,
    why: String,
    /// Whether it may be on a disk that is away.
    may_be_away: bool,
}

/// What mending a namespace has come to.
#[derive(Default)]
pub(super) struct Mended {
    /// What was done, in words.
    pub(super) done: Vec<String>,
    /// What could not be done, and why.
    pub(super) failures: Vec<String>,
    /// What is wrong with files that were given names and cannot be seen any more.
    pub(super) findings: Vec<FsckFinding>,
}

/// What there is of a namespace, and what is wrong with it.
pub(super) struct TreeCheck {
    /// The path of each file, by its number.
    paths: BTreeMap<FileNumber, Vec<u8>>,
    complaints: Vec<Complaint>,
    /// Stripes of files that are not known, by the file.
    unnamed: BTreeMap<FileId, Vec<Stripe>>,
    /// Stripes that are nowhere.
    lost: Vec<LostStripe>,
    /// Why some stripes could not be looked for.
    pub(super) failures: Vec<fs::Error>,
    /// How many inodes there are.
    pub(super) inodes: usize,
    /// How many of them are of files that have been removed, and whose contents are still to go.
    pub(super) removed: usize,
    /// Files that have a name and stripes.
    pub(super) stored: BTreeSet<FileId>,
}

impl TreeCheck {
    /// Looks at all records of a namespace and at all stripes.
    pub(super) async fn of(namespace: &Namespace) -> Result<TreeCheck> {
        let connection = &namespace.connection;
        let fs::Partial { found: listed, failures } = connection.client.list_numbered_partly().await;
        let (records, complaints) = surveyed(namespace).await?;
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
        let places = connection.explained("asking for disks", connection.client.disks_by_identity().await)?;
        let lost = all_lost(namespace, &places, &known, &listed).await?;
        let named = |file: &FileId| known.get(&FileNumber(file.0)).is_some_and(|inode| inode.links > 0);
        let stored = listed.iter().map(|(_, stripe)| stripe.file).filter(named).collect();
        let inodes = known.len();
        let removed = records.iter().filter(|record| matches!(record, SurveyedRecord::Doomed(_))).count();
        Ok(TreeCheck { paths: paths(&records), complaints, unnamed, lost, failures, inodes, removed, stored })
    }

    /// What a file is called: its path, if it has one.
    pub(super) fn called(&self, number: FileNumber) -> String {
        self.paths.get(&number).map_or_else(|| format!("number {number}"), |path| shown(path))
    }

    /// What is wrong.
    pub(super) fn findings(&self, namespace: &Namespace) -> Vec<FsckFinding> {
        let name = |node: NodeId| namespace.connection.name(node).to_owned();
        let records = self.complaints.iter().map(|complaint| FsckFinding {
            file: "namespace".into(),
            kind: "record",
            stripe: None,
            agent: Some(namespace.keeper().to_owned()),
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
                text: "the namespace knows no such file".into(),
            })
        });
        records.chain(unnamed).chain(missing(&self.lost, |file| self.called(file))).collect()
    }

    /// Whether something is missing that may be on a disk that is away.
    pub(super) fn is_disk_away(&self) -> bool {
        self.lost.iter().any(|lost| lost.may_be_away)
    }

    /// Mends what can be mended. What cannot be done with one file keeps it from no other.
    pub(super) async fn mend(&self, namespace: &Namespace, remove_unnamed: bool) -> Result<Mended> {
        if let Some(error) = self.failures.first() {
            // A stripe there must not be taken for lost.
            return Err(namespace.connection.explain("listing stripes", error).into());
        }
        // First of all: a file that is made now may be given one of these numbers.
        for file in self.unnamed.keys() {
            let repair = Repair::Reserve { number: FileNumber(file.0) };
            namespace.perform(b"the namespace", TreeOperation::Mend { repair }).await?;
        }
        let mut mended =
            Mended { done: mend_records(namespace, self.complaints.clone()).await?, ..Mended::default() };
        if remove_unnamed {
            let files: Vec<FileId> = self.unnamed.keys().copied().collect();
            let connection = &namespace.connection;
            connection.explained("removing stripes", connection.client.remove_numbered(&files).await)?;
            mended
                .done
                .extend(files.iter().map(|file| format!("number {:016x}: its stripes are removed", file.0)));
        } else {
            for (file, adoption) in adopt(namespace, &self.unnamed).await? {
                match adoption {
                    Ok(adoption) => mended.note(file, adoption),
                    Err(failure) => mended.failures.push(failure.to_string()),
                }
            }
        }
        namespace.connection.explained("removing contents", namespace.tree.remove_doomed().await)?;
        namespace.flush().await?;
        Ok(mended)
    }
}

impl Mended {
    fn note(&mut self, file: FileId, adoption: Adoption) {
        let number = format!("number {:016x}", file.0);
        match adoption {
            Adoption::Named { count, lost, short } => {
                let path = format!("/lost+found/{:016x}", file.0);
                self.done.push(match lost {
                    0 => format!("{number}: it is {path} now"),
                    lost => format!("{number}: it is {path} now, without {lost} of its {count} stripes"),
                });
                self.findings.extend(short.into_iter().map(|(stripe, bytes)| FsckFinding {
                    file: path.clone(),
                    kind: "missing",
                    stripe: Some(stripe),
                    agent: None,
                    disk: None,
                    damaged: Vec::new(),
                    text: format!(
                        "it ends after {bytes} bytes, before others do: what would come then is a hole or lost, and \
                         reads as zeros"
                    ),
                }));
            }
            Adoption::Removed => self.done.push(format!(
                "{number}: it was removed while an agent was away; what that had of it is removed, too"
            )),
            Adoption::Unknown => self.done.push(format!(
                "{number}: none of its stripes says what it is; --remove-unnamed removes them"
            )),
        }
    }
}

/// Stripes that are nowhere, as findings.
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

/// Stripes of files that are nowhere, of files that are known.
pub(super) struct LostStripes(Vec<LostStripe>);

impl LostStripes {
    /// Those of files with these inodes.
    pub(super) async fn of(namespace: &Namespace, inodes: &BTreeMap<FileNumber, Inode>) -> Result<Self> {
        let connection = &namespace.connection;
        let places = connection.explained("asking for disks", connection.client.disks_by_identity().await)?;
        let inodes = inodes.iter().map(|(number, inode)| (*number, inode)).collect();
        Ok(LostStripes(all_lost(namespace, &places, &inodes, &[]).await?))
    }

    /// Whether something is missing that may be on a disk that is away.
    pub(super) fn is_disk_away(&self) -> bool {
        self.0.iter().any(|lost| lost.may_be_away)
    }

    /// As findings.
    pub(super) fn findings(
        &self,
        called: impl Fn(FileNumber) -> String,
    ) -> impl Iterator<Item = FsckFinding> {
        missing(&self.0, called)
    }
}

/// All records, and what is wrong with them. What is wrong only once was being changed.
async fn surveyed(namespace: &Namespace) -> Result<(Vec<SurveyedRecord>, Vec<Complaint>)> {
    let mut records = namespace.survey().await?;
    let mut found = complaints(&records);
    for _ in 1..LOOKS {
        if found.is_empty() {
            break;
        }
        records = namespace.survey().await?;
        let again = complaints(&records);
        found.retain(|complaint| again.contains(complaint));
    }
    Ok((records, found))
}

async fn mend_records(namespace: &Namespace, mut found: Vec<Complaint>) -> Result<Vec<String>> {
    let mut done = Vec::new();
    for _ in 0..ROUNDS {
        if found.is_empty() {
            break;
        }
        for Complaint { text, repair } in found {
            namespace.perform(b"the namespace", TreeOperation::Mend { repair }).await?;
            done.push(format!("{text}: mended"));
        }
        (_, found) = surveyed(namespace).await?;
    }
    if found.is_empty() {
        return Ok(done);
    }
    Err(Failure::new(
        "the namespace",
        format!("after all that was mended there is more wrong: {}", counted(found.len(), "thing")),
    ))
}

/// All stripes that are nowhere. Of a file it is told by one of its names, and how many others it has.
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

/// Stripes of files that are not empty on disks that none of the agents has.
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
    let told = lost.into_iter().map(|StripeOfNowhere { file, stripe, disk }| {
        let why = match disk {
            NO_DISK => "it was on none of the agents' disks when the file got its name".to_owned(),
            disk if missing.is_empty() => format!("none of the agents has its disk, {disk:016x}"),
            disk => format!("its disk, {disk:016x}, cannot be used{missing}"),
        };
        LostStripe { file, stripe, why, may_be_away: disk != NO_DISK }
    });
    Ok(told.collect())
}

/// Stripes that were made and are not on their disks, though agents have these: another one is in the place of the
/// disk, or somebody has removed them.
async fn lost_stripes(
    namespace: &Namespace,
    places: &DisksByIdentity,
    inodes: &BTreeMap<FileNumber, &Inode>,
    listed: &[Stripe],
) -> Result<Vec<LostStripe>> {
    let connection = &namespace.connection;
    let there = indices(listed);
    let (mut lost, mut listed_now) = (Vec::new(), None::<BTreeSet<_>>);
    // Of a file without names the contents may have gone already.
    for inode in inodes.values().filter(|inode| inode.links > 0) {
        let number = inode.number;
        let is_there = |stripe: &u32| there.contains(&(FileId(number.0), *stripe));
        let missing: Vec<u32> = (0..inode.stored_stripes).filter(|stripe| !is_there(stripe)).collect();
        if missing.is_empty() {
            continue;
        }
        let numbered = connection.explained("asking for disks", namespace.tree.numbered(inode).await)?;
        // Of a disk that is nowhere it has been told already.
        let is_somewhere = |stripe: &u32| places.contains_key(&numbered.disks[*stripe as usize]);
        let missing: Vec<u32> = missing.into_iter().filter(is_somewhere).collect();
        if missing.is_empty() {
            continue;
        }
        // It may have been made after stripes were listed.
        let found = match connection.client.numbered_stripes(&numbered).await {
            // The file may have been removed since.
            Err(error) if is_removed(&error) && !is_named(namespace, number).await? => continue,
            Err(error) if matches!(*error, fs::Error::Remote { .. }) => {
                // One of its stripes cannot be opened. A list tells which of them are there.
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
            found => connection.explained("asking for stripes", found)?,
        };
        lost.extend(missing.into_iter().filter(|stripe| !found.contains_key(stripe)).map(|stripe| {
            let disk = numbered.disks[stripe as usize];
            let why = format!("it was made, and is not on its disk, {disk:016x}");
            LostStripe { file: number, stripe, why, may_be_away: false }
        }));
    }
    Ok(lost)
}

/// The file and the index of each stripe that says what it is.
fn indices(listed: &[Stripe]) -> BTreeSet<(FileId, u32)> {
    let index = |(_, listed): &Stripe| listed.stripe.map(|(stripe, _)| (listed.file, stripe));
    listed.iter().filter_map(index).collect()
}

/// Whether a file has a name.
pub(super) async fn is_named(namespace: &Namespace, number: FileNumber) -> Result<bool> {
    match namespace.tree.inode(TreeOperation::Get { number }).await {
        Err(error) if matches!(*error, fs::Error::Refused(_)) => Ok(false),
        inode => Ok(namespace.connection.explained("asking for a file", inode)?.links > 0),
    }
}

/// A path of each file and directory that has one.
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
    fn a_path_of_each_file_is_known_even_if_directories_lie_within_themselves() {
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
