//! Possible contents of files, from the history of their writes.
//!
//! A read of a byte may return the value of any write that began before the read ended, unless a later write surely
//! replaced it. A flush or close *settles* a write: a write that another client begins afterwards surely replaces it. A
//! write is *sure* for a reader if the reader must see it and no fault can have lost it. A reader must see its own
//! writes, and writes of others that were sent before the reader opened the file or asked for its size. After a
//! successful flush a write is sure in spite of faults. If such a write is lost and no call reported the loss, the next
//! check fails the run.

use std::ops::Range;

use namespace::FileNumber;

/// Time of an event of the run. No two events have the same time.
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
    /// True if the metadata server chose its offset.
    is_append: bool,
    /// Time from which I/O nodes reject it, because the lock of its writer has ended.
    fenced: EventTime,
    /// The clients that may have sent these bytes to the I/O nodes.
    senders: Senders,
    /// True if a later call of its writer failed. The failure may have reported the loss of this write, so the success
    /// of later calls proves nothing about this write.
    is_disclaimed: bool,
}

/// The clients that may send the bytes of a write to the I/O nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Senders {
    /// Only the writer.
    Writer,
    /// Only the writer, in a collective write.
    Member,
    /// Any member, in a collective write. Only a collective sync persists the bytes.
    AnyMember,
    /// Only the writer, from its write cache, which keeps the bytes until a flush of the job succeeds.
    WriteCache,
}

/// History of a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// Number of the file, once known.
    pub(crate) number: Option<FileNumber>,
    writes: Vec<Write>,
    /// Appends in progress, and failed ones: from their least offset on the contents are unknown.
    unknown_from: Vec<Appending>,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Appending {
    stamp: u64,
    /// Least offset that it can have.
    least: u64,
    started: EventTime,
}

/// Returns byte `index` of the write with this stamp: never zero, and usually different for other stamps and
/// indexes.
fn byte_of(stamp: u64, index: u64) -> u8 {
    let mixed =
        machine::mix(stamp.wrapping_mul(0x1_0000_0001) ^ (index / 8)).to_le_bytes()[(index % 8) as usize];
    mixed.max(1)
}

/// Returns the bytes of a write.
pub(crate) fn bytes_of(stamp: u64, bytes: u64) -> Vec<u8> {
    (0..bytes).map(|index| byte_of(stamp, index)).collect()
}

impl Write {
    /// Returns the end of its data, or the length that it sets.
    fn end(&self) -> u64 {
        if self.is_cut { self.bytes.start } else { self.bytes.end }
    }

    /// Returns true if it may be in the write cache only.
    fn is_cached(&self) -> bool {
        self.senders == Senders::WriteCache && self.settled == NEVER
    }

    /// Returns its byte at an offset.
    fn byte(&self, at: u64) -> u8 {
        if self.stamp == 0 { 0 } else { byte_of(self.stamp, at - self.bytes.start) }
    }
}

/// Returns true if two ranges have a byte in common.
fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

impl History {
    /// Returns the history of a new and empty file.
    pub(crate) fn new() -> History {
        let mut history = History::default();
        let Begun(creation) = history.begin_cut(usize::MAX, 0, 0);
        let creation = &mut history.writes[creation];
        (creation.accepted, creation.settled, creation.persistent) = (0, 0, 0);
        history
    }

    /// Records that a write of `bytes` bytes begins.
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

    /// Records that a change of the length begins.
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
            is_append: false,
            fenced: NEVER,
            senders: Senders::Writer,
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

    /// Records who may send the bytes of a write.
    pub(crate) fn note_senders(&mut self, begun: &Begun, senders: Senders) {
        self.writes[begun.0].senders = senders;
    }

    /// Records the success of a write past the caches, which all clients can see.
    pub(crate) fn accept_uncached(&mut self, begun: Begun, now: EventTime) {
        let Begun(index) = begun;
        self.accept(begun, now);
        self.writes[index].settled = now;
    }

    /// Records that an append begins at a yet unknown offset.
    pub(crate) fn begin_append(&mut self, stamp: u64, started: EventTime) -> Appending {
        let reading = ReadCall { reader: usize::MAX, opened: started, started, ended: NEVER };
        let sure_end = self.sure_end(&reading, std::slice::from_ref(&(0..NEVER)));
        let appending = Appending { stamp, least: sure_end, started };
        self.unknown_from.push(appending);
        appending
    }

