//! Open object: its file, its length, and the checksums ("sums") of its units, which are checked at every read.
//!
//! One task at a time changes an object, or its checksums in memory. Reads run concurrently. A read that does not match
//! its checksums, or ends early, may have met a write or a truncation. It is repeated while no task changes the object;
//! a unit that still does not match is damaged. The order of writes and its reasons are documented in `units.rs`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;

use compio::buf::IoBuf;
use machine::{Buf, Error, Payload, Permit, Permits, RangeSet};

use super::contents::FoundContents;
use super::failures::io_error;
use super::file::{ObjectFile, SystemFile};
use super::layout::{GROUP_BYTES, Layout, UNIT_BYTES, group_end, group_of};
use super::record::Record;
use super::sync_failure::SyncFailure;
use super::units::{Seal, Sums, UnitSums, is_zeros};
use crate::bytes::{ByteRun, push_runs};

/// Limit of groups whose checksums an open object keeps in memory: 8 KiB for each MiB, 128 KiB for each object.
const GROUPS_MAX: usize = 16;

const UNIT: usize = UNIT_BYTES as usize;

/// Least number of zero bytes that become a hole: file systems keep a record of each extent of a file, and each extent
/// is a separate command for a drive.
const CLEARED_MIN: u64 = 64 * 1024;

/// Reason for which an operation on a file failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The system refused the operation.
    Io(io::Error),
    /// The data in the file differ from the written ones.
    Damaged(String),
    /// The operation could not start.
    Other(Box<machine::Error>),
}

impl Fault {
    /// Converts this fault to an error of a named subject.
    pub(crate) fn of(self, what: String) -> Box<Error> {
        match self {
            Fault::Io(error) => io_error(&what, error),
            Fault::Damaged(why) => Error::Damaged { what, why }.into(),
            Fault::Other(error) => error,
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Fault::Io(error)
    }
}

/// Open object.
pub(crate) struct OpenObject<F = SystemFile> {
    file: F,
    seal: Seal,
    bytes: Cell<u64>,
    has_excess: Cell<bool>,
    is_read_only: bool,
    record: RefCell<Record>,
    /// Groups whose checksums are all in the file.
    written: RefCell<RangeSet>,
    /// Length in bytes when opened, or the shortest since then: beyond it the file has only data written here.
    bytes_before: Cell<u64>,
    sums: RefCell<Vec<Kept>>,
    /// Groups written since the last flush whose checksums are not in memory. Not all of their units are settled.
    unsettled: RefCell<BTreeSet<u64>>,
    sync_failure: SyncFailure,
    turns: Permits,
}

/// Checksums of a group in memory; the vector is in the order of use, the latest last.
struct Kept {
    group: u64,
    sums: Sums,
    /// Bytes of the page that differ from the file.
    changed: Range<usize>,
    /// True if the page in the file differs outside the changed range too: then it is written as a whole.
    is_new: bool,
    /// True if the newest checksums are known to match the data in the file.
    is_certain: bool,
}

impl<F: ObjectFile> OpenObject<F> {
    /// Creates the object of a file. `sync_failure` records a failed sync of the file.
    pub(crate) fn new(file: F, contents: FoundContents, sync_failure: SyncFailure) -> Self {
        let FoundContents { seal, bytes, has_excess, is_read_only, record, .. } = contents;
        OpenObject {
            file,
            seal,
            bytes: Cell::new(bytes),
            bytes_before: Cell::new(bytes),
            has_excess: Cell::new(has_excess),
            is_read_only,
            written: RefCell::new(record.written.clone()),
            record: RefCell::new(record),
            sums: RefCell::default(),
            unsettled: RefCell::default(),
            sync_failure,
            turns: Permits::new(1),
        }
    }

    /// Returns the length in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Returns the note of the last commit.
    pub(crate) fn note(&self) -> Vec<u8> {
        self.record.borrow().note.clone()
    }

