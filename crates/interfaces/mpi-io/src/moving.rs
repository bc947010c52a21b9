//! Reading and writing: a call is begun, moves its data on the node thread, and is ended by whoever has made it. A
//! blocking call is one that is ended at once.
//!
//! Collective calls have their place among those of the file when they are begun, whatever is under way still. The
//! pointer of the process is moved on by what a call asks for when it is begun, the shared one too.

use std::borrow::Cow;

use layout::{Operation, Selection};
use node::{LentMemory, Pending};

use crate::alone::Alone;
use crate::call_place::CallPlace;
use crate::collective_file::{CollectiveFile, argument, position_at};
use crate::data_call::DataCall;
use crate::failure::{ErrorClass, MpiError, Outcome};
use crate::file_view::FileView;
use crate::type_data::TypeData;
use crate::waiting::wait;
use crate::way::{Choice, Situation, Way};

/// A call that has begun. Its data are moved whether it is ended or not.
pub(crate) struct Moving {
    call: DataCall,
    located: Located,
    data: Data,
    /// Whether the pointer of this process stops where the file ends, once it is known where that is.
    stops_at_end: bool,
}

/// Where a call moves data: of the stream, and of the file.
struct Located {
    position: u64,
    data: TypeData,
}

impl Located {
    fn selection(&self) -> &Selection {
        self.data.selection()
    }

    /// Whether it is all of one piece, and not more than that.
    fn is_piece(&self) -> bool {
        self.selection().runs() == 1 && self.selection().bytes() == self.data.bytes()
    }
}

/// The data of a call, on their way.
enum Data {
    /// Nothing is left to be done.
    Moved,
    Read(Pending<Vec<u8>>),
    /// Into the memory of whoever waits.
    ReadInto(Pending<u64>),
    Written(Pending<()>),
    /// One piece, which whoever waits reads from pages, without a copy of them.
    InPages {
        is_seen: bool,
    },
}

/// How whoever reads goes on.
enum Reader {
    /// Waits, and lends the memory that is to be read into meanwhile.
    Lends(LentMemory),
    Waits,
    /// Does something else meanwhile.
    Leaves,
}

impl Moving {
    /// Whether nobody has to wait for it.
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
    /// Reads into memory, together with the other members or not; how many bytes there were before the file ended.
    pub(crate) fn read(&self, place: CallPlace, together: bool, into: &mut [u8]) -> Outcome<u64> {
        // SAFETY: nobody uses it until the answer is there, which comes after all that is done with the memory.
        #[expect(unsafe_code, reason = "memory that this call has, and waits for")]
        let lent = unsafe { LentMemory::new(into) };
        let moving = self.begin_reading(place, together, into.len() as u64, Reader::Lends(lent))?;
        match moving.data {
            Data::ReadInto(_) => self.end(moving, &mut []),
            _ => self.end(moving, into),
        }
    }

    /// Reads so many bytes, together with the other members or not: as many as there were before the file ended.
    pub(crate) fn read_own(&self, place: CallPlace, together: bool, bytes: u64) -> Outcome<Vec<u8>> {
        let moving = self.begin_reading(place, together, bytes, Reader::Waits)?;
        self.end_own(moving)
    }

    /// Writes from memory, together with the other members or not.
    pub(crate) fn write(&self, place: CallPlace, together: bool, bytes: Cow<'_, [u8]>) -> Outcome<()> {
        let lent = match &bytes {
            // SAFETY: nobody writes to it until the answer is there, which comes after all that is done with the
            // memory.
            #[expect(unsafe_code, reason = "memory that this call has, and waits for")]
            Cow::Borrowed(bytes) => Some(unsafe { LentMemory::to_be_read(bytes) }),
            Cow::Owned(_) => None,
        };
        let moving = self.begin_writing(place, together, bytes, lent)?;
        self.end(moving, &mut []).map(drop)
    }

    /// Begins to read so many bytes for whoever does something else meanwhile.
    pub(crate) fn begin_read(&self, place: CallPlace, together: bool, bytes: u64) -> Outcome<Moving> {
        let mut moving = self.begin_reading(place, together, bytes, Reader::Leaves)?;
        moving.call.returns(bytes);
        Ok(moving)
    }

    /// Begins to write for whoever does something else meanwhile. The memory is the caller's again.
    pub(crate) fn begin_write(
        &self,
        place: CallPlace,
        together: bool,
        bytes: Cow<'_, [u8]>,
    ) -> Outcome<Moving> {
        let count = bytes.len() as u64;
        let mut moving = self.begin_writing(place, together, bytes, None)?;
        moving.call.returns(count);
        Ok(moving)
    }

