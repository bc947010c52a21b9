//! First of several failures.

use std::cell::RefCell;

/// Keeps the first recorded failure until it is taken. Then it keeps the next failure.
pub(crate) struct FirstFailure<E>(RefCell<Option<E>>);

impl<E> Default for FirstFailure<E> {
    fn default() -> Self {
        FirstFailure(RefCell::new(None))
    }
}

impl<E> FirstFailure<E> {
    /// Returns a `FirstFailure` without a failure.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Records the failure of `outcome`, if any, unless one is recorded already.
    pub(crate) fn note<T>(&self, outcome: Result<T, E>) {
        if let Err(failure) = outcome {
            self.0.borrow_mut().get_or_insert(failure);
        }
    }

    /// Returns true if a failure is recorded.
    pub(crate) fn is_some(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Takes the recorded failure, if any, so that it is reported once.
    pub(crate) fn take(&self) -> Result<(), E> {
        self.0.take().map_or(Ok(()), Err)
    }
}
