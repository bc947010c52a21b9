//! Pages behind a sequential writer: sent to the agents and unlikely to be read soon. The page cache drops them, so
//! that their memory is reused and pages of other files stay.
//!
//! Files up to [`KEPT_BYTES`] stay cached entirely, since a new file is often read next.

use layout::Extent;

/// Bytes of the latest writes that stay in the page cache.
const KEPT_BYTES: u64 = 16 << 20;

/// Limit in bytes of the distance between successive writes in file order: several writes may be in flight.
const ORDER_BYTES: u64 = 8 << 20;

/// The sequential writes of a handle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SequentialWrites {
    begin: u64,
    end: u64,
}

impl SequentialWrites {
    /// Records a write. Returns the range that has newly fallen behind, if any.
    pub(crate) fn note(&mut self, offset: u64, bytes: u64) -> Option<Extent> {
        if offset.abs_diff(self.end) > ORDER_BYTES {
            *self = SequentialWrites { begin: offset, end: offset };
        }
        self.end = self.end.max(offset + bytes);
        let passed = self.end.checked_sub(KEPT_BYTES).filter(|&passed| passed > self.begin)?;
        // Include the previous range again, because parts of it may have been in flight when it was first returned.
        let begin = self.begin.max(passed.saturating_sub(KEPT_BYTES));
        Some(Extent::new(begin, passed - begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_sequential_writer_leaves_all_but_16_mib_behind() {
        let mut passing = SequentialWrites::default();
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
    fn scattered_writes_leave_nothing_behind() {
        let mut passing = SequentialWrites::default();
        let places = (0..1000).map(|step| step * 7919 % 1000 * 20 * MIB);
        assert!(places.into_iter().all(|place| passing.note(place, MIB).is_none()));
    }

    #[test]
    fn concurrent_writes_out_of_order_count_as_sequential() {
        let mut passing = SequentialWrites::default();
        let ends =
            (0..50).flat_map(|pair| [2 * pair + 1, 2 * pair]).map(|place| passing.note(place * MIB, MIB));
        assert_eq!(ends.last().flatten().map(|passed| passed.end()), Some(84 * MIB));
    }
}
