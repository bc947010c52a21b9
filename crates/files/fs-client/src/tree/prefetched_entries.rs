//! Prefetches directory entries for sequential lookups.
//!
//! A lookup takes a round trip to the metadata server, and so does a listing, which returns some hundred entries. A
//! kernel that walks a list of files looks up each name separately. If the names arrive in the order of directory
//! listings, the client lists the following entries in the background, twice as many each time. The caller limits the
//! age of an entry, as if it had listed the directory itself. Entries that this client changes are dropped.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use machine::{Duration, Instant, Machine};
use namespace::{DirectoryEntry, FileNumber, Inode, Location, TreeOperation};

use super::Tree;
use super::listing::{ANSWER_BYTES, SomeEntries};
use super::unflushed_names::Change;
use crate::error::Result;
use crate::protocol::Request;

/// Number of names looked up in order after which others are expected to follow.
const NAMES_IN_ORDER: u32 = 3;

/// Number of remaining entries below which more are listed.
const LEFT_MIN: usize = 8;

/// Size in bytes of the first listing.
const LISTED_BYTES_FIRST: u32 = 4 << 10;

/// Limit of directories followed at a time.
const DIRECTORIES_MAX: usize = 16;

/// Directories in which names are looked up.
#[derive(Default)]
pub(super) struct PrefetchedEntries(RefCell<BTreeMap<FileNumber, FollowedDirectory>>);

/// A directory in which names are looked up.
struct FollowedDirectory {
    /// The last name looked up, and the time of that lookup.
    last: Vec<u8>,
    used: Instant,
    /// Number of consecutive names in ascending order.
    in_order: u32,
    /// Entries in the order of their names, each with the time of its request.
    entries: VecDeque<(Instant, DirectoryEntry)>,
    /// True if more entries may follow.
    more: bool,
    /// Size in bytes of the next listing.
    bytes: u32,
    listing: Option<Listing>,
}

/// A listing in flight.
struct Listing {
    /// The name after which it begins.
    after: Vec<u8>,
    /// Changes since its request.
    touched: Vec<AffectedEntries>,
}

/// Listed entries that a request may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AffectedEntries {
    /// The entries of these names, and of these files and directories.
    Some { names: Vec<(FileNumber, Vec<u8>)>, numbers: Vec<FileNumber> },
    /// Unknown entries: any may have changed.
    Everything,
}

impl AffectedEntries {
    /// Returns the entries that a request changes, or `None` if it changes none.
    pub(super) fn by(request: &Request) -> Option<AffectedEntries> {
        let Change::Of(number) = Change::by(request) else { return None };
        let operation = match request {
            Request::Tree { operation, .. } => Some(&**operation),
            _ => None,
        };
        let places = match operation {
            Some(
                TreeOperation::Make { at, .. }
                | TreeOperation::Remove { at, .. }
                | TreeOperation::Link { at, .. },
            ) => vec![at],
            Some(TreeOperation::Rename { from, to, .. }) => vec![from, to],
            // A list of disks has no directory entry.
            Some(TreeOperation::EnterDisks { .. }) => return None,
            _ => Vec::new(),
        };
        // With several names in a path the directories are unknown.
        let has_way = places.iter().any(|at| at.path.contains(&b'/'));
        if has_way || (places.is_empty() && number.is_none()) {
            return Some(AffectedEntries::Everything);
        }
        let names = places.iter().map(|at| (at.base, at.path.clone())).collect();
        Some(AffectedEntries::Some {
            names,
            numbers: places.iter().map(|at| at.base).chain(number).collect(),
        })
    }

    /// Returns true if it may change an entry of this directory.
    fn has(&self, directory: FileNumber, entry: &DirectoryEntry) -> bool {
        match self {
            AffectedEntries::Everything => true,
            AffectedEntries::Some { names, numbers } => {
                numbers.contains(&entry.inode.number)
                    || names.iter().any(|(base, name)| *base == directory && *name == entry.name)
            }
        }
    }
}

impl FollowedDirectory {
    fn new(name: &[u8], now: Instant) -> Self {
        FollowedDirectory {
            last: name.to_vec(),
            used: now,
            in_order: 1,
            entries: VecDeque::new(),
            more: true,
            bytes: LISTED_BYTES_FIRST,
            listing: None,
        }
    }

