//! Adopts files without an inode: reconstructs their inodes from their stripes, that is, from the label, the length and
//! the disk of each stripe.
//!
//! - All stripes before the last existing stripe once existed, so a missing one among them is lost. Its disk is
//!   recorded as [`NO_DISK`], so that readers get an error.
//! - A missing stripe is a hole instead if its disk is known and present. Consecutive files are striped over the same
//!   list of disks, each starting with the next disk. So the disk is known if the previous and the next file have a
//!   stripe on the same disk at this place in the list.
//! - If a file ends with a whole block and the next stripe may be lost, the file may have been longer. Then it gets one
//!   more byte after this block.
//!
//! The length of the file beyond its last existing stripe is unknown, and so are the holes of a lost stripe.

use std::collections::{BTreeMap, BTreeSet};

use command_line::failure::{Failure, Result};
use fs::{DisksByIdentity, FileId, ListedStripe};
use layout::Striping;
use machine::{NO_DISK, NodeId};
use namespace::{FileLayout, FileNumber, Repair, TreeAnswer, TreeOperation};
use transfer::namespace::{Namespace, is_damaged, is_removed};

/// Agent that has a stripe, and the stripe.
pub(super) type Stripe = (NodeId, ListedStripe);

/// Result for a file that had no inode.
pub(super) enum Adoption {
    /// The file has a name now. Of its `count` stripes, `lost` are lost. The `short` stripes (index, length in bytes)
    /// are shorter than later stripes imply.
    Named { count: u32, lost: usize, short: Vec<(u32, u64)> },
    /// The file had been removed while an agent was absent. Now the stripes on that agent were removed, too.
    Removed,
    /// No stripe has a readable label.
    Unknown,
}

/// Stripes of a file that still exist.
#[derive(Debug)]
struct ExistingStripes {
    striping: Striping,
    /// Identity of the disk and length in bytes of each existing stripe, by its index.
    found: BTreeMap<u32, (u64, u64)>,
}

/// State of a file according to its stripes.
enum Asked {
    ExistingStripes(ExistingStripes),
    Removed,
    Unknown,
}

/// Disks of stripes. The keys are the number of stripes of a file and the stripe's place in the list of disks; then the
/// number of the file.
#[derive(Default)]
struct Homes(BTreeMap<(u32, u64), BTreeMap<FileId, u64>>);

/// New inode of a file.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    disks: Vec<u64>,
    bytes: u64,
    stored_stripes: u32,
    lost: usize,
    short: Vec<(u32, u64)>,
}

/// Creates an inode in `/lost+found` for each of these files, and removes the remaining stripes of removed files.
/// Returns the result for each file.
pub(super) async fn adopt(
    namespace: &Namespace,
    files: &BTreeMap<FileId, Vec<Stripe>>,
) -> Result<Vec<(FileId, Result<Adoption>)>> {
    let connection = &namespace.connection;
    let places =
        connection.explained("cannot get the list of disks", connection.client.disks_by_identity().await)?;
    let (mut homes, mut all) = (Homes::default(), Vec::new());
    for (&file, stripes) in files {
        let asked = ask(namespace, &places, file, stripes).await;
        if let Ok(Asked::ExistingStripes(remnants)) = &asked {
            homes.note(file, remnants);
        }
        all.push((file, asked));
    }
    let mut adopted = Vec::new();
    for (file, asked) in all {
        let adoption = match asked {
            Ok(Asked::ExistingStripes(remnants)) => {
                let entry = homes.entry(file, &remnants, places.keys().copied());
                match entry {
                    Ok(entry) => enter(namespace, file, remnants.striping, entry).await,
                    Err(error) => Err(Failure::new(called(file), error)),
                }
            }
            Ok(Asked::Removed) => remove_rest(namespace, file).await,
            Ok(Asked::Unknown) => Ok(Adoption::Unknown),
            Err(failure) => Err(failure),
        };
        adopted.push((file, adoption));
    }
    Ok(adopted)
}

fn called(file: FileId) -> String {
    format!("number {:016x}", file.0)
}

/// Reads the labels of a file's stripes, and asks the agents if the file was removed.
async fn ask(
    namespace: &Namespace,
    places: &DisksByIdentity,
    file: FileId,
    stripes: &[Stripe],
) -> Result<Asked> {
    let connection = &namespace.connection;
    let what = called(file);
    if connection.explained(&what, connection.client.is_remembered_as_removed(file).await)? {
        return Ok(Asked::Removed);
    }
    let mut remnants: Option<ExistingStripes> = None;
    for (node, stripe) in stripes {
        let Some((index, bytes)) = stripe.stripe else { continue };
        let striping = match connection.client.numbered_label(*node, stripe.disk, file).await {
            // A damaged stripe counts as lost.
            Err(error) if is_damaged(&error) => continue,
            Err(error) if is_removed(&error) => return Ok(Asked::Removed),
            label => connection.explained(&what, label)?.0,
        };
        let place = (*node, stripe.disk);
        let Some((&identity, _)) = places.iter().find(|(_, other)| **other == place) else { continue };
        let known = remnants.get_or_insert_with(|| ExistingStripes { striping, found: BTreeMap::new() });
        if known.striping == striping {
            known.found.insert(index, (identity, bytes));
        }
    }
    Ok(remnants.map_or(Asked::Unknown, Asked::ExistingStripes))
}

