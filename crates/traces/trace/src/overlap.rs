//! Overlap: the time in which different threads were in chosen states simultaneously.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::timeline::{Mark, Timeline};
use crate::totals::part_within;

/// Maximum number of simultaneous choices. Memory grows with the number of subsets of the choices.
pub const CHOSEN_MAX: usize = 8;

/// Choice of spans by state and thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanChoice {
    /// Indices of the states; `None` for all.
    pub states: Option<BTreeSet<u32>>,
    /// Indices of the threads; `None` for all.
    pub threads: Option<BTreeSet<u32>>,
}

impl SpanChoice {
    fn contains(&self, state: u32, thread: u32) -> bool {
        let is_in = |set: &Option<BTreeSet<u32>>, one| set.as_ref().is_none_or(|set| set.contains(&one));
        is_in(&self.states, state) && is_in(&self.threads, thread)
    }
}

impl Timeline {
    /// Returns the time in nanoseconds in which distinct threads matched all choices. For two states: the time in which
    /// one thread was in the first state and another thread in the second. A state does not overlap a state that
    /// contains it in the same thread. If both states are the same, they overlap while two threads are in this state.
    /// For a single choice: the time in which any thread matched it.
    ///
    /// Counts only time within the given range, if any. Returns 0 for no choices or more than [`CHOSEN_MAX`].
    pub fn overlap(&self, chosen: &[SpanChoice], within_ns: Option<Range<u64>>) -> u64 {
        if chosen.is_empty() || chosen.len() > CHOSEN_MAX {
            return 0;
        }
        let mut steps = self.steps(chosen, &within_ns.unwrap_or(0..u64::MAX));
        steps.sort_unstable();
        let mut threads: BTreeMap<u32, [u32; CHOSEN_MAX]> = BTreeMap::new();
        let mut now = Concurrency::new(chosen.len());
        let mut overlap = 0;
        let mut since = 0;
        for (time, thread, which, begins) in steps {
            if now.has_all() {
                overlap += time - since;
            }
            since = time;
            let spans = threads.entry(thread).or_default();
            let before = on(spans);
            let count = &mut spans[usize::from(which)];
            *count = if begins { *count + 1 } else { *count - 1 };
            now.changes(before, on(spans));
        }
        overlap
    }

    /// Returns the begins and ends of chosen spans as (time, thread, index of the choice, true for a begin).
    fn steps(&self, chosen: &[SpanChoice], within: &Range<u64>) -> Vec<(u64, u32, u8, bool)> {
        let mut steps = Vec::new();
        for span in self.spans.iter().filter(|span| span.mark != Mark::NoBegin) {
            let Some((begin, end)) = part_within(span.begin_ns, span.end_ns, within) else { continue };
            for (which, _) in (0..).zip(chosen).filter(|(_, one)| one.contains(span.state, span.thread)) {
                // A span without duration overlaps no other, and its end would be sorted before its begin.
                if begin < end {
                    steps.extend([(begin, span.thread, which, true), (end, span.thread, which, false)]);
                }
            }
        }
        steps
    }
}

/// Returns the choices that a thread matches, as a set of bits.
fn on(spans: &[u32; CHOSEN_MAX]) -> usize {
    (0..CHOSEN_MAX).filter(|which| spans[*which] > 0).map(|which| 1 << which).sum()
}

/// For each subset of the choices, the number of threads that match any choice in the subset.
struct Concurrency(Vec<usize>);

impl Concurrency {
    fn new(chosen: usize) -> Self {
        Concurrency(vec![0; 1 << chosen])
    }

    /// Replaces the set of choices that a thread matches.
    fn changes(&mut self, before: usize, after: usize) {
        if before != after {
            for (subset, threads) in self.0.iter_mut().enumerate() {
                *threads -= usize::from(subset & before != 0);
                *threads += usize::from(subset & after != 0);
            }
        }
    }

    /// Returns true if distinct threads can match all choices: by Hall's theorem, if each subset has at least as many
    /// threads as members.
    fn has_all(&self) -> bool {
        let mut subsets = self.0.iter().enumerate();
        subsets.all(|(subset, threads)| *threads >= subset.count_ones() as usize)
    }
}
