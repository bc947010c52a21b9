//! Trace in memory, on one clock: processes, threads and their activities, in columns.
//!
//! A trace can have ten million spans, so the fields of spans are stored in columns, and all spans of a thread are
//! adjacent. Objects refer to each other by index.

use std::ops::Range;
use std::sync::Arc;

use crate::model::{Amount, Colour, ProcessInfo};
use crate::note::Note;

/// Activities of the threads of one or more processes. Times are in nanoseconds on one clock.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Names of the files of the trace.
    pub files: Vec<String>,
    /// Processes.
    pub processes: Vec<TracedProcess>,
    /// Threads, grouped by process.
    pub threads: Vec<TracedThread>,
    /// States, unique by name and category across processes.
    pub states: Vec<State>,
    /// Counters, unique by name and unit.
    pub counters: Vec<Counter>,
    /// Names of arguments.
    pub names: Vec<String>,
    /// Texts that are values of arguments.
    pub texts: Vec<Arc<str>>,
    /// Spans, sorted by thread, then begin; of spans with equal begins, the longer span first.
    pub spans: Spans,
    /// Values of counters, sorted by counter, then thread, then time.
    pub counts: Vec<Count>,
    /// Arguments of spans, sorted by span.
    pub arguments: Vec<Argument>,
    /// Flows between threads, sorted by time of departure.
    pub flows: Vec<Flow>,
    /// Processor of a thread from a time on, sorted by thread, then time.
    pub processors: Vec<OnProcessor>,
    /// Numbers of context switches of threads, sorted by thread, then time.
    pub switches: Vec<SwitchCount>,
    /// Notes on the files.
    pub notes: Vec<Note>,
    /// Wall-clock time at time 0, in nanoseconds since 1970 (UTC), if any process knows it.
    pub zero_unix_ns: Option<u64>,
}

/// Process of a timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct TracedProcess {
    /// Index of its file.
    pub file: u32,
    /// Properties of the process; only the number for an undeclared process.
    pub info: ProcessInfo,
    /// True if the trace declares it.
    pub is_declared: bool,
    /// Maximum error of its times relative to other processes, in either direction, in nanoseconds; `None` if the
    /// clocks were not compared.
    pub uncertainty_ns: Option<u64>,
    /// Range of its threads.
    pub threads: Range<usize>,
}

/// Thread of a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedThread {
    /// Index of its process.
    pub process: u32,
    /// Name of the thread.
    pub name: String,
    /// True if the trace declares it.
    pub is_declared: bool,
    /// Number of its records that were dropped because its buffer was full.
    pub dropped: u64,
    /// Range of its spans.
    pub spans: Range<usize>,
}

/// State of a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Name of the state.
    pub name: String,
    /// Category of the state; may be empty.
    pub category: String,
    /// Colour, if one was declared.
    pub colour: Option<Colour>,
    /// True if the trace declares it.
    pub is_declared: bool,
}

/// Counter of a timeline. Each thread that sets it has independent values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Name of the counter.
    pub name: String,
    /// Unit of its values; may be empty.
    pub unit: String,
}

/// Spans in columns of the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// Indices of their threads.
    pub thread: Vec<u32>,
    /// Indices of their states.
    pub state: Vec<u32>,
    /// Times of their begins.
    pub begin_ns: Vec<u64>,
    /// Times of their ends, not before their begins.
    pub end_ns: Vec<u64>,
    /// Rows of the spans within the row of their thread, from 0 for the outermost spans. Spans of the same row never
    /// overlap, except in row [`Spans::DEPTH_MAX`], which holds all deeper spans.
    pub depth: Vec<u8>,
    /// Completeness of the spans.
    pub mark: Vec<Mark>,
}

/// Span: time in which a thread was in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Index of its thread.
    pub thread: u32,
    /// Index of its state.
    pub state: u32,
    /// Time of its begin.
    pub begin_ns: u64,
    /// Time of its end.
    pub end_ns: u64,
    /// Row within the row of the thread, from 0.
    pub depth: u8,
    /// Completeness of the span.
    pub mark: Mark,
}

/// Completeness of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// Complete, with a begin and an end.
    Whole,
    /// Without an end. The span extends to the last known time of its process, or, if records of its thread were
    /// dropped after its begin, to the last record before the drop.
    Unfinished,
    /// Without a begin. The span has the time of its end and no duration. All totals exclude it.
    NoBegin,
}

/// Value of a counter from a time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    /// Index of the counter.
    pub counter: u32,
    /// Index of the thread that set the value.
    pub thread: u32,
    /// Time of the value.
    pub time_ns: u64,
    /// The value.
    pub value: Amount,
}

/// Argument of a span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Argument {
    /// Index of the span.
    pub span: u32,
    /// Index of its name.
    pub name: u32,
    /// Its value.
    pub value: ArgumentValue,
}

/// Value of an argument of a timeline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArgumentValue {
    /// Number.
    Number(Amount),
    /// Text with this index.
    Text(u32),
}

/// Flow from one thread to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Index of the thread of its departure.
    pub from_thread: u32,
    /// Time of departure.
    pub from_ns: u64,
    /// Index of the thread of its arrival.
    pub to_thread: u32,
    /// Time of arrival. Can be earlier than the departure if the clocks are uncertain.
    pub to_ns: u64,
}

/// Processor of a thread from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnProcessor {
    /// Index of the thread.
    pub thread: u32,
    /// Start time.
    pub time_ns: u64,
    /// Number of the processor.
    pub processor: u32,
}

/// Number of context switches of a thread up to a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchCount {
    /// Index of the thread.
    pub thread: u32,
    /// Time of the count.
    pub time_ns: u64,
    /// Switches because the thread waited.
    pub voluntary: u64,
    /// Switches because the system preempted the thread.
    pub involuntary: u64,
}

impl Spans {
    /// Maximum depth, also of deeper spans, so that a trace with begins only is read in linear time.
    pub const DEPTH_MAX: u8 = u8::MAX;

    /// Returns the number of spans.
    pub fn len(&self) -> usize {
        self.state.len()
    }

    /// Returns true if there are no spans.
    pub fn is_empty(&self) -> bool {
        self.state.is_empty()
    }

    /// Returns the span of this index.
    ///
    /// # Panics
    /// If there is no such span.
    pub fn get(&self, index: usize) -> Span {
        Span {
            thread: self.thread[index],
            state: self.state[index],
            begin_ns: self.begin_ns[index],
            end_ns: self.end_ns[index],
            depth: self.depth[index],
            mark: self.mark[index],
        }
    }

    /// Returns all spans, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Span> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }
}

impl Span {
    /// Returns the duration in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }
}

impl Timeline {
    /// Returns the first and the last time of any span or count; `None` without spans and counts.
    pub fn extent_ns(&self) -> Option<(u64, u64)> {
        let begins = self.spans.begin_ns.iter().chain(self.counts.iter().map(|count| &count.time_ns));
        let ends = self.spans.end_ns.iter().chain(self.counts.iter().map(|count| &count.time_ns));
        Some((*begins.min()?, *ends.max()?))
    }

    /// Returns the arguments of a span.
    pub fn arguments_of(&self, span: usize) -> &[Argument] {
        let first = self.arguments.partition_point(|argument| (argument.span as usize) < span);
        let count = self.arguments[first..].partition_point(|argument| argument.span as usize == span);
        &self.arguments[first..first + count]
    }
}
