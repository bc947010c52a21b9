//! Recorder that writes a trace.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::mem;

use machine::{Instant, NodeId, NotedEvent, Recorder, RowId};
use trace::{
    Amount, CounterId, CounterInfo, FileWriter, NameId, ProcessId, ProcessInfo, RecordRun, RecordedEvent,
    RecordedValue, StateId, StateInfo, ThreadId, ThreadInfo,
};

use crate::numbered_names::NumberedNames;

/// Maximum number of buffered records of all rows together. When it is reached, all are written to the file. They take
/// less than 200 kB.
const KEPT_MAX: usize = 1 << 15;

/// Writes events of nodes as a section of a trace: each node is a process, each row a thread.
///
/// The number of events is limited, because a simulation can have a hundred million events. Beyond the limit, only the
/// ends of spans already begun are written, and the trace contains the number of missing events of each row.
pub struct FileRecorder<W: Write> {
    writer: FileWriter<W>,
    describe: Box<dyn Fn(NodeId) -> ProcessInfo>,
    processes: BTreeMap<NodeId, ProcessId>,
    rows: Vec<RecordedRow>,
    states: NumberedNames,
    names: NumberedNames,
    /// Number of buffered records.
    kept: usize,
    events: u64,
    most: u64,
    cut_at: Option<Instant>,
    failed: Option<io::Error>,
}

/// Summary of a finished recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedPart {
    /// Number of spans, counts and messages in the trace.
    pub events: u64,
    /// Time of the first event beyond the limit; `None` if the limit was not exceeded. Later events are missing from
    /// the trace.
    pub cut_at: Option<Instant>,
}

#[derive(Default)]
struct RecordedRow {
    counts: bool,
    kept: RecordRun,
    /// Open spans, the innermost last; `None` for a span beyond the limit.
    open: Vec<Option<StateId>>,
    /// Number of spans, counts and messages beyond the limit.
    beyond: u64,
}

impl<W: Write> FileRecorder<W> {
    /// Begins a section with the node `first`, and at most `most` spans, counts and messages. Other nodes are added
    /// when they get rows. `describe` returns the description of a node.
    ///
    /// # Errors
    /// If writing fails.
    pub fn new(
        to: W,
        first: NodeId,
        describe: impl Fn(NodeId) -> ProcessInfo + 'static,
        most: u64,
    ) -> io::Result<Self> {
        let writer = FileWriter::new(to, &describe(first))?;
        Ok(FileRecorder {
            writer,
            describe: Box::new(describe),
            processes: BTreeMap::from([(first, ProcessId(0))]),
            rows: Vec::new(),
            states: NumberedNames::default(),
            names: NumberedNames::default(),
            kept: 0,
            events: 0,
            most,
            cut_at: None,
            failed: None,
        })
    }

    /// Writes the buffered records and the numbers of missing events, and flushes the writer.
    ///
    /// # Errors
    /// If any write of this recording failed.
    pub fn finish(&mut self) -> io::Result<RecordedPart> {
        self.write_kept();
        for row in 0..self.rows.len() as u32 {
            let beyond = mem::take(&mut self.rows[row as usize].beyond);
            if beyond > 0 {
                self.dropped(RowId(row), beyond);
            }
        }
        let flushed = self.writer.flush();
        match self.failed.take() {
            Some(error) => Err(error),
            None => flushed.map(|()| RecordedPart { events: self.events, cut_at: self.cut_at }),
        }
    }

    /// Returns the underlying writer, after [`finish`](Self::finish).
    pub fn into_inner(self) -> W {
        self.writer.into_inner()
    }

    /// Records that `events` events of a row were dropped before they reached this recorder.
    pub fn dropped(&mut self, row: RowId, events: u64) {
        self.attempt(|writer| writer.dropped(ThreadId(row.0), events));
    }

    /// Calls `write`, unless an earlier write failed. [`finish`](Self::finish) returns the first failure.
    fn attempt(&mut self, write: impl FnOnce(&mut FileWriter<W>) -> io::Result<()>) {
        if self.failed.is_none() {
            self.failed = write(&mut self.writer).err();
        }
    }

    fn process(&mut self, node: NodeId) -> ProcessId {
        if let Some(process) = self.processes.get(&node) {
            return *process;
        }
        let process = ProcessId(self.processes.len() as u32);
        self.processes.insert(node, process);
        let info = (self.describe)(node);
        self.attempt(|writer| writer.process(process, &info));
        process
    }

    #[inline]
    fn state(&mut self, name: &'static str) -> StateId {
        let (number, is_new) = self.states.number(name);
        if is_new {
            self.declare_state(StateId(number), name);
        }
        StateId(number)
    }

