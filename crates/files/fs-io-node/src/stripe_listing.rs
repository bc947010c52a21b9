//! Lists the names of stripes. One task at a time reads the directories of the disks, for all clients whose requests
//! arrived before it began. An answer has a limited size; the client then requests further names.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use machine::{Condition, Disk, Machine};

use super::IoNode;
use crate::error::Failure;
use crate::number;
use crate::protocol::{FileId, LISTED_STRIPES, Reply};

/// Listings read from the directories.
#[derive(Default)]
pub(super) struct Listings {
    /// The newest listing, as long as any client is still reading a listing.
    newest: RefCell<Option<Listing>>,
    /// Number of listings that have begun.
    begun: Cell<u64>,
    is_reading: Cell<bool>,
    /// Woken when a listing is complete or has failed.
    read: Condition,
    /// Held by all clients that wait for a listing, or have not reached the end of one.
    reader: Rc<()>,
}

struct Listing {
    number: u64,
    read: Rc<ReadNames>,
}

/// The contents of a listing.
struct ReadNames {
    /// All names, sorted.
    names: Vec<String>,
    /// Reason why the names of a disk are missing.
    failure: Option<Failure>,
}

/// A listing that a client is reading.
struct ReadListing {
    read: Rc<ReadNames>,
    reader: Rc<()>,
}

/// Position up to which a client has read.
pub(super) struct Bookmark {
    /// The last name sent to the client.
    last: String,
    _reader: Rc<()>,
}

/// Guard: the directories are being read until it is dropped.
struct Reading<'a>(&'a Listings);

impl<'a> Reading<'a> {
    fn begin(listings: &'a Listings) -> Self {
        listings.is_reading.set(true);
        Reading(listings)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.is_reading.set(false);
        self.0.read.wake_all();
    }
}

impl Listings {
    /// Returns the newest listing, if its number is at least `number`.
    fn newest_from(&self, number: u64) -> Option<Rc<ReadNames>> {
        self.newest
            .borrow()
            .as_ref()
            .filter(|newest| newest.number >= number)
            .map(|newest| newest.read.clone())
    }

    /// Drops the listing if no client continues to read.
    pub(super) fn forget_if_unread(&self) {
        if Rc::strong_count(&self.reader) == 1 && !self.is_reading.get() {
            self.newest.take();
        }
    }
}

impl<M: Machine> IoNode<M> {
    /// Returns the stripes of files after this one, up to the maximum length of an answer. Stores the client's position
    /// in `bookmark`.
    pub(super) async fn list_stripes(
        &self,
        bookmark: &RefCell<Option<Bookmark>>,
        after: Option<FileId>,
    ) -> Reply {
        let after = after.map(number::object_name).unwrap_or_default();
        let all = self.listing(bookmark, &after).await;
        let (all_names, failure) = (&all.read.names, all.read.failure.clone());
        let rest = &all_names[all_names.partition_point(|name| *name <= after)..];
        let mut rest = rest.iter().filter_map(|name| Some((name, number::number_of(name)?))).peekable();
        let (mut stripes, mut last) = (Vec::new(), None);
        while let Some((name, file)) = rest.next_if(|_| stripes.len() < LISTED_STRIPES) {
            self.add_stripes(&mut stripes, name, file).await;
            last = Some(name);
        }
        let more = rest.next().is_some();
        let last = last.filter(|_| more).cloned();
        self.end_page(bookmark, all, last);
        Reply::StripesListed { stripes, more, failure }
    }

    /// Returns the listing that a client continues to read after a name, or a new listing.
    async fn listing(&self, bookmark: &RefCell<Option<Bookmark>>, after: &str) -> ReadListing {
        let reader = self.listings.reader.clone();
        // A client can continue in any listing that is not older than its first one.
        let reads_on = bookmark.take().is_some_and(|bookmark| bookmark.last == after);
        let known = if reads_on { self.listings.newest_from(0) } else { None };
        let read = match known {
            Some(all) => all,
            None => self.new_listing().await,
        };
        ReadListing { read, reader }
    }

    /// Stores a client's position, if more names follow.
    fn end_page(&self, bookmark: &RefCell<Option<Bookmark>>, listing: ReadListing, last: Option<String>) {
        let ReadListing { reader, .. } = listing;
        *bookmark.borrow_mut() = last.map(|last| Bookmark { last, _reader: reader });
        self.listings.forget_if_unread();
    }

    /// Returns all current names, from a listing that begins after this call.
    async fn new_listing(&self) -> Rc<ReadNames> {
        let listings = &self.listings;
        let wanted = listings.begun.get() + 1;
        loop {
            if let Some(read) = listings.newest_from(wanted) {
                return read;
            }
            if !listings.is_reading.get() {
                let _reading = Reading::begin(listings);
                listings.begun.set(listings.begun.get() + 1);
                let number = listings.begun.get();
                let read = Rc::new(self.names().await);
                *listings.newest.borrow_mut() = Some(Listing { number, read: read.clone() });
                return read;
            }
            listings.read.wait().await;
        }
    }

    /// Reads the names of all disks.
    async fn names(&self) -> ReadNames {
        let (mut names, mut failure) = (Vec::new(), None);
        for disk in self.machine.disks() {
            match disk.list().await {
                Ok(listed) => names.extend(listed),
                Err(error) => failure = failure.or_else(|| Some(*Box::<Failure>::from(error))),
            }
        }
        names.sort();
        names.dedup();
        ReadNames { names, failure }
    }
}
