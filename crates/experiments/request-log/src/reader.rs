//! Reads a log in any format, request by request, within limits.

use std::io::{BufRead, Chain, Cursor, Read};

use crate::blkparse::{self, BlkparseReader};
use crate::calls::LogTables;
use crate::dxt::DxtReader;
use crate::error::{Error, Place, shown};
use crate::fio::{self, FioReader};
use crate::line_reader::LINE_BYTES_MAX;
use crate::request::Request;
use crate::table::{Columns, TableReader};
use crate::text::{self, TextReader};

/// Format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Request log: words separated by blanks.
    Text,
    /// Comma-separated values; the first line names the columns.
    Csv,
    /// Output of `darshan-dxt-parser`, from Darshan's extended tracing.
    Dxt,
    /// Log of one fio job, in version 2 or 3.
    Fio,
    /// Output of `blkparse`: requests of Linux to block devices.
    Blkparse,
}

/// Settings for reading a log.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Format; `None` if it is detected from the first line.
    pub format: Option<Format>,
    /// Titles of the columns of comma-separated values, if they are missing or unusual.
    pub columns: Columns,
    /// Limits on the size of the log.
    pub limits: Limits,
    /// Number of requests to read, in the order of lines; `None` for all.
    pub first: Option<u64>,
    /// True if each node's requests are sorted by time. If false, decreasing times are an error, except with
    /// [`Format::Dxt`], in which times restart with each file.
    pub sort: bool,
}

/// Limits on the size of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of requests.
    pub requests: u64,
    /// Maximum number of different files.
    pub files: u32,
    /// Maximum number of different nodes.
    pub nodes: u32,
    /// Maximum number of runs, repetitions and lists in all selections together.
    pub selection_nodes: u64,
}

impl Default for Limits {
    /// Returns limits of ten million requests (400 MB of memory), as many files as a replay can distinguish, and a
    /// thousand nodes. At its limit, the memory for selections is about as large as that for requests.
    fn default() -> Self {
        Limits { requests: 10_000_000, files: 1 << 15, nodes: 1 << 10, selection_nodes: 10_000_000 }
    }
}

/// Reader of a log in any format, which returns one request and its node at a time.
pub(crate) struct LogReader<R: BufRead> {
    of_format: OfFormat<R>,
}

enum OfFormat<R: BufRead> {
    Text(TextReader<Whole<R>>),
    Table(Box<TableReader<Whole<R>>>),
    Dxt(DxtReader<Whole<R>>),
    Fio(FioReader<Whole<R>>),
    Blkparse(BlkparseReader<Whole<R>>),
}

/// Input in front of which the first line was put back, after the format was detected from it.
type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

