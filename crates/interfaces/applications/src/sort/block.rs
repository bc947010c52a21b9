//! A block of lines in memory, and sorting it.

use std::io::{self, Read, Write};

use super::order::Order;

/// Bytes that are read at a time, if memory is not very short.
const STEP_BYTES_MAX: usize = 256 << 10;
const STEP_BYTES_MIN: usize = 4 << 10;

/// A line of a block, by the place of its bytes, and what decides most comparisons.
#[derive(Clone, Copy, Debug)]
struct Line {
    prefix: u64,
    start: usize,
    /// Where its end is, which is a newline.
    end: usize,
}

/// What a line takes besides its bytes.
const LINE_BYTES: usize = size_of::<Line>();

/// Lines, each with its end; in the order in which they were read, or sorted.
#[derive(Debug, Default)]
pub(super) struct Block {
    bytes: Vec<u8>,
    lines: Vec<Line>,
}

impl Block {
    /// Reads lines until there are `memory` bytes of them and of what is kept of each, or the input ends.
    ///
    /// `rest` is the beginning of a line that was read before, and then of the one that is begun now. A line that is
    /// longer than the memory is read to its end all the same. Returns whether the input may go on.
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
            // The next step has to fit, too, with room for its lines.
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

    /// Whether there is no line.
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

    /// Writes the lines, sorted before; of equal ones only the first, if the order says so.
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
