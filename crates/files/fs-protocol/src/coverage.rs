//! A set of bytes of a block, with one bit for each byte. For blocks with many small listed pieces, bits take less time
//! and memory than the ranges of a `RangeSet`.

use std::ops::Range;

/// Number of bits of a word.
const BITS: u64 = u64::BITS as u64;

/// A set of byte offsets within a block of a known length.
#[derive(Clone, Debug)]
pub struct Coverage {
    words: Vec<u64>,
}

impl Coverage {
    /// Returns an empty set for a block of `bytes` bytes.
    pub fn none_of(bytes: u64) -> Self {
        Coverage { words: vec![0; bytes.div_ceil(BITS) as usize] }
    }

    /// Adds a range of bytes. Returns true if the set contained any byte of the range before.
    pub fn insert(&mut self, range: Range<u64>) -> bool {
        let (mut start, mut any) = (range.start, false);
        while start < range.end {
            let (word, first) = ((start / BITS) as usize, start % BITS);
            let count = (BITS - first).min(range.end - start);
            let mask = (u64::MAX >> (BITS - count)) << first;
            any |= self.words[word] & mask != 0;
            self.words[word] |= mask;
            start += count;
        }
        any
    }

    /// Returns the bytes of the set as ranges in order, which do not touch each other.
    pub fn runs(&self) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for (index, &word) in (0..).zip(&self.words) {
            let (mut rest, mut at) = (word, index * BITS);
            while rest != 0 {
                let gap = u64::from(rest.trailing_zeros());
                rest >>= gap;
                let ones = u64::from(rest.trailing_ones());
                rest = rest.checked_shr(ones as u32).unwrap_or(0);
                at += gap;
                match runs.last_mut().filter(|run| run.end == at) {
                    Some(run) => run.end += ones,
                    None => runs.push(at..at + ones),
                }
                at += ones;
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::RangeSet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_coverage_equals_a_list_of_ranges(ranges in prop::collection::vec((0u64..300, 0u64..200), 0..12)) {
            let (mut coverage, mut list) = (Coverage::none_of(500), RangeSet::default());
            for (start, bytes) in ranges {
                let range = start..start + bytes;
                prop_assert_eq!(coverage.insert(range.clone()), list.overlaps(&range));
                list.insert(range);
                prop_assert_eq!(coverage.runs(), list.ranges().collect::<Vec<_>>());
            }
        }
    }
}
