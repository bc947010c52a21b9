//! A trace of a simulated run in a file that the Perfetto UI (<https://ui.perfetto.dev>) opens.
//!
//! The format is Perfetto's own, protocol buffers: a sequence of packets, each the description of a track or an event
//! on one. Record 12 says why. A node is a process there; its processor, links, disks, buses and what its tasks do are
//! its tracks. Times are nanoseconds since the machine started, and exact.
//!
//! Packets go to the file as they come, so memory does not grow with the run. A trace has a bound, since a run may
//! have tens of millions of slices: beyond it nothing is written any more, and what is there is a valid trace of the
//! beginning.
//!
//! The messages below are those parts of Perfetto's `perfetto_trace.proto` that are needed, with its names and numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};

use machine::{Instant, NodeId, NotedEvent, Recorder, RowId};
use prost::Message;
use recording::RecordedPart;

use crate::node_names::NodeNames;

#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
struct TracePacket {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    r#type: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(int64, optional, tag = "30")]
    counter_value: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct DebugAnnotation {
    #[prost(uint64, optional, tag = "1")]
    name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    uint_value: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct InternedData {
    #[prost(message, repeated, tag = "2")]
    event_names: Vec<InternedString>,
    #[prost(message, repeated, tag = "3")]
    debug_annotation_names: Vec<InternedString>,
}

#[derive(Clone, PartialEq, Message)]
struct InternedString {
    #[prost(uint64, optional, tag = "1")]
    iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(message, optional, tag = "3")]
    process: Option<ProcessDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    counter: Option<CounterDescriptor>,
    #[prost(int32, optional, tag = "11")]
    child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    sibling_order_rank: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    process_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct CounterDescriptor {}

const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const COUNTER: i32 = 4;
/// The first packet makes all earlier names void; this one and all others use names.
const NAMES_CLEARED: u32 = 1;
const NAMES_NEEDED: u32 = 2;
/// Tracks of a process come by their rank.
const EXPLICIT: i32 = 3;
/// There is one writer, so all packets are of one sequence.
const SEQUENCE: u32 = 1;

/// A trace that is being written.
pub(crate) struct PerfettoFile {
    file: BufWriter<File>,
    buffer: Vec<u8>,
    failed: Option<io::Error>,
    event_names: Names,
    argument_names: Names,
    names: NodeNames,
    /// Nodes that have been described.
    described: BTreeSet<NodeId>,
    /// Of each row how many slices have begun of which nothing is written, the limit having been reached.
    unwritten: Vec<u64>,
    events: u64,
    limit: u64,
    cut_at: Option<Instant>,
}

/// Names that have been given numbers, from 1 on in the order in which they came.
#[derive(Default)]
struct Names(BTreeMap<&'static str, u64>);

impl Names {
    /// The number of `name`; if it is new, it is added to `new`.
    fn number(&mut self, name: &'static str, new: &mut Vec<InternedString>) -> u64 {
        let next = self.0.len() as u64 + 1;
        *self.0.entry(name).or_insert_with(|| {
            new.push(InternedString { iid: Some(next), name: Some(name.to_owned()) });
            next
        })
    }
}

impl PerfettoFile {
    /// Begins a trace of at most `limit` slices and counts.
    pub(crate) fn new(file: BufWriter<File>, names: NodeNames, limit: u64) -> Self {
        let mut trace = PerfettoFile {
            file,
            buffer: Vec::new(),
            failed: None,
            event_names: Names::default(),
            argument_names: Names::default(),
            names,
            described: BTreeSet::new(),
            unwritten: Vec::new(),
            events: 0,
            limit,
            cut_at: None,
        };
        trace.write(vec![TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(NAMES_CLEARED),
            ..TracePacket::default()
        }]);
        trace
    }

    /// Ends the file; fails if any of it could not be written.
    pub(crate) fn finish(&mut self) -> io::Result<RecordedPart> {
        let flushed = self.file.flush();
        match self.failed.take() {
            Some(error) => Err(error),
            None => flushed.map(|()| RecordedPart { events: self.events, cut_at: self.cut_at }),
        }
    }
}

impl Recorder for PerfettoFile {
    fn row(&mut self, node: NodeId, name: &str, counts: bool) -> RowId {
        let mut packets = Vec::new();
        if self.described.insert(node) {
            packets.push(process(node, self.names.title(node)));
        }
        let row = RowId(self.unwritten.len() as u32);
        self.unwritten.push(0);
        packets.push(describe(TrackDescriptor {
            uuid: Some(row_uuid(row)),
            parent_uuid: Some(node_uuid(node)),
            name: Some(name.to_owned()),
            counter: counts.then_some(CounterDescriptor {}),
            sibling_order_rank: Some(row.0 as i32),
            ..TrackDescriptor::default()
        }));
        self.write(packets);
        row
    }

    fn note(&mut self, row: RowId, time: Instant, event: NotedEvent<'_>) {
        match event {
            NotedEvent::Begin { name, arguments } => self.begin(row, time, name, arguments),
            NotedEvent::End => self.end(row, time),
            NotedEvent::Count(value) => self.count(row, time, value),
            // Flows are in files of the trace format.
            NotedEvent::Sent(_) | NotedEvent::Received(_) => {}
        }
    }
}

impl PerfettoFile {
    fn begin(&mut self, row: RowId, time: Instant, name: &'static str, arguments: &[(&'static str, u64)]) {
        if !self.has_room(time) {
            self.unwritten[row.0 as usize] += 1;
            return;
        }
        let mut names = InternedData::default();
        let name_iid = Some(self.event_names.number(name, &mut names.event_names));
        let annotation = |(name, value): &(&'static str, u64)| DebugAnnotation {
            name_iid: Some(self.argument_names.number(name, &mut names.debug_annotation_names)),
            uint_value: Some(*value),
        };
        let debug_annotations = arguments.iter().map(annotation).collect();
        let begin = TrackEvent {
            debug_annotations,
            r#type: Some(SLICE_BEGIN),
            name_iid,
            track_uuid: Some(row_uuid(row)),
            counter_value: None,
        };
        let is_new = names != InternedData::default();
        self.write(vec![TracePacket { interned_data: is_new.then_some(names), ..event(time, begin) }]);
    }

