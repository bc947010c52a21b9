//! Waiting for several tasks of a machine to be done, or for the first that fails.

use std::cell::{Cell, RefCell};

use machine::Condition;

/// Tasks that are to be waited for.
pub(crate) struct Members<E> {
    left: Cell<usize>,
    outcome: RefCell<Result<(), E>>,
    changed: Condition,
}

impl<E> Members<E> {
    /// So many tasks.
    pub(crate) fn new(count: usize) -> Self {
        Members { left: Cell::new(count), outcome: RefCell::new(Ok(())), changed: Condition::new() }
    }

    /// One of them is done.
    pub(crate) fn leave(&self, outcome: Result<(), E>) {
        if let Err(error) = outcome {
            let mut first = self.outcome.borrow_mut();
            if first.is_ok() {
                *first = Err(error);
            }
        }
        self.left.set(self.left.get() - 1);
        self.changed.wake_all();
    }

    /// Waits until all are done or one has failed.
    pub(crate) async fn wait(&self) -> Result<(), E> {
        while self.left.get() > 0 && self.outcome.borrow().is_ok() {
            self.changed.wait().await;
        }
        self.outcome.replace(Ok(()))
    }
}
