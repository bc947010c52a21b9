//! What a disk has been given and not flushed, and what is left of it when its node crashes.
//!
//! Changes of an object are kept in order, each with what it replaced, until they are flushed. In a crash each of them
//! is found on the medium, or not, or the first sectors of it are: so it is with a disk that writes what it was given
//! in an order of its own.

use machine::Payload;

use crate::random::RandomStream;

/// What a disk writes whole or not at all.
const SECTOR_BYTES: u64 = 512;

/// Changes of one object that are not known to be on the medium, the first of them first.
#[derive(Default)]
pub(crate) struct Unflushed {
    changes: Vec<(u64, Change)>,
    last: u64,
}

/// One change, and what was before.
pub(crate) enum Change {
    Write {
        offset: u64,
        old: Payload,
        new: Payload,
        old_bytes: u64,
    },
    /// The end that was cut off comes back with the old size.
    Resize {
        old_bytes: u64,
        cut: Payload,
        bytes: u64,
    },
}

/// What a crash has left of an object.
pub(crate) struct Left {
    /// Changes to be taken back, in this order.
    pub(crate) undone: Vec<Change>,
    /// What of them was done all the same.
    pub(crate) redone: Vec<Redone>,
}

/// A change that a crash has left, or part of it.
pub(crate) enum Redone {
    Write { offset: u64, data: Payload },
    Resize { bytes: u64 },
}

impl Unflushed {
    pub(crate) fn note(&mut self, change: Change) {
        self.last += 1;
        self.changes.push((self.last, change));
    }

    /// The number of the last change: a flush that begins now is through with all up to it when it ends.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The changes up to this number are on the medium.
    pub(crate) fn flushed(&mut self, through: u64) {
        self.changes.retain(|(number, _)| *number > through);
    }

    /// Chooses what is left of the changes.
    pub(crate) fn crash(&mut self, stream: &mut RandomStream) -> Left {
        let changes: Vec<Change> = self.changes.drain(..).map(|(_, change)| change).collect();
        let redone = changes.iter().filter_map(|change| change.after_crash(stream)).collect();
        Left { undone: changes.into_iter().rev().collect(), redone }
    }
}

impl Change {
    fn after_crash(&self, stream: &mut RandomStream) -> Option<Redone> {
        match (self, stream.below(4)) {
            (_, 0) => None,
            (Change::Write { offset, new, .. }, 1) => {
                let sectors = stream.below(new.len().div_ceil(SECTOR_BYTES) + 1);
                let data = new.slice(0..(sectors * SECTOR_BYTES).min(new.len()));
                Some(Redone::Write { offset: *offset, data })
            }
            (Change::Write { offset, new, .. }, _) => {
                Some(Redone::Write { offset: *offset, data: new.clone() })
            }
            (Change::Resize { bytes, .. }, _) => Some(Redone::Resize { bytes: *bytes }),
        }
    }
}
