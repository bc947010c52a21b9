//! A view: the part of a file that each compute node sees, and its place in memory.
//!
//! The file is an array of records in row-major order, the last dimension varying fastest. Each dimension is
//! distributed over one side of a grid of nodes; the nodes also fill the grid in row-major order. A node stores its
//! records in file order, without gaps.
//!
//! ```text
//!   4 x 8 records, both dimensions in blocks over a 2 x 2 grid
//!
//!      0 0 0 0 1 1 1 1        node 2's memory:  row 2, columns 0-3
//!      0 0 0 0 1 1 1 1                          row 3, columns 0-3
//!      2 2 2 2 3 3 3 3
//!      2 2 2 2 3 3 3 3
//! ```
//!
//! The file consists of whole records. A view rejects a file with an incomplete record at its end. Use smaller records
//! for such a file (of one byte, if necessary).
//!
//! A view is a few numbers. It is sent with collective requests, and a received view is checked like a constructed one,
//! so it is always consistent. The receiver must compare it with the file, using [`View::file_bytes`]. Iterate only
//! over pieces of extents of the real file, since a view may describe a file of 2^63 bytes.

use serde::{Deserialize, Serialize};

use crate::axis::Axes;
use crate::chunks::Chunks;
use crate::distribution::{Dimension, Distribution};
use crate::error::LayoutError;
use crate::extent::{Extent, FILE_BYTES_MAX};
use crate::limits::{DIMENSIONS_MAX, NODES_MAX};
use crate::pieces::Pieces;

/// The part of a file that each compute node sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawView", into = "RawView")]
pub struct View {
    record_bytes: u64,
    nodes: u32,
    replicated: bool,
    dimensions: [Dimension; DIMENSIONS_MAX],
    dimension_count: usize,
    file_bytes: u64,
    axes: Axes,
}

/// The serialised form: numbers that are checked when they are decoded. Its size grows with the number of dimensions.
#[derive(Serialize, Deserialize)]
#[serde(rename = "View")]
struct RawView {
    record_bytes: u64,
    nodes: u32,
    replicated: bool,
    dimensions: Vec<Dimension>,
}

impl View {
    /// Returns the view of an array of records of `record_bytes` bytes, distributed over `nodes` nodes.
    ///
    /// The dimensions are given outermost first, and the product of their parts is `nodes`. If no dimension is
    /// distributed, node 0 has the whole array, whatever the number of nodes.
    pub fn new(record_bytes: u64, dimensions: &[Dimension], nodes: u32) -> Result<Self, LayoutError> {
        let view = View::unplaced(record_bytes, dimensions, nodes, false)?;
        let places = dimensions.iter().map(|dimension| u64::from(dimension.parts));
        let places = places.fold(1, u64::saturating_mul);
        if places == u64::from(nodes) || dimensions.iter().all(is_undistributed) {
            Ok(View { axes: Axes::new(record_bytes, dimensions), ..view })
        } else {
            Err(LayoutError::GridMismatch { places, nodes })
        }
    }

    /// Returns the view in which each of `nodes` nodes has the whole array. No dimension may be distributed.
    pub fn replicated(record_bytes: u64, dimensions: &[Dimension], nodes: u32) -> Result<Self, LayoutError> {
        let view = View::unplaced(record_bytes, dimensions, nodes, true)?;
        match dimensions.iter().position(|dimension| !is_undistributed(dimension)) {
            Some(dimension) => Err(LayoutError::DistributedCopy { dimension }),
            None => Ok(View { axes: Axes::new(record_bytes, dimensions), ..view }),
        }
    }

