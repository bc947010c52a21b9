//! An object that is open: its file, its length, and the sums of its units, which are checked whenever it is read.
//!
//! One task at a time changes an object, or the sums of it that are in memory. Reads go on beside: one that does
//! not match its sums may have met a write, and is made again when nobody writes; what does not match then is
//! damaged.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;

use compio::BufResult;
use compio::buf::{IntoInner, IoBuf};
use compio::fs::File;
use compio::io::{AsyncReadAt, AsyncWriteAtExt};
use machine::{Buf, Payload};

use super::at_once::AtOnce;
use super::units::{self, Length, Sums, UNIT_BYTES};
use super::write_back::WriteBack;
use crate::bytes::{Run, next_batch, push_runs};
use crate::task::{Turn, Turns};

/// Groups of which an open object keeps the sums in memory: 4 KiB for each MiB, 64 KiB for each object.
const GROUPS_MAX: usize = 16;

const UNIT: usize = UNIT_BYTES as usize;

/// Why an operation on a file failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The system refused it.
    Io(io::Error),
    /// What lies there is not what was written there.
    Damaged(String),
    /// It could not be begun.
    Other(Box<machine::Error>),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Fault::Io(error)
    }
}

/// An open object.
pub(crate) struct Stored {
    file: File,
    at_once: Rc<AtOnce>,
    write_back: Rc<WriteBack>,
    /// Seed of its sums.
    identity: u64,
    bytes: Cell<u64>,
    length: Cell<Length>,
    sums: RefCell<Vec<Kept>>,
    turns: Turns,
}

/// The sums of a group in memory, the latest used last.
struct Kept {
    group: u64,
    sums: Sums,
    /// Whether the file has others.
    changed: bool,
}

impl Stored {
    pub(crate) fn new(file: File, at_once: Rc<AtOnce>, identity: u64, bytes: u64, length: Length) -> Self {
        let (bytes, length) = (Cell::new(bytes), Cell::new(length));
        Stored {
            file,
            at_once,
            write_back: Rc::default(),
            identity,
            bytes,
            length,
            sums: RefCell::default(),
            turns: Turns::new(),
        }
    }

    /// Its length in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Fills `into` from `offset` on; what lies past the end is zeros.
    pub(crate) async fn read(&self, offset: u64, mut into: Buf) -> Result<Buf, Fault> {
        let wanted = into.len();
        let (first, end) = whole_units(offset, wanted);
        let memory = into.take_memory();
        if (first, end - first) == (offset, wanted) {
            into.fill_memory(self.read_units(offset, wanted as usize, memory).await?);
            return Ok(into);
        }
        // Only whole units can be checked.
        let units = Vec::with_capacity((end - first) as usize);
        let units = self.read_units(first, (end - first) as usize, units).await?;
        let start = units.len().min((offset - first) as usize);
        let mut memory = memory;
        memory.extend_from_slice(&units[start..units.len().min(start + wanted as usize)]);
        into.fill_memory(memory);
        Ok(into)
    }

    /// Fills the empty `memory` with `wanted` bytes of whole units from `offset` on, or less at the end.
    async fn read_units(&self, offset: u64, wanted: usize, mut memory: Vec<u8>) -> Result<Vec<u8>, Fault> {
        while memory.len() < wanted {
            let begin = memory.len();
            let here = offset + begin as u64;
            let until = wanted.min(begin + (units::group_end(here) - here) as usize);
            if !self.has_sums(units::group_of(here)) {
                let turn = self.turns.take().await;
                self.load_sums(units::group_of(here), &turn).await?;
            }
            memory = self.fill(memory, until, here).await?;
            if self.check(here, &memory[begin..]).is_err() {
                let turn = self.turns.take().await;
                self.load_sums(units::group_of(here), &turn).await?;
                memory.truncate(begin);
                memory = self.fill(memory, until, here).await?;
                self.check(here, &memory[begin..]).map_err(Fault::Damaged)?;
            }
            if memory.len() < until {
                let there = here + (memory.len() - begin) as u64;
                if there < self.bytes.get() {
                    return Err(Fault::Damaged(format!("its file has been cut at offset {there}")));
                }
                break;
            }
        }
        Ok(memory)
    }

    /// Reads until `memory` has `until` bytes, those to come from `offset` on, or the file has ended.
    async fn fill(&self, mut memory: Vec<u8>, until: usize, offset: u64) -> io::Result<Vec<u8>> {
        let begin = memory.len();
        while memory.len() < until {
            let read = memory.len();
            let position = units::in_file(offset).saturating_add((read - begin) as u64);
            memory = self.append(memory, until, position).await?;
            if memory.len() == read {
                break;
            }
        }
        Ok(memory)
    }

