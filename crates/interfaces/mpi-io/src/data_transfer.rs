//! Reading and writing in three steps: the caller begins a call, the node thread moves its data, and the caller ends
//! the call. A blocking call does all three.
//!
//! Collective calls of a file run in the order in which they begin. Beginning a call advances the individual or the
//! shared pointer by the requested bytes.

use std::borrow::Cow;

use layout::{Operation, Selection};
use node::{LentMemory, Pending};

use crate::access_path::{AccessPath, CallProperties, Choice};
use crate::call_place::CallPlace;
use crate::collective_file::{CollectiveFile, argument, position_at};
use crate::data_call::DataCall;
use crate::failure::{ErrorClass, MpiError, Outcome};
use crate::file_view::FileView;
use crate::independent::Independent;
use crate::type_data::TypeData;
use crate::waiting::wait;

/// A call in flight. The node thread moves the data even if the caller never ends the call.
pub(crate) struct DataTransfer {
    call: DataCall,
    located: Located,
    data: Data,
    /// True if ending the call must set the pointer of this process back to the end of the file.
    stops_at_end: bool,
}

/// Data of a call: position in the stream, and bytes of the file.
struct Located {
    position: u64,
    data: TypeData,
}

impl Located {
    fn selection(&self) -> &Selection {
        self.data.selection()
    }

    /// Returns true if the data are one piece of the file with each byte once.
    fn is_piece(&self) -> bool {
        self.selection().runs() == 1 && self.selection().bytes() == self.data.bytes()
    }
}

/// The data of a call in flight.
enum Data {
    /// Complete.
    Moved,
    Read(Pending<Vec<u8>>),
    /// Read into the memory of the waiting caller.
    ReadInto(Pending<u64>),
    Written(Pending<()>),
    /// One piece, which the waiting caller copies directly from the page cache.
    InPages {
        is_seen: bool,
    },
}

/// The caller of a read.
enum Reader {
    /// Waits, and lends the target memory until then.
    Lends(LentMemory),
    Waits,
    /// Continues with other work.
    Leaves,
}

impl DataTransfer {
    /// True if the call has completed.
    pub(crate) fn is_done(&self) -> bool {
        match &self.data {
            Data::Moved => true,
            Data::Read(data) => data.is_ready(),
            Data::ReadInto(data) => data.is_ready(),
            Data::Written(data) => data.is_ready(),
            Data::InPages { .. } => false,
        }
    }
}

impl CollectiveFile {
    /// Reads into memory, collectively or not. Returns the number of bytes before the end of the file.
    pub(crate) fn read(&self, place: CallPlace, together: bool, into: &mut [u8]) -> Outcome<u64> {
        // SAFETY: this call does not touch the memory until the answer arrives, after all use of the memory.
        #[expect(unsafe_code, reason = "the call borrows the memory until its last use")]
        let lent = unsafe { LentMemory::new(into) };
        let moving = self.begin_reading(place, together, into.len() as u64, Reader::Lends(lent))?;
        match moving.data {
            Data::ReadInto(_) => self.end(moving, &mut []),
            _ => self.end(moving, into),
        }
    }

    /// Reads `bytes` bytes, or fewer if the file ends, collectively or not.
    pub(crate) fn read_own(&self, place: CallPlace, together: bool, bytes: u64) -> Outcome<Vec<u8>> {
        let moving = self.begin_reading(place, together, bytes, Reader::Waits)?;
        self.end_own(moving)
    }

    /// Writes from memory, collectively or not.
    pub(crate) fn write(&self, place: CallPlace, together: bool, bytes: Cow<'_, [u8]>) -> Outcome<()> {
        let lent = match &bytes {
            // SAFETY: the memory is not written until the answer arrives, after all use of the memory.
            #[expect(unsafe_code, reason = "the call borrows the memory until its last use")]
            Cow::Borrowed(bytes) => Some(unsafe { LentMemory::to_be_read(bytes) }),
            Cow::Owned(_) => None,
        };
        let moving = self.begin_writing(place, together, bytes, lent)?;
        self.end(moving, &mut []).map(drop)
    }

