//! The account of each client: the requests that the I/O node serves for it, from the first one over a connection until
//! that connection ends.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use machine::{InFlight, NodeId, Permits};

use super::listing::Bookmark;
use crate::error::{Failure, FailureKind};

/// The accounts of all clients that are there.
#[derive(Default)]
pub(super) struct Accounts(RefCell<BTreeMap<NodeId, Rc<Account>>>);

/// A client's account: its requests in flight.
pub(super) struct Account {
    /// The place at the head of its commands that wait for their turn.
    pub(super) first_command: Permits,
    /// Answers that say that a request is one too many.
    pub(super) refusals: Permits,
    /// Collective requests that have been begun.
    pub(super) collectives: InFlight,
    /// The turn at a list of names, from its beginning until the answer has left: these answers are the long ones.
    pub(super) list: Permits,
    /// How far the client has read such a list.
    pub(super) bookmark: RefCell<Option<Bookmark>>,
    /// What the client has yet to fetch of the recording that it has ended last.
    pub(super) recorded: RefCell<VecDeque<u8>>,
    is_over: Cell<bool>,
}

/// Maximum refusals in flight to one client. A client that continues to ask and reads none of them is given up.
const REFUSALS_MAX: u64 = 64;

impl Default for Account {
    fn default() -> Self {
        Account {
            first_command: Permits::new(1),
            refusals: Permits::new(REFUSALS_MAX),
            collectives: InFlight::new(),
            list: Permits::new(1),
            bookmark: RefCell::default(),
            recorded: RefCell::default(),
            is_over: Cell::new(false),
        }
    }
}

impl Accounts {
    /// The account of a client, a new one if it has none.
    pub(super) fn of(&self, client: NodeId) -> Rc<Account> {
        self.0.borrow_mut().entry(client).or_default().clone()
    }

    /// How many clients have one.
    pub(super) fn count(&self) -> u64 {
        self.0.borrow().len() as u64
    }

    /// Whether a client is there.
    pub(super) fn is_there(&self, client: NodeId) -> bool {
        self.0.borrow().contains_key(&client)
    }

    /// Ends the account of a client that is gone. Requests still in flight for it notice that.
    pub(super) fn end(&self, client: NodeId) {
        if let Some(account) = self.0.borrow_mut().remove(&client) {
            account.is_over.set(true);
        }
    }
}

impl Account {
    /// Fails if the client is gone.
    pub(super) fn check(&self) -> Result<(), Box<Failure>> {
        if self.is_over.get() {
            return Err(Failure::new(FailureKind::Io, "the client that asked for it is gone").into());
        }
        Ok(())
    }
}
