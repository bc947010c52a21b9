//! The members' selections of a block, or of any extent no longer than a block. Their pieces are packed and
//! unpacked at the node with the block: at an I/O node or, in two-phase I/O, at the compute node that moves
//! it.
//!
//! ```text
//!  block         a a . b b b a a . b b . a           a: member 0, b: member 1, .: not selected
//!  Memput to 0   aaaaa      Memput to 1   bbbbb      one range of each memory, whatever the pieces
//! ```
//!
//! The bytes that a member has of a block are contiguous in its memory, since they lie there in the order of
//! the file. So a message names one range, and the member copies once.

use std::iter;
use std::mem;
use std::ops::Range;
use std::rc::Rc;

use layout::{Chunk, Extent, Selection};
use machine::{Buf, Machine, Payload, Work, yield_now};

use crate::coverage::Coverage;
use crate::error::Result;
use crate::exchange::{Exchange, Exchanged};

/// Limit of blocks of packed data not yet put, in case members read the same bytes.
const PACKED_BLOCKS: u64 = 4;

/// Number of steps through parts and pieces before this task yields to others.
const LOOKS_IN_A_ROW: u64 = 16_384;

/// Error: a member's parts overlap.
#[derive(Debug, PartialEq, Eq)]
pub struct Overlap {
    /// Index of the member in the group.
    pub member: u32,
}

/// A selection, or a part of one, with its place in memory.
pub struct Selector {
    /// Index of the member in the group.
    pub member: u32,
    /// Offset in bytes of the selected bytes in the member's memory.
    pub at: u64,
    /// The selected bytes of the file.
    pub selection: Selection,
}

/// Returns the offset of the first selected byte in the block at offset `start` of the file. If the block has
/// no such byte, returns the first offset after it.
pub fn nearest(selectors: &[Selector], start: u64, block_bytes: u64) -> Option<u64> {
    let (mut nearest, end) = (None, start.saturating_add(block_bytes));
    for selector in selectors {
        let found = selector.selection.next_from(start);
        if found.is_some_and(|offset| offset < end) {
            return found;
        }
        nearest = nearest.into_iter().chain(found).min();
    }
    nearest
}

impl Selector {
    /// Returns the selected part of an extent, if not empty.
    pub fn part_of(&self, extent: Extent) -> Option<MemberPart<'_>> {
        let first = self.selection.bytes_before(extent.offset);
        let bytes = self.selection.bytes_before(extent.end()) - first;
        (bytes > 0).then_some(MemberPart { selector: self, extent, first, bytes })
    }
}

/// The selections within a block.
pub struct SelectedParts {
    /// All selections.
    pub selectors: Rc<[Selector]>,
    /// The block.
    pub extent: Extent,
}

impl SelectedParts {
    /// Returns each selection's part of the block.
    fn parts(&self) -> impl Iterator<Item = MemberPart<'_>> {
        self.selectors.iter().filter_map(|selector| selector.part_of(self.extent))
    }

    /// Returns the selected bytes of the block as ranges of the block. Fails if the parts of one member have
    /// more bytes than the block: otherwise the number of pieces would be unlimited.
    pub async fn runs(&self) -> std::result::Result<Vec<Range<u64>>, Overlap> {
        let mut coverage = Coverage::none_of(self.extent.bytes);
        let (mut looks, mut of_member) = (0, (0, 0));
        for selector in &*self.selectors {
            let part = selector.part_of(self.extent);
            let pieces = part.iter().flat_map(MemberPart::places);
            let bytes = part.as_ref().map_or(0, |part| part.bytes);
            let before = if of_member.0 == selector.member { of_member.1 } else { 0 };
            of_member = (selector.member, before + bytes);
            if of_member.1 > self.extent.bytes {
                return Err(Overlap { member: selector.member });
            }
            for (start, bytes) in iter::once((0, 0)).chain(pieces) {
                looks += 1;
                if looks % LOOKS_IN_A_ROW == 0 {
                    yield_now().await;
                }
                coverage.insert(start..start + bytes);
            }
        }
        Ok(coverage.runs())
    }

    /// Puts each member's selected part of the block in `buffer` into that member's memory.
    pub async fn put<M: Machine>(&self, exchange: &Rc<Exchange<M>>, buffer: &Buf) -> Result<()> {
        let data = |packed: &Packed<'_>| packed.1.clone();
        let (mut all_packed, mut bytes) = (Vec::new(), 0);
        for part in self.parts() {
            let (data_of_part, pieces) = part.gather(buffer);
            exchange.machine().compute(Work::UnpackPieces { pieces }).await;
            exchange.machine().compute(Work::PackData { bytes: part.bytes }).await;
            yield_now().await;
            bytes += part.bytes;
            all_packed.push(Packed(part, data_of_part));
            if bytes > PACKED_BLOCKS * self.extent.bytes {
                exchange.put(mem::take(&mut all_packed).into_iter(), data).await?;
                bytes = 0;
            }
        }
        exchange.put(all_packed.into_iter(), data).await
    }

    /// Gets each member's part of several blocks from that member's memory, into the buffer of the same
    /// index.
    pub async fn get<M: Machine>(
        blocks: &[&SelectedParts],
        exchange: &Exchange<M>,
        buffers: &mut [Buf],
    ) -> Result<()> {
        let (mut pieces, mut bytes) = (0, 0);
        let parts = (0..)
            .zip(blocks)
            .flat_map(|(block, parts)| parts.parts().map(move |part| PartOfBlock { block, part }));
        let place = |PartOfBlock { block, part }: &PartOfBlock<'_>, data: &Payload| {
            pieces += part.scatter(data, &mut buffers[*block]);
            bytes += part.bytes;
        };
        exchange.get(parts, place).await?;
        exchange.machine().compute(Work::UnpackPieces { pieces }).await;
        exchange.machine().compute(Work::PackData { bytes }).await;
        Ok(())
    }
}