    /// Fills `into` from `offset` on, with zeros beyond the end.
    pub(crate) async fn read(&self, offset: u64, mut into: Buf) -> Result<Buf, Fault> {
        let wanted = into.len();
        let (first, end) = whole_units(offset, wanted);
        let mut memory = into.take_memory();
        if (first, end - first) == (offset, wanted) {
            memory = self.read_units(offset, wanted as usize, memory).await?;
        } else {
            // Only whole units can be checked.
            let units = Vec::with_capacity((end - first) as usize);
            let units = self.read_units(first, (end - first) as usize, units).await?;
            let start = units.len().min((offset - first) as usize);
            memory.extend_from_slice(&units[start..units.len().min(start + wanted as usize)]);
        }
        into.fill_memory(memory);
        into.note_checksums();
        Ok(into)
    }

    /// Fills the empty `memory` with `wanted` bytes of whole units from `offset` on, or fewer at the end.
    async fn read_units(&self, offset: u64, wanted: usize, mut memory: Vec<u8>) -> Result<Vec<u8>, Fault> {
        while memory.len() < wanted {
            let begin = memory.len();
            let here = offset + begin as u64;
            let bytes = (wanted - begin).min((group_end(here) - here) as usize);
            if !self.has_sums(group_of(here)) {
                let turn = self.turns.take().await;
                self.load_sums(group_of(here), &turn).await?;
            }
            let expected = begin + self.within(here, bytes);
            memory = self.file.fill(memory, expected, self.in_file(here)).await?;
            if memory.len() < expected || self.check(here, &memory[begin..]).is_err() {
                let turn = self.turns.take().await;
                self.load_sums(group_of(here), &turn).await?;
                let expected = begin + self.within(here, bytes);
                memory.truncate(begin);
                memory = self.file.fill(memory, expected, self.in_file(here)).await?;
                if memory.len() < expected {
                    let there = here + (memory.len() - begin) as u64;
                    return Err(Fault::Damaged(has_been_cut(self.bytes.get(), there)));
                }
                self.check(here, &memory[begin..]).map_err(Fault::Damaged)?;
            }
            if memory.len() < begin + bytes {
                break;
            }
        }
        Ok(memory)
    }

    /// Returns the number of these bytes within the object.
    fn within(&self, offset: u64, bytes: usize) -> usize {
        self.bytes.get().saturating_sub(offset).min(bytes as u64) as usize
    }

    fn in_file(&self, offset: u64) -> u64 {
        self.seal.layout.in_file(offset)
    }

    /// Checks data of one group, starting at `offset`. Fails with a message about the first unit that does not match.
    fn check(&self, offset: u64, data: &[u8]) -> Result<(), String> {
        let mut kept = self.sums.borrow_mut();
        let group = group_of(offset);
        // Concurrent reads may have evicted the checksums.
        let kept = of_group(&mut kept, group).ok_or("its sums are not at hand")?;
        for (at, unit) in (offset..).step_by(UNIT).zip(data.chunks(UNIT)) {
            let sums = kept.possible(at);
            let vouching = if unit.len() == UNIT {
                self.seal.vouching(sums, at, unit)
            } else {
                self.seal.vouching(sums, at, &padded(unit))
            };
            if vouching.is_none() {
                return Err(does_not_match(at));
            }
        }
        Ok(())
    }

