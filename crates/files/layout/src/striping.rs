//! Distributes a file over its stripes block by block, as cards are dealt to players.
//!
//! ```text
//!   file      | 0 | 1 | 2 | 3 | 4 | 5 | 6 |7|          blocks; the last may be short
//!
//!   stripe 0  | 0 | 3 | 6 |                            block b is on stripe b mod 3,
//!   stripe 1  | 1 | 4 |7|                              where it is block b div 3
//!   stripe 2  | 2 | 5 |
//! ```
//!
//! In this crate a stripe is the part of one file on one disk. `placement` selects the disk; the file system of its
//! node selects the location on the disk.

use std::iter::FusedIterator;

use serde::{Deserialize, Serialize};

use crate::error::LayoutError;
use crate::extent::{Extent, FILE_BYTES_MAX};

/// Block size and number of stripes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "RawStriping", into = "RawStriping")]
pub struct Striping {
    block_bytes: u64,
    stripe_count: u32,
}

/// The serialised form: numbers that are checked when they are decoded.
#[derive(Serialize, Deserialize)]
#[serde(rename = "Striping")]
struct RawStriping {
    block_bytes: u64,
    stripe_count: u32,
}

/// Place of a block: its stripe, and its index in that stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockPlace {
    /// Index of the stripe.
    pub stripe: u32,
    /// Index of the block within its stripe.
    pub block: u64,
}

/// Place of a byte: its stripe, and its offset in that stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StripePlace {
    /// Index of the stripe.
    pub stripe: u32,
    /// Offset within the stripe, in bytes.
    pub offset: u64,
}

/// Consecutive bytes of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockRequest {
    /// Index of the stripe with the block.
    pub stripe: u32,
    /// Offset of the first byte within that stripe, in bytes.
    pub stripe_offset: u64,
    /// Offset of the first byte within the file, in bytes.
    pub file_offset: u64,
    /// Length in bytes; at least one, and at most to the end of the block.
    pub bytes: u64,
}

impl Striping {
    /// Returns the striping with blocks of `block_bytes` bytes and `stripe_count` stripes. Fails if either is zero.
    pub const fn new(block_bytes: u64, stripe_count: u32) -> Result<Self, LayoutError> {
        if block_bytes == 0 || block_bytes > FILE_BYTES_MAX {
            return Err(LayoutError::BlockBytes { block_bytes });
        }
        if stripe_count == 0 {
            return Err(LayoutError::NoStripes);
        }
        Ok(Striping { block_bytes, stripe_count })
    }

    /// Returns the size of a block in bytes.
    pub const fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Returns the number of stripes.
    pub const fn stripe_count(&self) -> u32 {
        self.stripe_count
    }

    /// Returns the index of the block that contains the byte at `file_offset`.
    pub const fn block_at(&self, file_offset: u64) -> u64 {
        file_offset / self.block_bytes
    }

    /// Returns the number of blocks of a file of `file_bytes` bytes; the last may be short.
    pub const fn block_count(&self, file_bytes: u64) -> u64 {
        file_bytes.div_ceil(self.block_bytes)
    }

    /// Returns the place of the block with this index in the file.
    pub const fn place_of_block(&self, block: u64) -> BlockPlace {
        let stripes = self.stripe_count as u64;
        BlockPlace { stripe: (block % stripes) as u32, block: block / stripes }
    }

    /// Returns the index in the file of the block at `place`: the inverse of [`Striping::place_of_block`].
    pub fn block_of_place(&self, place: BlockPlace) -> Result<u64, LayoutError> {
        self.check_stripe(place.stripe)?;
        let stripes = u64::from(self.stripe_count);
        let before = place.block.checked_mul(stripes).ok_or(LayoutError::FileTooLarge)?;
        before.checked_add(u64::from(place.stripe)).ok_or(LayoutError::FileTooLarge)
    }

    /// Returns the place of the byte at `file_offset`.
    pub const fn place_of(&self, file_offset: u64) -> StripePlace {
        let BlockPlace { stripe, block } = self.place_of_block(self.block_at(file_offset));
        StripePlace { stripe, offset: block * self.block_bytes + file_offset % self.block_bytes }
    }

    /// Returns the file offset of the byte at `place`: the inverse of [`Striping::place_of`].
    pub fn file_offset_of(&self, place: StripePlace) -> Result<u64, LayoutError> {
        let block =
            self.block_of_place(BlockPlace { stripe: place.stripe, block: place.offset / self.block_bytes })?;
        let start = block.checked_mul(self.block_bytes).ok_or(LayoutError::FileTooLarge)?;
        let offset = start.checked_add(place.offset % self.block_bytes);
        offset.filter(|&offset| offset < FILE_BYTES_MAX).ok_or(LayoutError::FileTooLarge)
    }

