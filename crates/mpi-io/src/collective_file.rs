//! An open file of MPI: a file of the namespace, and those who have opened it together.
//!
//! What a call reads or writes is a stretch of the stream that the view shows, so a selection of the file. A collective
//! call moves the selections of all members at once. Any other goes through the page cache if it is one piece, and in
//! one request to each agent if it is more. What is written is with the agents when the call returns, since libraries
//! count on that, though MPI lets others see it after a sync only; a hint says whether a program does without. In
//! atomic mode each call is made alone, under the lock of the file.

use std::sync::{Mutex, MutexGuard, PoisonError};

use layout::{Operation, Selection};
use namespace::{FileNumber, Location, TreeOperation};
use node::{ErrorKind, Handle, Stat, TracedCall};

use crate::account::CallAccount;
use crate::atomic::{FileLock, HeldFileLock};
use crate::call_place::CallPlace;
use crate::data_call::DataCall;
use crate::failure::{ErrorClass, MpiError, Outcome};
use crate::file_view::FileView;
use crate::hints::Hints;
use crate::members::Members;
use crate::mode::AccessMode;
use crate::process::Connected;
use crate::recording::CallRecorder;
use crate::shared_pointer::SharedPointer;
use crate::way::{Choice, Situation, Way};

/// An open file.
pub(crate) struct CollectiveFile {
    started: Connected,
    path: String,
    number: FileNumber,
    mode: AccessMode,
    /// Whether what is written goes into a write cache of this file's own.
    caches_writes: bool,
    members: Members,
    handle: Handle,
    lock: FileLock,
    account: CallAccount,
    recorder: Option<CallRecorder>,
    state: Mutex<State>,
}

/// What changes while it is open.
struct State {
    view: FileView,
    /// Where this process is in the stream that the view shows, in bytes: between two elementary types.
    position: u64,
    shared: SharedPointer,
    is_atomic: bool,
    hints: Hints,
}

/// From where an offset is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whence {
    Start,
    Position,
    End,
}

/// Where a call moves data: of the stream, and of the file.
struct Located {
    position: u64,
    selection: Selection,
}

fn argument(why: &str) -> MpiError {
    MpiError::new(ErrorClass::Argument, why)
}

impl CollectiveFile {
    /// Opens the file at a path, together with all others who come with the name of the members.
    pub(crate) fn open(
        started: Connected,
        path: &str,
        mode: AccessMode,
        (name, rank, size): (&str, u32, u32),
        mut hints: Hints,
    ) -> Outcome<CollectiveFile> {
        let mut call = started.session.traced_call("MPI_File_open");
        if let Ok(disks) = started.session.disks() {
            hints.note_disks(disks);
        }
        let cached = (hints.caches_writes() && mode.writes).then(|| started.with_write_cache(name));
        let (started, cached) = match cached {
            Some(Ok(cached)) => (cached, Ok(true)),
            // The others are told, once all have met.
            Some(Err(error)) => (started, Err(error)),
            None => (started, Ok(false)),
        };
        // What there is to know of it came with the answer to opening it.
        let open = || -> Outcome<(Handle, FileNumber, Stat)> {
            cached.clone()?;
            let handle = open_handle(&started, path, mode, rank == 0, &hints)?;
            let number =
                handle.number()?.ok_or_else(|| MpiError::new(ErrorClass::Io, "there is no namespace"))?;
            let stat = handle.known_stat()?;
            Ok((handle, number, stat))
        };
        // The first makes it, if it is to be made, and then comes: when all have come, it is there.
        let first = (rank == 0).then(open);
        let members = Members::meet(&started.session, path, (name, rank, size))?;
        let opened = first.unwrap_or_else(open);
        let (handle, number, stat) = members.agree_after_first(opened, hints.in_common())?;
        call.say(|| [("file", number.0)]);
        hints.note_striping(stat);
        let state = State {
            view: FileView::of_bytes(),
            position: if mode.appends { stat.bytes } else { 0 },
            shared: SharedPointer::new(&started.tree, path, name),
            is_atomic: false,
            hints,
        };
        let file = CollectiveFile {
            lock: FileLock::new(&started.tree, path, number, format!("{name}/{rank} ")),
            started,
            path: path.to_owned(),
            number,
            mode,
            caches_writes: cached?,
            members,
            handle,
            account: CallAccount::default(),
            recorder: CallRecorder::begin(path, (name, rank, size), stat),
            state: Mutex::new(state),
        };
        if mode.appends {
            file.seek_shared(0, Whence::End)?;
        }
        Ok(file)
    }