impl<R: BufRead> LogReader<R> {
    /// Starts reading a log. Detects its format from the first line, unless `reading` has a format. `number` is used as
    /// the number of the node if the format has no nodes.
    pub(crate) fn new(mut input: R, reading: &Reading, number: u32) -> Result<Self, Error> {
        let mut beginning = Vec::new();
        let format = match reading.format {
            Some(format) => format,
            None => {
                let read = input.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut beginning);
                read.map_err(|error| Error::reading(1, &error))?;
                detect(&beginning, &reading.columns)?
            }
        };
        let input = Cursor::new(beginning).chain(input);
        let of_format = match format {
            Format::Text => OfFormat::Text(TextReader::begin(input)?),
            Format::Csv => OfFormat::Table(Box::new(TableReader::begin(input, &reading.columns)?)),
            Format::Dxt => OfFormat::Dxt(DxtReader::new(input)),
            Format::Fio => OfFormat::Fio(FioReader::begin(input, number)?),
            Format::Blkparse => OfFormat::Blkparse(BlkparseReader::new(input)),
        };
        Ok(LogReader { of_format })
    }

    /// Returns the format of the log.
    pub(crate) fn format(&self) -> Format {
        match &self.of_format {
            OfFormat::Text(_) => Format::Text,
            OfFormat::Table(_) => Format::Csv,
            OfFormat::Dxt(_) => Format::Dxt,
            OfFormat::Fio(_) => Format::Fio,
            OfFormat::Blkparse(_) => Format::Blkparse,
        }
    }

    /// Returns notes for the user about missing parts of the recording and omitted requests. Call this after the whole
    /// log was read.
    pub(crate) fn notes(&self) -> Vec<String> {
        match &self.of_format {
            OfFormat::Text(reader) => reader.notes(),
            OfFormat::Table(reader) => reader.notes(),
            OfFormat::Dxt(reader) => reader.notes(),
            OfFormat::Fio(reader) => reader.notes(),
            OfFormat::Blkparse(reader) => reader.notes(),
        }
    }

    /// True if the log has calls and identifies collective calls (format 2).
    pub(crate) fn has_calls(&self) -> bool {
        matches!(&self.of_format, OfFormat::Text(reader) if reader.has_calls())
    }

    /// Reads the next request and its node; returns `None` at the end. Adds names of files and openings to `tables`.
    pub(crate) fn next_request(&mut self, tables: &mut LogTables) -> Result<Option<(u32, Request)>, Error> {
        match &mut self.of_format {
            OfFormat::Text(reader) => reader.next(tables),
            OfFormat::Table(reader) => reader.next(&mut tables.files),
            OfFormat::Dxt(reader) => reader.next(&mut tables.files),
            OfFormat::Fio(reader) => reader.next(&mut tables.files),
            OfFormat::Blkparse(reader) => reader.next(&mut tables.files),
        }
    }

    /// Returns the number of the line that was read last.
    pub(crate) fn line(&self) -> u64 {
        match &self.of_format {
            OfFormat::Text(reader) => reader.line(),
            OfFormat::Table(reader) => reader.line(),
            OfFormat::Dxt(reader) => reader.line(),
            OfFormat::Fio(reader) => reader.line(),
            OfFormat::Blkparse(reader) => reader.line(),
        }
    }
}

/// Detects the format of a log from its first line, or the beginning of that line.
fn detect(beginning: &[u8], columns: &Columns) -> Result<Format, Error> {
    let place = Place::Line(1);
    if beginning.is_empty() {
        return Err(Error::new(Place::Log, "it is empty"));
    }
    if beginning.get(8..16) == Some(&DARSHAN_MAGIC) {
        return Err(Error::new(Place::Log, "it is a binary log of Darshan").remedy(DARSHAN));
    }
    let line = std::str::from_utf8(beginning).ok().map(str::trim_end).filter(|line| !line.contains('\0'));
    let Some(line) = line else {
        return Err(Error::new(place, "it is not text").remedy(FORMATS));
    };
    let is_dxt = ["# darshan log version", "# DXT", "# ****"].iter().any(|start| line.starts_with(start));
    match () {
        () if line.starts_with(text::BEGINNING) => Ok(Format::Text),
        () if is_dxt => Ok(Format::Dxt),
        () if line.starts_with(fio::BEGINNING) => Ok(Format::Fio),
        () if blkparse::is_event(line) => Ok(Format::Blkparse),
        () if columns.titles.is_some() || line.contains(',') => Ok(Format::Csv),
        () => Err(Error::new(place, format!("{} is not the first line of a request log", shown(line)))
            .remedy(FORMATS)),
    }
}

/// Magic number after the version in Darshan's binary logs, as little-endian machines write it.
const DARSHAN_MAGIC: [u8; 8] = 6_567_223_u64.to_le_bytes();

const DARSHAN: &str =
    "Convert it to text with `darshan-dxt-parser FILE` or `python -m starfish.darshan FILE`.";

const FORMATS: &str = "A request log begins with \"# starfish requests 1\", comma-separated values with the \
                       titles of columns, output of darshan-dxt-parser with \"# darshan log version\", a log \
                       of fio with \"fio version 3 iolog\", and output of blkparse with a device such as 8,0.";
