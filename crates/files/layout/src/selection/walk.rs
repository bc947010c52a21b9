//! The pieces of a selection, in order, each as long as possible.
//!
//! A walk descends the tree once to find its place, and then steps from run to run among siblings. It descends again
//! only after the last sibling. So most pieces cost a comparison and an addition; the others cost time proportional to
//! the depth of the tree. A walk allocates no memory.

use std::iter::FusedIterator;

use super::tree::{Part, Tree};
use crate::chunks::Chunk;

/// The pieces of a selection within an extent of the file, as chunks: contiguous in the file and in memory.
///
/// The chunks are in ascending order and do not touch each other. The iterator does not allocate.
#[derive(Clone, Debug)]
pub struct SelectedChunks<'a> {
    tree: &'a Tree,
    /// File offset of the first byte of the tree.
    start: u64,
    /// Memory offset of the current place, and of the end of the walk: the numbers of selected bytes before them.
    position: u64,
    end: u64,
    place: Place<'a>,
}

/// Current place of a walk, within a run.
#[derive(Clone, Debug)]
struct Place<'a> {
    file_offset: u64,
    /// Bytes left in the run.
    run: u64,
    /// Selected bytes left in the node with the run and its siblings.
    left: u64,
    brothers: Siblings<'a>,
}

/// The siblings that follow a run in its node.
#[derive(Clone, Debug)]
enum Siblings<'a> {
    /// Runs of equal length, with equal gaps.
    Equal { run: u64, gap: u64 },
    /// The rest of a list that begins at file offset `start`.
    Listed { start: u64, parts: &'a [Part] },
}

impl<'a> SelectedChunks<'a> {
    /// Returns the pieces with the selected bytes at positions `position` to before `end` of a tree that begins at byte
    /// `start` of the file.
    pub(super) fn new(tree: &'a Tree, start: u64, position: u64, end: u64) -> Self {
        SelectedChunks { tree, start, position, end, place: Place::of(tree, start, position) }
    }

    /// Advances past the rest of the run. Returns its length in bytes.
    #[inline]
    fn take_run(&mut self) -> u64 {
        let place = &mut self.place;
        let bytes = place.run.min(place.left).min(self.end - self.position);
        self.position += bytes;
        if self.position < self.end && !place.pass(bytes) {
            *place = Place::of(self.tree, self.start, self.position);
        }
        bytes
    }
}

impl Iterator for SelectedChunks<'_> {
    type Item = Chunk;

    #[inline]
    fn next(&mut self) -> Option<Chunk> {
        let (file_offset, memory_offset) = (self.place.file_offset, self.position);
        let mut bytes = 0;
        while self.position < self.end && self.place.file_offset == file_offset + bytes {
            bytes += self.take_run();
        }
        (bytes > 0).then_some(Chunk { file_offset, memory_offset, bytes })
    }
}

impl FusedIterator for SelectedChunks<'_> {}

impl<'a> Place<'a> {
    /// Returns the place of the selected byte at `position` of a tree that begins at byte `start` of the file.
    fn of(mut tree: &'a Tree, mut start: u64, mut position: u64) -> Self {
        let mut left = tree.bytes().saturating_sub(position);
        let mut brothers = Siblings::Listed { start, parts: &[] };
        loop {
            match tree {
                Tree::Run(bytes) => {
                    let run = bytes.saturating_sub(position);
                    return Place { file_offset: start + position, run, left, brothers };
                }
                Tree::Repeat(repeat) => {
                    let times;
                    left = left.min(repeat.bytes - position);
                    (times, position) = repeat.place_of(position);
                    start += times * repeat.stride;
                    tree = &repeat.of;
                    brothers = Siblings::Equal { run: tree.bytes(), gap: repeat.stride - tree.bytes() };
                }
                Tree::Parts(parts) => {
                    left = left.min(tree.bytes() - position);
                    let index = parts.index_of(position);
                    let part = &parts.list[index];
                    brothers = Siblings::Listed { start, parts: &parts.list[index + 1..] };
                    start += part.offset;
                    position -= part.before;
                    tree = &part.tree;
                }
            }
        }
    }

    /// Advances past `bytes` bytes, which are the rest of the run or of its node. Returns true if a sibling follows.
    #[inline]
    fn pass(&mut self, bytes: u64) -> bool {
        self.left -= bytes;
        self.file_offset += bytes;
        if self.left == 0 {
            return false;
        }
        match &mut self.brothers {
            Siblings::Equal { run, gap } => {
                self.file_offset += *gap;
                self.run = *run;
                true
            }
            Siblings::Listed { start, parts } => match parts {
                [Part { offset, tree: Tree::Run(run), .. }, rest @ ..] => {
                    self.file_offset = *start + offset;
                    self.run = *run;
                    *parts = rest;
                    true
                }
                _ => false,
            },
        }
    }
}