/// Creates the inode of a file in the namespace.
async fn enter(namespace: &Namespace, file: FileId, striping: Striping, entry: Entry) -> Result<Adoption> {
    let what = called(file);
    let Entry { disks, bytes, stored_stripes, lost, short } = entry;
    let list = namespace.perform(what.as_bytes(), TreeOperation::EnterDisks { disks }).await?;
    let TreeAnswer::Number(disks) = list else {
        return Err(Failure::new(what, "the agent sent a wrong reply"));
    };
    let (number, layout) = (FileNumber(file.0), FileLayout { striping, disks, first: 0 });
    let repair = Repair::Adopt { number, layout, bytes, stored_stripes };
    namespace.perform(what.as_bytes(), TreeOperation::Mend { repair }).await?;
    Ok(Adoption::Named { count: striping.stripe_count(), lost, short })
}

/// Removes the remaining stripes of a file that an agent remembers as removed.
async fn remove_rest(namespace: &Namespace, file: FileId) -> Result<Adoption> {
    let connection = &namespace.connection;
    connection.explained(&called(file), connection.client.remove_numbered(&[file]).await)?;
    Ok(Adoption::Removed)
}

impl Homes {
    /// Returns the number of stripes of a file, and the place of a stripe in the list of disks, for files with one
    /// stripe on each disk of the list.
    fn place(file: FileId, striping: Striping, stripe: u32) -> (u32, u64) {
        let count = u64::from(striping.stripe_count());
        (striping.stripe_count(), (file.0 % count + u64::from(stripe)) % count)
    }

    fn note(&mut self, file: FileId, remnants: &ExistingStripes) {
        for (&stripe, &(identity, _)) in &remnants.found {
            let place = Homes::place(file, remnants.striping, stripe);
            self.0.entry(place).or_default().insert(file, identity);
        }
    }

    /// Returns the disk of a missing stripe, if the previous and the next file have the same disk in the stripe's
    /// place.
    fn of(&self, file: FileId, striping: Striping, stripe: u32) -> Option<u64> {
        let disks = self.0.get(&Homes::place(file, striping, stripe))?;
        let (_, before) = disks.range(..file).next_back()?;
        let (_, after) = disks.range(file..).next()?;
        (before == after).then_some(*before)
    }

