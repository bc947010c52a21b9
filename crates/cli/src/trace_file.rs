//! A trace of a simulated run in a file that the Perfetto UI (<https://ui.perfetto.dev>) opens.
//!
//! The format is Perfetto's own, protocol buffers: a sequence of packets, each the description of a track or an event
//! on one. Record 12 says why. A node is a process there; its processor, links, disks and buses are its tracks. Times
//! are nanoseconds since the machine started, and exact.
//!
//! Packets go to the file as they come, so memory does not grow with the run. A trace has a bound, since a run may
//! have tens of millions of slices: beyond it nothing is written any more, and what is there is a valid trace of the
//! beginning.
//!
//! The messages below are those parts of Perfetto's `perfetto_trace.proto` that are needed, with its names and numbers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use description::MachineDescription;
use machine::Instant;
use prost::Message;
use sim::{Recorder, Slice, Track};

use command_line::failure::{Failure, Result};

use crate::job_tracks::JobTracks;

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

/// A trace that is being written. Clones write to the same file.
#[derive(Clone)]
pub(crate) struct TraceFile(Rc<RefCell<Writer>>);

/// What came of a trace.
pub(crate) struct WrittenEvents {
    /// How many slices and counts are in it.
    pub(crate) events: u64,
    /// When the limit was reached, if it was: nothing that ended later is in it.
    pub(crate) cut_at: Option<Instant>,
}

struct Writer {
    path: PathBuf,
    file: BufWriter<File>,
    buffer: Vec<u8>,
    failed: Option<std::io::Error>,
    event_names: Names,
    argument_names: Names,
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

impl TraceFile {
    /// Creates the file, or replaces it, for a trace of at most `limit` slices and counts on this machine.
    pub(crate) fn create(path: &Path, machine: &MachineDescription, limit: u64) -> Result<Self> {
        let file = File::create(path).map_err(|error| {
            let failure = Failure::new(path.display().to_string(), error);
            failure.remedy("Give --trace a file in a directory that exists and can be written to.")
        })?;
        let mut writer = Writer {
            path: path.to_owned(),
            file: BufWriter::new(file),
            buffer: Vec::new(),
            failed: None,
            event_names: Names::default(),
            argument_names: Names::default(),
            events: 0,
            limit,
            cut_at: None,
        };
        writer.write(tracks(machine));
        Ok(TraceFile(Rc::new(RefCell::new(writer))))
    }

    /// Adds what jobs did.
    pub(crate) fn add_jobs(&self, tracks: &JobTracks) {
        self.0.borrow_mut().add_jobs(tracks);
    }

    /// Ends the file; fails if any of it could not be written.
    pub(crate) fn finish(&self) -> Result<WrittenEvents> {
        let mut writer = self.0.borrow_mut();
        let flushed = writer.file.flush();
        match writer.failed.take().or(flushed.err()) {
            Some(error) => Err(Failure::new(writer.path.display().to_string(), error)),
            None => Ok(WrittenEvents { events: writer.events, cut_at: writer.cut_at }),
        }
    }
}

impl Recorder for TraceFile {
    fn slice(&mut self, slice: Slice<'_>) {
        self.0.borrow_mut().slice(slice);
    }

    fn count(&mut self, track: Track, time: Instant, value: u64) {
        self.0.borrow_mut().count(track, time, value);
    }
}

impl Writer {
    fn slice(&mut self, slice: Slice<'_>) {
        self.stretch(uuid(slice.track), slice.name, (slice.begin, slice.end), slice.arguments);
    }

