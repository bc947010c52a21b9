//! The account of each client: the state of the requests that the I/O node serves for the client, from the first
//! request over a connection until this connection ends.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use machine::{InFlight, NodeId, Permits};

use super::stripe_listing::Bookmark;
use crate::error::{Failure, FailureKind};

/// The accounts of all connected clients.
#[derive(Default)]
pub(super) struct Accounts(RefCell<BTreeMap<NodeId, Rc<Account>>>);

/// A client's account: the client's requests in flight. The account ends with the client's connection.
pub(super) struct Account {
    /// The client.
    pub(super) client: NodeId,
    /// Permit for the head of the queue of the client's waiting commands.
    pub(super) first_command: Permits,
    /// Permits for answers in flight that refuse requests beyond the client's limit.
    pub(super) refusals: Permits,
    /// The client's collective requests in service.
    pub(super) collectives: InFlight,
    /// Permit that is held from the start of listing names until the answer has been sent. Only these answers are long,
    /// so a client gets one at a time.
    pub(super) list: Permits,
    /// Position up to which the client has read a list of names.
    pub(super) bookmark: RefCell<Option<Bookmark>>,
    /// Bytes of the last recording stopped by the client that the client has not yet fetched.
    pub(super) recorded: RefCell<VecDeque<u8>>,
    is_over: Cell<bool>,
}

/// Maximum number of refusals in flight to one client. A client that continues to send requests but receives no
/// refusals is disconnected.
const REFUSALS_MAX: u64 = 64;

impl Account {
    /// Returns the account of a client that has just connected.
    pub(super) fn new(client: NodeId) -> Self {
        Account {
            client,
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
    /// Returns the account of a client. Creates the account if it is missing.
    pub(super) fn of(&self, client: NodeId) -> Rc<Account> {
        self.0.borrow_mut().entry(client).or_insert_with(|| Rc::new(Account::new(client))).clone()
    }

    /// Returns the number of clients with an account.
    pub(super) fn count(&self) -> u64 {
        self.0.borrow().len() as u64
    }

    /// True if a client is connected.
    pub(super) fn is_connected(&self, client: NodeId) -> bool {
        self.0.borrow().contains_key(&client)
    }

    /// Ends the account of a disconnected client. Requests that are still in flight for the client detect this.
    pub(super) fn end(&self, client: NodeId) {
        if let Some(account) = self.0.borrow_mut().remove(&client) {
            account.is_over.set(true);
        }
    }
}

impl Account {
    /// True if the connection has ended.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Fails if the client has disconnected.
    pub(super) fn check(&self) -> Result<(), Box<Failure>> {
        if self.is_over.get() {
            return Err(Failure::new(FailureKind::Io, "the requesting client disconnected").into());
        }
        Ok(())
    }
}
