//! A selection: the bytes of a file that one process reads or writes, in ascending order.
//!
//! In memory the selected bytes are adjacent, so the position of a byte in memory is the number of selected bytes
//! before it.
//!
//! ```text
//!   a box of 2 rows and 3 columns of an array of 4 x 8 bytes
//!
//!     . . . . . . . .
//!     . . a b c . . .        file     ..........abc.....def...........
//!     . . d e f . . .                           |       |
//!     . . . . . . . .        memory             abc     def
//!
//!   = from byte 10 on, a run of 3 bytes every 8 bytes, 6 bytes in total
//! ```
//!
//! A selection is a small tree of runs, repetitions and lists (`tree.rs`), whatever the size of the file. The part of a
//! process in a block-cyclic array of three dimensions is a tree of seven nodes. A message encodes this tree in about
//! fifty bytes (`wire.rs`); it can also be written as one word of text (`text.rs`). Every query computes its result
//! along one path down the tree; no query walks through the selected bytes from the beginning.
//!
//! A [`View`] describes an array distributed over all nodes without gaps, and finds the owner of any byte. A selection
//! describes the bytes that one process requests, with or without gaps.

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

/// Bytes of a file in ascending order: each byte at most once, and no byte beyond [`FILE_BYTES_MAX`].
///
/// A copy shares the tree. Equal selections select the same bytes. The converse does not hold, since the same bytes can
/// be described differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Offset of the first selected byte; 0 if the selection is empty.
    offset: u64,
    tree: Tree,
}

/// Construction.
impl Selection {
    /// Returns the empty selection.
    pub const fn empty() -> Self {
        Selection { offset: 0, tree: Tree::EMPTY }
    }

    /// Returns all bytes of an extent.
    pub fn contiguous(extent: Extent) -> Result<Self, SelectionError> {
        Selection::placed(extent.offset, Tree::run(extent.bytes)?)
    }

    /// Returns `count` extents of equal length: the first is `first`, and each next one begins `stride` bytes later.
    pub fn vector(first: Extent, count: u64, stride: u64) -> Result<Self, SelectionError> {
        Selection::contiguous(first)?.repeated(count, stride)
    }

    /// Returns the bytes of these extents, which must be in ascending order and not overlap. Empty extents can be at
    /// any position.
    pub fn list(extents: &[Extent]) -> Result<Self, SelectionError> {
        let parts = extents.iter().map(|extent| Ok((extent.offset, Tree::run(extent.bytes)?)));
        Selection::listed(parts)
    }

    /// Joins selections after moving each by its offset. The moved selections must be in ascending order and not
    /// overlap.
    pub fn joined(parts: &[(u64, Selection)]) -> Result<Self, SelectionError> {
        let parts = parts.iter().map(|(offset, part)| {
            let offset = offset.checked_add(part.offset).ok_or(SelectionError::TooLong)?;
            Ok((offset, part.tree.clone()))
        });
        Selection::listed(parts)
    }

    /// Returns a box in an array of elements of `element_bytes` bytes. `sides` begins with the outermost side.
    ///
    /// Any number of sides is possible. With no side the box is one element.
    pub fn subarray(element_bytes: u64, sides: &[ArraySide]) -> Result<Self, SelectionError> {
        let (offset, tree) = array::of_box(element_bytes, sides)?;
        Selection::placed(offset, tree)
    }

    /// Returns the part of node `node` in an array of records of `record_bytes` bytes, distributed over a grid of
    /// nodes.
    ///
    /// As in a [`View`], `dimensions` begins with the outermost dimension, and the nodes fill the grid in row-major
    /// order. Any number of dimensions is possible. The result equals the type made by `MPI_Type_create_darray` with
    /// `MPI_ORDER_C`.
    pub fn dealt(record_bytes: u64, dimensions: &[Dimension], node: u32) -> Result<Self, SelectionError> {
        let (offset, tree) = array::dealt(record_bytes, dimensions, node)?;
        Selection::placed(offset, tree)
    }

    /// Returns the part of `node` in a view; empty if the node does not exist.
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

