//! Collects imported events until they are written as a trace.
//!
//! Other tools write records in any order, and their ends may not name the span that they end. So the collector stores
//! all records, within limits, sorts them by time, and writes them thread by thread.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use trace::{
    CounterId, CounterInfo, FileWriter, NameId, ProcessId, ProcessInfo, ProcessNumber, Record, RecordedEvent,
    RecordedValue, StateId, StateInfo, TEXT_BYTES_MAX, ThreadId, ThreadInfo,
};

/// Maximum number of imported records. Each takes 48 bytes of memory in addition to its texts.
const RECORDS_MAX: usize = 20_000_000;

/// Maximum number of imported processes, threads, states, counters and names together.
const DECLARATIONS_MAX: usize = 2_000_000;

/// Maximum number of records per write.
const AT_ONCE: usize = 1 << 14;

/// Result of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Number of written records.
    pub records: u64,
    /// Number of omitted events: events beyond the limits, or without an equivalent in our format.
    pub left_out: u64,
    /// True if some events were beyond the limits.
    pub is_full: bool,
    /// Number of omitted events that are malformed, or have an invalid time or duration.
    pub malformed: u64,
    /// Number of times that the recording program lost events.
    pub losses: u64,
    /// Nanoseconds added to all times, so that no time is negative.
    pub moved_ns: u64,
    /// True if the trace was truncated.
    pub is_cut: bool,
}

impl Imported {
    /// Returns notes for users about omitted events and other differences from the original.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let left_out = (self.left_out > 0).then(|| {
            if self.is_full {
                let (records, declarations) = (RECORDS_MAX / 1_000_000, DECLARATIONS_MAX / 1_000_000);
                format!(
                    "{} events were omitted: the limit is {records} million records, and {declarations} \
                     million processes, threads, states, counters and names together",
                    self.left_out
                )
            } else {
                format!("{} events that are not spans, counts or flows were omitted", self.left_out)
            }
        });
        let malformed = (self.malformed > 0).then(|| {
            format!(
                "{} events are malformed, or have an invalid time or duration, and were omitted",
                self.malformed
            )
        });
        let lost = (self.losses > 0).then(|| {
            let (read, losses) = (self.records, self.losses);
            format!(
                "incomplete: {read} records were read, and the recording program lost further records {losses} times"
            )
        });
        let moved = (self.moved_ns > 0).then(|| {
            let seconds = self.moved_ns / 1_000_000_000;
            let rest = self.moved_ns % 1_000_000_000;
            format!(
                "the trace begins {seconds}.{rest:09} s before time 0: all times were shifted by this amount"
            )
        });
        let cut = self.is_cut.then(|| "the trace is truncated; the existing part was read".to_owned());
        [left_out, malformed, lost, moved, cut].into_iter().flatten()
    }
}

/// Name for states without a name.
const UNNAMED: &str = "unnamed";

/// Contents of another tool's trace.
#[derive(Default)]
pub struct Collector {
    pub(crate) processes: Vec<ProcessInfo>,
    pub(crate) threads: Vec<ThreadInfo>,
    pub(crate) counters: Vec<CounterInfo>,
    states: BTreeMap<(String, String), u32>,
    names: BTreeMap<String, u32>,
    /// Records, each with its time in nanoseconds, which may be negative.
    records: Vec<(ThreadId, i64, RecordedEvent)>,
    declared: usize,
    pub(crate) result: Imported,
}

impl Collector {
    /// Counts another declaration, and returns true if it is within the limit.
    pub(crate) fn has_room(&mut self) -> bool {
        self.declared += 1;
        self.result.is_full |= self.declared > DECLARATIONS_MAX;
        self.declared <= DECLARATIONS_MAX
    }

    /// Counts an omitted event.
    pub(crate) fn leave_out(&mut self) {
        self.result.left_out += 1;
    }

    /// Counts a malformed event, which is omitted.
    pub(crate) fn leave_out_malformed(&mut self) {
        self.result.malformed += 1;
    }

    pub(crate) fn process(&mut self, info: ProcessInfo) -> Option<ProcessId> {
        self.has_room().then(|| {
            self.processes.push(info);
            ProcessId(self.processes.len() as u32 - 1)
        })
    }

    pub(crate) fn thread(&mut self, process: ProcessId, name: String) -> Option<ThreadId> {
        self.has_room().then(|| {
            self.threads.push(ThreadInfo { process, name });
            ThreadId(self.threads.len() as u32 - 1)
        })
    }

    pub(crate) fn counter(&mut self, info: CounterInfo) -> Option<CounterId> {
        self.has_room().then(|| {
            self.counters.push(info);
            CounterId(self.counters.len() as u32 - 1)
        })
    }

    pub(crate) fn state(&mut self, name: &str, category: &str) -> Option<StateId> {
        let key = (name.to_owned(), category.to_owned());
        if let Some(state) = self.states.get(&key) {
            return Some(StateId(*state));
        }
        let next = self.states.len() as u32;
        self.has_room().then(|| StateId(*self.states.entry(key).or_insert(next)))
    }

