//! An open file of MPI: a file of the namespace and the processes that opened it together (its members).
//!
//! A view shows parts of the file as one stream, and a call reads or writes a range of that stream
//! (`data_transfer.rs`). A collective call moves the selections of all members at once. An independent call goes
//! through the page cache if it is one piece, and otherwise in one request to each agent.
//!
//! If several processes have the file open for writing, a write sends its data to the agents before it completes. MPI
//! requires this only at a sync, but libraries rely on it. A hint can turn this off, and a file with a write cache
//! sends its data only at a flush. In atomic mode each call is made independently, under the lock of the file.

use std::sync::{Mutex, MutexGuard, PoisonError};

use namespace::{FileNumber, Location, TreeOperation};
use node::{ErrorKind, Handle, Stat, TracedCall};

use crate::account::CallAccount;
use crate::atomic::FileLock;
use crate::failure::{ErrorClass, MpiError, Outcome, say, say_once};
use crate::file_view::FileView;
use crate::hints::Hints;
use crate::members::Members;
use crate::mode::AccessMode;
use crate::names::NamedPlace;
use crate::process::Connected;
use crate::recording::CallRecorder;
use crate::shared_pointer::SharedPointer;
use crate::waiting::wait;

/// An open file.
pub(crate) struct CollectiveFile {
    pub(crate) started: Connected,
    place: NamedPlace,
    number: FileNumber,
    pub(crate) mode: AccessMode,
    /// True if writes go into a write cache of this file alone.
    pub(crate) caches_writes: bool,
    pub(crate) members: Members,
    pub(crate) handle: Handle,
    pub(crate) lock: FileLock,
    pub(crate) account: CallAccount,
    pub(crate) recorder: Option<CallRecorder>,
    state: Mutex<State>,
}

/// Mutable state of an open file.
pub(crate) struct State {
    pub(crate) view: FileView,
    /// Position of this process in the stream of the view, in bytes: a multiple of the elementary type.
    pub(crate) position: u64,
    pub(crate) shared: SharedPointer,
    pub(crate) is_atomic: bool,
    pub(crate) hints: Hints,
}

/// Origin of a seek offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whence {
    Start,
    Position,
    End,
}

pub(crate) fn argument(why: &str) -> MpiError {
    MpiError::new(ErrorClass::Argument, why)
}

impl CollectiveFile {
    /// Opens the file at a place together with the other processes that pass the same team name.
    pub(crate) fn open(
        started: Connected,
        place: &NamedPlace,
        mode: AccessMode,
        (name, rank, size): (&str, u32, u32),
        mut hints: Hints,
    ) -> Outcome<CollectiveFile> {
        let path = &*place.path;
        let mut call = started.session.traced_call("MPI_File_open");
        if let Ok(disks) = started.session.disks() {
            hints.note_disks(disks);
        }
        let cached = (hints.caches_writes() && mode.writes).then(|| started.with_write_cache(name));
        let (started, cached) = match cached {
            Some(Ok(cached)) => (cached, Ok(true)),
            // Report the error only after the barrier, so that all members fail together.
            Some(Err(error)) => (started, Err(error)),
            None => (started, Ok(false)),
        };
        // The answer to the open contains number and attributes, so no further request is needed.
        let open = || -> Outcome<(Handle, FileNumber, Stat)> {
            cached.clone()?;
            let handle = open_handle(&started, path, mode, rank == 0, &hints)?;
            let (number, stat) = (handle.number()?, handle.known_stat()?);
            Ok((handle, number, stat))
        };
        // The first member creates the file before it enters the barrier, so that the others find it.
        let first = (rank == 0).then(open);
        let members = Members::join(&started.session, path, (name, rank, size))?;
        let opened = first.unwrap_or_else(open);
        let (handle, number, stat) = members.agree_after_first(opened, hints.in_common())?;
        call.say(|| [("file", number.0)]);
        hints.note_striping(stat);
        if rank == 0 {
            hints.mistakes().for_each(|mistake| say_once(format!("starfish: {mistake}")));
        }
        let state = State {
            view: FileView::of_bytes(),
            position: if mode.appends { stat.bytes } else { 0 },
            shared: SharedPointer::new(&started.tree, path, name),
            is_atomic: false,
            hints,
        };
        let file = CollectiveFile {
            lock: FileLock { path: path.to_owned(), number },
            started,
            place: place.clone(),
            number,
            mode,
            caches_writes: cached?,
            members,
            handle,
            account: CallAccount::default(),
            recorder: CallRecorder::begin(path, (name, rank, size), stat),
            state: Mutex::new(state),
        };
        if mode.creates {
            file.place.revalidate();
        }
        if mode.appends {
            file.seek_shared(0, Whence::End)?;
        }
        Ok(file)
    }