    /// Returns the inode of a file with these remnants; `there` are the disks of the set.
    fn entry(
        &self,
        file: FileId,
        remnants: &ExistingStripes,
        there: impl Iterator<Item = u64>,
    ) -> std::result::Result<Entry, layout::LayoutError> {
        let ExistingStripes { striping, found } = remnants;
        let (striping, count) = (*striping, striping.stripe_count());
        let length = |stripe: u32| found.get(&stripe).map_or(0, |(_, bytes)| *bytes);
        let lengths: Vec<u64> = (0..count).map(length).collect();
        let mut bytes = striping.file_bytes(&lengths)?;
        let is_short = |&stripe: &u32| length(stripe) < striping.stripe_bytes(bytes, stripe);
        let short = found.keys().copied().filter(is_short).map(|stripe| (stripe, length(stripe))).collect();
        let end_of_found = found.keys().next_back().map_or(0, |last| last + 1);
        let is_lost =
            |stripe: &u32| !found.contains_key(stripe) && self.of(file, striping, *stripe).is_none();
        let was_made = |stripe: &u32| *stripe < end_of_found || striping.stripe_bytes(bytes, *stripe) > 0;
        let mut last_lost = (0..count).filter(was_made).rfind(is_lost);
        let next = (bytes / striping.block_bytes() % u64::from(count)) as u32;
        if last_lost.is_none() && bytes > 0 && bytes % striping.block_bytes() == 0 && is_lost(&next) {
            last_lost = Some(next);
            bytes += 1;
        }
        let is_there = |stripe: &u32| found.contains_key(stripe);
        let stored_stripes = match last_lost {
            Some(last) => end_of_found.max(last + 1),
            None => (0..count).take_while(is_there).count() as u32,
        };
        // Assign unused disks to stripes that were never created, as long as there are any, so that the file can grow.
        let mut disks: Vec<Option<u64>> =
            (0..count).map(|stripe| found.get(&stripe).map(|found| found.0)).collect();
        let mut used: BTreeSet<u64> = disks.iter().copied().flatten().collect();
        for stripe in (0..count).filter(|stripe| !is_there(stripe)) {
            let known = self.of(file, striping, stripe).filter(|&disk| used.insert(disk));
            disks[stripe as usize] = known.or((stripe < stored_stripes).then_some(NO_DISK));
        }
        let mut others = there.filter(|disk| !used.contains(disk));
        let disks = disks.into_iter().map(|disk| disk.or_else(|| others.next()).unwrap_or(NO_DISK)).collect();
        let lost = (0..stored_stripes).filter(|stripe| !is_there(stripe)).count();
        Ok(Entry { disks, bytes, stored_stripes, lost, short })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 4096;

    /// Returns a file over these disks, of which only the listed stripes (index, length) exist.
    fn remnants(file: u64, disks: [u64; 4], stripes: &[(u32, u64)]) -> (FileId, ExistingStripes) {
        let disk = |stripe: u32| disks[((file + u64::from(stripe)) % 4) as usize];
        let found = stripes.iter().map(|&(stripe, bytes)| (stripe, (disk(stripe), bytes))).collect();
        (FileId(file), ExistingStripes { striping: Striping::new(BLOCK, 4).expect("a striping"), found })
    }

    /// Returns the reconstructed inode of one of these files, on a set with the disks 10, 20, 30 and 40.
    fn entry(files: &[(FileId, ExistingStripes)], index: usize) -> Entry {
        let mut homes = Homes::default();
        files.iter().for_each(|(file, remnants)| homes.note(*file, remnants));
        let (file, remnants) = &files[index];
        homes.entry(*file, remnants, [10, 20, 30, 40].into_iter()).expect("a layout")
    }

    const DISKS: [u64; 4] = [10, 20, 30, 40];

    #[test]
    fn a_missing_stripe_before_the_end_is_lost() {
        let alone = |stripes| entry(&[remnants(8, DISKS, stripes)], 0);
        let whole = alone(&[(0, BLOCK), (1, BLOCK), (2, BLOCK), (3, 5)]);
        let expected =
            Entry { disks: DISKS.into(), bytes: 3 * BLOCK + 5, stored_stripes: 4, lost: 0, short: vec![] };
        assert_eq!(whole, expected);
        let part = alone(&[(0, BLOCK), (2, BLOCK), (3, 5)]);
        assert_eq!(part, Entry { disks: vec![10, NO_DISK, 30, 40], lost: 1, ..expected });
        let short = alone(&[(0, 7), (1, BLOCK), (2, 9), (3, 0)]);
        assert_eq!((short.lost, short.short), (0, vec![(0, 7)]));
        // Stripes that were never created have disks, so the file can grow.
        let small = alone(&[(0, 5)]);
        assert_eq!((small.disks, small.bytes, small.stored_stripes, small.lost), (DISKS.into(), 5, 1, 0));
    }

    #[test]
    fn a_file_that_may_have_been_longer_gets_one_lost_byte() {
        let alone = entry(&[remnants(8, DISKS, &[(0, BLOCK), (1, BLOCK)])], 0);
        assert_eq!((alone.bytes, alone.stored_stripes, alone.lost), (2 * BLOCK + 1, 3, 1));
        assert_eq!(alone.disks, [10, 20, NO_DISK, 30]);
    }

    #[test]
    fn a_stripe_missing_on_an_existing_disk_is_a_hole() {
        let whole = &[(0, BLOCK), (1, BLOCK), (2, BLOCK), (3, BLOCK)][..];
        let among = |before: [u64; 4], stripes| {
            let files = [
                remnants(6, before, whole),
                remnants(7, before, whole),
                remnants(8, DISKS, stripes),
                remnants(9, DISKS, whole),
            ];
            entry(&files, 2)
        };
        let ended = among(DISKS, &[(0, BLOCK), (1, BLOCK)]);
        assert_eq!((ended.bytes, ended.stored_stripes, ended.lost), (2 * BLOCK, 2, 0));
        assert_eq!(ended.disks, DISKS);
        let sparse = among(DISKS, &[(0, BLOCK), (3, 9)]);
        assert_eq!((sparse.bytes, sparse.stored_stripes, sparse.lost), (3 * BLOCK + 9, 1, 0));
        // The previous file has a disk that is lost. It is unknown when disk 20 replaced it.
        let lost = among([10, 20, 50, 40], &[(0, BLOCK), (1, BLOCK), (3, 9)]);
        assert_eq!((lost.disks, lost.lost), (vec![10, 20, NO_DISK, 40], 1));
    }
}
