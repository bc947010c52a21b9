//! Imports track events from traces of the Perfetto SDK, Chrome, or any other program that writes Perfetto's packets.
//!
//! Slices, counters, flows and arguments are imported, each track as a thread. The importer omits records of system
//! probes, such as the scheduler, and compressed packets. The clock snapshots in the trace serve to convert times to
//! one clock.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use prost::Message;
use trace::{
    Amount, CounterId, CounterInfo, ProcessId, ProcessInfo, ProcessNumber, RecordedEvent, RecordedValue,
    ThreadId,
};

use super::schema::{
    BOOTTIME, COUNTER, ClockReading, DebugAnnotation, INSTANT, InternedData, InternedString, NAMES_CLEARED,
    OWN_CLOCKS, ProcessDescriptor, REALTIME, SLICE_BEGIN, SLICE_END, TracePacket, TrackDescriptor,
    TrackEvent,
};
use crate::collector::{Collector, unknown_process};

/// Maximum length of a packet in bytes.
const PACKET_BYTES_MAX: u64 = 1 << 26;

/// Maximum depth of nested arguments, and maximum number of ancestors searched for the process of a track.
const DEPTH_MAX: usize = 32;

/// Imports a trace; returns `None` if it is not a Perfetto trace.
pub(crate) fn collect(from: impl Read) -> io::Result<Option<Collector>> {
    let mut packets = Packets { from, buffer: Vec::new(), is_cut: false };
    let mut import = Import::default();
    let mut found = 0;
    while let Some(known) = packets.next()? {
        if !known {
            // A trace consists of packets only, so this file is not a trace, or is damaged from this byte on.
            packets.is_cut = true;
            break;
        }
        match TracePacket::decode(&packets.buffer[..]) {
            Ok(packet) => {
                found += 1;
                import.take_in(packet);
            }
            Err(_) => import.collector.leave_out_malformed(),
        }
    }
    import.collector.result.is_cut = packets.is_cut;
    Ok((found > 0).then(|| import.finish()))
}

/// Packets of a file in order.
struct Packets<R> {
    from: R,
    buffer: Vec<u8>,
    is_cut: bool,
}

