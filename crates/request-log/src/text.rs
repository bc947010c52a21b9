//! The format of request logs: reading and writing it.
//!
//! The first line is [`HEADER`]. Every other line is a request, a comment that begins with `#`, or empty. A request is
//! these words, with blanks or tabs between them:
//!
//! | word | what it is |
//! |---|---|
//! | time | seconds since some time that is the same for all lines, to the nanosecond |
//! | node | a number for each node; the numbers need not follow each other |
//! | file | any name of it; `-` for none. Blanks, other invisible characters and `%` are written as `%20` |
//! | operation | `read`, `write`, or `sync` |
//! | offset | where in the file, in bytes; not with `sync` |
//! | bytes | how many; not with `sync` |
//! | took | optional: seconds that it took |
//!
//! The times of one node do not run backwards. Lines of different nodes may be mixed in any way.

use std::io::{self, BufRead, Write};

use layout::Operation;

use crate::error::{Error, Place, shown};
use crate::file_names::FileNames;
use crate::lines::Lines;
use crate::request::{Action, NO_FILE, READ, Request, SYNC, Stretch, WRITE};
use crate::request::{checked_move, escaped, parse_seconds, seconds, unescaped};

/// The first line of a request log. The number is that of the format.
pub const HEADER: &str = "# starfish requests 1";

/// What the first line of a request log of any version begins with.
pub(crate) const BEGINNING: &str = "# starfish requests";

pub(crate) struct TextReader<R> {
    lines: Lines<R>,
}

impl<R: BufRead> TextReader<R> {
    pub(crate) fn begin(input: R) -> Result<Self, Error> {
        let mut lines = Lines::new(input);
        let first = lines.next()?.unwrap_or_default().trim_end();
        if first != HEADER {
            let why = format!("expected {HEADER:?}, not {}", shown(first));
            return Err(Error::new(Place::Line(1), why));
        }
        Ok(TextReader { lines })
    }

    pub(crate) fn line(&self) -> u64 {
        self.lines.number()
    }

    pub(crate) fn next(&mut self, files: &mut FileNames) -> Result<Option<(u32, Request)>, Error> {
        loop {
            let number = self.lines.number() + 1;
            let Some(line) = self.lines.next()? else { return Ok(None) };
            let mut words = Words { line, number, at: 0 };
            match words.next() {
                Some((_, first)) if !first.starts_with('#') => {
                    words.at = 0;
                    return request(words, files).map(Some);
                }
                _ => {}
            }
        }
    }
}

/// The words of a line, each with its column.
#[derive(Clone, Copy)]
struct Words<'a> {
    line: &'a str,
    number: u64,
    at: usize,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<(usize, &'a str)> {
        let rest = &self.line[self.at..];
        let start = self.at + rest.find(|letter| letter != ' ' && letter != '\t')?;
        let word = self.line[start..].split([' ', '\t']).next().unwrap_or_default();
        self.at = start + word.len();
        Some((start, word))
    }

    fn place(&self, column: usize) -> Place {
        Place::Column(self.number, column + 1)
    }

    /// The next word as `read` understands it.
    fn expect<T>(
        &mut self,
        what: &str,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<(usize, T), Error> {
        let Some((column, word)) = self.next() else {
            return Err(Error::new(
                self.place(self.line.len()),
                format!("expected {what}, not the end of the line"),
            ));
        };
        let wrong = || Error::new(self.place(column), format!("expected {what}, not {}", shown(word)));
        Ok((column, read(word).ok_or_else(wrong)?))
    }
}

const TIME: &str = "a time in seconds";

fn request(mut words: Words<'_>, files: &mut FileNames) -> Result<(u32, Request), Error> {
    let (_, time) = words.expect(TIME, parse_seconds)?;
    let (_, node) = words.expect("the number of a node", number)?;
    let (file_column, file) = words.expect("the name of a file", file)?;
    let (_, operation) = words.expect("read, write or sync", operation)?;
    let action = match (operation, file) {
        (None, None) => Action::Sync,
        (None, Some(file)) => {
            let why = format!("a sync is of all files: expected {NO_FILE}, not {}", shown(&file));
            return Err(Error::new(words.place(file_column), why));
        }
        (Some(operation), None) => {
            let why = format!("a {} is of a file", word_for(operation));
            return Err(Error::new(words.place(file_column), why));
        }
        (Some(operation), Some(file)) => {
            let (offset_column, offset) = words.expect("an offset in bytes", number)?;
            let (bytes_column, bytes) = words.expect("a number of bytes", number)?;
            let file = files.index(&file, || words.place(file_column))?;
            checked_move(
                operation,
                file,
                (offset, || words.place(offset_column)),
                (bytes, || words.place(bytes_column)),
            )?
        }
    };
    let took = match words.next() {
        None => Default::default(),
        Some((column, _)) => {
            words.at = column;
            words.expect(TIME, parse_seconds)?.1
        }
    };
    if let Some((column, word)) = words.next() {
        return Err(Error::new(
            words.place(column),
            format!("expected the end of the line, not {}", shown(word)),
        ));
    }
    Ok((node, Request { time, took, action }))
}

/// What a word names: no file, or the one of this name. A file whose name is `-` is written with an escape.
fn file(word: &str) -> Option<Option<String>> {
    if word == NO_FILE { Some(None) } else { unescaped(word).map(Some) }
}

/// A number of digits alone.
fn number<T: std::str::FromStr>(word: &str) -> Option<T> {
    word.parse().ok().filter(|_| !word.starts_with('+'))
}

/// What a word asks for: to move bytes so, or a sync.
fn operation(word: &str) -> Option<Option<Operation>> {
    match word {
        READ => Some(Some(Operation::Read)),
        WRITE => Some(Some(Operation::Write)),
        SYNC => Some(None),
        _ => None,
    }
}

fn word_for(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => READ,
        Operation::Write => WRITE,
    }
}

/// Writes a request log, request by request.
pub struct LogWriter<W> {
    output: W,
}

impl<W: Write> LogWriter<W> {
    /// Begins a log.
    pub fn begin(mut output: W) -> io::Result<Self> {
        writeln!(output, "{HEADER}")?;
        writeln!(output, "# time node file operation offset bytes took")?;
        Ok(LogWriter { output })
    }

    /// Writes a request of a node; `files` are the names of files.
    pub fn write<N: AsRef<str>>(&mut self, node: u32, request: &Request, files: &[N]) -> io::Result<()> {
        let time = seconds(request.time);
        match request.action {
            Action::Sync => write!(self.output, "{time} {node} {NO_FILE} {SYNC}")?,
            Action::Move(operation, Stretch { file, bytes, offset }) => {
                let (file, operation) = (escaped(files[file as usize].as_ref()), word_for(operation));
                write!(self.output, "{time} {node} {file} {operation} {offset} {bytes}")?;
            }
        }
        if !request.took.is_zero() {
            write!(self.output, " {}", seconds(request.took))?;
        }
        writeln!(self.output)
    }

    /// Ends the log.
    pub fn finish(mut self) -> io::Result<()> {
        self.output.flush()
    }
}
