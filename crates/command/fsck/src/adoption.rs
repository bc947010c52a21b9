//! Names for files that the namespace does not know, made of what is known without it: the label of each stripe, how
//! long it is, and on which disk.
//!
//! - What lies before the end of any stripe was made. A stripe of that which is nowhere is lost, and is noted as such,
//!   on a disk that nobody has, so that readers are told.
//! - Unless it is known on which disk it would be, and that disk is there: then it is a hole. Files are dealt to the
//!   same list of disks one after the other, so it is known if a file before and one after have a stripe in that place.
//! - Where a file ends with a whole block and the next stripe may be lost, there may have been more: it is taken to
//!   have had one byte there.
//!
//! How long the file was beyond its last stripe that there is nobody knows, nor what of a lost stripe was a hole.

use std::collections::{BTreeMap, BTreeSet};

use command_line::failure::{Failure, Result};
use fs::{DisksByIdentity, FileId, ListedStripe};
use layout::Striping;
use machine::{NO_DISK, NodeId};
use namespace::{FileLayout, FileNumber, Repair, TreeAnswer, TreeOperation};
use transfer::namespace::{Namespace, is_damaged, is_removed};

/// A stripe, and the agent that has it.
pub(super) type Stripe = (NodeId, ListedStripe);

/// What has become of a file without an inode.
pub(super) enum Adoption {
    /// It has a name. Of so many stripes some are lost, and some are shorter than what comes after them says, each
    /// with the bytes there are.
    Named { count: u32, lost: usize, short: Vec<(u32, u64)> },
    /// It was removed while an agent was away, and is gone from that one, too.
    Removed,
    /// None of its stripes says what it is.
    Unknown,
}

/// What is there of a file.
#[derive(Debug)]
struct Remnants {
    striping: Striping,
    /// The disk of each stripe that is there, by its identity, and the stripe's length in bytes.
    found: BTreeMap<u32, (u64, u64)>,
}

/// What is known of a file whose stripes have been asked.
enum Asked {
    Remnants(Remnants),
    Removed,
    Unknown,
}

/// On which disks stripes lie, by how many stripes a file has, their place in its list of disks, and its number.
#[derive(Default)]
struct Homes(BTreeMap<(u32, u64), BTreeMap<FileId, u64>>);

/// How a file is entered.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    disks: Vec<u64>,
    bytes: u64,
    stored_stripes: u32,
    lost: usize,
    short: Vec<(u32, u64)>,
}