    /// Records the lookup of a name.
    fn note(&mut self, name: &[u8], now: Instant) {
        if name < &*self.last {
            *self = FollowedDirectory::new(name, now);
        } else if name > &*self.last {
            self.in_order += 1;
            self.last = name.to_vec();
        }
        self.used = now;
    }

    /// Removes and returns the entry of a name, with its age. Drops the entries before it, which are no longer
    /// expected.
    fn take(&mut self, name: &[u8], believed: Duration, now: Instant) -> Option<(Inode, Duration)> {
        let is_passed = |(asked, entry): &mut (Instant, DirectoryEntry)| {
            &*entry.name < name || now.since(*asked) >= believed
        };
        while self.entries.pop_front_if(is_passed).is_some() {}
        let (asked, entry) = self.entries.pop_front_if(|(_, entry)| entry.name == name)?;
        Some((entry.inode, now.since(asked)))
    }

    /// Begins the next listing, if it is due. Returns the name after which it begins, and its size in bytes.
    fn begin_listing(&mut self) -> Option<(Vec<u8>, u32)> {
        let is_due = self.in_order >= NAMES_IN_ORDER && self.more && self.entries.len() < LEFT_MIN;
        if !is_due || self.listing.is_some() {
            return None;
        }
        let after = self.entries.back().map_or(&self.last, |(_, entry)| &entry.name).clone();
        self.listing = Some(Listing { after: after.clone(), touched: Vec::new() });
        let bytes = self.bytes;
        self.bytes = (bytes * 2).min(ANSWER_BYTES);
        Some((after, bytes))
    }

    /// Adds the entries of a completed listing of this directory, unless the lookups continue at another name by now.
    fn end_listing(
        &mut self,
        directory: FileNumber,
        after: &[u8],
        asked: Instant,
        listed: Option<SomeEntries>,
    ) {
        let Some(Listing { touched, .. }) = self.listing.take_if(|listing| listing.after == after) else {
            return;
        };
        self.more = listed.as_ref().is_some_and(|listed| listed.more);
        let known = |entry: &DirectoryEntry| {
            // Skip files with several names: a change through another name would go unnoticed.
            let has_one_name = entry.inode.is_directory() || entry.inode.links == 1;
            has_one_name && !touched.iter().any(|touched| touched.has(directory, entry))
        };
        let entries = listed.into_iter().flat_map(|listed| listed.entries).filter(known);
        self.entries.extend(entries.map(|entry| (asked, entry)));
    }
}

impl PrefetchedEntries {
    /// Returns the prefetched entry of a name with its age, unless it is too old.
    fn take(
        &self,
        directory: FileNumber,
        name: &[u8],
        believed: Duration,
        now: Instant,
    ) -> Option<(Inode, Duration)> {
        self.0.borrow_mut().get_mut(&directory)?.take(name, believed, now)
    }

    /// Records the lookup of an existing name. Returns the listing to start, if one is due.
    fn note(&self, directory: FileNumber, name: &[u8], now: Instant) -> Option<(Vec<u8>, u32)> {
        let mut directories = self.0.borrow_mut();
        if !directories.contains_key(&directory) && directories.len() == DIRECTORIES_MAX {
            let oldest =
                directories.iter().min_by_key(|(_, followed)| followed.used).map(|(number, _)| *number);
            oldest.and_then(|oldest| directories.remove(&oldest));
        }
        let followed = directories.entry(directory).or_insert_with(|| FollowedDirectory::new(name, now));
        followed.note(name, now);
        followed.begin_listing()
    }

    fn end_listing(&self, directory: FileNumber, after: &[u8], asked: Instant, listed: Option<SomeEntries>) {
        if let Some(followed) = self.0.borrow_mut().get_mut(&directory) {
            followed.end_listing(directory, after, asked, listed);
        }
    }

    /// Drops entries that a completed request may have changed.
    pub(super) fn forget(&self, touched: &AffectedEntries) {
        let mut directories = self.0.borrow_mut();
        if *touched == AffectedEntries::Everything {
            directories.clear();
        }
        for (&directory, followed) in &mut *directories {
            followed.entries.retain(|(_, entry)| !touched.has(directory, entry));
            if let Some(listing) = &mut followed.listing {
                listing.touched.push(touched.clone());
            }
        }
    }
}