/// One selection's part of a block.
pub struct MemberPart<'a> {
    selector: &'a Selector,
    extent: Extent,
    /// Number of selected bytes before the block, and within it.
    first: u64,
    bytes: u64,
}

impl MemberPart<'_> {
    /// Returns the pieces as pairs of offset within the block and length.
    fn places(&self) -> impl Iterator<Item = (u64, u64)> {
        let start = self.extent.offset;
        let chunks = self.selector.selection.pieces_in(self.extent);
        chunks.map(move |Chunk { file_offset, bytes, .. }| (file_offset - start, bytes))
    }

    /// Packs the pieces from a buffer with the block. Returns the data and the number of pieces.
    pub fn gather(&self, buffer: &Buf) -> (Payload, u64) {
        let (first, bytes) = self.places().next().expect("it has some bytes");
        if bytes == self.bytes {
            return (buffer.slice(first..first + bytes), 1);
        }
        let mut pieces = 0;
        let data = buffer.gather(self.places().inspect(|_| pieces += 1), self.bytes);
        (data, pieces)
    }

    /// Unpacks data into the pieces of a buffer with the block. Returns the number of pieces.
    pub fn scatter(&self, data: &Payload, buffer: &mut Buf) -> u64 {
        let mut pieces = 0;
        buffer.scatter(self.places().inspect(|_| pieces += 1), data);
        pieces
    }
}

impl Exchanged for MemberPart<'_> {
    fn member(&self) -> u32 {
        self.selector.member
    }

    fn memory_offset(&self) -> u64 {
        self.selector.at + self.first
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// One selection's part of one of several blocks.
struct PartOfBlock<'a> {
    block: usize,
    part: MemberPart<'a>,
}

impl Exchanged for PartOfBlock<'_> {
    fn member(&self) -> u32 {
        self.part.member()
    }

    fn memory_offset(&self) -> u64 {
        self.part.memory_offset()
    }

    fn bytes(&self) -> u64 {
        self.part.bytes
    }
}

/// One selection's part of a block, packed.
struct Packed<'a>(MemberPart<'a>, Payload);

impl Exchanged for Packed<'_> {
    fn member(&self) -> u32 {
        self.0.member()
    }

    fn memory_offset(&self) -> u64 {
        self.0.memory_offset()
    }

    fn bytes(&self) -> u64 {
        self.0.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Returns the number of times that a scan of a block yields, and the number of ranges found.
    fn runs_of(selections: Vec<(u32, Selection)>, bytes: u64) -> (u64, std::result::Result<usize, Overlap>) {
        let selectors =
            selections.into_iter().map(|(member, selection)| Selector { member, at: 0, selection });
        let parts = SelectedParts { selectors: selectors.collect(), extent: Extent::new(0, bytes) };
        let (mut runs, mut times) = (pin!(parts.runs()), 0);
        loop {
            match runs.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(runs) => return (times, runs.map(|runs| runs.len())),
                Poll::Pending => times += 1,
            }
        }
    }

    #[test]
    fn a_scan_of_many_pieces_yields_and_visits_each_piece_once() {
        const BYTES: u64 = 1 << 20;
        let alternate = |first| Selection::vector(Extent::new(first, 1), BYTES / 2, 2).expect("a vector");
        let (times, runs) = runs_of((0..8).map(|member| (member, alternate(0))).collect(), BYTES);
        assert_eq!((times, runs), (4 * BYTES / LOOKS_IN_A_ROW, Ok(BYTES as usize / 2)));
        assert_eq!(runs_of(vec![(3, alternate(0)), (3, alternate(1))], BYTES).1, Ok(1));
        let three = vec![(3, alternate(0)), (3, alternate(1)), (3, alternate(0))];
        assert_eq!(runs_of(three, BYTES).1, Err(Overlap { member: 3 }));
        let beyond = Selection::vector(Extent::new(BYTES, 1), 2, 2).expect("a vector");
        let (times, runs) = runs_of((0..100_000).map(|member| (member, beyond.clone())).collect(), BYTES);
        assert!(times >= 100_000 / LOOKS_IN_A_ROW && runs == Ok(0));
    }
}
