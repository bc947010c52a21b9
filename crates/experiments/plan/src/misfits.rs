//! All that is wrong with a plan: reading goes on after each mistake, so that all are told at once.

use std::cell::RefCell;

use description::Misfit;

/// The mistakes found so far.
#[derive(Default)]
pub struct Misfits(RefCell<Vec<Misfit>>);

impl Misfits {
    pub(crate) fn add(&self, misfit: Misfit) {
        self.0.borrow_mut().push(misfit);
    }

    /// What came out, if nothing was wrong with it.
    pub(crate) fn note<T>(&self, outcome: Result<T, Misfit>) -> Option<T> {
        outcome.map_err(|misfit| self.add(misfit)).ok()
    }

    /// What came out; if something was wrong with it, `instead`, with which reading goes on.
    pub(crate) fn note_or<T>(&self, outcome: Result<T, Misfit>, instead: T) -> T {
        self.note(outcome).unwrap_or(instead)
    }

    /// What came out, as [`note`](Self::note) has it; but if something is wrong with the same place already, that is
    /// enough. What is checked for every combination would be said as often.
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

    /// The value, if nothing was wrong; or else all mistakes, in the order in which they stand there.
    pub(crate) fn judge<T>(&self, value: T) -> Result<T, Vec<Misfit>> {
        let mut found = self.0.take();
        found.sort_by_key(|misfit| misfit.span.start);
        if found.is_empty() { Ok(value) } else { Err(found) }
    }
}
