//! Directories dealt to blocks: the owner of each byte of a block, and where in its memory the byte is.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use layout::{Piece, Striping};

use crate::coverage::Coverage;
use crate::directory::{DirectoryError, Entry, ListedStretch, PIECES_OF_OPERATION_MAX};
use crate::piece_run::PieceRun;

/// The members' pieces of one block.
#[derive(Debug)]
pub(crate) struct BlockPieces {
    /// Offset in bytes of the block within its stripe.
    pub(crate) stripe_offset: u64,
    file_offset: u64,
    bytes: u64,
    /// In the order of directories.
    runs: Vec<PieceRun>,
    /// When each piece was written, in the same order.
    times: Vec<u64>,
}

impl BlockPieces {
    fn push(&mut self, piece: Piece, time: u64) {
        self.times.push(time);
        if !self.runs.last_mut().is_some_and(|run| run.extend(&piece)) {
            self.runs.push(piece.into());
        }
    }

    /// The pieces as an [exchange](crate::exchange) takes them, in the order of the file.
    pub(crate) fn pieces(&self) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = self.runs.iter().flat_map(|run| run.pieces()).collect();
        pieces.sort_by_key(|piece| piece.file_offset);
        pieces
    }

    /// The pieces in runs of those of a member that go on regularly, in the order of directories.
    pub(crate) fn piece_runs(&self) -> impl Iterator<Item = PieceRun> {
        self.runs.iter().copied()
    }

    /// Offset in bytes of the block within its file.
    pub(crate) fn file_offset(&self) -> u64 {
        self.file_offset
    }

    /// Whether the bytes of the file from `offset` to `end` all lie in this block.
    fn has(&self, offset: u64, end: u64) -> bool {
        self.file_offset <= offset && end <= self.file_offset + self.bytes
    }

    fn within(&self, piece: &Piece) -> Range<u64> {
        let start = piece.file_offset - self.file_offset;
        start..start + piece.bytes
    }

    /// The bytes of the block that pieces cover: disjoint ranges, in order, not touching each other.
    pub(crate) fn runs(&self) -> Vec<Range<u64>> {
        self.cover().0.runs()
    }

    /// The bytes that pieces cover, and whether two pieces overlap.
    fn cover(&self) -> (Coverage, bool) {
        let (mut coverage, mut twice) = (Coverage::none_of(self.bytes), false);
        for piece in self.runs.iter().flat_map(|run| run.pieces()) {
            twice |= coverage.insert(self.within(&piece));
        }
        (coverage, twice)
    }

    /// Where the last of the pieces ends, as an offset within the stripe.
    pub(crate) fn end(&self) -> u64 {
        let end_of = |run: &PieceRun| run.first.file_offset + run.stride * (run.count - 1) + run.first.bytes;
        let end = self.runs.iter().map(end_of).max().unwrap_or(self.file_offset);
        self.stripe_offset + (end - self.file_offset)
    }

    /// Leaves of each byte the latest piece only. Says how many bytes of a member have given way to another's.
    fn keep_latest(&mut self) -> u64 {
        if !self.cover().1 {
            return 0;
        }
        let pieces: Vec<Piece> = self.runs.drain(..).flat_map(PieceRun::pieces).collect();
        let mut latest_first: Vec<usize> = (0..pieces.len()).collect();
        latest_first.sort_by_key(|&order| (self.times[order], pieces[order].node, order));
        // Of each byte of the block the piece that stays.
        let mut owners: Vec<Option<u32>> = vec![None; self.bytes as usize];
        let mut hidden = 0;
        for order in latest_first.into_iter().rev() {
            let piece = &pieces[order];
            for byte in self.within(piece) {
                match owners[byte as usize] {
                    None => owners[byte as usize] = Some(order as u32),
                    Some(owner) => hidden += u64::from(pieces[owner as usize].node != piece.node),
                }
            }
        }
        self.times.clear();
        let mut start = self.file_offset;
        for of_one in owners.chunk_by(|one, next| one == next) {
            let bytes = of_one.len() as u64;
            if let Some(owner) = of_one[0] {
                let piece = pieces[owner as usize];
                let memory_offset = piece.memory_offset + (start - piece.file_offset);
                self.push(Piece { node: piece.node, memory_offset, file_offset: start, bytes }, 0);
            }
            start += bytes;
        }
        hidden
    }
}

