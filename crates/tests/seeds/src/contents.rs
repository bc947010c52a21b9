//! Possible contents of files, from the history of their writes.
//!
//! A read of a byte may return each write that began before the end of the read, except those that a later write
//! surely replaced. A write is *settled* when another client's later write surely comes after it: after a flush or
//! close. A write is *sure* for a reader if the reader must see it, unless a fault may have taken it. Those are the
//! reader's writes, and writes sent before the reader opened the file or asked for its size. A write that a flush has
//! reported as persistent is sure in spite of faults: a lost write that no call has reported fails the run here.

use std::ops::Range;

use namespace::FileNumber;

/// Time in nanoseconds.
pub(crate) type EventTime = u64;

/// Time that never comes.
pub(crate) const NEVER: EventTime = EventTime::MAX;

/// Change of the contents of a file.
#[derive(Clone, Debug)]
struct Write {
    /// Place in the history.
    index: usize,
    /// Number that determines the bytes; 0 for zeros.
    stamp: u64,
    /// Process that wrote; `usize::MAX` for the creation of the file.
    writer: usize,
    /// Changed bytes.
    bytes: Range<u64>,
    /// True if it sets the length to the start of `bytes`.
    is_cut: bool,
    started: EventTime,
    /// Time at which its call succeeded.
    accepted: EventTime,
    /// Time at which all clients could see it.
    settled: EventTime,
    /// Time at which a call reported it as persistent.
    persistent: EventTime,
    /// True if another client sent it: only a collective sync persists it.
    is_exchanged: bool,
    /// True if a call of its writer failed since: then no later call says anything about it.
    is_disclaimed: bool,
}

/// History of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// Number of the file, once known.
    pub(crate) number: Option<FileNumber>,
    writes: Vec<Write>,
    /// An append failed, whose offset is unknown: contents from here on may be anything.
    unknown_from: Option<u64>,
}

/// Read of a file by a process.
pub(crate) struct ReadCall {
    /// The process.
    pub(crate) reader: usize,
    /// Time at which it opened the file, or last asked for its size.
    pub(crate) opened: EventTime,
    /// Time of its call.
    pub(crate) started: EventTime,
    /// Time of the answer.
    pub(crate) ended: EventTime,
}

/// Write in progress.
#[derive(Clone, Copy)]
pub(crate) struct Begun(usize);

/// Append in progress.
pub(crate) struct Appending {
    /// Limit of the known contents before it.
    unknown_from: Option<u64>,
    started: EventTime,
}

/// Returns byte `index` of the write with this stamp: never zero, and different for other stamps and indexes.
fn byte_of(stamp: u64, index: u64) -> u8 {
    let mixed =
        machine::mix(stamp.wrapping_mul(0x1_0000_0001) ^ (index / 8)).to_le_bytes()[(index % 8) as usize];
    mixed.max(1)
}

/// Returns the bytes of a write.
pub(crate) fn bytes_of(stamp: u64, bytes: u64) -> Vec<u8> {
    (0..bytes).map(|index| byte_of(stamp, index)).collect()
}

impl History {
    /// Returns the history of a file that was created, empty.
    pub(crate) fn new() -> History {
        let mut history = History::default();
        let Begun(creation) = history.begin_cut(usize::MAX, 0, 0);
        let creation = &mut history.writes[creation];
        (creation.accepted, creation.settled, creation.persistent) = (0, 0, 0);
        history
    }

    /// Records the begin of a write of `bytes` bytes.
    pub(crate) fn begin_write(
        &mut self,
        stamp: u64,
        writer: usize,
        offset: u64,
        bytes: u64,
        now: EventTime,
    ) -> Begun {
        self.begin(stamp, writer, offset..offset + bytes, false, now)
    }

    /// Records the begin of a change of the length.
    pub(crate) fn begin_cut(&mut self, writer: usize, length: u64, now: EventTime) -> Begun {
        self.begin(0, writer, length..NEVER, true, now)
    }

    fn begin(&mut self, stamp: u64, writer: usize, bytes: Range<u64>, is_cut: bool, now: EventTime) -> Begun {
        let index = self.writes.len();
        self.writes.push(Write {
            index,
            stamp,
            writer,
            bytes,
            is_cut,
            started: now,
            accepted: NEVER,
            settled: NEVER,
            persistent: NEVER,
            is_exchanged: false,
            is_disclaimed: false,
        });
        Begun(index)
    }

    /// Records the success of a change.
    pub(crate) fn accept(&mut self, Begun(index): Begun, now: EventTime) {
        let write = &mut self.writes[index];
        write.accepted = now;
        if write.is_cut {
            // A change of the length is made at all I/O nodes before it succeeds.
            write.settled = now;
        }
    }

    /// Records the success of a collective write, which all clients can see. Another client may have sent it.
    pub(crate) fn accept_collective(&mut self, begun: Begun, is_exchanged: bool, now: EventTime) {
        self.accept(begun, now);
        let write = &mut self.writes[begun.0];
        (write.settled, write.is_exchanged) = (now, is_exchanged);
    }

