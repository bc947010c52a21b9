//! A block of lines in memory, and sorting it.

use std::io::{self, Read, Write};

use super::order::Order;

/// Bytes per read, unless memory is very short.
const STEP_BYTES_MAX: usize = 256 << 10;
const STEP_BYTES_MIN: usize = 4 << 10;

/// A line of a block: its position, and a prefix that decides most comparisons.
#[derive(Clone, Copy, Debug)]
struct Line {
    prefix: u64,
    start: usize,
    /// Position of its newline.
    end: usize,
}

/// Memory for a line in addition to its bytes.
const LINE_BYTES: usize = size_of::<Line>();

/// Lines with their newlines, in input order or sorted.
#[derive(Debug, Default)]
pub(super) struct Block {
    bytes: Vec<u8>,
    lines: Vec<Line>,
}

impl Block {
    /// Reads lines until the lines and their index use `memory` bytes, or the input ends.
    ///
    /// Before the call `rest` contains the start of a line from the previous block, and afterwards the start of the
    /// first line of the next block. A line longer than the memory is nevertheless read completely. Returns true if the
    /// input may have more lines.
    pub(super) fn fill(
        &mut self,
        input: &mut impl Read,
        memory: usize,
        rest: &mut Vec<u8>,
    ) -> io::Result<bool> {
        self.bytes.clear();
        self.lines.clear();
        self.bytes.append(rest);
        let step = (memory / 8).clamp(STEP_BYTES_MIN, STEP_BYTES_MAX);
        let mut newlines = memchr::memchr_iter(b'\n', &self.bytes).count();
        loop {
            let start = self.bytes.len();
            let read = input.by_ref().take(step as u64).read_to_end(&mut self.bytes)?;
            newlines += memchr::memchr_iter(b'\n', &self.bytes[start..]).count();
            if read < step {
                if self.bytes.last().is_some_and(|&last| last != b'\n') {
                    self.bytes.push(b'\n');
                }
                return Ok(false);
            }
            // Reserve space for the next step and the index of its lines.
            let used = self.bytes.len() + newlines * LINE_BYTES + step * 2;
            if used > memory
                && let Some(last) = memchr::memrchr(b'\n', &self.bytes)
            {
                rest.extend_from_slice(&self.bytes[last + 1..]);
                self.bytes.truncate(last + 1);
                return Ok(true);
            }
        }
    }

    /// True if the block has no line.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Sorts the lines.
    pub(super) fn sort(&mut self, order: Order) {
        let bytes = &self.bytes;
        let mut start = 0;
        let line = |end: usize| {
            let line = Line { prefix: order.prefix(&bytes[start..end]), start, end };
            start = end + 1;
            line
        };
        self.lines.reserve_exact(memchr::memchr_iter(b'\n', bytes).count());
        self.lines.extend(memchr::memchr_iter(b'\n', bytes).map(line));
        self.lines.sort_unstable_by(|one, other| {
            one.prefix
                .cmp(&other.prefix)
                .then_with(|| order.compare(&bytes[one.start..one.end], &bytes[other.start..other.end]))
                .then(one.start.cmp(&other.start))
        });
    }

    /// Writes the sorted lines. If the order is unique, writes only the first of equal lines.
    pub(super) fn write(&self, order: Order, output: &mut impl Write) -> io::Result<()> {
        let text = |line: &Line| &self.bytes[line.start..line.end];
        let mut last: Option<&Line> = None;
        for line in &self.lines {
            if order.unique && last.is_some_and(|last| order.equal(text(last), text(line))) {
                continue;
            }
            output.write_all(&self.bytes[line.start..=line.end])?;
            last = Some(line);
        }
        Ok(())
    }
}
