//! All mistakes in a plan. Reading continues after each mistake, so that one error reports them all.

use std::cell::RefCell;

use description::Misfit;

/// Mistakes found so far.
#[derive(Default)]
pub struct PlanErrors(RefCell<Vec<Misfit>>);

impl PlanErrors {
    pub(crate) fn add(&self, misfit: Misfit) {
        self.0.borrow_mut().push(misfit);
    }

    /// Returns the outcome, or records its mistake and returns `None`.
    pub(crate) fn note<T>(&self, outcome: Result<T, Misfit>) -> Option<T> {
        outcome.map_err(|misfit| self.add(misfit)).ok()
    }

    /// Returns the outcome, or records its mistake and returns `instead`, with which reading continues.
    pub(crate) fn note_or<T>(&self, outcome: Result<T, Misfit>, instead: T) -> T {
        self.note(outcome).unwrap_or(instead)
    }

    /// Returns the outcome as [`note`](Self::note) does, but records at most one mistake for each place. A check of
    /// every combination would otherwise repeat its mistake.
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

    /// Returns the value if there were no mistakes, and otherwise all mistakes in the order of their places.
    pub(crate) fn judge<T>(&self, value: T) -> Result<T, Vec<Misfit>> {
        let mut found = self.0.take();
        found.sort_by_key(|misfit| misfit.span.start);
        if found.is_empty() { Ok(value) } else { Err(found) }
    }
}