    /// Closes it, as all members do.
    pub(crate) fn close(&self) -> Outcome<()> {
        let _call = self.traced("MPI_File_close");
        let mut outcome = self.members.agree(self.handle.close().map_err(MpiError::from));
        self.state().shared.remove();
        if self.mode.deletes {
            let unlink = || self.started.session.unlink(&self.path).map_err(MpiError::from);
            // Who comes back may make another file of this name.
            let unlinked = self.members.agree(if self.members.is_first() { unlink() } else { Ok(()) });
            outcome = outcome.and(unlinked);
        }
        if self.members.is_first() && CallAccount::is_asked_for() {
            let place = (self.members.rank(), self.members.size());
            eprintln!("{}", self.account.lines(&self.path, place, &self.state().hints));
        }
        outcome
    }

    /// Its path in the namespace.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// A call of this name begins, for whoever traces this process.
    pub(crate) fn traced(&self, name: &'static str) -> TracedCall {
        let mut call = self.started.session.traced_call(name);
        call.say(|| [("file", self.number.0)]);
        call
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // All that panics under the lock leaves it as it was.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_writes(&self) -> Outcome<()> {
        match self.mode.writes {
            true => Ok(()),
            false => Err(MpiError::new(ErrorClass::ReadOnly, "it is open for reading only")),
        }
    }

    fn check_reads(&self) -> Outcome<()> {
        match self.mode.reads {
            true => Ok(()),
            false => Err(MpiError::new(ErrorClass::Access, "it is open for writing only")),
        }
    }
}

/// Opens the file for one member. Striping that there cannot be is ignored, as hints are.
fn open_handle(
    started: &Connected,
    path: &str,
    mode: AccessMode,
    is_first: bool,
    hints: &Hints,
) -> Outcome<Handle> {
    let options = mode.options(is_first);
    let opened = |outcome: node::Result<Handle>| match outcome {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(missing(started, path, error)),
        outcome => Ok(outcome?),
    };
    if let Some(striped) = hints.striped(options).filter(|_| mode.creates && is_first) {
        match started.session.open(path, striped) {
            Err(error) if error.kind() == ErrorKind::Invalid => {}
            outcome => return opened(outcome),
        }
    }
    opened(started.session.open(path, options))
}

/// Why there is no file at a path. That there is no directory for it programs do not expect.
fn missing(started: &Connected, path: &str, error: node::Error) -> MpiError {
    let directory = path.trim_end_matches('/').rsplit_once('/').map_or("", |(directory, _)| directory);
    let look = TreeOperation::Look { at: Location::of_path(directory), follow: true };
    match started.tree.inode(directory, look).wait() {
        Err(none) if none.kind() == ErrorKind::NotFound => {
            let why = format!("there is no directory {directory}. `starfish mkdir -p {directory}` makes it");
            MpiError::new(ErrorClass::NoSuchFile, why).told()
        }
        _ => error.into(),
    }
}