impl<R: Read> Packets<R> {
    /// Reads the next packet into the buffer. Returns `None` at the end of the file, and false if the next bytes are
    /// not a packet.
    fn next(&mut self) -> io::Result<Option<bool>> {
        let Some(tag) = self.byte()? else { return Ok(None) };
        if tag != (1 << 3 | 2) {
            return Ok(Some(false));
        }
        let mut length = 0;
        for shift in (0..64).step_by(7) {
            let Some(byte) = self.byte()? else {
                self.is_cut = true;
                return Ok(None);
            };
            length |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        if length > PACKET_BYTES_MAX {
            return Ok(Some(false));
        }
        self.buffer.clear();
        let read = self.from.by_ref().take(length).read_to_end(&mut self.buffer)?;
        self.is_cut = (read as u64) < length;
        Ok((!self.is_cut).then_some(true))
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        Ok((self.from.by_ref().take(1).read(&mut byte)? == 1).then_some(byte[0]))
    }
}

/// State of an import.
#[derive(Default)]
struct Import {
    collector: Collector,
    sequences: BTreeMap<u32, Sequence>,
    /// Sequences seen so far.
    seen: BTreeSet<u32>,
    tracks: BTreeMap<u64, Track>,
    processes: BTreeMap<i32, ProcessDescriptor>,
    clocks: BTreeMap<(u32, u32), SourceClock>,
    zero_unix_ns: Option<u64>,
}

/// State of one packet sequence.
#[derive(Default)]
struct Sequence {
    categories: BTreeMap<u64, String>,
    events: BTreeMap<u64, String>,
    arguments: BTreeMap<u64, String>,
    values: BTreeMap<u64, String>,
    track: Option<u64>,
    clock: Option<u32>,
}

/// Description of a track, and the thread and counter that represent it.
#[derive(Default)]
struct Track {
    descriptor: Option<TrackDescriptor>,
    thread: Option<ThreadId>,
    counter: Option<CounterId>,
    /// Current value of a counter whose events are increments.
    sum: i64,
}

/// Clock other than the boot clock.
#[derive(Clone, Copy)]
struct SourceClock {
    offset_ns: i128,
    unit_ns: u64,
    is_incremental: bool,
    last: u64,
}

impl SourceClock {
    fn nanoseconds(&self, ticks: u64) -> i128 {
        i128::from(ticks) * i128::from(self.unit_ns)
    }
}

/// Returns the key of a clock: some clocks belong to one sequence of packets.
fn clock_key(sequence: u32, clock: u32) -> (u32, u32) {
    (if clock >= OWN_CLOCKS { sequence } else { 0 }, clock)
}

/// Returns the track number for a thread with a legacy thread descriptor. Such large numbers are rarely used for other
/// tracks.
fn own_track(sequence: u32) -> u64 {
    1 << 63 | u64::from(sequence)
}

impl Import {
    fn take_in(&mut self, packet: TracePacket) {
        let number = packet.trusted_packet_sequence_id.unwrap_or(0);
        let is_cleared = packet.sequence_flags.unwrap_or(0) & NAMES_CLEARED != 0;
        if is_cleared || packet.incremental_state_cleared == Some(true) {
            self.sequences.remove(&number);
        }
        if !self.sequences.contains_key(&number) && !self.collector.has_room() {
            return self.collector.leave_out();
        }
        // The flag is also set in the first packet of each sequence, where it does not mean a loss.
        let is_first = self.seen.insert(number);
        self.collector.result.losses += u64::from(packet.previous_packet_dropped == Some(true) && !is_first);
        let sequence = self.sequences.entry(number).or_default();
        if let Some(defaults) = packet.trace_packet_defaults {
            sequence.clock = defaults.timestamp_clock_id;
            sequence.track = defaults.track_event_defaults.and_then(|defaults| defaults.track_uuid);
        }
        let is_known = packet.clock_snapshot.is_some()
            || packet.interned_data.is_some()
            || packet.track_descriptor.is_some()
            || packet.process_descriptor.is_some()
            || packet.thread_descriptor.is_some()
            || packet.track_event.is_some()
            || packet.sequence_flags.is_some();
        if !is_known || packet.compressed_packets.is_some() {
            self.collector.leave_out();
        }
        if let Some(snapshot) = packet.clock_snapshot {
            self.snapshot(number, &snapshot.clocks);
        }
        if let Some(data) = packet.interned_data {
            self.intern(number, data);
        }
        if let Some(descriptor) = packet.track_descriptor {
            self.describe(descriptor);
        }
        if let Some(process) = packet.process_descriptor {
            self.describe_process(process);
        }
        if let Some(thread) = packet.thread_descriptor {
            let uuid = own_track(number);
            self.sequences.entry(number).or_default().track.get_or_insert(uuid);
            self.describe(TrackDescriptor {
                uuid: Some(uuid),
                thread: Some(thread),
                ..TrackDescriptor::default()
            });
        }
        if let Some(event) = packet.track_event {
            let time = packet.timestamp.and_then(|ticks| self.time(number, packet.timestamp_clock_id, ticks));
            let taken = time.and_then(|time_ns| self.event(number, time_ns, event));
            if taken.is_none() {
                self.collector.leave_out();
            }
        }
    }

    /// Imports simultaneous readings of several clocks.
    fn snapshot(&mut self, sequence: u32, readings: &[ClockReading]) {
        let parts = |reading: &ClockReading| {
            let unit_ns = reading.unit_multiplier_ns.unwrap_or(1).max(1);
            let clock = SourceClock {
                offset_ns: 0,
                unit_ns,
                is_incremental: reading.is_incremental.unwrap_or(false),
                last: reading.timestamp.unwrap_or(0),
            };
            (clock_key(sequence, reading.clock_id.unwrap_or(0)), clock)
        };
        let clocks: Vec<_> = readings.iter().map(parts).collect();
        let reading = |(_, clock): &((u32, u32), SourceClock)| clock.nanoseconds(clock.last);
        let boot = clocks.iter().find(|(key, _)| key.1 == BOOTTIME).map(reading);
        let known = || {
            let one = clocks.iter().find(|(key, _)| self.clocks.contains_key(key))?;
            Some(reading(one) + self.clocks[&one.0].offset_ns)
        };
        let Some(now) = boot.or_else(known).or_else(|| clocks.first().map(reading)) else { return };
        for (key, clock) in clocks {
            let offset_ns = now - clock.nanoseconds(clock.last);
            if key.1 == REALTIME && self.zero_unix_ns.is_none() {
                self.zero_unix_ns = (-offset_ns).try_into().ok();
            }
            if self.clocks.contains_key(&key) || self.collector.has_room() {
                self.clocks.insert(key, SourceClock { offset_ns, ..clock });
            }
        }
    }

