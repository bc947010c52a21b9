//! A selection: the bytes of a file that one process reads or writes, in ascending order.
//!
//! In its memory they lie one after the other, so a place in memory is the number of selected bytes before it.
//!
//! ```text
//!   a box of 2 rows and 3 columns of an array of 4 x 8 bytes
//!
//!     . . . . . . . .
//!     . . a b c . . .        file     ..........abc.....def...........
//!     . . d e f . . .                           |       |
//!     . . . . . . . .        memory             abc     def
//!
//!   = from byte 10 on, a run of 3 bytes every 8 bytes, until there are 6
//! ```
//!
//! A selection is a small tree of runs, repetitions and lists (`tree.rs`), whatever the size of the file: what a
//! process has of a block-cyclic array of three dimensions is seven nodes, and travels as some fifty bytes
//! (`wire.rs`), or is written as a word (`text.rs`).
//! Everything asked of it is answered by arithmetic along the depth of the tree; nothing walks from the beginning.
//!
//! [`View`] is for arrays dealt out to all nodes without gaps, and answers for all of them at once, whose a byte is.
//! A selection says what one process wants, gaps or not.

mod array;
mod error;
mod text;
mod tree;
mod walk;
mod wire;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use array::ArraySide;
pub use error::{SELECTION_LEVELS_MAX, SELECTION_NODES_MAX, SelectionError};
pub use walk::SelectedChunks;

use self::tree::{List, Tree, within_file};
use self::wire::RawSelection;
use crate::distribution::Dimension;
use crate::extent::{Extent, FILE_BYTES_MAX};
use crate::view::View;

/// Bytes of a file in ascending order, none of them twice, and none beyond [`FILE_BYTES_MAX`].
///
/// A copy shares the tree. Two selections that are equal select the same bytes; some that select the same bytes
/// are not equal, since they were described differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Where the first selected byte is; 0 if there is none.
    offset: u64,
    tree: Tree,
}

/// Making selections.
impl Selection {
    /// No bytes at all.
    pub const fn empty() -> Self {
        Selection { offset: 0, tree: Tree::EMPTY }
    }

    /// All bytes of an extent.
    pub fn contiguous(extent: Extent) -> Result<Self, SelectionError> {
        Selection::placed(extent.offset, Tree::run(extent.bytes)?)
    }

    /// `count` extents of equal length, `first` and others that begin `stride` bytes after each other.
    pub fn vector(first: Extent, count: u64, stride: u64) -> Result<Self, SelectionError> {
        Selection::contiguous(first)?.repeated(count, stride)
    }

    /// The bytes of these extents, which are in ascending order and do not overlap; empty ones may be anywhere.
    pub fn list(extents: &[Extent]) -> Result<Self, SelectionError> {
        let parts = extents.iter().map(|extent| Ok((extent.offset, Tree::run(extent.bytes)?)));
        Selection::listed(parts)
    }

    /// These selections, each moved on by the offset beside it, in ascending order and without overlap.
    pub fn joined(parts: &[(u64, Selection)]) -> Result<Self, SelectionError> {
        let parts = parts.iter().map(|(offset, part)| {
            let offset = offset.checked_add(part.offset).ok_or(SelectionError::TooLong)?;
            Ok((offset, part.tree.clone()))
        });
        Selection::listed(parts)
    }

    /// A box of an array of elements of `element_bytes` bytes; the sides are given outermost first.
    ///
    /// There may be any number of sides, also none: then it is one element.
    pub fn subarray(element_bytes: u64, sides: &[ArraySide]) -> Result<Self, SelectionError> {
        let (offset, tree) = array::of_box(element_bytes, sides)?;
        Selection::placed(offset, tree)
    }

    /// What node `node` has of an array of records of `record_bytes` bytes, dealt out to a grid of nodes.
    ///
    /// The dimensions are given outermost first and the nodes fill the grid in row-major order, as in a [`View`];
    /// but there may be any number of dimensions. It is what `MPI_Type_create_darray` makes with `MPI_ORDER_C`.
    pub fn dealt(record_bytes: u64, dimensions: &[Dimension], node: u32) -> Result<Self, SelectionError> {
        let (offset, tree) = array::dealt(record_bytes, dimensions, node)?;
        Selection::placed(offset, tree)
    }

    /// What `node` has of a view; empty if there is no such node.
    pub fn of_view(view: &View, node: u32) -> Self {
        let found = if view.node_bytes(node) == 0 {
            Ok(Selection::empty())
        } else if view.is_replicated() {
            Selection::contiguous(Extent::new(0, view.file_bytes()))
        } else {
            Selection::dealt(view.record_bytes(), view.dimensions(), node)
        };
        found.expect("a view has few dimensions and fits in a file")
    }

    /// The same `count` times, each `stride` bytes of the file after the one before.
    pub fn repeated(&self, count: u64, stride: u64) -> Result<Self, SelectionError> {
        let bytes = self.bytes().saturating_mul(count);
        Selection::placed(self.offset, Tree::repeat(self.tree.clone(), bytes, stride)?)
    }

