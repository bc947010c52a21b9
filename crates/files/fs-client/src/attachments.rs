//! What a client knows of the stripes of a file: where each is, and whether it is open there.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use machine::Permits;

/// Where the stripes of a file are, and which of them are open.
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
    /// Stripes that were made here, as far as is known, and not flushed since.
    made: RefCell<BTreeSet<u32>>,
    /// Those of them that may be lost, as this client was told: it may make them again, whatever others know.
    lost: RefCell<BTreeSet<u32>>,
    /// How often any node had been gone when it was last asked whether what is open is there.
    asked_at: Cell<u64>,
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
    /// What is known when any node has been gone so often.
    pub(super) fn new(disks: Vec<u64>, stored: u32, nowhere: BTreeSet<u32>, disconnects: u64) -> Self {
        Attachments {
            nowhere,
            stripes: RefCell::new(vec![Attachment::Unknown; disks.len()]),
            stored: Cell::new(stored.min(disks.len() as u32)),
            heard: Cell::new(stored.min(disks.len() as u32)),
            disks,
            asking: Permits::new(1),
            made: RefCell::default(),
            lost: RefCell::default(),
            asked_at: Cell::new(disconnects),
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
        if attachment == Attachment::Attached {
            self.lost.borrow_mut().remove(&stripe);
        }
        self.count_stored(self.stored.get());
    }

    /// Notes that a stripe is open which this client was the first to write to, as far as is known.
    pub(super) fn set_made(&self, stripe: u32) {
        self.made.borrow_mut().insert(stripe);
        self.set(stripe, Attachment::Attached);
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
        stripe < self.stored.get() && !self.lost.borrow().contains(&stripe)
    }

    /// Takes in how many of the first stripes others know to have been made, beside those that are known here; or
    /// instead of them, if what was in them counts no more.
    pub(super) fn hear_stored(&self, stored: u32, instead: bool) {
        let stored = stored.min(self.disks.len() as u32);
        let known = |known: &Cell<u32>| if instead { stored } else { known.get().max(stored) };
        if instead {
            self.lost.borrow_mut().clear();
        }
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

    /// Notes that what was not flushed of the stripes that `is_lost` picks is lost with their I/O nodes, and that its
    /// writer gets an error for that: what was made here may be made again.
    pub(super) fn lose(&self, is_lost: impl Fn(u32) -> bool) {
        self.lost.borrow_mut().extend(self.made.borrow().iter().copied().filter(|&stripe| is_lost(stripe)));
        self.forget(is_lost);
    }

    /// Notes that nothing is known any more of the stripes that `is_forgotten` picks, except what others know: what was
    /// made here may be lost with its I/O node.
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

    /// Whether any node was gone since the last time; it has been `disconnects` times. Then stripes that others do not
    /// know of may be lost, and nothing is known of them any more.
    pub(super) fn forget_doubtful(&self, disconnects: u64) -> bool {
        let was_gone = self.asked_at.replace(disconnects) != disconnects;
        if was_gone {
            self.forget(|stripe| stripe >= self.heard.get());
        }
        was_gone
    }

    /// Notes that others have changed the file.
    pub(super) fn note_changed(&self) {
        self.changes.set(self.changes.get() + 1);
    }

    /// Notes that what was written to these stripes is on the media.
    pub(super) fn note_written_flushed(&self, stripes: &BTreeSet<u32>) {
        self.made.borrow_mut().retain(|stripe| !stripes.contains(stripe));
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_forgotten_stripes_those_count_as_made_that_others_know_of() {
        let attachments = Attachments::new(vec![7; 5], 1, BTreeSet::new(), 0);
        (1..4).for_each(|stripe| attachments.set(stripe, Attachment::Attached));
        assert_eq!(attachments.stored(), 4);
        attachments.forget(|stripe| stripe == 2);
        assert!(attachments.stored() == 2 && attachments.is_attached(1) && attachments.is_attached(3));
        attachments.hear_stored(3, false);
        assert_eq!(attachments.stored(), 4, "the one behind is open");
        attachments.forget(|_| true);
        assert!(attachments.stored() == 3 && !attachments.is_attached(3));
    }

    #[test]
    fn what_was_made_here_and_lost_may_be_made_again_whatever_others_know() {
        let attachments = Attachments::new(vec![7; 5], 1, BTreeSet::new(), 0);
        (1..4).for_each(|stripe| attachments.set_made(stripe));
        attachments.note_written_flushed(&BTreeSet::from([2]));
        attachments.hear_stored(4, false);
        attachments.lose(|stripe| stripe < 3);
        let stored = || (0..5).filter(|&stripe| attachments.is_stored(stripe)).collect::<Vec<_>>();
        assert_eq!(stored(), [0, 2, 3]);
        attachments.set_made(1);
        assert_eq!(stored(), [0, 1, 2, 3]);
        attachments.lose(|_| true);
        assert_eq!(stored(), [0, 2]);
        attachments.hear_stored(0, true);
        attachments.hear_stored(2, false);
        assert_eq!(stored(), [0, 1], "it was cut to nothing, and others have written it");
    }

    #[test]
    fn of_open_stripes_those_are_doubtful_that_nobody_else_knows_of() {
        let attachments = Attachments::new(vec![7; 5], 1, BTreeSet::new(), 3);
        [0, 1, 3].into_iter().for_each(|stripe| attachments.set(stripe, Attachment::Attached));
        assert!(!attachments.forget_doubtful(3) && attachments.stored() == 2);
        assert!(attachments.forget_doubtful(4) && attachments.stored() == 1);
        assert_eq!([0, 1, 3].map(|stripe| attachments.is_attached(stripe)), [true, false, false]);
        assert!(!attachments.forget_doubtful(4));
    }
}
