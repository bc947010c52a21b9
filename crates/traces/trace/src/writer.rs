//! Writer of traces: writes declarations and records in any order, chunk by chunk.
//!
//! A writer buffers only one chunk. Each chunk is one write to the underlying writer, so that a killed process leaves
//! at most its last chunk incomplete.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::chunk::{self, ChunkKind, MAGIC};
use crate::model::{
    Amount, ClockOffset, CounterId, CounterInfo, NameId, ProcessId, ProcessInfo, Record, RecordedEvent,
    RecordedValue, StateId, StateInfo, TEXT_BYTES_MAX, ThreadId, ThreadInfo,
};

/// Length in bytes at which a chunk of records is written: small, so that the loss of a chunk loses few records, but
/// large compared with the header of a chunk.
const RECORDS_BYTES: usize = 1 << 16;

/// Records of one thread in order of time, encoded as in the file.
#[derive(Debug, Default)]
pub struct RecordRun {
    bytes: Vec<u8>,
    last_ns: u64,
}

impl RecordRun {
    /// Adds an event at a time in nanoseconds. Truncates texts to [`TEXT_BYTES_MAX`].
    #[inline]
    pub fn push(&mut self, time_ns: u64, event: &RecordedEvent) {
        // Modulo 2^64, so that any two times have a difference.
        let since = time_ns.wrapping_sub(self.last_ns).cast_signed();
        self.last_ns = time_ns;
        put_record(&mut self.bytes, since, event);
    }

    /// Returns true if there are no records.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns true if the caller should write the run now. A chunk can hold about twice as many bytes as a run that
    /// has just become full.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= RECORDS_BYTES
    }

    /// Removes all records.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.last_ns = 0;
    }
}

/// Writer of one section of a trace.
///
/// The caller chooses the numbers of processes, threads, states, counters and names. A record may precede the
/// declaration of a number that it uses. Readers keep undeclared objects, and add a note.
pub struct FileWriter<W: Write> {
    to: W,
    buffer: Vec<u8>,
    /// Empty between records.
    run: RecordRun,
}

impl FileWriter<File> {
    /// Creates or replaces a file.
    pub fn create(path: &Path, process: &ProcessInfo) -> io::Result<Self> {
        FileWriter::new(File::create(path)?, process)
    }

    /// Appends a section to a trace, creating the file if it is missing. Existing sections remain unchanged, even
    /// damaged sections. Rejects a file that is not a trace ([`io::ErrorKind::InvalidData`]).
    pub fn append(path: &Path, process: &ProcessInfo) -> io::Result<Self> {
        let file = File::options().read(true).append(true).create(true).open(path)?;
        let mut beginning = Vec::new();
        (&file).take(MAGIC.len() as u64).read_to_end(&mut beginning)?;
        if !MAGIC.starts_with(&beginning) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "this is not a trace, and was not changed",
            ));
        }
        FileWriter::new(file, process)
    }
}

impl<W: Write> FileWriter<W> {
    /// Begins a section with `process` as process number 0.
    pub fn new(mut to: W, process: &ProcessInfo) -> io::Result<Self> {
        to.write_all(&chunk::head())?;
        let mut writer = FileWriter::resume(to);
        writer.process(ProcessId(0), process)?;
        Ok(writer)
    }

    /// Continues a section: `to` already contains its header and process.
    pub fn resume(to: W) -> Self {
        FileWriter { to, buffer: Vec::new(), run: RecordRun::default() }
    }

    /// Declares a process. Of several declarations of a number, the last is valid.
    pub fn process(&mut self, id: ProcessId, info: &ProcessInfo) -> io::Result<()> {
        let info = ProcessInfo {
            host: cut(&info.host).to_owned(),
            program: cut(&info.program).to_owned(),
            command_line: cut(&info.command_line).to_owned(),
            ..info.clone()
        };
        self.write(ChunkKind::Process, |buffer| chunk::put(buffer, &(id, info)))
    }