    /// The same every `stride` bytes of the file as long as any file can be.
    ///
    /// So a file view of MPI-IO with displacement `d` and a type of extent `e`, of which `n` bytes are wanted from
    /// position `p` on, is `type.shifted(d)?.tiled(e)?.slice(p, n)?`.
    pub fn tiled(&self, stride: u64) -> Result<Self, SelectionError> {
        let room = FILE_BYTES_MAX - self.end();
        let count = room
            .checked_div(stride)
            .ok_or(SelectionError::RepetitionOverlaps { bytes: self.tree.end(), stride })?;
        self.repeated(count.saturating_add(1), stride)
    }

    /// The same, `bytes` bytes further on in the file.
    pub fn shifted(&self, bytes: u64) -> Result<Self, SelectionError> {
        let offset = self.offset.checked_add(bytes).ok_or(SelectionError::TooLong)?;
        Selection::placed(offset, self.tree.clone())
    }

    /// Of the selected bytes those from `position` on, `bytes` of them, or as many as there are.
    pub fn slice(&self, position: u64, bytes: u64) -> Result<Self, SelectionError> {
        if position >= self.bytes() || bytes == 0 {
            return Ok(Selection::empty());
        }
        let (offset, tree) = self.tree.part(position, position.saturating_add(bytes))?;
        Selection::placed(self.offset + offset, tree)
    }

    /// The selected bytes in an extent of the file.
    pub fn within(&self, extent: Extent) -> Result<Self, SelectionError> {
        let (first, end) = (self.bytes_before(extent.offset), self.bytes_before(extent.end()));
        self.slice(first, end - first)
    }

    fn listed(
        parts: impl Iterator<Item = Result<(u64, Tree), SelectionError>>,
    ) -> Result<Self, SelectionError> {
        let mut list = List::default();
        for part in parts {
            let (offset, tree) = part?;
            list.push(offset, tree)?;
        }
        let (offset, tree) = list.finish()?;
        Selection::placed(offset, tree)
    }

    fn placed(offset: u64, tree: Tree) -> Result<Self, SelectionError> {
        if tree.bytes() == 0 {
            return Ok(Selection::empty());
        }
        within_file(offset.checked_add(tree.end()))?;
        Ok(Selection { offset, tree })
    }
}

/// Asking a selection.
impl Selection {
    /// How many bytes are selected: the length of the memory.
    pub fn bytes(&self) -> u64 {
        self.tree.bytes()
    }

    /// Whether no byte is selected.
    pub fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// From the first selected byte to the last, with the gaps; empty, at 0, if there is none.
    pub fn span(&self) -> Extent {
        Extent::new(self.offset, self.tree.end())
    }

    /// The offset just after the last selected byte; 0 if there is none.
    pub fn end(&self) -> u64 {
        self.offset + self.tree.end()
    }

    /// How many extents are selected that do not touch each other: the number of [`Selection::chunks`].
    pub fn runs(&self) -> u64 {
        self.tree.runs()
    }

    /// How many runs, repetitions and lists it is made of: what it takes to keep it, and to send it.
    pub fn nodes(&self) -> u64 {
        self.tree.nodes()
    }

    /// Where the first selected byte is at an offset of the file or beyond it, if there is one.
    pub fn next_from(&self, offset: u64) -> Option<u64> {
        let before = self.bytes_before(offset);
        (before < self.bytes()).then(|| self.offset + self.tree.offset_of(before))
    }

    /// How many selected bytes lie before an offset of the file: the place in memory of the byte there, or else of
    /// the next selected byte.
    pub fn bytes_before(&self, offset: u64) -> u64 {
        self.tree.bytes_before(offset.saturating_sub(self.offset))
    }

    /// The selected bytes as chunks, in ascending order, each as long as it can be.
    pub fn chunks(&self) -> SelectedChunks<'_> {
        SelectedChunks::new(&self.tree, self.offset, 0, self.bytes())
    }

    /// The selected bytes in an extent of the file as chunks, in ascending order, each as long as it can be there.
    ///
    /// Takes time proportional to the number of chunks and the depth of the tree, wherever the extent is.
    pub fn pieces_in(&self, extent: Extent) -> SelectedChunks<'_> {
        let (first, end) = (self.bytes_before(extent.offset), self.bytes_before(extent.end()));
        SelectedChunks::new(&self.tree, self.offset, first, end)
    }
}

impl Serialize for Selection {
    /// Fails if there are more than [`SELECTION_NODES_MAX`] nodes.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawSelection::of(self.offset, &self.tree).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Selection {
    /// Whatever was sent: it is checked, and fails with the message of a [`SelectionError`].
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawSelection::deserialize(deserializer)?;
        raw.selection().map_err(serde::de::Error::custom)
    }
}
