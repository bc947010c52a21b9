//! Reader of traces: decodes bytes into declarations and records.
//!
//! Callers pass bytes in pieces of any size, so a reader can follow a growing file. The reader skips damaged bytes up
//! to the next section, and adds a note.

use std::collections::BTreeMap;
use std::io::{self, Read};

use serde::Deserialize;

use crate::assemble::{self, Alignment};
use crate::chunk::{self, ChunkKind, Upcoming, VERSION};
use crate::gather::{Declared, FilePosition, FlowEnd, Gathered, ThreadName, ThreadSoFar};
use crate::model::{
    ClockOffset, CounterId, CounterInfo, NameId, ProcessId, ProcessInfo, RecordedEvent, RecordedValue,
    StateId, StateInfo, ThreadId, ThreadInfo,
};
use crate::note::NoteKind;
use crate::timeline::{ArgumentValue, Timeline};

/// Limits of all files together. The reader omits records, declarations and texts beyond the limits, and adds a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of records, each up to 80 bytes of memory.
    pub records: u32,
    /// Maximum number of processes, threads, states, counters and names of arguments, each up to 300 bytes of memory in
    /// addition to its texts.
    pub declarations: u32,
    /// Maximum number of bytes of texts: names, and values of arguments. Equal values count once.
    pub text_bytes: u64,
}

impl Default for Limits {
    /// Returns limits of 40 million records, 2 million declarations, 256 MiB of texts.
    fn default() -> Self {
        Limits { records: 40_000_000, declarations: 2_000_000, text_bytes: 1 << 28 }
    }
}

/// Reason why a trace cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The file does not begin with a section, or is truncated within its header.
    #[error("this is not a trace, or was truncated within the first bytes")]
    NoTrace,
    /// The file has this version of the format, which this program does not read.
    #[error("this is a trace of version {0}, but this program reads only version {VERSION}")]
    Version(u16),
}

/// Returns true if a file that begins with these bytes, at least eight, is a trace of any version.
pub fn is_trace(beginning: &[u8]) -> bool {
    beginning.starts_with(&chunk::MAGIC)
}

/// Reads one trace with the default limits. Notes contain `name` as the name of the file.
pub fn read(name: &str, from: impl Read) -> Result<Timeline, ReadError> {
    let mut reader = TraceReader::new(Limits::default());
    reader.read(name, from)?;
    Ok(reader.finish(Alignment::WallClock))
}

/// Reader of one or more traces into one timeline.
///
/// To follow growing files, make a timeline of a clone of the reader, and continue to read with the original.
#[derive(Clone)]
pub struct TraceReader {
    room: Room,
    gathered: Gathered,
    inputs: Vec<Input>,
}

/// Remaining capacity within the limits.
#[derive(Clone)]
struct Room(Limits);

/// Partially read file.
#[derive(Clone, Default)]
struct Input {
    /// Received bytes of an incomplete chunk.
    pending: Vec<u8>,
    /// Offset in the file of the first of these bytes.
    offset: u64,
    place: Place,
}

/// Position of a reader in the structure of a file.
#[derive(Clone, Default)]
enum Place {
    /// At the first byte of the file.
    #[default]
    Beginning,
    /// In a section.
    Section(Box<Section>),
    /// After damage, before the next section.
    Lost,
    /// In a section of another version.
    Foreign,
}

/// Indices in the gathered lists, by the number in this section.
#[derive(Clone, Default)]
struct Section {
    processes: BTreeMap<u32, u32>,
    threads: BTreeMap<u32, u32>,
    states: BTreeMap<u32, u32>,
    counters: BTreeMap<u32, u32>,
    names: BTreeMap<u32, u32>,
}

impl TraceReader {
    /// Returns a reader that has read nothing.
    pub fn new(limits: Limits) -> Self {
        TraceReader { room: Room(limits), gathered: Gathered::default(), inputs: Vec::new() }
    }

