//! What went on at the same time: how long different threads were in chosen states at once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::timeline::{Mark, Timeline};
use crate::totals::part_within;

/// The most that can be chosen at once: what is kept grows with the subsets of it.
pub const CHOSEN_MAX: usize = 8;

/// Spans that are looked at together: those of some states, of some threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanChoice {
    /// The indices of the states; none for all.
    pub states: Option<BTreeSet<u32>>,
    /// The indices of the threads; none for all.
    pub threads: Option<BTreeSet<u32>>,
}

impl SpanChoice {
    fn contains(&self, state: u32, thread: u32) -> bool {
        let is_in = |set: &Option<BTreeSet<u32>>, one| set.as_ref().is_none_or(|set| set.contains(&one));
        is_in(&self.states, state) && is_in(&self.threads, thread)
    }
}

impl Timeline {
    /// For how long, in nanoseconds, each of what is chosen was on in a thread of its own: with two states, the time in
    /// which one thread was in the one while another was in the other. A state that is within another in the same
    /// thread does not overlap it; the same state twice overlaps while two threads are in it. With one chosen, the time
    /// in which any thread was in it.
    ///
    /// Only what is within the range of times, if one is given, counts. 0 if nothing or more than [`CHOSEN_MAX`] is
    /// chosen.
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

    /// When spans that are chosen begin and end: time, thread, which of the chosen, and whether it begins.
    fn steps(&self, chosen: &[SpanChoice], within: &Range<u64>) -> Vec<(u64, u32, u8, bool)> {
        let mut steps = Vec::new();
        for span in self.spans.iter().filter(|span| span.mark != Mark::NoBegin) {
            let Some((begin, end)) = part_within(span.begin_ns, span.end_ns, within) else { continue };
            for (which, _) in (0..).zip(chosen).filter(|(_, one)| one.contains(span.state, span.thread)) {
                // Without duration it is no part of any overlap, and would end before it begins.
                if begin < end {
                    steps.extend([(begin, span.thread, which, true), (end, span.thread, which, false)]);
                }
            }
        }
        steps
    }
}

/// The chosen states that a thread is in, as a set of bits.
fn on(spans: &[u32; CHOSEN_MAX]) -> usize {
    (0..CHOSEN_MAX).filter(|which| spans[*which] > 0).map(|which| 1 << which).sum()
}

/// How many threads are in any of each subset of the chosen.
struct Concurrency(Vec<usize>);

impl Concurrency {
    fn new(chosen: usize) -> Self {
        Concurrency(vec![0; 1 << chosen])
    }

    /// A thread is no longer in what it was, but in this.
    fn changes(&mut self, before: usize, after: usize) {
        if before != after {
            for (subset, threads) in self.0.iter_mut().enumerate() {
                *threads -= usize::from(subset & before != 0);
                *threads += usize::from(subset & after != 0);
            }
        }
    }

    /// Whether each of the chosen can be given a thread of its own that is in it: by Hall's theorem, if each subset has
    /// at least as many threads as members.
    fn has_all(&self) -> bool {
        let mut subsets = self.0.iter().enumerate();
        subsets.all(|(subset, threads)| *threads >= subset.count_ones() as usize)
    }
}
