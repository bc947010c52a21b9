//! The clients with data of a stripe that may not be on stable storage, and the failures to be reported to
//! them.
//!
//! A write is accepted before it is on the disk, so its failure cannot be returned to the caller. Nor is the
//! owner of the lost data known. The failure is kept for all clients that have written since the last flush.
//! Each client gets it once, with its next request that checks for failures. The answer may be lost with the
//! connection, and the client then repeats the request over another one. So a failure sent over a connection that has
//! ended is sent again.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use machine::NodeId;

use super::client_account::Account;
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
    /// The last failure sent to each client, until the client's next successful flush.
    sent: RefCell<BTreeMap<NodeId, SentFailure>>,
}

/// Failure sent to a client.
struct SentFailure {
    /// Account of the connection.
    account: Rc<Account>,
    failure: Box<Failure>,
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
        self.last.borrow().contains_key(&client) || self.failure(client).is_some()
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
        let sent_again = || {
            let sent = self.sent.borrow();
            sent.get(&client).filter(|sent| sent.account.is_over()).map(|sent| sent.failure.clone())
        };
        self.failures.borrow().get(&client).cloned().or_else(sent_again)
    }

    /// Fails with the failure to be reported to the client, if any, which counts as sent over its connection.
    pub(super) fn report_to(&self, account: &Rc<Account>) -> Result<(), Box<Failure>> {
        let client = account.client;
        let Some(failure) = self.failure(client) else { return Ok(()) };
        self.failures.borrow_mut().remove(&client);
        let sent = SentFailure { account: account.clone(), failure: failure.clone() };
        self.sent.borrow_mut().insert(client, sent);
        Err(failure)
    }

    /// Forgets the failure sent to the client, which has not asked again because it got the answer.
    pub(super) fn confirm(&self, client: NodeId) {
        self.sent.borrow_mut().remove(&client);
    }

    /// Fails with a failure to be reported to any client, if there is one, and removes it.
    pub(super) fn report_unclaimed(&self) -> Result<(), Box<Failure>> {
        self.failures.borrow_mut().pop_first().map_or(Ok(()), |(_, failure)| Err(failure))
    }

    /// Forgets the writes up to number `accepted`: they are on stable storage, or their failure has been
    /// reported. Returns their clients.
    pub(super) fn forget(&self, accepted: u64) -> Vec<NodeId> {
        self.last.borrow_mut().extract_if(.., |_, last| *last <= accepted).map(|(client, _)| client).collect()
    }

    /// True if all data are on stable storage and no failure is to be reported.
    pub(super) fn is_empty(&self) -> bool {
        let has_lost_answer = self.sent.borrow().values().any(|sent| sent.account.is_over());
        self.last.borrow().is_empty() && self.failures.borrow().is_empty() && !has_lost_answer
    }
}

#[cfg(test)]
mod tests {
    use super::super::client_account::Accounts;
    use super::*;

    const ONE: NodeId = NodeId(1);
    const OTHER: NodeId = NodeId(2);

    fn account(client: NodeId) -> Rc<Account> {
        Rc::new(Account::new(client))
    }

    fn text(outcome: Result<(), Box<Failure>>) -> Option<String> {
        outcome.err().map(|failure| failure.text)
    }

    #[test]
    fn each_writer_gets_the_first_failure_once() {
        let (one, other) = (account(ONE), account(OTHER));
        let writers = Writers::default();
        writers.note(ONE);
        writers.fail(&Failure::invalid("first"));
        writers.note(OTHER);
        writers.fail(&Failure::invalid("second"));
        assert_eq!(text(writers.report_to(&one)).as_deref(), Some("first"));
        assert_eq!(text(writers.report_to(&other)).as_deref(), Some("second"));
        assert_eq!((text(writers.report_to(&one)), text(writers.report_unclaimed())), (None, None));
    }

    #[test]
    fn a_flush_does_not_forget_clients_that_wrote_after_its_start() {
        let (one, writers) = (account(ONE), Writers::default());
        writers.note(ONE);
        writers.note(OTHER);
        let flushed = writers.accepted();
        writers.note(OTHER);
        writers.forget(flushed);
        writers.fail(&Failure::invalid("a write that failed"));
        assert_eq!(text(writers.report_to(&one)), None, "all of it is on the medium");
        assert!(text(writers.report_unclaimed()).is_some() && !writers.is_empty());
        writers.forget(writers.accepted());
        assert!(writers.is_empty());
    }

    #[test]
    fn a_failure_sent_over_a_lost_connection_is_sent_again() {
        let (accounts, writers) = (Accounts::default(), Writers::default());
        writers.note(ONE);
        writers.fail(&Failure::invalid("a write that failed"));
        writers.forget(writers.accepted());
        let before = accounts.of(ONE);
        assert!(
            writers.report_to(&before).is_err() && writers.report_to(&before).is_ok() && writers.is_empty()
        );
        accounts.end(ONE);
        assert!(writers.has(ONE) && !writers.is_empty(), "the answer may be lost");
        let again = accounts.of(ONE);
        assert!(writers.report_to(&again).is_err() && writers.report_to(&again).is_ok());
        writers.confirm(ONE);
        accounts.end(ONE);
        assert!(writers.report_to(&accounts.of(ONE)).is_ok(), "the client flushed after it got the answer");
    }
}