/// Reading and writing.
impl CollectiveFile {
    /// Reads into memory, together with the other members or not; how many bytes there were before the file ended.
    pub(crate) fn read(&self, place: CallPlace, together: bool, into: &mut [u8]) -> Outcome<u64> {
        self.check_reads()?;
        let mut call = self.begin(Operation::Read, place, together);
        let located = self.locate(place, into.len() as u64);
        let read = match call.goes(self.choose(&call, &located), pieces_of(&located)) {
            Way::Together(method) => {
                let selection =
                    located.as_ref().map_or(Selection::empty(), |located| located.selection.clone());
                let how = self.state().hints.moves(method);
                self.members.read(&self.handle, selection, how).map(|bytes| put(&bytes, into))
            }
            _ => {
                let selection = located.as_ref().map(|located| &located.selection).map_err(Clone::clone);
                selection.and_then(|selection| self.read_alone(selection, self.is_seen(place), into))
            }
        };
        let located = located?;
        let read = read?;
        if place == CallPlace::Own {
            // Where the file ends, the pointer stops: behind the last elementary type of which there was something.
            let mut state = self.state();
            state.position = located.position + read.next_multiple_of(state.view.unit());
        }
        call.done(&self.account, &located.selection, read);
        Ok(read)
    }

    /// Writes from memory, together with the other members or not.
    pub(crate) fn write(&self, place: CallPlace, together: bool, bytes: &[u8]) -> Outcome<()> {
        self.check_writes()?;
        let mut call = self.begin(Operation::Write, place, together);
        let located = self.locate(place, bytes.len() as u64);
        let written = match call.goes(self.choose(&call, &located), pieces_of(&located)) {
            Way::Together(method) => {
                let (selection, own) = match &located {
                    Ok(located) => (located.selection.clone(), bytes.to_vec()),
                    Err(_) => (Selection::empty(), Vec::new()),
                };
                let how = self.state().hints.moves(method);
                self.members.write(&self.handle, selection, own, how)
            }
            Way::WriteCached => {
                let selection = located.as_ref().map(|located| &located.selection).map_err(Clone::clone);
                selection.and_then(|selection| self.write_cached(selection, self.is_seen(place), bytes))
            }
            _ => {
                let selection = located.as_ref().map(|located| &located.selection).map_err(Clone::clone);
                selection.and_then(|selection| self.write_alone(selection, self.is_seen(place), bytes))
            }
        };
        let located = located?;
        written?;
        call.done(&self.account, &located.selection, bytes.len() as u64);
        Ok(())
    }

    fn begin(&self, operation: Operation, place: CallPlace, together: bool) -> DataCall<'_> {
        let traced = self.traced(place.call_name(operation, together));
        DataCall::begin(operation, together, traced, self.recorder.as_ref())
    }

    /// How a call moves its data. All members come to the same answer of how they do it together.
    fn choose(&self, call: &DataCall<'_>, located: &Outcome<Located>) -> Choice {
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

    fn read_alone(&self, selection: &Selection, is_seen: bool, into: &mut [u8]) -> Outcome<u64> {
        let _held = self.hold_if_atomic()?;
        if is_seen {
            self.handle.stat()?;
        }
        if selection.runs() <= 1 {
            return Ok(self.handle.read_at(selection.span().offset, into)? as u64);
        }
        Ok(put(&self.handle.begin_read_selected(selection.clone()).wait()?, into))
    }

    fn write_alone(&self, selection: &Selection, is_seen: bool, bytes: &[u8]) -> Outcome<()> {
        let _held = self.hold_if_atomic()?;
        match selection.runs() {
            0 => return Ok(()),
            1 => self.handle.write_from(selection.span().offset, bytes)?,
            _ => self.handle.begin_write_selected(selection.clone(), bytes.to_vec()).wait()?,
        }
        if is_seen {
            self.handle.send()?;
        }
        Ok(())
    }

    /// Writes piece by piece into the write cache.
    fn write_cached(&self, selection: &Selection, is_seen: bool, bytes: &[u8]) -> Outcome<()> {
        for chunk in selection.chunks() {
            let from = chunk.memory_offset as usize;
            self.handle.write_from(chunk.file_offset, &bytes[from..from + chunk.bytes as usize])?;
        }
        if is_seen {
            self.handle.send()?;
        }
        Ok(())
    }

    fn hold_if_atomic(&self) -> Outcome<Option<HeldFileLock<'_>>> {
        let is_atomic = self.state().is_atomic;
        is_atomic.then(|| self.lock.hold()).transpose()
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
        let selection = self.state().view.select(position, bytes)?;
        Ok(Located { position, selection })
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
            MpiError::new(ErrorClass::Io, why).told_elsewhere()
        })?;
        units?;
        let before: u64 = all[..self.members.rank() as usize].iter().sum();
        Ok((first + before).saturating_mul(self.state().view.unit()))
    }
}

