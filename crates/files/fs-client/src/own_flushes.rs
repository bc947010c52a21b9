//! What is on the media because the client has flushed all that it had written, of all files.
//!
//! An open file remembers what I/O nodes have accepted of it until it is flushed. If an I/O node is started anew
//! meanwhile, accepted data are lost, except those that a flush of all files has brought onto the media before.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use machine::NodeId;

/// Which run of an I/O node has accepted data, and how many flushes of all files had begun by then.
#[derive(Clone, Copy)]
pub(super) struct Acceptance {
    pub(super) incarnation: u64,
    /// The client's count of lost connections to I/O nodes when it sent the data.
    pub(super) disconnects: u64,
    flushes: u64,
}

/// The flushes of all that a client has written.
#[derive(Default)]
pub(super) struct OwnFlushes {
    begun: Cell<u64>,
    /// For each I/O node the last run that has answered one of them, and the number of the last one it has answered.
    done: RefCell<BTreeMap<NodeId, Done>>,
}

/// The last flush that a run of an I/O node has done.
#[derive(Clone, Copy)]
struct Done {
    incarnation: u64,
    flush: u64,
}

impl OwnFlushes {
    /// Begins one; its number, from 1 on.
    pub(super) fn begin(&self) -> u64 {
        self.begun.set(self.begun.get() + 1);
        self.begun.get()
    }

    /// Notes that a run of an I/O node has done a flush.
    pub(super) fn note_done(&self, flush: u64, node: NodeId, incarnation: u64) {
        let mut done = self.done.borrow_mut();
        if done.get(&node).is_none_or(|last| last.flush < flush) {
            done.insert(node, Done { incarnation, flush });
        }
    }

    /// An acceptance of data by a run of an I/O node, now; `disconnects` is the count of lost connections when the data
    /// were sent.
    pub(super) fn acceptance(&self, incarnation: u64, disconnects: u64) -> Acceptance {
        Acceptance { incarnation, disconnects, flushes: self.begun.get() }
    }

    /// Whether a flush has brought what was accepted onto the media: one that began later.
    pub(super) fn has_flushed(&self, node: NodeId, accepted: Acceptance) -> bool {
        let done = self.done.borrow();
        done.get(&node)
            .is_some_and(|last| last.incarnation == accepted.incarnation && accepted.flushes < last.flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_is_of_what_was_accepted_before_it_began_and_by_that_run() {
        let (flushes, node) = (OwnFlushes::default(), NodeId(1));
        let before = flushes.acceptance(7, 0);
        let first = flushes.begin();
        let meanwhile = flushes.acceptance(7, 0);
        assert!(!flushes.has_flushed(node, before), "it is not done");
        let second = flushes.begin();
        flushes.note_done(first, node, 7);
        assert!(flushes.has_flushed(node, before) && !flushes.has_flushed(node, meanwhile));
        flushes.note_done(second, node, 7);
        flushes.note_done(first, node, 7);
        assert!(flushes.has_flushed(node, meanwhile) && !flushes.has_flushed(NodeId(2), meanwhile));
        let anew = flushes.acceptance(8, 0);
        flushes.begin();
        assert!(!flushes.has_flushed(node, anew));
    }
}
