//! Reading with several pieces under way, straight into the memory where the bytes are wanted.

use std::collections::VecDeque;

use layout::Extent;
use node::{Handle, LentPage, Pending, Result};

/// A piece is not longer than this.
const PIECE_BYTES: u64 = 1 << 20;

/// How many pieces are under way: enough for all agents to have something to do.
const PIECES: usize = 8;

/// The bytes from `start` to `end`, as in a slice of Python: what is negative is counted from the end of `bytes`, and
/// what is missing is the beginning or the end.
pub(crate) fn extent(start: Option<i64>, end: Option<i64>, bytes: u64) -> Extent {
    let place = |index: i64| match u64::try_from(index) {
        Ok(index) => index.min(bytes),
        Err(_) => bytes.saturating_sub(index.unsigned_abs()),
    };
    let (start, end) = (start.map_or(0, place), end.map_or(bytes, place));
    Extent::new(start, end.saturating_sub(start))
}

/// Pieces of a file, in the order in which they are wanted, some of them under way.
pub(crate) struct PieceReader<'a> {
    handle: &'a Handle,
    rest: Box<dyn Iterator<Item = Extent> + Send + 'a>,
    under_way: VecDeque<Pending<Vec<LentPage>>>,
}

impl<'a> PieceReader<'a> {
    /// Reads these extents of a file, one after the other.
    pub(crate) fn of(handle: &'a Handle, extents: impl Iterator<Item = Extent> + Send + 'a) -> Self {
        PieceReader { handle, rest: Box::new(extents.flat_map(pieces)), under_way: VecDeque::new() }
    }

    /// The next piece, in pages and parts of pages: less of it at the end of the file. None after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<LentPage>>> {
        while self.under_way.len() < PIECES
            && let Some(piece) = self.rest.next()
        {
            self.under_way.push_back(self.handle.begin_read(piece.offset, piece.bytes));
        }
        self.under_way.pop_front().map(Pending::wait).transpose()
    }

    /// Fills `into` with the next extent, which is as long; the number of bytes that there were.
    pub(crate) fn fill(&mut self, into: &mut [u8]) -> Result<usize> {
        let (mut filled, mut is_over) = (0, false);
        for piece in pieces(Extent::new(0, into.len() as u64)) {
            let pages = self.next()?.unwrap_or_default();
            // What comes after a piece that ends early is beyond the end.
            for page in pages.iter().filter(|_| !is_over) {
                let bytes = page.as_slice();
                into[filled..filled + bytes.len()].copy_from_slice(bytes);
                filled += bytes.len();
            }
            is_over |= (filled as u64) < piece.offset + piece.bytes;
        }
        Ok(filled)
    }
}

/// The pieces of an extent.
fn pieces(extent: Extent) -> impl Iterator<Item = Extent> + Send {
    let count = extent.bytes.div_ceil(PIECE_BYTES);
    (0..count).map(move |piece| {
        let begin = piece * PIECE_BYTES;
        Extent::new(extent.offset + begin, PIECE_BYTES.min(extent.bytes - begin))
    })
}