    /// Declares a thread.
    pub fn thread(&mut self, id: ThreadId, info: &ThreadInfo) -> io::Result<()> {
        let info = ThreadInfo { name: cut(&info.name).to_owned(), ..*info };
        self.write(ChunkKind::Thread, |buffer| chunk::put(buffer, &(id, info)))
    }

    /// Declares a state.
    pub fn state(&mut self, id: StateId, info: &StateInfo) -> io::Result<()> {
        let (name, category) = (cut(&info.name).to_owned(), cut(&info.category).to_owned());
        let info = StateInfo { name, category, ..*info };
        self.write(ChunkKind::State, |buffer| chunk::put(buffer, &(id, info)))
    }

    /// Declares a counter.
    pub fn counter(&mut self, id: CounterId, info: &CounterInfo) -> io::Result<()> {
        let info = CounterInfo { name: cut(&info.name).to_owned(), unit: cut(&info.unit).to_owned() };
        self.write(ChunkKind::Counter, |buffer| chunk::put(buffer, &(id, info)))
    }

    /// Declares the name of arguments.
    pub fn name(&mut self, id: NameId, name: &str) -> io::Result<()> {
        self.write(ChunkKind::Name, |buffer| chunk::put(buffer, &(id, cut(name))))
    }

    /// Writes records of a thread, in order of time.
    pub fn records(&mut self, thread: ThreadId, records: &[Record]) -> io::Result<()> {
        let mut run = std::mem::take(&mut self.run);
        for Record { time_ns, event } in records {
            run.push(*time_ns, event);
            if run.is_full() {
                self.run(thread, &mut run)?;
            }
        }
        self.run(thread, &mut run)?;
        self.run = run;
        Ok(())
    }

    /// Writes a run of records of a thread, and clears the run.
    ///
    /// # Panics
    /// If the run is longer than the maximum content of a chunk: see [`RecordRun::is_full`].
    pub fn run(&mut self, thread: ThreadId, run: &mut RecordRun) -> io::Result<()> {
        if run.is_empty() {
            return Ok(());
        }
        let written = self.write(ChunkKind::Records, |buffer| {
            chunk::put(buffer, &thread);
            buffer.extend_from_slice(&run.bytes);
        });
        run.clear();
        written
    }

    /// Writes the number of dropped records of a thread since the previous call.
    pub fn dropped(&mut self, thread: ThreadId, records: u64) -> io::Result<()> {
        self.write(ChunkKind::Dropped, |buffer| chunk::put(buffer, &(thread, records)))
    }

    /// Declares the offset of a process's clock from the reference clock. Of several declarations, the one with the
    /// least uncertainty is valid.
    pub fn clock_offset(&mut self, process: ProcessId, offset: ClockOffset) -> io::Result<()> {
        self.write(ChunkKind::ClockOffset, |buffer| chunk::put(buffer, &(process, offset)))
    }

    /// Flushes the underlying writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// Returns the underlying writer.
    pub fn into_inner(self) -> W {
        self.to
    }

    fn write(&mut self, kind: ChunkKind, put: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.buffer.clear();
        chunk::make(&mut self.buffer, kind, put);
        self.to.write_all(&self.buffer)
    }
}

#[inline]
fn put_record(buffer: &mut Vec<u8>, since: i64, event: &RecordedEvent) {
    let before = buffer.len();
    buffer.extend_from_slice(&[0; ShortRecord::BYTES]);
    let room = buffer.last_chunk_mut().expect("just made");
    match ShortRecord::put(room, since, event) {
        Some(bytes) => buffer.truncate(before + bytes),
        None => {
            buffer.truncate(before);
            put_other(buffer, since, event);
        }
    }
}

/// Encoder of the frequent kinds of records in the format of postcard. The serializer of postcard took most of the time
/// that tracing added to a simulation.
struct ShortRecord<'a> {
    room: &'a mut [u8; ShortRecord::BYTES],
    bytes: usize,
}

