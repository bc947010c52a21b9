//! Directories: what the members of a group have to move together, told entry by entry.
//!
//! A dense [view](layout::View) says in closed form whose each byte of a file is. A *directory* is for all the rest:
//! one
//! client's list of stretches of files and where in its memory each of them is. Every I/O node gets the entries that
//! concern it; once it has those of all members, it deals them to the blocks of its stripes:
//!
//! ```text
//!  member 0   | file A: 0..6 at 0, time 1 | file A: 12..20 at 6, time 4 |
//!  member 1   | file A: 4..10 at 0, time 3 |
//!
//!  block 0 of A (8 bytes)   0..4 of member 0, 4..8 of member 1       the later of two writes is the one that stays
//!  block 1 of A             8..10 of member 1, 12..16 of member 0    10..12 stays as it is on the disk
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use layout::{Extent, Piece, Striping};
use serde::{Deserialize, Serialize};

use crate::byte_set::ByteSet;

/// A stretch of a file and where a client has it in its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Offset in bytes within the file.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Offset in bytes within the client's memory.
    pub at: u64,
    /// When it was written, in nanoseconds of the client's clock. Where entries overlap, the latest is written; of one
    /// client's entries of the same time the later in its directory, of several clients' that of the last member.
    pub time: u64,
}

impl Entry {
    /// The stretch of the file.
    pub fn extent(&self) -> Extent {
        Extent::new(self.offset, self.bytes)
    }

    /// The blocks of a file that the entry has bytes of, by their indices.
    fn blocks(&self, striping: Striping) -> Range<u64> {
        if self.bytes == 0 {
            return 0..0;
        }
        striping.block_at(self.offset)..striping.block_at(self.extent().end() - 1) + 1
    }

    /// The stripes of a file that the entry has bytes of.
    pub(crate) fn stripes(&self, striping: Striping) -> impl Iterator<Item = u32> {
        let blocks = self.blocks(striping);
        let stripes = u64::from(striping.stripe_count());
        let some = blocks.start..blocks.end.min(blocks.start.saturating_add(stripes));
        some.map(move |block| striping.place_of_block(block).stripe)
    }
}

/// The length of a directory, or of a part of it: how many files and entries it names.
pub(crate) fn length<Id>(entries: &[(Id, Vec<Entry>)]) -> usize {
    entries.iter().map(|(_, of_file)| of_file.len() + 1).sum()
}

/// The most pieces that an I/O node cuts the directories of one operation into.
pub(crate) const PIECES_OF_OPERATION_MAX: u64 = 1 << 22;

/// Part of one block that a member has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockPiece {
    /// Index of the member in the group.
    member: u32,
    /// Offset in bytes within the block.
    start: u64,
    bytes: u64,
    /// Offset in bytes within the member's memory.
    at: u64,
    time: u64,
    /// Its place among all pieces, in the order of directories.
    order: u64,
}

impl BlockPiece {
    fn range(&self) -> Range<u64> {
        self.start..self.start + self.bytes
    }

    fn part(&self, range: Range<u64>) -> BlockPiece {
        let at = self.at + (range.start - self.start);
        BlockPiece { start: range.start, bytes: range.end - range.start, at, ..*self }
    }
}

/// The members' pieces of one block.
#[derive(Debug)]
pub(crate) struct BlockPieces {
    /// Offset in bytes of the block within its stripe.
    pub(crate) stripe_offset: u64,
    file_offset: u64,
    /// By their offset.
    pieces: Vec<BlockPiece>,
}