    /// Checks all arguments except the grid, and returns a view without axes, which the caller must add.
    fn unplaced(
        record_bytes: u64,
        dimensions: &[Dimension],
        nodes: u32,
        replicated: bool,
    ) -> Result<Self, LayoutError> {
        if record_bytes == 0 {
            return Err(LayoutError::NoRecordBytes);
        }
        if !(1..=NODES_MAX).contains(&nodes) {
            return Err(LayoutError::NodeCount { nodes });
        }
        let count = dimensions.len();
        if !(1..=DIMENSIONS_MAX).contains(&count) {
            return Err(LayoutError::DimensionCount { count });
        }
        let mut file_bytes = record_bytes;
        for (index, dimension) in dimensions.iter().enumerate() {
            dimension.check(index)?;
            file_bytes = file_bytes.checked_mul(dimension.length).ok_or(LayoutError::FileTooLarge)?;
        }
        if file_bytes > FILE_BYTES_MAX {
            return Err(LayoutError::FileTooLarge);
        }
        let mut kept = [Dimension::default(); DIMENSIONS_MAX];
        kept[..count].copy_from_slice(dimensions);
        Ok(View {
            record_bytes,
            nodes,
            replicated,
            dimensions: kept,
            dimension_count: count,
            file_bytes,
            axes: Axes::new(1, &[]),
        })
    }

    /// Returns the size of the file in bytes.
    pub const fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Returns the size of a record in bytes.
    pub const fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    /// Returns the number of compute nodes.
    pub const fn nodes(&self) -> u32 {
        self.nodes
    }

    /// True if every node has the whole file.
    pub const fn is_replicated(&self) -> bool {
        self.replicated
    }

    /// Returns the dimensions of the array, outermost first.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions[..self.dimension_count]
    }

    /// Returns the number of bytes of the file in the memory of `node`; zero if the node does not exist.
    pub fn node_bytes(&self, node: u32) -> u64 {
        if node >= self.nodes {
            0
        } else if self.replicated {
            self.file_bytes
        } else {
            self.dealt_bytes(node)
        }
    }

    /// Computes [`View::node_bytes`] dimension by dimension, since the merged axes do not show which parts are empty.
    fn dealt_bytes(&self, node: u32) -> u64 {
        let mut place = node;
        let mut bytes = self.record_bytes;
        for dimension in self.dimensions().iter().rev() {
            let axes = Axes::new(1, std::slice::from_ref(dimension));
            bytes *= axes.inner().share(place % dimension.parts);
            place /= dimension.parts;
        }
        if place == 0 { bytes } else { 0 }
    }

    /// Returns the chunks of `node`, in file order; none if the node does not exist.
    pub fn chunks(&self, node: u32) -> Chunks {
        if self.node_bytes(node) == 0 {
            Chunks::none(self.axes)
        } else if self.replicated {
            Chunks::new(self.axes, 0)
        } else {
            Chunks::new(self.axes, node)
        }
    }

    /// Returns the owners of the bytes of an extent, clipped to the end of the file.
    pub fn pieces(&self, extent: Extent) -> Pieces {
        let extent = extent.clip(self.file_bytes);
        if self.replicated { Pieces::copies(extent, self.nodes) } else { Pieces::dealt(self.axes, extent) }
    }

    /// True if both views put every byte of the file in the same place, even if they describe it differently.
    ///
    /// `false` may also mean that the descriptions differ too much to compare.
    pub fn agrees_with(&self, other: &View) -> bool {
        (self.axes, self.nodes, self.replicated) == (other.axes, other.nodes, other.replicated)
    }
}

fn is_undistributed(dimension: &Dimension) -> bool {
    dimension.distribution == Distribution::None
}

impl TryFrom<RawView> for View {
    type Error = LayoutError;
    fn try_from(raw: RawView) -> Result<Self, LayoutError> {
        if raw.replicated {
            View::replicated(raw.record_bytes, &raw.dimensions, raw.nodes)
        } else {
            View::new(raw.record_bytes, &raw.dimensions, raw.nodes)
        }
    }
}