    /// Closes the file; collective.
    pub(crate) fn close(&self) -> Outcome<()> {
        let _call = self.traced("MPI_File_close");
        // Nonblocking calls whose result this member no longer wants may still be in flight.
        let closed = wait(self.handle.begin_close());
        let mut outcome = self.members.agree(closed.map_err(MpiError::from));
        self.state().shared.remove();
        if self.mode.deletes {
            let unlink = || self.started.session.unlink(&self.place.path).map_err(MpiError::from);
            // After this barrier a member may create another file of this name.
            let unlinked = self.members.agree(if self.members.is_first() { unlink() } else { Ok(()) });
            outcome = outcome.and(unlinked);
        }
        if self.mode.writes || self.mode.deletes {
            self.place.revalidate();
        }
        if self.members.is_first() && CallAccount::is_asked_for() {
            let place = (self.members.rank(), self.members.size());
            say(self.account.lines(&self.place.path, place, &self.state().hints));
        }
        outcome
    }

    /// Flushes written data to stable storage when the process ends without closing the file. Does not wait for the
    /// other members, and skips the collective steps of a close.
    pub(crate) fn end_with_process(&self) -> Outcome<()> {
        self.members.leave();
        self.handle.close()?;
        Ok(self.started.session.finish()?)
    }

    /// Returns the path of the file in the namespace.
    pub(crate) fn path(&self) -> &str {
        &self.place.path
    }

    /// Begins a span of this name in the trace of this process. The span ends when the result is dropped.
    pub(crate) fn traced(&self, name: &'static str) -> TracedCall {
        let mut call = self.started.session.traced_call(name);
        call.say(|| [("file", self.number.0)]);
        call
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A panic under the lock leaves the state as it was.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn check_writes(&self) -> Outcome<()> {
        match self.mode.writes {
            true => Ok(()),
            false => Err(MpiError::new(ErrorClass::ReadOnly, "the file is open for reading only")),
        }
    }

    pub(crate) fn check_reads(&self) -> Outcome<()> {
        match self.mode.reads {
            true => Ok(()),
            false => Err(MpiError::new(ErrorClass::Access, "the file is open for writing only")),
        }
    }
}

/// Opens the file for one member. If the hinted striping is impossible, ignores it, like any invalid hint.
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

/// Returns the error for a missing file. If its directory is missing, the error names the directory, since a program
/// that creates a file does not expect "no such file".
fn missing(started: &Connected, path: &str, error: node::Error) -> MpiError {
    let directory = path.trim_end_matches('/').rsplit_once('/').map_or("", |(directory, _)| directory);
    let look = TreeOperation::Look { at: Location::of_path(directory), follow: true };
    match started.tree.inode(directory, look).wait() {
        Err(none) if none.kind() == ErrorKind::NotFound => {
            let why = format!(
                "the directory {directory} does not exist. `starfish mkdir -p {directory}` creates it"
            );
            MpiError::new(ErrorClass::NoSuchFile, why).logged()
        }
        _ => error.into(),
    }
}

/// Pointers, views, sizes.
impl CollectiveFile {
    /// Sets the view and resets the pointers to 0. The shim has resolved `MPI_DISPLACEMENT_CURRENT` with
    /// [`Self::current_displacement`].
    pub(crate) fn set_view(&self, view: FileView) -> Outcome<()> {
        if self.mode.writes && view.overlaps() {
            let why = "a view: overlapping data are allowed only in a file opened for reading only";
            return Err(MpiError::new(ErrorClass::Type, why));
        }
        let mut state = self.state();
        state.view = view;
        state.position = 0;
        state.shared.begin_view();
        Ok(())
    }

    /// Returns the offset in the file of the shared pointer: the value of `MPI_DISPLACEMENT_CURRENT`.
    pub(crate) fn current_displacement(&self) -> Outcome<u64> {
        if !self.mode.is_sequential {
            return Err(argument("MPI_DISPLACEMENT_CURRENT requires a file opened with MPI_MODE_SEQUENTIAL"));
        }
        let mut state = self.state();
        let position = state.shared.position()?.saturating_mul(state.view.unit());
        state.view.offset_of(position)
    }

    /// Moves the pointer of this process. `offset` is in elementary types.
    pub(crate) fn seek(&self, offset: i64, whence: Whence) -> Outcome<()> {
        if self.mode.is_sequential {
            return Err(MpiError::new(
                ErrorClass::Unsupported,
                "a sequential file has only a shared pointer",
            ));
        }
        let end = self.end_for(whence)?;
        let mut state = self.state();
        let position = state.position;
        state.position = moved(&state.view, offset, whence, position, end)?;
        Ok(())
    }

