//! Mutual exclusion by key: one task at a time holds each key.

use std::cell::RefCell;
use std::collections::BTreeSet;

use machine::Condition;

/// A set of keyed locks.
pub struct KeyedMutex<K> {
    taken: RefCell<BTreeSet<K>>,
    returned: Condition,
}

/// Guard that holds a key until it is dropped.
pub struct KeyedGuard<'a, K: Ord> {
    turns: &'a KeyedMutex<K>,
    thing: K,
}

impl<K> Default for KeyedMutex<K> {
    fn default() -> Self {
        KeyedMutex { taken: RefCell::default(), returned: Condition::new() }
    }
}

impl<K: Ord + Clone> KeyedMutex<K> {
    /// Waits until the key is free, and takes it.
    pub async fn take(&self, thing: K) -> KeyedGuard<'_, K> {
        while self.taken.borrow().contains(&thing) {
            self.returned.wait().await;
        }
        self.taken.borrow_mut().insert(thing.clone());
        KeyedGuard { turns: self, thing }
    }
}

impl<K: Ord> Drop for KeyedGuard<'_, K> {
    fn drop(&mut self) {
        self.turns.taken.borrow_mut().remove(&self.thing);
        self.turns.returned.wake_all();
    }
}
