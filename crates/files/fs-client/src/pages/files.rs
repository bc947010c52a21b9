//! The table of logical files: the files that are open in a cache, or have unsent writes.
//!
//! - The table has one entry for each file, however often it is open: all its handles share its pages, its length, and
//!   the first failed write that no handle has reported.
//! - A file gets a new number each time it is entered, so that its old pages are not used again.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use machine::{InFlight, Machine, Permits};

use super::failures::WriteFailures;
use crate::File;
use crate::known_length::Length;
use crate::protocol::FileId;

/// The files of a cache.
pub(super) struct Files<M: Machine> {
    by_number: RefCell<BTreeMap<u64, Rc<LogicalFile<M>>>>,
    /// Number of files that were entered until now.
    entered: Cell<u64>,
}

/// A file, as shared by all its open handles.
pub(super) struct LogicalFile<M: Machine> {
    /// Number of the file in this cache, which is new each time the file is entered.
    pub(super) number: u64,
    pub(super) file: File<M>,
    /// Length of the file, including unsent writes. Its own end covers the writes that a size reported by others may
    /// not include: all writes since the last time that no write was unsent.
    pub(super) length: Length,
    /// True if the size must still be sent to the I/O nodes. The size of a temporary file is set only locally.
    pub(super) size_unsent: Cell<bool>,
    pub(super) handles: Cell<usize>,
    /// Page writes in flight.
    pub(super) writes: InFlight,
    /// Truncations in flight, one at a time. They block reads and writes of the file's pages: an I/O node that has not
    /// truncated its stripes yet would return truncated data, and could truncate new writes.
    pub(super) cuts: InFlight,
    pub(super) failures: WriteFailures,
    /// Serialises flushes to stable storage: an I/O node reports a failure once, and all flushes that have begun
    /// before must fail with it.
    pub(super) flushing: Permits,
    /// Number of flushes begun.
    pub(super) flushes: Cell<u64>,
    /// Serialises appends.
    pub(super) appending: Permits,
    pub(super) temporary: Cell<bool>,
    pub(super) unlinked: Cell<bool>,
    /// Number of prefetched pages evicted before their use.
    pub(super) wasted: Cell<u64>,
    /// Number of times that the file's unsent writes were discarded.
    pub(super) given_up: Cell<u64>,
}

impl<M: Machine> LogicalFile<M> {
    fn new(number: u64, file: File<M>) -> Self {
        LogicalFile {
            number,
            length: Length::reported(file.bytes()),
            file,
            size_unsent: Cell::new(false),
            handles: Cell::new(0),
            writes: InFlight::new(),
            cuts: InFlight::new(),
            failures: WriteFailures::default(),
            flushing: Permits::new(1),
            flushes: Cell::new(0),
            appending: Permits::new(1),
            temporary: Cell::new(false),
            unlinked: Cell::new(false),
            wasted: Cell::new(0),
            given_up: Cell::new(0),
        }
    }

    pub(super) fn page_bytes(&self) -> u64 {
        self.file.striping().block_bytes()
    }

    /// Returns true if pages are sent to the I/O nodes only on eviction.
    pub(super) fn stays_here(&self) -> bool {
        self.temporary.get() || self.unlinked.get()
    }

    /// Updates the length to the size at the I/O nodes, but not below the end of unsent writes.
    pub(super) fn note_remote_bytes(&self, bytes: u64) {
        let own = if self.size_unsent.get() { self.length.bytes() } else { self.own_end() };
        self.length.note_reported(bytes.max(own));
    }

    /// Updates the length to the size that others report.
    pub(super) fn note_reported_bytes(&self, bytes: u64) {
        self.file.note_reported_bytes(bytes);
        self.note_remote_bytes(bytes);
    }

    /// Returns the largest end of a write that others cannot know.
    pub(super) fn own_end(&self) -> u64 {
        self.length.own_end().max(self.file.uncounted_end())
    }
}

impl<M: Machine> Files<M> {
    pub(super) fn new() -> Self {
        Files { by_number: RefCell::default(), entered: Cell::new(0) }
    }

    pub(super) fn enter(&self, file: File<M>) -> Rc<LogicalFile<M>> {
        let number = self.entered.get();
        self.entered.set(number + 1);
        let logical = Rc::new(LogicalFile::new(number, file));
        self.by_number.borrow_mut().insert(number, logical.clone());
        logical
    }

    pub(super) fn remove(&self, file: &LogicalFile<M>) {
        self.by_number.borrow_mut().remove(&file.number);
    }

    pub(super) fn get(&self, number: u64) -> Option<Rc<LogicalFile<M>>> {
        self.by_number.borrow().get(&number).cloned()
    }

    pub(super) fn all(&self) -> Vec<Rc<LogicalFile<M>>> {
        self.by_number.borrow().values().cloned().collect()
    }

    /// Returns the file with this identity, unless it has been removed.
    pub(super) fn known(&self, id: FileId) -> Option<Rc<LogicalFile<M>>> {
        let files = self.by_number.borrow();
        files.values().find(|file| !file.unlinked.get() && file.file.id() == id).cloned()
    }
}
