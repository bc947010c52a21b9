//! How two traces differ: which states took longer, or came more often.

use std::collections::BTreeMap;

use crate::timeline::{State, Timeline};
use crate::totals::{Grouping, StateTotals};

/// A state in two traces, all threads together.
#[derive(Clone, Debug, PartialEq)]
pub struct StateChange {
    /// The state.
    pub state: State,
    /// How it was in the first trace; none if it is not there.
    pub before: Option<StateTotals>,
    /// How it is in the second; none if it is not there.
    pub after: Option<StateTotals>,
}

impl StateChange {
    /// By how much its total grew, in nanoseconds.
    pub fn growth_ns(&self) -> i128 {
        let total =
            |totals: &Option<StateTotals>| totals.as_ref().map_or(0, |totals| i128::from(totals.total_ns));
        total(&self.after) - total(&self.before)
    }
}

impl Timeline {
    /// How the states of this trace differ from those of `after`, by name and category: what changed most first.
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
