//! Importer of the JSON of Chrome's trace viewer: an array of events, or an object with such an array as its member
//! `traceEvents`.
//!
//! Times are in microseconds with fractions, which the importer reads exactly. Browsers, compilers and Python profilers
//! write spans (`X`, `B` and `E`), points in time (`i`), counters (`C`), flows (`s`, `t`, `f`), asynchronous spans
//! (`b`, `e`) and names (`M`). The importer omits samples and snapshots of objects. It counts and omits events that are
//! malformed, or have an invalid time or duration.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use machine::Decimal;
use serde_json::Value;
use trace::{
    Amount, CounterId, CounterInfo, ProcessId, ProcessInfo, ProcessNumber, RecordedEvent, RecordedValue,
    ThreadId,
};

use crate::collector::{Collector, unknown_process};
use crate::json_events::{JsonEvents, NextEvent, member};

/// Imports a trace; returns `None` if the file has no array of events, or ends within the array before the first event.
pub(crate) fn collect(from: impl BufRead) -> io::Result<Option<Collector>> {
    let Some(mut input) = JsonEvents::begin(from)? else { return Ok(None) };
    let mut events = Events::default();
    loop {
        match input.next()? {
            NextEvent::Event => match serde_json::from_slice(input.text()) {
                Ok(event) => events.take_in(event, input.text()),
                Err(_) => events.collector.leave_out_malformed(),
            },
            NextEvent::Other => events.collector.leave_out_malformed(),
            NextEvent::End => break,
            NextEvent::Cut if events.count == 0 => return Ok(None),
            NextEvent::Cut => {
                events.collector.result.is_cut = true;
                break;
            }
        }
    }
    events.end_open();
    Ok(Some(events.collector))
}

/// Events read so far.
#[derive(Default)]
struct Events {
    collector: Collector,
    count: u64,
    processes: BTreeMap<String, ProcessId>,
    threads: BTreeMap<(ProcessId, String), ThreadId>,
    counters: BTreeMap<String, CounterId>,
    flows: BTreeMap<(String, String), u64>,
    /// Begins of open asynchronous spans, by thread, name and id.
    open: BTreeMap<(ThreadId, String, String), Vec<(i64, Event)>>,
}

/// One event, as a JSON object.
type Event = serde_json::Map<String, Value>;

impl Events {
    /// Imports an event. `text` is its JSON, for exact times.
    fn take_in(&mut self, event: Event, text: &[u8]) {
        self.count += 1;
        let time = member(text, "ts").map(nanoseconds);
        let duration = member(text, "dur").filter(|duration| *duration != "null").map(nanoseconds);
        let is_valid = time != Some(None) && duration.is_none_or(|ns| ns.is_some_and(|ns| ns >= 0));
        if !is_valid {
            self.collector.leave_out_malformed();
        } else if self.try_take_in(event, time.flatten(), duration.flatten()).is_none() {
            self.collector.leave_out();
        }
    }

    /// Imports an event; returns `None` if our format has no equivalent.
    fn try_take_in(&mut self, event: Event, time_ns: Option<i64>, duration_ns: Option<i64>) -> Option<()> {
        let kind = event.get("ph")?.as_str()?.to_owned();
        if kind == "M" {
            return self.name(&event);
        }
        let time_ns = time_ns?;
        match kind.as_str() {
            "X" => {
                let (thread, state) =
                    (self.thread(&event)?, self.collector.state(&name(&event), &category(&event))?);
                let record = match duration_ns {
                    Some(duration_ns) => RecordedEvent::Span(state, duration_ns.unsigned_abs()),
                    None => RecordedEvent::Begin(state),
                };
                self.collector.record(thread, time_ns, record);
                self.arguments(thread, time_ns, &event);
            }
            "B" | "E" => {
                let (thread, state) =
                    (self.thread(&event)?, self.collector.state(&name(&event), &category(&event))?);
                if kind == "B" {
                    self.collector.record(thread, time_ns, RecordedEvent::Begin(state));
                    self.arguments(thread, time_ns, &event);
                } else {
                    self.arguments(thread, time_ns, &event);
                    self.collector.record(thread, time_ns, RecordedEvent::End(state));
                }
            }
            "i" | "I" | "R" => {
                let (thread, state) =
                    (self.thread(&event)?, self.collector.state(&name(&event), &category(&event))?);
                self.collector.record(thread, time_ns, RecordedEvent::Span(state, 0));
                self.arguments(thread, time_ns, &event);
            }
            "C" => self.counts(time_ns, &event)?,
            "s" | "t" | "f" => {
                let thread = self.thread(&event)?;
                let next = self.flows.len() as u64;
                let key = (category(&event), id(&event)?);
                let flow = *self.flows.entry(key).or_insert(next);
                if kind != "s" {
                    self.collector.record(thread, time_ns, RecordedEvent::FlowIn(flow));
                }
                if kind != "f" {
                    self.collector.record(thread, time_ns, RecordedEvent::FlowOut(flow));
                }
            }
            "b" | "S" => {
                let key = self.beside(&event)?;
                self.open.entry(key).or_default().push((time_ns, event));
            }
            "e" | "F" => {
                let key = self.beside(&event)?;
                let (begin_ns, begun) = self.open.get_mut(&key)?.pop()?;
                let Some(duration_ns) = time_ns.checked_sub(begin_ns).filter(|duration_ns| *duration_ns >= 0)
                else {
                    // Count two malformed events: the begin and the end.
                    self.collector.leave_out_malformed();
                    self.collector.leave_out_malformed();
                    return Some(());
                };
                let state = self.collector.state(&name(&begun), &category(&begun))?;
                let span = RecordedEvent::Span(state, duration_ns.unsigned_abs());
                self.collector.record(key.0, begin_ns, span);
                self.arguments(key.0, begin_ns, &begun);
            }
            "n" | "T" => {
                let (thread, ..) = self.beside(&event)?;
                let state = self.collector.state(&name(&event), &category(&event))?;
                self.collector.record(thread, time_ns, RecordedEvent::Span(state, 0));
                self.arguments(thread, time_ns, &event);
            }
            _ => return None,
        }
        Some(())
    }

