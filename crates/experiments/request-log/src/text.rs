//! Reads and writes request logs in their own format.
//!
//! The first line is [`HEADER`]. Every other line is a request, a comment that begins with `#`, or empty. A request has
//! these words, separated by blanks or tabs:
//!
//! | word | meaning |
//! |---|---|
//! | time | seconds since a moment that is the same for all lines, to the nanosecond |
//! | node | a number for each node; the numbers need not be consecutive |
//! | file | any name of the file; `-` for none. Blanks, other invisible characters and `%` are written as `%20` |
//! | operation | `read`, `write`, or `sync` |
//! | offset | offset in the file in bytes; absent with `sync` |
//! | bytes | number of bytes; absent with `sync` |
//! | took | optional: duration in seconds |
//!
//! Times of a node never decrease. Lines of different nodes may be interleaved in any way.
//!
//! Format 2 has the first line [`CALLS_HEADER`], and additional kinds of lines, which also begin with time, node and
//! file. A selection is written in the form of the crate `layout`:
//!
//! | operation | words after it |
//! |---|---|
//! | `begin` | number of processes, including this one; `-` stands for the file |
//! | `open` | name of the opening, rank, number of members, bytes of a block, number of disks |
//! | `read-pieces`, `write-pieces` | selection, took |
//! | `read-all`, `write-all` | opening, number of the call, selection, took, method |
//! | `sync-all` | opening, number of the call, took |
//!
//! A comment that begins with `# incomplete: ` states that the log has only a part of the recording. Readers report
//! this comment.
//!
//! The calls of an opening that have the same number are one collective call. `took` and `method` are optional. A last
//! line without a newline is omitted, because the process was stopped while it wrote the line.

use std::io::{self, BufRead, Write};

use layout::{Operation, SELECTION_NODES_MAX, Selection};
use machine::Duration;

use crate::calls::{CallMethod, CommonTurn, LogTables, LoggedCall, OpeningToWrite};
use crate::error::{Error, Place, shown};
use crate::line_reader::{CALL_BYTES_MAX, Lines};
use crate::request::{Action, NO_FILE, READ, Request, SYNC, Stretch, WRITE};
use crate::request::{checked_move, escaped, parse_seconds, parse_seconds_taken, seconds, unescaped};

/// First line of a request log, with the number of the format.
pub const HEADER: &str = "# starfish requests 1";

/// First line of a request log with calls.
pub const CALLS_HEADER: &str = "# starfish requests 2";

/// Beginning of a comment that states which part of the requests the log contains. Readers report such a comment.
pub(crate) const INCOMPLETE: &str = "# incomplete: ";

/// Beginning of the first line of a request log of any version.
pub(crate) const BEGINNING: &str = "# starfish requests";

pub(crate) struct TextReader<R> {
    lines: Lines<R>,
    has_calls: bool,
    /// First comment in the log about missing parts.
    incomplete: Option<String>,
}

impl<R: BufRead> TextReader<R> {
    pub(crate) fn begin(input: R) -> Result<Self, Error> {
        let mut lines = Lines::new(input);
        let first = lines.next()?.unwrap_or_default().trim_end();
        let has_calls = first == CALLS_HEADER;
        if first != HEADER && !has_calls {
            let why = format!("expected {HEADER:?} or {CALLS_HEADER:?}, not {}", shown(first));
            return Err(Error::new(Place::Line(1), why));
        }
        if has_calls {
            lines.allow(CALL_BYTES_MAX);
        }
        Ok(TextReader { lines, has_calls, incomplete: None })
    }

    pub(crate) fn has_calls(&self) -> bool {
        self.has_calls
    }

    pub(crate) fn line(&self) -> u64 {
        self.lines.number()
    }

