//! Reads the output of `darshan-dxt-parser`: requests that Darshan recorded with extended tracing (DXT).
//!
//! The format is documented with darshan-util. The lines that name a file are before its requests. For each rank, the
//! writes are before the reads:
//!
//! ```text
//!  # DXT, file_id: 16457598720760448348, file_name: /tmp/test/testFile
//!  # Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)  [OST]
//!   X_POSIX       0  write        0               0       262144      0.0029      0.0032
//! ```
//!
//! Times have four decimals and restart with each file, so requests must be sorted by time. Requests of MPI-IO are read
//! only if the log has no requests of POSIX, because both describe the same bytes.
//!
//! Lines before a file's requests state their number. `# *WARNING*` names modules that are incomplete because Darshan
//! ran out of memory. The reader reports missing requests and incomplete modules.

use std::io::BufRead;

use layout::Operation;
use machine::Duration;

use crate::error::{Error, Place, shown};
use crate::file_names::FileNames;
use crate::line_reader::Lines;
use crate::request::{Request, checked_move, parse_seconds};

pub(crate) struct DxtReader<R> {
    lines: Lines<R>,
    module: Option<Module>,
    state: DxtState,
    /// Number of requests so far.
    found: u64,
    /// Number of requests that end before they begin.
    backwards: u64,
}

/// Module of Darshan that recorded a request.
#[derive(Clone, Copy, PartialEq)]
enum Module {
    Posix,
    MpiIo,
}

/// Information from lines that are not requests.
#[derive(Default)]
struct DxtState {
    /// File whose requests follow.
    file: Option<String>,
    /// Number of announced requests of this file that have not been read yet.
    awaited: u64,
    /// Number of announced requests of earlier files that were missing.
    missing: u64,
    /// For each module, true if Darshan recorded only a part of it.
    is_partial: [bool; 2],
}

impl DxtState {
    fn take_in(&mut self, line: &str, number: u64) -> Result<(), Error> {
        if let Some(rest) = line.strip_prefix("# DXT, file_id:") {
            let name = rest.split_once("file_name:").map(|(_, name)| name.trim());
            let name =
                name.ok_or_else(|| Error::new(Place::Line(number), "expected file_name: and a name"))?;
            self.file = Some(name.to_owned());
            self.missing = self.missing.saturating_add(std::mem::take(&mut self.awaited));
        } else if let Some(count) = announced(line) {
            self.awaited = count;
        } else if line.contains("module contains incomplete data") {
            let module = if line.contains("DXT_POSIX") { Module::Posix } else { Module::MpiIo };
            self.is_partial[module as usize] = true;
        }
        Ok(())
    }
}

/// Returns the number of requests that a line announces.
fn announced(line: &str) -> Option<u64> {
    let (writes, reads) = line.strip_prefix("# DXT, write_count:")?.split_once(", read_count:")?;
    let count = |word: &str| word.trim().parse::<u64>().ok();
    Some(count(writes)?.saturating_add(count(reads)?))
}

impl<R: BufRead> DxtReader<R> {
    pub(crate) fn new(input: R) -> Self {
        DxtReader {
            lines: Lines::new(input),
            module: None,
            state: DxtState::default(),
            found: 0,
            backwards: 0,
        }
    }

    pub(crate) fn line(&self) -> u64 {
        self.lines.number()
    }

    /// Returns notes on missing requests. Call this after the whole log was read.
    pub(crate) fn notes(&self) -> Vec<String> {
        let DxtReader { found, backwards, .. } = *self;
        let missing = self.state.missing.saturating_add(self.state.awaited);
        let cut = (missing > 0).then(|| {
            let all = found.saturating_add(missing);
            format!("incomplete: it has {found} of the {all} requests that it announces")
        });
        let is_partial = self.module.is_some_and(|module| self.state.is_partial[module as usize]);
        let partial = is_partial.then(|| {
            let remedy = "increase it with DARSHAN_MODMEM=MIB";
            format!("incomplete: it has {found} requests, and Darshan ran out of memory for more; {remedy}")
        });
        let backwards = (backwards > 0).then(|| {
            format!("{backwards} of its requests end before they begin: their durations are unknown")
        });
        cut.into_iter().chain(partial).chain(backwards).collect()
    }

    pub(crate) fn next(&mut self, files: &mut FileNames) -> Result<Option<(u32, Request)>, Error> {
        loop {
            let number = self.lines.number() + 1;
            if self.lines.next()?.is_none() {
                return Ok(None);
            }
            let line = self.lines.last().trim();
            if line.is_empty() || line.starts_with('#') {
                self.state.take_in(line, number)?;
                continue;
            }
            self.lines.expect_end()?;
            let words: Vec<&str> = line.split_ascii_whitespace().take(8).collect();
            let module = match words[0] {
                "X_POSIX" => Module::Posix,
                "X_MPIIO" => Module::MpiIo,
                other => {
                    let why = format!("expected X_POSIX or X_MPIIO, not {}", shown(other));
                    return Err(Error::new(Place::Line(number), why));
                }
            };
            match (*self.module.get_or_insert(module), module) {
                // Requests of MPI-IO are skipped. Do not report them as missing.
                (Module::Posix, Module::MpiIo) => self.state.awaited = 0,
                (Module::MpiIo, Module::Posix) => {
                    let error = Error::new(Place::Line(number), "requests of POSIX after those of MPI-IO");
                    return Err(error.remedy("Remove the lines with X_MPIIO: they contain the same bytes."));
                }
                _ => {
                    let (node, request, is_backwards) =
                        request(self.state.file.as_deref(), &words, number, files)?;
                    self.state.awaited = self.state.awaited.saturating_sub(1);
                    self.found += 1;
                    self.backwards += u64::from(is_backwards);
                    return Ok(Some((node, request)));
                }
            }
        }
    }
}

/// Returns a request with its node, and true if the request ends before it begins.
fn request(
    file: Option<&str>,
    words: &[&str],
    number: u64,
    files: &mut FileNames,
) -> Result<(u32, Request, bool), Error> {
    let place = || Place::Line(number);
    let &[_, rank, operation, _, offset, length, start, end] = words else {
        return Err(Error::new(
            place(),
            "expected module, rank, write or read, segment, offset, length, start and end",
        ));
    };
    let Some(file) = file else {
        return Err(Error::new(place(), "a request before the line with its file name"));
    };
    let wrong = |what: &str, word: &str| Error::new(place(), format!("expected {what}, not {}", shown(word)));
    let operation = match operation {
        "read" => Operation::Read,
        "write" => Operation::Write,
        other => return Err(wrong("write or read", other)),
    };
    let count = |what, word: &str| word.parse::<u64>().map_err(|_| wrong(what, word));
    let time = |what, word: &str| parse_seconds(word).ok_or_else(|| wrong(what, word));
    let node = rank.parse().map_err(|_| wrong("a rank", rank))?;
    let (offset, bytes) = (count("an offset", offset)?, count("a length", length)?);
    let (start, end) = (time("a start in seconds", start)?, time("an end in seconds", end)?);
    let action = checked_move(operation, files.index(file, place)?, (offset, place), (bytes, place))?;
    let took = end.as_nanos().checked_sub(start.as_nanos()).map(Duration::from_nanos);
    let request = Request { time: start, took: took.unwrap_or(Duration::ZERO), action };
    Ok((node, request, took.is_none()))
}