    /// Returns the length in bytes of one stripe of a file of `file_bytes` bytes; zero if the stripe does not exist.
    pub fn stripe_bytes(&self, file_bytes: u64, stripe: u32) -> u64 {
        let last = self.place_of(file_bytes);
        let row_start = last.offset - file_bytes % self.block_bytes;
        if stripe >= self.stripe_count {
            0
        } else if stripe < last.stripe {
            row_start + self.block_bytes
        } else if stripe == last.stripe {
            last.offset
        } else {
            row_start
        }
    }

    /// Returns the size in bytes of the file whose stripes have these lengths in bytes.
    ///
    /// This is the largest file offset of a byte in any stripe, plus one. Stripes that end earlier end in a hole.
    pub fn file_bytes(&self, stripe_bytes: &[u64]) -> Result<u64, LayoutError> {
        if stripe_bytes.len() as u64 != u64::from(self.stripe_count) {
            let (given, stripe_count) = (stripe_bytes.len(), self.stripe_count);
            return Err(LayoutError::StripeLengths { given, stripe_count });
        }
        let mut file_bytes = 0;
        for (stripe, &bytes) in (0..).zip(stripe_bytes) {
            if let Some(offset) = bytes.checked_sub(1) {
                let last = self.file_offset_of(StripePlace { stripe, offset })?;
                file_bytes = file_bytes.max(last + 1);
            }
        }
        Ok(file_bytes)
    }

    /// Returns the extent of the block with this index within a file of `file_bytes` bytes.
    pub fn block_extent(&self, block: u64, file_bytes: u64) -> Extent {
        Extent::new(block.saturating_mul(self.block_bytes), self.block_bytes).clip(file_bytes)
    }

    /// Returns the extent divided at block boundaries, in file order.
    ///
    /// Omits bytes beyond the largest file.
    pub fn requests(&self, extent: Extent) -> BlockRequests {
        let extent = extent.clip(FILE_BYTES_MAX);
        BlockRequests { striping: *self, offset: extent.offset, end: extent.end(), step_bytes: 0 }
    }

    /// Returns the blocks of one stripe of a file of `file_bytes` bytes, in file order.
    ///
    /// Returns no blocks if the stripe does not exist.
    pub fn blocks_of_stripe(&self, stripe: u32, file_bytes: u64) -> BlockRequests {
        let end = file_bytes.min(FILE_BYTES_MAX);
        let others = u64::from(self.stripe_count - 1);
        let first = u64::from(stripe).saturating_mul(self.block_bytes);
        BlockRequests {
            striping: *self,
            offset: if stripe < self.stripe_count { first.min(end) } else { end },
            end,
            step_bytes: others.saturating_mul(self.block_bytes),
        }
    }

    fn check_stripe(&self, stripe: u32) -> Result<(), LayoutError> {
        if stripe < self.stripe_count {
            Ok(())
        } else {
            Err(LayoutError::NoSuchStripe { stripe, stripe_count: self.stripe_count })
        }
    }
}

impl TryFrom<RawStriping> for Striping {
    type Error = LayoutError;
    fn try_from(raw: RawStriping) -> Result<Self, LayoutError> {
        Striping::new(raw.block_bytes, raw.stripe_count)
    }
}

impl From<Striping> for RawStriping {
    fn from(striping: Striping) -> Self {
        let Striping { block_bytes, stripe_count } = striping;
        RawStriping { block_bytes, stripe_count }
    }
}

/// Requests that never cross a block boundary, in file order.
#[derive(Clone, Debug)]
pub struct BlockRequests {
    striping: Striping,
    offset: u64,
    end: u64,
    /// Bytes of other stripes' blocks to skip after each request.
    step_bytes: u64,
}

impl Iterator for BlockRequests {
    type Item = BlockRequest;

    fn next(&mut self) -> Option<BlockRequest> {
        if self.offset >= self.end {
            return None;
        }
        let file_offset = self.offset;
        let place = self.striping.place_of(file_offset);
        let block_rest = self.striping.block_bytes - place.offset % self.striping.block_bytes;
        let bytes = block_rest.min(self.end - file_offset);
        self.offset = (file_offset + bytes).saturating_add(self.step_bytes);
        Some(BlockRequest { stripe: place.stripe, stripe_offset: place.offset, file_offset, bytes })
    }
}