    /// Returns notes on the parts that the log lacks according to its comments.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.incomplete.iter().map(|part| format!("incomplete: {part}")).collect()
    }

    pub(crate) fn next(&mut self, tables: &mut LogTables) -> Result<Option<(u32, Request)>, Error> {
        loop {
            let number = self.lines.number() + 1;
            if self.lines.next()?.is_none() {
                return Ok(None);
            }
            if self.has_calls && !self.lines.is_ended() {
                tables.note_torn();
                return Ok(None);
            }
            if let Some(part) = self.lines.last().strip_prefix(INCOMPLETE) {
                self.incomplete.get_or_insert_with(|| part.to_owned());
            }
            let mut words = Words { line: self.lines.last(), number, at: 0 };
            match words.next() {
                Some((_, first)) if !first.starts_with('#') => words.at = 0,
                _ => continue,
            }
            self.lines.expect_end()?;
            let start = LineStart::of(&mut words)?;
            let request = match start.operation {
                _ if !self.has_calls => request(words, &start, tables).map(Some),
                BEGIN | OPEN => start.note(words, tables).map(|()| None),
                READ_PIECES | WRITE_PIECES | READ_ALL | WRITE_ALL | SYNC_ALL => {
                    call(words, &start, tables).map(Some)
                }
                _ => request(words, &start, tables).map(Some),
            };
            if let Some(request) = request? {
                return Ok(Some((start.node, request)));
            }
        }
    }
}

/// Iterator over the words of a line, each with its column.
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

    /// Parses the next word with `read`. The error message contains the description of the expected word.
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

    fn has_more(&self) -> bool {
        Words { ..*self }.next().is_some()
    }

    /// Parses the duration in the next word; 0 if the line has no more words.
    fn time_taken(&mut self) -> Result<Duration, Error> {
        if !self.has_more() {
            return Ok(Duration::ZERO);
        }
        self.expect(TIME, parse_seconds_taken).map(|(_, took)| took)
    }

    fn expect_end(&mut self) -> Result<(), Error> {
        match self.next() {
            None => Ok(()),
            Some((column, word)) => {
                let why = format!("expected the end of the line, not {}", shown(word));
                Err(Error::new(self.place(column), why))
            }
        }
    }
}

const TIME: &str = "a time in seconds";

/// Words for the operations of format 2.
const BEGIN: &str = "begin";
const OPEN: &str = "open";
const READ_PIECES: &str = "read-pieces";
const WRITE_PIECES: &str = "write-pieces";
const READ_ALL: &str = "read-all";
const WRITE_ALL: &str = "write-all";
const SYNC_ALL: &str = "sync-all";

/// Words at the beginning of every line.
struct LineStart<'a> {
    time: Duration,
    node: u32,
    file: Option<String>,
    file_column: usize,
    operation: &'a str,
    operation_column: usize,
}

impl<'a> LineStart<'a> {
    fn of(words: &mut Words<'a>) -> Result<Self, Error> {
        let (_, time) = words.expect(TIME, parse_seconds)?;
        let (_, node) = words.expect("the number of a node", number)?;
        let (file_column, file) = words.expect("the name of a file", file)?;
        let (operation_column, operation) = words.expect("read, write or sync", Some)?;
        Ok(LineStart { time, node, file, file_column, operation, operation_column })
    }

    /// Returns the index of the file that the line refers to.
    fn file(&self, words: &Words<'_>, tables: &mut LogTables) -> Result<u32, Error> {
        let place = || words.place(self.file_column);
        let Some(file) = &self.file else {
            return Err(Error::new(place(), format!("a {} needs a file", self.operation)));
        };
        tables.files.index(file, place)
    }

    /// Records a line that is not a request: a process starts, or opens a file.
    fn note(&self, mut words: Words<'_>, tables: &mut LogTables) -> Result<(), Error> {
        let place = words.place(self.operation_column);
        let noted = if self.operation == BEGIN {
            let (_, processes) = words.expect("a number of processes", number)?;
            tables.note_processes(processes, place)
        } else {
            let file = self.file(&words, tables)?;
            let (_, name) = words.expect("the name of an opening", Some)?;
            let (_, rank) = words.expect("a rank", number)?;
            let (_, size) = words.expect("a number of members", number)?;
            let (_, block_bytes) = words.expect("bytes of a block", number)?;
            let (_, stripes) = words.expect("a number of disks", number)?;
            let opening = OpeningToWrite { name, rank, size, block_bytes, stripes };
            tables.note_opening(self.node, file, opening).map_err(|why| Error::new(place, why))
        };
        words.expect_end()?;
        noted
    }
}