    /// Waits for a call, and puts what it has read into memory that is as long as was asked for; how many bytes it has
    /// moved.
    pub(crate) fn end(&self, moving: Moving, into: &mut [u8]) -> Outcome<u64> {
        let Moving { call, located, data, stops_at_end } = moving;
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

    /// Waits for a call that reads; what it has read.
    pub(crate) fn end_own(&self, moving: Moving) -> Outcome<Vec<u8>> {
        match moving {
            Moving { call, located, data: Data::Read(data), stops_at_end } if located.data.is_once() => {
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

    /// Reads one piece from pages.
    fn read_pages(&self, call: &DataCall, wanted: &TypeData, is_seen: bool, into: &mut [u8]) -> Outcome<u64> {
        let at = wanted.selection().span().offset;
        let read = if is_seen { self.handle.read_latest_at(at, into) } else { self.handle.read_at(at, into) };
        Ok(read.map_err(|error| self.failed(call, error))? as u64)
    }

    /// A call has moved so many bytes.
    fn ended(&self, call: DataCall, located: &Located, stops_at_end: bool, moved: u64) {
        let Located { position, data } = located;
        if stops_at_end {
            let mut state = self.state();
            // Unless somebody has moved it since.
            if state.position == position + data.bytes() {
                // Behind the last elementary type of which there was something.
                state.position = position + moved.next_multiple_of(state.view.unit());
            }
        }
        call.done(&self.account, self.recorder.as_ref(), data.selection(), moved);
    }

    /// If it fails, nothing has begun that has memory of the reader's.
    fn begin_reading(&self, place: CallPlace, together: bool, bytes: u64, reader: Reader) -> Outcome<Moving> {
        self.check_reads()?;
        let mut call = self.begin(Operation::Read, place, together);
        let located = self.locate(place, bytes);
        let way = call.goes(self.choose(&call, &located), pieces_of(&located));
        let waits = !matches!(reader, Reader::Leaves);
        let data = match (way, &located) {
            (Way::Together(method), _) => {
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
            (Way::PageCache, Ok(located)) if waits && located.is_piece() => {
                Data::InPages { is_seen: self.is_seen(place) }
            }
            (_, Ok(located)) => {
                Data::Read(self.alone(way, place).begin_read(&self.started.tree, located.selection().clone()))
            }
            (_, Err(_)) => Data::Moved,
        };
        Ok(Moving { call, located: located?, data, stops_at_end: waits && place == CallPlace::Own })
    }

    /// `lent` is the memory of the bytes, if the writer waits. If this fails, nothing has begun that has it.
    fn begin_writing(
        &self,
        place: CallPlace,
        together: bool,
        bytes: Cow<'_, [u8]>,
        lent: Option<LentMemory>,
    ) -> Outcome<Moving> {
        self.check_writes()?;
        let mut call = self.begin(Operation::Write, place, together);
        let located = self.locate(place, bytes.len() as u64);
        let way = call.goes(self.choose(&call, &located), pieces_of(&located));
        let data = match (way, &located) {
            (Way::Together(method), _) => {
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
            (Way::WriteCached, Ok(located)) => {
                self.write_cached(located.selection(), self.is_seen(place), &bytes)?
            }
            (_, Ok(located)) => {
                let (alone, selection) = (self.alone(way, place), located.selection().clone());
                Data::Written(alone.begin_write(&self.started.tree, selection, bytes.into_owned()))
            }
            (_, Err(_)) => Data::Moved,
        };
        Ok(Moving { call, located: located?, data, stops_at_end: false })
    }

    fn begin(&self, operation: Operation, place: CallPlace, together: bool) -> DataCall {
        let traced = self.traced(place.call_name(operation, together));
        DataCall::begin(operation, together, traced, self.recorder.as_ref())
    }

    fn alone(&self, way: Way, place: CallPlace) -> Alone {
        let lock = (way == Way::Atomic).then(|| self.lock.clone());
        Alone { handle: self.handle.clone(), is_seen: self.is_seen(place), lock }
    }

    /// How a call moves its data. All members come to the same answer of how they do it together.
    fn choose(&self, call: &DataCall, located: &Outcome<Located>) -> Choice {
        let state = self.state();
        let situation = Situation {
            operation: call.operation,
            together: call.together,
            is_atomic: state.is_atomic,
            caches_writes: self.caches_writes,
            members: self.members.size(),
            pieces: pieces_of(located),
        };
        situation.choose(&state.hints)
    }

    /// Whether others see at once what a call writes, and a call what others have written: always by the shared
    /// pointer, whose users take turns, and in atomic mode; otherwise if any of several processes writes, and no hint
    /// says that they do without.
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

    /// Where a call of so many bytes moves data; moves the pointer on that it uses.
    fn locate(&self, place: CallPlace, bytes: u64) -> Outcome<Located> {
        if self.mode.is_sequential && !matches!(place, CallPlace::Shared | CallPlace::Ordered) {
            let why = "it is sequential, and has a shared pointer only";
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

    /// The place of this member's bytes, after those of all members of lower rank.
    fn take_turn(&self, bytes: u64) -> Outcome<u64> {
        let units = units_of(&self.state().view, bytes);
        // Whoever is wrong has nothing in it; the others go on.
        let all = self.members.gather(*units.as_ref().unwrap_or(&0))?;
        let total = all.iter().fold(0, |sum: u64, units| sum.saturating_add(*units));
        let begin = || self.state().shared.advance(total);
        let begun = if self.members.is_first() { begin() } else { Ok(0) };
        // 0 says that the first has failed.
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

/// What a member selects of a call that all make: nothing, if it has failed to find out.
fn selection_of(located: &Outcome<Located>) -> Selection {
    located.as_ref().map_or(Selection::empty(), |located| located.selection().clone())
}

/// Of how many pieces a call is that may have failed to find out.
fn pieces_of(located: &Outcome<Located>) -> u64 {
    located.as_ref().map_or(0, |located| located.selection().runs())
}

/// Memory for so many bytes: zeros.
fn memory_of(bytes: u64) -> Outcome<Vec<u8>> {
    let mut memory = Vec::new();
    let is_there = usize::try_from(bytes).is_ok_and(|bytes| memory.try_reserve_exact(bytes).is_ok());
    if !is_there {
        return Err(MpiError::new(ErrorClass::NoMemory, "there is no memory for what is to be read"));
    }
    memory.resize(bytes as usize, 0);
    Ok(memory)
}

/// How many elementary types these bytes are.
fn units_of(view: &FileView, bytes: u64) -> Outcome<u64> {
    match bytes % view.unit() {
        0 => Ok(bytes / view.unit()),
        _ => Err(argument("the bytes are no whole number of elementary types of the view")),
    }
}