    fn check_writable(&self) -> io::Result<()> {
        if self.is_read_only { Err(io::ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(()) }
    }

    /// Writes `from` at `offset`.
    pub(crate) async fn write(&self, offset: u64, from: &Payload) -> Result<(), Fault> {
        self.check_writable()?;
        let turn = self.turns.take().await;
        self.cut_excess(&turn).await?;
        let mut done = 0;
        while done < from.len() {
            let here = offset.saturating_add(done);
            let bytes = (from.len() - done).min(group_end(here).saturating_sub(here));
            if bytes == 0 {
                return Err(Fault::Io(io::ErrorKind::FileTooLarge.into()));
            }
            let part = from.slice(done..done + bytes);
            part.check().map_err(|mismatch| Fault::Other(Box::new(mismatch.into())))?;
            let mut runs = Vec::new();
            push_runs(&part, &mut runs).map_err(Fault::Other)?;
            self.write_part(here, bytes, runs, &turn).await?;
            done += bytes;
        }
        Ok(())
    }

    /// Writes to one group.
    async fn write_part(
        &self,
        offset: u64,
        bytes: u64,
        runs: Vec<ByteRun>,
        turn: &Permit,
    ) -> Result<(), Fault> {
        let (group, end) = (group_of(offset), offset + bytes);
        self.clear_past_end(end, turn).await?;
        self.load_sums(group, turn).await?;
        self.make_certain(group, turn).await?;
        let (first, units_end) = whole_units(offset, bytes);
        // Old contents of the first and last unit, of which parts remain; the same unit if there is only one.
        let head = if offset > first { Some(self.old_unit(first).await?) } else { None };
        let last = units_end - UNIT_BYTES;
        let tail = if end < units_end && end < self.bytes.get() && (last > first || head.is_none()) {
            Some(self.old_unit(last).await?)
        } else {
            None
        };
        let kept = |at| {
            let both = [(first, &head), (last, &tail)].into_iter();
            both.filter(|&(place, _)| place == at).find_map(|(_, old)| old.as_ref())
        };
        let mut data = Pieces::new(&runs);
        let new_sum = |at| {
            let within = (offset.max(at) - at) as usize..(end.min(at + UNIT_BYTES) - at) as usize;
            if within.len() == UNIT {
                return self.seal.sum(at, data.next(UNIT));
            }
            // The old contents were zeros, or beyond the end.
            let mut unit = kept(at).map_or_else(|| vec![0; UNIT], |old| old.data.clone());
            unit[within.clone()].copy_from_slice(data.next(within.len()));
            self.seal.sum(at, &unit)
        };
        let new: Vec<_> = (first..units_end).step_by(UNIT).map(new_sum).collect();
        let bytes_then = self.bytes.get().max(end);
        self.change_sums(group, first..units_end, |at, unit| {
            let new = new[((at - first) / UNIT_BYTES) as usize];
            let end = UNIT_BYTES.min(bytes_then - at);
            *unit = UnitSums { newest: new, previous: unit.newest, end, ..*unit };
        });
        self.write_changed(group).await?;
        if let Err(error) = self.write_or_clear(offset, bytes, runs).await {
            self.doubt(group);
            if end > self.bytes.get() {
                // The range beyond the end must read as zeros, even if a part was written before the disk was full.
                let _ = self.cut_file(self.bytes.get()).await;
            }
            return Err(error.into());
        }
        self.change_sums(group, first..units_end, |at, unit| {
            unit.previous = unit.newest;
            // A flushed hole has no bytes whose checksum would have to be kept.
            if !self.seal.layout.keeps_flushed || unit.flushed == self.seal.hole(at) {
                unit.flushed = unit.newest;
            }
        });
        self.bytes.set(bytes_then);
        if end == group_end(offset) {
            self.write_changed(group).await?;
            let layout = self.seal.layout;
            self.file.write_back(layout.sums_in_file(group)..layout.sums_in_file(group + 1));
        }
        Ok(())
    }

    /// Writes to the file. Many zeros within the object become a hole. Zeros beyond its end do not, since they may be
    /// meant to reserve space.
    async fn write_or_clear(&self, offset: u64, bytes: u64, runs: Vec<ByteRun>) -> io::Result<()> {
        let position = self.in_file(offset);
        let is_within = offset.saturating_add(bytes) <= self.bytes.get();
        let is_whole = (offset, offset + bytes) == whole_units(offset, bytes);
        if bytes >= CLEARED_MIN && is_within && is_whole && runs.iter().all(|run| is_zeros(run.as_init())) {
            return self.file.clear(position..position + bytes).await;
        }
        self.file.write(runs, position).await
    }

    /// Reads the unit at `offset`, with zeros beyond the end, and returns it with the matching checksum.
    async fn old_unit(&self, offset: u64) -> Result<OldUnit, Fault> {
        let bytes = self.within(offset, UNIT);
        let data = self.file.fill(Vec::with_capacity(UNIT), bytes, self.in_file(offset)).await?;
        let data = padded(&data);
        let mut kept = self.sums.borrow_mut();
        // Concurrent reads may have used other groups since, but only the task with the permit evicts any.
        let kept = of_group(&mut kept, group_of(offset)).expect("loaded, and we have the turn");
        let vouching = self.seal.vouching(kept.possible(offset), offset, &data);
        let vouching = vouching.ok_or_else(|| Fault::Damaged(does_not_match(offset)))?;
        Ok(OldUnit { data, vouching })
    }

    /// Returns the first extent at or after `offset` that is not a hole of the file.
    pub(crate) async fn data_after(&self, offset: u64) -> Result<Option<Range<u64>>, Fault> {
        let (mut position, layout) = (self.seal.layout.in_file(offset), &self.seal.layout);
        while let Some(part) = self.file.data_after(position).await? {
            position = part.end;
            let Range { start, end } = layout.in_object(part);
            let (start, end) = (start.max(offset), end.min(self.bytes.get()));
            if start < end {
                return Ok(Some(start..end));
            }
            if start >= self.bytes.get() {
                break;
            }
        }
        Ok(None)
    }

    /// Truncates the object to `bytes`, or extends it with zeros.
    pub(crate) async fn resize(&self, bytes: u64) -> Result<(), Fault> {
        self.check_writable()?;
        let turn = self.turns.take().await;
        self.cut_excess(&turn).await?;
        let before = self.bytes.get();
        if bytes < before {
            return self.cut(bytes, &turn).await;
        }
        self.clear_past_end(bytes, &turn).await?;
        self.file.set_len(self.seal.layout.file_bytes(bytes)).await?;
        self.bytes.set(bytes);
        let marked = self.mark_end(&turn).await;
        if marked.is_err() {
            self.bytes.set(before);
            let _ = self.cut_file(before).await;
        }
        marked
    }

    async fn cut(&self, bytes: u64, turn: &Permit) -> Result<(), Fault> {
        // Record the new length before the cut: the file must never be shorter than its record says. The length must
        // also survive if the cut removes all units that mark the end.
        self.sync().await?;
        self.write_record(|record| {
            record.bytes = bytes;
            record.written.truncate(bytes.div_ceil(GROUP_BYTES));
        })
        .await?;
        self.sync().await?;
        let within = (bytes % UNIT_BYTES) as usize;
        if within > 0 {
            let (group, at) = (group_of(bytes), bytes - within as u64);
            self.load_sums(group, turn).await?;
            self.make_certain(group, turn).await?;
            let mut unit = self.old_unit(at).await?;
            unit.data[within..].fill(0);
            let new = self.seal.sum(at, &unit.data);
            self.change_sums(group, at..at + UNIT_BYTES, |_, unit| {
                (unit.newest, unit.previous) = (new, unit.newest);
            });
        }
        let cut = match self.write_changed_sums().await {
            Ok(()) => self.cut_file(bytes).await,
            failed => failed,
        };
        cut.inspect_err(|_| self.doubt(group_of(bytes)))?;
        self.bytes.set(bytes);
        self.mark_end(turn).await
    }

    /// Truncates the file to the length for an object of `bytes` bytes. Changed checksums must be in the file already.
    async fn cut_file(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(self.seal.layout.file_bytes(bytes)).await?;
        self.written.borrow_mut().truncate(bytes.div_ceil(GROUP_BYTES));
        self.bytes_before.set(self.bytes_before.get().min(bytes));
        // The checksums of the last group are read again, without those beyond the end.
        while self.sums.borrow().last().is_some() {
            self.drop_oldest();
        }
        self.unsettled.borrow_mut().split_off(&bytes.div_ceil(GROUP_BYTES));
        Ok(())
    }

    /// Removes the excess of the file over the object that existed when it was opened.
    async fn cut_excess(&self, _turn: &Permit) -> Result<(), Fault> {
        if self.has_excess.get() {
            self.cut_file(self.bytes.get()).await?;
            self.has_excess.set(false);
        }
        Ok(())
    }

    /// Prepares growth of the object to `bytes`: clears checksums beyond the end, left by an interrupted truncation or
    /// write.
    async fn clear_past_end(&self, bytes: u64, turn: &Permit) -> Result<(), Fault> {
        let Some(last) = self.bytes.get().checked_sub(1) else { return Ok(()) };
        let group = group_of(last);
        if bytes <= self.bytes.get() {
            return Ok(());
        }
        self.load_sums(group, turn).await?;
        if let Some(kept) = of_group(&mut self.sums.borrow_mut(), group).filter(|kept| kept.is_new) {
            kept.note_change(0..self.seal.layout.sums_bytes());
        }
        Ok(self.write_changed(group).await?)
    }

    /// Marks the last unit as present, and as the end of the object.
    async fn mark_end(&self, turn: &Permit) -> Result<(), Fault> {
        let Some(last) = self.bytes.get().checked_sub(1) else { return Ok(()) };
        let (group, at) = (group_of(last), last / UNIT_BYTES * UNIT_BYTES);
        self.load_sums(group, turn).await?;
        self.make_certain(group, turn).await?;
        self.change_sums(group, at..at + 1, |_, unit| {
            unit.previous = unit.newest;
            unit.end = last - at + 1;
        });
        Ok(self.write_changed(group).await?)
    }

    /// Waits until all written data are in stable storage.
    pub(crate) async fn flush(&self) -> Result<(), Fault> {
        if self.is_read_only {
            return Ok(());
        }
        let turn = self.turns.take().await;
        self.flush_units(&turn).await?;
        let is_known = {
            let record = self.record.borrow();
            record.bytes == self.bytes.get() && record.written == *self.written.borrow()
        };
        if !is_known {
            self.write_record(|_| ()).await?;
        }
        Ok(())
    }

    /// Flushes all data of the file to stable storage. Fails if a sync has failed before.
    async fn sync(&self) -> Result<(), Fault> {
        self.sync_failure.check(
            "data written to it may be lost: remove the file or restart the agent, and write it again",
        )?;
        Ok(self.file.sync().await.inspect_err(|error| self.sync_failure.note(error))?)
    }

    async fn flush_units(&self, turn: &Permit) -> Result<(), Fault> {
        self.mark_flushed(turn).await?;
        self.write_changed_sums().await?;
        self.sync().await?;
        self.settle(turn).await
    }

    /// Prepares a flush to a new length that no record has yet: marks in the last unit that a flush began with this
    /// end.
    async fn mark_flushed(&self, turn: &Permit) -> Result<(), Fault> {
        let bytes = self.bytes.get();
        let is_known = !self.seal.layout.keeps_flushed || self.record.borrow().bytes == bytes;
        let Some(last) = bytes.checked_sub(1).filter(|_| !is_known) else { return Ok(()) };
        let (group, at) = (group_of(last), last / UNIT_BYTES * UNIT_BYTES);
        self.load_sums(group, turn).await?;
        self.change_sums(group, at..at + 1, |_, unit| {
            (unit.end, unit.is_end_flushed) = (last - at + 1, true);
        });
        Ok(())
    }

    /// Records that all our writes are in stable storage.
    async fn settle(&self, turn: &Permit) -> Result<(), Fault> {
        for kept in self.sums.borrow_mut().iter_mut() {
            kept.settle(&self.seal.layout);
        }
        loop {
            let Some(group) = self.unsettled.borrow().first().copied() else { break };
            self.load_sums(group, turn).await?;
            if let Some(kept) = of_group(&mut self.sums.borrow_mut(), group) {
                kept.settle(&self.seal.layout);
            }
            self.unsettled.borrow_mut().remove(&group);
        }
        Ok(self.write_changed_sums().await?)
    }

    /// Writes a record of the current state. All of this state, and the previous record, must have been synced.
    async fn write_record(&self, change: impl FnOnce(&mut Record)) -> io::Result<()> {
        let mut record = self.record.borrow().clone();
        record.sequence += 1;
        record.bytes = self.bytes.get();
        record.written = self.written.borrow().clone();
        change(&mut record);
        let (bytes, position) = record.encode(&self.seal.layout, self.seal.identity);
        self.file.write(vec![ByteRun::Owned(bytes)], position).await?;
        *self.record.borrow_mut() = record;
        Ok(())
    }

    fn has_sums(&self, group: u64) -> bool {
        let mut kept = self.sums.borrow_mut();
        let Some(place) = kept.iter().position(|kept| kept.group == group) else { return false };
        kept[place..].rotate_left(1);
        true
    }

    /// Loads the checksums of a group into memory, as the last used ones.
    async fn load_sums(&self, group: u64, _turn: &Permit) -> Result<(), Fault> {
        if self.has_sums(group) {
            return Ok(());
        }
        if self.sums.borrow().len() >= GROUPS_MAX {
            self.write_changed_sums().await?;
            self.drop_oldest();
        }
        let (page_bytes, position) = (self.seal.layout.sums_bytes(), self.seal.layout.sums_in_file(group));
        let page = match self.is_unwritten(group) {
            // Reading a hole would fill the page cache with zeros, and read ahead more of them.
            true => Vec::new(),
            false => self.file.fill(Vec::with_capacity(page_bytes), page_bytes, position).await?,
        };
        let sums = self.seal.decode(&page, group, self.bytes.get(), self.has_all_sums(group));
        let is_new = sums.encode(0..page_bytes) != page;
        let is_certain =
            self.unsettled.borrow().contains(&group) || sums.units().iter().all(UnitSums::is_settled);
        self.sums.borrow_mut().push(Kept { group, sums, changed: 0..0, is_new, is_certain });
        Ok(())
    }

    /// Returns true if the file has neither data nor checksums of a group.
    fn is_unwritten(&self, group: u64) -> bool {
        // Files of an older format do not record the written groups.
        self.seal.layout.keeps_flushed
            && group * GROUP_BYTES >= self.bytes_before.get()
            && !self.has_all_sums(group)
    }

    /// Returns true if the file has all checksums of a group.
    fn has_all_sums(&self, group: u64) -> bool {
        self.written.borrow().contains(&(group..group + 1))
    }

    /// Evicts the least recently used checksums. Changed ones must be in the file already.
    fn drop_oldest(&self) {
        let kept = self.sums.borrow_mut().remove(0);
        if kept.is_certain && kept.unsettled().next().is_some() {
            self.unsettled.borrow_mut().insert(kept.group);
        }
    }

    /// Determines the actual contents of units that a killed process was about to write.
    async fn make_certain(&self, group: u64, _turn: &Permit) -> Result<(), Fault> {
        let unsettled: Vec<u64> = match of_group(&mut self.sums.borrow_mut(), group) {
            Some(kept) if !kept.is_certain => kept.unsettled().collect(),
            _ => return Ok(()),
        };
        if !unsettled.is_empty() {
            self.sync().await?;
        }
        for at in unsettled {
            // A damaged unit keeps its checksums, and can be overwritten.
            if let Ok(OldUnit { vouching, .. }) = self.old_unit(at).await {
                self.change_sums(group, at..at + 1, |_, unit| unit.settle(vouching));
            }
        }
        if let Some(kept) = of_group(&mut self.sums.borrow_mut(), group) {
            kept.is_certain = true;
        }
        Ok(())
    }

    /// Forgets the checksums of a group, whose contents are unknown after a failed write.
    fn doubt(&self, group: u64) {
        self.sums.borrow_mut().retain(|kept| kept.group != group);
        self.unsettled.borrow_mut().remove(&group);
    }

    /// Changes the checksums of units of a loaded group.
    fn change_sums(&self, group: u64, units: Range<u64>, mut change: impl FnMut(u64, &mut UnitSums)) {
        let mut kept = self.sums.borrow_mut();
        let kept = of_group(&mut kept, group).expect("loaded, and nobody else has the turn");
        for at in units.clone().step_by(UNIT) {
            change(at, kept.sums.of(at));
        }
        kept.note_change(self.seal.layout.sectors_of(units.start, units.end));
    }

    /// Writes the changed checksums of a group to the file.
    async fn write_changed(&self, group: u64) -> io::Result<()> {
        let layout = &self.seal.layout;
        let changed = of_group(&mut self.sums.borrow_mut(), group).and_then(|kept| kept.to_write());
        let Some((sectors, bytes)) = changed else { return Ok(()) };
        let position = layout.sums_in_file(group) + sectors.start as u64;
        self.file.write(vec![ByteRun::Owned(bytes)], position).await.inspect_err(|_| self.doubt(group))?;
        if layout.keeps_flushed {
            self.written.borrow_mut().insert(group..group + 1);
        }
        if let Some(kept) = of_group(&mut self.sums.borrow_mut(), group) {
            (kept.changed, kept.is_new) = (0..0, false);
        }
        Ok(())
    }

    async fn write_changed_sums(&self) -> io::Result<()> {
        let groups: Vec<u64> = self.sums.borrow().iter().map(|kept| kept.group).collect();
        for group in groups {
            self.write_changed(group).await?;
        }
        Ok(())
    }
}

impl Kept {
    /// Returns the checksums that the unit at `offset` can have now. Contents from before the writes of this
    /// incarnation are possible only after a power cut, so here they prove that a disk has lost a write.
    fn possible(&mut self, offset: u64) -> UnitSums {
        let sums = *self.sums.of(offset);
        if self.is_certain { UnitSums { flushed: sums.newest, ..sums } } else { sums }
    }

