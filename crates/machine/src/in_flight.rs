//! Operations in flight: counted by guards, so that the count is right however an operation ends.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

use crate::condition::Condition;

/// A count of the operations that are in flight, on which others can wait. Cloning gives another handle on the same.
///
/// With each operation a bar, it is a gate: open as long as there is none.
#[derive(Clone, Default)]
pub struct InFlight(Rc<Inner>);

#[derive(Default)]
struct Inner {
    /// How many have been begun.
    begun: Cell<u64>,
    /// Which of these have not ended.
    running: RefCell<BTreeSet<u64>>,
    fell: Condition,
}

impl InFlight {
    /// No operations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins an operation. It is in flight until what this gives is dropped.
    pub fn begin(&self) -> OperationInFlight {
        let number = self.0.begun.get() + 1;
        self.0.begun.set(number);
        self.0.running.borrow_mut().insert(number);
        OperationInFlight { all: self.0.clone(), number }
    }

    /// The number of operations in flight.
    pub fn count(&self) -> usize {
        self.0.running.borrow().len()
    }

    /// Whether none is in flight.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Waits until none is in flight: not at all if none is now.
    pub async fn none(&self) {
        while !self.is_empty() {
            self.0.fell.wait().await;
        }
    }

    /// Waits until those that are in flight now have ended, whatever is begun meanwhile.
    pub async fn begun_before(&self) {
        let last = self.0.begun.get();
        while self.0.running.borrow().first().is_some_and(|&first| first <= last) {
            self.0.fell.wait().await;
        }
    }

    /// Waits until one of them ends.
    pub async fn next_end(&self) {
        self.0.fell.wait().await;
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InFlight").field(&self.count()).finish()
    }
}

/// An operation in flight. Dropping it, when and however that happens, ends it.
#[must_use = "dropped at once, the operation ends at once"]
pub struct OperationInFlight {
    all: Rc<Inner>,
    number: u64,
}

impl Drop for OperationInFlight {
    fn drop(&mut self) {
        self.all.running.borrow_mut().remove(&self.number);
        self.all.fell.wake_all();
    }
}