    /// Returns `count` copies of the selection, each `stride` bytes of the file after the previous one.
    pub fn repeated(&self, count: u64, stride: u64) -> Result<Self, SelectionError> {
        let bytes = self.bytes().saturating_mul(count);
        Selection::placed(self.offset, Tree::repeat(self.tree.clone(), bytes, stride)?)
    }

    /// Repeats the selection every `stride` bytes up to the largest file offset.
    ///
    /// For a file view of MPI-IO with displacement `d` and a type of extent `e`, the `n` bytes from position `p` on are
    /// `type.shifted(d)?.tiled(e)?.slice(p, n)?`.
    pub fn tiled(&self, stride: u64) -> Result<Self, SelectionError> {
        let room = FILE_BYTES_MAX - self.end();
        let count = room
            .checked_div(stride)
            .ok_or(SelectionError::RepetitionOverlaps { bytes: self.tree.end(), stride })?;
        self.repeated(count.saturating_add(1), stride)
    }

    /// Returns the selection moved by `bytes` bytes in the file.
    pub fn shifted(&self, bytes: u64) -> Result<Self, SelectionError> {
        let offset = self.offset.checked_add(bytes).ok_or(SelectionError::TooLong)?;
        Selection::placed(offset, self.tree.clone())
    }

    /// Returns `bytes` selected bytes from position `position` on, or fewer if the selection ends before.
    pub fn slice(&self, position: u64, bytes: u64) -> Result<Self, SelectionError> {
        if position >= self.bytes() || bytes == 0 {
            return Ok(Selection::empty());
        }
        let (offset, tree) = self.tree.part(position, position.saturating_add(bytes))?;
        Selection::placed(self.offset + offset, tree)
    }

    /// Returns the selected bytes in an extent of the file.
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

/// Queries.
impl Selection {
    /// Returns the number of selected bytes: the length in memory.
    pub fn bytes(&self) -> u64 {
        self.tree.bytes()
    }

    /// True if no byte is selected.
    pub fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// Returns the extent from the first selected byte to the last, including gaps. If no byte is selected, the extent
    /// is empty, at offset 0.
    pub fn span(&self) -> Extent {
        Extent::new(self.offset, self.tree.end())
    }

    /// Returns the offset just after the last selected byte; 0 if no byte is selected.
    pub fn end(&self) -> u64 {
        self.offset + self.tree.end()
    }

    /// Returns the number of maximal contiguous extents: the number of [`Selection::chunks`].
    pub fn runs(&self) -> u64 {
        self.tree.runs()
    }

    /// Returns the number of runs, repetitions and lists in the tree. The memory and message size are proportional to
    /// it.
    pub fn nodes(&self) -> u64 {
        self.tree.nodes()
    }

    /// Returns the offset of the first selected byte at or after a file offset; `None` if there is no such byte.
    pub fn next_from(&self, offset: u64) -> Option<u64> {
        let before = self.bytes_before(offset);
        (before < self.bytes()).then(|| self.offset + self.tree.offset_of(before))
    }

    /// Returns the number of selected bytes before a file offset: the position in memory of the first selected byte at
    /// or after this offset.
    pub fn bytes_before(&self, offset: u64) -> u64 {
        self.tree.bytes_before(offset.saturating_sub(self.offset))
    }

    /// Returns the selected bytes as chunks, in ascending order, each as long as possible.
    pub fn chunks(&self) -> SelectedChunks<'_> {
        SelectedChunks::new(&self.tree, self.offset, 0, self.bytes())
    }

    /// Returns the selected bytes in an extent of the file as chunks, in ascending order, each as long as possible
    /// within the extent.
    ///
    /// Takes time proportional to the number of chunks and the depth of the tree, wherever the extent is.
    pub fn pieces_in(&self, extent: Extent) -> SelectedChunks<'_> {
        let (first, end) = (self.bytes_before(extent.offset), self.bytes_before(extent.end()));
        SelectedChunks::new(&self.tree, self.offset, first, end)
    }
}

impl Serialize for Selection {
    /// Fails if the tree has more than [`SELECTION_NODES_MAX`] nodes.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawSelection::of(self.offset, &self.tree).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Selection {
    /// Checks the received selection. If it is invalid, fails with the message of a [`SelectionError`].
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = RawSelection::deserialize(deserializer)?;
        raw.selection().map_err(serde::de::Error::custom)
    }
}