impl<M: Machine> Tree<M> {
    /// Looks up a name in a directory. Returns the metadata server's inode, possibly from a prefetched listing, and the
    /// rest of the time `believed` for which the caller accepts it.
    ///
    /// # Errors
    /// Fails as [`inode`](Self::inode) does.
    pub async fn look(
        &self,
        directory: FileNumber,
        name: Vec<u8>,
        believed: Duration,
    ) -> Result<(Inode, Duration)> {
        let (prefetched, asked) = (&self.inner.prefetched_entries, self.machine().now());
        let (inode, age) = match prefetched.take(directory, &name, believed, asked) {
            Some(known) => known,
            None => {
                let at = Location { base: directory, path: name.clone() };
                (self.inode(TreeOperation::Look { at, follow: false }).await?, Duration::ZERO)
            }
        };
        if believed > Duration::ZERO
            && let Some((after, bytes)) = prefetched.note(directory, &name, self.machine().now())
        {
            self.prefetch_entries(directory, after, bytes);
        }
        Ok((inode, believed - age))
    }

    /// Starts a listing of directory entries that the caller is expected to look up.
    fn prefetch_entries(&self, directory: FileNumber, after: Vec<u8>, bytes: u32) {
        let (tree, asked) = (self.clone(), self.machine().now());
        self.machine().spawn("prefetching entries", async move {
            // Ignore errors: the next lookup reports them.
            let listed = tree.some_entries(directory, after.clone(), bytes).await.ok().flatten();
            tree.inner.prefetched_entries.end_listing(directory, &after, asked, listed);
            Ok(())
        });
    }
}

#[cfg(test)]
mod tests {
    use namespace::{InodeKind, RemovalTarget};

    use super::*;

    const BELIEVED: Duration = Duration::from_millis(1_000);

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    fn name(index: u32) -> Vec<u8> {
        format!("{index:04}").into_bytes()
    }

    fn entry(index: u32, links: u32) -> DirectoryEntry {
        let inode = Inode {
            number: FileNumber(u64::from(100 + index)),
            kind: InodeKind::Link { target: b"x".to_vec() },
            mode: 0o777,
            uid: 0,
            gid: 0,
            links,
            size: 1,
            accessed: 0,
            modified: 0,
            changed: 0,
            made: 0,
            version: 1,
            stored_stripes: 0,
            unwritten: 0,
            reserved: 0,
        };
        DirectoryEntry { name: name(index), inode }
    }

    fn listed(indices: impl Iterator<Item = u32>, more: bool) -> Option<SomeEntries> {
        let directory = entry(0, 2).inode;
        Some(SomeEntries { directory, entries: indices.map(|index| entry(index, 1)).collect(), more })
    }

    /// Returns prefetched entries of names 3 to 22, after lookups of 0 to 2 at 0 ms.
    fn some_prefetched() -> PrefetchedEntries {
        let prefetched = PrefetchedEntries::default();
        assert_eq!(prefetched.note(FileNumber::ROOT, &name(0), at(0)), None);
        assert_eq!(prefetched.note(FileNumber::ROOT, &name(1), at(0)), None);
        let listing = prefetched.note(FileNumber::ROOT, &name(2), at(0));
        assert_eq!(listing, Some((name(2), LISTED_BYTES_FIRST)));
        assert_eq!(prefetched.note(FileNumber::ROOT, &name(2), at(0)), None, "a listing is in flight");
        prefetched.end_listing(FileNumber::ROOT, &name(2), at(0), listed(3..23, true));
        prefetched
    }

    fn take(prefetched: &PrefetchedEntries, index: u32, now: Instant) -> Option<u64> {
        let taken = prefetched.take(FileNumber::ROOT, &name(index), BELIEVED, now);
        taken.map(|(inode, _)| inode.number.0 - 100)
    }

    #[test]
    fn lookups_in_order_prefetch_more_entries_each_time() {
        let prefetched = some_prefetched();
        let mut listings = Vec::new();
        for index in 3..23 {
            assert_eq!(take(&prefetched, index, at(5)), Some(index.into()));
            assert_eq!(take(&prefetched, index, at(5)), None, "each entry is taken once");
            listings.extend(prefetched.note(FileNumber::ROOT, &name(index), at(5)));
        }
        assert_eq!(listings, [(name(22), 2 * LISTED_BYTES_FIRST)], "before the last entry is taken");
        prefetched.end_listing(FileNumber::ROOT, &name(22), at(5), listed(23..25, false));
        assert_eq!(
            prefetched.take(FileNumber::ROOT, &name(24), BELIEVED, at(7)).expect("listed").1,
            Duration::from_millis(2)
        );
        assert_eq!(prefetched.note(FileNumber::ROOT, &name(24), at(7)), None, "no entries are left to list");
    }