    /// Records the offset of an append.
    pub(crate) fn end_append(
        &mut self,
        appending: Appending,
        writer: usize,
        offset: u64,
        bytes: u64,
    ) -> Begun {
        self.unknown_from.retain(|unknown| *unknown != appending);
        let begun = self.begin(appending.stamp, writer, offset..offset + bytes, false, appending.started);
        self.writes[begun.0].is_append = true;
        begun
    }

    /// Checks that an append replaces no data that were surely in the file before it, and no other append.
    ///
    /// # Errors
    /// Describes the replaced data.
    pub(crate) fn check_append(
        &self,
        Begun(index): Begun,
        now: EventTime,
        losses: &[Range<EventTime>],
    ) -> Result<(), String> {
        let append = &self.writes[index];
        let (stamp, offset) = (append.stamp, append.bytes.start);
        let reading = ReadCall {
            reader: append.writer,
            opened: append.started,
            started: append.started,
            ended: append.started,
        };
        let mut cuts = self.writes.iter().filter(|cut| cut.is_cut && cut.writer != usize::MAX);
        if cuts.any(|cut| cut.started <= now && cut.settled >= append.started) {
            // A concurrent truncation may come before or after each append.
            return Ok(());
        }
        let end = self.sure_end(&reading, losses);
        if offset < end {
            return Err(format!(
                "append {stamp} begins at {offset}, before the end {end}\n{}",
                self.listing()
            ));
        }
        let is_cut_since = |other: &Write| {
            self.writes
                .iter()
                .any(|cut| cut.is_cut && cut.writer != usize::MAX && cut.settled >= other.started)
        };
        let is_kept = |other: &Write| {
            let reading = ReadCall { started: now, ended: now, ..reading };
            other.accepted <= now && self.is_safe(other, &reading, losses) && !is_cut_since(other)
        };
        let mut others = self.writes.iter().filter(|other| other.is_append && other.index != index);
        match others.find(|other| overlap(&other.bytes, &append.bytes) && is_kept(other)) {
            Some(other) => Err(format!("append {stamp} replaces append {}\n{}", other.stamp, self.listing())),
            None => Ok(()),
        }
    }

    /// Records the end of the lock that `writer` had on `bytes` at the times `locked`: I/O nodes reject its unsent
    /// writes under the lock. Collective writes ignore locks.
    pub(crate) fn fence(
        &mut self,
        writer: usize,
        bytes: &Range<u64>,
        locked: Range<EventTime>,
        now: EventTime,
    ) {
        let is_under_lock = |write: &&mut Write| {
            write.senders == Senders::Writer
                && locked.contains(&write.started)
                && bytes.start <= write.bytes.start
                && write.bytes.end <= bytes.end
        };
        for write in self.of(writer).filter(is_under_lock).filter(|write| write.settled > now) {
            write.fenced = write.fenced.min(now);
        }
    }

    /// Records that a call of `writer` succeeded. The call sent all writes of this process that were accepted before
    /// `started`.
    pub(crate) fn settle(&mut self, writer: usize, started: EventTime, now: EventTime) {
        for write in self.of(writer).filter(|write| write.accepted <= started && !write.is_disclaimed) {
            write.settled = write.settled.min(now);
        }
    }

    /// Records that a call of `writer` succeeded. The call persisted all writes of this process that were accepted
    /// before `started`.
    pub(crate) fn persist(&mut self, writer: usize, started: EventTime, now: EventTime) {
        self.settle(writer, started, now);
        self.persist_some(writer, now, |write| {
            write.accepted <= started && write.senders != Senders::AnyMember
        });
    }

    /// Records the success of a collective sync, as [`persist`](Self::persist) does.
    pub(crate) fn persist_together(&mut self, writer: usize, started: EventTime, now: EventTime) {
        self.settle(writer, started, now);
        self.persist_some(writer, now, |write| write.accepted <= started);
    }

