//! Finds the files of older versions on disks: objects that have the file's name, one for each stripe.
//!
//! The label of an object names its file and stripe; the last commit record has the length of the file. A file is
//! finished if all of its stripes have a commit record, or if at least one stripe is published. If the label of a
//! finished file names another file that it replaces, it supersedes that file, even if stripes of the superseded file
//! remain.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use command_line::failure::{Failure, Result};
use fs::FileId;
use fs::protocol::{Committed, Label};
use futures_util::future::join_all;
use layout::Striping;
use machine::ObjectId;
use namespace::UnixTime;
use real::{Disk, OldObject, Stage};

/// Objects on the disks that have one name.
#[derive(Debug)]
pub(super) struct OldEntry {
    pub(super) name: String,
    pub(super) state: OldState,
}

/// File made of the objects of one name, or the reason why they make no file.
#[derive(Debug)]
pub(super) enum OldState {
    /// Finished file.
    Finished(OldFile),
    /// File that was never finished, as its stripes in the order in which they can be removed.
    Unfinished(Vec<Place>),
    /// Objects that cannot be read as the stripes of one file, and the reason.
    Broken(Failure),
}

/// Finished file, with the stripes that were found.
#[derive(Clone, Debug)]
pub(super) struct OldFile {
    pub(super) id: FileId,
    pub(super) striping: Striping,
    /// Size in bytes according to the stripes that were found.
    pub(super) bytes: u64,
    /// Index of a missing stripe, if any.
    pub(super) missing: Option<u32>,
    /// Disk and object of each stripe, by its index.
    pub(super) stripes: BTreeMap<u32, (usize, ObjectId)>,
    /// Time of the last change, if known.
    pub(super) modified: Option<UnixTime>,
    /// Objects of the file and of the files that it supersedes, in the order in which they can be removed.
    pub(super) places: Vec<Place>,
}

/// Location of an object: index of the disk, and stage.
pub(super) type Place = (usize, Stage);

/// Object that is a stripe.
#[derive(Clone, Debug)]
struct FoundStripe {
    place: Place,
    object: ObjectId,
    label: Label,
    bytes: u64,
    committed: Option<Committed>,
}

/// Finds all old files, in the order of their names. `disks` and `directories` have the same order.
pub(super) async fn find(disks: &[Disk], directories: &[PathBuf]) -> Result<Vec<OldEntry>> {
    let mut found: BTreeMap<String, Vec<Result<FoundStripe>>> = BTreeMap::new();
    let each = disks.iter().zip(directories).enumerate();
    let each = each.map(|(index, (disk, directory))| async move {
        let stripes = stripes_of(disk, index).await?;
        let known: BTreeSet<String> =
            stripes.iter().map(|(name, _)| Disk::published_file_name(name)).collect();
        let published = Disk::published_files(directory);
        let published = published.map_err(|error| Failure::new(directory.display().to_string(), error))?;
        let is_unknown = |file_name: &String| !known.contains(file_name);
        let unknown = published.into_iter().filter_map(|name| name.into_string().ok()).filter(is_unknown);
        let unknown: Vec<String> = unknown.map(|name| directory.join(name).display().to_string()).collect();
        Ok::<_, Failure>((stripes, unknown))
    });
    for outcome in join_all(each).await {
        let (stripes, unknown) = outcome?;
        for (name, stripe) in stripes {
            found.entry(name).or_default().push(stripe);
        }
        for path in unknown {
            let why = "it is damaged: its header has no readable name";
            found.entry(path.clone()).or_default().push(Err(Failure::new(path, why)));
        }
    }
    let entries = found.into_iter().flat_map(|(name, stripes)| {
        let file_name = Disk::published_file_name(&name);
        let modified = |disk: usize| {
            let time = std::fs::metadata(directories[disk].join(&file_name)).ok()?.modified().ok()?;
            time.duration_since(UNIX_EPOCH).ok()?.as_nanos().try_into().ok()
        };
        let states = match stripes.into_iter().collect::<Result<Vec<FoundStripe>>>() {
            Ok(stripes) => states(&name, &stripes, modified),
            Err(failure) => vec![OldState::Broken(failure)],
        };
        states.into_iter().map(move |state| OldEntry { name: name.clone(), state })
    });
    Ok(entries.collect())
}

