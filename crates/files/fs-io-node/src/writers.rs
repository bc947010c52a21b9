//! Which clients have written data to a stripe that are not known to be on the medium, and which are to be told of a
//! failure.
//!
//! A write is accepted before it is on the disk, so its failure has no caller to go to, and whose data it was is not
//! known. The failure is kept for all clients that have written since the last flush, and each is told once, by the
//! first of its requests that asks.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use machine::NodeId;

use crate::error::Failure;

/// The writers of a stripe.
#[derive(Default)]
pub(super) struct Writers {
    /// How many writes have been accepted.
    accepted: Cell<u64>,
    /// The number of the last write of each client that is not known to be on the medium.
    last: RefCell<BTreeMap<NodeId, u64>>,
    /// For each of them, the first failure since it was told.
    failures: RefCell<BTreeMap<NodeId, Box<Failure>>>,
}

impl Writers {
    /// Notes that a client has written.
    pub(super) fn note(&self, client: NodeId) {
        self.accepted.set(self.accepted.get() + 1);
        self.last.borrow_mut().insert(client, self.accepted.get());
    }

    /// How many writes have been accepted so far.
    pub(super) fn accepted(&self) -> u64 {
        self.accepted.get()
    }

    /// Whether something that a client has written is not known to be on the medium, or it is to be told why not.
    pub(super) fn has(&self, client: NodeId) -> bool {
        self.last.borrow().contains_key(&client) || self.failures.borrow().contains_key(&client)
    }

    /// Notes that a write-behind or a flush has failed: all who have written are told.
    pub(super) fn fail(&self, failure: &Failure) {
        let mut failures = self.failures.borrow_mut();
        for &client in self.last.borrow().keys() {
            failures.entry(client).or_insert_with(|| failure.clone().into());
        }
    }

    /// What failed of which the client has not been told, and will be.
    pub(super) fn failure(&self, client: NodeId) -> Option<Box<Failure>> {
        self.failures.borrow().get(&client).cloned()
    }

    /// Fails if something failed of which the client has not been told.
    pub(super) fn tell(&self, client: NodeId) -> Result<(), Box<Failure>> {
        self.failures.borrow_mut().remove(&client).map_or(Ok(()), Err)
    }

    /// Fails if something failed of which some client has not been told.
    pub(super) fn tell_anybody(&self) -> Result<(), Box<Failure>> {
        self.failures.borrow_mut().pop_first().map_or(Ok(()), |(_, failure)| Err(failure))
    }

    /// The writes up to this number are on the medium, or their clients have been told why not. Those clients.
    pub(super) fn forget(&self, accepted: u64) -> Vec<NodeId> {
        self.last.borrow_mut().extract_if(.., |_, last| *last <= accepted).map(|(client, _)| client).collect()
    }

    /// Whether all is on the medium and no client is to be told a failure.
    pub(super) fn is_empty(&self) -> bool {
        self.last.borrow().is_empty() && self.failures.borrow().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: NodeId = NodeId(1);
    const OTHER: NodeId = NodeId(2);

    fn text(told: Result<(), Box<Failure>>) -> Option<String> {
        told.err().map(|failure| failure.text)
    }

    #[test]
    fn each_writer_is_told_the_first_failure_once() {
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
    fn who_wrote_after_a_flush_began_is_not_forgotten_with_it() {
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
