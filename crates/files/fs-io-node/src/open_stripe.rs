//! An open stripe: its length, its writers, its lost writes, and the operations that bar new writes.

use std::cell::Cell;
use std::ops::Deref;
use std::rc::Rc;

use machine::{InFlight, OperationInFlight, Permits};

use super::lost_writes::LostWrites;
use super::stripe_length::StripeLength;
use super::stripe_place::Home;
use super::unflushed_writers::Writers;
use crate::cache::StripeKey;
use crate::error::{Failure, FailureKind};
use crate::protocol::{FileId, Label};

/// An open stripe, to which requests can refer.
pub(super) struct OpenStripe {
    pub(super) label: Label,
    /// Name of the stripe's object.
    pub(super) name: String,
    /// Number that distinguishes this open stripe from later ones.
    opening: u64,
    pub(super) home: Home,
    pub(super) length: StripeLength,
    pub(super) losses: LostWrites,
    pub(super) writers: Writers,
    /// Writes of the stripe to the disk that are queued or in flight.
    pub(super) writes: InFlight,
    /// Permit to read and change the stripe's end on the disk, for one operation at a time: otherwise a delayed
    /// operation could truncate a stripe that another operation has extended since.
    pub(super) sizing: Permits,
    /// Operations in flight that bar new writes.
    pub(super) bars: InFlight,
    /// Number of operations that bar new writes and have begun until now.
    bars_begun: Cell<u64>,
    /// Operations in flight that bypass the cache, a part of `bars`: until these end, cached blocks can be older than
    /// the blocks on the disk.
    pub(super) bypasses: InFlight,
    /// True if the file has been removed, so that new writes would never reach the disk.
    pub(super) removed: Cell<bool>,
    /// Sequence number of the last use.
    pub(super) last_use: Cell<u64>,
}

/// Guard that bars new writes of a stripe until it is dropped. Writes that have begun continue.
pub(super) struct WriteExclusion {
    stripe: Rc<OpenStripe>,
    _bar: OperationInFlight,
    _bypass: Option<OperationInFlight>,
    /// Sequence number of this operation among those that bar new writes of the stripe.
    number: u64,
}

impl WriteExclusion {
    /// True if no other operation bars writes, or has begun to bar writes since this one began: then no other operation
    /// has written since.
    pub(super) fn is_alone(&self) -> bool {
        self.bars.count() == 1 && self.bars_begun.get() == self.number
    }
}

impl Deref for WriteExclusion {
    type Target = Rc<OpenStripe>;

    fn deref(&self) -> &Rc<OpenStripe> {
        &self.stripe
    }
}

impl OpenStripe {
    /// Creates the open stripe with this label, whose object has the name `name` and `bytes` bytes.
    pub(super) fn new(name: &str, label: Label, opening: u64, home: Home, bytes: u64) -> Self {
        OpenStripe {
            label,
            name: name.to_owned(),
            opening,
            home,
            length: StripeLength::on_disk(bytes),
            losses: LostWrites::default(),
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

    /// Returns the key of the stripe in the cache.
    pub(super) fn key(&self) -> StripeKey {
        StripeKey { file: self.label.file, stripe: self.label.stripe, opening: self.opening }
    }

    pub(super) fn block_bytes(&self) -> u64 {
        self.label.striping.block_bytes()
    }

    /// Records that the disk was set to end the stripe at `end`.
    pub(super) fn set_end(&self, end: u64) {
        // Losses beyond the smaller of the disk's old and new end are forgotten: the range was truncated, or reads as
        // zeros as the client intended.
        self.losses.cut(self.length.set_end(end));
    }

    /// Bars new writes.
    pub(super) fn bar_writes(self: &Rc<Self>) -> WriteExclusion {
        self.bars_begun.set(self.bars_begun.get() + 1);
        WriteExclusion {
            stripe: self.clone(),
            _bar: self.bars.begin(),
            _bypass: None,
            number: self.bars_begun.get(),
        }
    }

    /// Bars new writes except those that bypass the cache.
    pub(super) fn bypass_cache(self: &Rc<Self>) -> WriteExclusion {
        WriteExclusion { _bypass: Some(self.bypasses.begin()), ..self.bar_writes() }
    }

    /// Fails if the file has been removed.
    pub(super) fn check_not_removed(&self) -> Result<(), Box<Failure>> {
        if self.removed.get() { Err(not_open(self.file(), self.label.stripe)) } else { Ok(()) }
    }

    /// True if no task uses the stripe, and closing it would lose no information.
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
