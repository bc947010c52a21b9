//! What a selection is made of: runs, repetitions and lists, each beginning with its first selected byte.
//!
//! ```text
//!   the file       ab..cd..ab..cd......ef
//!
//!   Parts          0: Repeat every 4 bytes, 8 bytes in all        20: Run of 2 bytes
//!                     of a Run of 2 bytes
//! ```
//!
//! A repetition says how many bytes it selects rather than how often it repeats, so that the last time may be
//! incomplete: the uneven end of an array and a selection cut to a length need no node of their own.
//!
//! Nodes are made by the functions here only, and these keep three promises. A node that is one run is a
//! [`Tree::Run`]; so in a walk at most two runs for each level touch, and are joined, before the file goes on with
//! a gap. No list is directly within a list. And nothing selected lies beyond the largest file, so that sums
//! of what is here fit in 64 bits.

use std::sync::Arc;

use super::error::{SELECTION_LEVELS_MAX, SelectionError};
use crate::extent::FILE_BYTES_MAX;

/// Selected bytes, their offsets counted from the first of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    /// This many bytes in a row; none only if the whole selection is empty.
    Run(u64),
    /// The same again and again.
    Repeat(Arc<Repeat>),
    /// One after the other; at least two.
    Parts(Arc<Parts>),
}

/// What is repeated, until there are enough bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Repeat {
    pub(super) of: Tree,
    /// Bytes of the file from one repetition to the next.
    pub(super) stride: u64,
    /// Bytes selected; more than one repetition has.
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
    /// Where it begins, in bytes of the file.
    pub(super) offset: u64,
    /// Bytes that the parts before it select.
    pub(super) before: u64,
    /// Runs that ended before it; its first run may be the continuation of the last of them.
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
    /// The part with the selected byte at `position`.
    pub(super) fn index_of(&self, position: u64) -> usize {
        self.list.partition_point(|part| part.before <= position) - 1
    }
}

impl Repeat {
    /// With its end and the number of its runs.
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

    /// In which repetition the selected byte at `position` is, counted from 0, and its position there.
    pub(super) fn place_of(&self, position: u64) -> (u64, u64) {
        (position / self.of.bytes(), position % self.of.bytes())
    }

    /// What [`Tree::part`] is of it.
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

    /// Whether each repetition goes on where the one before it ends.
    fn touches(&self) -> bool {
        self.stride == self.of.end()
    }
}

impl Tree {
    pub(super) const EMPTY: Tree = Tree::Run(0);

    /// A single run.
    pub(super) fn run(bytes: u64) -> Result<Tree, SelectionError> {
        within_file(Some(bytes)).map(Tree::Run)
    }

    /// `of` again and again every `stride` bytes of the file until `bytes` bytes are selected.
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

    /// What to repeat at what stride instead, if this is a repetition that repeating it just carries on.
    fn carried_on(self, stride: u64) -> (Tree, u64) {
        if let Tree::Repeat(inner) = &self {
            let (times, rest) = (inner.bytes / inner.of.bytes(), inner.bytes % inner.of.bytes());
            if rest == 0 && times.checked_mul(inner.stride) == Some(stride) {
                return (inner.of.clone(), inner.stride);
            }
        }
        (self, stride)
    }

    /// Bytes selected.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Tree::Run(bytes) => *bytes,
            Tree::Repeat(repeat) => repeat.bytes,
            Tree::Parts(parts) => parts.bytes,
        }
    }

    /// Bytes of the file from the first selected byte to just after the last.
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

    /// Runs, each as long as it can be.
    pub(super) fn runs(&self) -> u64 {
        match self {
            Tree::Run(bytes) => u64::from(*bytes > 0),
            Tree::Repeat(repeat) => repeat.runs,
            Tree::Parts(parts) => parts.runs,
        }
    }

    /// Runs, repetitions and lists when it travels; saturates, since parts of it may be shared here.
    pub(super) fn nodes(&self) -> u64 {
        match self {
            Tree::Run(bytes) => u64::from(*bytes > 0),
            Tree::Repeat(repeat) => repeat.nodes,
            Tree::Parts(parts) => parts.nodes,
        }
    }

    /// The number of the run with the selected byte at `position`.
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

    /// Where the selected byte at `position` is, in bytes of the file.
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

    /// How many selected bytes lie before `offset`.
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

    /// The first `bytes` selected bytes, or all if there are no more.
    fn first(&self, bytes: u64) -> Result<Tree, SelectionError> {
        if bytes == 0 { Ok(Tree::EMPTY) } else { self.part(0, bytes).map(|(_, tree)| tree) }
    }

    /// The selected bytes from position `start` to before `end`, or to the last of them, and where they begin. There is
    /// one at least. It takes as long as what is there has parts, wherever they are in a list.
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

/// A list that is being made, in ascending order.
#[derive(Debug, Default)]
pub(super) struct List {
    parts: Vec<Part>,
    /// How many were pushed, with those that became one part.
    pushed: usize,
}

impl List {
    /// Where the last part ends, in bytes of the file.
    pub(super) fn end(&self) -> u64 {
        self.parts.last().map_or(0, Part::end)
    }

    /// Goes on with `tree`, which begins at byte `offset`.
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

    /// The tree, and where it begins in the file.
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

/// The offset, if a file can be as long.
pub(super) fn within_file(end: Option<u64>) -> Result<u64, SelectionError> {
    end.filter(|end| *end <= FILE_BYTES_MAX).ok_or(SelectionError::TooLong)
}
