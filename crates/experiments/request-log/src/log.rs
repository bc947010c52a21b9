//! A whole log in memory, node by node.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt;
use std::io::{self, Write};

use layout::Operation;
use machine::Duration;

use crate::calls::{LoggedCall, LoggedCalls, LoggedOpening, OpeningToWrite};
use crate::request::{Action, Request};
use crate::text::{CallToWrite, LogWriter};

/// Memory of each request of a log, in bytes.
pub const REQUEST_MEMORY: usize = size_of::<Request>();

/// A request log in memory: the requests of each node.
#[derive(Clone, PartialEq)]
pub struct RequestLog {
    files: Vec<LoggedFile>,
    nodes: Vec<LoggedNode>,
    /// Calls, if the log has format 2.
    calls: Option<LoggedCalls>,
    start: Duration,
}

/// Bytes that one request transfers, in one piece or in several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedMove {
    /// Operation: read or write.
    pub operation: Operation,
    /// Index of the file.
    pub file: u32,
    /// Number of bytes in all pieces, without the gaps.
    pub bytes: u64,
    /// Offset in bytes of the first byte.
    pub offset: u64,
    /// Offset in bytes after the last byte.
    pub end: u64,
}

/// A file of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedFile {
    /// Name of the file in the log.
    pub name: String,
    /// Maximum end of all requests, in bytes. Requests of no bytes do not count.
    pub end: u64,
    /// True if any node reads the file.
    pub is_read: bool,
    /// True if any node writes to the file.
    pub is_written: bool,
}

/// A node of a log.
#[derive(Clone, PartialEq)]
pub struct LoggedNode {
    /// Number of the node in the log.
    pub number: u32,
    /// Requests of the node in the order of time.
    pub requests: Vec<Request>,
}

/// Totals of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Number of syncs of all nodes.
    pub syncs: u64,
    /// Number of bytes read.
    pub bytes_read: u64,
    /// Number of bytes written.
    pub bytes_written: u64,
    /// Size of the largest request, in bytes.
    pub largest: u64,
    /// Number of reads and writes that begin at the end of the same node's previous request to the same file.
    pub consecutive: u64,
    /// Time from the start of the first request to the end of the last request.
    pub duration: Duration,
}

impl Totals {
    /// Returns the number of reads and writes.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes
    }

    /// Returns the mean size of a read or write in bytes; 0 if the log has no reads and writes.
    pub fn mean_bytes(&self) -> f64 {
        (self.bytes_read + self.bytes_written) as f64 / self.requests().max(1) as f64
    }
}

impl RequestLog {
    /// Creates the log of these nodes. `names` are the names of the files that the requests refer to.
    ///
    /// # Panics
    /// If a request refers to a file without a name, or if times decrease.
    pub fn of(names: Vec<String>, nodes: Vec<LoggedNode>) -> RequestLog {
        RequestLog::with_calls(names, nodes, None)
    }

    /// Creates a log like [`of`](Self::of), with the calls of a log of format 2.
    pub(crate) fn with_calls(
        names: Vec<String>,
        nodes: Vec<LoggedNode>,
        calls: Option<LoggedCalls>,
    ) -> RequestLog {
        let file = |name| LoggedFile { name, end: 0, is_read: false, is_written: false };
        let files = names.into_iter().map(file).collect();
        let first = nodes.iter().filter_map(|node| node.requests.first()).map(|request| request.time).min();
        let mut log = RequestLog { files, nodes, calls, start: first.unwrap_or(Duration::ZERO) };
        let mut files = std::mem::take(&mut log.files);
        for node in &log.nodes {
            assert!(node.requests.is_sorted_by_key(|request| request.time), "time runs backwards");
            for moved in log.moves(node) {
                let file = &mut files[moved.file as usize];
                if moved.bytes > 0 {
                    file.end = file.end.max(moved.end);
                }
                match moved.operation {
                    Operation::Read => file.is_read = true,
                    Operation::Write => file.is_written = true,
                }
            }
        }
        RequestLog { files, ..log }
    }

    /// Returns the files. A request contains the index of its file.
    pub fn files(&self) -> &[LoggedFile] {
        &self.files
    }

    /// Returns the nodes, by their numbers.
    pub fn nodes(&self) -> &[LoggedNode] {
        &self.nodes
    }

    /// Returns the calls; `None` unless the log has format 2.
    pub fn calls(&self) -> Option<&LoggedCalls> {
        self.calls.as_ref()
    }

    /// Returns the call of this index.
    ///
    /// # Panics
    /// If the call is missing.
    pub fn call(&self, index: u32) -> &LoggedCall {
        &self.calls.as_ref().expect("requests are calls where a log has some").calls[index as usize]
    }

