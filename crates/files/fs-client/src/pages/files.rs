//! The logical-file table: the files that a cache has open, or of which something is still to be written.
//!
//! - A file is here once, however often it is open: all its handles share its pages, its length, and its first failed
//!   write of which no handle has been told.
//! - It gets a new number each time it is entered, so pages of an earlier time are not taken for its own.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use machine::{InFlight, Machine, Permits};

use super::failures::WriteFailures;
use crate::File;
use crate::length::Length;
use crate::protocol::FileId;

/// The files of a cache.
pub(super) struct Files<M: Machine> {
    by_number: RefCell<BTreeMap<u64, Rc<LogicalFile<M>>>>,
    /// How many have been entered.
    entered: Cell<u64>,
}

/// A file as all its open handles share it.
pub(super) struct LogicalFile<M: Machine> {
    /// Its number in this cache, new each time it is entered.
    pub(super) number: u64,
    pub(super) file: File<M>,
    /// With what has not been written to the I/O nodes yet. Kept apart is what an answer about the size may lack: what
    /// was written since all was sent last, and no question was on its way.
    pub(super) length: Length,
    /// Whether the I/O nodes are still to be told the size: the size of a temporary file is set without them.
    pub(super) size_unsent: Cell<bool>,
    pub(super) handles: Cell<usize>,
    /// Pages whose writing has begun.
    pub(super) writes: InFlight,
    /// Cuts of the file under way, one at a time. Nobody reads or writes its pages meanwhile: what is cut off would
    /// come back from an I/O node that has not cut it yet, and what is written might be cut off.
    pub(super) cuts: InFlight,
    pub(super) failures: WriteFailures,
    /// The turn at appending.
    pub(super) appending: Permits,
    pub(super) temporary: Cell<bool>,
    pub(super) unlinked: Cell<bool>,
    /// How many pages have been dropped before they were used.
    pub(super) wasted: Cell<u64>,
    /// How often what was written to it was given up.
    pub(super) given_up: Cell<u64>,
}

impl<M: Machine> LogicalFile<M> {
    fn new(number: u64, file: File<M>) -> Self {
        LogicalFile {
            number,
            length: Length::heard(file.bytes()),
            file,
            size_unsent: Cell::new(false),
            handles: Cell::new(0),
            writes: InFlight::new(),
            cuts: InFlight::new(),
            failures: WriteFailures::default(),
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

    /// Whether pages go to the I/O nodes only if they have to give way to others.
    pub(super) fn stays_here(&self) -> bool {
        self.temporary.get() || self.unlinked.get()
    }

    /// Takes in what the I/O nodes say of the size; what they have not been sent yet counts too.
    pub(super) fn note_remote_bytes(&self, bytes: u64) {
        let own = if self.size_unsent.get() { self.length.bytes() } else { self.own_end() };
        self.length.hear(bytes.max(own));
    }

    /// Takes in what others say of the size of a file.
    pub(super) fn hear_bytes(&self, bytes: u64) {
        self.file.hear_bytes(bytes);
        self.note_remote_bytes(bytes);
    }

    /// Where the furthest write ends that others cannot know of.
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

    /// The file of this identity, unless it has been removed.
    pub(super) fn known(&self, id: FileId) -> Option<Rc<LogicalFile<M>>> {
        let files = self.by_number.borrow();
        files.values().find(|file| !file.unlinked.get() && file.file.id() == id).cloned()
    }
}
