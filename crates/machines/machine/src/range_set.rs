//! Set of offsets as ranges, such as the valid bytes of a block, written bytes of a file, or lost bytes of a stripe.
//!
//! A tree stores the ranges by their starts, so that an insertion takes time logarithmic in the number of ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// Set of offsets, stored as ranges in ascending order that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    /// Range ends by range start.
    ends: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// Adds a range.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let Range { mut start, mut end } = range;
        while let Some((first, last)) = self.last_before(end.saturating_add(1)).filter(|run| run.1 >= start) {
            self.ends.remove(&first);
            (start, end) = (start.min(first), end.max(last));
        }
        self.ends.insert(start, end);
    }

    /// Removes a range.
    pub fn remove(&mut self, range: &Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((start, end)) = self.last_before(range.end).filter(|run| run.1 > range.start) {
            self.ends.remove(&start);
            let left = [(start, end.min(range.start)), (start.max(range.end), end)];
            self.ends.extend(left.into_iter().filter(|(start, end)| start < end));
        }
    }

    /// Removes all offsets from `end` on.
    pub fn truncate(&mut self, end: u64) {
        self.remove(&(end..u64::MAX));
    }

    /// Returns the last range that starts before `end`.
    fn last_before(&self, end: u64) -> Option<(u64, u64)> {
        self.ends.range(..end).next_back().map(|(&start, &end)| (start, end))
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the number of ranges.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the number of offsets.
    pub fn count(&self) -> u64 {
        self.ranges().map(|range| range.end - range.start).sum()
    }

    /// Returns the ranges of the set, in ascending order; no two of them touch.
    pub fn ranges(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + '_ {
        self.ends.iter().map(|(&start, &end)| start..end)
    }

    /// Returns the range from the first offset to the last; `None` if the set is empty.
    pub fn span(&self) -> Option<Range<u64>> {
        Some(*self.ends.first_key_value()?.0..*self.ends.last_key_value()?.1)
    }

    /// Returns the parts of the set within `range`, in ascending order.
    pub fn within(&self, range: &Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let Range { start, end } = *range;
        let before = self.last_before(start).filter(|run| run.1 > start);
        let first = before.map_or(start, |(first, _)| first);
        let found = self.ends.range(first..end.max(first));
        found.map(move |(&from, &to)| from.max(start)..to.min(end)).filter(|part| !part.is_empty())
    }

    /// Returns true if the set has all offsets of a range.
    pub fn contains(&self, range: &Range<u64>) -> bool {
        range.is_empty() || self.within(range).next().as_ref() == Some(range)
    }

    /// Returns true if the set has any offset of a range.
    pub fn overlaps(&self, range: &Range<u64>) -> bool {
        self.within(range).next().is_some()
    }

    /// Splits a range into parts inside the set (true) and outside (false), in ascending order.
    pub fn split(&self, range: Range<u64>) -> Vec<(Range<u64>, bool)> {
        let mut parts = Vec::new();
        let mut at = range.start;
        for part in self.within(&range) {
            if at < part.start {
                parts.push((at..part.start, false));
            }
            at = part.end;
            parts.push((part, true));
        }
        if at < range.end {
            parts.push((at..range.end, false));
        }
        parts
    }
}

impl From<Range<u64>> for RangeSet {
    fn from(range: Range<u64>) -> Self {
        RangeSet::from_iter([range])
    }
}

impl Extend<Range<u64>> for RangeSet {
    fn extend<I: IntoIterator<Item = Range<u64>>>(&mut self, ranges: I) {
        ranges.into_iter().for_each(|range| self.insert(range));
    }
}

impl FromIterator<Range<u64>> for RangeSet {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut set = RangeSet::default();
        set.extend(ranges);
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix;

    #[test]
    fn adjacent_ranges_are_merged() {
        let set: RangeSet = [8, 0, 24, 16].map(|start| start..start + 8).into_iter().collect();
        assert_eq!(set, RangeSet::from(0..32));
    }

    /// Returns, for each of the first 200 offsets, true if one of `ranges` contains it.
    fn offsets(ranges: &[Range<u64>]) -> Vec<bool> {
        (0..200).map(|offset| ranges.iter().any(|range| range.contains(&offset))).collect()
    }

    fn check(set: &RangeSet, expected: &[bool]) {
        let ranges: Vec<Range<u64>> = set.ranges().collect();
        assert!(ranges.iter().all(|range| !range.is_empty()), "{ranges:?}");
        assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start), "{ranges:?}");
        assert_eq!(offsets(&ranges), expected);
        assert_eq!(set.count(), expected.iter().filter(|is_in| **is_in).count() as u64);
    }

    #[test]
    fn a_set_contains_inserted_ranges_until_they_are_removed() {
        for seed in 0..500 {
            let draw = |number: u64, below: u64| mix(mix(seed) ^ number) % below;
            let range = |number| draw(number, 120)..draw(number, 120) + draw(number + 50, 16);
            let ranges: Vec<Range<u64>> = (0..12).map(range).collect();
            let mut set: RangeSet = ranges.iter().cloned().collect();
            let mut expected = offsets(&ranges);
            check(&set, &expected);

            let asked = range(100);
            let is_in = &expected[asked.start as usize..asked.end as usize];
            assert_eq!(set.contains(&asked), is_in.iter().all(|is_in| *is_in), "{asked:?} in {set:?}");
            assert_eq!(set.overlaps(&asked), is_in.iter().any(|is_in| *is_in), "{asked:?} in {set:?}");
            check_parts(&set, draw(101, 50)..draw(102, 50) + 50, &expected);

            set.remove(&asked);
            expected[asked.start as usize..asked.end as usize].fill(false);
            check(&set, &expected);
            let end = draw(103, 150);
            set.truncate(end);
            expected[end as usize..].fill(false);
            check(&set, &expected);
        }
    }

    /// Asserts that the parts of a range cover it, and are alternately inside and outside the set.
    fn check_parts(set: &RangeSet, range: Range<u64>, expected: &[bool]) {
        let (mut at, mut before) = (range.start, None);
        for (part, is_in) in set.split(range.clone()) {
            assert!(part.start == at && part.end > at && before != Some(is_in), "{part:?} of {range:?}");
            assert!(part.clone().all(|offset| expected[offset as usize] == is_in), "{part:?} of {set:?}");
            (at, before) = (part.end, Some(is_in));
        }
        assert_eq!(at, range.end);
    }

    #[test]
    fn a_set_can_extend_to_the_last_offset() {
        let mut set = RangeSet::from(5..u64::MAX);
        set.insert(0..u64::MAX);
        assert_eq!((set.len(), set.span()), (1, Some(0..u64::MAX)));
        set.truncate(7);
        assert_eq!(set, RangeSet::from(0..7));
    }
}