    /// Records that a call of `writer` succeeded. The call persisted all writes of this process that all clients could
    /// see at `started`.
    pub(crate) fn persist_settled(&mut self, writer: usize, started: EventTime, now: EventTime) {
        self.persist_some(writer, now, |write| {
            write.settled <= started && write.senders != Senders::AnyMember
        });
    }

    fn persist_some(&mut self, writer: usize, now: EventTime, is_covered: impl Fn(&Write) -> bool) {
        for write in self.of(writer).filter(|write| !write.is_disclaimed && is_covered(write)) {
            write.persistent = write.persistent.min(now);
        }
    }

    /// Records that a call of `writer` failed: the error may report any earlier write of this process.
    pub(crate) fn disclaim(&mut self, writer: usize) {
        self.of(writer)
            .filter(|write| write.persistent == NEVER && !write.is_cached())
            .for_each(|write| write.is_disclaimed = true);
    }

    /// Records that writes of `writer` may have left its write cache.
    pub(crate) fn leave_cache(&mut self, writer: usize) {
        let cached = self.of(writer).filter(|write| write.senders == Senders::WriteCache);
        cached.for_each(|write| write.senders = Senders::Member);
    }

    /// Records that the write cache of `writer` has discarded its writes to the file. A call has reported it.
    pub(crate) fn lose_cached(&mut self, writer: usize) {
        self.of(writer).filter(|write| write.is_cached()).for_each(|write| write.is_disclaimed = true);
    }

    /// Records that the unsent writes of `writer` were discarded, because its locks were lost. A later call reports it.
    pub(crate) fn discard(&mut self, writer: usize) {
        self.of(writer)
            .filter(|write| write.settled == NEVER && !write.is_cached())
            .for_each(|write| write.is_disclaimed = true);
    }

    /// Returns true if all writes that began are persistent. Then reads of the file must succeed in spite of faults.
    pub(crate) fn is_persistent(&self) -> bool {
        self.unknown_from.is_empty() && self.writes.iter().all(|write| write.persistent != NEVER)
    }

    fn of(&mut self, writer: usize) -> impl Iterator<Item = &mut Write> {
        self.writes.iter_mut().filter(move |write| write.writer == writer)
    }

    /// Returns true if the reader must see this write unless a later one replaced it. `losses` are the times of faults
    /// that may take data.
    fn is_sure(&self, write: &Write, reading: &ReadCall, losses: &[Range<EventTime>]) -> bool {
        let is_visible = match write.writer == reading.reader {
            true => write.accepted <= reading.started,
            false => write.settled <= reading.opened,
        };
        // A process reads its own cached writes, whatever happens to I/O nodes.
        let is_own_cached = write.writer == reading.reader && write.is_cached() && !write.is_disclaimed;
        is_visible && (is_own_cached || self.is_safe(write, reading, losses))
    }

    /// Returns true if no fault may have taken an accepted write.
    fn is_safe(&self, write: &Write, reading: &ReadCall, losses: &[Range<EventTime>]) -> bool {
        let is_hit = |loss: &Range<EventTime>| loss.start <= reading.ended && loss.end >= write.started;
        write.persistent <= reading.started || !write.is_disclaimed && !losses.iter().any(is_hit)
    }

    /// Returns true if `earlier` can no longer be seen where `later` is seen.
    fn is_before(earlier: &Write, later: &Write) -> bool {
        let is_same = earlier.writer == later.writer && earlier.index < later.index;
        let end = earlier.settled.min(earlier.fenced);
        is_same && earlier.accepted <= later.started || end < later.started
    }

