//! All mistakes in a plan. Reading continues after a mistake, so that a single error reports all mistakes.

use std::cell::RefCell;

use description::Misfit;

/// Mistakes found so far.
#[derive(Default)]
pub struct PlanErrors(RefCell<Vec<Misfit>>);

impl PlanErrors {
    pub(crate) fn add(&self, misfit: Misfit) {
        self.0.borrow_mut().push(misfit);
    }

    /// Returns the value, or records the mistake and returns `None`.
    pub(crate) fn note<T>(&self, outcome: Result<T, Misfit>) -> Option<T> {
        outcome.map_err(|misfit| self.add(misfit)).ok()
    }

    /// Returns the value, or records the mistake and returns `instead`, so that reading can continue.
    pub(crate) fn note_or<T>(&self, outcome: Result<T, Misfit>, instead: T) -> T {
        self.note(outcome).unwrap_or(instead)
    }

    /// Like [`note`](Self::note), but records at most one mistake for each place. Otherwise a check of every
    /// combination would repeat the same mistake.
    pub(crate) fn note_once<T>(&self, outcome: Result<T, Misfit>) -> Option<T> {
        let is_known = |misfit: &Misfit| self.0.borrow().iter().any(|other| other.span == misfit.span);
        outcome
            .map_err(|misfit| {
                if !is_known(&misfit) {
                    self.add(misfit)
                }
            })
            .ok()
    }

    /// Returns the value if there were no mistakes. Otherwise fails with all mistakes in the order of their places.
    pub(crate) fn judge<T>(&self, value: T) -> Result<T, Vec<Misfit>> {
        let mut found = self.0.take();
        found.sort_by_key(|misfit| misfit.span.start);
        if found.is_empty() { Ok(value) } else { Err(found) }
    }
}
