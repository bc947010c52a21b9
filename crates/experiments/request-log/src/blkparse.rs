//! Reads the output of `blkparse`: requests that Linux queued at block devices, event `Q`.
//!
//! ```text
//!   8,0    3       11     0.009507758   697  Q   R 223490 + 56 [fio]
//! ```
//!
//! The words are device, processor, number, seconds, process, event, operation, first sector, sectors and program. The
//! device is used as the file, and all requests belong to one node. The reader skips the other events of a request,
//! discards and flushes. A table of totals at the end contains the number of events that the kernel lost.

use std::io::BufRead;

use layout::Operation;
use machine::Duration;

use crate::error::{Error, Place, shown};
use crate::file_names::FileNames;
use crate::line_reader::Lines;
use crate::request::{Request, checked_move, parse_seconds};

/// Size in bytes of a sector in block traces.
const SECTOR_BYTES: u64 = 512;

/// Event of a request that enters the queue.
const QUEUED: &str = "Q";

pub(crate) struct BlkparseReader<R> {
    lines: Lines<R>,
    found: u64,
    /// Number of events that the kernel lost, according to the table of totals.
    lost: u64,
    discards: u64,
}

impl<R: BufRead> BlkparseReader<R> {
    pub(crate) fn new(input: R) -> Self {
        BlkparseReader { lines: Lines::new(input), found: 0, lost: 0, discards: 0 }
    }

    pub(crate) fn line(&self) -> u64 {
        self.lines.number()
    }

    /// Returns notes on requests that are missing or were skipped.
    pub(crate) fn notes(&self) -> Vec<String> {
        let BlkparseReader { found, lost, discards, .. } = *self;
        let lost = (lost > 0).then(|| {
            format!(
                "incomplete: it has {found} requests, and the kernel lost {lost} events; increase its \
                 buffers with blktrace -b and -n"
            )
        });
        let discards = (discards > 0).then(|| format!("{discards} discards are omitted"));
        lost.into_iter().chain(discards).collect()
    }

    pub(crate) fn next(&mut self, files: &mut FileNames) -> Result<Option<(u32, Request)>, Error> {
        while self.lines.next()?.is_some() {
            let line = self.lines.last();
            self.lost = self.lost.saturating_add(lost(line).unwrap_or(0));
            if !is_event(line) {
                continue;
            }
            self.lines.expect_end()?;
            let place = || Place::Line(self.lines.number());
            let words: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
            let &[device, _, _, time, _, QUEUED, operation, ref sectors @ ..] = &words[..] else { continue };
            if operation.contains('D') {
                self.discards += 1;
                continue;
            }
            let operation = match (operation.contains('R'), operation.contains('W')) {
                (true, false) => Operation::Read,
                (false, true) => Operation::Write,
                // A flush transfers no data.
                _ => continue,
            };
            let wrong =
                |what: &str, word: &str| Error::new(place(), format!("expected {what}, not {}", shown(word)));
            let &[first, "+", count, ..] = sectors else { continue };
            let bytes = |word: &str| {
                let bytes = word.parse::<u64>().ok().and_then(|sectors| sectors.checked_mul(SECTOR_BYTES));
                bytes.ok_or_else(|| wrong("a number of sectors", word))
            };
            let time = parse_seconds(time).ok_or_else(|| wrong("a time in seconds", time))?;
            let (offset, bytes) = (bytes(first)?, bytes(count)?);
            let action =
                checked_move(operation, files.index(device, place)?, (offset, place), (bytes, place))?;
            self.found += 1;
            return Ok(Some((0, Request { time, took: Duration::ZERO, action })));
        }
        Ok(None)
    }
}

/// True if a line is an event: it begins with a device, a processor, a number and a time with a decimal point.
pub(crate) fn is_event(line: &str) -> bool {
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let pair = |word: &str, mark| {
        word.split_once(mark).is_some_and(|(one, other)| is_number(one) && is_number(other))
    };
    let mut words = line.split_ascii_whitespace();
    let mut word = || words.next().unwrap_or_default();
    pair(word(), ',') && is_number(word()) && is_number(word()) && pair(word(), '.')
}

/// Returns the number of lost events from a line of totals such as `Skips: 3 forward (129 -   0.5%)`.
fn lost(line: &str) -> Option<u64> {
    let (_, events) = line.trim().strip_prefix("Skips:")?.split_once("forward (")?;
    events.split_ascii_whitespace().next()?.parse().ok()
}
