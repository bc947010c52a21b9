//! A set of bytes of a block: a small sorted list of runs.

use std::ops::Range;

/// A set of byte offsets within a block, as disjoint runs in increasing order that do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByteSet {
    runs: Vec<Range<u64>>,
}

impl ByteSet {
    /// The first `bytes` bytes.
    pub fn whole(bytes: u64) -> Self {
        let mut set = ByteSet::default();
        set.insert(0..bytes);
        set
    }

    /// Adds a range.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        // All runs that overlap or touch the range become one with it.
        let first = self.runs.partition_point(|run| run.end < range.start);
        let last = self.runs.partition_point(|run| run.start <= range.end);
        let start = self.runs.get(first).map_or(range.start, |run| run.start.min(range.start));
        let end = if last > first { self.runs[last - 1].end.max(range.end) } else { range.end };
        if last == first + 1 {
            self.runs[first] = start.min(range.start)..end;
        } else if last == first {
            self.runs.insert(first, range);
        } else {
            self.runs.splice(first..last, std::iter::once(start..end));
        }
    }

    /// True if the set has all bytes of a range.
    pub fn contains(&self, range: &Range<u64>) -> bool {
        let at = self.runs.partition_point(|run| run.end < range.end);
        range.is_empty() || self.runs.get(at).is_some_and(|run| run.start <= range.start)
    }

    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// From its first byte to its last, if it has any.
    pub fn span(&self) -> Option<Range<u64>> {
        Some(self.runs.first()?.start..self.runs.last()?.end)
    }

    /// The first byte of the set from `from` on, if it has any.
    pub fn first_from(&self, from: u64) -> Option<u64> {
        let next = self.runs.partition_point(|run| run.end <= from);
        self.runs.get(next).map(|run| run.start.max(from))
    }

    /// Whether the set is one run that ends at `end`.
    pub fn is_tail_of(&self, end: u64) -> bool {
        matches!(&*self.runs, [run] if run.end == end)
    }

    /// Whether the set has any byte of `range`.
    pub fn overlaps(&self, range: &Range<u64>) -> bool {
        let first = self.runs.partition_point(|run| run.end <= range.start);
        !range.is_empty() && self.runs.get(first).is_some_and(|run| run.start < range.end)
    }

    /// Takes out the bytes of `range`.
    pub fn remove(&mut self, range: &Range<u64>) {
        if !self.overlaps(range) {
            return;
        }
        let first = self.runs.partition_point(|run| run.end <= range.start);
        let last = self.runs.partition_point(|run| run.start < range.end);
        let (before, after) = (self.runs[first].start..range.start, range.end..self.runs[last - 1].end);
        let left = [before, after].into_iter().filter(|run| !run.is_empty());
        self.runs.splice(first..last, left);
    }

    /// Takes out what is not below `end`.
    pub fn cut(&mut self, end: u64) {
        self.runs.retain(|run| run.start < end);
        if let Some(last) = self.runs.last_mut() {
            last.end = last.end.min(end);
        }
    }

    /// The bytes of the set as ranges, in ascending order; no two of them touch.
    pub fn runs(&self) -> &[Range<u64>] {
        &self.runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn touching_runs_become_one() {
        let mut set = ByteSet::default();
        for start in [8, 0, 24, 16] {
            set.insert(start..start + 8);
        }
        assert_eq!(set, ByteSet::whole(32));
    }

    proptest! {
        #[test]
        fn a_set_holds_what_was_put_in_and_nothing_else(ranges: Vec<(u8, u8)>, asked: (u8, u8)) {
            let (mut set, mut bits) = (ByteSet::default(), [false; 512]);
            for (start, bytes) in ranges {
                let range = u64::from(start)..u64::from(start) + u64::from(bytes);
                bits[range.start as usize..range.end as usize].fill(true);
                set.insert(range);
            }
            let asked = u64::from(asked.0)..u64::from(asked.0) + u64::from(asked.1);
            let all = bits[asked.start as usize..asked.end as usize].iter().all(|&bit| bit);
            prop_assert_eq!(set.contains(&asked), all);
            let counted: u64 = set.runs().iter().map(|run| run.end - run.start).sum();
            prop_assert_eq!(counted as usize, bits.iter().filter(|&&bit| bit).count());
            let any = bits[asked.start as usize..asked.end as usize].iter().any(|&bit| bit);
            prop_assert_eq!(set.overlaps(&asked), any);
            let mut less = set.clone();
            less.remove(&asked);
            let in_less = |byte: u64| less.contains(&(byte..byte + 1));
            prop_assert!((0..512).all(|byte| in_less(byte) == (bits[byte as usize] && !asked.contains(&byte))));
            prop_assert!(less.runs().windows(2).all(|pair| pair[0].end < pair[1].start), "{:?}", less);
            let mut cut = set.clone();
            cut.cut(asked.start);
            let counted: u64 = cut.runs().iter().map(|run| run.end - run.start).sum();
            prop_assert_eq!(counted as usize, bits[..asked.start as usize].iter().filter(|&&bit| bit).count());
            let apart = set.runs().windows(2).all(|pair| pair[0].end < pair[1].start);
            prop_assert!(apart, "{:?}", set);
        }
    }
}
