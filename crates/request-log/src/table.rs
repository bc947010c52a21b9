//! Comma-separated values, whose first line names the columns.
//!
//! A column is found by the names that people use for it, in any case; a time may have a unit at the end of its name,
//! as in `start_us`. Further columns are left alone.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use csv::{Reader as CsvReader, ReaderBuilder, StringRecord, Trim};
use layout::Operation;
use machine::Duration;

use crate::error::{Error, Place, shown};
use crate::file_names::FileNames;
use crate::request::{Action, Request, SYNC, checked_move, parse_seconds};

/// Names of the columns of comma-separated values: the usual name of each, and what it is called instead.
#[derive(Clone, Debug, Default)]
pub struct Columns(pub BTreeMap<String, String>);

/// The most bytes of a row.
const ROW_BYTES_MAX: u64 = 64 << 10;

/// A column: the name by which it can be mapped, and further names of it.
struct Column(&'static str, &'static [&'static str]);

const TIME: Column = Column("time", &["timestamp", "start", "start_time"]);
const NODE: Column = Column("node", &["rank", "process", "pid", "client"]);
const FILE: Column = Column("file", &["file_name", "filename", "path", "name"]);
const OPERATION: Column = Column("operation", &["op", "type", "action"]);
const OFFSET: Column = Column("offset", &["position"]);
const BYTES: Column = Column("bytes", &["length", "size", "count"]);
const TOOK: Column = Column("took", &["duration", "elapsed"]);
const END: Column = Column("end", &["end_time"]);

/// All of them; the last two need not be there.
const ALL: [&Column; 8] = [&TIME, &NODE, &FILE, &OPERATION, &OFFSET, &BYTES, &TOOK, &END];

/// Units of time at the end of a name, and how many of them are a second.
const UNITS: [(&str, f64); 4] = [("_s", 1.0), ("_ms", 1e3), ("_us", 1e6), ("_ns", 1e9)];

/// Where a column is.
#[derive(Clone, Copy)]
struct Found {
    index: usize,
    /// How many of its unit are a second.
    per_second: f64,
}

pub(crate) struct TableReader<R: BufRead> {
    rows: CsvReader<Bounded<R>>,
    handed_out: Rc<Cell<u64>>,
    row: StringRecord,
    head: StringRecord,
    time: Found,
    node: Found,
    file: Found,
    operation: Found,
    offset: Found,
    bytes: Found,
    took: Option<Found>,
    end: Option<Found>,
}

/// Refuses to go on if a row does not end.
struct Bounded<R> {
    input: R,
    /// How many bytes were handed out since a row ended.
    handed_out: Rc<Cell<u64>>,
}

impl<R: BufRead> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.handed_out.get() > ROW_BYTES_MAX {
            return Err(io::Error::other(format!("a row is longer than {ROW_BYTES_MAX} bytes")));
        }
        let read = self.input.read(buffer)?;
        self.handed_out.set(self.handed_out.get() + read as u64);
        Ok(read)
    }
}

impl<R: BufRead> TableReader<R> {
    pub(crate) fn begin(input: R, columns: &Columns) -> Result<Self, Error> {
        let handed_out = Rc::new(Cell::new(0));
        let input = Bounded { input, handed_out: handed_out.clone() };
        let mut rows = ReaderBuilder::new().trim(Trim::All).flexible(true).from_reader(input);
        let head = rows.headers().map_err(|error| of_csv(&error, 1))?.clone();
        if let Some(unknown) = columns.0.keys().find(|name| ALL.iter().all(|column| column.0 != *name)) {
            let names: Vec<&str> = ALL.iter().map(|column| column.0).collect();
            let why = format!("there is no column {unknown:?} to be named: they are {}", names.join(", "));
            return Err(Error::new(Place::Log, why));
        }
        let find = |column: &Column| find(&head, column, columns);
        let found = |column: &Column| find(column)?.ok_or_else(|| missing(&head, column));
        let (time, node, file, operation) = (found(&TIME)?, found(&NODE)?, found(&FILE)?, found(&OPERATION)?);
        let (offset, bytes) = (found(&OFFSET)?, found(&BYTES)?);
        let (took, end) = (find(&TOOK)?, find(&END)?);
        let row = StringRecord::new();
        Ok(TableReader { rows, handed_out, row, head, time, node, file, operation, offset, bytes, took, end })
    }

    pub(crate) fn line(&self) -> u64 {
        self.row.position().map_or(1, |position| position.line())
    }

    pub(crate) fn next(&mut self, files: &mut FileNames) -> Result<Option<(u32, Request)>, Error> {
        let line = self.rows.position().line();
        self.handed_out.set(0);
        if !self.rows.read_record(&mut self.row).map_err(|error| of_csv(&error, line))? {
            return Ok(None);
        }
        self.request(files).map(Some)
    }