    /// Returns the time of a packet on the boot clock.
    fn time(&mut self, sequence: u32, clock: Option<u32>, ticks: u64) -> Option<i64> {
        let usual = self.sequences.get(&sequence).and_then(|sequence| sequence.clock);
        let id = clock.or(usual).unwrap_or(BOOTTIME);
        let Some(clock) = self.clocks.get_mut(&clock_key(sequence, id)) else { return ticks.try_into().ok() };
        let ticks = if clock.is_incremental { clock.last.wrapping_add(ticks) } else { ticks };
        clock.last = ticks;
        (clock.nanoseconds(ticks) + clock.offset_ns).try_into().ok()
    }

    fn intern(&mut self, sequence: u32, data: InternedData) {
        let sequence = self.sequences.entry(sequence).or_default();
        let collector = &mut self.collector;
        let mut add = |names: &mut BTreeMap<u64, String>, new: Vec<InternedString>| {
            for InternedString { iid, text } in new {
                if collector.has_room() {
                    let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
                    names.insert(iid.unwrap_or(0), text);
                }
            }
        };
        add(&mut sequence.categories, data.event_categories);
        add(&mut sequence.events, data.event_names);
        add(&mut sequence.arguments, data.debug_annotation_names);
        add(&mut sequence.values, data.debug_annotation_string_values);
    }

    fn describe_process(&mut self, process: ProcessDescriptor) {
        let pid = process.pid.unwrap_or(0);
        // Keep a description with a name if the new description lacks the name.
        let is_better =
            |known: &ProcessDescriptor| known.process_name.is_none() || process.process_name.is_some();
        if self.processes.get(&pid).is_none_or(is_better) && self.collector.has_room() {
            self.processes.insert(pid, process);
        }
    }

    fn describe(&mut self, descriptor: TrackDescriptor) {
        if let Some(process) = &descriptor.process {
            self.describe_process(process.clone());
        }
        if let Some(track) = self.track(descriptor.uuid.unwrap_or(0)) {
            track.descriptor = Some(descriptor);
        }
    }

    fn track(&mut self, uuid: u64) -> Option<&mut Track> {
        if !self.tracks.contains_key(&uuid) && !self.collector.has_room() {
            return None;
        }
        Some(self.tracks.entry(uuid).or_default())
    }

    /// Imports an event; returns `None` if our format has no equivalent.
    fn event(&mut self, number: u32, time_ns: i64, event: TrackEvent) -> Option<()> {
        let usual = self.sequences.get(&number).and_then(|sequence| sequence.track);
        let uuid = event.track_uuid.or(usual).unwrap_or_else(|| own_track(number));
        let thread = self.thread(uuid)?;
        let kind = event.r#type.unwrap_or(0);
        match kind {
            SLICE_BEGIN | SLICE_END | INSTANT => {
                let (name, category) = self.names(number, &event);
                let state = self.collector.state(&name, &category)?;
                let record = match kind {
                    SLICE_BEGIN => RecordedEvent::Begin(state),
                    SLICE_END => RecordedEvent::End(state),
                    _ => RecordedEvent::Span(state, 0),
                };
                if kind != SLICE_END {
                    self.collector.record(thread, time_ns, record.clone());
                }
                for annotation in &event.debug_annotations {
                    self.argument(number, (thread, time_ns), "", annotation, 0);
                }
                if kind == SLICE_END {
                    self.collector.record(thread, time_ns, record);
                }
            }
            COUNTER => self.count(uuid, (thread, time_ns), &event)?,
            _ => return None,
        }
        for flow in event.flow_ids.iter().chain(&event.flow_ids_old) {
            self.collector.record(thread, time_ns, RecordedEvent::FlowOut(*flow));
        }
        for flow in event.terminating_flow_ids.iter().chain(&event.terminating_flow_ids_old) {
            self.collector.record(thread, time_ns, RecordedEvent::FlowIn(*flow));
        }
        Some(())
    }

