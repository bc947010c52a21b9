//! What a client knows of the stripes of a file that has a number and no name: where each is, whether it is open there,
//! and whether it has been written to.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use machine::Permits;

/// Where the stripes of a file without a name are, and which of them are open.
pub(super) struct Attachments {
    /// The identity of the disk of each stripe.
    pub(super) disks: Vec<u64>,
    /// Stripes whose disk none of the I/O nodes has.
    nowhere: BTreeSet<u32>,
    stripes: RefCell<Vec<Attachment>>,
    /// How many of the first stripes are known to have been made, by whomever: one of these that is nowhere is lost.
    stored: Cell<u32>,
    /// How many of them others know of.
    heard: Cell<u32>,
    /// One at a time asks for stripes.
    pub(super) asking: Permits,
    /// Stripes with writes that I/O nodes have accepted and not flushed yet.
    pub(super) written: RefCell<BTreeSet<u32>>,
    /// How often others have changed the file, as far as is known; what was there when it was opened is the first time.
    changes: Cell<u64>,
    /// How many of these are known to be on the media.
    changes_flushed: Cell<u64>,
}

/// What is known of a stripe at its I/O node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Attachment {
    Unknown,
    Absent,
    Attached,
}

impl Attachments {
    pub(super) fn new(disks: Vec<u64>, stored: u32, nowhere: BTreeSet<u32>) -> Self {
        Attachments {
            nowhere,
            stripes: RefCell::new(vec![Attachment::Unknown; disks.len()]),
            stored: Cell::new(stored.min(disks.len() as u32)),
            heard: Cell::new(stored.min(disks.len() as u32)),
            disks,
            asking: Permits::new(1),
            written: RefCell::default(),
            changes: Cell::new(1),
            changes_flushed: Cell::new(0),
        }
    }

    /// Whether none of the I/O nodes has the disk of a stripe, so that nobody knows what it has.
    pub(super) fn is_nowhere(&self, stripe: u32) -> bool {
        self.nowhere.contains(&stripe)
    }

    fn get(&self, stripe: u32) -> Attachment {
        self.stripes.borrow()[stripe as usize]
    }

    /// Notes what is known of a stripe.
    pub(super) fn set(&self, stripe: u32, attachment: Attachment) {
        self.stripes.borrow_mut()[stripe as usize] = attachment;
        self.count_stored(self.stored.get());
    }

    /// Notes that the first `known` stripes have been made, and those after them that are open.
    fn count_stored(&self, known: u32) {
        let stripes = self.stripes.borrow();
        let open = stripes[known as usize..].iter().take_while(|&&stripe| stripe == Attachment::Attached);
        self.stored.set(known + open.count() as u32);
    }

    /// How many of the first stripes are known to have been made.
    pub(super) fn stored(&self) -> u32 {
        self.stored.get()
    }

    /// Whether a stripe is known to have been made: if it is nowhere, it is lost.
    pub(super) fn is_stored(&self, stripe: u32) -> bool {
        stripe < self.stored.get()
    }

    /// Takes in how many of the first stripes others know to have been made, beside those that are known here; or
    /// instead of them, if what was in them counts no more.
    pub(super) fn hear_stored(&self, stored: u32, instead: bool) {
        let stored = stored.min(self.disks.len() as u32);
        let known = |known: &Cell<u32>| if instead { stored } else { known.get().max(stored) };
        self.heard.set(known(&self.heard));
        self.count_stored(known(&self.stored));
    }

    /// Whether a stripe has to be asked for, to be read or to be written to.
    pub(super) fn is_wanted(&self, stripe: u32, create: bool) -> bool {
        match self.get(stripe) {
            Attachment::Unknown => true,
            Attachment::Absent => create,
            Attachment::Attached => false,
        }
    }

    /// Whether there is no such stripe, so that it reads as zeros.
    pub(super) fn is_absent(&self, stripe: u32) -> bool {
        self.get(stripe) == Attachment::Absent
    }

    pub(super) fn is_attached(&self, stripe: u32) -> bool {
        self.get(stripe) == Attachment::Attached
    }

    /// Notes that nothing is known any more of the stripes that `is_forgotten` picks, except what others know: what was
    /// made here may be lost with its I/O node. Its writer gets an error for that, and may make it again.
    pub(super) fn forget(&self, is_forgotten: impl Fn(u32) -> bool) {
        for (stripe, attachment) in (0..).zip(self.stripes.borrow_mut().iter_mut()) {
            if is_forgotten(stripe) {
                *attachment = Attachment::Unknown;
            }
        }
        self.count_stored(self.heard.get());
    }

    /// Notes that stripes which were not there may be there now.
    pub(super) fn forget_absent(&self) {
        for stripe in self.stripes.borrow_mut().iter_mut().filter(|stripe| **stripe == Attachment::Absent) {
            *stripe = Attachment::Unknown;
        }
    }

    pub(super) fn note_written(&self, stripe: u32) {
        self.written.borrow_mut().insert(stripe);
    }

    /// Notes that others have changed the file.
    pub(super) fn note_changed(&self) {
        self.changes.set(self.changes.get() + 1);
    }

    /// How often others have changed the file, for [`note_flushed`](Self::note_flushed).
    pub(super) fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// Notes that what others had changed by then is on the media.
    pub(super) fn note_flushed(&self, changes: u64) {
        self.changes_flushed.set(self.changes_flushed.get().max(changes));
    }

    /// Whether all that others have changed, as far as is known, is on the media.
    pub(super) fn is_old_flushed(&self) -> bool {
        self.changes_flushed.get() == self.changes.get()
    }

    /// Notes that somebody else has flushed all stripes.
    pub(super) fn flushed_by_other(&self) {
        self.note_flushed(self.changes());
        self.written.borrow_mut().clear();
    }

    /// Whether a flush has anything to do.
    pub(super) fn has_unflushed(&self) -> bool {
        !self.is_old_flushed() || !self.written.borrow().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_forgotten_stripes_those_count_as_made_that_others_know_of() {
        let attachments = Attachments::new(vec![7; 5], 1, BTreeSet::new());
        (1..4).for_each(|stripe| attachments.set(stripe, Attachment::Attached));
        assert_eq!(attachments.stored(), 4);
        attachments.forget(|stripe| stripe == 2);
        assert!(attachments.stored() == 2 && attachments.is_attached(1) && attachments.is_attached(3));
        attachments.hear_stored(3, false);
        assert_eq!(attachments.stored(), 4, "the one behind is open");
        attachments.forget(|_| true);
        assert!(attachments.stored() == 3 && !attachments.is_attached(3));
    }
}
