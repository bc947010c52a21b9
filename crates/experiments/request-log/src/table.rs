//! Reads comma-separated values. The first line has the titles of the columns, unless the caller provides them.
//!
//! A column is found by its usual names, in upper or lower case. The unit can follow after a colon, as in
//! `Timestamp:100ns` or `LBA:sectors`. The unit of a time can also be the end of the name, as in `start_us`. Other
//! columns are ignored.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use csv::{Reader as CsvReader, ReaderBuilder, StringRecord, Trim};
use layout::Operation;
use machine::{Decimal, Duration, parse_bytes};

use crate::error::{Error, Place, shown};
use crate::file_names::FileNames;
use crate::request::{
    Action, LogTime, Request, SECOND, SYNC, TimeError, checked_move, parse_time, parse_took,
};

/// Titles of the columns of comma-separated values. A unit can follow each title after a colon.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Titles, separated by commas, of a table whose first line is already a request.
    pub titles: Option<String>,
    /// Titles of columns that do not have a usual name, by the usual name.
    pub named: BTreeMap<String, String>,
}

/// Maximum length of a row in bytes.
const ROW_BYTES_MAX: u64 = 64 << 10;

/// A column: the name by which users can map it, and its other usual names.
struct Column(&'static str, &'static [&'static str]);

impl Column {
    fn is_time(&self) -> bool {
        [TIME.0, TOOK.0, END.0].contains(&self.0)
    }
}

const TIME: Column = Column("time", &["timestamp", "start", "start_time"]);
const NODE: Column = Column("node", &["rank", "process", "pid", "client"]);
const FILE: Column = Column("file", &["file_name", "filename", "path", "name"]);
const OPERATION: Column = Column("operation", &["op", "type", "action"]);
const OFFSET: Column = Column("offset", &["position"]);
const BYTES: Column = Column("bytes", &["length", "size", "count"]);
const TOOK: Column = Column("took", &["duration", "elapsed"]);
const END: Column = Column("end", &["end_time"]);

/// All columns. `node` and the last two are optional.
const ALL: [&Column; 8] = [&TIME, &NODE, &FILE, &OPERATION, &OFFSET, &BYTES, &TOOK, &END];

/// Units of time, with the number of nanoseconds in each.
const TIME_UNITS: [(&str, u64); 5] =
    [("s", SECOND), ("ms", 1_000_000), ("us", 1_000), ("100ns", 100), ("ns", 1)];

/// Unit of an offset or length in addition to the units of bytes, with its size in bytes: the sector of Linux and of
/// block traces.
const SECTORS: (&str, u64) = ("sectors", 512);

/// Column that was found in the table.
#[derive(Clone, Copy)]
struct Found {
    index: usize,
    /// Unit of the column, in nanoseconds or bytes.
    unit: u64,
}

pub(crate) struct TableReader<R: BufRead> {
    rows: CsvReader<Bounded<R>>,
    handed_out: Rc<Cell<u64>>,
    row: StringRecord,
    head: StringRecord,
    time: Found,
    node: Option<Found>,
    file: Found,
    operation: Found,
    offset: Found,
    bytes: Found,
    took: Option<Found>,
    end: Option<Found>,
}

/// Reader that fails if a row is longer than [`ROW_BYTES_MAX`], so that an endless row cannot exhaust the memory.
struct Bounded<R> {
    input: R,
    /// Number of bytes that were returned since the end of the last row.
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
        let mut builder = ReaderBuilder::new();
        let has_titles = columns.titles.is_none();
        let mut rows = builder.trim(Trim::All).flexible(true).has_headers(has_titles).from_reader(input);
        let head = match &columns.titles {
            None => rows.headers().map_err(|error| of_csv(&error, 1))?.clone(),
            Some(titles) => {
                let titles =
                    ReaderBuilder::new().trim(Trim::All).from_reader(titles.as_bytes()).headers().cloned();
                titles.map_err(|error| Error::new(Place::Log, format!("titles: {error}")))?
            }
        };
        if let Some(unknown) = columns.named.keys().find(|name| ALL.iter().all(|column| column.0 != *name)) {
            let names: Vec<&str> = ALL.iter().map(|column| column.0).collect();
            let why = format!("there is no column kind {unknown:?}: expected one of {}", names.join(", "));
            return Err(Error::new(Place::Log, why));
        }
        let find = |column: &Column| find(&head, column, columns);
        let found = |column: &Column| find(column)?.ok_or_else(|| missing(&head, column));
        let (time, node, file, operation) = (found(&TIME)?, find(&NODE)?, found(&FILE)?, found(&OPERATION)?);
        let (offset, bytes) = (found(&OFFSET)?, found(&BYTES)?);
        let (took, end) = (find(&TOOK)?, find(&END)?);
        let row = StringRecord::new();
        Ok(TableReader { rows, handed_out, row, head, time, node, file, operation, offset, bytes, took, end })
    }

    /// Returns a note if the table has no column for nodes.
    pub(crate) fn notes(&self) -> Vec<String> {
        let alone =
            self.node.is_none().then(|| "it has no column for node: all requests are of node 0".to_owned());
        alone.into_iter().collect()
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
        let time = self.time(self.time, parse_time)?;
        let took = match (self.took.filter(|took| self.has(*took)), self.end.filter(|end| self.has(*end))) {
            (Some(took), _) => self.time(took, parse_took)?,
            (None, Some(end)) => self.time_until(end, time)?,
            (None, None) => Duration::ZERO,
        };
        let node = self
            .node
            .map_or(Ok(0), |node| self.expect(node, "the number of a node", |text| text.parse().ok()))?;
        let action = match self.expect(self.operation, "read, write or sync", operation)? {
            None => Action::Sync,
            Some(operation) => {
                let name =
                    self.expect(self.file, "the name of a file", |name| (!name.is_empty()).then_some(name))?;
                let file = files.index(name, || self.place(self.file))?;
                let offset = self.bytes(self.offset, "an offset in bytes")?;
                let bytes = self.bytes(self.bytes, "a number of bytes")?;
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

    fn time(&self, column: Found, parse: fn(&str, u64) -> LogTime) -> Result<Duration, Error> {
        let time = self.expect(column, "a time", |text| match parse(text, column.unit) {
            Err(TimeError::NoNumber) => None,
            time => Some((time, text)),
        });
        let (time, text) = time?;
        time.map_err(|_| {
            let title = name_and_unit(self.head.get(column.index).unwrap_or_default()).0;
            let error = Error::new(self.place(column), format!("{} is longer than centuries", shown(text)));
            error.remedy(format!("Append the unit to the title, such as {title}:100ns."))
        })
    }

    /// Returns the duration from `begin` to the time in a column.
    fn time_until(&self, column: Found, begin: Duration) -> Result<Duration, Error> {
        let end = self.time(column, parse_time)?;
        let took = end.as_nanos().checked_sub(begin.as_nanos()).map(Duration::from_nanos);
        took.ok_or_else(|| Error::new(self.place(column), "the request ends before it begins"))
    }

    /// Parses a number in the column's unit, decimal or (after `0x`) hexadecimal. Returns it in bytes.
    fn bytes(&self, column: Found, what: &str) -> Result<u64, Error> {
        self.expect(column, what, |text| match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) if !digits.starts_with('+') => {
                u64::from_str_radix(digits, 16).ok()?.checked_mul(column.unit)
            }
            _ => Decimal::parse(text)?.whole(column.unit),
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
        csv::ErrorKind::Utf8 { .. } => Error::new(Place::Line(line), "it is not UTF-8 text"),
        _ => Error::new(Place::Line(line), error.to_string()),
    }
}

/// Finds a column by its mapped name or by one of its usual names; `None` if the table does not have this column.
fn find(head: &StringRecord, column: &Column, columns: &Columns) -> Result<Option<Found>, Error> {
    let position = |name: &str| {
        let is_whole = |title: &str| title.eq_ignore_ascii_case(name);
        let is_with_unit = |title: &str| name_and_unit(title).0.eq_ignore_ascii_case(name);
        head.iter().position(is_whole).or_else(|| head.iter().position(is_with_unit))
    };
    let found = |index: usize, unit: Option<&str>| {
        let own = name_and_unit(&head[index]).1;
        Ok(Some(Found { index, unit: unit_of(column, &head[index], unit.or(own))? }))
    };
    if let Some(named) = columns.named.get(column.0) {
        let (name, unit) = name_and_unit(named);
        let index = position(named).map(|index| (index, None)).or_else(|| Some((position(name)?, unit)));
        let (index, unit) = index.ok_or_else(|| {
            let titles: Vec<&str> = head.iter().take(20).collect();
            let why = format!("there is no column {}; the columns are {}", shown(name), titles.join(", "));
            Error::new(Place::Line(1), why)
        })?;
        return found(index, unit);
    }
    for name in std::iter::once(&column.0).chain(column.1) {
        let suffixes = TIME_UNITS.into_iter().filter(|_| column.is_time());
        let names = suffixes.map(|(unit, _)| format!("{name}_{unit}"));
        if let Some(index) = std::iter::once((*name).to_owned()).chain(names).find_map(|name| position(&name))
        {
            return found(index, None);
        }
    }
    Ok(None)
}

/// Splits a title such as `Timestamp:100ns` into name and unit.
fn name_and_unit(text: &str) -> (&str, Option<&str>) {
    text.rsplit_once(':').map_or((text, None), |(name, unit)| (name, Some(unit)))
}

/// Returns the unit of a column, in nanoseconds or bytes: the given unit, else the unit at the end of the title, else
/// the default (seconds or bytes).
fn unit_of(column: &Column, title: &str, given: Option<&str>) -> Result<u64, Error> {
    let wrong = |unit: &str, units: &str| {
        let why = format!("{} has no unit {}: expected {units}", column.0, shown(unit));
        Error::new(Place::Line(1), why)
    };
    if column.is_time() {
        let title = title.to_ascii_lowercase();
        let ends_in = |unit: &str| title.strip_suffix(unit).is_some_and(|name| name.ends_with('_'));
        let is_meant = |unit: &str| given.map_or_else(|| ends_in(unit), |given| given == unit);
        let unit =
            TIME_UNITS.into_iter().find(|(unit, _)| is_meant(unit)).map(|(_, nanoseconds)| nanoseconds);
        return match (unit, given) {
            (Some(unit), _) => Ok(unit),
            (None, None) => Ok(SECOND),
            (None, Some(given)) => Err(wrong(given, &TIME_UNITS.map(|(unit, _)| unit).join(", "))),
        };
    }
    match given {
        None => Ok(1),
        Some(unit) if unit == SECTORS.0 => Ok(SECTORS.1),
        Some(unit) if [OFFSET.0, BYTES.0].contains(&column.0) => {
            let bytes =
                parse_bytes(unit).or_else(|| parse_bytes(&format!("1{unit}"))).filter(|bytes| *bytes > 0);
            bytes.ok_or_else(|| wrong(unit, "sectors, or bytes such as 4096 or KiB"))
        }
        // If the text after the colon is no valid unit, the colon is a part of the title.
        Some(_) => Ok(1),
    }
}

fn missing(head: &StringRecord, column: &Column) -> Error {
    let titles: Vec<&str> = head.iter().take(20).collect();
    let why = format!("there is no column for {}; the columns are {}", column.0, shown(&titles.join(", ")));
    let Column(name, others) = column;
    let remedy = format!(
        "The expected title is {name} or {}; name another one with {name}=NAME. If the first line is a \
         request, give all titles.",
        others.join(", ")
    );
    Error::new(Place::Line(1), why).remedy(remedy)
}

/// Returns the operation that a word stands for. The inner `None` is a sync.
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
