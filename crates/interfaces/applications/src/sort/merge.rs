//! Merges runs into one, while a thread reads them ahead.
//!
//! Each run has two buffers: one is used while the other is filled. The thread refills used buffers in the order in
//! which they were used up, which is nearly the order in which they will be needed.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};

use super::order::Order;
use super::resources::Sorting;
use crate::failure::{Failure, Result};
use crate::read_ahead::fill;
use crate::store::Temporary;
use crate::write_behind::WriteBehind;

/// Number of buffers per run.
const BUFFERS: u64 = 2;

/// Minimum size of a buffer in bytes: with shorter buffers, disk latency costs more time than merging more runs at once
/// saves.
const BUFFER_BYTES_MIN: u64 = 64 << 10;

/// Maximum size of a buffer in bytes: longer ones gain nothing.
const BUFFER_BYTES_MAX: u64 = 1 << 20;

/// Limit of runs merged at once: each run is an open file, and each generation can have this number of runs.
const RUNS_MAX: u64 = 128;

impl Sorting<'_> {
    /// Returns the number of runs merged at once, limited by the memory for their buffers.
    fn merge_runs_max(&self) -> usize {
        (self.memory / (BUFFERS * BUFFER_BYTES_MIN)).clamp(2, RUNS_MAX) as usize
    }

    /// Returns the size of a buffer in bytes for this number of runs.
    pub(super) fn merge_buffer_bytes(&self, runs: usize) -> usize {
        let share = self.memory / (BUFFERS * runs.max(1) as u64);
        share.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX) as usize
    }
}

/// Runs in the order of the input. They are merged into longer ones as they arrive, since each is an open file.
///
/// All runs of a *generation* have about the same length. When a generation is full, the next run first merges it into
/// one run of the next generation. So each line is merged once per generation, as if all runs existed from the start. A
/// generation never has more runs than can be merged at once.
pub(super) struct Runs<'a> {
    sorting: &'a Sorting<'a>,
    /// Runs by generation. The last generation has the first lines of the input.
    generations: Vec<Vec<Box<dyn Temporary>>>,
}

impl<'a> Runs<'a> {
    /// Returns an empty list.
    pub(super) fn new(sorting: &'a Sorting<'a>) -> Self {
        Runs { sorting, generations: Vec::new() }
    }

    /// Adds the next run of the input.
    pub(super) fn push(&mut self, mut run: Box<dyn Temporary>) -> Result<()> {
        let at_once = self.sorting.merge_runs_max();
        for generation in &mut self.generations {
            if generation.len() < at_once {
                generation.push(run);
                return Ok(());
            }
            // Use the smallest buffers, because the blocks are in memory at the same time.
            let longer = merge(self.sorting, std::mem::take(generation), BUFFER_BYTES_MIN as usize)?;
            generation.push(run);
            run = longer;
        }
        self.generations.push(vec![run]);
        Ok(())
    }

    /// Returns the remaining runs in the order of the input.
    pub(super) fn finish(self) -> Vec<Box<dyn Temporary>> {
        self.generations.into_iter().rev().flatten().collect()
    }
}

/// Merges runs into longer ones until the rest can be merged at once. Only merges adjacent runs.
pub(super) fn reduce(
    sorting: &Sorting<'_>,
    mut runs: Vec<Box<dyn Temporary>>,
) -> Result<Vec<Box<dyn Temporary>>> {
    let at_once = sorting.merge_runs_max();
    while runs.len() > at_once {
        let mut longer = Vec::new();
        let mut left = runs.into_iter().peekable();
        while left.peek().is_some() {
            let some: Vec<_> = left.by_ref().take(at_once).collect();
            let buffer_bytes = sorting.merge_buffer_bytes(some.len());
            longer.push(merge(sorting, some, buffer_bytes)?);
        }
        runs = longer;
    }
    Ok(runs)
}

/// Merges runs into one, through buffers of the given size in bytes.
fn merge(
    sorting: &Sorting<'_>,
    mut runs: Vec<Box<dyn Temporary>>,
    buffer_bytes: usize,
) -> Result<Box<dyn Temporary>> {
    if runs.len() == 1 {
        return Ok(runs.remove(0));
    }
    let failed = |error| Failure::io("a temporary file", &error);
    thread::scope(|scope| {
        let mut behind = WriteBehind::new(scope, sorting.store.temporary()?);
        let mut merging = Merging::begin(scope, runs, sorting.order, buffer_bytes)?;
        while let Some(line) = merging.line() {
            behind.write_all(line).map_err(failed)?;
            merging.next()?;
        }
        behind.finish().map_err(failed)
    })
}

/// Runs being merged.
pub(super) struct Merging {
    order: Order,
    heads: BinaryHeap<Head>,
    /// The last line without its newline, if lines are unique.
    last: Vec<u8>,
}

