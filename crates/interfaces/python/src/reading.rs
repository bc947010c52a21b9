//! Reads with several pieces in flight, directly into the target memory.

use std::collections::VecDeque;

use layout::Extent;
use node::{Handle, LentPage, Pending, UncachedReads};

use crate::error::FileResult;
use crate::fresh_bytes::Filling;
use crate::signals::Signals;

/// Maximum size of a piece in bytes.
const PIECE_BYTES: u64 = 1 << 20;

/// Maximum numbers of bytes and pieces in flight, large enough to keep all agents busy.
const UNDER_WAY_BYTES: u64 = 8 * PIECE_BYTES;
const PIECES: usize = 64;

/// Returns the extent from `start` to `end`, as in a Python slice: negative values count from the end of `bytes`, and
/// missing values mean the beginning or the end.
pub(crate) fn extent(start: Option<i64>, end: Option<i64>, bytes: u64) -> Extent {
    let place = |index: i64| match u64::try_from(index) {
        Ok(index) => index.min(bytes),
        Err(_) => bytes.saturating_sub(index.unsigned_abs()),
    };
    let (start, end) = (start.map_or(0, place), end.map_or(bytes, place));
    Extent::new(start, end.saturating_sub(start))
}

/// Pieces of a file in the requested order, some of them in flight.
pub(crate) struct PieceReader<'a> {
    handle: &'a Handle,
    /// Decides which pieces bypass the page cache; `None` if no piece does.
    lone: Option<UncachedReads>,
    rest: Box<dyn Iterator<Item = Extent> + Send + 'a>,
    under_way: VecDeque<(Extent, Pending<Vec<LentPage>>)>,
    under_way_bytes: u64,
    signals: Signals,
}

impl<'a> PieceReader<'a> {
    /// Returns a reader of an extent of a file through the page cache.
    pub(crate) fn of(handle: &'a Handle, extent: Extent) -> Self {
        Self::new(handle, None, [extent].into_iter())
    }

    /// Returns a reader of these ranges of a file in sequence, for callers that will not read them again.
    pub(crate) fn of_ranges(handle: &'a Handle, ranges: &'a [Extent]) -> Self {
        Self::new(handle, Some(UncachedReads::among(ranges, handle.page_bytes())), ranges.iter().copied())
    }

    fn new(
        handle: &'a Handle,
        lone: Option<UncachedReads>,
        extents: impl Iterator<Item = Extent> + Send + 'a,
    ) -> Self {
        let rest = Box::new(extents.flat_map(pieces));
        let (under_way, signals) = (VecDeque::new(), Signals::new());
        PieceReader { handle, lone, rest, under_way, under_way_bytes: 0, signals }
    }

    /// Returns the next piece as pages and parts of pages, truncated at the end of the file. Returns `None` after the
    /// last piece.
    pub(crate) fn next(&mut self) -> FileResult<Option<Vec<LentPage>>> {
        while self.under_way.len() < PIECES
            && self.under_way_bytes < UNDER_WAY_BYTES
            && let Some(piece) = self.rest.next()
        {
            self.under_way_bytes += piece.bytes;
            self.under_way.push_back((piece, self.begin(piece)));
        }
        let Some((piece, pending)) = self.under_way.pop_front() else { return Ok(None) };
        self.under_way_bytes -= piece.bytes;
        self.signals.wait(pending).map(Some)
    }

    fn begin(&self, piece: Extent) -> Pending<Vec<LentPage>> {
        match &self.lone {
            Some(lone) if lone.has(piece) => self.handle.begin_read_alone(piece.offset, piece.bytes),
            _ => self.handle.begin_read(piece.offset, piece.bytes),
        }
    }

    /// Fills `into` with the next extent, up to the end of the file.
    pub(crate) fn fill(&mut self, into: &mut Filling<'_>, extent: Extent) -> FileResult<()> {
        let mut is_over = false;
        for piece in pieces(extent) {
            let pages = self.next()?.unwrap_or_default();
            // After a short piece, ignore the rest: it is beyond the end of the file.
            for page in pages.iter().filter(|_| !is_over) {
                into.push(page.as_slice());
            }
            is_over |= (into.filled() as u64) < piece.end() - extent.offset;
        }
        Ok(())
    }
}

/// Returns the pieces of an extent. They end at multiples of their size, so that no fully requested page is split.
fn pieces(extent: Extent) -> impl Iterator<Item = Extent> + Send {
    extent.parts(PIECE_BYTES)
}