/// Pointers, views, sizes.
impl CollectiveFile {
    /// Sets the view; pointers begin at 0. No displacement stands for where the shared pointer is.
    pub(crate) fn set_view(&self, view: FileView) -> Outcome<()> {
        let mut state = self.state();
        state.view = view;
        state.position = 0;
        state.shared.begin_view();
        Ok(())
    }

    /// The offset in the file where the shared pointer is, for the view of a sequential file.
    pub(crate) fn current_displacement(&self) -> Outcome<u64> {
        if !self.mode.is_sequential {
            return Err(argument("MPI_DISPLACEMENT_CURRENT is for files opened with MPI_MODE_SEQUENTIAL"));
        }
        let mut state = self.state();
        let position = state.shared.position()?.saturating_mul(state.view.unit());
        state.view.offset_of(position)
    }

    /// Moves the pointer of this process, by elementary types.
    pub(crate) fn seek(&self, offset: i64, whence: Whence) -> Outcome<()> {
        if self.mode.is_sequential {
            return Err(MpiError::new(
                ErrorClass::Unsupported,
                "a sequential file has a shared pointer only",
            ));
        }
        let end = self.end_for(whence)?;
        let mut state = self.state();
        let position = state.position;
        state.position = moved(&state.view, offset, whence, position, end)?;
        Ok(())
    }

    /// Where this process is, in elementary types.
    pub(crate) fn position(&self) -> u64 {
        let state = self.state();
        state.position / state.view.unit()
    }

    /// Moves the shared pointer, as all members do, by elementary types.
    pub(crate) fn seek_shared(&self, offset: i64, whence: Whence) -> Outcome<()> {
        // Nobody moves it before all have come.
        self.members.agree(Ok(()))?;
        let seek = || -> Outcome<()> {
            let end = self.end_for(whence)?;
            let mut state = self.state();
            let unit = state.view.unit();
            let position = if whence == Whence::Position { state.shared.position()? } else { 0 };
            let position = moved(&state.view, offset, whence, position.saturating_mul(unit), end)?;
            state.shared.set(position / unit)
        };
        self.members.agree(if self.members.is_first() { seek() } else { Ok(()) })
    }

    /// Where the shared pointer is, in elementary types.
    pub(crate) fn shared_position(&self) -> Outcome<u64> {
        self.state().shared.position()
    }

    /// The offset in the file of the elementary type of this number.
    pub(crate) fn byte_offset(&self, offset: i64) -> Outcome<u64> {
        let state = self.state();
        state.view.offset_of(position_at(&state.view, offset)?)
    }

    fn end_for(&self, whence: Whence) -> Outcome<u64> {
        if whence == Whence::End { self.size() } else { Ok(0) }
    }

    /// How long the file is, in bytes.
    pub(crate) fn size(&self) -> Outcome<u64> {
        Ok(self.handle.stat()?.bytes)
    }