    /// Appends bytes of the file from `position` on, until `memory` has `until` of them or sooner; none at its end.
    async fn append(&self, mut memory: Vec<u8>, until: usize, position: u64) -> io::Result<Vec<u8>> {
        let begin = memory.len();
        if self.at_once.read(self.file.as_fd(), &mut memory, until - begin, position)?.is_some() {
            return Ok(memory);
        }
        let BufResult(result, slice) = self.file.read_at(memory.slice(begin..until), position).await;
        result?;
        Ok(slice.into_inner())
    }

    /// Checks data of one group that lie from `offset` on. Says which unit does not match, if one does not.
    fn check(&self, offset: u64, data: &[u8]) -> Result<(), String> {
        let mut kept = self.sums.borrow_mut();
        let group = units::group_of(offset);
        // Others may have pushed them out meanwhile.
        let kept = of_group(&mut kept, group).ok_or("its sums are not at hand")?;
        for (at, unit) in (offset..).step_by(UNIT).zip(data.chunks(UNIT)) {
            let sums = *kept.sums.of(at);
            let vouching = if unit.len() == UNIT {
                units::vouching(sums, self.identity, at, unit)
            } else {
                units::vouching(sums, self.identity, at, &padded(unit))
            };
            if vouching.is_none() {
                return Err(does_not_match(at));
            }
        }
        Ok(())
    }

    /// Writes `from` at `offset`.
    pub(crate) async fn write(&self, offset: u64, from: &Payload) -> Result<(), Fault> {
        let turn = self.turns.take().await;
        let mut done = 0;
        while done < from.len() {
            let here = offset.saturating_add(done);
            let bytes = (from.len() - done).min(units::group_end(here).saturating_sub(here));
            if bytes == 0 {
                return Err(Fault::Io(io::ErrorKind::FileTooLarge.into()));
            }
            let mut runs = Vec::new();
            push_runs(&from.slice(done..done + bytes), &mut runs).map_err(Fault::Other)?;
            self.write_part(here, bytes, runs, &turn).await?;
            done += bytes;
        }
        Ok(())
    }

    /// Writes to one group.
    async fn write_part(&self, offset: u64, bytes: u64, runs: Vec<Run>, turn: &Turn) -> Result<(), Fault> {
        let (group, end) = (units::group_of(offset), offset + bytes);
        self.load_sums(group, turn).await?;
        let (first, units_end) = whole_units(offset, bytes);
        // What the first and the last unit keep of what they had; if they are one, twice the same.
        let head = if offset > first { Some(self.old_unit(first).await?) } else { None };
        let last = units_end - UNIT_BYTES;
        let tail = if end < units_end && end < self.bytes.get() && (last > first || head.is_none()) {
            Some(self.old_unit(last).await?)
        } else {
            None
        };
        let mut data = Pieces::new(&runs);
        let mut new = Vec::with_capacity(((units_end - first) / UNIT_BYTES) as usize);
        for at in (first..units_end).step_by(UNIT) {
            let within = (offset.max(at) - at) as usize..(end.min(at + UNIT_BYTES) - at) as usize;
            let old = [(first, &head), (last, &tail)]
                .into_iter()
                .find(|(place, old)| *place == at && old.is_some());
            new.push(match old {
                _ if within.len() == UNIT => units::sum(self.identity, at, data.next(UNIT)),
                Some((_, Some(old))) => {
                    let mut unit = old.data.clone();
                    unit[within.clone()].copy_from_slice(data.next(within.len()));
                    units::sum(self.identity, at, &unit)
                }
                // Zeros were there, or nothing.
                _ => {
                    let mut unit = vec![0; UNIT];
                    unit[within.clone()].copy_from_slice(data.next(within.len()));
                    units::sum(self.identity, at, &unit)
                }
            });
        }
        let page = self.change_sums(group, |sums| {
            for (at, new) in (first..units_end).step_by(UNIT).zip(&new) {
                let pair = sums.of(at);
                let old = [(first, &head), (last, &tail)].into_iter().filter(|(place, _)| *place == at);
                let previous = old.filter_map(|(_, old)| old.as_ref()).next();
                *pair = [*new, previous.map_or(pair[0], |old| old.vouching)];
            }
        });
        self.write_at(vec![Run::Owned(page)], units::sums_in_file(group)).await?;
        if let Err(error) = self.write_at(runs, units::in_file(offset)).await {
            if end > self.bytes.get() {
                // What lies past the end is to be zeros, also if some of it was written before the disk was full.
                let _ = self.file.set_len(units::file_bytes(self.bytes.get())).await;
            }
            return Err(error.into());
        }
        self.change_sums(group, |sums| {
            for at in (first..units_end).step_by(UNIT) {
                let pair = sums.of(at);
                pair[1] = pair[0];
            }
        });
        self.bytes.set(self.bytes.get().max(end));
        if end == units::group_end(offset) && !self.at_once.is_everything() {
            self.write_back
                .begin(self.file.as_fd(), units::sums_in_file(group)..units::sums_in_file(group + 1));
        }
        Ok(())
    }

