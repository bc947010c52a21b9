//! Writes a timeline for Perfetto's tools: each process as a process, each thread as a track of its process, and spans
//! as slices.
//!
//! Slices of a track must nest, but spans of a thread need not: spans that do not nest become slices of an additional
//! track of the thread. An unfinished span is a slice up to its last known time, with an argument that marks it as not
//! ended. A span without a begin is a slice without duration. Counters, processors and switches become counter tracks.
//! A flow connects the innermost spans around its ends; a flow with an end outside of any span is omitted.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use prost::Message;
use trace::{Amount, ArgumentValue, Mark, ProcessNumber, Span, Timeline};

use super::schema::{
    BOOTTIME, COUNTER, ClockReading, ClockSnapshot, CounterDescriptor, DebugAnnotation, EXPLICIT,
    InternedData, InternedString, NAMES_CLEARED, NAMES_NEEDED, ProcessDescriptor, REALTIME, SLICE_BEGIN,
    SLICE_END, TracePacket, TrackDescriptor, TrackEvent,
};

/// Sequence number of all packets, because there is one writer.
const SEQUENCE: u32 = 1;

/// Tag and wire type of the field `packet` in a trace.
const PACKET: u8 = 1 << 3 | 2;

/// Writes a timeline as a Perfetto trace.
pub fn write_perfetto(timeline: &Timeline, to: impl Write) -> io::Result<()> {
    let mut export = Export { timeline, to, buffer: Vec::new(), uuid: 0, ends: FlowEnds::of(timeline) };
    export.names()?;
    let parents = export.processes()?;
    for (index, thread) in timeline.threads.iter().enumerate() {
        export.thread(index, parents[thread.process as usize])?;
    }
    export.counts(&parents)?;
    export.processors(&parents)?;
    export.switches(&parents)?;
    export.to.flush()
}

struct Export<'a, W> {
    timeline: &'a Timeline,
    to: W,
    buffer: Vec<u8>,
    /// Number of the track described last.
    uuid: u64,
    ends: FlowEnds,
}

/// Names of arguments that mark incomplete spans. Their numbers follow the numbers of the names in the timeline.
const MARKS: [&str; 1] = ["mark"];