    /// Begins a nonblocking read of `bytes` bytes.
    pub(crate) fn begin_read(&self, place: CallPlace, together: bool, bytes: u64) -> Outcome<DataTransfer> {
        let mut moving = self.begin_reading(place, together, bytes, Reader::Leaves)?;
        moving.call.returns(bytes);
        Ok(moving)
    }

    /// Begins a nonblocking write. The caller may reuse the memory when this returns.
    pub(crate) fn begin_write(
        &self,
        place: CallPlace,
        together: bool,
        bytes: Cow<'_, [u8]>,
    ) -> Outcome<DataTransfer> {
        let count = bytes.len() as u64;
        let mut moving = self.begin_writing(place, together, bytes, None)?;
        moving.call.returns(count);
        Ok(moving)
    }

    /// Waits for a call and copies the bytes it read to `into`, which has the requested length. Returns the number of
    /// bytes moved.
    pub(crate) fn end(&self, moving: DataTransfer, into: &mut [u8]) -> Outcome<u64> {
        let DataTransfer { call, located, data, stops_at_end } = moving;
        let wanted = &located.data;
        let moved = match data {
            Data::Moved => wanted.bytes(),
            Data::Written(data) => self.wait_for(&call, data).map(|()| wanted.bytes())?,
            Data::Read(data) => wanted.put(&self.wait_for(&call, data)?, into),
            Data::ReadInto(data) => self.wait_for(&call, data)?,
            Data::InPages { is_seen } => self.read_pages(&call, wanted, is_seen, into)?,
        };
        self.ended(call, &located, stops_at_end, moved);
        Ok(moved)
    }

    /// Waits for a read and returns its bytes.
    pub(crate) fn end_own(&self, moving: DataTransfer) -> Outcome<Vec<u8>> {
        match moving {
            DataTransfer { call, located, data: Data::Read(data), stops_at_end }
                if located.data.is_once() =>
            {
                let read = self.wait_for(&call, data)?;
                self.ended(call, &located, stops_at_end, read.len() as u64);
                Ok(read)
            }
            moving => {
                let mut read = memory_of(moving.located.data.bytes())?;
                let moved = self.end(moving, &mut read)?;
                read.truncate(moved as usize);
                Ok(read)
            }
        }
    }

    fn wait_for<T>(&self, call: &DataCall, data: Pending<T>) -> Outcome<T> {
        wait(data).map_err(|error| self.failed(call, error))
    }

    fn failed(&self, call: &DataCall, error: node::Error) -> MpiError {
        if call.is_common() { self.members.common(error) } else { error.into() }
    }

    /// Reads one piece from the page cache.
    fn read_pages(&self, call: &DataCall, wanted: &TypeData, is_seen: bool, into: &mut [u8]) -> Outcome<u64> {
        let at = wanted.selection().span().offset;
        let read = if is_seen { self.handle.read_latest_at(at, into) } else { self.handle.read_at(at, into) };
        Ok(read.map_err(|error| self.failed(call, error))? as u64)
    }

    /// Records that a call has moved `moved` bytes.
    fn ended(&self, call: DataCall, located: &Located, stops_at_end: bool, moved: u64) {
        let Located { position, data } = located;
        if stops_at_end {
            let mut state = self.state();
            // Skip this if another call has moved the pointer since.
            if state.position == position + data.bytes() {
                // The pointer stops after the last elementary type with any byte.
                state.position = position + moved.next_multiple_of(state.view.unit());
            }
        }
        call.done(&self.account, self.recorder.as_ref(), data.selection(), moved);
    }