    fn end(&mut self, row: RowId, time: Instant) {
        let unwritten = &mut self.unwritten[row.0 as usize];
        if *unwritten > 0 {
            *unwritten -= 1;
            return;
        }
        let track_uuid = Some(row_uuid(row));
        let end = TrackEvent { r#type: Some(SLICE_END), track_uuid, ..TrackEvent::default() };
        self.write(vec![event(time, end)]);
    }

    fn count(&mut self, row: RowId, time: Instant, value: u64) {
        if self.has_room(time) {
            let counter_value = Some(i64::try_from(value).unwrap_or(i64::MAX));
            let (r#type, track_uuid) = (Some(COUNTER), Some(row_uuid(row)));
            let count = TrackEvent { r#type, track_uuid, counter_value, ..TrackEvent::default() };
            self.write(vec![event(time, count)]);
        }
    }

    /// Counts an event, if the limit allows one more.
    fn has_room(&mut self, time: Instant) -> bool {
        if self.events < self.limit {
            self.events += 1;
            return true;
        }
        self.cut_at.get_or_insert(time);
        false
    }

    /// Appends packets: a trace and a trace after it are a trace.
    fn write(&mut self, packet: Vec<TracePacket>) {
        self.buffer.clear();
        Trace { packet }.encode(&mut self.buffer).expect("a vector has room");
        if self.failed.is_none() {
            self.failed = self.file.write_all(&self.buffer).err();
        }
    }
}

fn event(time: Instant, event: TrackEvent) -> TracePacket {
    TracePacket {
        timestamp: Some(time.as_nanos()),
        trusted_packet_sequence_id: Some(SEQUENCE),
        sequence_flags: Some(NAMES_NEEDED),
        track_event: Some(event),
        ..TracePacket::default()
    }
}

/// The number of a row as a track. It is odd, and that of a node even.
fn row_uuid(RowId(row): RowId) -> u64 {
    2 * u64::from(row) + 3
}

/// The number of a node as a process.
fn node_uuid(NodeId(node): NodeId) -> u64 {
    2 * node + 2
}

fn process(node: NodeId, name: String) -> TracePacket {
    let number = node.0 as i32;
    let process = ProcessDescriptor { pid: Some(number + 1), process_name: Some(name) };
    describe(TrackDescriptor {
        uuid: Some(node_uuid(node)),
        process: Some(process),
        child_ordering: Some(EXPLICIT),
        sibling_order_rank: Some(number),
        ..TrackDescriptor::default()
    })
}

fn describe(track: TrackDescriptor) -> TracePacket {
    TracePacket {
        trusted_packet_sequence_id: Some(SEQUENCE),
        track_descriptor: Some(track),
        ..TracePacket::default()
    }
}
