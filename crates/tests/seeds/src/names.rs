//! Possible states of a private directory, from the operations of its only client.
//!
//! An operation that fails without a refusal may have been performed or not. A power cut of the metadata server may
//! undo the latest operations since the last flush. A flush that succeeds after that says that nothing was lost.

use std::collections::BTreeMap;

/// Files by name: the index of a history.
pub(crate) type State = BTreeMap<u64, usize>;

/// Result of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was performed.
    Done,
    /// It was refused: its conditions were not met.
    Refused,
    /// It failed: it may have been performed.
    Unknown,
}

/// Possible states of a directory.
#[derive(Clone, Debug)]
pub(crate) struct PossibleNames {
    possible: Vec<State>,
    /// States that are possible if nothing was lost that was not reported.
    reported: Vec<State>,
    /// All states since the last flush, for a power cut.
    since_flush: Vec<State>,
    /// True if this process has changes that were not flushed.
    has_unflushed: bool,
}

impl Default for PossibleNames {
    fn default() -> Self {
        let empty = vec![State::new()];
        PossibleNames {
            possible: empty.clone(),
            reported: empty.clone(),
            since_flush: empty,
            has_unflushed: false,
        }
    }
}

impl PossibleNames {
    /// Returns the possible states.
    pub(crate) fn possible(&self) -> &[State] {
        &self.possible
    }

    /// Records that an operation begins: until its [end](Self::end) it may have been performed or not. `perform`
    /// returns the state after it, or `None` if it is refused.
    pub(crate) fn begin(&mut self, perform: impl Fn(&State) -> Option<State>) -> PossibleNames {
        let before = self.clone();
        self.has_unflushed = true;
        for states in [&mut self.possible, &mut self.reported, &mut self.since_flush] {
            let after: Vec<State> = states.iter().filter_map(&perform).collect();
            add(states, after);
        }
        before
    }

    /// Records the outcome of an operation that began when the states were `before`. `is_disturbed` is true if the
    /// power may have failed since.
    ///
    /// # Errors
    /// If the outcome is impossible.
    pub(crate) fn end(
        &mut self,
        before: PossibleNames,
        outcome: Outcome,
        is_disturbed: bool,
        perform: impl Fn(&State) -> Option<State>,
    ) -> Result<(), String> {
        if outcome == Outcome::Unknown || is_disturbed {
            return Ok(());
        }
        let keep = |states: &[State]| -> Vec<State> {
            let after = states.iter().map(|state| (state, perform(state)));
            match outcome {
                Outcome::Done => after.filter_map(|(_, after)| after).collect(),
                _ => after.filter(|(_, after)| after.is_none()).map(|(state, _)| state.clone()).collect(),
            }
        };
        self.possible = keep(&before.possible);
        self.reported = keep(&before.reported);
        if self.possible.is_empty() {
            let what = if outcome == Outcome::Done { "was performed" } else { "was refused" };
            return Err(format!("the operation {what}; possible were {:?}", before.possible));
        }
        add(&mut self.since_flush, self.possible.clone());
        Ok(())
    }

    /// Records an observation.
    ///
    /// # Errors
    /// If it is impossible.
    pub(crate) fn observe(&mut self, what: &str, is_so: impl Fn(&State) -> bool) -> Result<(), String> {
        let before = self.possible.clone();
        self.possible.retain(&is_so);
        self.reported.retain(&is_so);
        if self.possible.is_empty() { Err(format!("{what}; possible were {before:?}")) } else { Ok(()) }
    }

    /// Records a power cut of the metadata server.
    pub(crate) fn power_cut(&mut self) {
        add(&mut self.possible, self.since_flush.clone());
        if !self.has_unflushed {
            self.reported.clone_from(&self.possible);
        }
    }

    /// Records that the process ended: no process gets reports of its losses.
    pub(crate) fn end_process(&mut self) {
        self.has_unflushed = false;
        self.reported.clone_from(&self.possible);
    }

    /// Records the result of a flush of all names.
    ///
    /// # Errors
    /// If it succeeded although a loss was not reported.
    pub(crate) fn flush(&mut self, is_done: bool) -> Result<(), String> {
        if !is_done {
            self.reported.clone_from(&self.possible);
            return Ok(());
        }
        if self.reported.is_empty() {
            return Err(format!("a flush succeeded after a loss; possible are {:?}", self.possible));
        }
        self.has_unflushed = false;
        self.possible.clone_from(&self.reported);
        self.since_flush.clone_from(&self.reported);
        Ok(())
    }
}

fn add(states: &mut Vec<State>, more: Vec<State>) {
    for state in more {
        if !states.contains(&state) {
            states.push(state);
        }
    }
}
