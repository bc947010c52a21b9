//! A client's knowledge of the stripes of a file: their disks, and their state at the I/O nodes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use machine::Permits;

/// Disks and known state of the stripes of a file.
pub(super) struct Attachments {
    /// Identity of the disk of each stripe.
    pub(super) disks: Vec<u64>,
    /// Stripes on a disk that none of the I/O nodes has.
    nowhere: RefCell<BTreeSet<u32>>,
    stripes: RefCell<Vec<Attachment>>,
    /// Length of the prefix of stripes that any client is known to have created: a stripe of it is lost if its disk is
    /// missing.
    stored: Cell<u32>,
    /// Length of the prefix of stripes that others know to exist.
    reported: Cell<u32>,
    /// Serialises queries for stripes.
    pub(super) asking: Permits,
    /// Unflushed stripes that this client created, as far as it knows.
    made: RefCell<BTreeSet<u32>>,
    /// Created stripes that may be lost, as reported to this client, which may create them again whatever others know.
    lost: RefCell<BTreeSet<u32>>,
    /// Disconnect count of all nodes at the last query for the open stripes.
    asked_at: Cell<u64>,
    /// Number of known changes by others; the contents at the time of opening count as the first.
    changes: Cell<u64>,
    /// Number of these changes known to be on stable storage.
    changes_flushed: Cell<u64>,
}

/// Known state of a stripe at its I/O node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Attachment {
    Unknown,
    Absent,
    Attached,
}

impl Attachments {
    /// Returns the state of a file just opened, when the nodes had disconnected `disconnects` times in total.
    pub(super) fn new(disks: Vec<u64>, stored: u32, nowhere: BTreeSet<u32>, disconnects: u64) -> Self {
        Attachments {
            nowhere: RefCell::new(nowhere),
            stripes: RefCell::new(vec![Attachment::Unknown; disks.len()]),
            stored: Cell::new(stored.min(disks.len() as u32)),
            reported: Cell::new(stored.min(disks.len() as u32)),
            disks,
            asking: Permits::new(1),
            made: RefCell::default(),
            lost: RefCell::default(),
            asked_at: Cell::new(disconnects),
            changes: Cell::new(1),
            changes_flushed: Cell::new(0),
        }
    }

    /// Returns true if none of the I/O nodes has the disk of a stripe, so that its contents are unknown.
    pub(super) fn has_no_disk(&self, stripe: u32) -> bool {
        self.nowhere.borrow().contains(&stripe)
    }

    /// Records that an I/O node has the disk of a stripe.
    pub(super) fn set_disk_found(&self, stripe: u32) {
        self.nowhere.borrow_mut().remove(&stripe);
    }

    fn get(&self, stripe: u32) -> Attachment {
        self.stripes.borrow()[stripe as usize]
    }

    /// Sets the known state of a stripe.
    pub(super) fn set(&self, stripe: u32, attachment: Attachment) {
        self.stripes.borrow_mut()[stripe as usize] = attachment;
        if attachment == Attachment::Attached {
            self.lost.borrow_mut().remove(&stripe);
        }
        self.count_stored(self.stored.get());
    }

    /// Records that a stripe is open and that this client, as far as it knows, is the first to write to it.
    pub(super) fn set_made(&self, stripe: u32) {
        self.made.borrow_mut().insert(stripe);
        self.set(stripe, Attachment::Attached);
    }

    /// Sets the created prefix to the first `known` stripes and the attached ones directly after them.
    fn count_stored(&self, known: u32) {
        let stripes = self.stripes.borrow();
        let open = stripes[known as usize..].iter().take_while(|&&stripe| stripe == Attachment::Attached);
        self.stored.set(known + open.count() as u32);
    }

    /// Returns the length of the prefix of stripes known to have been created.
    pub(super) fn stored(&self) -> u32 {
        self.stored.get()
    }

    /// Returns true if a stripe is known to have been created: it is lost if its disk is missing.
    pub(super) fn is_stored(&self, stripe: u32) -> bool {
        stripe < self.stored.get() && !self.lost.borrow().contains(&stripe)
    }

    /// Merges the length of the created prefix that others know with the local one; with `instead`, replaces it,
    /// because the old contents no longer count.
    pub(super) fn note_stored(&self, stored: u32, instead: bool) {
        let stored = stored.min(self.disks.len() as u32);
        let known = |known: &Cell<u32>| if instead { stored } else { known.get().max(stored) };
        if instead {
            self.lost.borrow_mut().clear();
        }
        self.reported.set(known(&self.reported));
        self.count_stored(known(&self.stored));
    }

    /// Returns true if the client must query for a stripe before it reads it or, with `create`, writes to it.
    pub(super) fn is_wanted(&self, stripe: u32, create: bool) -> bool {
        match self.get(stripe) {
            Attachment::Unknown => true,
            Attachment::Absent => create,
            Attachment::Attached => false,
        }
    }

    /// Returns true if the stripe is missing and so reads as zeros.
    pub(super) fn is_absent(&self, stripe: u32) -> bool {
        self.get(stripe) == Attachment::Absent
    }

