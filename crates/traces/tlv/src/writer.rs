//! Writer thread: visits all rows, takes their entries, and appends them to the file.
//!
//! The thread runs ten times a second, and when a ring is half full. Written records survive when the process is
//! killed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use trace::{
    Amount, CounterId, FileWriter, NameId, ProcessId, Record, RecordedEvent, RecordedValue, StateId,
    StateInfo, ThreadId, ThreadInfo,
};

use crate::declared::{DECLARATIONS_MAX, EventMeaning, declared};
use crate::entry::{EntryKind, RingEntry, Words, entries};
use crate::row::{RowPhase, Seen, ThreadRow, rows};
use crate::ticks::{TickReading, TickScale};

/// Time that the writer sleeps unless it is woken. A killed process loses at most the records of this time.
const PAUSE: Duration = Duration::from_millis(100);

/// Maximum number of undeclared events with their own names.
const UNDECLARED_MAX: usize = 1000;

/// Common row of all threads without a separate row. It holds the number of their dropped records.
const WITHOUT_ROW: ThreadId = ThreadId(0);

/// Category of undeclared events.
const UNDECLARED: &str = "undeclared";

/// Writes records until `is_over`, and then the remaining ones. Returns the first error; after an error, discards
/// records until `is_over`, so that rings do not fill.
pub(crate) fn write(file: FileWriter<File>, start: TickReading, is_over: &AtomicBool) -> io::Result<()> {
    let mut writer = Writer::new(file, start);
    let mut outcome = Ok(());
    loop {
        // Read `is_over` before the round, so that the last round takes all records made before `is_over` was set.
        let is_last = is_over.load(Ordering::Acquire);
        match &outcome {
            Ok(()) => outcome = writer.round(),
            Err(_) => rows().discard(),
        }
        if is_last {
            return outcome;
        }
        thread::park_timeout(PAUSE);
    }
}

struct Writer {
    file: FileWriter<File>,
    scale: TickScale,
    /// Numbers of declared states, counters and names already in the file.
    states: usize,
    counters: usize,
    names: usize,
    events: BTreeMap<i32, EventMeaning>,
    undeclared: BTreeMap<i32, StateId>,
    threads: BTreeMap<ThreadId, Last>,
    /// True if the file contains the row [`WITHOUT_ROW`].
    has_reported_refused: bool,
    /// Reused buffers.
    slots: Vec<Words>,
    records: Vec<Record>,
}

/// Last values written for a thread.
#[derive(Clone, Copy)]
struct Last {
    time_ns: u64,
    processor: u16,
}

impl Default for Last {
    fn default() -> Self {
        Last { time_ns: 0, processor: u16::MAX }
    }
}

impl Writer {
    fn new(file: FileWriter<File>, start: TickReading) -> Self {
        Writer {
            file,
            scale: TickScale::new(start),
            states: 0,
            counters: 0,
            names: 0,
            events: BTreeMap::new(),
            undeclared: BTreeMap::new(),
            threads: BTreeMap::new(),
            has_reported_refused: false,
            slots: Vec::new(),
            records: Vec::new(),
        }
    }

    fn round(&mut self) -> io::Result<()> {
        // Read the heads first; then the time, so that it is later than all entries before the heads; then the
        // declarations, so that they include every number in these entries.
        let (seen, refused) = {
            let mut rows = rows();
            (rows.look(), rows.newly_refused())
        };
        self.scale.advance(TickReading::take());
        self.declare()?;
        for Seen { row, phase, head, new_name } in
            seen.into_iter().filter(|seen| seen.phase != RowPhase::Free)
        {
            if let Some(name) = new_name {
                self.file.thread(row.thread(), &ThreadInfo { process: ProcessId(0), name })?;
            }
            self.take(row, head)?;
            if phase == RowPhase::Ended {
                self.threads.remove(&row.thread());
                row.free();
            }
        }
        self.report_refused(refused)?;
        self.file.flush()
    }

    /// Appends the number of dropped records of threads without a row.
    fn report_refused(&mut self, records: u64) -> io::Result<()> {
        if records == 0 {
            return Ok(());
        }
        if !self.has_reported_refused {
            self.has_reported_refused = true;
            let name = "threads without a buffer".into();
            self.file.thread(WITHOUT_ROW, &ThreadInfo { process: ProcessId(0), name })?;
        }
        self.file.dropped(WITHOUT_ROW, records)
    }

