//! Owners of the bytes of an extent of the file, as pieces: contiguous in the file and in one node's memory.
//!
//! An I/O node uses the pieces to scatter a block to the compute nodes, or to gather it from them.
//!
//! ```text
//!   extent of the file      |  n0  | n1 | n2 | n3 | n0 | n1 |     pieces, in file order
//!                              |     |    |    |    |    |
//!   place in that memory      16     0    0    0    24   8
//! ```

use std::iter::FusedIterator;

use crate::axis::{Axes, AxisPosition};
use crate::extent::Extent;
use crate::limits::DIMENSIONS_MAX;

/// Bytes contiguous in the file and in the memory of their node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// The compute node.
    pub node: u32,
    /// Offset of the first byte in that node's memory, in bytes.
    pub memory_offset: u64,
    /// Offset of the first byte in the file, in bytes.
    pub file_offset: u64,
    /// Length in bytes; at least one.
    pub bytes: u64,
}

/// The pieces of an extent, each as long as possible within it.
///
/// The pieces are in file order and cover the extent once. If every node has the whole file, there is one piece for
/// each node instead, in the order of nodes. The iterator owns its state and does not allocate.
#[derive(Clone, Debug)]
pub struct Pieces(State);

#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a box would be an allocation for every extent asked about")]
enum State {
    DistributionPass(DistributionPass),
    Copies(Copies),
}

impl Pieces {
    /// Returns the pieces of an extent, which must lie within the file, of an array distributed over nodes.
    pub(crate) fn dealt(axes: Axes, extent: Extent) -> Self {
        Pieces(State::DistributionPass(DistributionPass::new(axes, extent)))
    }

    /// Returns one piece for each node: the whole extent.
    pub(crate) fn copies(extent: Extent, nodes: u32) -> Self {
        let nodes = if extent.is_empty() { 0 } else { nodes };
        Pieces(State::Copies(Copies { extent, node: 0, nodes }))
    }
}

impl Iterator for Pieces {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        match &mut self.0 {
            State::DistributionPass(dealt) => dealt.next(),
            State::Copies(copies) => copies.next(),
        }
    }
}

impl FusedIterator for Pieces {}

/// A pass along the file, run by run.
#[derive(Clone, Debug)]
struct DistributionPass {
    axes: Axes,
    file_offset: u64,
    end: u64,
    /// Current position on each axis, innermost first.
    spots: [AxisPosition; DIMENSIONS_MAX],
    /// Owner of the run, without its part of the innermost axis.
    row_node: u32,
    /// Number of rows of this node before the current row.
    row_local: u64,
}

impl DistributionPass {
    fn new(axes: Axes, extent: Extent) -> Self {
        let mut spots = [AxisPosition::default(); DIMENSIONS_MAX];
        for (spot, axis) in spots.iter_mut().zip(axes.all()) {
            let index = extent.offset / axis.index_bytes % axis.length;
            *spot = AxisPosition::at(axis, index);
        }
        let (file_offset, end) = (extent.offset, extent.end());
        let mut dealt = DistributionPass { axes, file_offset, end, spots, row_node: 0, row_local: 0 };
        dealt.find_row();
        dealt
    }

    #[inline]
    fn node(&self) -> u32 {
        self.row_node + self.spots[0].part * self.axes.inner().node_stride
    }

    #[inline]
    fn memory_offset(&self) -> u64 {
        let spot = &self.spots[0];
        self.row_local * self.axes.inner().share(spot.part) + spot.local
    }

    /// Advances past the next run, or past its part within the extent. Returns the number of bytes passed.
    #[inline]
    fn take_run(&mut self) -> u64 {
        let bytes = self.spots[0].left.min(self.end - self.file_offset);
        self.file_offset += bytes;
        if self.spots[0].advance(self.axes.inner(), bytes) {
            self.next_row();
        }
        bytes
    }

    fn next_row(&mut self) {
        for (spot, axis) in self.spots[1..].iter_mut().zip(self.axes.outer()) {
            if !spot.advance(axis, 1) {
                break;
            }
        }
        self.find_row();
    }

    fn find_row(&mut self) {
        (self.row_node, self.row_local) = (0, 0);
        for (spot, axis) in self.spots[1..].iter().zip(self.axes.outer()).rev() {
            self.row_node += spot.part * axis.node_stride;
            self.row_local = self.row_local * axis.share(spot.part) + spot.local;
        }
    }

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        if self.file_offset == self.end {
            return None;
        }
        let (node, memory_offset) = (self.node(), self.memory_offset());
        let file_offset = self.file_offset;
        let mut bytes = self.take_run();
        // A node stores its bytes in file order, so bytes adjacent in the file are adjacent in its memory. This happens
        // only where a row ends, and at most once, as with chunks.
        if self.node() == node && self.file_offset != self.end {
            bytes += self.take_run();
        }
        Some(Piece { node, memory_offset, file_offset, bytes })
    }
}

/// The same extent for each node in turn.
#[derive(Clone, Debug)]
struct Copies {
    extent: Extent,
    node: u32,
    nodes: u32,
}

impl Copies {
    fn next(&mut self) -> Option<Piece> {
        if self.node == self.nodes {
            return None;
        }
        let node = self.node;
        self.node += 1;
        let Extent { offset, bytes } = self.extent;
        Some(Piece { node, memory_offset: offset, file_offset: offset, bytes })
    }
}