    /// Records that an append begins, whose offset is unknown.
    pub(crate) fn begin_append(&mut self, started: EventTime) -> Appending {
        let reading = ReadCall { reader: usize::MAX, opened: started, started, ended: NEVER };
        let sure_end = self.sure_end(&reading, std::slice::from_ref(&(0..NEVER)));
        let unknown_from = self.unknown_from.unwrap_or(NEVER).min(sure_end);
        Appending { unknown_from: self.unknown_from.replace(unknown_from), started }
    }

    /// Records the offset of an append.
    pub(crate) fn end_append(
        &mut self,
        appending: Appending,
        stamp: u64,
        writer: usize,
        offset: u64,
        bytes: u64,
    ) -> Begun {
        self.unknown_from = appending.unknown_from;
        self.begin(stamp, writer, offset..offset + bytes, false, appending.started)
    }

    /// Records the success of a call of `writer` that sent all its writes accepted before `started`.
    pub(crate) fn settle(&mut self, writer: usize, started: EventTime, now: EventTime) {
        for write in self.of(writer).filter(|write| write.accepted <= started && !write.is_disclaimed) {
            write.settled = write.settled.min(now);
        }
    }

    /// Records the success of a call of `writer` that persisted all its writes accepted before `started`.
    pub(crate) fn persist(&mut self, writer: usize, started: EventTime, now: EventTime) {
        self.settle(writer, started, now);
        self.persist_some(writer, now, |write| write.accepted <= started && !write.is_exchanged);
    }

    /// Records the success of a collective sync, as [`persist`](Self::persist) does.
    pub(crate) fn persist_together(&mut self, writer: usize, started: EventTime, now: EventTime) {
        self.settle(writer, started, now);
        self.persist_some(writer, now, |write| write.accepted <= started);
    }

    /// Records the success of a call of `writer` that persisted the writes that all clients could see at `started`.
    pub(crate) fn persist_settled(&mut self, writer: usize, started: EventTime, now: EventTime) {
        self.persist_some(writer, now, |write| write.settled <= started && !write.is_exchanged);
    }

    fn persist_some(&mut self, writer: usize, now: EventTime, is_covered: impl Fn(&Write) -> bool) {
        for write in self.of(writer).filter(|write| !write.is_disclaimed && is_covered(write)) {
            write.persistent = write.persistent.min(now);
        }
    }

    /// Records a failed call of `writer`: it may have reported any of its writes.
    pub(crate) fn disclaim(&mut self, writer: usize) {
        self.of(writer)
            .filter(|write| write.persistent == NEVER)
            .for_each(|write| write.is_disclaimed = true);
    }

    /// Returns true if each write that began was persisted: then no fault may prevent a read of the file.
    pub(crate) fn is_persistent(&self) -> bool {
        self.unknown_from.is_none() && self.writes.iter().all(|write| write.persistent != NEVER)
    }

    fn of(&mut self, writer: usize) -> impl Iterator<Item = &mut Write> {
        self.writes.iter_mut().filter(move |write| write.writer == writer)
    }

    /// Returns true if the reader must see this write unless a later one replaced it. `faults` are the times of faults.
    fn is_sure(&self, write: &Write, reading: &ReadCall, faults: &[Range<EventTime>]) -> bool {
        let is_visible = match write.writer == reading.reader {
            true => write.accepted <= reading.started,
            false => write.settled <= reading.opened,
        };
        let is_hit = |fault: &Range<EventTime>| fault.start <= reading.ended && fault.end >= write.started;
        let is_safe =
            write.persistent <= reading.started || !write.is_disclaimed && !faults.iter().any(is_hit);
        is_visible && is_safe
    }

    /// Returns true if `earlier` can no longer be seen where `later` is seen.
    fn is_before(earlier: &Write, later: &Write) -> bool {
        let is_same = earlier.writer == later.writer && earlier.index < later.index;
        is_same && earlier.accepted <= later.started || earlier.settled < later.started
    }

