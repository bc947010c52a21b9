//! The nodes of a selection: runs, repetitions and lists. Each node begins with its first selected byte.
//!
//! ```text
//!   the file       ab..cd..ab..cd......ef
//!
//!   Parts          0: Repeat every 4 bytes, 8 bytes in all        20: Run of 2 bytes
//!                     of a Run of 2 bytes
//! ```
//!
//! A repetition stores the number of selected bytes, not the number of copies, so that its last copy can be incomplete.
//! So no further node is needed for the uneven end of an array, or for a selection cut to a length.
//!
//! Only the functions of this module make nodes, and they keep three invariants:
//!
//! - A node with a single run is a [`Tree::Run`]. So on each level of a walk at most two runs touch, and are joined,
//!   before a gap follows.
//! - No list is directly within a list.
//! - No selected byte is beyond the largest file, so that the sum of two offsets or lengths fits in 64 bits.

use std::sync::Arc;

use super::error::{SELECTION_LEVELS_MAX, SelectionError};
use crate::extent::FILE_BYTES_MAX;

/// Selected bytes, with offsets relative to the first selected byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    /// A run of this many bytes; 0 only if the whole selection is empty.
    Run(u64),
    /// A repeated selection.
    Repeat(Arc<Repeat>),
    /// A list of at least two parts.
    Parts(Arc<Parts>),
}

/// A selection that is repeated until it has `bytes` bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Repeat {
    pub(super) of: Tree,
    /// Bytes of the file from one copy to the next.
    pub(super) stride: u64,
    /// Number of selected bytes, which is larger than that of one copy.
    pub(super) bytes: u64,
    end: u64,
    runs: u64,
    nodes: u64,
    level: u32,
}

/// A list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) list: Vec<Part>,
    bytes: u64,
    runs: u64,
    nodes: u64,
    level: u32,
}

/// One part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Start of the part, in bytes of the file.
    pub(super) offset: u64,
    /// Number of bytes that earlier parts select.
    pub(super) before: u64,
    /// Number of the first run of this part: the number of earlier runs, less one if this part continues the last of
    /// them.
    first_run: u64,
    pub(super) tree: Tree,
}

impl Part {
    pub(super) fn end(&self) -> u64 {
        self.offset + self.tree.end()
    }

    fn bytes_until(&self) -> u64 {
        self.before + self.tree.bytes()
    }
}

impl Parts {
    /// Returns the index of the part with the selected byte at `position`.
    pub(super) fn index_of(&self, position: u64) -> usize {
        self.list.partition_point(|part| part.before <= position) - 1
    }
}

impl Repeat {
    /// Fills in the end and the number of runs of the repetition, and returns it.
    fn counted(self) -> Result<Self, SelectionError> {
        let (times, position) = self.place_of(self.bytes - 1);
        let start = times.checked_mul(self.stride);
        let end = within_file(start.and_then(|start| start.checked_add(self.of.offset_of(position) + 1)))?;
        Ok(Repeat { end, runs: self.run_of(self.bytes - 1) + 1, ..self })
    }

    fn run_of(&self, position: u64) -> u64 {
        let (times, position) = self.place_of(position);
        let new_runs = self.of.runs() - u64::from(self.touches());
        times * new_runs + self.of.run_of(position)
    }

    /// Returns the index of the copy with the selected byte at `position`, counted from 0, and the position within it.
    pub(super) fn place_of(&self, position: u64) -> (u64, u64) {
        (position / self.of.bytes(), position % self.of.bytes())
    }

    /// Returns a part of the repetition, as [`Tree::part`] does.
    fn part(&self, start: u64, end: u64) -> Result<(u64, Tree), SelectionError> {
        if end <= self.of.bytes() {
            return self.of.part(start, end);
        }
        let (times, within) = self.place_of(start);
        let offset = times * self.stride;
        if within == 0 {
            return Ok((offset, Tree::repeat(self.of.clone(), end - start, self.stride)?));
        }
        let (shift, rest) = self.of.part(within, end - times * self.of.bytes())?;
        let following = end - start - rest.bytes();
        let mut list = List::default();
        list.push(offset + shift, rest)?;
        list.push(offset + self.stride, Tree::repeat(self.of.clone(), following, self.stride)?)?;
        list.finish()
    }

    /// True if each copy begins at the end of the previous one.
    fn touches(&self) -> bool {
        self.stride == self.of.end()
    }
}

impl Tree {
    pub(super) const EMPTY: Tree = Tree::Run(0);

