//! An open stripe: its length, its writers, the writes to it that are lost, and whether writes may begin now.

use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;

use machine::{InFlight, OperationInFlight, Permits};

use super::home::Home;
use super::length::StripeLength;
use super::losses::Losses;
use super::writers::Writers;
use crate::cache::StripeKey;
use crate::error::{Failure, FailureKind};
use crate::protocol::{FileId, Label};

/// A stripe that requests can name.
pub(super) struct OpenStripe {
    pub(super) label: Label,
    /// The name under which it was made or opened.
    pub(super) name: String,
    /// The number of this opening.
    opening: u64,
    pub(super) home: Home,
    pub(super) length: StripeLength,
    pub(super) losses: Losses,
    pub(super) writers: Writers,
    /// Writes to the disk that are queued or under way.
    pub(super) writes: InFlight,
    /// One operation at a time looks where the stripe ends on the disk and changes that: otherwise an operation that
    /// was kept waiting would cut a stripe that another has made longer meanwhile.
    pub(super) sizing: Permits,
    /// Operations in flight that let no new write begin.
    pub(super) bars: InFlight,
    /// How many such operations have begun.
    bars_begun: Cell<u64>,
    /// The operations among them that bypass the cache, whose blocks may then be older than the disk.
    pub(super) bypasses: InFlight,
    /// Whether the file has been removed: what is written now would never get to the disk.
    pub(super) removed: Cell<bool>,
    /// When it was used last, as a number that grows.
    pub(super) last_use: Cell<u64>,
}

/// A stripe on which no write begins until this is dropped. Writes that have begun go on.
pub(super) struct Barred {
    stripe: Rc<OpenStripe>,
    _bar: OperationInFlight,
    _bypass: Option<OperationInFlight>,
    /// How many had begun with this one.
    number: u64,
}

impl Barred {
    /// Whether no other operation bars writes, nor has begun to since this one did: then no other has written
    /// meanwhile.
    pub(super) fn is_alone(&self) -> bool {
        self.bars.count() == 1 && self.bars_begun.get() == self.number
    }
}

impl Deref for Barred {
    type Target = Rc<OpenStripe>;

    fn deref(&self) -> &Rc<OpenStripe> {
        &self.stripe
    }
}

impl OpenStripe {
    /// The stripe of this label, found under `name` with `bytes` bytes.
    pub(super) fn new(name: &str, label: Label, opening: u64, home: Home, bytes: u64) -> Self {
        OpenStripe {
            label,
            name: name.to_owned(),
            opening,
            home,
            length: StripeLength::on_disk(bytes),
            losses: Losses::default(),
            writers: Writers::default(),
            writes: InFlight::new(),
            sizing: Permits::new(1),
            bars: InFlight::new(),
            bars_begun: Cell::new(0),
            bypasses: InFlight::new(),
            removed: Cell::new(false),
            last_use: Cell::new(0),
        }
    }

    pub(super) fn file(&self) -> FileId {
        self.label.file
    }

    /// The name of the stripe in the cache.
    pub(super) fn key(&self) -> StripeKey {
        StripeKey { file: self.label.file, stripe: self.label.stripe, opening: self.opening }
    }

    pub(super) fn block_bytes(&self) -> u64 {
        self.label.striping.block_bytes()
    }

    /// Notes that the disk has been told that the stripe ends at `end`.
    pub(super) fn set_end(&self, end: u64) {
        // What was lost beyond the disk's old or new end is forgotten: it is zeros now, as the client wants it, or cut
        // off.
        self.losses.cut(self.length.set_end(end));
    }

    /// Lets no new write begin.
    pub(super) fn bar_writes(self: &Rc<Self>) -> Barred {
        self.bars_begun.set(self.bars_begun.get() + 1);
        Barred { stripe: self.clone(), _bar: self.bars.begin(), _bypass: None, number: self.bars_begun.get() }
    }

    /// Lets no new write begin but those past the cache.
    pub(super) fn bypass_cache(self: &Rc<Self>) -> Barred {
        Barred { _bypass: Some(self.bypasses.begin()), ..self.bar_writes() }
    }

    /// Fails if the file has been removed.
    pub(super) fn check_not_removed(&self) -> Result<(), Box<Failure>> {
        if self.removed.get() { Err(not_open(self.file(), self.label.stripe)) } else { Ok(()) }
    }

    /// Whether no task uses the stripe, and nothing would be forgotten with it.
    pub(super) fn is_idle(self: &Rc<Self>) -> bool {
        Rc::strong_count(self) == 1
            && self.writes.is_empty()
            && self.writers.is_empty()
            && self.losses.is_empty()
    }
}

pub(super) fn not_open(file: FileId, stripe: u32) -> Box<Failure> {
    Failure::new(FailureKind::NotOpen, format!("stripe {stripe} of file {:016x} is not open", file.0)).into()
}