impl Merging {
    /// Starts a merge; a thread of the scope reads the runs into buffers of the given size in bytes.
    pub(super) fn begin<'scope>(
        scope: &'scope Scope<'scope, '_>,
        mut runs: Vec<Box<dyn Temporary>>,
        order: Order,
        buffer_bytes: usize,
    ) -> Result<Merging> {
        let (wanted, wishes) = channel();
        let mut readers = Vec::new();
        let mut senders = Vec::new();
        for (index, run) in runs.iter_mut().enumerate() {
            run.rewind().map_err(|error| Failure::io("a temporary file", &error))?;
            let (filled, buffers) = channel();
            senders.push(filled);
            readers.push(Reader { index, wanted: wanted.clone(), buffers, buffer: Vec::new(), used: 0 });
        }
        drop(wanted);
        scope.spawn(move || read_ahead(&mut runs, &wishes, &senders));
        for _ in 0..BUFFERS {
            readers.iter().for_each(|reader| reader.want(vec![0; buffer_bytes]));
        }
        let mut heads = BinaryHeap::new();
        for reader in readers {
            let mut head = Head { reader, order, line: Vec::new(), is_in_buffer: None, prefix: 0 };
            if head.next()? {
                heads.push(head);
            }
        }
        Ok(Merging { order, heads, last: Vec::new() })
    }

    /// Returns the current line with its newline; `None` after the last.
    pub(super) fn line(&self) -> Option<&[u8]> {
        self.heads.peek().map(Head::line)
    }

    /// Advances to the next line; if lines are unique, to the next different one.
    pub(super) fn next(&mut self) -> Result<()> {
        if !self.order.unique {
            return self.step();
        }
        self.last.clear();
        self.last.extend(self.heads.peek().map_or(&[][..], Head::text));
        loop {
            self.step()?;
            let same = |head: &Head| self.order.equal(&self.last, head.text());
            if !self.heads.peek().is_some_and(same) {
                return Ok(());
            }
        }
    }

    fn step(&mut self) -> Result<()> {
        let Some(mut head) = self.heads.peek_mut() else { return Ok(()) };
        let has_next = head.next();
        if !matches!(has_next, Ok(true)) {
            // The run has ended: remove it from the heap.
            PeekMut::pop(head);
        }
        has_next.map(drop)
    }
}

/// Fills buffers with the next bytes of each run, until the merge ends.
fn read_ahead(
    runs: &mut [Box<dyn Temporary>],
    wishes: &Receiver<(usize, Vec<u8>)>,
    senders: &[Sender<io::Result<Vec<u8>>>],
) {
    for (index, mut buffer) in wishes {
        buffer.resize(buffer.capacity(), 0);
        let filled = fill(&mut runs[index], &mut buffer).map(|bytes| {
            buffer.truncate(bytes);
            buffer
        });
        // The reader may have reached the end of its run and dropped the receiver.
        let _ = senders[index].send(filled);
    }
}

/// The buffered part of a run.
struct Reader {
    index: usize,
    wanted: Sender<(usize, Vec<u8>)>,
    buffers: Receiver<io::Result<Vec<u8>>>,
    buffer: Vec<u8>,
    used: usize,
}

impl Reader {
    fn want(&self, buffer: Vec<u8>) {
        // The thread ends only after all readers have.
        let _ = self.wanted.send((self.index, buffer));
    }

    /// Returns the buffered bytes; empty at the end of the run.
    fn at_hand(&mut self) -> Result<&[u8]> {
        if self.used == self.buffer.len() {
            let next = self.buffers.recv().unwrap_or_else(|_| Ok(Vec::new()));
            let next = next.map_err(|error| Failure::io("a temporary file", &error))?;
            let used = std::mem::replace(&mut self.buffer, next);
            self.used = 0;
            if used.capacity() > 0 {
                self.want(used);
            }
        }
        Ok(&self.buffer[self.used..])
    }
}

/// The first unmerged line of a run.
struct Head {
    reader: Reader,
    order: Order,
    /// The line, if its bytes were in several buffers.
    line: Vec<u8>,
    /// Start and end of the line, with its newline, in the current buffer, if the buffer has the whole line.
    is_in_buffer: Option<(usize, usize)>,
    prefix: u64,
}

impl Head {
    /// Returns the line with its newline.
    fn line(&self) -> &[u8] {
        match self.is_in_buffer {
            Some((start, end)) => &self.reader.buffer[start..end],
            None => &self.line,
        }
    }

    /// Returns the line without its newline.
    fn text(&self) -> &[u8] {
        let line = self.line();
        &line[..line.len() - 1]
    }

    /// Advances to the next line; returns false at the end of the run.
    fn next(&mut self) -> Result<bool> {
        self.line.clear();
        self.is_in_buffer = None;
        loop {
            let at_hand = self.reader.at_hand()?;
            if at_hand.is_empty() {
                // Every line of a run ends with a newline, so no line is cut off here.
                return Ok(false);
            }
            let end = memchr::memchr(b'\n', at_hand).map(|end| end + 1);
            let count = end.unwrap_or(at_hand.len());
            let whole = end.is_some() && self.line.is_empty();
            if !whole {
                self.line.extend_from_slice(&at_hand[..count]);
            }
            let start = self.reader.used;
            self.reader.used += count;
            if end.is_some() {
                self.is_in_buffer = whole.then_some((start, start + count));
                self.prefix = self.order.prefix(self.text());
                return Ok(true);
            }
        }
    }
}

/// Orders heads in reverse, since the heap returns the greatest first: the first line is the greatest. Among equal
/// lines, the line of the earlier run is greater.
impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        let order =
            self.prefix.cmp(&other.prefix).then_with(|| self.order.compare(self.text(), other.text()));
        order.then(self.reader.index.cmp(&other.reader.index)).reverse()
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}
