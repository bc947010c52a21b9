//! A whole log in memory, node by node.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt;
use std::io::{self, BufRead, Write};

use layout::Operation;
use machine::Duration;

use crate::error::{Error, Place};
use crate::reader::{Format, LogReader, Reading};
use crate::request::{Action, Request, Stretch, seconds};
use crate::text::LogWriter;

/// Bytes of memory for each request of a log.
pub const REQUEST_MEMORY: usize = size_of::<Request>();

/// What nodes asked of files.
#[derive(Clone, PartialEq)]
pub struct RequestLog {
    files: Vec<LoggedFile>,
    nodes: Vec<LoggedNode>,
    start: Duration,
}

/// A file of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedFile {
    /// Its name in the log.
    pub name: String,
    /// Where the furthest request ends, in bytes.
    pub end: u64,
    /// Whether somebody reads of it.
    pub is_read: bool,
    /// Whether somebody writes to it.
    pub is_written: bool,
}

/// A node of a log.
#[derive(Clone, PartialEq)]
pub struct LoggedNode {
    /// Its number in the log.
    pub number: u32,
    /// Its requests in the order of time.
    pub requests: Vec<Request>,
}

/// What a log comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// How many reads.
    pub reads: u64,
    /// How many writes.
    pub writes: u64,
    /// How many syncs, of all nodes.
    pub syncs: u64,
    /// Bytes that are read.
    pub bytes_read: u64,
    /// Bytes that are written.
    pub bytes_written: u64,
    /// Bytes of the largest request.
    pub largest: u64,
    /// How many reads and writes begin where the request of the same node to the same file before them ended.
    pub consecutive: u64,
    /// From the first request to the end of the last.
    pub duration: Duration,
}

impl Totals {
    /// Reads and writes.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes
    }

    /// Bytes of a read or write, on average; 0 if there are none.
    pub fn mean_bytes(&self) -> f64 {
        (self.bytes_read + self.bytes_written) as f64 / self.requests().max(1) as f64
    }
}

impl RequestLog {
    /// Reads a log.
    pub fn read(input: impl BufRead, reading: &Reading) -> Result<RequestLog, Error> {
        let mut reader = LogReader::new(input, reading)?;
        let sort = reading.sort || reader.format() == Format::Dxt;
        let (limits, first) = (reading.limits, reading.first.unwrap_or(u64::MAX));
        let mut nodes: BTreeMap<u32, Vec<Request>> = BTreeMap::new();
        let mut taken = 0;
        while taken < first {
            let Some((node, request)) = reader.next_request()? else { break };
            if taken >= limits.requests {
                let why = format!("there are more than {} requests", limits.requests);
                return Err(Error::new(Place::Line(reader.line()), why).remedy(format!(
                    "Take the first ones only, split the log, or allow more: each takes {REQUEST_MEMORY} bytes of memory."
                )));
            }
            if !nodes.contains_key(&node) && nodes.len() >= limits.nodes as usize {
                let why = format!("node {node} is one more than {}", limits.nodes);
                return Err(Error::new(Place::Line(reader.line()), why).remedy("Split the log by nodes."));
            }
            let requests = nodes.entry(node).or_default();
            let last = requests.last().map_or(Duration::ZERO, |last| last.time);
            if request.time < last && !sort {
                let (time, last) = (seconds(request.time), seconds(last));
                let why = format!("time runs backwards at node {node}, from {last} to {time} s");
                let error = Error::new(Place::Line(reader.line()), why);
                return Err(error.remedy("Sort the log by time, or have it sorted."));
            }
            requests.push(request);
            taken += 1;
        }
        if taken == 0 {
            return Err(Error::new(Place::Log, "there are no requests in it"));
        }
        if sort {
            // Stable, so that what has the same time stays in the order of lines.
            nodes.values_mut().for_each(|requests| requests.sort_by_key(|request| request.time));
        }
        let nodes = nodes.into_iter().map(|(number, requests)| LoggedNode { number, requests }).collect();
        Ok(RequestLog::of(reader.files().to_vec(), nodes))
    }

