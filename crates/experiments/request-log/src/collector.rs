//! Builds a log from one input, or from one input for each recorded process.

use std::collections::BTreeMap;
use std::io::BufRead;

use machine::Duration;

use crate::calls::{LogTables, check_order};
use crate::error::{Error, Place};
use crate::log::{LoggedNode, REQUEST_MEMORY, RequestLog};
use crate::reader::{Format, LogReader, Reading};
use crate::request::{Request, seconds};

/// A log under construction, to which inputs are added.
pub struct LogCollector<'a> {
    reading: &'a Reading,
    tables: LogTables,
    nodes: BTreeMap<u32, Vec<Request>>,
    taken: u64,
    /// Number of inputs so far.
    inputs: u32,
    sorts: bool,
    /// True if the inputs have format 2; `None` before the first input.
    has_calls: Option<bool>,
}

impl<'a> LogCollector<'a> {
    /// Creates an empty collector. The limits in `reading` apply to all inputs together.
    pub fn new(reading: &'a Reading) -> Self {
        let limits = reading.limits;
        LogCollector {
            reading,
            tables: LogTables::new(limits.files, limits.selection_nodes, limits.requests),
            nodes: BTreeMap::new(),
            taken: 0,
            inputs: 0,
            sorts: reading.sort,
            has_calls: None,
        }
    }

    /// Reads all of `input`, and returns notes for the user about missing parts of the recording and omitted requests.
    pub fn take(&mut self, input: impl BufRead) -> Result<Vec<String>, Error> {
        let mut reader = LogReader::new(input, self.reading, self.inputs)?;
        self.inputs += 1;
        let has_calls = reader.has_calls();
        if *self.has_calls.get_or_insert(has_calls) != has_calls {
            let why = "its format differs from that of the logs before it, so they cannot be replayed \
                       together";
            return Err(Error::new(Place::Line(1), why));
        }
        self.sorts |= reader.format() == Format::Dxt;
        while self.taken < self.reading.first.unwrap_or(u64::MAX) {
            let Some((node, request)) = reader.next_request(&mut self.tables)? else {
                return Ok(reader.notes());
            };
            self.push(node, request).map_err(|error| Error { place: Place::Line(reader.line()), ..error })?;
        }
        Ok(Vec::new())
    }

    /// Adds a request. An error refers to the line that was read last.
    fn push(&mut self, node: u32, request: Request) -> Result<(), Error> {
        let limits = self.reading.limits;
        let wrong = |why: String| Error::new(Place::Log, why);
        if self.taken >= limits.requests {
            return Err(wrong(format!("it has more than {} requests", limits.requests)).remedy(format!(
                "Read the first requests only, split the log, or raise the limit: each request needs \
                 {REQUEST_MEMORY} bytes of memory."
            )));
        }
        if !self.nodes.contains_key(&node) && self.nodes.len() >= limits.nodes as usize {
            let error = wrong(format!("node {node} exceeds the limit of {} nodes", limits.nodes));
            return Err(error.remedy("Split the log by nodes."));
        }
        let requests = self.nodes.entry(node).or_default();
        let last = requests.last().map_or(Duration::ZERO, |last| last.time);
        if request.time < last && !self.sorts {
            let (time, last) = (seconds(request.time), seconds(last));
            let error = wrong(format!("the time of node {node} decreases from {last} to {time} s"));
            return Err(error.remedy("Sort the log by time."));
        }
        if !self.tables.joins(requests.last(), &request).map_err(wrong)? {
            requests.push(request);
            self.taken += 1;
        }
        Ok(())
    }

    /// Returns the finished log. Fails if it contains no requests, or if its nodes would deadlock in a replay.
    pub fn finish(self) -> Result<RequestLog, Error> {
        let LogCollector { tables, mut nodes, taken, sorts, has_calls, .. } = self;
        if taken == 0 {
            return Err(Error::new(Place::Log, "it contains no requests"));
        }
        if sorts {
            // A stable sort keeps requests of equal time in the order of their lines.
            nodes.values_mut().for_each(|requests| requests.sort_by_key(|request| request.time));
        }
        let files = tables.files.all().to_vec();
        let calls = tables.finish(&mut nodes)?;
        if nodes.is_empty() {
            let why = "all of its calls are collective calls of processes that are missing in it";
            return Err(Error::new(Place::Log, why).remedy("Name the files of all recorded processes."));
        }
        let requests: Vec<&[Request]> = nodes.values().map(|requests| &requests[..]).collect();
        check_order(&requests, &calls)?;
        let nodes = nodes.into_iter().map(|(number, requests)| LoggedNode { number, requests }).collect();
        Ok(RequestLog::with_calls(files, nodes, (has_calls == Some(true)).then_some(calls)))
    }
}

impl RequestLog {
    /// Reads a log from a single input, and discards the notes.
    pub fn read(input: impl BufRead, reading: &Reading) -> Result<RequestLog, Error> {
        let mut collector = LogCollector::new(reading);
        collector.take(input)?;
        collector.finish()
    }
}