/// The entries of all members for one file, dealt to the blocks of some of its stripes.
#[derive(Debug, Default)]
pub(crate) struct Dealt {
    blocks: Vec<BlockPieces>,
    /// The indices of blocks, by stripe and offset within it.
    indices: BTreeMap<(u32, u64), usize>,
    /// The block that had the last piece: most of the time the next one is there, too.
    latest: usize,
    /// How many pieces there are.
    count: u64,
}

impl Dealt {
    /// Adds what a member of the group tells to the blocks of `stripes`.
    pub(crate) fn add(
        &mut self,
        striping: Striping,
        stripes: &BTreeSet<u32>,
        member: u32,
        stretches: &[ListedStretch],
    ) -> Result<(), DirectoryError> {
        for stretch in stretches {
            stretch.check()?;
            for entry in stretch.entries() {
                let in_latest = self
                    .blocks
                    .get(self.latest)
                    .is_some_and(|block| block.has(entry.offset, entry.extent().end()));
                self.count += if in_latest { 1 } else { entry.block_count(striping) };
                if self.count > PIECES_OF_OPERATION_MAX {
                    return Err(DirectoryError::TooManyPieces);
                }
                if in_latest && entry.bytes > 0 {
                    let Entry { offset: file_offset, bytes, at: memory_offset, time } = entry;
                    let piece = Piece { node: member, memory_offset, file_offset, bytes };
                    self.blocks[self.latest].push(piece, time);
                } else {
                    self.add_to_blocks(striping, stripes, member, &entry);
                }
            }
        }
        Ok(())
    }

    fn add_to_blocks(&mut self, striping: Striping, stripes: &BTreeSet<u32>, member: u32, entry: &Entry) {
        let block_bytes = striping.block_bytes();
        let here = striping.requests(entry.extent()).filter(|part| stripes.contains(&part.stripe));
        for part in here {
            let start = part.stripe_offset % block_bytes;
            let stripe_offset = part.stripe_offset - start;
            let index = *self.indices.entry((part.stripe, stripe_offset)).or_insert_with(|| {
                self.blocks.push(BlockPieces {
                    stripe_offset,
                    file_offset: part.file_offset - start,
                    bytes: block_bytes,
                    runs: Vec::new(),
                    times: Vec::new(),
                });
                self.blocks.len() - 1
            });
            let memory_offset = entry.at + (part.file_offset - entry.offset);
            let Range { start: file_offset, end } = part.file_offset..part.file_offset + part.bytes;
            let piece = Piece { node: member, memory_offset, file_offset, bytes: end - file_offset };
            self.blocks[index].push(piece, entry.time);
            self.latest = index;
        }
    }

    /// The blocks with their pieces in the order of the file, each with its stripe. If `latest_only`, the latest of
    /// overlapping pieces only; then also how many bytes of a member have given way to another's.
    pub(crate) fn into_blocks(mut self, latest_only: bool) -> (Vec<(u32, BlockPieces)>, u64) {
        let mut hidden = 0;
        if latest_only {
            hidden = self.blocks.iter_mut().map(BlockPieces::keep_latest).sum();
        }
        let mut blocks: Vec<Option<BlockPieces>> = self.blocks.into_iter().map(Some).collect();
        let in_order = self.indices.into_iter();
        let in_order = in_order.filter_map(|((stripe, _), index)| Some((stripe, blocks[index].take()?)));
        (in_order.collect(), hidden)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BLOCK: u64 = 16;

    fn entry(offset: u64, bytes: u64, at: u64, time: u64) -> ListedStretch {
        ListedStretch::One(Entry { offset, bytes, at, time })
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
                prop_assert_eq!(runs, block.pieces().iter().map(|piece| piece.bytes).sum::<u64>());
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
    }
}