impl<W: Write> Export<'_, W> {
    fn write(&mut self, packet: TracePacket) -> io::Result<()> {
        let packet = TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..packet };
        self.buffer.clear();
        self.buffer.push(PACKET);
        packet.encode_length_delimited(&mut self.buffer).expect("a vector has room");
        self.to.write_all(&self.buffer)
    }

    /// Writes all names at once, numbered by their index from 1 on.
    fn names(&mut self) -> io::Result<()> {
        fn interned<'a>(names: impl Iterator<Item = &'a str>) -> Vec<InternedString> {
            let one = |(iid, name): (u64, &str)| InternedString { iid: Some(iid), text: Some(name.into()) };
            (1..).zip(names).map(one).collect()
        }
        let timeline = self.timeline;
        let arguments = timeline.names.iter().map(String::as_str).chain(MARKS);
        let data = InternedData {
            event_categories: interned(timeline.states.iter().map(|state| state.category.as_str())),
            event_names: interned(timeline.states.iter().map(|state| state.name.as_str())),
            debug_annotation_names: interned(arguments),
            debug_annotation_string_values: interned(timeline.texts.iter().map(|text| &**text)),
        };
        let clock_snapshot = timeline.zero_unix_ns.map(|zero| {
            let reading = |clock_id, timestamp| ClockReading {
                clock_id: Some(clock_id),
                timestamp: Some(timestamp),
                ..ClockReading::default()
            };
            ClockSnapshot { clocks: vec![reading(BOOTTIME, 0), reading(REALTIME, zero)] }
        });
        self.write(TracePacket {
            sequence_flags: Some(NAMES_CLEARED),
            interned_data: Some(data),
            ..TracePacket::default()
        })?;
        match clock_snapshot {
            Some(_) => self.write(TracePacket { clock_snapshot, ..TracePacket::default() }),
            None => Ok(()),
        }
    }

    /// Describes a track, and returns its number.
    fn describe(&mut self, track: TrackDescriptor) -> io::Result<u64> {
        self.uuid += 1;
        let track_descriptor = Some(TrackDescriptor { uuid: Some(self.uuid), ..track });
        self.write(TracePacket { track_descriptor, ..TracePacket::default() })?;
        Ok(self.uuid)
    }

    /// Describes the processes, and returns the numbers of their tracks.
    fn processes(&mut self) -> io::Result<Vec<u64>> {
        let timeline = self.timeline;
        let pids = pids(timeline);
        let mut tracks = Vec::with_capacity(pids.len());
        for (rank, (process, pid)) in (0..).zip(timeline.processes.iter().zip(pids)) {
            let process = ProcessDescriptor {
                pid: Some(pid),
                cmdline: process.info.command_line.split_whitespace().map(str::to_owned).collect(),
                process_name: Some(process.info.title()),
            };
            tracks.push(self.describe(TrackDescriptor {
                process: Some(process),
                child_ordering: Some(EXPLICIT),
                sibling_order_rank: Some(rank),
                ..TrackDescriptor::default()
            })?);
        }
        Ok(tracks)
    }

    fn thread(&mut self, index: usize, parent: u64) -> io::Result<()> {
        let timeline = self.timeline;
        let thread = &timeline.threads[index];
        let rank = index as i32;
        let lane = |lane: usize| TrackDescriptor {
            name: Some(if lane == 0 {
                thread.name.clone()
            } else {
                format!("{} ({})", thread.name, lane + 1)
            }),
            parent_uuid: Some(parent),
            sibling_order_rank: Some(rank),
            ..TrackDescriptor::default()
        };
        let mut lanes: Vec<Lane> = vec![Lane { track: self.describe(lane(0))?, open: Vec::new() }];
        for index in thread.spans.clone() {
            let span = timeline.spans.get(index);
            let fitting = lanes.iter_mut().position(|lane| lane.has_room_for(&span));
            let number = fitting.unwrap_or(lanes.len());
            if fitting.is_none() {
                lanes.push(Lane { track: self.describe(lane(number))?, open: Vec::new() });
            }
            let track = lanes[number].track;
            while let Some(end) = lanes[number].open.pop_if(|end| *end <= span.begin_ns) {
                self.end(track, end)?;
            }
            lanes[number].open.push(span.end_ns);
            self.begin(track, index, span)?;
        }
        for lane in lanes {
            for end in lane.open.into_iter().rev() {
                self.end(lane.track, end)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, track: u64, index: usize, span: Span) -> io::Result<()> {
        let timeline = self.timeline;
        let mut debug_annotations: Vec<DebugAnnotation> =
            timeline.arguments_of(index).iter().map(annotation).collect();
        let mark = match span.mark {
            Mark::Whole => None,
            Mark::Unfinished => Some("not ended"),
            Mark::NoBegin => Some("no begin"),
        };
        debug_annotations.extend(mark.map(|mark| DebugAnnotation {
            name_iid: Some(timeline.names.len() as u64 + 1),
            string_value: Some(mark.to_owned()),
            ..DebugAnnotation::default()
        }));
        let state = span.state as usize;
        let has_category = !timeline.states[state].category.is_empty();
        let event = TrackEvent {
            category_iids: if has_category { vec![state as u64 + 1] } else { Vec::new() },
            debug_annotations,
            r#type: Some(SLICE_BEGIN),
            name_iid: Some(state as u64 + 1),
            flow_ids: self.ends.leaving(index),
            terminating_flow_ids: self.ends.arriving(index),
            ..TrackEvent::default()
        };
        self.event(track, span.begin_ns, event)
    }

    fn end(&mut self, track: u64, time_ns: u64) -> io::Result<()> {
        self.event(track, time_ns, TrackEvent { r#type: Some(SLICE_END), ..TrackEvent::default() })
    }

    fn event(&mut self, track: u64, time_ns: u64, event: TrackEvent) -> io::Result<()> {
        self.write(TracePacket {
            timestamp: Some(time_ns),
            sequence_flags: Some(NAMES_NEEDED),
            track_event: Some(TrackEvent { track_uuid: Some(track), ..event }),
            ..TracePacket::default()
        })
    }

    fn counts(&mut self, parents: &[u64]) -> io::Result<()> {
        let timeline = self.timeline;
        for counts in timeline.counts.chunk_by(|a, b| (a.counter, a.thread) == (b.counter, b.thread)) {
            let counter = &timeline.counters[counts[0].counter as usize];
            let name = format!("{}: {}", timeline.threads[counts[0].thread as usize].name, counter.name);
            let track = self.counter_track(parents, counts[0].thread, name, &counter.unit)?;
            for count in counts {
                self.count(track, count.time_ns, count.value)?;
            }
        }
        Ok(())
    }

    fn processors(&mut self, parents: &[u64]) -> io::Result<()> {
        let timeline = self.timeline;
        for processors in timeline.processors.chunk_by(|a, b| a.thread == b.thread) {
            let thread = processors[0].thread;
            let name = format!("{}: processor", timeline.threads[thread as usize].name);
            let track = self.counter_track(parents, thread, name, "")?;
            for on in processors {
                self.count(track, on.time_ns, Amount::Integer(on.processor.into()))?;
            }
        }
        Ok(())
    }

    fn switches(&mut self, parents: &[u64]) -> io::Result<()> {
        let timeline = self.timeline;
        for switches in timeline.switches.chunk_by(|a, b| a.thread == b.thread) {
            let (thread, name) = (switches[0].thread, &timeline.threads[switches[0].thread as usize].name);
            let kinds = [("voluntary", false), ("involuntary", true)];
            for (kind, is_involuntary) in kinds {
                let name = format!("{name}: {kind} context switches");
                let track = self.counter_track(parents, thread, name, "")?;
                for switch in switches {
                    let count = if is_involuntary { switch.involuntary } else { switch.voluntary };
                    self.count(track, switch.time_ns, Amount::Real(count as f64))?;
                }
            }
        }
        Ok(())
    }

    fn counter_track(&mut self, parents: &[u64], thread: u32, name: String, unit: &str) -> io::Result<u64> {
        let unit_name = (!unit.is_empty()).then(|| unit.to_owned());
        self.describe(TrackDescriptor {
            name: Some(name),
            parent_uuid: Some(parents[self.timeline.threads[thread as usize].process as usize]),
            counter: Some(CounterDescriptor { unit_name, ..CounterDescriptor::default() }),
            sibling_order_rank: Some(thread as i32),
            ..TrackDescriptor::default()
        })
    }

    fn count(&mut self, track: u64, time_ns: u64, value: Amount) -> io::Result<()> {
        let (counter_value, double_counter_value) = match value {
            Amount::Integer(number) => (Some(number), None),
            Amount::Real(number) => (None, Some(number)),
        };
        let r#type = Some(COUNTER);
        self.event(
            track,
            time_ns,
            TrackEvent { r#type, counter_value, double_counter_value, ..TrackEvent::default() },
        )
    }
}

/// Track with nested slices.
struct Lane {
    track: u64,
    /// End times of the slices that may still be open, the innermost slice last.
    open: Vec<u64>,
}

impl Lane {
    /// Returns true if a span that begins after all others can be a slice of the track.
    fn has_room_for(&self, span: &Span) -> bool {
        let around = self.open.iter().rev().find(|end| **end > span.begin_ns);
        around.is_none_or(|end| *end >= span.end_ns)
    }
}

fn annotation(argument: &trace::Argument) -> DebugAnnotation {
    let named =
        DebugAnnotation { name_iid: Some(u64::from(argument.name) + 1), ..DebugAnnotation::default() };
    match argument.value {
        ArgumentValue::Number(Amount::Integer(number)) => {
            DebugAnnotation { int_value: Some(number), ..named }
        }
        ArgumentValue::Number(Amount::Real(number)) => {
            DebugAnnotation { double_value: Some(number), ..named }
        }
        ArgumentValue::Text(text) => DebugAnnotation { string_value_iid: Some(u64::from(text) + 1), ..named },
    }
}

/// Returns a unique number for each process, as Perfetto requires: the process ids if they are unique, otherwise
/// numbers from 1.
fn pids(timeline: &Timeline) -> Vec<i32> {
    let own = timeline.processes.iter().map(|process| match process.info.number {
        ProcessNumber::Pid(pid) => i32::try_from(pid).ok().filter(|pid| *pid > 0),
        ProcessNumber::Node(_) => None,
    });
    let own: Option<Vec<i32>> = own.collect();
    let are_different = |pids: &Vec<i32>| pids.iter().collect::<BTreeSet<_>>().len() == pids.len();
    own.filter(are_different).unwrap_or_else(|| (1..=timeline.processes.len() as i32).collect())
}

/// Numbers of the departing and arriving flows of each span.
struct FlowEnds {
    leaving: BTreeMap<usize, Vec<u64>>,
    arriving: BTreeMap<usize, Vec<u64>>,
}

impl FlowEnds {
    fn of(timeline: &Timeline) -> Self {
        // Sort by thread and time, so that one pass over each thread's spans suffices.
        let mut points = Vec::with_capacity(2 * timeline.flows.len());
        for (flow, number) in timeline.flows.iter().zip(1u64..) {
            points.push((flow.from_thread, flow.from_ns, false, number));
            points.push((flow.to_thread, flow.to_ns, true, number));
        }
        points.sort_unstable();
        let mut ends: [Vec<(u64, usize)>; 2] = [Vec::new(), Vec::new()];
        for points in points.chunk_by(|a, b| a.0 == b.0) {
            let mut spans = timeline.threads[points[0].0 as usize].spans.clone().peekable();
            let mut open: Vec<usize> = Vec::new();
            for (_, time_ns, arrives, number) in points {
                while let Some(span) = spans.next_if(|span| timeline.spans.begin_ns[*span] <= *time_ns) {
                    open.push(span);
                }
                while open.pop_if(|span| timeline.spans.end_ns[*span] < *time_ns).is_some() {}
                if let Some(span) = open.last() {
                    ends[usize::from(*arrives)].push((*number, *span));
                }
            }
        }
        let [leaving, arriving] = ends;
        let left: BTreeSet<u64> = leaving.iter().map(|(number, _)| *number).collect();
        let arrived: BTreeSet<u64> = arriving.iter().map(|(number, _)| *number).collect();
        let by_span = |ends: Vec<(u64, usize)>| {
            let mut by_span: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
            for (number, span) in
                ends.into_iter().filter(|(number, _)| left.contains(number) && arrived.contains(number))
            {
                by_span.entry(span).or_default().push(number);
            }
            by_span
        };
        FlowEnds { leaving: by_span(leaving), arriving: by_span(arriving) }
    }

    fn leaving(&self, span: usize) -> Vec<u64> {
        self.leaving.get(&span).cloned().unwrap_or_default()
    }

    fn arriving(&self, span: usize) -> Vec<u64> {
        self.arriving.get(&span).cloned().unwrap_or_default()
    }
}
