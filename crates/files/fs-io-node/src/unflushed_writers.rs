//! The clients with data of a stripe that may not be on stable storage, and the failures to be reported to
//! them.
//!
//! A write is accepted before it is on the disk, so its failure cannot be returned to the caller. Nor is the
//! owner of the lost data known. The failure is kept for all clients that have written since the last flush.
//!
//! A flush claims that all earlier writes are on stable storage. So the first flush after a failure fails with it,
//! and a client sends one flush of a file at a time:
//!
//! - A request other than a flush fails once with the failure. Its caller may not be the one that flushes, so
//!   the next flush still fails.
//! - The answer may be lost with the connection, and the client then repeats the flush over another one. So a
//!   failure sent over a connection that has ended is sent again.

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
    /// For each client, the first failure that no flush has reported.
    failures: RefCell<BTreeMap<NodeId, UnreportedFailure>>,
    /// For each client, the last failure that a flush has reported, until a later flush shows that the client got the
    /// answer.
    reported: RefCell<BTreeMap<NodeId, ReportedFailure>>,
}

/// Failure that no flush has reported.
struct UnreportedFailure {
    failure: Box<Failure>,
    /// True if another request has failed with it.
    is_answered: bool,
}

/// Failure that a flush has reported to a client.
struct ReportedFailure {
    failure: Box<Failure>,
    /// Account of the connection.
    account: Rc<Account>,
}

impl ReportedFailure {
    /// True if the answer may be lost.
    fn may_be_lost(&self) -> bool {
        self.account.is_over()
    }
}

/// Number of writes accepted before a flush began.
#[derive(Clone, Copy)]
pub(super) struct FlushStart(u64);

impl Writers {
    /// Counts a write of a client.
    pub(super) fn note(&self, client: NodeId) {
        self.accepted.set(self.accepted.get() + 1);
        self.last.borrow_mut().insert(client, self.accepted.get());
    }

    /// Returns the present state, for a flush that begins.
    pub(super) fn flush_start(&self) -> FlushStart {
        FlushStart(self.accepted.get())
    }

    /// True if data of a client may not be on stable storage, or a failure is to be reported to it.
    pub(super) fn has(&self, client: NodeId) -> bool {
        self.last.borrow().contains_key(&client) || self.failure_of(client).is_some()
    }

    /// Records the failure of a write-behind or a flush for all clients that have written.
    pub(super) fn fail(&self, failure: &Failure) {
        let mut failures = self.failures.borrow_mut();
        for &client in self.last.borrow().keys() {
            failures
                .entry(client)
                .or_insert_with(|| UnreportedFailure { failure: failure.clone().into(), is_answered: false });
        }
    }

    /// Fails once with the failure to be reported to the client, if any, for a request that is no flush.
    pub(super) fn answer(&self, client: NodeId) -> Result<(), Box<Failure>> {
        match self.failures.borrow_mut().get_mut(&client) {
            Some(unreported) if !unreported.is_answered => {
                unreported.is_answered = true;
                Err(unreported.failure.clone())
            }
            _ => Ok(()),
        }
    }

    /// Returns the failure that a flush must report to the client, and keeps it.
    pub(super) fn failure_of(&self, client: NodeId) -> Option<Box<Failure>> {
        let lost_report = || {
            let reported = self.reported.borrow();
            reported
                .get(&client)
                .filter(|reported| reported.may_be_lost())
                .map(|reported| reported.failure.clone())
        };
        let failures = self.failures.borrow();
        failures.get(&client).map(|unreported| unreported.failure.clone()).or_else(lost_report)
    }

    /// Fails with the failure that a flush must report to the client, if any, which then counts as reported over the
    /// client's connection.
    pub(super) fn report(&self, account: &Rc<Account>) -> Result<(), Box<Failure>> {
        let client = account.client;
        let Some(failure) = self.failure_of(client) else { return Ok(()) };
        let mut failures = self.failures.borrow_mut();
        machine::sometimes!("a failure is reported again because its answer may be lost", if !failures.contains_key(&client));
        failures.remove(&client);
        let reported = ReportedFailure { failure: failure.clone(), account: account.clone() };
        self.reported.borrow_mut().insert(client, reported);
        Err(failure)
    }

    /// Fails with a failure that a flush for these clients must report, if there is one, and keeps it: each client's
    /// next flush fails, too.
    pub(super) fn check_all(&self, clients: &[NodeId]) -> Result<(), Box<Failure>> {
        let failure = clients.iter().find_map(|&client| self.failure_of(client));
        machine::sometimes!("a flush for a team finds a failed write of another member", if failure.is_some());
        failure.map_or(Ok(()), Err)
    }