impl ShortRecord<'_> {
    /// Maximum length in bytes of a record: at most 28 (time 10, kinds 3, a number 5, an amount 10), rounded up.
    const BYTES: usize = 32;

    /// Encodes a record of a frequent kind at the start of `room`; returns its length, or `None` for other kinds.
    #[inline]
    fn put(room: &mut [u8; ShortRecord::BYTES], since: i64, event: &RecordedEvent) -> Option<usize> {
        let mut record = ShortRecord { room, bytes: 0 };
        record.signed(since);
        match event {
            RecordedEvent::Begin(StateId(state)) => record.kind(0).number((*state).into()),
            RecordedEvent::End(StateId(state)) => record.kind(1).number((*state).into()),
            RecordedEvent::Count(CounterId(counter), Amount::Integer(value)) => {
                record.kind(3).number((*counter).into()).kind(0).signed(*value)
            }
            RecordedEvent::Argument(NameId(name), RecordedValue::Number(Amount::Integer(value))) => {
                record.kind(4).number((*name).into()).kind(0).kind(0).signed(*value)
            }
            RecordedEvent::FlowOut(number) => record.kind(5).number(*number),
            RecordedEvent::FlowIn(number) => record.kind(6).number(*number),
            _ => return None,
        };
        Some(record.bytes)
    }

    /// Appends the index of an enumeration's variant.
    #[inline(always)]
    fn kind(&mut self, variant: u8) -> &mut Self {
        self.room[self.bytes] = variant;
        self.bytes += 1;
        self
    }

    /// Appends a varint: seven bits per byte, the lowest bits first; all bytes except the last have the high bit set.
    #[inline(always)]
    fn number(&mut self, mut number: u64) -> &mut Self {
        while number >= 0x80 {
            self.kind(number as u8 | 0x80);
            number >>= 7;
        }
        self.kind(number as u8)
    }

    /// Appends a zigzag varint, which is short for small numbers of either sign.
    #[inline(always)]
    fn signed(&mut self, number: i64) -> &mut Self {
        self.number((number << 1 ^ number >> 63).cast_unsigned())
    }
}

#[cold]
fn put_other(buffer: &mut Vec<u8>, since: i64, event: &RecordedEvent) {
    match event {
        RecordedEvent::Argument(name, RecordedValue::Text(text)) => {
            let text = RecordedValue::Text(cut(text).to_owned());
            chunk::put(buffer, &(since, RecordedEvent::Argument(*name, text)));
        }
        event => chunk::put(buffer, &(since, event)),
    }
}

/// Returns the longest prefix of a text within [`TEXT_BYTES_MAX`].
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_records_equal_the_encoding_of_postcard() {
        let edges =
            |bits: u32| (0..bits).flat_map(move |bit| [(1 << bit) - 1, 1 << bit, u64::MAX >> (64 - bits)]);
        for since in edges(64).map(u64::cast_signed) {
            for number in edges(32).map(|number| number as u32) {
                let (state, counter, name) = (StateId(number), CounterId(number), NameId(number));
                let amount = Amount::Integer(since ^ i64::from(number));
                let events = [
                    RecordedEvent::Begin(state),
                    RecordedEvent::End(state),
                    RecordedEvent::Count(counter, amount),
                    RecordedEvent::Argument(name, RecordedValue::Number(amount)),
                    RecordedEvent::FlowOut(since.cast_unsigned()),
                    RecordedEvent::FlowIn(since.cast_unsigned().rotate_left(number)),
                ];
                for event in events {
                    let mut room = [0; ShortRecord::BYTES];
                    let bytes = ShortRecord::put(&mut room, since, &event).expect("a short one");
                    let mut expected = Vec::new();
                    chunk::put(&mut expected, &(since, &event));
                    assert_eq!(&room[..bytes], expected, "{since} {event:?}");
                }
            }
        }
    }
}
