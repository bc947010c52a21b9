//! Collects records in columns while reading, matches begins with ends, and adds notes.
//!
//! Processes, threads, states, counters and names have indices in the order of first use. Times are those of the file;
//! `assemble.rs` sorts all objects and converts their times to one clock.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{Amount, ClockOffset, CounterInfo, ProcessInfo, StateInfo};
use crate::note::{NoteKind, Notes};
use crate::timeline::{ArgumentValue, Mark};

/// Everything read so far.
#[derive(Clone, Default)]
pub(crate) struct Gathered {
    pub(crate) files: Vec<String>,
    pub(crate) processes: Vec<Declared<ProcessInfo, Option<ClockOffset>>>,
    pub(crate) threads: Vec<Declared<ThreadName, ThreadSoFar>>,
    pub(crate) states: Vec<Declared<StateInfo, ()>>,
    pub(crate) counters: Vec<Declared<CounterInfo, ()>>,
    pub(crate) names: Vec<Declared<String, ()>>,
    pub(crate) spans: SpansSoFar,
    pub(crate) counts: Vec<(u32, u32, u64, Amount)>,
    pub(crate) arguments: Vec<(u32, u32, ArgumentValue)>,
    pub(crate) flow_ends: Vec<FlowEnd>,
    pub(crate) processors: Vec<(u32, u64, u32)>,
    pub(crate) switches: Vec<(u32, u64, u64, u64)>,
    pub(crate) texts: Vec<Arc<str>>,
    text_numbers: BTreeMap<Arc<str>, u32>,
    pub(crate) notes: Notes,
}

/// Process, thread, state, counter or name with a number in a section, and its properties read so far.
#[derive(Clone)]
pub(crate) struct Declared<I, S> {
    /// Index of the file.
    pub(crate) file: u32,
    /// Number in its section.
    pub(crate) number: u32,
    /// Declaration; `None` if none has been read.
    pub(crate) info: Option<I>,
    /// Other properties read so far.
    pub(crate) so_far: S,
}

/// Declaration of a thread.
#[derive(Clone)]
pub(crate) struct ThreadName {
    pub(crate) process: u32,
    pub(crate) name: String,
}

/// State of a thread while reading.
#[derive(Clone)]
pub(crate) struct ThreadSoFar {
    /// First process of the section. It owns the thread unless the declaration of the thread names another process.
    pub(crate) section_process: u32,
    pub(crate) dropped: u64,
    /// For each drop of records, the number of spans of all threads before the drop, and the time of the thread's last
    /// record before the drop.
    drops: Vec<(u32, u64)>,
    /// Earliest and latest time of the thread; the first exceeds the second before the first record.
    pub(crate) times: (u64, u64),
    before: u64,
    /// Open spans of each state, in order of begin.
    open: BTreeMap<u32, Vec<u32>>,
    /// Open spans and some closed ones, in order of begin; the last span is open.
    begun: Vec<u32>,
    /// Span and time of the last `RecordedEvent::Span`; `None` if a state has begun or ended since.
    last_span: Option<(u32, u64)>,
}

impl ThreadSoFar {
    pub(crate) fn new(section_process: u32) -> Self {
        ThreadSoFar {
            section_process,
            dropped: 0,
            drops: Vec::new(),
            times: (u64::MAX, 0),
            before: 0,
            open: BTreeMap::new(),
            begun: Vec::new(),
            last_span: None,
        }
    }

    /// Returns the time of the thread's last record before the first drop after this span began.
    pub(crate) fn last_before_drop(&self, span: u32) -> Option<u64> {
        let first = self.drops.partition_point(|(spans, _)| *spans <= span);
        self.drops.get(first).map(|(_, time_ns)| *time_ns)
    }
}

/// Spans in order of begin, in columns.
#[derive(Clone, Default)]
pub(crate) struct SpansSoFar {
    pub(crate) thread: Vec<u32>,
    pub(crate) state: Vec<u32>,
    pub(crate) begin_ns: Vec<u64>,
    pub(crate) end_ns: Vec<u64>,
    pub(crate) mark: Vec<Mark>,
}

/// One end of a flow.
#[derive(Clone)]
pub(crate) struct FlowEnd {
    pub(crate) flow: u64,
    pub(crate) thread: u32,
    pub(crate) time_ns: u64,
    pub(crate) arrives: bool,
}