    /// Iterates over the transfers of a node of the log, in order.
    pub fn moves<'a>(&'a self, node: &'a LoggedNode) -> impl Iterator<Item = LoggedMove> + 'a {
        node.requests.iter().filter_map(|request| match request.action {
            Action::Sync => None,
            Action::Move(operation, stretch) => Some(LoggedMove {
                operation,
                file: stretch.file,
                bytes: stretch.bytes.into(),
                offset: stretch.offset,
                end: stretch.end(),
            }),
            Action::Call(index) => {
                let call = self.call(index);
                let (operation, selection) = call.moves.as_ref()?;
                let (bytes, span) = (selection.bytes(), selection.span());
                Some(LoggedMove {
                    operation: *operation,
                    file: call.file,
                    bytes,
                    offset: span.offset,
                    end: span.end(),
                })
            }
        })
    }

    /// Returns the time of the first request.
    pub fn start(&self) -> Duration {
        self.start
    }

    /// Returns the number of syncs at which the nodes wait for each other.
    pub fn syncs(&self) -> usize {
        self.nodes.iter().map(LoggedNode::syncs).max().unwrap_or(0)
    }

    /// Computes the totals.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        let mut end = self.start;
        for node in &self.nodes {
            totals.syncs += node.syncs() as u64;
            let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
            for LoggedMove { operation, file, bytes, offset, end } in self.moves(node) {
                let (count, sum) = match operation {
                    Operation::Read => (&mut totals.reads, &mut totals.bytes_read),
                    Operation::Write => (&mut totals.writes, &mut totals.bytes_written),
                };
                *count += 1;
                *sum += bytes;
                totals.largest = totals.largest.max(bytes);
                let before = ends.insert(file, end);
                totals.consecutive += u64::from(before == Some(offset));
            }
            end = node.requests.iter().map(|request| request.time + request.took).fold(end, Duration::max);
        }
        totals.duration = end - self.start;
        totals
    }

    /// Writes the log as a request log, in the order of time.
    pub fn write_to(&self, output: impl Write) -> io::Result<()> {
        let mut writer = match &self.calls {
            None => LogWriter::begin(output)?,
            Some(calls) => self.begin_with(calls, output)?,
        };
        let names: Vec<&str> = self.files.iter().map(|file| &*file.name).collect();
        let next = |index: usize, at: usize| {
            self.nodes[index].requests.get(at).map(|request| Reverse((request.time, index, at)))
        };
        let mut heap: BinaryHeap<_> = (0..self.nodes.len()).filter_map(|index| next(index, 0)).collect();
        while let Some(Reverse((_, index, at))) = heap.pop() {
            let node = &self.nodes[index];
            let request = &node.requests[at];
            match request.action {
                Action::Call(call) => {
                    writer.write_call(node.number, request, &self.call_to_write(self.call(call)))?
                }
                _ => writer.write(node.number, request, &names)?,
            }
            heap.extend(next(index, at + 1));
        }
        writer.finish()
    }

    /// Starts a log of format 2, and writes its processes and their openings.
    fn begin_with<W: Write>(&self, calls: &LoggedCalls, output: W) -> io::Result<LogWriter<W>> {
        let mut writer = LogWriter::begin_calls(output)?;
        let start = |index: usize| (self.nodes[index].requests[0].time, self.nodes[index].number);
        if let Some(processes) = calls.processes {
            for index in 0..self.nodes.len() {
                writer.write_process(start(index), processes)?;
            }
        }
        for opening in &calls.openings {
            let LoggedOpening { name, file, block_bytes, stripes, members } = opening;
            for (rank, &index) in (0..).zip(members) {
                let size = members.len() as u32;
                let opening =
                    OpeningToWrite { name, rank, size, block_bytes: *block_bytes, stripes: *stripes };
                writer.write_opening(start(index), &self.files[*file as usize].name, opening)?;
            }
        }
        Ok(writer)
    }

    /// Returns a call in the form for writing.
    fn call_to_write<'a>(&'a self, call: &'a LoggedCall) -> CallToWrite<'a> {
        let LoggedCall { file, moves, together, method } = call;
        let openings = self.calls.as_ref().map_or(&[][..], |calls| &calls.openings);
        CallToWrite {
            file: &self.files[*file as usize].name,
            moves: moves.as_ref().map(|(operation, selection)| (*operation, selection)),
            together: together.map(|turn| (&*openings[turn.opening as usize].name, turn.number)),
            method: *method,
        }
    }
}

impl LoggedNode {
    /// Returns the number of syncs at which the node waits for the others.
    pub fn syncs(&self) -> usize {
        self.requests.iter().filter(|request| request.action == Action::Sync).count()
    }
}

impl fmt::Debug for RequestLog {
    /// Writes only the totals, because the log may have millions of requests.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (files, nodes) = (self.files.len(), self.nodes.len());
        f.debug_struct("RequestLog")
            .field("files", &files)
            .field("nodes", &nodes)
            .field("totals", &self.totals())
            .finish()
    }
}