    fn note_change(&mut self, sectors: Range<usize>) {
        self.changed = if self.changed.is_empty() {
            sectors
        } else {
            self.changed.start.min(sectors.start)..self.changed.end.max(sectors.end)
        };
    }

    /// Returns the bytes to write to the file, and their range in the page.
    fn to_write(&self) -> Option<(Range<usize>, Vec<u8>)> {
        if self.changed.is_empty() {
            return None;
        }
        let sectors = if self.is_new { 0..self.sums.page_bytes() } else { self.changed.clone() };
        Some((sectors.clone(), self.sums.encode(sectors)))
    }

    /// Returns the offsets of the units with several possible contents.
    fn unsettled(&self) -> impl Iterator<Item = u64> {
        let offsets = (self.group * GROUP_BYTES..).step_by(UNIT);
        self.sums.units().iter().zip(offsets).filter(|(unit, _)| !unit.is_settled()).map(|(_, at)| at)
    }

    /// Records that all writes to the group are in stable storage.
    fn settle(&mut self, layout: &Layout) {
        let unsettled: Vec<u64> = self.unsettled().collect();
        let (true, Some(first), Some(last)) = (self.is_certain, unsettled.first(), unsettled.last()) else {
            return;
        };
        self.note_change(layout.sectors_of(*first, last + UNIT_BYTES));
        for at in unsettled {
            let unit = self.sums.of(at);
            unit.settle(unit.newest);
        }
    }
}

/// Returns the checksums of a group, if they are in memory.
fn of_group(kept: &mut [Kept], group: u64) -> Option<&mut Kept> {
    kept.iter_mut().find(|kept| kept.group == group)
}

/// Unit before it is changed.
struct OldUnit {
    data: Vec<u8>,
    vouching: u64,
}

/// Bytes of runs, in order.
struct Pieces<'a> {
    runs: &'a [ByteRun],
    /// Number of bytes taken from the first run.
    taken: usize,
    scratch: Vec<u8>,
}

impl<'a> Pieces<'a> {
    fn new(runs: &'a [ByteRun]) -> Self {
        Pieces { runs, taken: 0, scratch: Vec::new() }
    }