/// Gives files without an inode one in `/lost+found`, unless they are such as were removed; what has become of each.
pub(super) async fn adopt(
    namespace: &Namespace,
    files: &BTreeMap<FileId, Vec<Stripe>>,
) -> Result<Vec<(FileId, Result<Adoption>)>> {
    let connection = &namespace.connection;
    let places = connection.explained("asking for disks", connection.client.disks_by_identity().await)?;
    let (mut homes, mut all) = (Homes::default(), Vec::new());
    for (&file, stripes) in files {
        let asked = ask(namespace, &places, file, stripes).await;
        if let Ok(Asked::Remnants(remnants)) = &asked {
            homes.note(file, remnants);
        }
        all.push((file, asked));
    }
    let mut adopted = Vec::new();
    for (file, asked) in all {
        let adoption = match asked {
            Ok(Asked::Remnants(remnants)) => {
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

/// Asks the stripes of a file what they are, and the agents whether it was removed.
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
    let mut remnants: Option<Remnants> = None;
    for (node, stripe) in stripes {
        let Some((index, bytes)) = stripe.stripe else { continue };
        let striping = match connection.client.numbered_label(*node, stripe.disk, file).await {
            // It is as good as lost.
            Err(error) if is_damaged(&error) => continue,
            Err(error) if is_removed(&error) => return Ok(Asked::Removed),
            label => connection.explained(&what, label)?.0,
        };
        let place = (*node, stripe.disk);
        let Some((&identity, _)) = places.iter().find(|(_, other)| **other == place) else { continue };
        let known = remnants.get_or_insert_with(|| Remnants { striping, found: BTreeMap::new() });
        if known.striping == striping {
            known.found.insert(index, (identity, bytes));
        }
    }
    Ok(remnants.map_or(Asked::Unknown, Asked::Remnants))
}

/// Enters a file in the namespace.
async fn enter(namespace: &Namespace, file: FileId, striping: Striping, entry: Entry) -> Result<Adoption> {
    let what = called(file);
    let Entry { disks, bytes, stored_stripes, lost, short } = entry;
    let list = namespace.perform(what.as_bytes(), TreeOperation::EnterDisks { disks }).await?;
    let TreeAnswer::Number(disks) = list else {
        return Err(Failure::new(what, "its list of disks has got no number"));
    };
    let (number, layout) = (FileNumber(file.0), FileLayout { striping, disks, first: 0 });
    let repair = Repair::Adopt { number, layout, bytes, stored_stripes };
    namespace.perform(what.as_bytes(), TreeOperation::Mend { repair }).await?;
    Ok(Adoption::Named { count: striping.stripe_count(), lost, short })
}

/// Removes what is left of a file that an agent remembers as removed.
async fn remove_rest(namespace: &Namespace, file: FileId) -> Result<Adoption> {
    let connection = &namespace.connection;
    connection.explained(&called(file), connection.client.remove_numbered(&[file]).await)?;
    Ok(Adoption::Removed)
}

impl Homes {
    /// The place of a stripe in the list of disks, as far as files have as many stripes as that has disks.
    fn place(file: FileId, striping: Striping, stripe: u32) -> (u32, u64) {
        let count = u64::from(striping.stripe_count());
        (striping.stripe_count(), (file.0 % count + u64::from(stripe)) % count)
    }

    fn note(&mut self, file: FileId, remnants: &Remnants) {
        for (&stripe, &(identity, _)) in &remnants.found {
            let place = Homes::place(file, remnants.striping, stripe);
            self.0.entry(place).or_default().insert(file, identity);
        }
    }

    /// The disk, which is there, that a stripe of a file would be on: that of the files next to it before and after.
    fn of(&self, file: FileId, striping: Striping, stripe: u32) -> Option<u64> {
        let disks = self.0.get(&Homes::place(file, striping, stripe))?;
        let (_, before) = disks.range(..file).next_back()?;
        let (_, after) = disks.range(file..).next()?;
        (before == after).then_some(*before)
    }

    /// How a file is entered of which this is there, on a set that has these disks.
    fn entry(
        &self,
        file: FileId,
        remnants: &Remnants,
        there: impl Iterator<Item = u64>,
    ) -> std::result::Result<Entry, layout::LayoutError> {
        let Remnants { striping, found } = remnants;
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
        // What was never made has a disk of its own, as long as there are any, so that the file can grow.
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

    /// A file over these disks, of which only these stripes are there: index and length.
    fn remnants(file: u64, disks: [u64; 4], stripes: &[(u32, u64)]) -> (FileId, Remnants) {
        let disk = |stripe: u32| disks[((file + u64::from(stripe)) % 4) as usize];
        let found = stripes.iter().map(|&(stripe, bytes)| (stripe, (disk(stripe), bytes))).collect();
        (FileId(file), Remnants { striping: Striping::new(BLOCK, 4).expect("a striping"), found })
    }

    /// How the file of this index is entered among these, on the disks 10, 20, 30 and 40.
    fn entry(files: &[(FileId, Remnants)], index: usize) -> Entry {
        let mut homes = Homes::default();
        files.iter().for_each(|(file, remnants)| homes.note(*file, remnants));
        let (file, remnants) = &files[index];
        homes.entry(*file, remnants, [10, 20, 30, 40].into_iter()).expect("a layout")
    }

    const DISKS: [u64; 4] = [10, 20, 30, 40];

    #[test]
    fn what_lies_before_the_end_and_is_nowhere_is_lost() {
        let alone = |stripes| entry(&[remnants(8, DISKS, stripes)], 0);
        let whole = alone(&[(0, BLOCK), (1, BLOCK), (2, BLOCK), (3, 5)]);
        let expected =
            Entry { disks: DISKS.into(), bytes: 3 * BLOCK + 5, stored_stripes: 4, lost: 0, short: vec![] };
        assert_eq!(whole, expected);
        let part = alone(&[(0, BLOCK), (2, BLOCK), (3, 5)]);
        assert_eq!(part, Entry { disks: vec![10, NO_DISK, 30, 40], lost: 1, ..expected });
        let short = alone(&[(0, 7), (1, BLOCK), (2, 9), (3, 0)]);
        assert_eq!((short.lost, short.short), (0, vec![(0, 7)]));
        // It can grow.
        let small = alone(&[(0, 5)]);
        assert_eq!((small.disks, small.bytes, small.stored_stripes, small.lost), (DISKS.into(), 5, 1, 0));
    }

    #[test]
    fn where_there_may_have_been_more_a_byte_is_lost() {
        let alone = entry(&[remnants(8, DISKS, &[(0, BLOCK), (1, BLOCK)])], 0);
        assert_eq!((alone.bytes, alone.stored_stripes, alone.lost), (2 * BLOCK + 1, 3, 1));
        assert_eq!(alone.disks, [10, 20, NO_DISK, 30]);
    }

    #[test]
    fn a_stripe_that_its_disk_does_not_have_is_a_hole() {
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
        // The disk before that one is lost: nobody knows when the other has taken its place.
        let lost = among([10, 20, 50, 40], &[(0, BLOCK), (1, BLOCK), (3, 9)]);
        assert_eq!((lost.disks, lost.lost), (vec![10, 20, NO_DISK, 40], 1));
    }
}
