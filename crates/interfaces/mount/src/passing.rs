//! What a handle that writes from front to back has passed: pages that have been sent and that nobody is likely to read
//! soon. The page cache lets go of them, so that the same memory goes around, and the pages of other files stay.
//!
//! Of a file that is not longer than [`KEPT_BYTES`] all stay: whoever makes it may read it next.

use layout::Extent;

/// How much of what was written last stays in the page cache.
const KEPT_BYTES: u64 = 16 << 20;

/// A program's writes come in the order of the file, but for those that are under way at the same time.
const ORDER_BYTES: u64 = 8 << 20;

/// What one handle has written in the order of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passing {
    begin: u64,
    end: u64,
}

impl Passing {
    /// Notes a write. Returns what has been passed lately, if anything.
    pub(crate) fn note(&mut self, offset: u64, bytes: u64) -> Option<Extent> {
        if offset.abs_diff(self.end) > ORDER_BYTES {
            *self = Passing { begin: offset, end: offset };
        }
        self.end = self.end.max(offset + bytes);
        let passed = self.end.checked_sub(KEPT_BYTES).filter(|&passed| passed > self.begin)?;
        // As much again: some of it may have been on its way when it was passed.
        let begin = self.begin.max(passed.saturating_sub(KEPT_BYTES));
        Some(Extent::new(begin, passed - begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn all_but_the_last_of_a_large_file_is_passed() {
        let mut passing = Passing::default();
        let mut end = 0;
        for written in 1..=100 {
            let passed = passing.note((written - 1) * MIB, MIB);
            assert_eq!(passed.is_some(), written > 16);
            if let Some(passed) = passed {
                assert!(passed.offset <= end && passed.end() > end, "nothing is left out");
                end = passed.end();
            }
        }
        assert_eq!(end, 84 * MIB);
    }

    #[test]
    fn who_writes_here_and_there_passes_nothing() {
        let mut passing = Passing::default();
        let places = (0..1000).map(|step| step * 7919 % 1000 * 20 * MIB);
        assert!(places.into_iter().all(|place| passing.note(place, MIB).is_none()));
    }

    #[test]
    fn the_order_among_writes_that_are_under_way_together_does_not_matter() {
        let mut passing = Passing::default();
        let ends =
            (0..50).flat_map(|pair| [2 * pair + 1, 2 * pair]).map(|place| passing.note(place * MIB, MIB));
        assert_eq!(ends.last().flatten().map(|passed| passed.end()), Some(84 * MIB));
    }
}