    /// Returns the next `bytes` bytes, joined if they are in several runs.
    fn next(&mut self, bytes: usize) -> &[u8] {
        self.skip_taken();
        if let Some(run) = self.runs.first().map(|run| run.as_init())
            && run.len() - self.taken >= bytes
        {
            self.taken += bytes;
            return &run[self.taken - bytes..self.taken];
        }
        self.scratch.clear();
        while self.scratch.len() < bytes {
            self.skip_taken();
            let rest = &self.runs[0].as_init()[self.taken..];
            let part = rest.len().min(bytes - self.scratch.len());
            self.scratch.extend_from_slice(&rest[..part]);
            self.taken += part;
        }
        &self.scratch
    }

    fn skip_taken(&mut self) {
        while self.runs.first().is_some_and(|run| run.buf_len() == self.taken) {
            (self.runs, self.taken) = (&self.runs[1..], 0);
        }
    }
}

/// Returns the begin of the first and the end of the last unit of an extent.
fn whole_units(offset: u64, bytes: u64) -> (u64, u64) {
    let end = offset.saturating_add(bytes).checked_next_multiple_of(UNIT_BYTES);
    (offset / UNIT_BYTES * UNIT_BYTES, end.unwrap_or(u64::MAX / UNIT_BYTES * UNIT_BYTES))
}

/// Extends a short unit with zeros.
fn padded(unit: &[u8]) -> Vec<u8> {
    let mut whole = vec![0; UNIT];
    whole[..unit.len()].copy_from_slice(unit);
    whole
}

fn has_been_cut(bytes: u64, offset: u64) -> String {
    format!("its file was truncated: of its {bytes} bytes, those from {offset} on are missing")
}

fn does_not_match(offset: u64) -> String {
    format!(
        "the {UNIT} bytes at offset {offset} do not match their checksum: they were changed, written \
         incompletely, or belong elsewhere"
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    use machine::{BufferPool, NodeId};

    use super::super::at_once::AtOnce;
    use super::super::directory::Directory;
    use super::super::{for_runtime, name};
    use super::*;
    use crate::Driver;

    fn on_a_directory(test: impl AsyncFnOnce(&Path, &Directory)) {
        let place = tempfile::tempdir().expect("a temporary directory");
        let directory = Directory::take(place.path(), NodeId(1)).expect("a fresh directory");
        crate::block_on(Driver::Automatic, test(place.path(), &directory)).expect("a runtime");
    }

    fn stored(place: &Path, found: super::super::directory::Found) -> OpenObject {
        let file = SystemFile::new(for_runtime(found.file), AtOnce::of(place).into());
        OpenObject::new(file, found.contents, SyncFailure::default())
    }

    #[test]
    fn an_old_unit_is_verified_by_the_checksums_of_its_own_group() {
        on_a_directory(async |place, directory| {
            let stored = stored(place, directory.create("object", b"").expect("a new object"));
            for (offset, byte) in [(0, 1), (GROUP_BYTES, 2)] {
                stored.write(offset, &Payload::from(vec![byte; UNIT])).await.expect("room");
            }
            let turn = stored.turns.take().await;
            stored.load_sums(0, &turn).await.expect("readable");
            // Like a concurrent read, which needs no permit.
            assert!(stored.has_sums(1));
            assert_eq!(stored.old_unit(0).await.expect("it is whole").data, [1; UNIT]);
        });
    }

    /// The system accepts the write, and the medium keeps the data of the last flush.
    #[test]
    fn a_write_that_the_disk_lost_is_detected_before_the_next_flush() {
        on_a_directory(async |place, directory| {
            let stored = stored(place, directory.create("object", b"").expect("a new object"));
            let path = place.join(name::encode("object", name::ObjectFileKind::New));
            let write = async |byte| stored.write(0, &Payload::from(vec![byte; UNIT])).await.expect("room");
            write(1).await;
            stored.flush().await.expect("a working disk");
            let before = std::fs::read(&path).expect("ours");
            write(2).await;
            let at = Layout::V3.in_file(0) as usize..Layout::V3.in_file(UNIT_BYTES) as usize;
            let file = std::fs::File::options().write(true).open(&path).expect("ours");
            file.write_all_at(&before[at.clone()], at.start as u64).expect("room");
            let read = stored.read(0, BufferPool::new(UNIT_BYTES).take(UNIT_BYTES).await).await;
            assert!(matches!(read, Err(Fault::Damaged(_))));
        });
    }
}