    /// Begins a read. If it fails, nothing uses the memory of the reader.
    fn begin_reading(
        &self,
        place: CallPlace,
        together: bool,
        bytes: u64,
        reader: Reader,
    ) -> Outcome<DataTransfer> {
        self.check_reads()?;
        let mut call = self.begin(Operation::Read, place, together);
        let located = self.locate(place, bytes);
        let way = call.goes(self.choose(&call, &located), pieces_of(&located));
        let waits = !matches!(reader, Reader::Leaves);
        let data = match (way, &located) {
            (AccessPath::Together(method), _) => {
                let how = self.state().hints.moves(method);
                match (&located, reader) {
                    (Ok(located), Reader::Lends(memory)) if located.data.is_once() => {
                        let selection = located.selection().clone();
                        Data::ReadInto(self.members.team().read_into(&self.handle, selection, memory, how))
                    }
                    _ => Data::Read(self.members.team().read(&self.handle, selection_of(&located), how)),
                }
            }
            (_, Ok(located)) if located.selection().is_empty() => Data::Moved,
            (AccessPath::PageCache, Ok(located)) if waits && located.is_piece() => {
                Data::InPages { is_seen: self.is_seen(place) }
            }
            (_, Ok(located)) => {
                Data::Read(self.alone(way, place).begin_read(&self.started.tree, located.selection().clone()))
            }
            (_, Err(_)) => Data::Moved,
        };
        Ok(DataTransfer { call, located: located?, data, stops_at_end: waits && place == CallPlace::Own })
    }

    /// Begins a write. `lent` is the memory of the bytes if the writer waits. If it fails, nothing uses that memory.
    fn begin_writing(
        &self,
        place: CallPlace,
        together: bool,
        bytes: Cow<'_, [u8]>,
        lent: Option<LentMemory>,
    ) -> Outcome<DataTransfer> {
        self.check_writes()?;
        let mut call = self.begin(Operation::Write, place, together);
        let located = self.locate(place, bytes.len() as u64);
        let way = call.goes(self.choose(&call, &located), pieces_of(&located));
        let data = match (way, &located) {
            (AccessPath::Together(method), _) => {
                let how = self.state().hints.moves(method);
                let (team, selection) = (self.members.team(), selection_of(&located));
                Data::Written(match lent.filter(|_| located.is_ok()) {
                    Some(memory) => team.write_from(&self.handle, selection, memory, how),
                    None => {
                        let own = if located.is_ok() { bytes.into_owned() } else { Vec::new() };
                        team.write(&self.handle, selection, own, how)
                    }
                })
            }
            (_, Ok(located)) if located.selection().is_empty() => Data::Moved,
            (AccessPath::WriteCached, Ok(located)) => {
                self.write_cached(located.selection(), self.is_seen(place), &bytes)?
            }
            (_, Ok(located)) => {
                let (alone, selection) = (self.alone(way, place), located.selection().clone());
                Data::Written(alone.begin_write(&self.started.tree, selection, bytes.into_owned()))
            }
            (_, Err(_)) => Data::Moved,
        };
        Ok(DataTransfer { call, located: located?, data, stops_at_end: false })
    }

    fn begin(&self, operation: Operation, place: CallPlace, together: bool) -> DataCall {
        let traced = self.traced(place.call_name(operation, together));
        DataCall::begin(operation, together, traced, self.recorder.as_ref())
    }

    fn alone(&self, way: AccessPath, place: CallPlace) -> Independent {
        let lock = (way == AccessPath::Atomic).then(|| self.lock.clone());
        Independent { handle: self.handle.clone(), is_seen: self.is_seen(place), lock }
    }

    /// Chooses the access path of a call. All members choose the same path for a collective call.
    fn choose(&self, call: &DataCall, located: &Outcome<Located>) -> Choice {
        let state = self.state();
        let situation = CallProperties {
            operation: call.operation,
            together: call.together,
            is_atomic: state.is_atomic,
            caches_writes: self.caches_writes,
            members: self.members.size(),
            pieces: pieces_of(located),
        };
        situation.choose(&state.hints)
    }

    /// Returns true if other processes must see this write at once, or this read must see their writes at once. Always
    /// true for the shared pointer, whose users take turns, and in atomic mode. Otherwise true if several processes
    /// have the file open for writing, unless a hint turns this off.
    fn is_seen(&self, place: CallPlace) -> bool {
        let state = self.state();
        let is_written = self.mode.writes && self.members.size() > 1;
        matches!(place, CallPlace::Shared | CallPlace::Ordered)
            || state.is_atomic
            || (is_written && state.hints.is_seen_at_once())
    }