/// Position in a file, for notes.
#[derive(Clone, Copy)]
pub(crate) struct FilePosition {
    pub(crate) file: u32,
    pub(crate) offset: u64,
}

impl SpansSoFar {
    pub(crate) fn len(&self) -> usize {
        self.state.len()
    }

    fn push(&mut self, thread: u32, state: u32, (begin_ns, end_ns): (u64, u64), mark: Mark) -> u32 {
        let index = self.len() as u32;
        self.thread.push(thread);
        self.state.push(state);
        self.begin_ns.push(begin_ns);
        self.end_ns.push(end_ns);
        self.mark.push(mark);
        index
    }
}

impl Gathered {
    pub(crate) fn note(&mut self, at: FilePosition, kind: NoteKind, count: u64) {
        self.notes.add(at.file, kind, count, Some(at.offset));
    }

    /// Updates the times of a thread for its next record, and adds a note if time runs backwards.
    pub(crate) fn time(&mut self, at: FilePosition, thread: u32, time_ns: u64) {
        let so_far = &mut self.threads[thread as usize].so_far;
        so_far.times = (so_far.times.0.min(time_ns), so_far.times.1.max(time_ns));
        let before = std::mem::replace(&mut so_far.before, time_ns);
        if time_ns < before {
            self.note(at, NoteKind::Backwards, 1);
        }
    }

    /// Registers that `records` records of a thread were dropped at this point.
    pub(crate) fn dropped(&mut self, thread: u32, records: u64) {
        let spans = self.spans.len() as u32;
        let so_far = &mut self.threads[thread as usize].so_far;
        so_far.dropped = so_far.dropped.saturating_add(records);
        so_far.drops.push((spans, so_far.before));
    }

    pub(crate) fn begin(&mut self, thread: u32, state: u32, time_ns: u64) {
        let span = self.spans.push(thread, state, (time_ns, time_ns), Mark::Unfinished);
        let so_far = &mut self.threads[thread as usize].so_far;
        so_far.open.entry(state).or_default().push(span);
        so_far.begun.push(span);
        so_far.last_span = None;
    }

    pub(crate) fn end(&mut self, at: FilePosition, thread: u32, state: u32, time_ns: u64) {
        let so_far = &mut self.threads[thread as usize].so_far;
        so_far.last_span = None;
        let Some(span) = so_far.open.get_mut(&state).and_then(Vec::pop) else {
            self.spans.push(thread, state, (time_ns, time_ns), Mark::NoBegin);
            return self.note(at, NoteKind::EndWithoutBegin, 1);
        };
        self.spans.mark[span as usize] = Mark::Whole;
        while so_far.begun.pop_if(|span| self.spans.mark[*span as usize] != Mark::Unfinished).is_some() {}
        let begin_ns = self.spans.begin_ns[span as usize];
        self.spans.end_ns[span as usize] = time_ns.max(begin_ns);
        if time_ns < begin_ns {
            self.note(at, NoteKind::EndBeforeBegin, 1);
        }
    }

    pub(crate) fn span(&mut self, thread: u32, state: u32, time_ns: u64, duration_ns: u64) {
        let end_ns = time_ns.saturating_add(duration_ns);
        let span = self.spans.push(thread, state, (time_ns, end_ns), Mark::Whole);
        let so_far = &mut self.threads[thread as usize].so_far;
        so_far.times.1 = so_far.times.1.max(end_ns);
        so_far.last_span = Some((span, time_ns));
    }

    pub(crate) fn argument(
        &mut self,
        at: FilePosition,
        thread: u32,
        time_ns: u64,
        (name, value): (u32, ArgumentValue),
    ) {
        let so_far = &self.threads[thread as usize].so_far;
        let last_span = so_far.last_span.filter(|(_, span_ns)| *span_ns == time_ns).map(|(span, _)| span);
        match last_span.or(so_far.begun.last().copied()) {
            Some(span) => self.arguments.push((span, name, value)),
            None => self.note(at, NoteKind::ArgumentWithoutSpan, 1),
        }
    }

    /// Returns the number of a known text.
    pub(crate) fn text(&self, text: &str) -> Option<u32> {
        self.text_numbers.get(text).copied()
    }

    /// Adds a new text and returns its number.
    pub(crate) fn add_text(&mut self, text: &str) -> u32 {
        let number = self.texts.len() as u32;
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        self.text_numbers.insert(text, number);
        number
    }
}