    /// Reads a whole file. Notes contain `name` as the name of the file.
    pub fn read(&mut self, name: &str, mut from: impl Read) -> Result<(), ReadError> {
        let file = self.add(name);
        let mut piece = vec![0; 1 << 18];
        loop {
            match from.read(&mut piece) {
                Ok(0) => return self.end(file),
                Ok(length) => self.feed(file, &piece[..length])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Adds a file without any bytes yet, and returns its index.
    pub fn add(&mut self, name: &str) -> usize {
        self.gathered.files.push(name.to_owned());
        self.inputs.push(Input::default());
        self.inputs.len() - 1
    }

    /// Reads the next bytes of a file.
    pub fn feed(&mut self, file: usize, bytes: &[u8]) -> Result<(), ReadError> {
        let mut input = std::mem::take(&mut self.inputs[file]);
        input.pending.extend_from_slice(bytes);
        let at = FilePosition { file: file as u32, offset: input.offset };
        let taken = self.take_in(at, &mut input.place, &input.pending)?;
        input.pending.drain(..taken);
        input.offset += taken as u64;
        self.inputs[file] = input;
        Ok(())
    }

    /// Ends a file: the bytes of an incomplete chunk are reported as truncated.
    pub fn end(&mut self, file: usize) -> Result<(), ReadError> {
        let Input { pending, offset, mut place } = std::mem::take(&mut self.inputs[file]);
        if matches!(place, Place::Beginning) {
            return Err(ReadError::NoTrace);
        }
        let mut rest = &pending[..];
        while !rest.is_empty() {
            let at = FilePosition { file: file as u32, offset: offset + (pending.len() - rest.len()) as u64 };
            // The length of a truncated chunk can extend into a section that was appended later.
            let torn = chunk::bytes_before_section(rest);
            let kind = if torn == rest.len() { NoteKind::Cut } else { NoteKind::Damaged };
            self.gathered.note(at, kind, torn as u64);
            rest = &rest[torn..];
            let at = FilePosition { offset: at.offset + torn as u64, ..at };
            place = Place::Lost;
            rest = &rest[self.take_in(at, &mut place, rest)?..];
        }
        Ok(())
    }

    /// Returns the timeline of all records read.
    pub fn finish(self, alignment: Alignment) -> Timeline {
        assemble::assemble(self.gathered, alignment)
    }

    /// Reads all complete chunks in `bytes`, which begin at position `start`, and returns the length of these chunks.
    fn take_in(&mut self, start: FilePosition, place: &mut Place, bytes: &[u8]) -> Result<usize, ReadError> {
        let mut taken = 0;
        loop {
            let rest = &bytes[taken..];
            let at = FilePosition { offset: start.offset + taken as u64, ..start };
            let next = chunk::next(rest);
            taken += match (&next, &mut *place) {
                (Upcoming::Partial, Place::Beginning | Place::Section(_)) => return Ok(taken),
                (Upcoming::Section(VERSION), _) => {
                    *place = Place::Section(Box::default());
                    next.bytes()
                }
                (Upcoming::Section(version), Place::Beginning) => return Err(ReadError::Version(*version)),
                (Upcoming::Section(_), _) => {
                    self.gathered.note(at, NoteKind::OtherVersion, 1);
                    *place = Place::Foreign;
                    next.bytes()
                }
                (Upcoming::Chunk(kind, content), Place::Section(section)) => {
                    let (room, gathered) = (&mut self.room, &mut self.gathered);
                    Chunk { at, section, room, gathered }.decode(*kind, content);
                    next.bytes()
                }
                (_, Place::Beginning) => return Err(ReadError::NoTrace),
                (Upcoming::Partial, _) if chunk::may_begin_section(rest) => return Ok(taken),
                (_, Place::Foreign) => chunk::bytes_before_section(rest),
                (_, Place::Section(_) | Place::Lost) => {
                    let bytes = chunk::bytes_before_section(rest);
                    self.gathered.note(at, NoteKind::Damaged, bytes as u64);
                    *place = Place::Lost;
                    bytes
                }
            };
        }
    }
}

impl Room {
    /// Returns true if another record is within the limit, and counts it.
    fn for_record(&mut self) -> bool {
        let room = self.0.records.checked_sub(1);
        room.inspect(|records| self.0.records = *records).is_some()
    }

    /// Returns true if another declaration is within the limit, and counts it.
    fn for_declaration(&mut self) -> bool {
        let room = self.0.declarations.checked_sub(1);
        room.inspect(|declarations| self.0.declarations = *declarations).is_some()
    }

    /// Returns true if these texts are within the limit, and counts them.
    fn for_texts(&mut self, texts: &[&str]) -> bool {
        let bytes = texts.iter().map(|text| text.len() as u64).sum();
        let room = self.0.text_bytes.checked_sub(bytes);
        room.inspect(|bytes| self.0.text_bytes = *bytes).is_some()
    }
}

/// Context for decoding the content of a chunk.
struct Chunk<'a> {
    at: FilePosition,
    section: &'a mut Section,
    room: &'a mut Room,
    gathered: &'a mut Gathered,
}

/// Reason why a part of a chunk is omitted.
enum OmissionReason {
    /// The content does not decode.
    Undecodable,
    /// The content is beyond the limits.
    NoRoom,
}

impl From<postcard::Error> for OmissionReason {
    fn from(_: postcard::Error) -> Self {
        OmissionReason::Undecodable
    }
}

impl Chunk<'_> {
    fn decode(mut self, kind: Option<ChunkKind>, content: &[u8]) {
        let result = match kind {
            Some(ChunkKind::Process) => self.process(content),
            Some(ChunkKind::Thread) => self.thread(content),
            Some(ChunkKind::State) => self.state(content),
            Some(ChunkKind::Counter) => self.counter(content),
            Some(ChunkKind::Name) => self.name(content),
            Some(ChunkKind::Records) => self.records(content),
            Some(ChunkKind::Dropped) => self.dropped(content),
            Some(ChunkKind::ClockOffset) => self.clock_offset(content),
            None => return self.gathered.note(self.at, NoteKind::UnknownChunk, 1),
        };
        match result {
            Ok(()) => {}
            Err(OmissionReason::Undecodable) => self.gathered.note(self.at, NoteKind::Undecodable, 1),
            Err(OmissionReason::NoRoom) => self.gathered.note(self.at, NoteKind::DeclarationsLeftOut, 1),
        }
    }

    fn process(&mut self, content: &[u8]) -> Result<(), OmissionReason> {
        let (ProcessId(id), info): (_, ProcessInfo) = whole(content)?;
        let index = self.process_index(id)?;
        self.texts(&[&info.host, &info.program, &info.command_line])?;
        self.gathered.processes[index as usize].info = Some(info);
        Ok(())
    }

    fn thread(&mut self, content: &[u8]) -> Result<(), OmissionReason> {
        let (ThreadId(id), ThreadInfo { process, name }) = whole(content)?;
        let index = self.thread_index(id)?;
        let process = self.process_index(process.0)?;
        self.texts(&[&name])?;
        self.gathered.threads[index as usize].info = Some(ThreadName { process, name });
        Ok(())
    }

    fn state(&mut self, content: &[u8]) -> Result<(), OmissionReason> {
        let (StateId(id), info): (_, StateInfo) = whole(content)?;
        let index = self.state_index(id)?;
        self.texts(&[&info.name, &info.category])?;
        self.gathered.states[index as usize].info = Some(info);
        Ok(())
    }

    fn counter(&mut self, content: &[u8]) -> Result<(), OmissionReason> {
        let (CounterId(id), info): (_, CounterInfo) = whole(content)?;
        let index = self.counter_index(id)?;
        self.texts(&[&info.name, &info.unit])?;
        self.gathered.counters[index as usize].info = Some(info);
        Ok(())
    }

    fn name(&mut self, content: &[u8]) -> Result<(), OmissionReason> {
        let (NameId(id), name): (_, String) = whole(content)?;
        let index = self.name_index(id)?;
        self.texts(&[&name])?;
        self.gathered.names[index as usize].info = Some(name);
        Ok(())
    }

    fn dropped(&mut self, content: &[u8]) -> Result<(), OmissionReason> {
        let (ThreadId(id), records): (_, u64) = whole(content)?;
        let index = self.thread_index(id)?;
        self.gathered.dropped(index, records);
        Ok(())
    }

    fn clock_offset(&mut self, content: &[u8]) -> Result<(), OmissionReason> {
        let (ProcessId(id), offset): (_, ClockOffset) = whole(content)?;
        let index = self.process_index(id)?;
        let known = &mut self.gathered.processes[index as usize].so_far;
        if known.is_none_or(|known| offset.uncertainty_ns <= known.uncertainty_ns) {
            *known = Some(offset);
        }
        Ok(())
    }

    fn records(&mut self, content: &[u8]) -> Result<(), OmissionReason> {
        let (ThreadId(id), mut rest) = postcard::take_from_bytes(content)?;
        let thread = self.thread_index(id)?;
        let mut time_ns: u64 = 0;
        while !rest.is_empty() {
            let ((since, event), after): ((i64, RecordedEvent), _) = postcard::take_from_bytes(rest)?;
            rest = after;
            time_ns = time_ns.wrapping_add(since.cast_unsigned());
            if !self.room.for_record() {
                self.gathered.note(self.at, NoteKind::RecordsLeftOut, 1);
            } else if self.record(thread, time_ns, event).is_err() {
                self.gathered.note(self.at, NoteKind::DeclarationsLeftOut, 1);
            }
        }
        Ok(())
    }

    fn record(&mut self, thread: u32, time_ns: u64, event: RecordedEvent) -> Result<(), OmissionReason> {
        self.gathered.time(self.at, thread, time_ns);
        match event {
            RecordedEvent::Begin(StateId(id)) => {
                let state = self.state_index(id)?;
                self.gathered.begin(thread, state, time_ns);
            }
            RecordedEvent::End(StateId(id)) => {
                let state = self.state_index(id)?;
                self.gathered.end(self.at, thread, state, time_ns);
            }
            RecordedEvent::Span(StateId(id), duration_ns) => {
                let state = self.state_index(id)?;
                self.gathered.span(thread, state, time_ns, duration_ns);
            }
            RecordedEvent::Count(CounterId(id), value) => {
                let counter = self.counter_index(id)?;
                self.gathered.counts.push((counter, thread, time_ns, value));
            }
            RecordedEvent::Argument(NameId(id), value) => {
                let name = self.name_index(id)?;
                let value = match value {
                    RecordedValue::Number(number) => ArgumentValue::Number(number),
                    RecordedValue::Text(text) => ArgumentValue::Text(self.text_index(&text)?),
                };
                self.gathered.argument(self.at, thread, time_ns, (name, value));
            }
            RecordedEvent::FlowOut(flow) => {
                self.gathered.flow_ends.push(FlowEnd { flow, thread, time_ns, arrives: false });
            }
            RecordedEvent::FlowIn(flow) => {
                self.gathered.flow_ends.push(FlowEnd { flow, thread, time_ns, arrives: true });
            }
            RecordedEvent::Processor(processor) => {
                self.gathered.processors.push((thread, time_ns, processor));
            }
            RecordedEvent::Switches { voluntary, involuntary } => {
                self.gathered.switches.push((thread, time_ns, voluntary, involuntary));
            }
        }
        Ok(())
    }

    fn process_index(&mut self, id: u32) -> Result<u32, OmissionReason> {
        index(&mut self.section.processes, &mut self.gathered.processes, id, self.at, self.room, || None)
    }

    fn thread_index(&mut self, id: u32) -> Result<u32, OmissionReason> {
        let section_process = self.process_index(0)?;
        let so_far = || ThreadSoFar::new(section_process);
        index(&mut self.section.threads, &mut self.gathered.threads, id, self.at, self.room, so_far)
    }

    fn state_index(&mut self, id: u32) -> Result<u32, OmissionReason> {
        index(&mut self.section.states, &mut self.gathered.states, id, self.at, self.room, || ())
    }

    fn counter_index(&mut self, id: u32) -> Result<u32, OmissionReason> {
        index(&mut self.section.counters, &mut self.gathered.counters, id, self.at, self.room, || ())
    }

    fn name_index(&mut self, id: u32) -> Result<u32, OmissionReason> {
        index(&mut self.section.names, &mut self.gathered.names, id, self.at, self.room, || ())
    }

    fn text_index(&mut self, text: &str) -> Result<u32, OmissionReason> {
        match self.gathered.text(text) {
            Some(index) => Ok(index),
            None => {
                self.texts(&[text])?;
                Ok(self.gathered.add_text(text))
            }
        }
    }

    fn texts(&mut self, texts: &[&str]) -> Result<(), OmissionReason> {
        self.room.for_texts(texts).then_some(()).ok_or(OmissionReason::NoRoom)
    }
}

/// Decodes the content of a chunk as a single value. Fails if bytes remain.
fn whole<T: for<'a> Deserialize<'a>>(content: &[u8]) -> Result<T, OmissionReason> {
    let (value, rest) = postcard::take_from_bytes(content)?;
    if rest.is_empty() { Ok(value) } else { Err(OmissionReason::Undecodable) }
}

/// Returns the index of the object with this number in the section. At the first use of the number, adds an object.
fn index<I, S>(
    indices: &mut BTreeMap<u32, u32>,
    all: &mut Vec<Declared<I, S>>,
    number: u32,
    at: FilePosition,
    room: &mut Room,
    so_far: impl FnOnce() -> S,
) -> Result<u32, OmissionReason> {
    if let Some(index) = indices.get(&number) {
        return Ok(*index);
    }
    if !room.for_declaration() {
        return Err(OmissionReason::NoRoom);
    }
    let index = all.len() as u32;
    all.push(Declared { file: at.file, number, info: None, so_far: so_far() });
    indices.insert(number, index);
    Ok(index)
}