    /// Appends the declarations made since the last round.
    fn declare(&mut self) -> io::Result<()> {
        let (states, counters, names) = {
            let declared = declared();
            if declared.events.len() != self.events.len() {
                self.events.clone_from(&declared.events);
            }
            let states = declared.states[self.states..].to_vec();
            (states, declared.counters[self.counters..].to_vec(), declared.names[self.names..].to_vec())
        };
        for (id, info) in (self.states as u32..).zip(&states) {
            self.file.state(StateId(id), info)?;
        }
        for (id, info) in (self.counters as u32..).zip(&counters) {
            self.file.counter(CounterId(id), info)?;
        }
        for (id, name) in (self.names as u32..).zip(&names) {
            self.file.name(NameId(id), name)?;
        }
        self.states += states.len();
        self.counters += counters.len();
        self.names += names.len();
        Ok(())
    }

    /// Appends the entries of a thread.
    fn take(&mut self, row: &ThreadRow, head: u64) -> io::Result<()> {
        let thread = row.thread();
        let mut slots = std::mem::take(&mut self.slots);
        row.ring().take(head, &mut slots);
        let mut last = self.threads.get(&thread).copied().unwrap_or_default();
        for entry in entries(&slots) {
            self.add(&mut last, &entry)?;
        }
        self.threads.insert(thread, last);
        self.file.records(thread, &self.records)?;
        self.records.clear();
        slots.clear();
        self.slots = slots;
        match row.newly_dropped() {
            0 => Ok(()),
            dropped => self.file.dropped(thread, dropped),
        }
    }

    fn add(&mut self, last: &mut Last, entry: &RingEntry<'_>) -> io::Result<()> {
        if entry.ticks != 0 {
            // An entry from before the start was made for the previous recording, but put into its ring too late.
            let Some(time_ns) = self.scale.ns(entry.ticks) else { return Ok(()) };
            // The counters of processors can differ by a few ticks.
            last.time_ns = last.time_ns.max(time_ns);
        }
        let time_ns = last.time_ns;
        if entry.processor != u16::MAX && entry.processor != last.processor {
            last.processor = entry.processor;
            self.records.push(Record { time_ns, event: RecordedEvent::Processor(entry.processor.into()) });
        }
        let event = self.event(entry)?;
        self.records.push(Record { time_ns, event });
        Ok(())
    }

    fn event(&mut self, entry: &RingEntry<'_>) -> io::Result<RecordedEvent> {
        let RingEntry { kind, number, .. } = *entry;
        let integer = || Amount::Integer(entry.word().cast_signed());
        let real = || Amount::Real(f64::from_bits(entry.word()));
        Ok(match kind {
            EntryKind::Begin => RecordedEvent::Begin(StateId(number)),
            EntryKind::End => RecordedEvent::End(StateId(number)),
            EntryKind::Event => match self.events.get(&number.cast_signed()) {
                Some(EventMeaning::Begins(state)) => RecordedEvent::Begin(*state),
                Some(EventMeaning::Ends(state)) => RecordedEvent::End(*state),
                None => RecordedEvent::Span(self.undeclared(number.cast_signed())?, 0),
            },
            EntryKind::Integer => RecordedEvent::Count(CounterId(number), integer()),
            EntryKind::Real => RecordedEvent::Count(CounterId(number), real()),
            EntryKind::ArgumentInteger => {
                RecordedEvent::Argument(NameId(number), RecordedValue::Number(integer()))
            }
            EntryKind::ArgumentReal => RecordedEvent::Argument(NameId(number), RecordedValue::Number(real())),
            EntryKind::ArgumentText => {
                RecordedEvent::Argument(NameId(number), RecordedValue::Text(entry.text()))
            }
            EntryKind::FlowOut => RecordedEvent::FlowOut(entry.word()),
            EntryKind::FlowIn => RecordedEvent::FlowIn(entry.word()),
            EntryKind::Switches => {
                let [voluntary, involuntary] = entry.words();
                RecordedEvent::Switches { voluntary, involuntary }
            }
        })
    }

    /// Returns the state of an undeclared event. The trace shows the event as a point in time, named by the event's
    /// number.
    fn undeclared(&mut self, event: i32) -> io::Result<StateId> {
        if let Some(state) = self.undeclared.get(&event) {
            return Ok(*state);
        }
        let is_known_apart = self.undeclared.len() < UNDECLARED_MAX;
        let number = self.undeclared.len().min(UNDECLARED_MAX);
        let state = StateId((DECLARATIONS_MAX + number) as u32);
        let name = if is_known_apart { format!("event {event}") } else { "other events".into() };
        self.file.state(state, &StateInfo { name, category: UNDECLARED.into(), colour: None })?;
        if is_known_apart {
            self.undeclared.insert(event, state);
        }
        Ok(state)
    }
}