    /// Records that the client has got the answer to its last flush: otherwise it would have repeated that flush.
    pub(super) fn confirm(&self, client: NodeId) {
        self.reported.borrow_mut().remove(&client);
    }

    /// Fails with a failure to be reported to any client, if there is one, and removes it.
    pub(super) fn report_unclaimed(&self) -> Result<(), Box<Failure>> {
        self.failures.borrow_mut().pop_first().map_or(Ok(()), |(_, unreported)| Err(unreported.failure))
    }

    /// Forgets the writes before the start of a flush: they are on stable storage, or their failure has been
    /// reported. Returns their clients.
    pub(super) fn forget(&self, start: FlushStart) -> Vec<NodeId> {
        let is_flushed = |_: &NodeId, last: &mut u64| *last <= start.0;
        self.last.borrow_mut().extract_if(.., is_flushed).map(|(client, _)| client).collect()
    }

    /// True if all data are on stable storage and no failure is to be reported.
    pub(super) fn is_empty(&self) -> bool {
        let has_lost_answer = self.reported.borrow().values().any(ReportedFailure::may_be_lost);
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

    /// Returns the failure that a flush reports.
    fn flush(writers: &Writers, account: &Rc<Account>) -> Option<String> {
        text(writers.report(account))
    }

    #[test]
    fn each_writer_gets_the_first_failure_once() {
        let (one, other) = (account(ONE), account(OTHER));
        let writers = Writers::default();
        writers.note(ONE);
        writers.fail(&Failure::invalid("first"));
        writers.note(OTHER);
        writers.fail(&Failure::invalid("second"));
        assert_eq!(flush(&writers, &one).as_deref(), Some("first"));
        assert_eq!(flush(&writers, &other).as_deref(), Some("second"));
        assert_eq!((flush(&writers, &one), text(writers.report_unclaimed())), (None, None));
    }

    #[test]
    fn a_flush_fails_after_another_request_has_failed() {
        let (one, writers) = (account(ONE), Writers::default());
        writers.note(ONE);
        writers.fail(&Failure::invalid("a write that failed"));
        assert!(writers.answer(ONE).is_err() && writers.answer(ONE).is_ok());
        assert!(flush(&writers, &one).is_some() && flush(&writers, &one).is_none());
        assert!(writers.answer(ONE).is_ok());
    }

    #[test]
    fn a_flush_for_several_clients_keeps_their_failures() {
        let (other, writers) = (account(OTHER), Writers::default());
        writers.note(OTHER);
        writers.fail(&Failure::invalid("a write that failed"));
        let check = |clients: &[NodeId]| writers.check_all(clients);
        assert!(check(&[ONE]).is_ok() && check(&[ONE, OTHER]).is_err());
        assert!(flush(&writers, &other).is_some());
        assert!(check(&[ONE, OTHER]).is_ok());
    }

    #[test]
    fn a_flush_does_not_forget_clients_that_wrote_after_its_start() {
        let (one, writers) = (account(ONE), Writers::default());
        writers.note(ONE);
        writers.note(OTHER);
        let start = writers.flush_start();
        writers.note(OTHER);
        writers.forget(start);
        writers.fail(&Failure::invalid("a write that failed"));
        assert_eq!(flush(&writers, &one), None, "all of it is on the medium");
        assert!(text(writers.report_unclaimed()).is_some() && !writers.is_empty());
        writers.forget(writers.flush_start());
        assert!(writers.is_empty());
    }

    #[test]
    fn a_failure_sent_over_a_lost_connection_is_sent_again() {
        let (accounts, writers) = (Accounts::default(), Writers::default());
        writers.note(ONE);
        writers.fail(&Failure::invalid("a write that failed"));
        writers.forget(writers.flush_start());
        let before = accounts.of(ONE);
        assert!(flush(&writers, &before).is_some() && flush(&writers, &before).is_none());
        assert!(writers.is_empty());
        accounts.end(ONE);
        assert!(writers.has(ONE) && !writers.is_empty(), "the answer may be lost");
        let again = accounts.of(ONE);
        assert!(flush(&writers, &again).is_some() && flush(&writers, &again).is_none());
        writers.confirm(ONE);
        accounts.end(ONE);
        assert!(flush(&writers, &accounts.of(ONE)).is_none(), "the client flushed after it got the answer");
    }
}
