//! Sets of bytes of a file, as ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of bytes: ranges that do not touch each other, by where they begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByteRanges(BTreeMap<u64, u64>);

impl ByteRanges {
    /// The bytes of all of these ranges.
    pub(crate) fn of(mut ranges: Vec<Range<u64>>) -> Self {
        ranges.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::new();
        for range in ranges.into_iter().filter(|range| !range.is_empty()) {
            match merged.last_mut().filter(|last| last.end >= range.start) {
                Some(last) => last.end = last.end.max(range.end),
                None => merged.push(range),
            }
        }
        ByteRanges(merged.into_iter().map(|range| (range.start, range.end)).collect())
    }

    /// Takes in some more.
    pub(crate) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let Range { mut start, mut end } = range;
        while let Some((&first, &last)) = self.0.range(..=end).next_back().filter(|(_, last)| **last >= start)
        {
            self.0.remove(&first);
            (start, end) = (start.min(first), end.max(last));
        }
        self.0.insert(start, end);
    }

    /// The ranges of the set, in order; none of them touches another.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().map(|(&start, &end)| start..end)
    }

    /// A range cut into parts that are in the set, and parts that are not, in order.
    pub(crate) fn cut(&self, range: Range<u64>) -> Vec<(Range<u64>, bool)> {
        let mut parts = Vec::new();
        let mut at = range.start;
        let before = self.0.range(..=range.start).next_back().filter(|(_, end)| **end > range.start);
        let first = before.map_or(range.start, |(&start, _)| start);
        for (&start, &end) in self.0.range(first..range.end.max(first)) {
            let (start, end) = (start.max(range.start), end.min(range.end));
            if at < start {
                parts.push((at..start, false));
            }
            parts.push((start..end, true));
            at = end;
        }
        if at < range.end {
            parts.push((at..range.end, false));
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::mix;

    #[test]
    fn sets_are_those_of_their_bytes() {
        for seed in 0..200 {
            let draw = |number: u64, below: u64| mix(mix(seed) ^ number) % below;
            let ranges: Vec<Range<u64>> = (0..12)
                .map(|number| (draw(number, 90), draw(number + 50, 12)))
                .map(|(at, bytes)| at..at + bytes)
                .collect();
            let mut set = ByteRanges::default();
            ranges.iter().for_each(|range| set.insert(range.clone()));
            assert_eq!(set, ByteRanges::of(ranges.clone()));
            let whole = draw(100, 50)..draw(101, 50) + 50;
            let mut at = whole.start;
            let mut last = None;
            for (part, is_in) in set.cut(whole.clone()) {
                assert!(part.start == at && part.end > at && last != Some(is_in), "{part:?} of {whole:?}");
                assert!(part.clone().all(|byte| ranges.iter().any(|range| range.contains(&byte)) == is_in));
                (at, last) = (part.end, Some(is_in));
            }
            assert_eq!(at, whole.end);
        }
    }
}
