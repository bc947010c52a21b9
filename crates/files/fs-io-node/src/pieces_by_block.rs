//! Distributes directories to blocks: determines the owner of each byte of a block, and the byte's place in the owner's
//! memory.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::ops::Range;

use layout::{Piece, Striping};

use crate::coverage::Coverage;
use crate::directory::{DirectoryError, Entry, ListedStretch, PieceBudget};
use crate::strided_pieces::PieceRun;
use machine::yield_now;

/// The members' pieces of one block.
#[derive(Debug)]
pub(crate) struct BlockPieces {
    /// Offset in bytes of the block within its stripe.
    pub(crate) stripe_offset: u64,
    file_offset: u64,
    bytes: u64,
    /// The pieces as runs, in the order of directories.
    runs: Vec<PieceRun>,
    /// Time of the write of each piece, in the same order.
    times: Vec<u64>,
}

impl BlockPieces {
    fn push(&mut self, piece: Piece, time: u64) {
        self.times.push(time);
        if !self.runs.last_mut().is_some_and(|run| run.extend(&piece)) {
            self.runs.push(piece.into());
        }
    }

    /// Returns the pieces for an [exchange](crate::exchange), in the order of the file.
    pub(crate) fn pieces(&self) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = self.runs.iter().flat_map(|run| run.pieces()).collect();
        pieces.sort_by_key(|piece| piece.file_offset);
        pieces
    }

    /// Returns the pieces as regular runs of one member each, in the order of directories.
    pub(crate) fn piece_runs(&self) -> impl Iterator<Item = PieceRun> {
        self.runs.iter().copied()
    }

    /// Returns the offset in bytes of the block within its file.
    pub(crate) fn file_offset(&self) -> u64 {
        self.file_offset
    }

    /// True if all bytes of the file from `offset` to before `end` are in this block.
    fn has(&self, offset: u64, end: u64) -> bool {
        self.file_offset <= offset && end <= self.file_offset + self.bytes
    }

    fn within(&self, piece: &Piece) -> Range<u64> {
        let start = piece.file_offset - self.file_offset;
        start..start + piece.bytes
    }

    /// Returns the bytes of the block that pieces cover, as ranges in order that neither overlap nor touch.
    pub(crate) async fn runs(&self) -> Vec<Range<u64>> {
        let mut coverage = Coverage::none_of(self.bytes);
        for (looks, piece) in self.each_piece().enumerate() {
            if looks % LOOKS_IN_A_ROW == LOOKS_IN_A_ROW - 1 {
                yield_now().await;
            }
            coverage.insert(self.within(&piece));
        }
        coverage.runs()
    }

    fn each_piece(&self) -> impl Iterator<Item = Piece> {
        self.runs.iter().flat_map(|run| run.pieces())
    }

    /// True if any two pieces overlap. Stops at the first overlap, so that no byte is processed twice.
    fn any_overlap(&self) -> bool {
        let mut coverage = Coverage::none_of(self.bytes);
        self.each_piece().any(|piece| coverage.insert(self.within(&piece)))
    }

    /// Returns the end of the last piece, as an offset within the stripe.
    pub(crate) fn end(&self) -> u64 {
        let end_of = |run: &PieceRun| run.first.file_offset + run.stride * (run.count - 1) + run.first.bytes;
        let end = self.runs.iter().map(end_of).max().unwrap_or(self.file_offset);
        self.stripe_offset + (end - self.file_offset)
    }

    /// Keeps only the latest piece of each byte. Returns the number of bytes that a later write of another member
    /// replaces.
    async fn keep_latest(&mut self) -> u64 {
        if !self.any_overlap() {
            return 0;
        }
        let pieces: Vec<Piece> = self.runs.drain(..).flat_map(PieceRun::pieces).collect();
        let times = mem::take(&mut self.times);
        let mut ends: Vec<(u64, usize)> = Vec::with_capacity(2 * pieces.len());
        for (order, piece) in pieces.iter().enumerate() {
            ends.extend([(piece.file_offset, order), (piece.file_offset + piece.bytes, order)]);
        }
        ends.sort_unstable();
        let (mut here, mut hidden) = (CoveringPieces::default(), 0);
        let mut staying: Option<(usize, Range<u64>)> = None;
        for (looks, (&(start, order), &(end, _))) in ends.iter().zip(&ends[1..]).enumerate() {
            if looks % LOOKS_IN_A_ROW == LOOKS_IN_A_ROW - 1 {
                yield_now().await;
            }
            here.begin_or_end(times[order], pieces[order].node, order);
            let Some(latest) = here.latest().filter(|_| start < end) else { continue };
            hidden += (end - start) * here.of_others_than(pieces[latest].node);
            match &mut staying {
                Some((staying, range)) if *staying == latest && range.end == start => range.end = end,
                _ => {
                    if let Some((order, range)) = staying.replace((latest, start..end)) {
                        self.push_part(&pieces[order], range);
                    }
                }
            }
        }
        if let Some((order, range)) = staying {
            self.push_part(&pieces[order], range);
        }
        hidden
    }

    /// Adds the part of a piece that covers `range` of the file.
    fn push_part(&mut self, piece: &Piece, range: Range<u64>) {
        let memory_offset = piece.memory_offset + (range.start - piece.file_offset);
        let (file_offset, bytes) = (range.start, range.end - range.start);
        self.push(Piece { node: piece.node, memory_offset, file_offset, bytes }, 0);
    }
}

