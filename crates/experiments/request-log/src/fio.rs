//! Reads logs that fio writes with `write_iolog`, in versions 2 and 3. A log has the requests of one job.
//!
//! ```text
//!  fio version 3 iolog
//!  189 /dev/sda open
//!  194 /dev/sda read 0 4096
//!  15221 /dev/sda sync 32768 0
//! ```
//!
//! Times of version 3 are in microseconds. Version 2 has no times, but waits in microseconds between actions. A log has
//! one node. Trims are counted and omitted, because request logs cannot contain trims.

use std::io::BufRead;

use layout::Operation;
use machine::Duration;

use crate::error::{Error, Place, shown};
use crate::file_names::FileNames;
use crate::line_reader::Lines;
use crate::request::{Action, Request, checked_move, parse_time};

/// Beginning of the first line of a fio log.
pub(crate) const BEGINNING: &str = "fio version ";

/// Nanoseconds in a microsecond.
const MICROSECOND: u64 = 1_000;

pub(crate) struct FioReader<R> {
    lines: Lines<R>,
    node: u32,
    has_times: bool,
    /// Sum of the waits of version 2 so far.
    waited: Duration,
    trims: u64,
}

impl<R: BufRead> FioReader<R> {
    /// Starts reading a log. All its requests belong to `node`.
    pub(crate) fn begin(input: R, node: u32) -> Result<Self, Error> {
        let mut lines = Lines::new(input);
        let has_times = match lines.next()?.unwrap_or_default().trim_end() {
            "fio version 2 iolog" => false,
            "fio version 3 iolog" => true,
            other => {
                let why = format!(
                    "expected \"fio version 2 iolog\" or \"fio version 3 iolog\", not {}",
                    shown(other)
                );
                return Err(Error::new(Place::Line(1), why));
            }
        };
        Ok(FioReader { lines, node, has_times, waited: Duration::ZERO, trims: 0 })
    }

    pub(crate) fn line(&self) -> u64 {
        self.lines.number()
    }

    /// Returns notes on omitted requests.
    pub(crate) fn notes(&self) -> Vec<String> {
        let trims = (self.trims > 0).then(|| format!("{} trims are omitted", self.trims));
        trims.into_iter().collect()
    }

    pub(crate) fn next(&mut self, files: &mut FileNames) -> Result<Option<(u32, Request)>, Error> {
        while self.lines.next()?.is_some() {
            let mut words = self.lines.last().split_ascii_whitespace();
            let place = || Place::Line(self.lines.number());
            let wrong =
                |what: &str, word: &str| Error::new(place(), format!("expected {what}, not {}", shown(word)));
            let time = match self.has_times {
                true => words.next(),
                false => Some("0"),
            };
            let (Some(time), Some(name), Some(action)) = (time, words.next(), words.next()) else {
                if self.lines.last().trim().is_empty() {
                    continue;
                }
                return Err(Error::new(
                    place(),
                    "expected a file and an action, with their time in version 3",
                ));
            };
            if matches!(action, "add" | "open" | "close") {
                continue;
            }
            self.lines.expect_end()?;
            let time = parse_time(time, MICROSECOND).map_err(|_| wrong("a time in microseconds", time))?;
            let mut count = |what: &str| {
                let word = words.next().unwrap_or_default();
                word.parse::<u64>().map_err(|_| wrong(what, word))
            };
            let action = match action {
                "read" | "write" => {
                    let operation = if action == "read" { Operation::Read } else { Operation::Write };
                    let (offset, bytes) = (count("an offset")?, count("a length")?);
                    checked_move(operation, files.index(name, place)?, (offset, place), (bytes, place))?
                }
                "sync" | "datasync" | "sync_file_range" => Action::Sync,
                "trim" => {
                    self.trims += 1;
                    continue;
                }
                "wait" if !self.has_times => {
                    let microseconds = count("microseconds")?.to_string();
                    let waited = parse_time(&microseconds, MICROSECOND);
                    let waited = waited.map_err(|_| wrong("microseconds", &microseconds))?;
                    // Limit the sum to the maximum time of a log.
                    let sum = (self.waited + waited).as_nanos();
                    self.waited = Duration::from_nanos(sum.min(u64::MAX / 2));
                    continue;
                }
                other => return Err(wrong("read, write, sync, datasync, trim, add, open or close", other)),
            };
            return Ok(Some((self.node, Request { time: time + self.waited, took: Duration::ZERO, action })));
        }
        Ok(None)
    }
}