    #[test]
    fn lookups_out_of_order_prefetch_nothing() {
        let prefetched = PrefetchedEntries::default();
        for index in [5, 3, 4, 1, 2, 0, 1] {
            assert_eq!(prefetched.note(FileNumber::ROOT, &name(index), at(0)), None);
        }
        assert!(prefetched.note(FileNumber::ROOT, &name(2), at(0)).is_some());
        // The lookups start over before the listing has returned anything.
        assert_eq!(prefetched.note(FileNumber::ROOT, &name(0), at(0)), None);
        prefetched.end_listing(FileNumber::ROOT, &name(2), at(0), listed(3..9, true));
        assert_eq!(take(&prefetched, 3, at(0)), None);
    }

    #[test]
    fn a_prefetched_entry_expires() {
        let prefetched = some_prefetched();
        assert_eq!(take(&prefetched, 10, at(999)), Some(10));
        assert_eq!(take(&prefetched, 11, at(1000)), None);
    }

    #[test]
    fn a_file_with_several_names_is_not_prefetched() {
        let prefetched = PrefetchedEntries::default();
        let listing =
            (0..3).filter_map(|index| prefetched.note(FileNumber::ROOT, &name(index), at(0))).last();
        assert!(listing.is_some());
        let mut entries = listed(3..9, true);
        entries.as_mut().expect("some").entries[1] = entry(4, 2);
        prefetched.end_listing(FileNumber::ROOT, &name(2), at(0), entries);
        assert_eq!([3, 4, 5].map(|index| take(&prefetched, index, at(0))), [Some(3), None, Some(5)]);
    }

    /// Returns changes of names 5 to 8.
    fn changes() -> Vec<TreeOperation> {
        let place = |index| Location { base: FileNumber::ROOT, path: name(index) };
        let rename =
            TreeOperation::Rename { from: place(6), to: place(7), mode: namespace::RenameMode::Replace };
        let changes = namespace::AttributeChanges::default();
        vec![
            TreeOperation::Remove { at: place(5), what: RemovalTarget::File },
            rename,
            TreeOperation::Change { number: FileNumber(108), changes },
        ]
    }

    fn touched(operation: TreeOperation) -> AffectedEntries {
        AffectedEntries::by(&Request::Tree { operation: operation.into(), hold: None })
            .expect("it changes something")
    }

    #[test]
    fn entries_changed_by_this_client_are_forgotten() {
        let left = [4, 5, 6, 7, 8, 9];
        let prefetched = some_prefetched();
        changes().into_iter().for_each(|change| prefetched.forget(&touched(change)));
        let taken = left.map(|index| take(&prefetched, index, at(1)));
        assert_eq!(taken, [Some(4), None, None, None, None, Some(9)]);
        // Changes during the listing have the same effect.
        let prefetched = PrefetchedEntries::default();
        assert!((0..3).any(|index| prefetched.note(FileNumber::ROOT, &name(index), at(0)).is_some()));
        changes().into_iter().for_each(|change| prefetched.forget(&touched(change)));
        prefetched.end_listing(FileNumber::ROOT, &name(2), at(0), listed(3..23, true));
        assert_eq!(left.map(|index| take(&prefetched, index, at(1))), taken);
    }

    #[test]
    fn a_change_below_an_unresolved_path_forgets_all_entries() {
        let prefetched = some_prefetched();
        let at_path = Location { base: FileNumber(7), path: b"some/where".to_vec() };
        prefetched.forget(&touched(TreeOperation::Remove { at: at_path, what: RemovalTarget::File }));
        assert_eq!(take(&prefetched, 3, at(1)), None);
    }

    #[test]
    fn the_number_of_followed_directories_is_limited() {
        let prefetched = some_prefetched();
        for other in 0..DIRECTORIES_MAX as u64 {
            prefetched.note(FileNumber(1_000 + other), &name(0), at(1));
        }
        assert_eq!(prefetched.0.borrow().len(), DIRECTORIES_MAX);
        assert_eq!(take(&prefetched, 3, at(1)), None, "it was used longest ago");
    }
}
