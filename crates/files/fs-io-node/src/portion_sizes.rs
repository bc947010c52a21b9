//! The number of blocks that a buffer of an operation takes at once, if it has room for several.
//!
//! With small portions the disk writes the blocks of one buffer while others receive theirs, and all end at
//! about the same time. With large portions there are fewer messages, since each portion requests its data
//! from every member.

use std::cell::Cell;

/// Denominator of a portion: a buffer takes one part in `FRACTION` of its share of the remaining blocks, so
/// portions shrink.
const FRACTION: usize = 8;

/// Lower limit of a portion in bytes for each member, on average. A message takes as much processor time as
/// some tens of thousands of bytes, and wakes a process.
const MEMBER_BYTES_MIN: u64 = 256 << 10;

/// The portions of an operation at one disk.
pub(super) struct PortionSizes {
    /// Capacity of a buffer in blocks.
    most: usize,
    /// Lower limit of a portion in blocks, if the first ones are as large, except for the last few.
    fewest: usize,
    /// Number of buffers.
    buffers: usize,
    last: Cell<usize>,
}

impl PortionSizes {
    /// Creates portions of at most `most` blocks of `block_bytes` bytes, of which `members` have parts, for
    /// `buffers` buffers.
    pub(super) fn new(most: usize, block_bytes: u64, members: usize, buffers: usize) -> Self {
        let fewest = (MEMBER_BYTES_MIN * members as u64).div_ceil(block_bytes.max(1)) as usize;
        PortionSizes { most, fewest, buffers, last: Cell::new(0) }
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Returns the number of blocks that a buffer takes next if `left` remain; 0 if none remain.
    pub(super) fn next(&self, left: usize) -> usize {
        let share = left.div_ceil(self.buffers);
        let fewest = self.fewest.min(self.last.get());
        let portion = share.div_ceil(FRACTION).max(fewest).min(share).min(self.most);
        self.last.set(portion);
        portion
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    const BLOCK: u64 = 256 << 10;

    /// Returns the sizes of the portions that two buffers take, one after the other.
    fn portions(blocks: usize, most: usize, members: usize) -> Vec<usize> {
        let (portions, mut left) = (PortionSizes::new(most, BLOCK, members, 2), blocks);
        let next = || {
            let portion = portions.next(left);
            left -= portion;
            (portion > 0).then_some(portion)
        };
        iter::from_fn(next).collect()
    }

    #[test]
    fn portions_of_few_members_shrink() {
        let of_one = portions(64, 33, 1);
        assert_eq!((of_one[0], of_one.len()), (4, 33));
        assert!(of_one.is_sorted_by(|one, next| one >= next));
        assert_eq!(portions(64, 1, 8), [1; 64], "room for one");
    }

    #[test]
    fn portions_of_many_members_stay_as_large_as_the_first() {
        let of_eight = portions(64, 33, 8);
        assert_eq!(
            (&of_eight[..15], &of_eight[15..]),
            (&[4; 15][..], &[2, 1, 1][..]),
            "both buffers end together"
        );
        assert_eq!(portions(6, 33, 8), [1; 6]);
        assert!(portions(320, 33, 4).starts_with(&[20, 19, 18, 17, 16]), "as far as to 256 KiB for each");
    }
}
