//! A barrier of clients at this I/O node: each makes a contribution, and all get the same result.
//!
//! The users of a barrier decide which members must enter, and how to handle the loss of a member: the
//! members of a job (`joint_flushes.rs`) or of a team (`teams.rs`).

use std::cell::{Cell, Ref, RefCell};
use std::collections::BTreeMap;

use machine::{Condition, NodeId};

use crate::error::Failure;
use crate::protocol::Reply;

/// Limit of bytes of the text of a member's failure, which is sent to all other members.
const TEXT_BYTES_MAX: usize = 1024;

/// Answer to a client.
pub(super) type Served = Result<Reply, Box<Failure>>;

/// A barrier of members that are identified by a `K` and contribute a `B` each; all get a `T`.
pub(super) struct BarrierState<K, B, T> {
    /// The members that have entered, with their contributions.
    present: RefCell<BTreeMap<K, B>>,
    /// The first failure that a member has reported on entry.
    failure: RefCell<Option<Failure>>,
    /// Result of the barrier, once it is complete.
    outcome: RefCell<Option<Result<T, Failure>>>,
    /// Number of members that have received the result.
    received: Cell<usize>,
}

impl<K, B, T> Default for BarrierState<K, B, T> {
    fn default() -> Self {
        BarrierState {
            present: RefCell::default(),
            failure: RefCell::default(),
            outcome: RefCell::default(),
            received: Cell::new(0),
        }
    }
}

impl<K: Ord, B, T: Clone> BarrierState<K, B, T> {
    /// Enters a member. Fails if it has entered already.
    pub(super) fn enter(
        &self,
        client: NodeId,
        key: K,
        contribution: B,
        failure: Option<Failure>,
    ) -> Result<(), Box<Failure>> {
        let mut present = self.present.borrow_mut();
        if present.contains_key(&key) {
            return Err(Failure::invalid(format!("{client} has already entered this barrier")).into());
        }
        present.insert(key, contribution);
        if let Some(failure) = failure {
            self.failure.borrow_mut().get_or_insert(failure);
        }
        Ok(())
    }

    /// Returns the members that have entered, with their contributions.
    pub(super) fn present(&self) -> Ref<'_, BTreeMap<K, B>> {
        self.present.borrow()
    }

    pub(super) fn is_over(&self) -> bool {
        self.outcome.borrow().is_some()
    }

    /// Completes the barrier with a result for its members. If a member was lost or has reported a failure,
    /// the result is that failure. A loss takes precedence, since it may have caused other failures.
    pub(super) fn end(&self, lost: Option<Failure>, result: T) {
        let failure = lost.or_else(|| self.failure.borrow().clone());
        self.outcome.replace(Some(failure.map_or(Ok(result), Err)));
    }

    /// Waits for the result, for a member that has entered; `changed` is woken then.
    pub(super) async fn outcome(&self, changed: &Condition) -> Result<T, Failure> {
        loop {
            let outcome = self.outcome.borrow().clone();
            if let Some(outcome) = outcome {
                self.received.set(self.received.get() + 1);
                return outcome;
            }
            changed.wait().await;
        }
    }

    /// True if all members that have entered have received the result.
    pub(super) fn all_have_result(&self) -> bool {
        self.received.get() == self.present.borrow().len()
    }
}

/// Replaces nodes in the text of a failure by the names that members know. Each node is replaced once, so
/// that the text does not grow if names contain names of nodes. Text that is too long is truncated.
pub(super) fn with_names(failure: Failure, names: &BTreeMap<NodeId, String>) -> Failure {
    const NODE: &str = "node ";
    let (mut text, mut rest) = (String::new(), failure.text.as_str());
    while text.len() <= TEXT_BYTES_MAX
        && let Some(at) = rest.find(NODE)
    {
        let (before, named) = rest.split_at(at);
        let number = &named[NODE.len()..];
        let number = &number[..number.find(|digit: char| !digit.is_ascii_hexdigit()).unwrap_or(number.len())];
        let name = u64::from_str_radix(number, 16).ok().and_then(|number| names.get(&NodeId(number)));
        let (word, name) = match name {
            Some(name) => (&named[..NODE.len() + number.len()], name.as_str()),
            None => (NODE, NODE),
        };
        text.extend([before, name]);
        rest = &named[word.len()..];
    }
    text.push_str(rest);
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push_str(" ...");
    }
    Failure { text, ..failure }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_show_names_of_nodes_and_have_a_limited_length() {
        let names = BTreeMap::from([(NodeId(0x1f), "node 2".into()), (NodeId(2), "node 1f".repeat(100))]);
        let with_names = |text: &str| with_names(Failure::invalid(text), &names).text;
        assert_eq!(with_names("node 1f and node 3, a node"), "node 2 and node 3, a node");
        for text in ["node 2 ".repeat(9000), "node é".repeat(9000), "node".repeat(9000)] {
            let named = with_names(&text);
            assert!(named.len() <= TEXT_BYTES_MAX + 4 && named.ends_with(" ..."), "{}", named.len());
        }
    }
}