/// Opens all objects of a disk that have names of old files.
async fn stripes_of(disk: &Disk, index: usize) -> Result<Vec<(String, Result<FoundStripe>)>> {
    let mut found = Vec::new();
    for stage in Stage::ALL {
        let names = disk.list_staged(stage).await;
        let names = names.map_err(|error| Failure::new("cannot list old files", error))?;
        // The names of numbered files begin with a slash.
        for name in names.into_iter().filter(|name| !name.starts_with('/')) {
            let stripe = match disk.open_staged(&name, stage).await {
                Ok(old) => read_stripe(&name, (index, stage), &old),
                Err(error) if matches!(*error, machine::Error::NotFound { .. }) => continue,
                Err(error) => Err(Failure::new(name.clone(), error)),
            };
            found.push((name.clone(), stripe));
        }
    }
    Ok(found)
}

fn read_stripe(name: &str, place: Place, OldObject { object, note }: &OldObject) -> Result<FoundStripe> {
    let refused = |why: String| Failure::new(name, format!("disk {}: not a Starfish stripe: {why}", place.0));
    Ok(FoundStripe {
        place,
        object: object.id,
        label: Label::decode(&object.label).map_err(refused)?,
        bytes: object.bytes,
        committed: Committed::decode(note).map_err(refused)?,
    })
}

/// Groups the stripes of one name by file, and returns the state of each file.
fn states(name: &str, found: &[FoundStripe], modified: impl Fn(usize) -> Option<UnixTime>) -> Vec<OldState> {
    let mut by_file: BTreeMap<FileId, Vec<&FoundStripe>> = BTreeMap::new();
    for stripe in found {
        by_file.entry(stripe.label.file).or_default().push(stripe);
    }
    let superseded: BTreeSet<FileId> = by_file
        .values()
        .filter(|stripes| is_finished(stripes) && missing(stripes).is_none())
        .filter_map(|stripes| stripes[0].label.replaces)
        .collect();
    let current = by_file.iter().filter(|(file, _)| !superseded.contains(*file));
    let (finished, others): (Vec<_>, Vec<_>) = current.partition(|(_, stripes)| is_finished(stripes));
    let mut states = Vec::new();
    match &*finished {
        [] => {}
        [(_, stripes)] => {
            states.push(finished_file(name, stripes, modified).map_or_else(OldState::Broken, |mut file| {
                // Remove the superseded file first. If it outlived the new file, it would become the current file of
                // this name again.
                let is_superseded = |stripe: &&FoundStripe| superseded.contains(&stripe.label.file);
                let mut places: Vec<Place> =
                    found.iter().filter(is_superseded).map(|old| old.place).collect();
                places.append(&mut file.places);
                file.places = places;
                OldState::Finished(file)
            }))
        }
        several => {
            let why = format!("the disks have stripes of {} different files of this name", several.len());
            states.push(OldState::Broken(Failure::new(name, why)));
        }
    }
    for (_, stripes) in others {
        states.push(match missing(stripes) {
            // A client commits a file only after all its stripes exist.
            Some(_) if stripes.iter().all(|stripe| stripe.committed.is_some()) => {
                finished_file(name, stripes, |_| None).map_or_else(OldState::Broken, OldState::Finished)
            }
            _ => {
                let mut places: Vec<_> =
                    stripes.iter().map(|stripe| (stripe.committed.is_none(), stripe.place)).collect();
                // Remove uncommitted stripes last. Otherwise the remaining committed stripes could look like a finished
                // file.
                places.sort_unstable();
                OldState::Unfinished(places.into_iter().map(|(_, place)| place).collect())
            }
        });
    }
    states
}