impl BlockPieces {
    /// The pieces as an [exchange](crate::exchange) takes them, in the order of the file.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece> {
        self.pieces.iter().map(|piece| Piece {
            node: piece.member,
            file_offset: self.file_offset + piece.start,
            memory_offset: piece.at,
            bytes: piece.bytes,
        })
    }

    /// Offset in bytes of the block within its file.
    pub(crate) fn file_offset(&self) -> u64 {
        self.file_offset
    }

    /// Which bytes of the block there are pieces of: disjoint, in order, not touching each other.
    pub(crate) fn runs(&self) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for piece in &self.pieces {
            match runs.last_mut().filter(|run| run.end >= piece.start) {
                Some(run) => run.end = run.end.max(piece.range().end),
                None => runs.push(piece.range()),
            }
        }
        runs
    }

    /// Where the last of the pieces ends, as an offset within the stripe.
    pub(crate) fn end(&self) -> u64 {
        let end = self.pieces.iter().map(|piece| piece.range().end).max();
        self.stripe_offset + end.unwrap_or(0)
    }

    /// Leaves of each byte the latest piece only. Says how many bytes of a member have given way to another's.
    fn keep_latest(&mut self) -> u64 {
        let overlaps = self.pieces.windows(2).any(|pair| pair[1].start < pair[0].range().end);
        if !overlaps {
            return 0;
        }
        self.pieces.sort_by_key(|piece| (piece.time, piece.member, piece.order));
        let (mut taken, mut by_others) = (ByteSet::default(), 0);
        let mut owners: Vec<BlockPiece> = Vec::new();
        for piece in self.pieces.drain(..).rev() {
            let mut left = ByteSet::default();
            left.insert(piece.range());
            for run in taken.runs() {
                left.remove(run);
            }
            by_others += hidden_by_others(&piece, &owners);
            owners.extend(left.runs().iter().map(|run| piece.part(run.clone())));
            taken.insert(piece.range());
        }
        owners.sort_by_key(|piece| piece.start);
        self.pieces = owners;
        by_others
    }
}

/// How many bytes of a piece other members have written later.
fn hidden_by_others(piece: &BlockPiece, later: &[BlockPiece]) -> u64 {
    let others = later.iter().filter(|other| other.member != piece.member);
    let both = others
        .map(|other| other.range().end.min(piece.range().end).saturating_sub(other.start.max(piece.start)));
    both.sum()
}

/// Why directories are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DirectoryError {
    /// Together they have too many pieces.
    #[error("directories of more than {PIECES_OF_OPERATION_MAX} pieces of blocks")]
    TooManyPieces,
    /// An entry reaches beyond the largest file, or beyond all addresses of a memory.
    #[error(
        "an entry of {bytes} bytes at offset {offset}, {at} of its memory: no file and no memory has them"
    )]
    Beyond {
        /// Offset in bytes within the file.
        offset: u64,
        /// How many bytes.
        bytes: u64,
        /// Offset in bytes within the memory.
        at: u64,
    },
}

/// The entries of all members for one file, dealt to the blocks of some of its stripes.
#[derive(Debug, Default)]
pub(crate) struct Dealt {
    /// By stripe and index of the block within it.
    blocks: BTreeMap<(u32, u64), BlockPieces>,
    /// How many pieces there are.
    count: u64,
}

impl Dealt {
    /// Adds entries of a member of the group to the blocks of `stripes`.
    pub(crate) fn add(
        &mut self,
        striping: Striping,
        stripes: &BTreeSet<u32>,
        member: u32,
        entries: &[Entry],
    ) -> Result<(), DirectoryError> {
        for entry in entries {
            check_entry(entry)?;
            let blocks = entry.blocks(striping);
            self.count += blocks.end - blocks.start;
            if self.count > PIECES_OF_OPERATION_MAX {
                return Err(DirectoryError::TooManyPieces);
            }
            let here = striping.requests(entry.extent()).filter(|part| stripes.contains(&part.stripe));
            for part in here {
                let start = part.stripe_offset % striping.block_bytes();
                let stripe_offset = part.stripe_offset - start;
                let block = self.blocks.entry((part.stripe, stripe_offset)).or_insert_with(|| BlockPieces {
                    stripe_offset,
                    file_offset: part.file_offset - start,
                    pieces: Vec::new(),
                });
                let at = entry.at + (part.file_offset - entry.offset);
                let (bytes, time, order) = (part.bytes, entry.time, self.count);
                block.pieces.push(BlockPiece { member, start, bytes, at, time, order });
            }
        }
        Ok(())
    }

    /// The blocks with their pieces in the order of the file, each with its stripe. If `latest_only`, the latest of
    /// overlapping pieces only; then also how many bytes of a member have given way to another's.
    pub(crate) fn into_blocks(self, latest_only: bool) -> (Vec<(u32, BlockPieces)>, u64) {
        let mut hidden = 0;
        let blocks = self.blocks.into_iter().map(|((stripe, _), mut block)| {
            block.pieces.sort_by_key(|piece| piece.start);
            if latest_only {
                hidden += block.keep_latest();
            }
            (stripe, block)
        });
        let blocks = blocks.collect();
        (blocks, hidden)
    }
}