    #[cold]
    fn declare_state(&mut self, state: StateId, name: &str) {
        let info = StateInfo { name: name.to_owned(), category: category(name).to_owned(), colour: None };
        self.attempt(|writer| writer.state(state, &info));
    }

    #[inline]
    fn name(&mut self, name: &'static str) -> NameId {
        let (number, is_new) = self.names.number(name);
        if is_new {
            self.attempt(|writer| writer.name(NameId(number), name));
        }
        NameId(number)
    }

    /// Buffers a record for the file.
    #[inline]
    fn keep(&mut self, row: RowId, time: Instant, event: &RecordedEvent) {
        let run = &mut self.rows[row.0 as usize].kept;
        run.push(time.as_nanos(), event);
        self.kept += 1;
        if run.is_full() {
            self.write_run(row.0);
        }
    }

    #[cold]
    fn write_kept(&mut self) {
        self.kept = 0;
        (0..self.rows.len() as u32).for_each(|row| self.write_run(row));
    }

    fn write_run(&mut self, row: u32) {
        let mut run = mem::take(&mut self.rows[row as usize].kept);
        self.attempt(|writer| writer.run(ThreadId(row), &mut run));
        // Clear the run even if the write failed; otherwise it would grow without limit.
        run.clear();
        self.rows[row as usize].kept = run;
    }

    /// Returns true and counts the event if it is within the limit; otherwise counts the event as missing.
    fn has_room(&mut self, row: RowId, time: Instant) -> bool {
        if self.events < self.most {
            self.events += 1;
            return true;
        }
        self.cut_at.get_or_insert(time);
        self.rows[row.0 as usize].beyond += 1;
        false
    }

    fn begin(&mut self, row: RowId, time: Instant, name: &'static str, arguments: &[(&'static str, u64)]) {
        if !self.has_room(row, time) {
            return self.rows[row.0 as usize].open.push(None);
        }
        let state = self.state(name);
        self.rows[row.0 as usize].open.push(Some(state));
        self.keep(row, time, &RecordedEvent::Begin(state));
        for &(name, value) in arguments {
            let name = self.name(name);
            self.keep(row, time, &RecordedEvent::Argument(name, recorded(value)));
        }
    }
}

impl<W: Write> Recorder for FileRecorder<W> {
    fn row(&mut self, node: NodeId, name: &str, counts: bool) -> RowId {
        let row = RowId(self.rows.len() as u32);
        self.rows.push(RecordedRow { counts, ..RecordedRow::default() });
        let info = ThreadInfo { process: self.process(node), name: name.to_owned() };
        self.attempt(|writer| writer.thread(ThreadId(row.0), &info));
        if counts {
            // The unit is unknown; the name of the row describes the counted quantity.
            let info = CounterInfo { name: name.to_owned(), unit: String::new() };
            self.attempt(|writer| writer.counter(CounterId(row.0), &info));
        }
        row
    }

    fn note(&mut self, row: RowId, time: Instant, event: NotedEvent<'_>) {
        match event {
            NotedEvent::Begin { name, arguments } => self.begin(row, time, name, arguments),
            NotedEvent::End => {
                // Spans begun before the recording are not in the trace.
                if let Some(Some(state)) = self.rows[row.0 as usize].open.pop() {
                    self.keep(row, time, &RecordedEvent::End(state));
                }
            }
            NotedEvent::Count(value) => {
                debug_assert!(self.rows[row.0 as usize].counts, "a row of counts");
                if self.has_room(row, time) {
                    self.keep(row, time, &RecordedEvent::Count(CounterId(row.0), amount(value)));
                }
            }
            NotedEvent::Sent(number) => {
                if self.has_room(row, time) {
                    self.keep(row, time, &RecordedEvent::FlowOut(number));
                }
            }
            NotedEvent::Received(number) => {
                if self.has_room(row, time) {
                    self.keep(row, time, &RecordedEvent::FlowIn(number));
                }
            }
        }
        if self.kept >= KEPT_MAX {
            self.write_kept();
        }
    }
}

/// Returns the category of a state: the text before the colon in its name, or "wait" for states in which a thread
/// waits.
fn category(name: &str) -> &str {
    match name.split_once(": ") {
        Some((category, _)) => category,
        None if name.starts_with("wait for ") || name == "barrier" => "wait",
        None => "",
    }
}

fn amount(value: u64) -> Amount {
    Amount::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

/// Converts a number to the value of an argument. A number beyond the range of `i64` is a random identifier, which is
/// written as a hexadecimal text.
fn recorded(value: u64) -> RecordedValue {
    match i64::try_from(value) {
        Ok(value) => RecordedValue::Number(Amount::Integer(value)),
        Err(_) => RecordedValue::Text(format!("{value:016x}")),
    }
}