/// True if these stripes belong to a finished file: a client publishes the first stripe only when all stripes are
/// committed.
fn is_finished(stripes: &[&FoundStripe]) -> bool {
    let is_published = |stripe: &&FoundStripe| stripe.place.1 == Stage::Published;
    let are_committed = || stripes.iter().all(|stripe| stripe.committed.is_some());
    stripes.iter().any(is_published) || missing(stripes).is_none() && are_committed()
}

/// Returns the index of a stripe that is missing in this list, if any.
fn missing(stripes: &[&FoundStripe]) -> Option<u32> {
    let exists = |index: u32| stripes.iter().any(|stripe| stripe.label.stripe == index);
    (0..stripes[0].label.striping.stripe_count()).find(|&index| !exists(index))
}

/// Returns the finished file that these stripes form.
fn finished_file(
    name: &str,
    found: &[&FoundStripe],
    modified: impl Fn(usize) -> Option<UnixTime>,
) -> Result<OldFile> {
    let first = found[0].label;
    let mut stripes = BTreeMap::new();
    for stripe in found {
        if stripe.label.striping != first.striping {
            let why = format!("the disks have contradictory stripes: {first}, and {}", stripe.label);
            return Err(Failure::new(name, why));
        }
        if stripes.insert(stripe.label.stripe, (stripe.place.0, stripe.object)).is_some() {
            let (index, count) = (stripe.label.stripe, first.striping.stripe_count());
            return Err(Failure::new(
                name,
                format!("two disks have stripe {index} of {count}: one is a copy"),
            ));
        }
    }
    let missing = missing(found);
    // Very old files have no commit records, except for files that were committed again by a later version.
    let committed: Option<Vec<u64>> =
        found.iter().map(|stripe| stripe.committed.map(|committed| committed.bytes)).collect();
    let bytes = match committed.and_then(|all| all.into_iter().min()) {
        Some(bytes) => bytes,
        None if missing.is_some() => 0,
        None => {
            let mut lengths: Vec<(u32, u64)> =
                found.iter().map(|stripe| (stripe.label.stripe, stripe.bytes)).collect();
            lengths.sort_unstable();
            let lengths: Vec<u64> = lengths.into_iter().map(|(_, bytes)| bytes).collect();
            first.striping.file_bytes(&lengths).map_err(|error| Failure::new(name, error))?
        }
    };
    let begun = i64::try_from(first.begun).ok().filter(|&begun| begun > 0);
    let places: Vec<Place> = found.iter().map(|stripe| stripe.place).collect();
    let modified = places.iter().filter_map(|&(disk, _)| modified(disk)).max().or(begun);
    Ok(OldFile { id: first.file, striping: first.striping, bytes, missing, stripes, modified, places })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISHED: Stage = Stage::Published;
    const PENDING: Stage = Stage::Pending;

    /// Returns a stripe of a file with two stripes. The index of its disk equals the index of the stripe.
    fn stripe(file: u64, stripe: u32, stage: Stage, committed: Option<u64>) -> FoundStripe {
        let striping = Striping::new(512, 2).expect("a striping");
        let label = Label { file: FileId(file), striping, stripe, begun: 7, replaces: None };
        let committed = committed.map(|bytes| Committed { bytes });
        let object = ObjectId(file * 2 + u64::from(stripe));
        FoundStripe { place: (stripe as usize, stage), object, label, bytes: 512, committed }
    }

    fn replacing(mut found: FoundStripe, other: u64) -> FoundStripe {
        found.label.replaces = Some(FileId(other));
        found
    }

    /// Describes each state in a few words.
    fn sorted(found: &[FoundStripe]) -> Vec<String> {
        let states = states("name", found, |_| None);
        let describe = |state| match state {
            OldState::Finished(file) => {
                assert_eq!(file.modified, Some(7));
                let whole = || format!("whole {} {} {:?}", file.id.0, file.bytes, file.places);
                file.missing.map_or_else(whole, |missing| format!("partial {} {missing}", file.id.0))
            }
            OldState::Unfinished(places) => format!("unfinished {places:?}"),
            OldState::Broken(failure) => failure.to_string(),
        };
        states.into_iter().map(describe).collect()
    }

    #[test]
    fn finished_and_unfinished_files_are_distinguished() {
        let whole = [stripe(1, 0, PUBLISHED, Some(700)), stripe(1, 1, PUBLISHED, Some(900))];
        assert_eq!(sorted(&whole), ["whole 1 700 [(0, Published), (1, Published)]"]);
        let without_notes = [stripe(1, 1, PUBLISHED, None), stripe(1, 0, PUBLISHED, None)];
        assert_eq!(sorted(&without_notes), ["whole 1 1024 [(1, Published), (0, Published)]"]);
        // The client was killed between committing and publishing, or in the middle of publishing.
        let committed = [stripe(1, 0, PENDING, Some(9)), stripe(1, 1, PENDING, Some(9))];
        assert_eq!(sorted(&committed), ["whole 1 9 [(0, Pending), (1, Pending)]"]);
        let partly = [stripe(1, 0, PUBLISHED, Some(9)), stripe(1, 1, PENDING, Some(9))];
        assert_eq!(sorted(&partly), ["whole 1 9 [(0, Published), (1, Pending)]"]);
        let unfinished = [stripe(1, 0, PENDING, None), stripe(1, 1, PENDING, Some(9))];
        assert_eq!(sorted(&unfinished), ["unfinished [(1, Pending), (0, Pending)]"]);
        assert_eq!(sorted(&unfinished[..1]), ["unfinished [(0, Pending)]"]);
    }

    #[test]
    fn a_part_of_a_finished_file_is_not_unfinished() {
        for stage in [PUBLISHED, PENDING] {
            assert_eq!(sorted(&[stripe(1, 0, stage, Some(9))]), ["partial 1 1"]);
            assert_eq!(sorted(&[stripe(1, 1, stage, Some(9))]), ["partial 1 0"]);
        }
    }

    #[test]
    fn a_complete_replacement_gets_the_name_of_the_old_file() {
        let old = [stripe(1, 0, PUBLISHED, Some(9)), stripe(1, 1, PUBLISHED, Some(9))];
        let new = |stage, committed| [0, 1].map(|index| replacing(stripe(2, index, stage, committed), 1));
        let both = |new: &[FoundStripe]| sorted(&[&old[..], new].concat());
        let whole = "whole 1 9 [(0, Published), (1, Published)]";
        assert_eq!(both(&new(PENDING, None)), [whole, "unfinished [(0, Pending), (1, Pending)]"]);
        // The stripes of the replaced file are first in the order of removal.
        let first = "whole 2 8 [(0, Published), (1, Published), (0, Pending), (1, Pending)]";
        assert_eq!(both(&new(PENDING, Some(8))), [first]);
        let half = [new(PUBLISHED, Some(8))[0].clone(), new(PENDING, Some(8))[1].clone(), old[1].clone()];
        let expected = "whole 2 8 [(1, Published), (0, Published), (1, Pending)]";
        assert_eq!(sorted(&half), [expected]);
        // If a stripe of the new file is lost, both files are kept.
        let part = [&old[..], &new(PENDING, Some(8))[..1]].concat();
        assert_eq!(sorted(&part), [whole, "partial 2 1"]);
    }

    #[test]
    fn stripes_of_two_files_and_copied_stripes_are_reported() {
        let other = stripe(2, 1, PUBLISHED, Some(9));
        let reported = sorted(&[stripe(1, 0, PUBLISHED, Some(9)), other]);
        assert_eq!(reported, ["name: the disks have stripes of 2 different files of this name"]);
        let mut copy = stripe(1, 0, PUBLISHED, Some(9));
        copy.place.0 = 1;
        let reported = sorted(&[stripe(1, 0, PUBLISHED, Some(9)), copy]);
        assert_eq!(reported, ["name: two disks have stripe 0 of 2: one is a copy"]);
    }
}
