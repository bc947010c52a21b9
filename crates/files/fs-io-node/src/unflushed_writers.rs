//! The clients with data of a stripe that may not be on stable storage, and the failures to be reported to
//! them.
//!
//! A write is accepted before it is on the disk, so its failure cannot be returned to the caller. Nor is the
//! owner of the lost data known. The failure is kept for all clients that have written since the last flush.
//! Each client gets it once, with its next request that checks for failures.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use machine::NodeId;

use crate::error::Failure;

/// The writers of a stripe.
#[derive(Default)]
pub(super) struct Writers {
    /// Number of accepted writes.
    accepted: Cell<u64>,
    /// Number of the last write of each client, as long as it may not be on stable storage.
    last: RefCell<BTreeMap<NodeId, u64>>,
    /// For each client, the first failure since the last one that it was sent.
    failures: RefCell<BTreeMap<NodeId, Box<Failure>>>,
}

impl Writers {
    /// Counts a write of a client.
    pub(super) fn note(&self, client: NodeId) {
        self.accepted.set(self.accepted.get() + 1);
        self.last.borrow_mut().insert(client, self.accepted.get());
    }

    /// Returns the number of writes accepted so far.
    pub(super) fn accepted(&self) -> u64 {
        self.accepted.get()
    }

    /// True if data of a client may not be on stable storage, or a failure is to be reported to it.
    pub(super) fn has(&self, client: NodeId) -> bool {
        self.last.borrow().contains_key(&client) || self.failures.borrow().contains_key(&client)
    }

    /// Records the failure of a write-behind or a flush for all clients that have written.
    pub(super) fn fail(&self, failure: &Failure) {
        let mut failures = self.failures.borrow_mut();
        for &client in self.last.borrow().keys() {
            failures.entry(client).or_insert_with(|| failure.clone().into());
        }
    }

    /// Returns the failure to be reported to the client, if any, and keeps it.
    pub(super) fn failure(&self, client: NodeId) -> Option<Box<Failure>> {
        self.failures.borrow().get(&client).cloned()
    }

    /// Fails with the failure to be reported to the client, if any, and removes it.
    pub(super) fn tell(&self, client: NodeId) -> Result<(), Box<Failure>> {
        self.failures.borrow_mut().remove(&client).map_or(Ok(()), Err)
    }

    /// Fails with a failure to be reported to any client, if there is one, and removes it.
    pub(super) fn tell_anybody(&self) -> Result<(), Box<Failure>> {
        self.failures.borrow_mut().pop_first().map_or(Ok(()), |(_, failure)| Err(failure))
    }

    /// Forgets the writes up to number `accepted`: they are on stable storage, or their failure has been
    /// reported. Returns their clients.
    pub(super) fn forget(&self, accepted: u64) -> Vec<NodeId> {
        self.last.borrow_mut().extract_if(.., |_, last| *last <= accepted).map(|(client, _)| client).collect()
    }

    /// True if all data are on stable storage and no failure is to be reported.
    pub(super) fn is_empty(&self) -> bool {
        self.last.borrow().is_empty() && self.failures.borrow().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NodeId = NodeId(1);
    const OTHER: NodeId = NodeId(2);

    fn text(outcome: Result<(), Box<Failure>>) -> Option<String> {
        outcome.err().map(|failure| failure.text)
    }

    #[test]
    fn each_writer_gets_the_first_failure_once() {
        let writers = Writers::default();
        writers.note(ONE);
        writers.fail(&Failure::invalid("first"));
        writers.note(OTHER);
        writers.fail(&Failure::invalid("second"));
        assert_eq!(text(writers.tell(ONE)).as_deref(), Some("first"));
        assert_eq!(text(writers.tell(OTHER)).as_deref(), Some("second"));
        assert_eq!((text(writers.tell(ONE)), text(writers.tell_anybody())), (None, None));
    }

    #[test]
    fn a_flush_does_not_forget_clients_that_wrote_after_its_start() {
        let writers = Writers::default();
        writers.note(ONE);
        writers.note(OTHER);
        let flushed = writers.accepted();
        writers.note(OTHER);
        writers.forget(flushed);
        writers.fail(&Failure::invalid("a write that failed"));
        assert_eq!(text(writers.tell(ONE)), None, "all of it is on the medium");
        assert!(text(writers.tell_anybody()).is_some() && !writers.is_empty());
        writers.forget(writers.accepted());
        assert!(writers.is_empty());
    }
}
