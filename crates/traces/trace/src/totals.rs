//! Totals of states: the number of spans of a state, and the sum and distribution of their durations.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::timeline::{Mark, Timeline};

/// Grouping of the rows of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Each state of each thread.
    Thread,
    /// Each state of each process, over all its threads.
    Process,
    /// Each state, over all threads.
    State,
}

/// Number and durations of the spans of a state in a group of threads.
///
/// A span nested in another span of the same state also counts. Unfinished spans count up to their last known time;
/// spans without a begin do not count.
#[derive(Clone, Debug, PartialEq)]
pub struct StateTotals {
    /// Index of the process, if grouped by process or thread.
    pub process: Option<u32>,
    /// Index of the thread, if grouped by thread.
    pub thread: Option<u32>,
    /// Index of the state.
    pub state: u32,
    /// Number of spans.
    pub count: u64,
    /// Sum of their durations in nanoseconds, at most 2^64 - 1.
    pub total_ns: u64,
    /// Mean duration in nanoseconds, rounded down.
    pub mean_ns: u64,
    /// Median duration in nanoseconds. For an even number of spans, the mean of the two middle durations, rounded down.
    pub median_ns: u64,
    /// 99th percentile in nanoseconds: the least duration that 99 % of the spans do not exceed.
    pub p99_ns: u64,
    /// Maximum duration in nanoseconds.
    pub max_ns: u64,
    /// Total as a fraction of the time of all threads in the group. The time of a thread extends from the first to the
    /// last time of its file. Nested states can make it exceed 1.
    pub share: f64,
}

impl Timeline {
    /// Returns the totals of each state in each group. In a group, the states with the longest total come first. Counts
    /// only spans within the given range of times, if any, and clips spans that extend beyond the range.
    pub fn totals(&self, grouping: Grouping, within_ns: Option<Range<u64>>) -> Vec<StateTotals> {
        let groups: Vec<(Option<u32>, Option<u32>, Range<usize>)> = match grouping {
            Grouping::State => vec![(None, None, 0..self.threads.len())],
            Grouping::Process => {
                let group = |(index, process): (u32, &crate::TracedProcess)| {
                    (Some(index), None, process.threads.clone())
                };
                (0..).zip(&self.processes).map(group).collect()
            }
            Grouping::Thread => {
                let group = |(index, thread): (u32, &crate::TracedThread)| {
                    (Some(thread.process), Some(index), index as usize..index as usize + 1)
                };
                (0..).zip(&self.threads).map(group).collect()
            }
        };
        let lengths = self.lengths_of_files(within_ns.as_ref());
        let within = within_ns.unwrap_or(0..u64::MAX);
        let mut all = Vec::new();
        for (process, thread, threads) in groups {
            let known: f64 = threads.clone().map(|thread| lengths[self.file_of(thread)] as f64).sum();
            let mut totals: Vec<StateTotals> = Vec::new();
            for (state, durations) in self.durations(threads, &within) {
                totals.push(StateTotals { process, thread, state, ..of_durations(durations, known) });
            }
            totals.sort_by_key(|totals| std::cmp::Reverse(totals.total_ns));
            all.extend(totals);
        }
        all
    }

    fn file_of(&self, thread: usize) -> usize {
        self.processes[self.threads[thread].process as usize].file as usize
    }

    /// Returns the length of each file, from its first to its last span or count, clipped to a range if given.
    fn lengths_of_files(&self, within_ns: Option<&Range<u64>>) -> Vec<u64> {
        let mut extents = vec![(u64::MAX, 0); self.files.len()];
        for (index, thread) in self.threads.iter().enumerate() {
            let spans = thread.spans.clone();
            let (first, last) = &mut extents[self.file_of(index)];
            *first = self.spans.begin_ns[spans.clone()].first().map_or(*first, |begin| *begin.min(first));
            *last = self.spans.end_ns[spans].iter().fold(*last, |last, end| last.max(*end));
        }
        for count in &self.counts {
            let (first, last) = &mut extents[self.file_of(count.thread as usize)];
            (*first, *last) = (count.time_ns.min(*first), count.time_ns.max(*last));
        }
        let part = |(first, last): (u64, u64)| match within_ns {
            Some(within) => last.min(within.end).saturating_sub(first.max(within.start)),
            None => last.saturating_sub(first),
        };
        extents.into_iter().map(part).collect()
    }

    /// Returns the durations of all spans of some threads within a range, by state.
    fn durations(&self, threads: Range<usize>, within: &Range<u64>) -> BTreeMap<u32, Vec<u64>> {
        let mut durations: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        let spans = threads.flat_map(|thread| self.threads[thread].spans.clone());
        for span in spans.map(|span| self.spans.get(span)).filter(|span| span.mark != Mark::NoBegin) {
            if let Some((begin, end)) = part_within(span.begin_ns, span.end_ns, within) {
                durations.entry(span.state).or_default().push(end - begin);
            }
        }
        durations
    }
}

/// Returns the begin and end of the part of a span within a range; `None` if no part is within.
pub(crate) fn part_within(begin: u64, end: u64, within: &Range<u64>) -> Option<(u64, u64)> {
    let begins_within = within.contains(&begin);
    let reaches_in = begin < within.start && within.start < end;
    (begins_within || reaches_in).then(|| (begin.max(within.start), end.min(within.end)))
}

/// Returns the number, sum and distribution of durations. `known_ns` is the time of all threads in the group.
fn of_durations(mut durations: Vec<u64>, known_ns: f64) -> StateTotals {
    durations.sort_unstable();
    let count = durations.len();
    let total: u128 = durations.iter().map(|duration| u128::from(*duration)).sum();
    let middle = (durations[(count - 1) / 2], durations[count / 2]);
    StateTotals {
        process: None,
        thread: None,
        state: 0,
        count: count as u64,
        total_ns: total.try_into().unwrap_or(u64::MAX),
        mean_ns: (total / count as u128) as u64,
        median_ns: middle.0.midpoint(middle.1),
        p99_ns: durations[(count * 99).div_ceil(100) - 1],
        max_ns: durations[count - 1],
        share: if known_ns > 0.0 { total as f64 / known_ns } else { 0.0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_durations_equal_hand_computed_values() {
        let of = |durations: &[u64]| of_durations(durations.to_vec(), 1000.0);
        let hundred: Vec<u64> = (1..=100).rev().collect();
        let totals = of(&hundred);
        assert_eq!((totals.count, totals.total_ns, totals.mean_ns), (100, 5050, 50));
        assert_eq!((totals.median_ns, totals.p99_ns, totals.max_ns), (50, 99, 100));
        assert_eq!(totals.share, 5.05);
        assert_eq!((of(&[7]).median_ns, of(&[7]).p99_ns), (7, 7));
        assert_eq!((of(&[1, 9, 4]).median_ns, of(&[9, 4]).p99_ns), (4, 9));
        assert_eq!(of(&[u64::MAX; 3]).total_ns, u64::MAX);
        assert_eq!(of(&[u64::MAX; 3]).median_ns, u64::MAX);
    }

    #[test]
    fn a_span_is_clipped_to_a_range_at_both_ends() {
        assert_eq!(part_within(10, 20, &(0..100)), Some((10, 20)));
        assert_eq!(part_within(10, 20, &(15..18)), Some((15, 18)));
        assert_eq!(part_within(10, 20, &(20..30)), None);
        assert_eq!(part_within(10, 20, &(0..10)), None);
        assert_eq!(part_within(10, 10, &(10..11)), Some((10, 10)));
        assert_eq!(part_within(10, 10, &(0..10)), None);
    }
}
