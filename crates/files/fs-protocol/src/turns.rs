//! Mutual exclusion by key: one task at a time holds each key.

use std::cell::RefCell;
use std::collections::BTreeSet;

use machine::Condition;

/// A set of keyed locks.
pub struct Turns<K> {
    taken: RefCell<BTreeSet<K>>,
    returned: Condition,
}

/// Holds a key until dropped.
pub struct Turn<'a, K: Ord> {
    turns: &'a Turns<K>,
    thing: K,
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Turns { taken: RefCell::default(), returned: Condition::new() }
    }
}

impl<K: Ord + Clone> Turns<K> {
    /// Blocks until the key is free, and takes it.
    pub async fn take(&self, thing: K) -> Turn<'_, K> {
        while self.taken.borrow().contains(&thing) {
            self.returned.wait().await;
        }
        self.taken.borrow_mut().insert(thing.clone());
        Turn { turns: self, thing }
    }
}

impl<K: Ord> Drop for Turn<'_, K> {
    fn drop(&mut self) {
        self.turns.taken.borrow_mut().remove(&self.thing);
        self.turns.returned.wake_all();
    }
}