    /// Returns the position of this process, in elementary types.
    pub(crate) fn position(&self) -> u64 {
        let state = self.state();
        state.position / state.view.unit()
    }

    /// Moves the shared pointer; collective. `offset` is in elementary types.
    pub(crate) fn seek_shared(&self, offset: i64, whence: Whence) -> Outcome<()> {
        // Barrier: the pointer moves only after all members have called.
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

    /// Returns the position of the shared pointer, in elementary types.
    pub(crate) fn shared_position(&self) -> Outcome<u64> {
        self.state().shared.position()
    }

    /// Returns the offset in the file, in bytes, of elementary type number `offset`.
    pub(crate) fn byte_offset(&self, offset: i64) -> Outcome<u64> {
        let state = self.state();
        state.view.offset_of(position_at(&state.view, offset)?)
    }

    fn end_for(&self, whence: Whence) -> Outcome<u64> {
        if whence == Whence::End { self.size() } else { Ok(0) }
    }

    /// Returns the size of the file in bytes.
    pub(crate) fn size(&self) -> Outcome<u64> {
        Ok(self.handle.stat()?.bytes)
    }

    /// Truncates or extends the file; collective. If `only_longer`, never truncates.
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
            return Err(MpiError::new(ErrorClass::NotSame, "processes passed different sizes"));
        }
        let set = || -> Outcome<()> {
            if !only_longer || self.size()? < bytes {
                self.handle.set_len(bytes)?;
            }
            Ok(())
        };
        self.members.agree(if self.members.is_first() { set() } else { Ok(()) })?;
        self.handle.stat()?;
        self.place.revalidate();
        Ok(())
    }

    /// Flushes all written data to stable storage; collective. Later reads of each member see the writes of all.
    pub(crate) fn sync(&self) -> Outcome<()> {
        let recorded = self.recorder.as_ref().map(|recorder| (recorder, recorder.common_call()));
        self.members.sync(&self.handle)?;
        self.place.revalidate();
        if let Some((recorder, call)) = recorded {
            recorder.synced(call);
        }
        Ok(())
    }

    /// Turns atomic mode on or off; collective. In atomic mode a call sees either all or nothing of any other
    /// call.
    pub(crate) fn set_atomic(&self, is_atomic: bool) -> Outcome<()> {
        let all = self.members.gather(is_atomic.into())?;
        if all.iter().any(|&other| other != u64::from(is_atomic)) {
            return Err(MpiError::new(ErrorClass::NotSame, "processes passed different atomicity"));
        }
        let sent = if self.mode.writes { self.handle.send().map_err(MpiError::from) } else { Ok(()) };
        self.members.agree(sent)?;
        self.handle.stat()?;
        self.state().is_atomic = is_atomic;
        Ok(())
    }

    /// Applies hints; collective.
    pub(crate) fn take_hints<'a>(&self, hints: impl Iterator<Item = (&'a str, &'a str)>) -> Outcome<()> {
        let mut taken = self.state().hints.clone();
        hints.for_each(|(key, value)| taken.take_later(key, value));
        self.members.agree_on(taken.in_common())?;
        self.state().hints = taken;
        Ok(())
    }

    /// Applies hints that the program passed with a view.
    pub(crate) fn take_hints_with_view<'a>(&self, hints: impl Iterator<Item = (&'a str, &'a str)>) {
        let mut state = self.state();
        hints.for_each(|(key, value)| state.hints.take_with_view(key, value));
    }

    /// Passes the hint of this index to `read`, if it exists.
    pub(crate) fn hint<T>(&self, index: usize, read: impl FnOnce(&str, &str) -> T) -> Option<T> {
        self.state().hints.numbered(index).map(|(key, value)| read(key, value))
    }
}

pub(crate) fn position_at(view: &FileView, offset: i64) -> Outcome<u64> {
    let position = u64::try_from(offset).ok().and_then(|offset| offset.checked_mul(view.unit()));
    position.ok_or_else(|| argument("an offset is negative, or beyond the largest file"))
}

/// Returns a position moved by `offset` elementary types.
fn moved(view: &FileView, offset: i64, whence: Whence, position: u64, end: u64) -> Outcome<u64> {
    let from = match whence {
        Whence::Start => 0,
        Whence::Position => position,
        Whence::End => view.position_of(end),
    };
    let by = offset.checked_mul(view.unit() as i64);
    let to = by.and_then(|by| from.checked_add_signed(by));
    to.ok_or_else(|| argument("a pointer would be before the start or beyond the largest file"))
}
