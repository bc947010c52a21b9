//! The first of several failures.

use std::cell::RefCell;

/// Keeps the first failure that is noted, until it is taken: then the next one is the first.
pub struct FirstFailure<E>(RefCell<Option<E>>);

impl<E> Default for FirstFailure<E> {
    fn default() -> Self {
        FirstFailure(RefCell::new(None))
    }
}

impl<E> FirstFailure<E> {
    /// No failure.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps the failure of `outcome`, if it is one and there is none yet.
    pub fn note<T>(&self, outcome: Result<T, E>) {
        if let Err(failure) = outcome {
            self.0.borrow_mut().get_or_insert(failure);
        }
    }

    /// Whether there is one.
    pub fn is_some(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Takes the failure out, if there is one, so that it is reported once.
    pub fn take(&self) -> Result<(), E> {
        self.0.take().map_or(Ok(()), Err)
    }
}

impl<E: Clone> FirstFailure<E> {
    /// The failure, if there is one, which stays for others.
    pub fn check(&self) -> Result<(), E> {
        self.0.borrow().clone().map_or(Ok(()), Err)
    }
}
