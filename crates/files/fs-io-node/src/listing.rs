//! Listing names. The directories of the disks are read by one task at a time, for all clients that have asked before
//! it began; an answer has a limited size, and the client asks again for further names.

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
    /// How many have been begun.
    begun: Cell<u64>,
    is_reading: Cell<bool>,
    /// Woken when one is there, or could not be made.
    read: Condition,
    /// Held by all who wait for a listing, or have not seen the end of one.
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
    /// Why the names of a disk are missing.
    failure: Option<Failure>,
}

/// A listing that a client is reading.
struct ReadListing {
    read: Rc<ReadNames>,
    reader: Rc<()>,
}

/// How far a client has read.
pub(super) struct Bookmark {
    /// The last name it was given.
    last: String,
    _reader: Rc<()>,
}

/// Says while it is there that the directories are being read.
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
    /// The newest listing, if it was begun as the one of this number, or later.
    fn newest_from(&self, number: u64) -> Option<Rc<ReadNames>> {
        self.newest
            .borrow()
            .as_ref()
            .filter(|newest| newest.number >= number)
            .map(|newest| newest.read.clone())
    }

    /// Forgets the listing if no client reads on.
    pub(super) fn forget_if_unread(&self) {
        if Rc::strong_count(&self.reader) == 1 && !self.is_reading.get() {
            self.newest.take();
        }
    }
}

impl<M: Machine> IoNode<M> {
    /// Stripes of files after this one, as many as an answer holds; notes at `bookmark` how far the client has read.
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

    /// The listing that a client goes on reading after a name, or a new one.
    async fn listing(&self, bookmark: &RefCell<Option<Bookmark>>, after: &str) -> ReadListing {
        let reader = self.listings.reader.clone();
        // A client may continue in any listing that is no older than the one it began with.
        let reads_on = bookmark.take().is_some_and(|bookmark| bookmark.last == after);
        let known = if reads_on { self.listings.newest_from(0) } else { None };
        let read = match known {
            Some(all) => all,
            None => self.new_listing().await,
        };
        ReadListing { read, reader }
    }

    /// Notes how far a client has read, if there is more.
    fn end_page(&self, bookmark: &RefCell<Option<Bookmark>>, listing: ReadListing, last: Option<String>) {
        let ReadListing { reader, .. } = listing;
        *bookmark.borrow_mut() = last.map(|last| Bookmark { last, _reader: reader });
        self.listings.forget_if_unread();
    }

    /// All names as of now: those of a listing that begins after this call.
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