    fn request(&self, files: &mut FileNames) -> Result<(u32, Request), Error> {
        let time = self.time(self.time)?;
        let took = match (self.took.filter(|took| self.has(*took)), self.end.filter(|end| self.has(*end))) {
            (Some(took), _) => self.time(took)?,
            (None, Some(end)) => {
                let end = self.time(end)?;
                Duration::from_nanos(end.as_nanos().saturating_sub(time.as_nanos()))
            }
            (None, None) => Duration::ZERO,
        };
        let node = self.expect(self.node, "the number of a node", |text| text.parse().ok())?;
        let action = match self.expect(self.operation, "read, write or sync", operation)? {
            None => Action::Sync,
            Some(operation) => {
                let name =
                    self.expect(self.file, "the name of a file", |name| (!name.is_empty()).then_some(name))?;
                let file = files.index(name, || self.place(self.file))?;
                let count = |text: &str| text.parse::<u64>().ok();
                let offset = self.expect(self.offset, "an offset in bytes", count)?;
                let bytes = self.expect(self.bytes, "a number of bytes", count)?;
                checked_move(
                    operation,
                    file,
                    (offset, || self.place(self.offset)),
                    (bytes, || self.place(self.bytes)),
                )?
            }
        };
        Ok((node, Request { time, took, action }))
    }

    fn has(&self, column: Found) -> bool {
        self.row.get(column.index).is_some_and(|text| !text.is_empty())
    }

    fn time(&self, column: Found) -> Result<Duration, Error> {
        self.expect(column, "a time", |text| match column.per_second {
            1.0 => parse_seconds(text),
            per_second => {
                let number: f64 = text.parse().ok()?;
                parse_seconds(&(number / per_second).to_string())
            }
        })
    }

    fn expect<'a, T>(
        &'a self,
        column: Found,
        what: &str,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<T, Error> {
        let Some(text) = self.row.get(column.index) else {
            return Err(Error::new(self.place(column), format!("expected {what}, not the end of the row")));
        };
        read(text)
            .ok_or_else(|| Error::new(self.place(column), format!("expected {what}, not {}", shown(text))))
    }

    fn place(&self, column: Found) -> Place {
        Place::Field(self.line(), self.head.get(column.index).unwrap_or_default().to_owned())
    }
}

fn of_csv(error: &csv::Error, line: u64) -> Error {
    let line = error.position().map_or(line, |position| position.line());
    match error.kind() {
        csv::ErrorKind::Io(error) => Error::reading(line, error),
        csv::ErrorKind::Utf8 { .. } => Error::new(Place::Line(line), "this is no text (UTF-8)"),
        _ => Error::new(Place::Line(line), error.to_string()),
    }
}

/// Where a column is, if it is there: by the name that was given for it, or by one of its usual names.
fn find(head: &StringRecord, column: &Column, columns: &Columns) -> Result<Option<Found>, Error> {
    let position = |name: &str| head.iter().position(|title| title.eq_ignore_ascii_case(name));
    if let Some(name) = columns.0.get(column.0) {
        let index = position(name).ok_or_else(|| {
            let titles: Vec<&str> = head.iter().take(20).collect();
            let why = format!("there is no column {}: there are {}", shown(name), titles.join(", "));
            Error::new(Place::Line(1), why)
        })?;
        let (_, per_second) = unit_of(name);
        return Ok(Some(Found { index, per_second }));
    }
    let is_time = [TIME.0, TOOK.0, END.0].contains(&column.0);
    for name in std::iter::once(&column.0).chain(column.1) {
        if let Some(index) = position(name) {
            return Ok(Some(Found { index, per_second: 1.0 }));
        }
        for (unit, per_second) in UNITS.into_iter().filter(|_| is_time) {
            if let Some(index) = position(&format!("{name}{unit}")) {
                return Ok(Some(Found { index, per_second }));
            }
        }
    }
    Ok(None)
}

/// The unit that a name ends in.
fn unit_of(name: &str) -> (&str, f64) {
    let name_of = |(unit, per_second): (&str, f64)| Some((name.strip_suffix(unit)?, per_second));
    UNITS.into_iter().find_map(name_of).unwrap_or((name, 1.0))
}

fn missing(head: &StringRecord, column: &Column) -> Error {
    let titles: Vec<&str> = head.iter().take(20).collect();
    let why = format!("there is no column for {}: there are {}", column.0, shown(&titles.join(", ")));
    let Column(name, others) = column;
    let remedy = format!("It is called {name} or {}, or is named with {name}=NAME.", others.join(", "));
    Error::new(Place::Line(1), why).remedy(remedy)
}

/// What a word asks for: to move bytes so, or a sync.
fn operation(word: &str) -> Option<Option<Operation>> {
    let is = |names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
    if is(&["read", "r"]) {
        Some(Some(Operation::Read))
    } else if is(&["write", "w"]) {
        Some(Some(Operation::Write))
    } else {
        is(&[SYNC]).then_some(None)
    }
}