    /// Imports the name of a process or thread; ignores other metadata.
    fn name(&mut self, event: &Event) -> Option<()> {
        let given = || Some(event.get("args")?.get("name")?.as_str()?.to_owned());
        match name(event).as_str() {
            "process_name" => {
                let process = self.process(event)?;
                let process = &mut self.collector.processes[process.0 as usize];
                *process = process.clone().titled(&given()?);
            }
            "thread_name" => {
                let thread = self.thread(event)?;
                self.collector.threads[thread.0 as usize].name = given()?;
            }
            _ => {}
        }
        Some(())
    }

    fn process(&mut self, event: &Event) -> Option<ProcessId> {
        let pid = event.get("pid").map_or_else(|| "0".to_owned(), text);
        if let Some(process) = self.processes.get(&pid) {
            return Some(*process);
        }
        let number = match pid.parse() {
            Ok(pid) => ProcessNumber::Pid(pid),
            Err(_) => ProcessNumber::Node(self.processes.len() as u32),
        };
        let program = if pid.parse::<u32>().is_ok() { "process".to_owned() } else { pid.clone() };
        let process = self.collector.process(ProcessInfo { number, program, ..unknown_process() })?;
        self.processes.insert(pid, process);
        Some(process)
    }

    fn thread(&mut self, event: &Event) -> Option<ThreadId> {
        let tid = event.get("tid").map_or_else(|| "0".to_owned(), text);
        let name = format!("thread {tid}");
        self.row(event, tid, name)
    }

    /// Returns the key of an asynchronous span: the row for spans of its name, the name, and the id of the span.
    fn beside(&mut self, event: &Event) -> Option<(ThreadId, String, String)> {
        let row = name(event);
        let thread = self.row(event, format!("beside {row}"), row.clone())?;
        Some((thread, row, id(event)?))
    }

    fn row(&mut self, event: &Event, key: String, name: String) -> Option<ThreadId> {
        let process = self.process(event)?;
        if let Some(thread) = self.threads.get(&(process, key.clone())) {
            return Some(*thread);
        }
        let thread = self.collector.thread(process, name)?;
        self.threads.insert((process, key), thread);
        Some(thread)
    }

    /// Imports the values of a counter event. If the event has several arguments, each becomes a separate counter.
    fn counts(&mut self, time_ns: i64, event: &Event) -> Option<()> {
        let thread = self.thread(event)?;
        let values = event.get("args")?.as_object()?;
        for (key, value) in values {
            let whole = if values.len() > 1 { format!("{} {key}", name(event)) } else { name(event) };
            let counter = match self.counters.get(&whole) {
                Some(counter) => *counter,
                None => {
                    let info = CounterInfo { name: whole.clone(), unit: String::new() };
                    *self.counters.entry(whole).or_insert(self.collector.counter(info)?)
                }
            };
            match number(value) {
                Some(value) => self.collector.record(thread, time_ns, RecordedEvent::Count(counter, value)),
                None => self.collector.leave_out(),
            }
        }
        Some(())
    }

    fn arguments(&mut self, thread: ThreadId, time_ns: i64, event: &Event) {
        let arguments = event.get("args").and_then(Value::as_object);
        for (name, value) in arguments.into_iter().flatten() {
            let value = number(value).map_or_else(|| RecordedValue::Text(text(value)), RecordedValue::Number);
            self.collector.argument(thread, time_ns, name, value);
        }
    }

    /// Records the begin of each asynchronous span without an end.
    fn end_open(&mut self) {
        for ((thread, ..), begun) in std::mem::take(&mut self.open) {
            for (begin_ns, event) in begun {
                match self.collector.state(&name(&event), &category(&event)) {
                    Some(state) => self.collector.record(thread, begin_ns, RecordedEvent::Begin(state)),
                    None => self.collector.leave_out(),
                }
                self.arguments(thread, begin_ns, &event);
            }
        }
    }
}

fn name(event: &Event) -> String {
    event.get("name").map_or_else(String::new, text)
}

fn category(event: &Event) -> String {
    event.get("cat").map_or_else(String::new, text)
}

/// Returns the identifier that connects events: `id`, or one of the numbers in `id2`.
fn id(event: &Event) -> Option<String> {
    let own = || event.get("id2")?.as_object()?.values().next();
    event.get("id").or_else(own).map(text)
}

/// Returns a value as text: a string unchanged, any other value as JSON.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn number(value: &Value) -> Option<Amount> {
    value.as_i64().map(Amount::Integer).or_else(|| value.as_f64().map(Amount::Real))
}

/// Converts microseconds in JSON, with or without quotes, to nanoseconds. Returns `None` if the text is not a number.
fn nanoseconds(text: &str) -> Option<i64> {
    let number = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).trim();
    let (sign, number) = number.strip_prefix('-').map_or((1, number), |number| (-1, number));
    let nanoseconds = i64::try_from(Decimal::parse(number)?.round(1000)?).ok()?;
    Some(sign * nanoseconds)
}