impl FusedIterator for BlockRequests {}

#[cfg(test)]
mod tests {
    use super::*;

    fn striping() -> Striping {
        Striping::new(10, 3).unwrap()
    }

    #[test]
    fn blocks_are_distributed_round_robin() {
        let places: Vec<_> = (0..7).map(|block| striping().place_of_block(block)).collect();
        let stripes: Vec<_> = places.iter().map(|place| place.stripe).collect();
        let blocks: Vec<_> = places.iter().map(|place| place.block).collect();
        assert_eq!(stripes, [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(blocks, [0, 0, 0, 1, 1, 1, 2]);
    }

    #[test]
    fn a_byte_keeps_its_offset_within_its_block() {
        assert_eq!(striping().place_of(47), StripePlace { stripe: 1, offset: 17 });
        assert_eq!(striping().file_offset_of(StripePlace { stripe: 1, offset: 17 }), Ok(47));
    }

    #[test]
    fn at_most_one_stripe_ends_within_a_block() {
        let lengths = |file_bytes| [0, 1, 2].map(|stripe| striping().stripe_bytes(file_bytes, stripe));
        assert_eq!(lengths(0), [0, 0, 0]);
        assert_eq!(lengths(45), [20, 15, 10]);
        assert_eq!(lengths(60), [20, 20, 20]);
        assert_eq!(striping().stripe_bytes(45, 3), 0);
    }

    #[test]
    fn the_file_size_is_the_furthest_end_of_a_stripe() {
        assert_eq!(striping().file_bytes(&[20, 15, 10]), Ok(45));
        assert_eq!(striping().file_bytes(&[0, 0, 0]), Ok(0));
        assert_eq!(striping().file_bytes(&[0, 1, 0]), Ok(11), "the hole before it counts");
    }

    #[test]
    fn requests_end_at_block_boundaries() {
        let requests: Vec<_> = striping().requests(Extent::new(5, 20)).collect();
        let request = |stripe, stripe_offset, file_offset, bytes| BlockRequest {
            stripe,
            stripe_offset,
            file_offset,
            bytes,
        };
        assert_eq!(requests, [request(0, 5, 5, 5), request(1, 0, 10, 10), request(2, 0, 20, 5)]);
    }

    #[test]
    fn a_stripe_contains_every_nth_block() {
        let offsets = |stripe| -> Vec<_> {
            let blocks = striping().blocks_of_stripe(stripe, 45);
            blocks.map(|request| (request.file_offset, request.bytes)).collect()
        };
        assert_eq!(offsets(0), [(0, 10), (30, 10)]);
        assert_eq!(offsets(1), [(10, 10), (40, 5)]);
        assert_eq!(offsets(2), [(20, 10)]);
        assert_eq!(offsets(3), []);
    }

    #[test]
    fn invalid_parameters_are_errors() {
        assert!(Striping::new(0, 3).is_err());
        assert!(Striping::new(u64::MAX, 3).is_err());
        assert!(Striping::new(10, 0).is_err());
        assert!(striping().file_bytes(&[1, 2]).is_err());
        assert!(striping().file_bytes(&[u64::MAX, 0, 0]).is_err());
        assert!(striping().block_of_place(BlockPlace { stripe: 3, block: 0 }).is_err());
        assert!(striping().file_offset_of(StripePlace { stripe: 0, offset: u64::MAX }).is_err());
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let one_block = Striping::new(FILE_BYTES_MAX, u32::MAX).unwrap();
        let last = FILE_BYTES_MAX - 1;
        assert_eq!(one_block.file_offset_of(one_block.place_of(last)), Ok(last));
        assert_eq!(one_block.stripe_bytes(FILE_BYTES_MAX, 0), FILE_BYTES_MAX);
        assert_eq!(one_block.blocks_of_stripe(u32::MAX - 1, FILE_BYTES_MAX).count(), 0);
        assert_eq!(one_block.blocks_of_stripe(0, u64::MAX).count(), 1);
        assert_eq!(one_block.requests(Extent::new(5, u64::MAX)).count(), 1);
        let bytes = Striping::new(1, 1).unwrap();
        assert_eq!(bytes.file_offset_of(bytes.place_of(last)), Ok(last));
        assert_eq!(bytes.file_bytes(&[FILE_BYTES_MAX]), Ok(FILE_BYTES_MAX));
    }
}
