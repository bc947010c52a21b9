//! The functions of `include/starfish_mpi_io.h`.
//!
//! A C interface takes pointers, hence `unsafe`. Its callers are the shims of `shim/`, which guarantee valid pointers.
//! A file comes from `starfish_mpi_open`, a type from one of the functions for types, and neither has been freed. A
//! string is terminated. An array has the stated number of elements.

#![expect(unsafe_code, reason = "a C interface: see above")]

use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::slice;
use std::sync::Arc;

use crate::account::CallAccount;
use crate::call_place::CallPlace;
use crate::collective_file::{CollectiveFile, Whence};
use crate::data_transfer::DataTransfer;
use crate::failure::{self, ErrorClass, MpiError, Outcome};
use crate::file_array::{BoxSide, DimensionDistribution, DistributedDimension, array_box, dealt_array};
use crate::file_type::FileType;
use crate::file_view::FileView;
use crate::hint_file;
use crate::hints::Hints;
use crate::mode::AccessMode;
use crate::names::NamedPlace;
use crate::open_files;
use crate::process;
use crate::recording;
use crate::waiting::{self, Progress};

/// Runs `call` and returns its outcome as a number. Catches panics; the panic hook has printed them.
fn to_c(call: impl FnOnce() -> Outcome<()>) -> c_int {
    let outcome = catch_unwind(AssertUnwindSafe(call));
    let outcome =
        outcome.unwrap_or_else(|_| Err(MpiError::new(ErrorClass::Io, "a panic: a defect of Starfish")));
    failure::number(outcome)
}

/// Like [`to_c`], for a call on an open file; `name` is the name of the call in traces.
fn named(
    of: &CollectiveFile,
    name: &'static str,
    call: impl FnOnce(&CollectiveFile) -> Outcome<()>,
) -> c_int {
    let _call = of.traced(name);
    of_file(of, || call(of))
}

/// Like [`to_c`], for a call on an open file that traces do not record.
fn of_file(of: &CollectiveFile, call: impl FnOnce() -> Outcome<()>) -> c_int {
    to_c(|| call().map_err(|error| error.about(of.path())))
}

/// Like [`to_c`], for a call on a file given by its name.
fn of_name(name: Outcome<&str>, call: impl FnOnce(&NamedPlace) -> Outcome<()>) -> c_int {
    to_c(|| {
        let place = process::place(name?)?;
        call(&place).map_err(|error| error.about(&place.path))
    })
}

fn argument(why: &str) -> MpiError {
    MpiError::new(ErrorClass::Argument, why)
}

/// Borrows a string of a caller.
///
/// # Safety
/// `text` is null or a terminated string that stays valid as long as the reference is used.
unsafe fn string<'a>(text: *const c_char) -> Outcome<&'a str> {
    if text.is_null() {
        return Err(argument("a string is NULL"));
    }
    // SAFETY: by the caller's guarantee.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| MpiError::new(ErrorClass::BadFile, format!("{text:?} is not in UTF-8")))
}

/// Borrows an array of a caller.
///
/// # Safety
/// The array has `count` elements and stays valid as long as the reference is used.
unsafe fn array<'a, T>(first: *const T, count: usize) -> &'a [T] {
    match count {
        0 => &[],
        // SAFETY: by the caller's guarantee.
        _ => unsafe { slice::from_raw_parts(first, count) },
    }
}

/// Borrows an array of a caller for writing.
///
/// # Safety
/// The array has `count` elements and is not accessed otherwise as long as the reference is used.
unsafe fn array_mut<'a, T>(first: *mut T, count: usize) -> &'a mut [T] {
    match count {
        0 => &mut [],
        // SAFETY: by the caller's guarantee.
        _ => unsafe { slice::from_raw_parts_mut(first, count) },
    }
}

/// Borrows a file of a caller.
///
/// # Safety
/// `file` comes from `starfish_mpi_open` and is not freed as long as the reference is used.
unsafe fn file<'a>(file: *const CollectiveFile) -> &'a CollectiveFile {
    // SAFETY: by the caller's guarantee.
    unsafe { &*file }
}