    /// Returns the thread of a track. [`finish`](Self::finish) sets its name and process.
    fn thread(&mut self, uuid: u64) -> Option<ThreadId> {
        if let Some(thread) = self.track(uuid)?.thread {
            return Some(thread);
        }
        let thread = self.collector.thread(ProcessId(0), String::new());
        self.track(uuid)?.thread = thread;
        thread
    }

    /// Returns the name and the categories of an event.
    fn names(&self, sequence: u32, event: &TrackEvent) -> (String, String) {
        let sequence = &self.sequences[&sequence];
        let named = |names: &BTreeMap<u64, String>, iid: &u64| names.get(iid).cloned().unwrap_or_default();
        let interned = || event.name_iid.map(|iid| named(&sequence.events, &iid));
        let name = event.name.clone().or_else(interned).unwrap_or_default();
        let categories = event.category_iids.iter().map(|iid| named(&sequence.categories, iid));
        let categories: Vec<String> = categories.chain(event.categories.iter().cloned()).collect();
        (name, categories.join(","))
    }

    fn count(&mut self, uuid: u64, (thread, time_ns): (ThreadId, i64), event: &TrackEvent) -> Option<()> {
        let counter = match self.track(uuid)?.counter {
            Some(counter) => counter,
            None => {
                let info = CounterInfo { name: String::new(), unit: String::new() };
                let counter = self.collector.counter(info)?;
                *self.track(uuid)?.counter.insert(counter)
            }
        };
        let track = self.track(uuid)?;
        let described = track.descriptor.as_ref().and_then(|descriptor| descriptor.counter.clone());
        let described = described.unwrap_or_default();
        let unit = described.unit_multiplier.filter(|unit| *unit != 0).unwrap_or(1);
        let value = match (event.counter_value, event.double_counter_value) {
            (Some(value), _) if described.is_incremental == Some(true) => {
                track.sum = track.sum.saturating_add(value);
                Amount::Integer(track.sum.saturating_mul(unit))
            }
            (Some(value), _) => Amount::Integer(value.saturating_mul(unit)),
            (None, Some(value)) => Amount::Real(value * unit as f64),
            (None, None) => return None,
        };
        self.collector.record(thread, time_ns, RecordedEvent::Count(counter, value));
        Some(())
    }

    /// Imports an argument and its nested arguments: `a.b` is the member `b` of `a`, and `a[0]` the first element of an
    /// array.
    fn argument(
        &mut self,
        number: u32,
        at: (ThreadId, i64),
        prefix: &str,
        annotation: &DebugAnnotation,
        depth: usize,
    ) {
        let sequence = &self.sequences[&number];
        let interned = || annotation.name_iid.and_then(|iid| sequence.arguments.get(&iid).cloned());
        let name = annotation.name.clone().or_else(interned).unwrap_or_default();
        let name = match (prefix, name.as_str()) {
            ("", _) => name,
            (_, "") => prefix.to_owned(),
            _ => format!("{prefix}.{name}"),
        };
        let text = annotation.string_value.clone().or_else(|| annotation.legacy_json_value.clone());
        let text = text.or_else(|| sequence.values.get(&annotation.string_value_iid?).cloned());
        let whole = |number: u64| match i64::try_from(number) {
            Ok(number) => Amount::Integer(number),
            Err(_) => Amount::Real(number as f64),
        };
        let number_value = annotation.int_value.map(Amount::Integer);
        let number_value = number_value.or_else(|| annotation.uint_value.map(whole));
        let number_value = number_value.or_else(|| annotation.double_value.map(Amount::Real));
        let number_value =
            number_value.or_else(|| annotation.bool_value.map(|value| Amount::Integer(value.into())));
        let pointer = || annotation.pointer_value.map(|pointer| format!("{pointer:#x}"));
        let value =
            number_value.map(RecordedValue::Number).or(text.or_else(pointer).map(RecordedValue::Text));
        let (thread, time_ns) = at;
        if let Some(value) = value {
            self.collector.argument(thread, time_ns, &name, value);
        }
        if depth == DEPTH_MAX {
            return;
        }
        for inner in &annotation.dict_entries {
            self.argument(number, at, &name, inner, depth + 1);
        }
        for (index, inner) in annotation.array_values.iter().enumerate() {
            self.argument(number, at, &format!("{name}[{index}]"), inner, depth + 1);
        }
    }

