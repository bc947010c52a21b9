//! A meeting of clients at this I/O node: each brings something, and all are told the same when it is over.
//!
//! Who has to come, and what it means that a member is lost, is up to those who meet: the members of a job
//! (`rosters.rs`) or of a team (`teams.rs`).

use std::cell::{Cell, Ref, RefCell};
use std::collections::BTreeMap;

use machine::{Condition, NodeId};

use crate::error::Failure;
use crate::protocol::Reply;

/// The most bytes of the text of a member's failure: all the others are told of it.
const TEXT_BYTES_MAX: usize = 1024;

/// What a client is answered.
pub(super) type Served = Result<Reply, Box<Failure>>;

/// A meeting of members that are known by a `K` and bring a `B` each; all are told a `T`.
pub(super) struct Meeting<K, B, T> {
    /// The members that have come, with what they bring.
    present: RefCell<BTreeMap<K, B>>,
    /// The first failure that any of them brings.
    failure: RefCell<Option<Failure>>,
    /// What all are told, once the meeting is over.
    outcome: RefCell<Option<Result<T, Failure>>>,
    /// How many have been told.
    told: Cell<usize>,
}

impl<K, B, T> Default for Meeting<K, B, T> {
    fn default() -> Self {
        Meeting {
            present: RefCell::default(),
            failure: RefCell::default(),
            outcome: RefCell::default(),
            told: Cell::new(0),
        }
    }
}

impl<K: Ord, B, T: Clone> Meeting<K, B, T> {
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

    /// Ends it: all are told `told`, unless a member was lost or has brought a failure. The loss takes precedence, as
    /// other failures may come of it.
    pub(super) fn end(&self, lost: Option<Failure>, told: T) {
        let failure = lost.or_else(|| self.failure.borrow().clone());
        self.outcome.replace(Some(failure.map_or(Ok(told), Err)));
    }

    /// Waits until it is over, for a member that has come; `changed` is woken then.
    pub(super) async fn outcome(&self, changed: &Condition) -> Result<T, Failure> {
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

/// A failure in whose text nodes have the names that members know them by. Each node is replaced once, so that the text
/// does not grow with names which name others, and it is cut where it is too long.
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
    fn nodes_have_their_names_once_and_no_text_grows_without_end() {
        let names = BTreeMap::from([(NodeId(0x1f), "node 2".into()), (NodeId(2), "node 1f".repeat(100))]);
        let with_names = |text: &str| with_names(Failure::invalid(text), &names).text;
        assert_eq!(with_names("node 1f and node 3, a node"), "node 2 and node 3, a node");
        for text in ["node 2 ".repeat(9000), "node é".repeat(9000), "node".repeat(9000)] {
            let told = with_names(&text);
            assert!(told.len() <= TEXT_BYTES_MAX + 4 && told.ends_with(" ..."), "{}", told.len());
        }
    }
}