    /// The log of these nodes, whose requests are of files of these names.
    ///
    /// # Panics
    /// If a request is of a file that has no name, or times run backwards.
    pub fn of(names: Vec<String>, nodes: Vec<LoggedNode>) -> RequestLog {
        let file = |name| LoggedFile { name, end: 0, is_read: false, is_written: false };
        let mut files: Vec<LoggedFile> = names.into_iter().map(file).collect();
        for node in &nodes {
            assert!(node.requests.is_sorted_by_key(|request| request.time), "time runs backwards");
            for (operation, stretch) in node.moves() {
                let file = &mut files[stretch.file as usize];
                file.end = file.end.max(stretch.end());
                match operation {
                    Operation::Read => file.is_read = true,
                    Operation::Write => file.is_written = true,
                }
            }
        }
        let first = nodes.iter().filter_map(|node| node.requests.first()).map(|request| request.time).min();
        RequestLog { files, nodes, start: first.unwrap_or(Duration::ZERO) }
    }

    /// Its files; a request has the index of its own.
    pub fn files(&self) -> &[LoggedFile] {
        &self.files
    }

    /// Its nodes, by their numbers.
    pub fn nodes(&self) -> &[LoggedNode] {
        &self.nodes
    }

    /// The time of the first request.
    pub fn start(&self) -> Duration {
        self.start
    }

    /// How many syncs there are that a node does not begin before the others have come.
    pub fn syncs(&self) -> usize {
        self.nodes.iter().map(LoggedNode::syncs).max().unwrap_or(0)
    }

    /// What it comes to.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        let mut end = self.start;
        for node in &self.nodes {
            totals.syncs += node.syncs() as u64;
            let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
            for (operation, stretch) in node.moves() {
                let bytes = u64::from(stretch.bytes);
                let (count, sum) = match operation {
                    Operation::Read => (&mut totals.reads, &mut totals.bytes_read),
                    Operation::Write => (&mut totals.writes, &mut totals.bytes_written),
                };
                *count += 1;
                *sum += bytes;
                totals.largest = totals.largest.max(bytes);
                let before = ends.insert(stretch.file, stretch.end());
                totals.consecutive += u64::from(before == Some(stretch.offset));
            }
            end = node.requests.iter().map(|request| request.time + request.took).fold(end, Duration::max);
        }
        totals.duration = end - self.start;
        totals
    }

    /// Writes it as a request log, in the order of time.
    pub fn write_to(&self, output: impl Write) -> io::Result<()> {
        let mut writer = LogWriter::begin(output)?;
        let names: Vec<&str> = self.files.iter().map(|file| &*file.name).collect();
        let next = |index: usize, at: usize| {
            self.nodes[index].requests.get(at).map(|request| Reverse((request.time, index, at)))
        };
        let mut heap: BinaryHeap<_> = (0..self.nodes.len()).filter_map(|index| next(index, 0)).collect();
        while let Some(Reverse((_, index, at))) = heap.pop() {
            let node = &self.nodes[index];
            writer.write(node.number, &node.requests[at], &names)?;
            heap.extend(next(index, at + 1));
        }
        writer.finish()
    }
}

impl LoggedNode {
    /// What it moves.
    pub fn moves(&self) -> impl Iterator<Item = (Operation, Stretch)> {
        self.requests.iter().filter_map(|request| match request.action {
            Action::Move(operation, stretch) => Some((operation, stretch)),
            Action::Sync => None,
        })
    }

    /// How often it waits for the others.
    pub fn syncs(&self) -> usize {
        self.requests.iter().filter(|request| request.action == Action::Sync).count()
    }
}

impl fmt::Debug for RequestLog {
    /// What it comes to: it may have millions of requests.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (files, nodes) = (self.files.len(), self.nodes.len());
        f.debug_struct("RequestLog")
            .field("files", &files)
            .field("nodes", &nodes)
            .field("totals", &self.totals())
            .finish()
    }
}