fn check_entry(entry: &Entry) -> Result<(), DirectoryError> {
    let Entry { offset, bytes, at, .. } = *entry;
    if entry.extent().is_of_a_file() && at.checked_add(bytes).is_some() {
        Ok(())
    } else {
        Err(DirectoryError::Beyond { offset, bytes, at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BLOCK: u64 = 16;

    fn entry(offset: u64, bytes: u64, at: u64, time: u64) -> Entry {
        Entry { offset, bytes, at, time }
    }

    #[test]
    fn what_reaches_beyond_any_file_is_refused() {
        let striping = Striping::new(BLOCK, 2).unwrap();
        let add = |entry| Dealt::default().add(striping, &BTreeSet::from([0]), 0, &[entry]);
        assert!(matches!(add(entry(u64::MAX, 2, 0, 0)), Err(DirectoryError::Beyond { .. })));
        assert!(matches!(add(entry(0, 2, u64::MAX, 0)), Err(DirectoryError::Beyond { .. })));
        assert_eq!(add(entry(0, 1 << 40, 0, 0)), Err(DirectoryError::TooManyPieces));
    }

    proptest! {
        /// Entries are dealt so that each byte of the file comes from where its latest writer has it.
        #[test]
        fn the_latest_write_stays(
            entries in prop::collection::vec((0u32..3, 0u64..100, 1u64..40, 0u64..6), 0..30),
            stripes in 1u32..4,
        ) {
            let striping = Striping::new(BLOCK, stripes).unwrap();
            let (mut dealt, all) = (Dealt::default(), (0..stripes).collect());
            let mut expected: BTreeMap<u64, ((u64, u32, usize), u64)> = BTreeMap::new();
            for (order, &(member, offset, bytes, time)) in entries.iter().enumerate() {
                let at = 1000 * order as u64;
                dealt.add(striping, &all, member, &[entry(offset, bytes, at, time)]).unwrap();
                for byte in 0..bytes {
                    let rank = (time, member, order);
                    let (latest, from) = expected.entry(offset + byte).or_insert((rank, at + byte));
                    if rank >= *latest {
                        (*latest, *from) = (rank, at + byte);
                    }
                }
            }
            let (blocks, _) = dealt.into_blocks(true);
            let mut found = BTreeMap::new();
            for (stripe, block) in &blocks {
                let place = striping.place_of(block.file_offset());
                prop_assert_eq!((place.stripe, place.offset), (*stripe, block.stripe_offset));
                let runs: u64 = block.runs().iter().map(|run| run.end - run.start).sum();
                prop_assert_eq!(runs, block.pieces().map(|piece| piece.bytes).sum::<u64>());
                for piece in block.pieces() {
                    for byte in 0..piece.bytes {
                        prop_assert!(found.insert(piece.file_offset + byte, piece.memory_offset + byte).is_none());
                    }
                }
            }
            let expected: BTreeMap<u64, u64> = expected.into_iter().map(|(byte, (_, from))| (byte, from)).collect();
            prop_assert_eq!(found, expected);
        }

        /// Without that, all pieces of all entries are there.
        #[test]
        fn readers_get_all_they_ask_for(
            entries in prop::collection::vec((0u32..3, 0u64..100, 1u64..40), 0..30),
        ) {
            let striping = Striping::new(BLOCK, 2).unwrap();
            let (mut dealt, all) = (Dealt::default(), BTreeSet::from([0, 1]));
            for &(member, offset, bytes) in &entries {
                dealt.add(striping, &all, member, &[entry(offset, bytes, 0, 0)]).unwrap();
            }
            let (blocks, hidden) = dealt.into_blocks(false);
            let moved: u64 = blocks.iter().flat_map(|(_, block)| block.pieces()).map(|piece| piece.bytes).sum();
            prop_assert_eq!(moved, entries.iter().map(|(_, _, bytes)| bytes).sum::<u64>());
            prop_assert_eq!(hidden, 0);
        }

        #[test]
        fn an_entry_knows_its_stripes(offset in 0u64..200, bytes in 0u64..200, stripes in 1u32..5) {
            let striping = Striping::new(BLOCK, stripes).unwrap();
            let found: BTreeSet<u32> = entry(offset, bytes, 0, 0).stripes(striping).collect();
            let expected = (offset..offset + bytes).map(|byte| striping.place_of(byte).stripe).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