    pub(crate) fn name(&mut self, name: &str) -> Option<NameId> {
        if let Some(name) = self.names.get(name) {
            return Some(NameId(*name));
        }
        let next = self.names.len() as u32;
        self.has_room().then(|| NameId(*self.names.entry(name.to_owned()).or_insert(next)))
    }

    /// Adds a record. An `End` ends the innermost open state; the state in the record is used only if no state is open.
    pub(crate) fn record(&mut self, thread: ThreadId, time_ns: i64, event: RecordedEvent) {
        if self.records.len() < RECORDS_MAX {
            self.records.push((thread, time_ns, event));
        } else {
            self.result.is_full = true;
            self.leave_out();
        }
    }

    /// Adds an argument of the last record.
    pub(crate) fn argument(&mut self, thread: ThreadId, time_ns: i64, name: &str, value: RecordedValue) {
        let value = match value {
            RecordedValue::Text(mut text) => {
                text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
                RecordedValue::Text(text)
            }
            number => number,
        };
        match self.name(name) {
            Some(name) => self.record(thread, time_ns, RecordedEvent::Argument(name, value)),
            None => self.leave_out(),
        }
    }

    /// Writes everything as one section of a trace.
    pub fn write(mut self, to: impl Write) -> io::Result<Imported> {
        if self.processes.is_empty() {
            self.processes.push(unknown_process());
        }
        let first_ns = self.records.iter().map(|(_, time_ns, _)| *time_ns).min().unwrap_or(0).min(0);
        self.result.moved_ns = first_ns.unsigned_abs();
        for process in &mut self.processes {
            // The wall-clock time at time 0 becomes earlier by the same amount.
            let zero = process.zero_unix_ns.map(|zero| zero.checked_sub(self.result.moved_ns));
            process.zero_unix_ns = zero.flatten();
        }
        let mut writer = FileWriter::new(to, &self.processes[0])?;
        for (id, info) in (1..).zip(&self.processes[1..]) {
            writer.process(ProcessId(id), info)?;
        }
        for (id, info) in (0..).zip(&self.threads) {
            writer.thread(ThreadId(id), info)?;
        }
        for (id, info) in (0..).zip(&self.counters) {
            writer.counter(CounterId(id), info)?;
        }
        self.records.sort_by_key(|(thread, time_ns, _)| (*thread, *time_ns));
        let used = end_innermost(&mut self.records);
        for ((name, category), id) in self.states.into_iter().filter(|(_, id)| used.contains(id)) {
            let name = if name.is_empty() { UNNAMED.to_owned() } else { name };
            writer.state(StateId(id), &StateInfo { name, category, colour: None })?;
        }
        for (name, id) in self.names {
            writer.name(NameId(id), &name)?;
        }
        for of_thread in self.records.chunk_by(|a, b| a.0 == b.0) {
            for part in of_thread.chunks(AT_ONCE) {
                let record = |(_, time_ns, event): &(_, i64, RecordedEvent)| Record {
                    time_ns: time_ns.abs_diff(first_ns),
                    event: event.clone(),
                };
                let records: Vec<Record> = part.iter().map(record).collect();
                writer.records(part[0].0, &records)?;
            }
        }
        writer.flush()?;
        Ok(Imported { records: self.records.len() as u64, ..self.result })
    }
}

/// Sets the state of each end to the innermost open state, in records grouped by thread. Returns all states that
/// records use.
fn end_innermost(records: &mut [(ThreadId, i64, RecordedEvent)]) -> BTreeSet<u32> {
    let mut used = BTreeSet::new();
    for of_thread in records.chunk_by_mut(|a, b| a.0 == b.0) {
        let mut open = Vec::new();
        for (_, _, event) in of_thread {
            if let RecordedEvent::End(state) = event {
                *state = open.pop().unwrap_or(*state);
            }
            if let RecordedEvent::Begin(state) = event {
                open.push(*state);
            }
            if let RecordedEvent::Begin(state) | RecordedEvent::End(state) | RecordedEvent::Span(state, _) =
                event
            {
                used.insert(state.0);
            }
        }
    }
    used
}

/// Returns the process for threads without a known process.
pub(crate) fn unknown_process() -> ProcessInfo {
    ProcessInfo {
        host: String::new(),
        number: ProcessNumber::Node(0),
        program: "trace".to_owned(),
        command_line: String::new(),
        zero_unix_ns: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_distinguish_unknown_events_from_a_full_collector() {
        let mut collector = Collector::default();
        let process = collector.process(unknown_process()).expect("room");
        collector.leave_out();
        assert_eq!(
            collector.result.notes().collect::<Vec<_>>(),
            ["1 events that are not spans, counts or flows were omitted"]
        );
        while collector.thread(process, String::new()).is_some() {}
        assert_eq!(collector.threads.len(), DECLARATIONS_MAX - 1);
        collector.leave_out();
        let texts: Vec<String> = collector.result.notes().collect();
        assert!(
            texts.len() == 1 && texts[0].starts_with("2 events were omitted: the limit is 20 million"),
            "{texts:?}"
        );
    }
}