    /// Cuts or extends the file, as all members do; if `only_longer`, it is not cut.
    pub(crate) fn set_size(&self, bytes: i64, only_longer: bool) -> Outcome<()> {
        let ready = || -> Outcome<u64> {
            self.check_writes()?;
            let bytes = u64::try_from(bytes).map_err(|_| argument("a size is negative"))?;
            self.handle.send()?;
            Ok(bytes)
        };
        let bytes = self.members.agree(ready())?;
        let all = self.members.gather(bytes)?;
        if all.iter().any(|&other| other != bytes) {
            return Err(MpiError::new(ErrorClass::NotSame, "processes give different sizes"));
        }
        let set = || -> Outcome<()> {
            if !only_longer || self.size()? < bytes {
                self.handle.set_len(bytes)?;
            }
            Ok(())
        };
        self.members.agree(if self.members.is_first() { set() } else { Ok(()) })?;
        self.handle.stat()?;
        Ok(())
    }

    /// Brings everything written onto the disks, as all members do; then each reads what the others have written.
    pub(crate) fn sync(&self) -> Outcome<()> {
        let recorded = self.recorder.as_ref().map(|recorder| (recorder, recorder.common_call()));
        self.members.sync(&self.handle)?;
        if let Some((recorder, call)) = recorded {
            recorder.synced(call);
        }
        Ok(())
    }

    /// Says whether calls see each other whole or not at all, as all members do.
    pub(crate) fn set_atomic(&self, is_atomic: bool) -> Outcome<()> {
        let all = self.members.gather(is_atomic.into())?;
        if all.iter().any(|&other| other != u64::from(is_atomic)) {
            return Err(MpiError::new(ErrorClass::NotSame, "processes want different atomicity"));
        }
        let sent = if self.mode.writes { self.handle.send().map_err(MpiError::from) } else { Ok(()) };
        self.members.agree(sent)?;
        self.handle.stat()?;
        self.state().is_atomic = is_atomic;
        Ok(())
    }

    /// Takes in hints, as all members do.
    pub(crate) fn take_hints<'a>(&self, hints: impl Iterator<Item = (&'a str, &'a str)>) -> Outcome<()> {
        let mut taken = self.state().hints.clone();
        hints.for_each(|(key, value)| taken.take_later(key, value));
        self.members.agree_on(taken.in_common())?;
        self.state().hints = taken;
        Ok(())
    }

    /// Takes in hints that are given with a view.
    pub(crate) fn take_hints_with_view<'a>(&self, hints: impl Iterator<Item = (&'a str, &'a str)>) {
        let mut state = self.state();
        hints.for_each(|(key, value)| state.hints.take_with_view(key, value));
    }

    /// Hands the hint of this index to `read`, if there is one.
    pub(crate) fn hint<T>(&self, index: usize, read: impl FnOnce(&str, &str) -> T) -> Option<T> {
        self.state().hints.numbered(index).map(|(key, value)| read(key, value))
    }
}

/// Of how many pieces a call is that may have failed to find out.
fn pieces_of(located: &Outcome<Located>) -> u64 {
    located.as_ref().map_or(0, |located| located.selection.runs())
}

/// Copies what was read; how much that is.
fn put(bytes: &[u8], into: &mut [u8]) -> u64 {
    into[..bytes.len()].copy_from_slice(bytes);
    bytes.len() as u64
}

/// How many elementary types these bytes are.
fn units_of(view: &FileView, bytes: u64) -> Outcome<u64> {
    match bytes % view.unit() {
        0 => Ok(bytes / view.unit()),
        _ => Err(argument("the bytes are no whole number of elementary types of the view")),
    }
}

fn position_at(view: &FileView, offset: i64) -> Outcome<u64> {
    let position = u64::try_from(offset).ok().and_then(|offset| offset.checked_mul(view.unit()));
    position.ok_or_else(|| argument("an offset is negative, or beyond any file"))
}

/// A position moved by elementary types.
fn moved(view: &FileView, offset: i64, whence: Whence, position: u64, end: u64) -> Outcome<u64> {
    let from = match whence {
        Whence::Start => 0,
        Whence::Position => position,
        Whence::End => view.position_of(end),
    };
    let by = offset.checked_mul(view.unit() as i64);
    let to = by.and_then(|by| from.checked_add_signed(by));
    to.ok_or_else(|| argument("a pointer would be before the file, or beyond any"))
}