    /// Writes piece by piece into the write cache.
    fn write_cached(&self, selection: &Selection, is_seen: bool, bytes: &[u8]) -> Outcome<Data> {
        for chunk in selection.chunks() {
            let from = chunk.memory_offset as usize;
            self.handle.write_from(chunk.file_offset, &bytes[from..from + chunk.bytes as usize])?;
        }
        Ok(if is_seen { Data::Written(self.handle.begin_send()) } else { Data::Moved })
    }

    /// Returns the data of a call of `bytes` bytes, and advances the pointer that the call uses.
    fn locate(&self, place: CallPlace, bytes: u64) -> Outcome<Located> {
        if self.mode.is_sequential && !matches!(place, CallPlace::Shared | CallPlace::Ordered) {
            let why = "a sequential file has only a shared pointer";
            return Err(MpiError::new(ErrorClass::Unsupported, why));
        }
        let position = match place {
            CallPlace::Ordered => self.take_turn(bytes)?,
            _ => self.take_place(place, bytes)?,
        };
        let data = self.state().view.select(position, bytes)?;
        Ok(Located { position, data })
    }

    fn take_place(&self, place: CallPlace, bytes: u64) -> Outcome<u64> {
        let mut state = self.state();
        let units = units_of(&state.view, bytes)?;
        match place {
            CallPlace::At(offset) => position_at(&state.view, offset),
            CallPlace::Own => {
                let position = state.position;
                state.position = position.saturating_add(bytes);
                Ok(position)
            }
            CallPlace::Shared | CallPlace::Ordered => {
                let before = state.shared.advance(units)?;
                Ok(before.saturating_mul(state.view.unit()))
            }
        }
    }

    /// Returns the position of this member's bytes in an ordered call: after the bytes of all members of lower rank.
    fn take_turn(&self, bytes: u64) -> Outcome<u64> {
        let units = units_of(&self.state().view, bytes);
        // A member with an invalid size takes part with 0 units, so that the others continue.
        let all = self.members.gather(*units.as_ref().unwrap_or(&0))?;
        let total = all.iter().fold(0, |sum: u64, units| sum.saturating_add(*units));
        let begin = || self.state().shared.advance(total);
        let begun = if self.members.is_first() { begin() } else { Ok(0) };
        // The first member sends the old pointer plus 1, or 0 if it failed.
        let first = self.members.gather(begun.as_ref().map_or(0, |begun| begun + 1))?[0];
        begun?;
        let first = first.checked_sub(1).ok_or_else(|| {
            let why = "the first process cannot move the shared pointer";
            MpiError::new(ErrorClass::Io, why).logged_elsewhere()
        })?;
        units?;
        let before: u64 = all[..self.members.rank() as usize].iter().sum();
        Ok((first + before).saturating_mul(self.state().view.unit()))
    }
}

/// Returns this member's selection in a collective call; empty if locating it failed.
fn selection_of(located: &Outcome<Located>) -> Selection {
    located.as_ref().map_or(Selection::empty(), |located| located.selection().clone())
}

/// Returns the number of pieces of a call; 0 if locating them failed.
fn pieces_of(located: &Outcome<Located>) -> u64 {
    located.as_ref().map_or(0, |located| located.selection().runs())
}

/// Allocates `bytes` zero bytes. Fails with `NoMemory`.
fn memory_of(bytes: u64) -> Outcome<Vec<u8>> {
    let mut memory = Vec::new();
    let is_there = usize::try_from(bytes).is_ok_and(|bytes| memory.try_reserve_exact(bytes).is_ok());
    if !is_there {
        return Err(MpiError::new(ErrorClass::NoMemory, "not enough memory for the data to read"));
    }
    memory.resize(bytes as usize, 0);
    Ok(memory)
}

/// Returns the number of elementary types in these bytes.
fn units_of(view: &FileView, bytes: u64) -> Outcome<u64> {
    match bytes % view.unit() {
        0 => Ok(bytes / view.unit()),
        _ => Err(argument("the bytes are not a whole number of elementary types of the view")),
    }
}