    /// Writes that something happened for a stretch of time on a track.
    fn stretch(
        &mut self,
        track: u64,
        name: &'static str,
        (begin_time, end_time): (Instant, Instant),
        arguments: &[(&'static str, u64)],
    ) {
        if !self.has_room(end_time) {
            return;
        }
        let mut names = InternedData::default();
        let name_iid = Some(self.event_names.number(name, &mut names.event_names));
        let annotation = |(name, value): &(&'static str, u64)| DebugAnnotation {
            name_iid: Some(self.argument_names.number(name, &mut names.debug_annotation_names)),
            uint_value: Some(*value),
        };
        let debug_annotations = arguments.iter().map(annotation).collect();
        let track_uuid = Some(track);
        let begin = TrackEvent {
            debug_annotations,
            r#type: Some(SLICE_BEGIN),
            name_iid,
            track_uuid,
            counter_value: None,
        };
        let end = TrackEvent { r#type: Some(SLICE_END), track_uuid, ..TrackEvent::default() };
        let is_new = names != InternedData::default();
        let begin = TracePacket { interned_data: is_new.then_some(names), ..event(begin_time, begin) };
        self.write(vec![begin, event(end_time, end)]);
    }

    /// A process for all jobs, with a track for each.
    fn add_jobs(&mut self, tracks: &JobTracks) {
        let mut packets = vec![process(tracks.nodes, "jobs".to_owned())];
        for job in 0..tracks.jobs.len() {
            packets.push(child_of(tracks.nodes, job_uuid(job), format!("job {job}"), false, job as i32));
        }
        self.write(packets);
        for (job, slices) in tracks.jobs.iter().enumerate() {
            for slice in slices {
                let run = slice.run.map(|run| ("run", run));
                self.stretch(job_uuid(job), slice.name, (slice.begin, slice.end), run.as_slice());
            }
        }
    }

    fn count(&mut self, track: Track, time: Instant, value: u64) {
        if self.has_room(time) {
            let counter_value = Some(i64::try_from(value).unwrap_or(i64::MAX));
            let (r#type, track_uuid) = (Some(COUNTER), Some(uuid(track)));
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

/// The kinds of tracks; a number tells the kind and the part of the machine.
const KINDS: u64 = 16;

/// The number of a track, which is nobody else's.
fn uuid(track: Track) -> u64 {
    let (kind, index) = match track {
        Track::Threads(node) => (1, node),
        Track::ThreadsWaiting(node) => (2, node),
        Track::Interrupts(node) => (3, node),
        Track::LinkOut(node) => (4, node),
        Track::LinkIn(node) => (5, node),
        Track::Bus(bus) => (6, bus),
        Track::Disk(disk) => (7, disk),
        Track::Mechanics(disk) => (8, disk),
        Track::WritesPending(disk) => (9, disk),
    };
    (index as u64 + 1) * KINDS + kind
}

/// The number of the track of a job, which is nobody else's.
fn job_uuid(job: usize) -> u64 {
    (job as u64 + 1) * KINDS + 10
}

/// The number of a node as a process.
fn node_uuid(node: usize) -> u64 {
    (node as u64 + 1) * KINDS
}

/// What describes all tracks, node by node.
fn tracks(machine: &MachineDescription) -> Vec<TracePacket> {
    let compute_nodes = machine.nodes.compute.value as usize;
    let disks = machine.disks.per_io_node.value as usize;
    let buses = machine.buses.as_ref().map_or(0, |buses| buses.per_io_node.value as usize);
    let mut packets = vec![TracePacket {
        trusted_packet_sequence_id: Some(SEQUENCE),
        sequence_flags: Some(NAMES_CLEARED),
        ..TracePacket::default()
    }];
    for node in 0..machine.node_count() as usize {
        let io_node = node.checked_sub(compute_nodes);
        let name = match io_node {
            None => format!("compute node {node}"),
            Some(io_node) => format!("I/O node {io_node}"),
        };
        packets.push(process(node, name));
        let own = [
            (Track::Threads(node), "processor: threads".to_owned()),
            (Track::ThreadsWaiting(node), "threads waiting for the processor".to_owned()),
            (Track::Interrupts(node), "processor: interrupts".to_owned()),
            (Track::LinkOut(node), "link out".to_owned()),
            (Track::LinkIn(node), "link in".to_owned()),
        ];
        let of = |io_node: usize, count: usize| io_node * count..(io_node + 1) * count;
        let buses = io_node.map_or(0..0, |io_node| of(io_node, buses));
        let disks = io_node.map_or(0..0, |io_node| of(io_node, disks));
        let buses = buses.map(|bus| (Track::Bus(bus), format!("bus {bus}")));
        let disks = disks.flat_map(|disk| {
            [
                (Track::Disk(disk), format!("disk {disk}")),
                (Track::Mechanics(disk), format!("disk {disk}: mechanics")),
                (Track::WritesPending(disk), format!("disk {disk}: bytes of pending writes")),
            ]
        });
        let all = own.into_iter().chain(buses).chain(disks);
        packets.extend((0..).zip(all).map(|(rank, (track, name))| child(node, track, name, rank)));
    }
    packets
}

fn process(node: usize, name: String) -> TracePacket {
    let process = ProcessDescriptor { pid: Some(node as i32 + 1), process_name: Some(name) };
    describe(TrackDescriptor {
        uuid: Some(node_uuid(node)),
        process: Some(process),
        child_ordering: Some(EXPLICIT),
        sibling_order_rank: Some(node as i32),
        ..TrackDescriptor::default()
    })
}

fn child(node: usize, track: Track, name: String, rank: i32) -> TracePacket {
    let counts = matches!(track, Track::ThreadsWaiting(_) | Track::WritesPending(_));
    child_of(node, uuid(track), name, counts, rank)
}

/// A track of this number, or a counter, below a process.
fn child_of(process: usize, number: u64, name: String, is_counter: bool, rank: i32) -> TracePacket {
    describe(TrackDescriptor {
        uuid: Some(number),
        parent_uuid: Some(node_uuid(process)),
        name: Some(name),
        counter: is_counter.then_some(CounterDescriptor {}),
        sibling_order_rank: Some(rank),
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
