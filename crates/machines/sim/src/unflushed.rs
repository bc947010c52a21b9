//! Unflushed changes of a disk, and the effect of a crash on them.
//!
//! Changes of an object are kept in order until they are flushed, each with the data that it replaced. In a crash each
//! change reaches the medium completely, not at all, or only with some of its sectors. This models a system and a disk
//! that reorder their writes.

use machine::Payload;

use crate::random::RandomStream;

/// Bytes that a disk writes atomically.
const SECTOR_BYTES: u64 = 512;

/// Changes of one object that may not be on the medium, the oldest first.
#[derive(Default)]
pub(crate) struct Unflushed {
    changes: Vec<(u64, Change)>,
    last: u64,
}

/// One change, and the state before it.
pub(crate) enum Change {
    Write {
        offset: u64,
        old: Payload,
        new: Payload,
        old_bytes: u64,
    },
    /// Change of the size, with the data that it removed. Undoing the change restores the size and these data.
    Resize {
        old_bytes: u64,
        cut: Payload,
        bytes: u64,
    },
}

/// Effect of a crash on an object.
pub(crate) struct CrashOutcome {
    /// Changes to undo, in this order.
    pub(crate) undone: Vec<Change>,
    /// Undone changes to apply again, because they survive on the medium.
    pub(crate) redone: Vec<SurvivingChange>,
}

/// Change, or part of a change, that survives a crash.
pub(crate) enum SurvivingChange {
    Write { offset: u64, data: Payload },
    Resize { bytes: u64 },
}

impl Unflushed {
    pub(crate) fn note(&mut self, change: Change) {
        self.last += 1;
        self.changes.push((self.last, change));
    }

    /// Returns the number of the last change. A flush that begins now includes all changes up to this number.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Drops the changes up to this number, since they are on the medium.
    pub(crate) fn flushed(&mut self, through: u64) {
        self.changes.retain(|(number, _)| *number > through);
    }

    /// Selects the changes that survive a crash.
    pub(crate) fn crash(&mut self, stream: &mut RandomStream) -> CrashOutcome {
        let changes: Vec<Change> = self.changes.drain(..).map(|(_, change)| change).collect();
        let mut redone = Vec::new();
        changes.iter().for_each(|change| change.after_crash(stream, &mut redone));
        CrashOutcome { undone: changes.into_iter().rev().collect(), redone }
    }
}

impl Change {
    /// Appends the parts of this change that survive a crash to `survivors`.
    fn after_crash(&self, stream: &mut RandomStream, survivors: &mut Vec<SurvivingChange>) {
        match (self, stream.below(4)) {
            (_, 0) => {}
            (Change::Write { offset, new, .. }, 1) => {
                let end = offset + new.len();
                let mut at = *offset;
                while at < end {
                    let sector_end = (at / SECTOR_BYTES + 1) * SECTOR_BYTES;
                    let part = at - offset..sector_end.min(end) - offset;
                    if stream.below(2) == 0 {
                        survivors.push(SurvivingChange::Write { offset: at, data: new.slice(part) });
                    }
                    at = sector_end;
                }
            }
            (Change::Write { offset, new, .. }, _) => {
                survivors.push(SurvivingChange::Write { offset: *offset, data: new.clone() });
            }
            (Change::Resize { bytes, .. }, _) => survivors.push(SurvivingChange::Resize { bytes: *bytes }),
        }
    }
}
