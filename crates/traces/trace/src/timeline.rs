//! A trace in memory, on one clock: who there was, and what they did, in columns.
//!
//! A trace may have ten million spans, so what is numerous lies in columns, in order: all spans of a thread are side by
//! side. Everything else is named by its index.

use std::ops::Range;
use std::sync::Arc;

use crate::model::{Amount, Colour, ProcessInfo};
use crate::note::Note;

/// What the threads of some processes did. Times are in nanoseconds on one clock.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// The names of the files it is made of.
    pub files: Vec<String>,
    /// The processes.
    pub processes: Vec<TracedProcess>,
    /// The threads, those of the same process side by side.
    pub threads: Vec<TracedThread>,
    /// The states: no two have the same name and category, whichever process recorded them.
    pub states: Vec<State>,
    /// The counters: no two have the same name and unit.
    pub counters: Vec<Counter>,
    /// The names of arguments.
    pub names: Vec<String>,
    /// The texts that are values of arguments.
    pub texts: Vec<Arc<str>>,
    /// The spans: thread by thread, each in the order of begins, and of two that begin at once the longer one first.
    pub spans: Spans,
    /// What counters showed, by counter, then thread, then time.
    pub counts: Vec<Count>,
    /// The arguments of spans, by span.
    pub arguments: Vec<Argument>,
    /// What went from one thread to another, in the order of leaving.
    pub flows: Vec<Flow>,
    /// The processor that a thread was on from a time on, by thread, then time.
    pub processors: Vec<OnProcessor>,
    /// How often threads had lost their processor, by thread, then time.
    pub switches: Vec<SwitchCount>,
    /// What is to be known of the files.
    pub notes: Vec<Note>,
    /// What the wall clock showed at time 0, in nanoseconds since 1970 (UTC), if any process knows.
    pub zero_unix_ns: Option<u64>,
}

/// A process of a timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct TracedProcess {
    /// The index of the file it is from.
    pub file: u32,
    /// What is known of it: only the number, if it was never declared.
    pub info: ProcessInfo,
    /// Whether it was declared.
    pub is_declared: bool,
    /// By how much its times may be wrong beside those of others, up or down, in nanoseconds; none if the clocks were
    /// not compared.
    pub uncertainty_ns: Option<u64>,
    /// Its threads.
    pub threads: Range<usize>,
}

/// A thread of a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedThread {
    /// The index of its process.
    pub process: u32,
    /// What it is called.
    pub name: String,
    /// Whether it was declared.
    pub is_declared: bool,
    /// How many of its records there was no room for.
    pub dropped: u64,
    /// Its spans.
    pub spans: Range<usize>,
}

/// A state of a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// What it is called.
    pub name: String,
    /// What kind of state it is; may be empty.
    pub category: String,
    /// Its colour, if it was given one.
    pub colour: Option<Colour>,
    /// Whether it was declared.
    pub is_declared: bool,
}

/// A counter of a timeline. It has values of its own in each thread that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// What it is called.
    pub name: String,
    /// The unit of its numbers; may be empty.
    pub unit: String,
}

/// Spans in columns of the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// The indices of their threads.
    pub thread: Vec<u32>,
    /// The indices of their states.
    pub state: Vec<u32>,
    /// When they begin.
    pub begin_ns: Vec<u64>,
    /// When they end, not before they begin.
    pub end_ns: Vec<u64>,
    /// The rows within the row of their thread: 0 for the outermost, and no two spans of the same row overlap, up to
    /// [`Spans::DEPTH_MAX`], which holds all that is deeper.
    pub depth: Vec<u8>,
    /// What they lack.
    pub mark: Vec<Mark>,
}

/// One span: a stretch of time in which a thread was in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The index of its thread.
    pub thread: u32,
    /// The index of its state.
    pub state: u32,
    /// When it begins.
    pub begin_ns: u64,
    /// When it ends.
    pub end_ns: u64,
    /// The row within that of the thread.
    pub depth: u8,
    /// What it lacks.
    pub mark: Mark,
}

/// What a span may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// Nothing: it began and ended.
    Whole,
    /// An end: it lasts up to the last time that is known of its process, or, if records of its thread were dropped
    /// after it began, up to the last one before.
    Unfinished,
    /// A begin: it is where it ended, without duration. It counts nowhere.
    NoBegin,
}

/// What a counter showed from a time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    /// The index of the counter.
    pub counter: u32,
    /// The index of the thread that counted.
    pub thread: u32,
    /// When.
    pub time_ns: u64,
    /// What.
    pub value: Amount,
}

/// An argument of a span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Argument {
    /// The index of the span.
    pub span: u32,
    /// The index of its name.
    pub name: u32,
    /// Its value.
    pub value: ArgumentValue,
}

/// The value of an argument of a timeline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArgumentValue {
    /// A number.
    Number(Amount),
    /// The text of this index.
    Text(u32),
}

/// Something that went from one thread to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The index of the thread it left.
    pub from_thread: u32,
    /// When.
    pub from_ns: u64,
    /// The index of the thread where it arrived.
    pub to_thread: u32,
    /// When: earlier than it left, if their clocks are uncertain.
    pub to_ns: u64,
}

/// A thread is on a processor from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnProcessor {
    /// The index of the thread.
    pub thread: u32,
    /// When.
    pub time_ns: u64,
    /// The number of the processor.
    pub processor: u32,
}

/// How often a thread had lost its processor at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchCount {
    /// The index of the thread.
    pub thread: u32,
    /// When.
    pub time_ns: u64,
    /// Because it waited.
    pub voluntary: u64,
    /// Because it was another's turn.
    pub involuntary: u64,
}

impl Spans {
    /// The greatest depth; what is deeper has this one, too, so that a trace that only begins costs no more to read.
    pub const DEPTH_MAX: u8 = u8::MAX;

    /// How many there are.
    pub fn len(&self) -> usize {
        self.state.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.state.is_empty()
    }

    /// The span of this index, which must be there.
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

    /// All of them, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Span> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }
}

impl Span {
    /// How long it lasts, in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }
}

impl Timeline {
    /// The first and the last time of any span or count; none if there is neither.
    pub fn extent_ns(&self) -> Option<(u64, u64)> {
        let begins = self.spans.begin_ns.iter().chain(self.counts.iter().map(|count| &count.time_ns));
        let ends = self.spans.end_ns.iter().chain(self.counts.iter().map(|count| &count.time_ns));
        Some((*begins.min()?, *ends.max()?))
    }

    /// The arguments of a span.
    pub fn arguments_of(&self, span: usize) -> &[Argument] {
        let first = self.arguments.partition_point(|argument| (argument.span as usize) < span);
        let count = self.arguments[first..].partition_point(|argument| argument.span as usize == span);
        &self.arguments[first..first + count]
    }
}