    pub(super) fn is_attached(&self, stripe: u32) -> bool {
        self.get(stripe) == Attachment::Attached
    }

    /// Records that the unflushed writes to the stripes selected by `is_lost` are lost with their I/O nodes, and that
    /// their writer gets an error. This client may create its own lost stripes again.
    pub(super) fn lose(&self, is_lost: impl Fn(u32) -> bool) {
        machine::sometimes!("a restart may have lost a new stripe", if self.made.borrow().iter().any(|&stripe| is_lost(stripe)));
        self.lost.borrow_mut().extend(self.made.borrow().iter().copied().filter(|&stripe| is_lost(stripe)));
        self.forget(is_lost);
    }

    /// Resets the stripes selected by `is_forgotten` to `Unknown`. Only the knowledge of others remains: stripes that
    /// this client created may be lost with their I/O node.
    pub(super) fn forget(&self, is_forgotten: impl Fn(u32) -> bool) {
        for (stripe, attachment) in (0..).zip(self.stripes.borrow_mut().iter_mut()) {
            if is_forgotten(stripe) {
                *attachment = Attachment::Unknown;
            }
        }
        self.count_stored(self.reported.get());
    }

    /// Resets absent stripes to `Unknown`: another client may have created them.
    pub(super) fn forget_absent(&self) {
        for stripe in self.stripes.borrow_mut().iter_mut().filter(|stripe| **stripe == Attachment::Absent) {
            *stripe = Attachment::Unknown;
        }
    }

    /// Compares the disconnect count of all nodes with that of the last query. If it changed, resets the stripes that
    /// others do not know of, because they may be lost, and returns true.
    pub(super) fn forget_doubtful(&self, disconnects: u64) -> bool {
        let was_gone = self.asked_at.replace(disconnects) != disconnects;
        if was_gone {
            self.forget(|stripe| stripe >= self.reported.get());
        }
        was_gone
    }

    /// Records a change by others.
    pub(super) fn note_changed(&self) {
        self.changes.set(self.changes.get() + 1);
    }

    /// Records that the writes to these stripes are on stable storage.
    pub(super) fn note_written_flushed(&self, stripes: &BTreeSet<u32>) {
        self.made.borrow_mut().retain(|stripe| !stripes.contains(stripe));
    }

    /// Returns the number of changes by others, for [`note_flushed`](Self::note_flushed).
    pub(super) fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// Records that the first `changes` changes by others are on stable storage.
    pub(super) fn note_flushed(&self, changes: u64) {
        self.changes_flushed.set(self.changes_flushed.get().max(changes));
    }

    /// Returns true if all known changes by others are on stable storage.
    pub(super) fn is_old_flushed(&self) -> bool {
        self.changes_flushed.get() == self.changes.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forgotten_stripe_counts_as_created_only_if_others_reported_it() {
        let attachments = Attachments::new(vec![7; 5], 1, BTreeSet::new(), 0);
        (1..4).for_each(|stripe| attachments.set(stripe, Attachment::Attached));
        assert_eq!(attachments.stored(), 4);
        attachments.forget(|stripe| stripe == 2);
        assert!(attachments.stored() == 2 && attachments.is_attached(1) && attachments.is_attached(3));
        attachments.note_stored(3, false);
        assert_eq!(attachments.stored(), 4, "the stripe after it is open");
        attachments.forget(|_| true);
        assert!(attachments.stored() == 3 && !attachments.is_attached(3));
    }

    #[test]
    fn a_lost_stripe_created_here_is_missing_until_it_is_created_again() {
        let attachments = Attachments::new(vec![7; 5], 1, BTreeSet::new(), 0);
        (1..4).for_each(|stripe| attachments.set_made(stripe));
        attachments.note_written_flushed(&BTreeSet::from([2]));
        attachments.note_stored(4, false);
        attachments.lose(|stripe| stripe < 3);
        let stored = || (0..5).filter(|&stripe| attachments.is_stored(stripe)).collect::<Vec<_>>();
        assert_eq!(stored(), [0, 2, 3]);
        attachments.set_made(1);
        assert_eq!(stored(), [0, 1, 2, 3]);
        attachments.lose(|_| true);
        assert_eq!(stored(), [0, 2]);
        attachments.note_stored(0, true);
        attachments.note_stored(2, false);
        assert_eq!(stored(), [0, 1], "it was truncated to 0, and another client has written to it");
    }

    #[test]
    fn open_stripes_that_others_have_not_reported_are_doubtful() {
        let attachments = Attachments::new(vec![7; 5], 1, BTreeSet::new(), 3);
        [0, 1, 3].into_iter().for_each(|stripe| attachments.set(stripe, Attachment::Attached));
        assert!(!attachments.forget_doubtful(3) && attachments.stored() == 2);
        assert!(attachments.forget_doubtful(4) && attachments.stored() == 1);
        assert_eq!([0, 1, 3].map(|stripe| attachments.is_attached(stripe)), [true, false, false]);
        assert!(!attachments.forget_doubtful(4));
    }
}