    /// Returns a single run.
    pub(super) fn run(bytes: u64) -> Result<Tree, SelectionError> {
        within_file(Some(bytes)).map(Tree::Run)
    }

    /// Repeats `of` every `stride` bytes of the file until `bytes` bytes are selected.
    pub(super) fn repeat(of: Tree, bytes: u64, stride: u64) -> Result<Tree, SelectionError> {
        if bytes <= of.bytes() || of.bytes() == 0 {
            return of.first(bytes);
        }
        if stride < of.end() {
            return Err(SelectionError::RepetitionOverlaps { bytes: of.end(), stride });
        }
        if stride == of.bytes() {
            return Tree::run(bytes);
        }
        let (of, stride) = of.carried_on(stride);
        let (level, nodes) = (deeper(of.level())?, of.nodes().saturating_add(1));
        Repeat { of, stride, bytes, end: 0, runs: 0, nodes, level }
            .counted()
            .map(|repeat| Tree::Repeat(Arc::new(repeat)))
    }

    /// Returns the selection and stride to repeat instead of `self`. If `self` is a repetition that an outer one of
    /// stride `stride` only continues, these are the selection and stride of `self`.
    fn carried_on(self, stride: u64) -> (Tree, u64) {
        if let Tree::Repeat(inner) = &self {
            let (times, rest) = (inner.bytes / inner.of.bytes(), inner.bytes % inner.of.bytes());
            if rest == 0 && times.checked_mul(inner.stride) == Some(stride) {
                return (inner.of.clone(), inner.stride);
            }
        }
        (self, stride)
    }

    /// Returns the number of selected bytes.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Tree::Run(bytes) => *bytes,
            Tree::Repeat(repeat) => repeat.bytes,
            Tree::Parts(parts) => parts.bytes,
        }
    }

    /// Returns the number of bytes of the file from the first selected byte to just after the last.
    pub(super) fn end(&self) -> u64 {
        match self {
            Tree::Run(bytes) => *bytes,
            Tree::Repeat(repeat) => repeat.end,
            Tree::Parts(parts) => parts.list.last().map_or(0, Part::end),
        }
    }

    fn level(&self) -> u32 {
        match self {
            Tree::Run(_) => 0,
            Tree::Repeat(repeat) => repeat.level,
            Tree::Parts(parts) => parts.level,
        }
    }

    /// Returns the number of runs, each as long as possible.
    pub(super) fn runs(&self) -> u64 {
        match self {
            Tree::Run(bytes) => u64::from(*bytes > 0),
            Tree::Repeat(repeat) => repeat.runs,
            Tree::Parts(parts) => parts.runs,
        }
    }

    /// Returns the number of runs, repetitions and lists in a message; saturates, since a small tree in memory can
    /// share parts and so have very many.
    pub(super) fn nodes(&self) -> u64 {
        match self {
            Tree::Run(bytes) => u64::from(*bytes > 0),
            Tree::Repeat(repeat) => repeat.nodes,
            Tree::Parts(parts) => parts.nodes,
        }
    }

    /// Returns the number of the run with the selected byte at `position`.
    fn run_of(&self, position: u64) -> u64 {
        match self {
            Tree::Run(_) => 0,
            Tree::Repeat(repeat) => repeat.run_of(position),
            Tree::Parts(parts) => {
                let part = &parts.list[parts.index_of(position)];
                part.first_run + part.tree.run_of(position - part.before)
            }
        }
    }

    /// Returns the offset of the selected byte at `position`, in bytes of the file.
    pub(super) fn offset_of(&self, position: u64) -> u64 {
        match self {
            Tree::Run(_) => position,
            Tree::Repeat(repeat) => {
                let (times, position) = repeat.place_of(position);
                times * repeat.stride + repeat.of.offset_of(position)
            }
            Tree::Parts(parts) => {
                let part = &parts.list[parts.index_of(position)];
                part.offset + part.tree.offset_of(position - part.before)
            }
        }
    }

    /// Returns the number of selected bytes before `offset`.
    pub(super) fn bytes_before(&self, offset: u64) -> u64 {
        match self {
            Tree::Run(bytes) => offset.min(*bytes),
            Tree::Repeat(repeat) => {
                let (times, offset) = (offset / repeat.stride, offset % repeat.stride);
                let before = repeat.of.bytes_before(offset);
                repeat.bytes.min(times * repeat.of.bytes() + before)
            }
            Tree::Parts(parts) => {
                let begun = parts.list.partition_point(|part| part.offset <= offset);
                let part = &parts.list[begun - 1];
                part.before + part.tree.bytes_before(offset - part.offset)
            }
        }
    }

    /// Returns the first `bytes` selected bytes, or all if there are fewer.
    fn first(&self, bytes: u64) -> Result<Tree, SelectionError> {
        if bytes == 0 { Ok(Tree::EMPTY) } else { self.part(0, bytes).map(|(_, tree)| tree) }
    }

    /// Returns the selected bytes at the positions from `start` to before `end`, or to the last selected byte, and
    /// their offset. The range must have at least one byte. Takes time proportional to the number of parts within the
    /// range, wherever these parts are in a list.
    pub(super) fn part(&self, start: u64, end: u64) -> Result<(u64, Tree), SelectionError> {
        let end = end.min(self.bytes());
        if (start, end) == (0, self.bytes()) {
            return Ok((0, self.clone()));
        }
        match self {
            Tree::Run(_) => Ok((start, Tree::Run(end - start))),
            Tree::Repeat(repeat) => repeat.part(start, end),
            Tree::Parts(parts) => {
                let mut list = List::default();
                for part in &parts.list[parts.index_of(start)..=parts.index_of(end - 1)] {
                    let (shift, tree) =
                        part.tree.part(start.saturating_sub(part.before), end - part.before)?;
                    list.push(part.offset + shift, tree)?;
                }
                list.finish()
            }
        }
    }
}

