//! What an I/O node does for each of its clients: the client's account, from its first request over a connection to the
//! end of that.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use machine::{Buf, BufferPool, NodeId};

use super::listing::Bookmark;
use crate::error::{Failure, FailureKind};

/// The accounts of all clients that are there.
#[derive(Default)]
pub(super) struct Accounts(RefCell<BTreeMap<NodeId, Rc<Account>>>);

/// A client's account: what of all that it has asked for is under way.
#[derive(Default)]
pub(super) struct Account {
    /// Commands, collective requests among them.
    pub(super) commands: Cell<usize>,
    /// Answers that say that a request is one too many.
    pub(super) refusals: Cell<usize>,
    /// Collective requests that have been begun.
    pub(super) collectives: Cell<usize>,
    /// The turn at a list of names, from its beginning until the answer has left: these answers are the long ones.
    pub(super) list: Turn,
    /// How far the client has read such a list.
    pub(super) bookmark: RefCell<Option<Bookmark>>,
    is_over: Cell<bool>,
}

/// Something that one task at a time does, first come, first served. That is what a pool of a single byte gives.
pub(super) struct Turn(BufferPool);

impl Default for Turn {
    fn default() -> Self {
        Turn(BufferPool::new(1))
    }
}

impl Turn {
    /// Waits for the turn; it is over when what this gives is dropped.
    pub(super) async fn take(&self) -> Buf {
        self.0.take(1).await
    }
}

impl Accounts {
    /// The account of a client, a new one if it has none.
    pub(super) fn of(&self, client: NodeId) -> Rc<Account> {
        self.0.borrow_mut().entry(client).or_default().clone()
    }

    /// Whether a client is there.
    pub(super) fn is_there(&self, client: NodeId) -> bool {
        self.0.borrow().contains_key(&client)
    }

    /// Ends the account of a client that is gone. Whatever is still under way for it sees that nobody wants it.
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
            return Err(Failure::new(FailureKind::Io, "whoever asked for it is gone").into());
        }
        Ok(())
    }
}

/// One more of something for as long as this is there.
#[must_use]
pub(super) struct Counted<'a>(&'a Cell<usize>);

impl<'a> Counted<'a> {
    pub(super) fn in_(count: &'a Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Counted(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