    /// Returns the writes that a reader may see at a byte.
    fn possible<'a>(&'a self, at: u64, reading: &ReadCall, faults: &[Range<EventTime>]) -> Vec<&'a Write> {
        let covers = |write: &&Write| write.bytes.contains(&at) && write.started <= reading.ended;
        let all: Vec<&Write> = self.writes.iter().filter(covers).collect();
        let is_replaced = |write: &Write| {
            let mut later = all.iter().filter(|later| later.index != write.index);
            later.any(|later| Self::is_before(write, later) && self.is_sure(later, reading, faults))
        };
        all.iter().copied().filter(|write| !is_replaced(write)).collect()
    }

    /// Returns a length that the file surely has for a reader.
    fn sure_end(&self, reading: &ReadCall, faults: &[Range<EventTime>]) -> u64 {
        let ends = self.writes.iter().filter(|write| !write.is_cut && self.is_sure(write, reading, faults));
        let is_cut = |write: &Write| {
            let cuts = self.writes.iter().filter(|cut| cut.is_cut && cut.started <= reading.ended);
            cuts.filter(|cut| !Self::is_before(cut, write)).any(|cut| cut.bytes.start < write.bytes.end)
        };
        ends.filter(|write| !is_cut(write)).map(|write| write.bytes.end).max().unwrap_or(0)
    }

    /// Returns the greatest length that the file may have for a reader.
    fn possible_end(&self, reading: &ReadCall) -> u64 {
        let writes = self.writes.iter().filter(|write| write.started <= reading.ended);
        writes.map(|write| if write.is_cut { write.bytes.start } else { write.bytes.end }).max().unwrap_or(0)
    }

    /// Checks a length, which the reader takes for that of the file.
    ///
    /// # Errors
    /// Describes an impossible length.
    pub(crate) fn check_length(
        &self,
        length: u64,
        reading: &ReadCall,
        faults: &[Range<EventTime>],
    ) -> Result<(), String> {
        let (least, most) = (self.sure_end(reading, faults), self.possible_end(reading));
        if length < least {
            return Err(format!(
                "the file ends at {length}, and {least} bytes were reported\n{}",
                self.told()
            ));
        }
        if length > most && self.unknown_from.is_none() {
            return Err(format!(
                "the file ends at {length}, and no write ends after {most}\n{}",
                self.told()
            ));
        }
        Ok(())
    }

    /// Checks data read from `offset` on.
    ///
    /// # Errors
    /// Describes an impossible byte.
    pub(crate) fn check(
        &self,
        offset: u64,
        data: &[u8],
        reading: &ReadCall,
        faults: &[Range<EventTime>],
    ) -> Result<(), String> {
        let end = (offset + data.len() as u64).min(self.unknown_from.unwrap_or(NEVER)).max(offset);
        for part in self.parts(offset, end) {
            let possible = self.possible(part.start, reading, faults);
            for at in part {
                let byte = data[(at - offset) as usize];
                if !possible.iter().any(|write| write.byte(at) == byte) {
                    return Err(self.describe(at, &data[(at - offset) as usize..], &possible));
                }
            }
        }
        Ok(())
    }

    /// Returns the parts of a range within which no write begins or ends.
    fn parts(&self, start: u64, end: u64) -> Vec<Range<u64>> {
        let edges = self.writes.iter().flat_map(|write| [write.bytes.start, write.bytes.end]);
        let mut edges: Vec<u64> =
            edges.filter(|edge| (start..end).contains(edge)).chain([start, end]).collect();
        edges.sort_unstable();
        edges.dedup();
        edges.windows(2).map(|pair| pair[0]..pair[1]).collect()
    }

    fn describe(&self, at: u64, data: &[u8], possible: &[&Write]) -> String {
        let data = &data[..data.len().min(8)];
        let is_it = |write: &&Write, shift: u64| {
            data.iter().enumerate().all(|(index, byte)| byte_of(write.stamp, shift + index as u64) == *byte)
        };
        let origin = if data.iter().all(|byte| *byte == 0) {
            Some("zeros".to_owned())
        } else {
            self.writes.iter().filter(|write| write.stamp > 0).find_map(|write| {
                let shifts = 0..write.bytes.end - write.bytes.start;
                let shift = shifts.into_iter().find(|&shift| is_it(&write, shift))?;
                let place = write.bytes.start + shift;
                Some(format!("byte {place} of write {}", write.stamp))
            })
        };
        let origin = origin.unwrap_or_else(|| format!("{data:02x?}"));
        let possible: Vec<u64> = possible.iter().map(|write| write.stamp).collect();
        format!("byte {at} is {origin}; possible are the writes {possible:?}\n{}", self.told())
    }

    /// Returns the history as text, for a report.
    fn told(&self) -> String {
        let time = |time: EventTime| if time == NEVER { "-".to_owned() } else { time.to_string() };
        let line = |write: &Write| {
            let Write { stamp, bytes, started, accepted, settled, persistent, .. } = write;
            let what = match (write.writer, write.is_cut) {
                (usize::MAX, _) => "created".to_owned(),
                (writer, true) => format!("process {writer} sets the length to {}", bytes.start),
                (writer, false) => format!("process {writer} writes {bytes:?} as {stamp}"),
            };
            let times = [*started, *accepted, *settled, *persistent].map(time).join(" ");
            format!("  {what}: {times}{}", if write.is_disclaimed { ", reported as failed" } else { "" })
        };
        let lines: Vec<String> = self.writes.iter().map(line).collect();
        format!("history (started, accepted, visible, persistent):\n{}", lines.join("\n"))
    }
}

impl Write {
    fn byte(&self, at: u64) -> u8 {
        if self.stamp == 0 { 0 } else { byte_of(self.stamp, at - self.bytes.start) }
    }
}
