//! A meeting of clients at this I/O node: each brings something, and all are told the same when it is over.
//!
//! Who has to come, and what it means that a member is lost, is up to those who meet: the members of a job
//! (`rosters.rs`) or of a team (`teams.rs`).

use std::cell::{Cell, Ref, RefCell};
use std::collections::BTreeMap;

use machine::{Condition, NodeId};

use crate::error::Failure;
use crate::protocol::Reply;

/// What a client is answered.
pub(super) type Served = Result<Reply, Box<Failure>>;

/// A meeting of members that are known by a `K` and bring a `B` each.
pub(super) struct Meeting<K, B> {
    /// The members that have come, with what they bring.
    present: RefCell<BTreeMap<K, B>>,
    /// The first failure that any of them brings.
    failure: RefCell<Option<Failure>>,
    /// What all are told, once the meeting is over.
    outcome: RefCell<Option<Result<Vec<u64>, Failure>>>,
    /// How many have been told.
    told: Cell<usize>,
}

impl<K, B> Default for Meeting<K, B> {
    fn default() -> Self {
        Meeting {
            present: RefCell::default(),
            failure: RefCell::default(),
            outcome: RefCell::default(),
            told: Cell::new(0),
        }
    }
}

impl<K: Ord, B> Meeting<K, B> {
    /// A member comes. Refused if it has come already.
    pub(super) fn come(
        &self,
        client: NodeId,
        key: K,
        brought: B,
        failure: Option<Failure>,
    ) -> Result<(), Box<Failure>> {
        let mut present = self.present.borrow_mut();
        if present.contains_key(&key) {
            return Err(Failure::invalid(format!("{client} has come to this meeting already")).into());
        }
        present.insert(key, brought);
        if let Some(failure) = failure {
            self.failure.borrow_mut().get_or_insert(failure);
        }
        Ok(())
    }

    /// The members that have come, with what they bring.
    pub(super) fn present(&self) -> Ref<'_, BTreeMap<K, B>> {
        self.present.borrow()
    }

    pub(super) fn is_over(&self) -> bool {
        self.outcome.borrow().is_some()
    }

    /// Ends it: all are told `values`, unless a member was lost or has brought a failure. The loss takes precedence, as
    /// other failures may come of it.
    pub(super) fn end(&self, lost: Option<Failure>, values: Vec<u64>) {
        let failure = lost.or_else(|| self.failure.borrow().clone());
        self.outcome.replace(Some(failure.map_or(Ok(values), Err)));
    }

    /// Waits until it is over, for a member that has come; `changed` is woken then.
    pub(super) async fn outcome(&self, changed: &Condition) -> Result<Vec<u64>, Failure> {
        loop {
            let outcome = self.outcome.borrow().clone();
            if let Some(outcome) = outcome {
                self.told.set(self.told.get() + 1);
                return outcome;
            }
            changed.wait().await;
        }
    }

    /// Whether all who have come have been told the outcome.
    pub(super) fn all_are_told(&self) -> bool {
        self.told.get() == self.present.borrow().len()
    }
}

/// A failure in whose text nodes have the names that members know them by.
pub(super) fn with_names(mut failure: Failure, names: impl IntoIterator<Item = (NodeId, String)>) -> Failure {
    for (node, name) in names {
        failure.text = failure.text.replace(&node.to_string(), &name);
    }
    failure
}
