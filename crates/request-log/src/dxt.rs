//! What `darshan-dxt-parser` prints: the requests of a program that Darshan has recorded with extended tracing (DXT).
//!
//! The format is documented with darshan-util. After lines that tell a file come its requests, a rank's writes and then
//! its reads:
//!
//! ```text
//!  # DXT, file_id: 16457598720760448348, file_name: /tmp/test/testFile
//!  # Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)  [OST]
//!   X_POSIX       0  write        0               0       262144      0.0029      0.0032
//! ```
//!
//! Times have four decimals, and begin anew with each file, so that they have to be sorted. What MPI-IO was asked for
//! is read only if nothing is told of what it asked POSIX for: these are the same bytes.

use std::io::BufRead;

use layout::Operation;
use machine::Duration;

use crate::error::{Error, Place, shown};
use crate::file_names::FileNames;
use crate::lines::Lines;
use crate::request::{Request, checked_move, parse_seconds};

pub(crate) struct DxtReader<R> {
    lines: Lines<R>,
    file: Option<String>,
    module: Option<Module>,
}

/// The module of Darshan whose requests are being read.
#[derive(Clone, Copy, PartialEq)]
enum Module {
    Posix,
    MpiIo,
}

impl<R: BufRead> DxtReader<R> {
    pub(crate) fn new(input: R) -> Self {
        DxtReader { lines: Lines::new(input), file: None, module: None }
    }

    pub(crate) fn line(&self) -> u64 {
        self.lines.number()
    }

    pub(crate) fn next(&mut self, files: &mut FileNames) -> Result<Option<(u32, Request)>, Error> {
        loop {
            let number = self.lines.number() + 1;
            let Some(line) = self.lines.next()? else { return Ok(None) };
            let line = line.trim();
            if let Some(told) = line.strip_prefix("# DXT, file_id:") {
                let name = told.split_once("file_name:").map(|(_, name)| name.trim());
                let name =
                    name.ok_or_else(|| Error::new(Place::Line(number), "expected file_name: and a name"))?;
                self.file = Some(name.to_owned());
                continue;
            }
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
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
                (Module::Posix, Module::MpiIo) => continue,
                (Module::MpiIo, Module::Posix) => {
                    let error = Error::new(Place::Line(number), "requests of POSIX after those of MPI-IO");
                    return Err(error.remedy("Take the lines with X_MPIIO out: they are the same bytes."));
                }
                _ => return request(self.file.as_deref(), &words, number, files).map(Some),
            }
        }
    }
}

fn request(
    file: Option<&str>,
    words: &[&str],
    number: u64,
    files: &mut FileNames,
) -> Result<(u32, Request), Error> {
    let place = || Place::Line(number);
    let &[_, rank, operation, _, offset, length, start, end] = words else {
        return Err(Error::new(
            place(),
            "expected module, rank, write or read, segment, offset, length, start and end",
        ));
    };
    let Some(file) = file else {
        return Err(Error::new(place(), "a request before the line that tells its file"));
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
    let took = Duration::from_nanos(end.as_nanos().saturating_sub(start.as_nanos()));
    Ok((node, Request { time: start, took, action }))
}
