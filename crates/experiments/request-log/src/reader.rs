//! Reading a log of any format, request by request, within limits.

use std::io::{BufRead, Chain, Cursor, Read};

use crate::blkparse::{self, BlkparseReader};
use crate::calls::LogTables;
use crate::dxt::DxtReader;
use crate::error::{Error, Place, shown};
use crate::fio::{self, FioReader};
use crate::lines::LINE_BYTES_MAX;
use crate::request::Request;
use crate::table::{Columns, TableReader};
use crate::text::{self, TextReader};

/// How a log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As request logs are: words with blanks between them.
    Text,
    /// As comma-separated values whose first line names the columns.
    Csv,
    /// As `darshan-dxt-parser` prints what Darshan has recorded with extended tracing.
    Dxt,
    /// As fio writes what one of its jobs did, in version 2 or 3.
    Fio,
    /// As `blkparse` prints what Linux asked block devices for.
    Blkparse,
}

/// How a log is to be read.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Its format; none to go by its first line.
    pub format: Option<Format>,
    /// Titles of the columns of comma-separated values, where they are missing or unusual.
    pub columns: Columns,
    /// How much is taken in.
    pub limits: Limits,
    /// The number of requests to read, in the order of lines; none to read all.
    pub first: Option<u64>,
    /// Whether each node's requests are put in the order of their times. Without this, times that run backwards are an
    /// error, but with [`Format::Dxt`], where each file has its own.
    pub sort: bool,
}

/// The most that is taken in of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests.
    pub requests: u64,
    /// Different files.
    pub files: u32,
    /// Different nodes.
    pub nodes: u32,
    /// Runs, repetitions and lists of all selections.
    pub selection_nodes: u64,
}

impl Default for Limits {
    /// Ten million requests, 400 MB of memory; as many files as a replay can tell apart; a thousand nodes; selections
    /// that take about as much as the requests.
    fn default() -> Self {
        Limits { requests: 10_000_000, files: 1 << 15, nodes: 1 << 10, selection_nodes: 10_000_000 }
    }
}

/// Reads one request after the other, each with its node.
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

/// A log of which the beginning has been looked at.
type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

impl<R: BufRead> LogReader<R> {
    /// Begins with a log, whose first line tells its format, unless that is given. `number` is that of its node if the
    /// format has none.
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

    /// The format that it has.
    pub(crate) fn format(&self) -> Format {
        match &self.of_format {
            OfFormat::Text(_) => Format::Text,
            OfFormat::Table(_) => Format::Csv,
            OfFormat::Dxt(_) => Format::Dxt,
            OfFormat::Fio(_) => Format::Fio,
            OfFormat::Blkparse(_) => Format::Blkparse,
        }
    }

    /// What is to be known of a log that has been read to its end: which part of what happened it lacks, and what was
    /// left out.
    pub(crate) fn notes(&self) -> Vec<String> {
        match &self.of_format {
            OfFormat::Text(reader) => reader.notes(),
            OfFormat::Table(reader) => reader.notes(),
            OfFormat::Dxt(reader) => reader.notes(),
            OfFormat::Fio(reader) => reader.notes(),
            OfFormat::Blkparse(reader) => reader.notes(),
        }
    }

    /// Whether it tells calls, and which of them belong together.
    pub(crate) fn tells_calls(&self) -> bool {
        matches!(&self.of_format, OfFormat::Text(reader) if reader.tells_calls())
    }

    /// The next request and its node; none at the end. What it names is in the tables.
    pub(crate) fn next_request(&mut self, tables: &mut LogTables) -> Result<Option<(u32, Request)>, Error> {
        match &mut self.of_format {
            OfFormat::Text(reader) => reader.next(tables),
            OfFormat::Table(reader) => reader.next(&mut tables.files),
            OfFormat::Dxt(reader) => reader.next(&mut tables.files),
            OfFormat::Fio(reader) => reader.next(&mut tables.files),
            OfFormat::Blkparse(reader) => reader.next(&mut tables.files),
        }
    }

    /// The number of the line that was read last.
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

/// The format of a log of which this is the first line, or the beginning of it.
fn detect(beginning: &[u8], columns: &Columns) -> Result<Format, Error> {
    let place = Place::Line(1);
    if beginning.is_empty() {
        return Err(Error::new(Place::Log, "it is empty"));
    }
    if beginning.get(8..16) == Some(&DARSHAN_MAGIC) {
        return Err(Error::new(Place::Log, "this is a log of Darshan, which is not text").remedy(DARSHAN));
    }
    let line = std::str::from_utf8(beginning).ok().map(str::trim_end).filter(|line| !line.contains('\0'));
    let Some(line) = line else {
        return Err(Error::new(place, "this is no text").remedy(FORMATS));
    };
    let is_dxt = ["# darshan log version", "# DXT", "# ****"].iter().any(|start| line.starts_with(start));
    match () {
        () if line.starts_with(text::BEGINNING) => Ok(Format::Text),
        () if is_dxt => Ok(Format::Dxt),
        () if line.starts_with(fio::BEGINNING) => Ok(Format::Fio),
        () if blkparse::is_event(line) => Ok(Format::Blkparse),
        () if columns.titles.is_some() || line.contains(',') => Ok(Format::Csv),
        () => Err(Error::new(place, format!("{} begins no request log", shown(line))).remedy(FORMATS)),
    }
}

/// What the logs of Darshan have behind their version, from little-endian machines.
const DARSHAN_MAGIC: [u8; 8] = 6_567_223_u64.to_le_bytes();

const DARSHAN: &str =
    "It is read when `darshan-dxt-parser FILE` or `python -m starfish.darshan FILE` has made text of it.";

const FORMATS: &str = "A request log begins with \"# starfish requests 1\", one of comma-separated values with the titles \
                       of its columns, what darshan-dxt-parser prints with \"# darshan log version\", a log of fio with \
                       \"fio version 3 iolog\", what blkparse prints with a device such as 8,0.";
