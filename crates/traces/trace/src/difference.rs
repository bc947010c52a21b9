//! Difference of two traces: changes of the total time and number of each state.

use std::collections::BTreeMap;

use crate::timeline::{State, Timeline};
use crate::totals::{Grouping, StateTotals};

/// Totals of a state in two traces, over all threads.
#[derive(Clone, Debug, PartialEq)]
pub struct StateChange {
    /// The state.
    pub state: State,
    /// Totals in the first trace; `None` if absent.
    pub before: Option<StateTotals>,
    /// Totals in the second trace; `None` if absent.
    pub after: Option<StateTotals>,
}

impl StateChange {
    /// Returns the growth of the state's total time in nanoseconds.
    pub fn growth_ns(&self) -> i128 {
        let total =
            |totals: &Option<StateTotals>| totals.as_ref().map_or(0, |totals| i128::from(totals.total_ns));
        total(&self.after) - total(&self.before)
    }
}

impl Timeline {
    /// Returns the change of each state from this trace to `after`, with the largest change of total time first. States
    /// are matched by name and category.
    pub fn changes_to(&self, after: &Timeline) -> Vec<StateChange> {
        let mut changes: BTreeMap<(String, String, bool), StateChange> = BTreeMap::new();
        for (timeline, is_after) in [(self, false), (after, true)] {
            for totals in timeline.totals(Grouping::State, None) {
                let state = &timeline.states[totals.state as usize];
                let key = (state.name.clone(), state.category.clone(), state.is_declared);
                let unseen = || StateChange { state: state.clone(), before: None, after: None };
                let change = changes.entry(key).or_insert_with(unseen);
                *(if is_after { &mut change.after } else { &mut change.before }) = Some(totals);
            }
        }
        let mut changes: Vec<StateChange> = changes.into_values().collect();
        changes.sort_by_key(|change| std::cmp::Reverse(change.growth_ns().abs()));
        changes
    }
}