/// Number of steps through the ends of pieces before a task yields to others.
const LOOKS_IN_A_ROW: usize = 16_384;

/// The pieces that cover the current byte, during a scan of a block.
#[derive(Default)]
struct CoveringPieces {
    /// Pieces by time, node and order. The last piece wins.
    pieces: BTreeSet<(u64, u32, usize)>,
    /// Number of pieces of each node.
    of_nodes: BTreeMap<u32, u64>,
}

impl CoveringPieces {
    /// Adds a piece, or removes it if it is present.
    fn begin_or_end(&mut self, time: u64, node: u32, order: usize) {
        let of_node = self.of_nodes.entry(node).or_default();
        if self.pieces.insert((time, node, order)) {
            *of_node += 1;
        } else {
            self.pieces.remove(&(time, node, order));
            *of_node -= 1;
        }
    }

    /// Returns the order number of the latest piece.
    fn latest(&self) -> Option<usize> {
        self.pieces.last().map(|&(_, _, order)| order)
    }

    /// Returns the number of pieces of other nodes.
    fn of_others_than(&self, node: u32) -> u64 {
        self.pieces.len() as u64 - self.of_nodes.get(&node).copied().unwrap_or_default()
    }
}

/// The entries of all members for one file, distributed to the blocks of some of its stripes.
#[derive(Debug, Default)]
pub(crate) struct PiecesByBlock {
    blocks: Vec<BlockPieces>,
    /// Indices of blocks, by stripe and offset within it.
    indices: BTreeMap<(u32, u64), usize>,
    /// Index of the block with the last piece: the next piece is usually in the same block.
    latest: usize,
}

