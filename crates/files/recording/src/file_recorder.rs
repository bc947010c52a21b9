//! A recorder that writes a trace.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::mem;

use machine::{Instant, NodeId, NotedEvent, Recorder, RowId};
use trace::{
    Amount, CounterId, CounterInfo, FileWriter, NameId, ProcessId, ProcessInfo, RecordRun, RecordedEvent,
    RecordedValue, StateId, StateInfo, ThreadId, ThreadInfo,
};

use crate::numbered_names::NumberedNames;

/// Records that are kept before they go to the file, of all rows together: less than 200 kB.
const KEPT_MAX: usize = 1 << 15;

/// Writes what happens on nodes as a section of a trace: a node is a process, a row a thread.
///
/// A trace has a bound, since a simulation may have a hundred million events: beyond it only what has begun ends, and
/// the trace says how many events of each row are missing.
pub struct FileRecorder<W: Write> {
    writer: FileWriter<W>,
    describe: Box<dyn Fn(NodeId) -> ProcessInfo>,
    processes: BTreeMap<NodeId, ProcessId>,
    rows: Vec<RecordedRow>,
    states: NumberedNames,
    names: NumberedNames,
    /// Records that are kept.
    kept: usize,
    events: u64,
    most: u64,
    cut_at: Option<Instant>,
    failed: Option<io::Error>,
}

/// What has come of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedPart {
    /// How many spans, counts and messages are in the trace.
    pub events: u64,
    /// When the limit was reached, if it was: nothing that happened later is in it.
    pub cut_at: Option<Instant>,
}

#[derive(Default)]
struct RecordedRow {
    counts: bool,
    kept: RecordRun,
    /// What has begun and not ended, the innermost last; none if it is beyond the limit.
    open: Vec<Option<StateId>>,
    /// Spans, counts and messages beyond the limit.
    beyond: u64,
}

impl<W: Write> FileRecorder<W> {
    /// Begins a section about `first` and all other nodes that get rows, with at most `most` spans, counts and
    /// messages. `describe` says what a node is.
    ///
    /// # Errors
    /// If nothing can be written.
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

    /// Writes the rest.
    ///
    /// # Errors
    /// If any of it could not be written.
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

    /// The writer below, after [`finish`](Self::finish).
    pub fn into_inner(self) -> W {
        self.writer.into_inner()
    }

    /// Tells that events of a row were dropped before they came here.
    pub fn dropped(&mut self, row: RowId, events: u64) {
        self.attempt(|writer| writer.dropped(ThreadId(row.0), events));
    }

    /// Does something with the writer, unless that has failed before.
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

    /// Keeps a record for the file.
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
        // Even if it could not be written: it would only grow.
        run.clear();
        self.rows[row as usize].kept = run;
    }

    /// Counts an event, if the limit allows one more.
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
            // A unit would be a guess: the name says what is counted.
            let info = CounterInfo { name: name.to_owned(), unit: String::new() };
            self.attempt(|writer| writer.counter(CounterId(row.0), &info));
        }
        row
    }

    fn note(&mut self, row: RowId, time: Instant, event: NotedEvent<'_>) {
        match event {
            NotedEvent::Begin { name, arguments } => self.begin(row, time, name, arguments),
            NotedEvent::End => {
                // What has begun before the recording is not in it.
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

/// What kind of state a name is that of: what comes before its colon, or waiting.
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

/// A number as an argument. One that is larger than any amount is a name that was drawn, and is shown as such.
fn recorded(value: u64) -> RecordedValue {
    match i64::try_from(value) {
        Ok(value) => RecordedValue::Number(Amount::Integer(value)),
        Err(_) => RecordedValue::Text(format!("{value:016x}")),
    }
}