    /// The unit at `offset` as it is, with zeros past the end, and the sum that vouches for it.
    async fn old_unit(&self, offset: u64) -> Result<OldUnit, Fault> {
        let data = padded(&self.fill(Vec::with_capacity(UNIT), UNIT, offset).await?);
        let group = units::group_of(offset);
        let mut kept = self.sums.borrow_mut();
        // Reads beside may have used others meanwhile, but only who has the turn drops some.
        let kept = of_group(&mut kept, group).expect("loaded, and we have the turn");
        let vouching = units::vouching(*kept.sums.of(offset), self.identity, offset, &data);
        let vouching = vouching.ok_or_else(|| Fault::Damaged(does_not_match(offset)))?;
        Ok(OldUnit { data, vouching })
    }

    async fn write_at(&self, mut runs: Vec<Run>, mut position: u64) -> io::Result<()> {
        while let Some(batch) = next_batch(&mut runs) {
            let bytes: usize = batch.iter().map(IoBuf::buf_len).sum();
            let written = self.at_once.write(self.file.as_fd(), &batch, position)?;
            if written < bytes {
                // All of it once more: the same bytes at the same place.
                let BufResult(result, _batch) = (&self.file).write_vectored_all_at(batch, position).await;
                result?;
            }
            position += bytes as u64;
        }
        Ok(())
    }

    /// Cuts the object to `bytes`, or extends it to them with zeros.
    pub(crate) async fn resize(&self, bytes: u64) -> Result<(), Fault> {
        let turn = self.turns.take().await;
        if bytes >= self.bytes.get() {
            self.file.set_len(units::file_bytes(bytes)).await?;
            self.bytes.set(bytes);
            return Ok(());
        }
        if self.length.get().bytes > bytes {
            // First, so that the file is never shorter than is said.
            self.record_length(bytes).await?;
        }
        let group = units::group_of(bytes);
        self.load_sums(group, &turn).await?;
        let within = (bytes % UNIT_BYTES) as usize;
        let unit_at = bytes - within as u64;
        if within > 0 {
            let mut unit = self.old_unit(unit_at).await?;
            unit.data[within..].fill(0);
            let new = units::sum(self.identity, unit_at, &unit.data);
            let page = self.change_sums(group, |sums| *sums.of(unit_at) = [new, unit.vouching]);
            self.write_at(vec![Run::Owned(page)], units::sums_in_file(group)).await?;
            self.file.set_len(units::file_bytes(bytes)).await?;
            self.change_sums(group, |sums| *sums.of(unit_at) = [new; 2]);
        } else {
            self.file.set_len(units::file_bytes(bytes)).await?;
        }
        self.bytes.set(bytes);
        self.sums.borrow_mut().retain(|kept| kept.group <= group);
        let unwritten = unit_at + if within > 0 { UNIT_BYTES } else { 0 };
        if units::group_of(unwritten) == group {
            let page = self.change_sums(group, |sums| sums.clear_from(unwritten));
            // If nothing of the group is left, neither are its sums.
            if bytes > group_begin(bytes) {
                self.write_at(vec![Run::Owned(page)], units::sums_in_file(group)).await?;
            }
        }
        Ok(())
    }

    /// Waits until all that was written is on the medium.
    pub(crate) async fn flush(&self) -> Result<(), Fault> {
        let _turn = self.turns.take().await;
        self.write_changed_sums().await?;
        if self.length.get().bytes != self.bytes.get() {
            self.record_length(self.bytes.get()).await?;
        }
        Ok(self.file.sync_data().await?)
    }

    async fn record_length(&self, bytes: u64) -> io::Result<()> {
        let length = Length { sequence: self.length.get().sequence + 1, bytes };
        let (record, position) = length.encode(self.identity);
        self.write_at(vec![Run::Owned(record)], position).await?;
        self.length.set(length);
        Ok(())
    }

    fn has_sums(&self, group: u64) -> bool {
        let mut kept = self.sums.borrow_mut();
        let Some(place) = kept.iter().position(|kept| kept.group == group) else { return false };
        kept[place..].rotate_left(1);
        true
    }

