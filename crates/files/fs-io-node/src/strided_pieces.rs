//! Runs of a member's pieces at equal distances, such as the small records in a block.
//!
//! ```text
//!  file     ..ab......cd......ef......gh......     4 pieces of 2 bytes, 8 bytes apart
//!  memory   abcdefgh                               contiguous: requested as one piece
//! ```

use std::iter;

use layout::Piece;

use crate::exchange::Exchanged;

/// Pieces of equal length at equal distances in the file, contiguous in a member's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PieceRun {
    /// First piece of the run.
    pub(crate) first: Piece,
    /// Distance in bytes of the file from the start of one piece to the start of the next; unused for a
    /// single piece.
    pub(crate) stride: u64,
    /// Number of pieces.
    pub(crate) count: u64,
}

impl From<Piece> for PieceRun {
    fn from(first: Piece) -> Self {
        PieceRun { first, stride: 0, count: 1 }
    }
}

impl Exchanged for PieceRun {
    fn member(&self) -> u32 {
        self.first.node
    }

    fn memory_offset(&self) -> u64 {
        self.first.memory_offset
    }

    /// Returns the number of bytes of all pieces together.
    fn bytes(&self) -> u64 {
        self.first.bytes * self.count
    }
}

impl PieceRun {
    /// Appends a piece if it continues the run. Returns true if so.
    pub(crate) fn extend(&mut self, piece: &Piece) -> bool {
        let Piece { node, memory_offset, file_offset, bytes } = self.first;
        let distance = piece.file_offset.checked_sub(file_offset);
        let goes_on = piece.node == node
            && piece.bytes == bytes
            && piece.memory_offset == memory_offset + self.bytes()
            && match self.count {
                1 => distance.is_some_and(|distance| distance >= bytes),
                count => distance == Some(self.stride * count),
            };
        if goes_on && self.count == 1 {
            self.stride = piece.file_offset - file_offset;
        }
        self.count += u64::from(goes_on);
        goes_on
    }

    /// Returns the pieces, one by one.
    pub(crate) fn pieces(self) -> impl Iterator<Item = Piece> {
        let PieceRun { first, stride, count } = self;
        let next = move |piece: &Piece| {
            let (memory_offset, file_offset) =
                (piece.memory_offset + first.bytes, piece.file_offset + stride);
            Some(Piece { memory_offset, file_offset, ..*piece })
        };
        iter::successors(Some(first), next).take(count as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn piece(memory_offset: u64, file_offset: u64) -> Piece {
        Piece { node: 0, memory_offset, file_offset, bytes: 4 }
    }

    #[test]
    fn overlapping_or_descending_pieces_form_no_run() {
        for second in [piece(4, 103), piece(4, 90), piece(5, 110), Piece { bytes: 3, ..piece(4, 110) }] {
            assert!(!PieceRun::from(piece(0, 100)).extend(&second), "{second:?}");
        }
        assert!(!PieceRun::from(piece(0, 100)).extend(&Piece { node: 1, ..piece(4, 110) }));
    }

    proptest! {
        /// If pieces are combined into runs, the runs return the same pieces.
        #[test]
        fn runs_contain_the_same_pieces(places in prop::collection::vec((0u64..3, 0u64..4), 1..30)) {
            let (mut runs, mut pieces): (Vec<PieceRun>, Vec<Piece>) = (Vec::new(), Vec::new());
            let (mut at, mut offset) = (0, 0);
            for (skipped, distance) in places {
                let next = piece(at + skipped / 2, offset);
                pieces.push(next);
                if !runs.last_mut().is_some_and(|run| run.extend(&next)) {
                    runs.push(next.into());
                }
                (at, offset) = (next.memory_offset + 4, offset + 4 * distance);
            }
            prop_assert_eq!(runs.iter().flat_map(|run| run.pieces()).collect::<Vec<_>>(), pieces);
        }
    }
}