impl From<View> for RawView {
    fn from(view: View) -> Self {
        RawView {
            record_bytes: view.record_bytes,
            nodes: view.nodes,
            replicated: view.replicated,
            dimensions: view.dimensions().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cyclic(length: u64, run: u64, parts: u32) -> Dimension {
        Dimension { length, distribution: Distribution::Cyclic(run), parts }
    }

    #[test]
    fn a_node_keeps_its_records_in_file_order_without_gaps() {
        let view = View::new(1, &[Dimension::block(4, 2), Dimension::block(8, 2)], 4).unwrap();
        let chunks: Vec<_> = view.chunks(2).map(|chunk| (chunk.file_offset, chunk.memory_offset)).collect();
        assert_eq!(chunks, [(16, 0), (24, 4)]);
        assert_eq!(view.node_bytes(2), 8);
    }

    #[test]
    fn adjacent_runs_of_consecutive_rows_form_one_chunk() {
        // 0 1 2 0 | 0 1 2 0: two rows of four records, cyclic over three nodes.
        let view = View::new(1, &[Dimension::whole(2), Dimension::cyclic(4, 3)], 3).unwrap();
        let chunks: Vec<_> = view.chunks(0).map(|chunk| (chunk.file_offset, chunk.bytes)).collect();
        assert_eq!(chunks, [(0, 1), (3, 2), (7, 1)]);
        let pieces: Vec<_> = view.pieces(Extent::new(2, 4)).map(|piece| (piece.node, piece.bytes)).collect();
        assert_eq!(pieces, [(2, 1), (0, 2), (1, 1)]);
    }

    #[test]
    fn an_extent_can_begin_and_end_within_records() {
        let view = View::new(10, &[Dimension::cyclic(4, 2)], 2).unwrap();
        let pieces = view.pieces(Extent::new(25, 10));
        let places: Vec<_> = pieces.map(|piece| (piece.node, piece.memory_offset, piece.bytes)).collect();
        assert_eq!(places, [(0, 15, 5), (1, 10, 5)]);
    }

    #[test]
    fn an_invalid_view_is_an_error() {
        let error = |record_bytes, dimensions: &[Dimension], nodes| {
            View::new(record_bytes, dimensions, nodes).unwrap_err()
        };
        let whole = Dimension::whole;
        assert_eq!(error(0, &[whole(1)], 1), LayoutError::NoRecordBytes);
        assert_eq!(error(1, &[], 1), LayoutError::DimensionCount { count: 0 });
        assert_eq!(error(1, &[whole(1); 5], 1), LayoutError::DimensionCount { count: 5 });
        assert_eq!(error(1, &[whole(1)], 0), LayoutError::NodeCount { nodes: 0 });
        assert_eq!(error(1, &[whole(1)], NODES_MAX + 1), LayoutError::NodeCount { nodes: NODES_MAX + 1 });
        assert_eq!(error(1, &[whole(0)], 1), LayoutError::EmptyDimension { dimension: 0 });
        assert_eq!(error(1, &[whole(1), cyclic(1, 1, 0)], 1), LayoutError::NoParts { dimension: 1 });
        assert_eq!(error(1, &[cyclic(1, 0, 1)], 1), LayoutError::EmptyRun { dimension: 0 });
        assert_eq!(error(1, &[cyclic(9, 1, 3)], 4), LayoutError::GridMismatch { places: 3, nodes: 4 });
        assert_eq!(error(1, &[whole(1 << 63)], 1), LayoutError::FileTooLarge);
        assert_eq!(error(1 << 32, &[whole(1 << 32)], 1), LayoutError::FileTooLarge);
        let copy = View::replicated(1, &[cyclic(4, 1, 4)], 4).unwrap_err();
        assert_eq!(copy, LayoutError::DistributedCopy { dimension: 0 });
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        // Eight runs of 2^62 bytes would form a cycle of 2^65: only the first two have records.
        let view = View::new(1, &[cyclic(FILE_BYTES_MAX, 1 << 62, 8)], 8).unwrap();
        let bytes: Vec<_> = (0..8).map(|node| view.node_bytes(node)).collect();
        assert_eq!(bytes, [1 << 62, (1 << 62) - 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(view.chunks(1).map(|chunk| chunk.bytes).collect::<Vec<_>>(), [(1 << 62) - 1]);
        assert_eq!(view.chunks(7).count(), 0);
        let nodes: Vec<_> = view.pieces(Extent::new(0, u64::MAX)).map(|piece| piece.node).collect();
        assert_eq!(nodes, [0, 1]);
    }
}