    /// Sees to it that the sums of a group are in memory, as those used last.
    async fn load_sums(&self, group: u64, _turn: &Turn) -> Result<(), Fault> {
        if self.has_sums(group) {
            return Ok(());
        }
        if self.sums.borrow().len() >= GROUPS_MAX {
            self.write_changed_sums().await?;
            self.sums.borrow_mut().remove(0);
        }
        let mut page = Vec::with_capacity(Sums::BYTES);
        while page.len() < Sums::BYTES {
            let read = page.len();
            let position = units::sums_in_file(group).saturating_add(read as u64);
            page = self.append(page, Sums::BYTES, position).await?;
            if page.len() == read {
                break;
            }
        }
        let sums = Sums::decode(&page, group, self.bytes.get());
        self.sums.borrow_mut().push(Kept { group, sums, changed: false });
        Ok(())
    }

    /// Changes the sums of a group that have been loaded, and gives the page for the file.
    fn change_sums(&self, group: u64, change: impl FnOnce(&mut Sums)) -> Vec<u8> {
        let mut kept = self.sums.borrow_mut();
        let kept = of_group(&mut kept, group).expect("loaded, and nobody else has the turn");
        change(&mut kept.sums);
        kept.changed = true;
        kept.sums.encode()
    }

    async fn write_changed_sums(&self) -> io::Result<()> {
        let changed = |kept: &Kept| kept.changed.then(|| (kept.group, kept.sums.encode()));
        let pages: Vec<(u64, Vec<u8>)> = self.sums.borrow().iter().filter_map(changed).collect();
        for (group, page) in pages {
            self.write_at(vec![Run::Owned(page)], units::sums_in_file(group)).await?;
            let mut kept = self.sums.borrow_mut();
            of_group(&mut kept, group).into_iter().for_each(|kept| kept.changed = false);
        }
        Ok(())
    }
}

/// The sums of a group, if they are in memory.
fn of_group(kept: &mut [Kept], group: u64) -> Option<&mut Kept> {
    kept.iter_mut().find(|kept| kept.group == group)
}

/// A unit before it is changed.
struct OldUnit {
    data: Vec<u8>,
    vouching: u64,
}

/// Bytes of runs, in order.
struct Pieces<'a> {
    runs: &'a [Run],
    /// Of the first run, what has been taken.
    taken: usize,
    scratch: Vec<u8>,
}

impl<'a> Pieces<'a> {
    fn new(runs: &'a [Run]) -> Self {
        Pieces { runs, taken: 0, scratch: Vec::new() }
    }

    /// The next `bytes` bytes, joined if they do not lie in one run.
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

/// The units that an extent touches: where the first begins and the last ends.
fn whole_units(offset: u64, bytes: u64) -> (u64, u64) {
    let end = offset.saturating_add(bytes).checked_next_multiple_of(UNIT_BYTES);
    (offset / UNIT_BYTES * UNIT_BYTES, end.unwrap_or(u64::MAX / UNIT_BYTES * UNIT_BYTES))
}

fn group_begin(offset: u64) -> u64 {
    units::group_end(offset) - units::group_end(0)
}

/// A unit that ends early, with zeros.
fn padded(unit: &[u8]) -> Vec<u8> {
    let mut whole = vec![0; UNIT];
    whole[..unit.len()].copy_from_slice(unit);
    whole
}

fn does_not_match(offset: u64) -> String {
    format!(
        "the {UNIT} bytes at offset {offset} do not match their checksum: they were changed, were not written to \
         their end, or belong elsewhere"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Driver;

    #[test]
    fn an_old_unit_is_compared_with_the_sums_of_its_own_group() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("object");
        let test = async {
            let mut options = compio::fs::OpenOptions::new();
            options.create(true).read(true).write(true);
            let file = options.open(&path).await.expect("a file");
            let at_once = Rc::new(AtOnce::of(directory.path()));
            let stored = Stored::new(file, at_once, 7, 0, Length::default());
            let second_group = units::group_end(0);
            for (offset, byte) in [(0, 1), (second_group, 2)] {
                stored.write(offset, &Payload::from(vec![byte; UNIT])).await.expect("room");
            }
            let turn = stored.turns.take().await;
            stored.load_sums(0, &turn).await.expect("readable");
            // As a read beside does it, which needs no turn.
            assert!(stored.has_sums(1));
            assert_eq!(stored.old_unit(0).await.expect("it is whole").data, [1; UNIT]);
        };
        crate::block_on(Driver::Automatic, test).expect("a runtime");
    }
}
