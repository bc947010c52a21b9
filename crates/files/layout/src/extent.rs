//! A range of consecutive bytes.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The largest file, in bytes: offsets fit in a signed 64-bit number, as operating systems require.
pub const FILE_BYTES_MAX: u64 = i64::MAX as u64;

/// Consecutive bytes of a file.
///
/// Any two numbers form an extent. Functions that use an extent clip it to the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Extent {
    /// Offset of the first byte, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

impl From<Range<u64>> for Extent {
    fn from(range: Range<u64>) -> Self {
        Extent::new(range.start, range.end.saturating_sub(range.start))
    }
}

impl Extent {
    /// Returns the extent of `bytes` bytes at `offset`.
    pub const fn new(offset: u64, bytes: u64) -> Self {
        Extent { offset, bytes }
    }

    /// Returns the offset just after the last byte; saturates instead of overflowing.
    pub const fn end(self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }

    /// True if the extent has no bytes.
    pub const fn is_empty(self) -> bool {
        self.bytes == 0
    }

    /// True if a file can contain all of its bytes.
    pub fn is_of_a_file(self) -> bool {
        self.clip(FILE_BYTES_MAX) == self
    }

    /// Returns the part of the extent below `limit`; empty, at `limit`, if there is no such part.
    pub fn clip(self, limit: u64) -> Self {
        let offset = self.offset.min(limit);
        Extent::new(offset, self.end().min(limit) - offset)
    }

    /// Returns the parts of the extent between multiples of `unit`, in order, without empty parts.
    ///
    /// # Panics
    /// Panics if `unit` is 0.
    pub fn parts(self, unit: u64) -> impl Iterator<Item = Extent> + Send {
        let next = move |at: u64| (at - at % unit).saturating_add(unit).min(self.end());
        let starts = std::iter::successors(Some(self.offset), move |&at| Some(next(at)));
        starts.take_while(move |&at| at < self.end()).map(move |at| Extent::new(at, next(at) - at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_beyond_the_largest_file_is_of_no_file() {
        assert!(Extent::new(FILE_BYTES_MAX - 2, 2).is_of_a_file());
        for (offset, bytes) in [(FILE_BYTES_MAX - 2, 3), (u64::MAX, 2), (2, u64::MAX)] {
            assert!(!Extent::new(offset, bytes).is_of_a_file(), "{bytes} at {offset}");
        }
    }

    #[test]
    fn parts_cover_the_extent_and_cross_no_multiple() {
        for (offset, bytes) in
            [(0, 0), (3, 0), (0, 10), (3, 4), (9, 1), (9, 2), (10, 10), (7, 95), (u64::MAX - 7, 7)]
        {
            let parts: Vec<Extent> = Extent::new(offset, bytes).parts(10).collect();
            let mut at = offset;
            for part in &parts {
                assert!(part.offset == at && part.bytes > 0, "{parts:?}");
                assert_eq!(part.offset / 10, (part.end() - 1) / 10, "{parts:?}");
                at = part.end();
            }
            assert_eq!(at, offset + bytes);
        }
    }

    #[test]
    fn clipping_keeps_the_bytes_below_the_limit() {
        assert_eq!(Extent::new(2, 5).clip(10), Extent::new(2, 5));
        assert_eq!(Extent::new(2, 5).clip(4), Extent::new(2, 2));
        assert_eq!(Extent::new(9, 5).clip(4), Extent::new(4, 0));
        assert_eq!(Extent::new(3, u64::MAX).clip(10), Extent::new(3, 7));
    }
}