    /// Returns the writes that a reader may see at a byte.
    fn possible<'a>(&'a self, at: u64, reading: &ReadCall, losses: &[Range<EventTime>]) -> Vec<&'a Write> {
        let covers = |write: &&Write| write.bytes.contains(&at) && write.started <= reading.ended;
        let all: Vec<&Write> = self.writes.iter().filter(covers).collect();
        let is_replaced = |write: &Write| {
            let mut later = all.iter().filter(|later| later.index != write.index);
            later.any(|later| Self::is_before(write, later) && self.is_sure(later, reading, losses))
        };
        all.iter().copied().filter(|write| !is_replaced(write)).collect()
    }

    /// Returns the least length that the file can have for a reader.
    fn sure_end(&self, reading: &ReadCall, losses: &[Range<EventTime>]) -> u64 {
        let sure = self.writes.iter().filter(|write| self.is_sure(write, reading, losses));
        let is_cut = |write: &Write| {
            let cuts = self.writes.iter().filter(|cut| cut.is_cut && cut.index != write.index);
            let mut later = cuts.filter(|cut| cut.started <= reading.ended && !Self::is_before(cut, write));
            later.any(|cut| cut.bytes.start < write.end())
        };
        sure.filter(|write| !is_cut(write)).map(Write::end).max().unwrap_or(0)
    }

    /// Returns the greatest length that the file can have for a reader.
    fn possible_end(&self, reading: &ReadCall, losses: &[Range<EventTime>]) -> u64 {
        let is_cut = |write: &Write| {
            let mut cuts = self.writes.iter().filter(|cut| cut.is_cut && cut.bytes.start < write.end());
            cuts.any(|cut| Self::is_before(write, cut) && self.is_sure(cut, reading, losses))
        };
        let writes = self.writes.iter().filter(|write| write.started <= reading.ended);
        writes.filter(|write| !is_cut(write)).map(Write::end).max().unwrap_or(0)
    }

    /// Checks the length of the file that a reader has got.
    ///
    /// # Errors
    /// Describes an impossible length.
    pub(crate) fn check_length(
        &self,
        length: u64,
        reading: &ReadCall,
        losses: &[Range<EventTime>],
    ) -> Result<(), String> {
        self.check_end(length..length, reading, losses)
    }

    /// Checks that the file may end at a place from `ends.start` to `ends.end`.
    fn check_end(
        &self,
        ends: Range<u64>,
        reading: &ReadCall,
        losses: &[Range<EventTime>],
    ) -> Result<(), String> {
        let least = self.sure_end(reading, losses);
        if ends.end < least {
            let end = ends.end;
            return Err(format!(
                "the file ends at {end}, but has at least {least} bytes\n{}",
                self.listing()
            ));
        }
        let most = self.possible_end(reading, losses);
        if ends.start > most && self.unknown_from.is_empty() {
            let end = ends.start;
            return Err(format!("the file ends at {end}, but has at most {most} bytes\n{}", self.listing()));
        }
        Ok(())
    }

    /// Checks the data that a read of `bytes` bytes from `offset` on has returned, and their number.
    ///
    /// # Errors
    /// Describes an impossible byte, or an impossible number.
    pub(crate) fn check_read(
        &self,
        offset: u64,
        bytes: u64,
        data: &[u8],
        reading: &ReadCall,
        losses: &[Range<EventTime>],
    ) -> Result<(), String> {
        let end = offset + data.len() as u64;
        let ends = match data.len() as u64 {
            length if length > bytes => return Err(format!("{length} bytes were read instead of {bytes}")),
            length if length == bytes => end..NEVER,
            0 => 0..offset,
            _ => end..end,
        };
        self.check_end(ends, reading, losses)?;
        self.check(offset, data, reading, losses)
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
        losses: &[Range<EventTime>],
    ) -> Result<(), String> {
        let unknown_from = self.unknown_from.iter().map(|append| append.least).min().unwrap_or(NEVER);
        let end = (offset + data.len() as u64).min(unknown_from).max(offset);
        for part in self.parts(offset, end) {
            let possible = self.possible(part.start, reading, losses);
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
        format!(
            "byte {at} has the value of {origin}, but only the writes {possible:?} are possible\n{}",
            self.listing()
        )
    }

    /// Returns the history as text, for a report.
    fn listing(&self) -> String {
        let time = |time: EventTime| if time == NEVER { "-".to_owned() } else { time.to_string() };
        let line = |write: &Write| {
            let Write { stamp, bytes, started, accepted, settled, persistent, .. } = write;
            let what = match (write.writer, write.is_cut) {
                (usize::MAX, _) => "created".to_owned(),
                (writer, true) => format!("process {writer} sets the length to {}", bytes.start),
                (writer, false) => format!("process {writer} writes {bytes:?} as {stamp}"),
            };
            let times = [*started, *accepted, *settled, *persistent].map(time).join(" ");
            format!(
                "  {what}: {times}{}",
                if write.is_disclaimed { ", perhaps reported as failed" } else { "" }
            )
        };
        let lines: Vec<String> = self.writes.iter().map(line).collect();
        format!("history (started, accepted, visible, persistent):\n{}", lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LOSSES: &[Range<EventTime>] = &[];

    /// Returns a read by `reader`, which opened the file at `opened`, at time 100.
    fn read_by(reader: usize, opened: EventTime) -> ReadCall {
        ReadCall { reader, opened, started: 100, ended: 101 }
    }

    /// Records a write of 10 bytes by process 1 at time 10, visible to all clients at time 20.
    fn write(history: &mut History, stamp: u64, offset: u64) {
        let begun = history.begin_write(stamp, 1, offset, 10, 10);
        history.accept(begun, 11);
        history.settle(1, 12, 20);
    }

    /// Records an append of process `writer` at a time.
    fn append(history: &mut History, writer: usize, offset: u64, now: EventTime) -> Begun {
        let appending = history.begin_append(now, now);
        let begun = history.end_append(appending, writer, offset, 10);
        history.accept(begun, now + 1);
        begun
    }

    #[test]
    fn a_length_is_at_least_that_of_visible_writes_and_at_most_that_of_all() {
        let mut history = History::new();
        write(&mut history, 1, 0);
        for (length, is_possible) in [(9, false), (10, true), (11, false)] {
            let checked = history.check_length(length, &read_by(2, 30), NO_LOSSES);
            assert_eq!(checked.is_ok(), is_possible, "{length}: {checked:?}");
        }
        history.check_length(0, &read_by(2, 15), NO_LOSSES).expect("it was opened before");
    }

    #[test]
    fn a_truncated_file_is_not_longer_again() {
        let mut history = History::new();
        write(&mut history, 1, 0);
        let cut = history.begin_cut(2, 4, 30);
        history.accept(cut, 31);
        assert!(history.check_length(4, &read_by(3, 40), NO_LOSSES).is_ok());
        assert!(history.check_length(10, &read_by(3, 40), NO_LOSSES).is_err());
        assert!(history.check_length(10, &read_by(3, 25), NO_LOSSES).is_ok(), "it was opened before");
    }

    #[test]
    fn a_read_is_not_shorter_than_the_file() {
        let mut history = History::new();
        write(&mut history, 1, 0);
        let data = bytes_of(1, 10);
        let check = |bytes: usize| history.check_read(0, 50, &data[..bytes], &read_by(2, 30), NO_LOSSES);
        assert!(check(10).is_ok());
        assert!(check(9).is_err());
    }

    #[test]
    fn appends_do_not_overlap() {
        let mut history = History::new();
        append(&mut history, 1, 0, 10);
        let beside = append(&mut history, 2, 10, 15);
        assert!(history.check_append(beside, 20, NO_LOSSES).is_ok());
        let over = append(&mut history, 3, 5, 16);
        assert!(history.check_append(over, 20, NO_LOSSES).is_err());
        let was_lost = std::slice::from_ref(&(12..12));
        assert!(history.check_append(over, 20, was_lost).is_err(), "the second append was not lost");
    }

    #[test]
    fn an_append_begins_after_all_visible_data() {
        let mut history = History::new();
        write(&mut history, 1, 0);
        let early = append(&mut history, 2, 9, 30);
        assert!(history.check_append(early, 32, NO_LOSSES).is_err());
    }

    #[test]
    fn a_write_under_an_ended_lock_does_not_replace_those_of_the_next_owner() {
        let mut history = History::new();
        let late = history.begin_write(1, 1, 0, 10, 10);
        history.accept(late, 11);
        history.fence(1, &(0..10), 5..NEVER, 30);
        let next = history.begin_write(2, 2, 0, 10, 31);
        history.accept(next, 32);
        history.settle(2, 33, 40);
        assert!(history.check(0, &bytes_of(2, 10), &read_by(3, 50), NO_LOSSES).is_ok());
        assert!(history.check(0, &bytes_of(1, 10), &read_by(3, 50), NO_LOSSES).is_err());
    }
}