/// Stores a number for a caller; numbers above `i64::MAX` are stored as `i64::MAX`.
///
/// # Safety
/// `into` is valid for writing.
unsafe fn put(number: Outcome<u64>, into: *mut i64) -> Outcome<()> {
    // SAFETY: by the caller's guarantee.
    unsafe { into.write(number?.try_into().unwrap_or(i64::MAX)) };
    Ok(())
}

/// Returns the pairs of an array that alternates keys and values and ends with a null pointer.
///
/// # Safety
/// The array has that form, or is null. A string that is not in UTF-8 ends the list.
unsafe fn hints<'a>(mut at: *const *const c_char) -> Vec<(&'a str, &'a str)> {
    let mut found = Vec::new();
    // SAFETY: `at` points to a key or to the end.
    while !at.is_null() && unsafe { !(*at).is_null() } {
        // SAFETY: each key is followed by its value.
        let pair = unsafe { (string(*at), string(*at.add(1))) };
        let (Ok(key), Ok(value)) = pair else { break };
        found.push((key, value));
        // SAFETY: each value is followed by a key or the end.
        at = unsafe { at.add(2) };
    }
    found
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_note_error(class: c_int, why: *const c_char) -> c_int {
    // SAFETY: the header requires a valid string.
    let why = unsafe { string(why) }.unwrap_or_default();
    let error = MpiError::new(ErrorClass::numbered(class as u64), why);
    to_c(|| {
        Err(match error.class {
            // The user does not expect an unsupported call, so log it.
            ErrorClass::Unsupported => error.logged(),
            _ => error.logged_elsewhere(),
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_note_own_error(class: c_int, why: *const c_char) -> c_int {
    // SAFETY: the header requires a valid string.
    let why = unsafe { string(why) }.unwrap_or_default();
    to_c(|| Err(MpiError::new(ErrorClass::numbered(class as u64), why).logged()))
}

#[unsafe(no_mangle)]
extern "C" fn starfish_mpi_tell_error() {
    failure::print_last(CallAccount::is_asked_for());
}

// Files by name.

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_is_ours(name: *const c_char) -> c_int {
    // SAFETY: the header requires a valid string.
    let name = unsafe { string(name) };
    name.is_ok_and(|name| crate::names::find(name).is_some()).into()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_connect(name: *const c_char) -> c_int {
    // SAFETY: the header requires a valid string.
    let name = unsafe { string(name) };
    of_name(name, |place| process::session(place).map(drop).map_err(MpiError::logged))
}

#[unsafe(no_mangle)]
extern "C" fn starfish_mpi_process(rank: u32, size: u32) {
    recording::note_process(rank, size);
}

#[unsafe(no_mangle)]
extern "C" fn starfish_mpi_progress(progress: Progress) {
    waiting::note_progress(progress);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_draw_name(into: *mut c_char) -> c_int {
    to_c(|| {
        let name = format!("{:016x}{:016x}\0", node::random()?, node::random()?);
        // SAFETY: the header requires room for this many bytes.
        unsafe { into.cast::<u8>().copy_from_nonoverlapping(name.as_ptr(), name.len()) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_hint_file(into: *mut c_char) {
    let mut lines = hint_file::read().into_bytes();
    lines.truncate(hint_file::BYTES_MAX);
    lines.push(0);
    // SAFETY: the header requires room for this many bytes.
    unsafe { into.cast::<u8>().copy_from_nonoverlapping(lines.as_ptr(), lines.len()) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_note_hints(lines: *const c_char) {
    // SAFETY: the header requires a valid string.
    hint_file::note(unsafe { string(lines) }.unwrap_or_default());
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_open(
    name: *const c_char,
    mode: c_int,
    group: *const c_char,
    rank: u32,
    size: u32,
    given: *const *const c_char,
    into: *mut *const CollectiveFile,
) -> c_int {
    // SAFETY: the header requires two strings and an array of strings.
    let (name, group, given) = unsafe { (string(name), string(group), hints(given)) };
    of_name(name, |place| {
        let mode = AccessMode::of_bits(mode)?;
        let mut hints = Hints::usual(size);
        hints.take_lines(&hint_file::noted());
        hints.take_environment();
        given.into_iter().for_each(|(key, value)| hints.take(key, value));
        let started = process::session(place)?;
        let file = CollectiveFile::open(started, place, mode, (group?, rank, size), hints)?;
        let file = Arc::new(file);
        open_files::enter(&file);
        // SAFETY: the header requires room for a pointer.
        unsafe { into.write(Arc::into_raw(file)) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_delete(name: *const c_char) -> c_int {
    // SAFETY: the header requires a valid string.
    let name = unsafe { string(name) };
    of_name(name, |place| {
        let session = process::session(place)?.session;
        let _call = session.traced_call("MPI_File_delete");
        let unlinked = session.unlink(&place.path);
        place.revalidate();
        Ok(unlinked?)
    })
}

// Collective calls on open files.

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_close(closed: *const CollectiveFile) -> c_int {
    // SAFETY: the header requires a valid file.
    let closed = unsafe { file(closed) };
    open_files::remove(closed);
    of_file(closed, || closed.close())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_file_free(freed: *const CollectiveFile) {
    // SAFETY: `starfish_mpi_open` passed this reference to the caller, and the caller returns it once.
    drop(unsafe { Arc::from_raw(freed) });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_sync(synced: *const CollectiveFile) -> c_int {
    // SAFETY: the header requires a valid file.
    let synced = unsafe { file(synced) };
    named(synced, "MPI_File_sync", CollectiveFile::sync)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_set_size(
    sized: *const CollectiveFile,
    bytes: i64,
    only_longer: c_int,
) -> c_int {
    // SAFETY: the header requires a valid file.
    let sized = unsafe { file(sized) };
    let name = if only_longer != 0 { "MPI_File_preallocate" } else { "MPI_File_set_size" };
    named(sized, name, |sized| sized.set_size(bytes, only_longer != 0))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_set_atomic(set: *const CollectiveFile, atomic: c_int) -> c_int {
    // SAFETY: the header requires a valid file.
    let set = unsafe { file(set) };
    named(set, "MPI_File_set_atomicity", |set| set.set_atomic(atomic != 0))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_seek_shared(
    sought: *const CollectiveFile,
    units: i64,
    whence: c_int,
) -> c_int {
    // SAFETY: the header requires a valid file.
    let sought = unsafe { file(sought) };
    named(sought, "MPI_File_seek_shared", |sought| sought.seek_shared(units, whence_of(whence)?))
}

// Independent calls on open files.

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_size(asked: *const CollectiveFile, bytes: *mut i64) -> c_int {
    // SAFETY: the header requires a valid file and room for a number.
    named(unsafe { file(asked) }, "MPI_File_get_size", |asked| unsafe { put(asked.size(), bytes) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_set_view(
    set: *const CollectiveFile,
    displacement: i64,
    unit_bytes: i64,
    of: *const FileType,
) -> c_int {
    // SAFETY: the header requires a valid file, and a type or null.
    let (set, of) = unsafe { (file(set), of.as_ref()) };
    named(set, "MPI_File_set_view", |set| {
        let of = of.ok_or_else(|| MpiError::new(ErrorClass::Type, "the datatype is unknown"))?;
        set.set_view(FileView::new(displacement, unit_bytes, of)?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_current_displacement(
    asked: *const CollectiveFile,
    into: *mut i64,
) -> c_int {
    // SAFETY: the header requires a valid file.
    let asked = unsafe { file(asked) };
    // SAFETY: the header requires room for a number.
    of_file(asked, || unsafe { put(asked.current_displacement(), into) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_seek(sought: *const CollectiveFile, units: i64, whence: c_int) -> c_int {
    // SAFETY: the header requires a valid file.
    let sought = unsafe { file(sought) };
    named(sought, "MPI_File_seek", |sought| sought.seek(units, whence_of(whence)?))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_position(asked: *const CollectiveFile, units: *mut i64) -> c_int {
    // SAFETY: the header requires a valid file and room for a number.
    named(unsafe { file(asked) }, "MPI_File_get_position", |asked| unsafe {
        put(Ok(asked.position()), units)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_shared_position(asked: *const CollectiveFile, units: *mut i64) -> c_int {
    // SAFETY: the header requires a valid file and room for a number.
    named(unsafe { file(asked) }, "MPI_File_get_position_shared", |asked| unsafe {
        put(asked.shared_position(), units)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_byte_offset(
    asked: *const CollectiveFile,
    units: i64,
    offset: *mut i64,
) -> c_int {
    // SAFETY: the header requires a valid file and room for a number.
    named(unsafe { file(asked) }, "MPI_File_get_byte_offset", |asked| unsafe {
        put(asked.byte_offset(units), offset)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_set_hints(
    set: *const CollectiveFile,
    given: *const *const c_char,
) -> c_int {
    // SAFETY: the header requires a valid file and an array of strings.
    let (set, given) = unsafe { (file(set), hints(given)) };
    named(set, "MPI_File_set_info", |set| set.take_hints(given.into_iter()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_set_view_hints(set: *const CollectiveFile, given: *const *const c_char) {
    // SAFETY: the header requires a valid file and an array of strings.
    unsafe { file(set).take_hints_with_view(hints(given).into_iter()) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_hint(
    asked: *const CollectiveFile,
    index: usize,
    key: *mut c_char,
    key_bytes: usize,
    value: *mut c_char,
    value_bytes: usize,
) -> c_int {
    let copy = |text: &str, into: *mut c_char, room: usize| {
        let Some(room) = room.checked_sub(1) else { return };
        let bytes = text.len().min(room);
        // SAFETY: the header requires room for this many bytes and a final 0.
        unsafe {
            into.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), bytes);
            into.add(bytes).write(0);
        }
    };
    // SAFETY: the header requires a valid file.
    let found = unsafe { file(asked) }.hint(index, |hint, of_hint| {
        copy(hint, key, key_bytes);
        copy(of_hint, value, value_bytes);
    });
    found.is_some().into()
}

// Reading and writing.

fn place_of(place: c_int, units: i64) -> Outcome<CallPlace> {
    match place {
        0 => Ok(CallPlace::At(units)),
        1 => Ok(CallPlace::Own),
        2 => Ok(CallPlace::Shared),
        3 => Ok(CallPlace::Ordered),
        _ => Err(argument("whence is invalid")),
    }
}

fn whence_of(whence: c_int) -> Outcome<Whence> {
    match whence {
        0 => Ok(Whence::Start),
        1 => Ok(Whence::Position),
        2 => Ok(Whence::End),
        _ => Err(argument("whence must be MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END")),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_read(
    from: *const CollectiveFile,
    place: c_int,
    together: c_int,
    units: i64,
    into: *mut c_void,
    bytes: usize,
    moved: *mut usize,
) -> c_int {
    // SAFETY: the header requires a valid file and room for this many bytes.
    let (from, into) = unsafe { (file(from), array_mut(into.cast::<u8>(), bytes)) };
    of_file(from, || {
        let read = from.read(place_of(place, units)?, together != 0, into)?;
        // SAFETY: the header requires room for a number.
        unsafe { moved.write(read as usize) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_write(
    to: *const CollectiveFile,
    place: c_int,
    together: c_int,
    units: i64,
    from: *const c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: the header requires this many bytes and a valid file.
    let (from, to) = unsafe { (array(from.cast::<u8>(), bytes), file(to)) };
    of_file(to, || to.write(place_of(place, units)?, together != 0, from.into()))
}

// Reading and writing of packed memory.

/// Packs elements into `bytes` bytes of memory, or unpacks them. Returns 0, or the class of an error that the function
/// has noted.
type Packing = unsafe extern "C" fn(of: *const c_void, packed: *mut c_void, bytes: usize) -> c_int;

/// Packs elements into a new buffer. Fails with the class of an error that has been noted.
///
/// # Safety
/// `pack` packs exactly `bytes` bytes from `of`.
unsafe fn packed(pack: Packing, of: *const c_void, bytes: usize) -> Result<Vec<u8>, c_int> {
    let mut packed = Vec::<u8>::new();
    if packed.try_reserve_exact(bytes).is_err() {
        let error = MpiError::new(ErrorClass::NoMemory, "not enough memory to pack the data");
        return Err(to_c(|| Err(error)));
    }
    // SAFETY: by the caller's guarantee; the buffer has room for `bytes` bytes.
    match unsafe { pack(of, packed.as_mut_ptr().cast(), bytes) } {
        0 => {
            // SAFETY: `pack` has initialised these bytes.
            unsafe { packed.set_len(bytes) };
            Ok(packed)
        }
        class => Err(class),
    }
}

/// Reads, unpacks the bytes, and stores their number in `moved`. Returns 0 or the class of the error.
///
/// # Safety
/// `unpack` unpacks any number of bytes up to the requested number, and `moved` is valid for writing.
unsafe fn unpacked(
    read: impl FnOnce() -> Outcome<Vec<u8>>,
    about: &CollectiveFile,
    (unpack, of): (Packing, *const c_void),
    moved: *mut usize,
) -> c_int {
    let mut bytes = Vec::new();
    let class = of_file(about, || {
        bytes = read()?;
        Ok(())
    });
    if class != 0 {
        return class;
    }
    // SAFETY: by the caller's guarantee.
    unsafe {
        moved.write(bytes.len());
        unpack(of, bytes.as_mut_ptr().cast(), bytes.len())
    }
}

/// Takes part in a collective call with no data, so that the other members need not wait. Returns `class`.
fn give_up(class: c_int, of: &CollectiveFile, place: c_int, together: c_int, units: i64) -> c_int {
    if together != 0 {
        // The function that determined `class` reports the reason.
        let _ = place_of(place, units).and_then(|place| of.begin_write(place, true, Cow::Borrowed(&[])));
    }
    class
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_read_packed(
    from: *const CollectiveFile,
    place: c_int,
    together: c_int,
    units: i64,
    unpack: Packing,
    of: *const c_void,
    bytes: usize,
    moved: *mut usize,
) -> c_int {
    // SAFETY: the header requires a valid file.
    let from = unsafe { file(from) };
    let read = || from.read_own(place_of(place, units)?, together != 0, bytes as u64);
    // SAFETY: the header requires a function that unpacks these elements, and room for a number.
    unsafe { unpacked(read, from, (unpack, of), moved) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_write_packed(
    to: *const CollectiveFile,
    place: c_int,
    together: c_int,
    units: i64,
    pack: Packing,
    of: *const c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: the header requires a valid file and a function that packs these elements.
    let (to, packed) = unsafe { (file(to), packed(pack, of, bytes)) };
    match packed {
        Ok(bytes) => of_file(to, || to.write(place_of(place, units)?, together != 0, bytes.into())),
        Err(class) => give_up(class, to, place, together, units),
    }
}

// Calls in flight.

/// A call in flight and its file.
struct BegunCall {
    of: Arc<CollectiveFile>,
    moving: DataTransfer,
}

/// Begins a call on a file, for C.
///
/// # Safety
/// `into` is valid for writing.
unsafe fn begin(
    of: &CollectiveFile,
    into: *mut *mut BegunCall,
    begin: impl FnOnce(&CollectiveFile) -> Outcome<DataTransfer>,
) -> c_int {
    of_file(of, || {
        let moving = begin(of)?;
        // SAFETY: `starfish_mpi_open` made this `Arc`; the added reference belongs to the call.
        let of = unsafe {
            Arc::increment_strong_count(of);
            Arc::from_raw(of)
        };
        // SAFETY: by the caller's guarantee.
        unsafe { into.write(Box::into_raw(Box::new(BegunCall { of, moving }))) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_begin_read(
    from: *const CollectiveFile,
    place: c_int,
    together: c_int,
    units: i64,
    bytes: usize,
    into: *mut *mut BegunCall,
) -> c_int {
    let read = |from: &CollectiveFile| from.begin_read(place_of(place, units)?, together != 0, bytes as u64);
    // SAFETY: the header requires a valid file and room for a pointer.
    unsafe { begin(file(from), into, read) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_begin_write(
    to: *const CollectiveFile,
    place: c_int,
    together: c_int,
    units: i64,
    from: *const c_void,
    bytes: usize,
    into: *mut *mut BegunCall,
) -> c_int {
    // SAFETY: the header requires this many bytes.
    let from = unsafe { array(from.cast::<u8>(), bytes) };
    let write = |to: &CollectiveFile| to.begin_write(place_of(place, units)?, together != 0, from.into());
    // SAFETY: the header requires a valid file and room for a pointer.
    unsafe { begin(file(to), into, write) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_begin_write_packed(
    to: *const CollectiveFile,
    place: c_int,
    together: c_int,
    units: i64,
    pack: Packing,
    of: *const c_void,
    bytes: usize,
    into: *mut *mut BegunCall,
) -> c_int {
    // SAFETY: the header requires a valid file and a function that packs these elements.
    let (to, packed) = unsafe { (file(to), packed(pack, of, bytes)) };
    let bytes = match packed {
        Ok(bytes) => bytes,
        Err(class) => return give_up(class, to, place, together, units),
    };
    let write = |to: &CollectiveFile| to.begin_write(place_of(place, units)?, together != 0, bytes.into());
    // SAFETY: the header requires room for a pointer.
    unsafe { begin(to, into, write) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_is_done(call: *const BegunCall) -> c_int {
    // SAFETY: the header requires a call that has begun.
    unsafe { &*call }.moving.is_done().into()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_end(
    ended: *mut BegunCall,
    into: *mut c_void,
    bytes: usize,
    moved: *mut usize,
) -> c_int {
    // SAFETY: a function that begins a call passed it to the caller, and the caller returns it once.
    let BegunCall { of, moving } = *unsafe { Box::from_raw(ended) };
    // SAFETY: the header requires room for this many bytes.
    let into = unsafe { array_mut(into.cast::<u8>(), bytes) };
    of_file(&of, || {
        let bytes = of.end(moving, into)?;
        // SAFETY: the header requires room for a number.
        unsafe { moved.write(bytes as usize) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_end_packed(
    ended: *mut BegunCall,
    unpack: Packing,
    of: *const c_void,
    moved: *mut usize,
) -> c_int {
    // SAFETY: a function that begins a call passed it to the caller, and the caller returns it once.
    let BegunCall { of: file, moving } = *unsafe { Box::from_raw(ended) };
    // SAFETY: the header requires a function that unpacks these elements, and room for a number.
    unsafe { unpacked(|| file.end_own(moving), &file, (unpack, of), moved) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_let_go(call: *mut BegunCall) {
    // SAFETY: a function that begins a call passed it to the caller, and the caller returns it once.
    drop(unsafe { Box::from_raw(call) });
}

// Types.

/// Makes a type for C; returns null if that fails.
fn made(make: impl FnOnce() -> Outcome<FileType>) -> *mut FileType {
    let mut made = ptr::null_mut();
    to_c(|| {
        made = Box::into_raw(Box::new(make()?));
        Ok(())
    });
    made
}

fn no_type() -> MpiError {
    MpiError::new(ErrorClass::Type, "a component type does not exist")
}

/// Borrows a type of a caller.
///
/// # Safety
/// `of` is null, or comes from a function for types and is not freed as long as the reference is used.
unsafe fn type_<'a>(of: *const FileType) -> Outcome<&'a FileType> {
    // SAFETY: by the caller's guarantee.
    unsafe { of.as_ref() }.ok_or_else(no_type)
}

#[unsafe(no_mangle)]
extern "C" fn starfish_mpi_type_bytes(count: i64) -> *mut FileType {
    made(|| FileType::bytes(count))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_type_contiguous(count: i64, of: *const FileType) -> *mut FileType {
    // SAFETY: the header requires a valid type.
    made(|| unsafe { type_(of) }?.contiguous(count))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_type_strided(
    count: i64,
    block: i64,
    stride: i64,
    of: *const FileType,
) -> *mut FileType {
    // SAFETY: the header requires a valid type.
    made(|| unsafe { type_(of) }?.contiguous(block)?.strided(count, stride))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_type_indexed(
    count: usize,
    blocks: *const i64,
    displacements: *const i64,
    of: *const FileType,
) -> *mut FileType {
    // SAFETY: the header requires two arrays of this length and a valid type.
    let (blocks, displacements, of) =
        unsafe { (array(blocks, count), array(displacements, count), type_(of)) };
    made(|| of?.indexed(blocks.iter().copied().zip(displacements.iter().copied())))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_type_struct(
    count: usize,
    blocks: *const i64,
    displacements: *const i64,
    types: *const *const FileType,
) -> *mut FileType {
    // SAFETY: the header requires arrays of this length.
    let (blocks, displacements) = unsafe { (array(blocks, count), array(displacements, count)) };
    // SAFETY: the header requires an array of valid types of this length.
    let types = unsafe { array(types, count) }.iter().map(|&of| unsafe { type_(of) });
    made(|| {
        let parts = blocks.iter().zip(types).zip(displacements).filter(|((block, _), _)| **block != 0);
        let parts: Outcome<Vec<(i64, FileType)>> =
            parts.map(|((&block, of), &displacement)| Ok((displacement, of?.contiguous(block)?))).collect();
        FileType::in_order(parts?.iter().map(|(displacement, part)| (*displacement, part)))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_type_resized(
    lower: i64,
    extent: i64,
    of: *const FileType,
) -> *mut FileType {
    // SAFETY: the header requires a valid type.
    made(|| unsafe { type_(of) }?.resized(lower, extent))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_type_box(
    sides: usize,
    lengths: *const i64,
    counts: *const i64,
    firsts: *const i64,
    rows_first: c_int,
    of: *const FileType,
) -> *mut FileType {
    // SAFETY: the header requires three arrays of this length and a valid type.
    let (lengths, counts, firsts, of) =
        unsafe { (array(lengths, sides), array(counts, sides), array(firsts, sides), type_(of)) };
    made(|| {
        let sides = lengths.iter().zip(counts).zip(firsts);
        let sides: Vec<BoxSide> =
            sides.map(|((&length, &count), &first)| BoxSide { length, count, first }).collect();
        array_box(of?, &sides, rows_first != 0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_type_dealt(
    sides: usize,
    lengths: *const i64,
    dealings: *const i64,
    blocks: *const i64,
    processes: *const i64,
    rank: i64,
    rows_first: c_int,
    of: *const FileType,
) -> *mut FileType {
    // SAFETY: the header requires four arrays of this length and a valid type.
    let (lengths, dealings, blocks, processes, of) = unsafe {
        let (lengths, dealings) = (array(lengths, sides), array(dealings, sides));
        (lengths, dealings, array(blocks, sides), array(processes, sides), type_(of))
    };
    made(|| {
        let side = |index: usize| {
            let dealing = match (dealings[index], blocks[index]) {
                (0, _) => DimensionDistribution::Whole,
                (1, 0) => DimensionDistribution::Blocks(None),
                (1, block) => DimensionDistribution::Blocks(Some(block)),
                (2, block) => DimensionDistribution::Cyclic(block),
                _ => return Err(MpiError::new(ErrorClass::Type, "the array has an unknown distribution")),
            };
            Ok(DistributedDimension { length: lengths[index], dealing, processes: processes[index] })
        };
        let sides: Outcome<Vec<DistributedDimension>> = (0..sides).map(side).collect();
        dealt_array(of?, &sides?, rank, rows_first != 0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_type_free(freed: *mut FileType) {
    if !freed.is_null() {
        // SAFETY: a function for types passed it to the caller, and the caller returns it once.
        drop(unsafe { Box::from_raw(freed) });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_type_run(
    of: *const FileType,
    position: i64,
    displacement: *mut i64,
    bytes: *mut i64,
) -> c_int {
    // SAFETY: the header requires a valid type.
    let of = unsafe { type_(of) };
    to_c(|| {
        let (first, run) = of?.run_at(position)?;
        // SAFETY: the header requires room for two numbers.
        unsafe {
            displacement.write(first);
            bytes.write(run);
        }
        Ok(())
    })
}