    /// Sets the names of threads and counters from their tracks, and the processes of threads.
    fn finish(mut self) -> Collector {
        let nobody = ProcessInfo { zero_unix_ns: self.zero_unix_ns, ..unknown_process() };
        let mut processes: BTreeMap<Option<i32>, ProcessId> = BTreeMap::new();
        let collector = &mut self.collector;
        for (uuid, track) in &self.tracks {
            let Some(thread) = track.thread else { continue };
            let pid = pid(&self.tracks, *uuid);
            let process = *processes.entry(pid).or_insert_with(|| {
                let info = pid.map(|pid| process_info(pid, self.processes.get(&pid), self.zero_unix_ns));
                // Not counted as a declaration: at most one process per track is added, and the number of tracks is
                // limited.
                collector.processes.push(info.unwrap_or_else(|| nobody.clone()));
                ProcessId(collector.processes.len() as u32 - 1)
            });
            let name = name(*uuid, track.descriptor.as_ref());
            if let Some(CounterId(counter)) = track.counter {
                let described = track.descriptor.as_ref().and_then(|descriptor| descriptor.counter.as_ref());
                let unit = described.and_then(|counter| counter.unit_name.clone()).unwrap_or_default();
                collector.counters[counter as usize] = CounterInfo { name: name.clone(), unit };
            }
            collector.threads[thread.0 as usize] = trace::ThreadInfo { process, name };
        }
        self.collector
    }
}

/// Returns the process id of a track, or of its nearest parent with one.
fn pid(tracks: &BTreeMap<u64, Track>, uuid: u64) -> Option<i32> {
    let mut uuid = uuid;
    for _ in 0..DEPTH_MAX {
        let descriptor = tracks.get(&uuid)?.descriptor.as_ref()?;
        let process = descriptor.process.as_ref().and_then(|process| process.pid);
        let thread = descriptor.thread.as_ref().and_then(|thread| thread.pid);
        if let Some(pid) = process.or(thread) {
            return Some(pid);
        }
        uuid = descriptor.parent_uuid?;
    }
    None
}

fn process_info(pid: i32, described: Option<&ProcessDescriptor>, zero_unix_ns: Option<u64>) -> ProcessInfo {
    let title = described.and_then(|process| process.process_name.as_deref()).unwrap_or("process");
    let info = ProcessInfo {
        number: ProcessNumber::Pid(pid.try_into().unwrap_or(0)),
        command_line: described.map_or_else(String::new, |process| process.cmdline.join(" ")),
        zero_unix_ns,
        ..unknown_process()
    };
    info.titled(title)
}

fn name(uuid: u64, descriptor: Option<&TrackDescriptor>) -> String {
    let unknown = || format!("track {uuid}");
    let Some(descriptor) = descriptor else { return unknown() };
    let thread = descriptor.thread.as_ref();
    let of_thread = || thread.and_then(|thread| thread.thread_name.clone());
    let of_number = || thread.and_then(|thread| Some(format!("thread {}", thread.tid?)));
    let own = descriptor.name.clone().or_else(|| descriptor.static_name.clone());
    let of_process = || descriptor.process.as_ref().map(|_| "process".to_owned());
    own.or_else(of_thread).or_else(of_number).or_else(of_process).unwrap_or_else(unknown)
}