/// Parses a request of a form that both formats have.
fn request(mut words: Words<'_>, start: &LineStart<'_>, tables: &mut LogTables) -> Result<Request, Error> {
    let Some(operation) = operation(start.operation) else {
        let why = format!("expected read, write or sync, not {}", shown(start.operation));
        return Err(Error::new(words.place(start.operation_column), why));
    };
    let action = match (operation, &start.file) {
        (None, None) => Action::Sync,
        (None, Some(file)) => {
            let why = format!("a sync covers all files: expected {NO_FILE}, not {}", shown(file));
            return Err(Error::new(words.place(start.file_column), why));
        }
        (Some(_), None) => return Err(start.file(&words, tables).expect_err("there is none")),
        (Some(operation), Some(_)) => {
            let (offset_column, offset) = words.expect("an offset in bytes", number)?;
            let (bytes_column, bytes) = words.expect("a number of bytes", number)?;
            let file = start.file(&words, tables)?;
            checked_move(
                operation,
                file,
                (offset, || words.place(offset_column)),
                (bytes, || words.place(bytes_column)),
            )?
        }
    };
    let took = words.time_taken()?;
    words.expect_end()?;
    Ok(Request { time: start.time, took, action })
}

/// Parses a call of format 2.
fn call(mut words: Words<'_>, start: &LineStart<'_>, tables: &mut LogTables) -> Result<Request, Error> {
    let file = start.file(&words, tables)?;
    let mut place = words.place(start.operation_column);
    let mut together = None;
    if matches!(start.operation, READ_ALL | WRITE_ALL | SYNC_ALL) {
        let (column, name) = words.expect("the name of an opening", Some)?;
        let opening = tables.opening(name, start.node, file);
        let opening = opening.map_err(|why| Error::new(words.place(column), why))?;
        let (_, number) = words.expect("the number of a call", number)?;
        together = Some(CommonTurn { opening, number });
    }
    let operation = match start.operation {
        SYNC_ALL => None,
        READ_PIECES | READ_ALL => Some(Operation::Read),
        _ => Some(Operation::Write),
    };
    let mut moves = None;
    if let Some(operation) = operation {
        let (column, word) = words.expect("a selection", Some)?;
        place = words.place(column);
        let selection = word.parse::<Selection>();
        moves = Some((operation, selection.map_err(|error| Error::new(place.clone(), error.to_string()))?));
    }
    let took = words.time_taken()?;
    let has_method = moves.is_some() && together.is_some() && words.has_more();
    let method = has_method
        .then(|| words.expect("a method", CallMethod::named))
        .transpose()?
        .map(|(_, method)| method);
    words.expect_end()?;
    let action =
        tables.push(LoggedCall { file, moves, together, method }).map_err(|why| Error::new(place, why))?;
    Ok(Request { time: start.time, took, action })
}

/// Parses a file name. The inner `None` stands for no file. For a file whose name is `-`, the name is written with an
/// escape.
fn file(word: &str) -> Option<Option<String>> {
    if word == NO_FILE { Some(None) } else { unescaped(word).map(Some) }
}

/// Parses a number that consists only of digits, without a sign.
fn number<T: std::str::FromStr>(word: &str) -> Option<T> {
    word.parse().ok().filter(|_| !word.starts_with('+'))
}

/// Returns the operation that a word stands for. The inner `None` is a sync.
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

