//! The first of several failures.

use std::cell::RefCell;

/// Keeps the first failure that is noted, until it is taken: then the next one is the first.
pub(crate) struct FirstFailure<E>(RefCell<Option<E>>);

impl<E> Default for FirstFailure<E> {
    fn default() -> Self {
        FirstFailure(RefCell::new(None))
    }
}

impl<E> FirstFailure<E> {
    /// No failure.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Keeps the failure of `outcome`, if it is one and there is none yet.
    pub(crate) fn note<T>(&self, outcome: Result<T, E>) {
        if let Err(failure) = outcome {
            self.0.borrow_mut().get_or_insert(failure);
        }
    }

    /// Whether there is one.
    pub(crate) fn is_some(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Takes the failure out, if there is one, so that it is reported once.
    pub(crate) fn take(&self) -> Result<(), E> {
        self.0.take().map_or(Ok(()), Err)
    }
}
