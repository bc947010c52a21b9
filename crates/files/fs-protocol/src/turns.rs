//! Turns at things by key: one task at a time has the turn at each.

use std::cell::RefCell;
use std::collections::BTreeSet;

use machine::Condition;

/// Things that are changed by one task after the other.
pub struct Turns<K> {
    taken: RefCell<BTreeSet<K>>,
    returned: Condition,
}

/// The turn at a thing, until it is dropped.
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
    /// Waits for the turn at a thing.
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