impl PiecesByBlock {
    /// Adds a member's entries to the blocks of `stripes`. Fails if the entries have more pieces than `pieces` permits.
    pub(crate) async fn add(
        &mut self,
        striping: Striping,
        stripes: &BTreeSet<u32>,
        member: u32,
        stretches: &[ListedStretch],
        pieces: &mut PieceBudget,
    ) -> Result<(), DirectoryError> {
        let mut looks = 0;
        for stretch in stretches {
            stretch.check()?;
            for entry in stretch.entries() {
                looks += 1;
                if looks % LOOKS_IN_A_ROW == 0 {
                    yield_now().await;
                }
                let in_latest = self
                    .blocks
                    .get(self.latest)
                    .is_some_and(|block| block.has(entry.offset, entry.extent().end()));
                pieces.take(member, if in_latest { 1 } else { entry.block_count(striping) })?;
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

    /// Returns the blocks with their pieces in the order of the file, each with its stripe. If `latest_only`, keeps
    /// only the latest of overlapping pieces, and also returns the number of bytes that another member's write
    /// replaces.
    pub(crate) async fn into_blocks(mut self, latest_only: bool) -> (Vec<(u32, BlockPieces)>, u64) {
        let mut hidden = 0;
        for block in self.blocks.iter_mut().filter(|_| latest_only) {
            hidden += block.keep_latest().await;
        }
        let mut blocks: Vec<Option<BlockPieces>> = self.blocks.into_iter().map(Some).collect();
        let in_order = self.indices.into_iter();
        let in_order = in_order.filter_map(|((stripe, _), index)| Some((stripe, blocks[index].take()?)));
        (in_order.collect(), hidden)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use proptest::prelude::*;

    const BLOCK: u64 = 16;

    fn entry(offset: u64, bytes: u64, at: u64, time: u64) -> ListedStretch {
        ListedStretch::One(Entry { offset, bytes, at, time })
    }

    #[test]
    fn entries_with_too_large_offsets_or_too_many_pieces_are_rejected() {
        let striping = Striping::new(BLOCK, 2).unwrap();
        let add = |entry| {
            let mut pieces = PieceBudget::of(1);
            done(PiecesByBlock::default().add(striping, &BTreeSet::from([0]), 0, &[entry], &mut pieces))
        };
        assert!(matches!(add(entry(u64::MAX, 2, 0, 0)), Err(DirectoryError::Beyond { .. })));
        assert!(matches!(add(entry(0, 2, u64::MAX, 0)), Err(DirectoryError::Beyond { .. })));
        assert_eq!(add(entry(0, 1 << 40, 0, 0)), Err(DirectoryError::TooManyPieces));
    }

    /// Polls a future to completion. The future must wait only by yielding to other tasks.
    fn done<T>(work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            if let Poll::Ready(done) = work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                return done;
            }
        }
    }

    /// Many pieces that each cover all of a large block take no longer than the same number of small pieces.
    #[test]
    fn many_overlapping_pieces_leave_only_the_last_one() {
        const BLOCK: u64 = 1 << 20;
        let (striping, mut dealt) = (Striping::new(BLOCK, 1).unwrap(), PiecesByBlock::default());
        let count: u64 = 1 << 16;
        for member in 0..2 {
            let listed: Vec<ListedStretch> = (0..count / 2).map(|time| entry(0, BLOCK, 0, time)).collect();
            done(dealt.add(striping, &BTreeSet::from([0]), member, &listed, &mut PieceBudget::of(2)))
                .unwrap();
        }
        let (blocks, hidden) = done(dealt.into_blocks(true));
        let last = Piece { node: 1, memory_offset: 0, file_offset: 0, bytes: BLOCK };
        assert_eq!((blocks[0].1.pieces(), hidden), (vec![last], count / 2 * BLOCK));
    }

    proptest! {
        /// After the distribution each byte of the file comes from the memory of its latest writer.
        #[test]
        fn each_byte_comes_from_its_latest_write(
            entries in prop::collection::vec((0u32..3, 0u64..100, 1u64..40, 0u64..6), 0..30),
            stripes in 1u32..4,
        ) {
            let striping = Striping::new(BLOCK, stripes).unwrap();
            let (mut dealt, all, mut left) = (PiecesByBlock::default(), (0..stripes).collect(), PieceBudget::of(3));
            let mut expected: BTreeMap<u64, ((u64, u32, usize), u64)> = BTreeMap::new();
            for (order, &(member, offset, bytes, time)) in entries.iter().enumerate() {
                let at = 1000 * order as u64;
                done(dealt.add(striping, &all, member, &[entry(offset, bytes, at, time)], &mut left)).unwrap();
                for byte in 0..bytes {
                    let rank = (time, member, order);
                    let (latest, from) = expected.entry(offset + byte).or_insert((rank, at + byte));
                    if rank >= *latest {
                        (*latest, *from) = (rank, at + byte);
                    }
                }
            }
            let of_others = |byte: u64, (_, member, _): (u64, u32, usize)| {
                let has = |&&(other, offset, bytes, _): &&(u32, u64, u64, u64)| {
                    other != member && (offset..offset + bytes).contains(&byte)
                };
                entries.iter().filter(has).count() as u64
            };
            let given_way: u64 = expected.iter().map(|(&byte, &(rank, _))| of_others(byte, rank)).sum();
            let (blocks, hidden) = done(dealt.into_blocks(true));
            prop_assert_eq!(hidden, given_way);
            let mut found = BTreeMap::new();
            for (stripe, block) in &blocks {
                let place = striping.place_of(block.file_offset());
                prop_assert_eq!((place.stripe, place.offset), (*stripe, block.stripe_offset));
                let runs: u64 = done(block.runs()).iter().map(|run| run.end - run.start).sum();
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

        /// Without `latest_only` all pieces of all entries are kept.
        #[test]
        fn readers_get_all_requested_bytes(
            entries in prop::collection::vec((0u32..3, 0u64..100, 1u64..40), 0..30),
        ) {
            let striping = Striping::new(BLOCK, 2).unwrap();
            let (mut dealt, all, mut left) = (PiecesByBlock::default(), BTreeSet::from([0, 1]), PieceBudget::of(3));
            for &(member, offset, bytes) in &entries {
                done(dealt.add(striping, &all, member, &[entry(offset, bytes, 0, 0)], &mut left)).unwrap();
            }
            let (blocks, hidden) = done(dealt.into_blocks(false));
            let moved: u64 = blocks.iter().flat_map(|(_, block)| block.pieces()).map(|piece| piece.bytes).sum();
            prop_assert_eq!(moved, entries.iter().map(|(_, _, bytes)| bytes).sum::<u64>());
            prop_assert_eq!(hidden, 0);
        }
    }
}