/// A call in the form for writing.
#[derive(Clone, Copy, Debug)]
pub struct CallToWrite<'a> {
    /// Name of the file.
    pub file: &'a str,
    /// Operation and selection; `None` for a sync, which is always collective.
    pub moves: Option<(Operation, &'a Selection)>,
    /// Name of the opening and number of the call; `None` for a call of a single process.
    pub together: Option<(&'a str, u64)>,
    /// Method of a collective call.
    pub method: Option<CallMethod>,
}

/// Writer of a request log, line by line.
pub struct LogWriter<W> {
    output: W,
}

impl<W: Write> LogWriter<W> {
    /// Starts a log.
    pub fn begin(mut output: W) -> io::Result<Self> {
        writeln!(output, "{HEADER}")?;
        writeln!(output, "# time node file operation offset bytes took")?;
        Ok(LogWriter { output })
    }

    /// Starts a log of format 2.
    pub fn begin_calls(mut output: W) -> io::Result<Self> {
        writeln!(output, "{CALLS_HEADER}")?;
        writeln!(output, "# time node file operation ...")?;
        Ok(LogWriter { output })
    }

    /// Writes a request that is not a call. `files` are the names of the files.
    ///
    /// # Panics
    /// If the request is a call.
    pub fn write<N: AsRef<str>>(&mut self, node: u32, request: &Request, files: &[N]) -> io::Result<()> {
        let time = seconds(request.time);
        match request.action {
            Action::Sync => write!(self.output, "{time} {node} {NO_FILE} {SYNC}")?,
            Action::Move(operation, Stretch { file, bytes, offset }) => {
                let (file, operation) = (escaped(files[file as usize].as_ref()), word_for(operation));
                write!(self.output, "{time} {node} {file} {operation} {offset} {bytes}")?;
            }
            Action::Call(_) => panic!("a call is written as such"),
        }
        self.end_line(request.took, None)
    }

    /// Writes that a node starts as one of `processes` processes.
    pub fn write_process(&mut self, (time, node): (Duration, u32), processes: u32) -> io::Result<()> {
        writeln!(self.output, "{} {node} {NO_FILE} {BEGIN} {processes}", seconds(time))
    }

    /// Writes that a node takes part in a collective open of this file.
    pub fn write_opening(
        &mut self,
        (time, node): (Duration, u32),
        file: &str,
        opening: OpeningToWrite<'_>,
    ) -> io::Result<()> {
        let OpeningToWrite { name, rank, size, block_bytes, stripes } = opening;
        let (time, file) = (seconds(time), escaped(file));
        writeln!(self.output, "{time} {node} {file} {OPEN} {name} {rank} {size} {block_bytes} {stripes}")
    }

    /// Writes a call of a node at the time of the request. Uses several lines if the selection is too long for one
    /// line.
    pub fn write_call(&mut self, node: u32, request: &Request, call: &CallToWrite<'_>) -> io::Result<()> {
        let CallToWrite { file, moves, together, method } = *call;
        let (time, file) = (seconds(request.time), escaped(file));
        let Some((operation, selection)) = moves else {
            let (opening, number) = together.unwrap_or_default();
            write!(self.output, "{time} {node} {file} {SYNC_ALL} {opening} {number}")?;
            return self.end_line(request.took, None);
        };
        let mut position = 0;
        loop {
            let (part, is_last) = short_part(selection, position);
            position += part.bytes();
            match (operation, together) {
                (Operation::Read, None) => write!(self.output, "{time} {node} {file} {READ_PIECES} {part}")?,
                (Operation::Write, None) => {
                    write!(self.output, "{time} {node} {file} {WRITE_PIECES} {part}")?
                }
                (Operation::Read, Some((opening, number))) => {
                    write!(self.output, "{time} {node} {file} {READ_ALL} {opening} {number} {part}")?;
                }
                (Operation::Write, Some((opening, number))) => {
                    write!(self.output, "{time} {node} {file} {WRITE_ALL} {opening} {number} {part}")?;
                }
            }
            self.end_line(request.took, method.filter(|_| together.is_some()))?;
            if is_last {
                return Ok(());
            }
        }
    }

    fn end_line(&mut self, took: Duration, method: Option<CallMethod>) -> io::Result<()> {
        if !took.is_zero() || method.is_some() {
            write!(self.output, " {}", seconds(took))?;
        }
        match method {
            Some(method) => writeln!(self.output, " {method}"),
            None => writeln!(self.output),
        }
    }

    /// Flushes the lines written so far to the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// Finishes the log and flushes it.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush()
    }
}

/// Returns the longest part of a selection, from a position on, that fits on one line, and true if it is the last part.
fn short_part(selection: &Selection, position: u64) -> (Selection, bool) {
    let mut bytes = selection.bytes() - position;
    loop {
        let part = selection.slice(position, bytes).expect("a part of what fits in a file");
        if part.nodes() <= SELECTION_NODES_MAX as u64 {
            let is_last = position + part.bytes() == selection.bytes();
            return (part, is_last);
        }
        bytes = bytes.div_ceil(2);
    }
}
