//! The part of the file that one compute node owns, as chunks: contiguous in the file and in the node's memory.
//!
//! ```text
//!   file     | a b | - - | c d | - - | e |        `-` belongs to another node
//!   memory   | a b   c d   e |
//! ```
//!
//! A node stores its records in file order, without gaps. So successive chunks in the file are also successive in
//! memory, and the memory offset is a running sum.

use std::iter::FusedIterator;

use crate::axis::{Axes, OwnSpot};
use crate::extent::Extent;
use crate::limits::DIMENSIONS_MAX;

/// Bytes contiguous in the file and in the memory of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chunk {
    /// Offset of the first byte in the file, in bytes.
    pub file_offset: u64,
    /// Offset of the first byte in the node's memory, in bytes.
    pub memory_offset: u64,
    /// Length in bytes; at least one.
    pub bytes: u64,
}

impl Chunk {
    /// Returns the chunk as an extent of the file.
    pub const fn file_extent(&self) -> Extent {
        Extent::new(self.file_offset, self.bytes)
    }
}

/// The chunks of one node in file order, each as long as possible.
///
/// Owns its state and does not allocate.
#[derive(Clone, Debug)]
pub struct Chunks {
    axes: Axes,
    /// Start of the next run on each axis, innermost first.
    spots: [OwnSpot; DIMENSIONS_MAX],
    /// File offset in bytes of the row of the next run.
    row_offset: u64,
    memory_offset: u64,
    finished: bool,
}

impl Chunks {
    /// Returns the chunks of `node`, which has at least one byte.
    pub(crate) fn new(axes: Axes, node: u32) -> Self {
        let mut chunks = Chunks { finished: false, ..Chunks::none(axes) };
        for (spot, axis) in chunks.spots.iter_mut().zip(axes.all()) {
            *spot = OwnSpot::first(axis, axis.part_of(node));
        }
        chunks.row_offset = chunks.find_row();
        chunks
    }

    /// Returns an empty iterator.
    pub(crate) fn none(axes: Axes) -> Self {
        Chunks { axes, spots: Default::default(), row_offset: 0, memory_offset: 0, finished: true }
    }

    fn file_offset(&self) -> u64 {
        self.row_offset + self.spots[0].index
    }

    /// Advances past the next run of the node; returns its length in bytes.
    #[inline]
    fn take_run(&mut self) -> u64 {
        let bytes = self.spots[0].left();
        if self.spots[0].step_run(self.axes.inner()) {
            self.next_row();
        }
        bytes
    }

    fn next_row(&mut self) {
        let mut outer = self.spots[1..].iter_mut().zip(self.axes.outer());
        self.finished = outer.all(|(spot, axis)| spot.step(axis));
        self.row_offset = self.find_row();
    }

    fn find_row(&self) -> u64 {
        let outer = self.spots[1..].iter().zip(self.axes.outer());
        outer.map(|(spot, axis)| spot.index * axis.index_bytes).sum()
    }
}

impl Iterator for Chunks {
    type Item = Chunk;

    #[inline]
    fn next(&mut self) -> Option<Chunk> {
        if self.finished {
            return None;
        }
        let (file_offset, memory_offset) = (self.file_offset(), self.memory_offset);
        let mut bytes = self.take_run();
        // The last run of a row may touch the first run of the next row. The next row then has a second run that does
        // not touch its first, so one merge is enough.
        if self.file_offset() == file_offset + bytes && !self.finished {
            bytes += self.take_run();
        }
        self.memory_offset += bytes;
        Some(Chunk { file_offset, memory_offset, bytes })
    }
}

impl FusedIterator for Chunks {}