/// A list under construction, in ascending order.
#[derive(Debug, Default)]
pub(super) struct List {
    parts: Vec<Part>,
    /// Number of pushed parts, including those that were merged.
    pushed: usize,
}

impl List {
    /// Returns the end of the last part, in bytes of the file.
    pub(super) fn end(&self) -> u64 {
        self.parts.last().map_or(0, Part::end)
    }

    /// Appends `tree`, which begins at byte `offset`.
    pub(super) fn push(&mut self, offset: u64, tree: Tree) -> Result<(), SelectionError> {
        let part = self.pushed;
        self.pushed += 1;
        if tree.bytes() == 0 {
            return Ok(());
        }
        within_file(offset.checked_add(tree.end()))?;
        if offset < self.end() {
            return Err(SelectionError::PartOverlaps { part, offset, end: self.end() });
        }
        if let Tree::Parts(inner) = &tree {
            for part in &inner.list {
                self.add(offset + part.offset, part.tree.clone());
            }
        } else {
            self.add(offset, tree);
        }
        Ok(())
    }

    fn add(&mut self, offset: u64, tree: Tree) {
        let Some(last) = self.parts.last_mut() else {
            self.parts.push(Part { offset, before: 0, first_run: 0, tree });
            return;
        };
        let touches = last.end() == offset;
        match (&mut last.tree, &tree) {
            (Tree::Run(bytes), Tree::Run(more)) if touches => *bytes += more,
            _ => {
                let (before, ended) = (last.bytes_until(), last.first_run + last.tree.runs());
                self.parts.push(Part { offset, before, first_run: ended - u64::from(touches), tree });
            }
        }
    }

    /// Returns the file offset of the tree, and the tree.
    pub(super) fn finish(mut self) -> Result<(u64, Tree), SelectionError> {
        let (Some(first), Some(last)) = (self.parts.first(), self.parts.last()) else {
            return Ok((0, Tree::EMPTY));
        };
        let (start, bytes, runs) = (first.offset, last.bytes_until(), last.first_run + last.tree.runs());
        if self.parts.len() == 1 {
            return Ok((start, first.tree.clone()));
        }
        let level = deeper(self.parts.iter().map(|part| part.tree.level()).max().unwrap_or(0))?;
        let nodes = self.parts.iter().map(|part| part.tree.nodes()).fold(1, u64::saturating_add);
        for part in &mut self.parts {
            part.offset -= start;
        }
        Ok((start, Tree::Parts(Arc::new(Parts { list: self.parts, bytes, runs, nodes, level }))))
    }
}

fn deeper(level: u32) -> Result<u32, SelectionError> {
    if level < SELECTION_LEVELS_MAX { Ok(level + 1) } else { Err(SelectionError::TooDeep) }
}

/// Returns the offset if it is at most the size of the largest file.
pub(super) fn within_file(end: Option<u64>) -> Result<u64, SelectionError> {
    end.filter(|end| *end <= FILE_BYTES_MAX).ok_or(SelectionError::TooLong)
}
