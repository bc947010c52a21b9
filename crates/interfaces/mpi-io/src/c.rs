//! The functions of `include/starfish_mpi_io.h`.
//!
//! `unsafe` here is what a face for C consists of: pointers are what the header asks for. Its callers are the shims of
//! `shim/`, which keep this: a file is of `starfish_mpi_open` and not freed, a type of one of the functions for
//! types and not freed, a string ends, an array has as many elements as it is said to have.

#![expect(unsafe_code, reason = "a face for C: see above")]

use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::slice;
use std::sync::Arc;

use crate::account::CallAccount;
use crate::call_place::CallPlace;
use crate::collective_file::{CollectiveFile, Whence};
use crate::failure::{self, ErrorClass, MpiError, Outcome};
use crate::file_array::{BoxSide, Dealing, DealtSide, array_box, dealt_array};
use crate::file_type::FileType;
use crate::file_view::FileView;
use crate::hint_file;
use crate::hints::Hints;
use crate::mode::AccessMode;
use crate::moving::Moving;
use crate::names::NamedPlace;
use crate::open_files;
use crate::process;
use crate::recording;
use crate::waiting::{self, Progress};

/// The number of the outcome of `call`. A panic stays here: it has been told on standard error.
fn to_c(call: impl FnOnce() -> Outcome<()>) -> c_int {
    let outcome = catch_unwind(AssertUnwindSafe(call));
    let outcome = outcome.unwrap_or_else(|_| Err(MpiError::new(ErrorClass::Io, "a defect of Starfish")));
    failure::number(outcome)
}

/// The same of a call on an open file, which has this name for whoever traces this process.
fn named(
    of: &CollectiveFile,
    name: &'static str,
    call: impl FnOnce(&CollectiveFile) -> Outcome<()>,
) -> c_int {
    let _call = of.traced(name);
    of_file(of, || call(of))
}

/// The same of a call without a name.
fn of_file(of: &CollectiveFile, call: impl FnOnce() -> Outcome<()>) -> c_int {
    to_c(|| call().map_err(|error| error.about(of.path())))
}

/// The same of a call on the file of a name.
fn of_name(name: Outcome<&str>, call: impl FnOnce(&NamedPlace) -> Outcome<()>) -> c_int {
    to_c(|| {
        let place = process::place(name?)?;
        call(&place).map_err(|error| error.about(&place.path))
    })
}

fn argument(why: &str) -> MpiError {
    MpiError::new(ErrorClass::Argument, why)
}

/// A string of a caller.
///
/// # Safety
/// It is null or a string that ends and stays as long as the reference is used.
unsafe fn string<'a>(text: *const c_char) -> Outcome<&'a str> {
    if text.is_null() {
        return Err(argument("a string is NULL"));
    }
    // SAFETY: as the caller says.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| MpiError::new(ErrorClass::BadFile, format!("{text:?} is not in UTF-8")))
}

/// An array of a caller.
///
/// # Safety
/// It has `count` elements, and stays as long as the reference is used.
unsafe fn array<'a, T>(first: *const T, count: usize) -> &'a [T] {
    match count {
        0 => &[],
        // SAFETY: as the caller says.
        _ => unsafe { slice::from_raw_parts(first, count) },
    }
}

/// The same, to be filled.
///
/// # Safety
/// It has `count` elements, which nobody else uses as long as the reference is.
unsafe fn array_mut<'a, T>(first: *mut T, count: usize) -> &'a mut [T] {
    match count {
        0 => &mut [],
        // SAFETY: as the caller says.
        _ => unsafe { slice::from_raw_parts_mut(first, count) },
    }
}

/// A file of a caller.
///
/// # Safety
/// It is of `starfish_mpi_open`, and not freed as long as the reference is used.
unsafe fn file<'a>(file: *const CollectiveFile) -> &'a CollectiveFile {
    // SAFETY: as the caller says.
    unsafe { &*file }
}

/// Puts a number where a caller wants it.
///
/// # Safety
/// `into` has room for it.
unsafe fn put(number: Outcome<u64>, into: *mut i64) -> Outcome<()> {
    // SAFETY: as the caller says.
    unsafe { into.write(number?.try_into().unwrap_or(i64::MAX)) };
    Ok(())
}

/// Keys and values in turn, up to a null.
///
/// # Safety
/// They are so, or the array is null; strings that are not in UTF-8 end it.
unsafe fn hints<'a>(mut at: *const *const c_char) -> Vec<(&'a str, &'a str)> {
    let mut found = Vec::new();
    // SAFETY: what is pointed at is a key, or the end.
    while !at.is_null() && unsafe { !(*at).is_null() } {
        // SAFETY: after a key comes its value.
        let pair = unsafe { (string(*at), string(*at.add(1))) };
        let (Ok(key), Ok(value)) = pair else { break };
        found.push((key, value));
        // SAFETY: after a value comes a key, or the end.
        at = unsafe { at.add(2) };
    }
    found
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_note_error(class: c_int, why: *const c_char) -> c_int {
    // SAFETY: a string, as the header asks for.
    let why = unsafe { string(why) }.unwrap_or_default();
    let error = MpiError::new(ErrorClass::numbered(class as u64), why);
    to_c(|| {
        Err(match error.class {
            // What the shim cannot do nobody expects.
            ErrorClass::Unsupported => error.logged(),
            _ => error.logged_elsewhere(),
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_note_own_error(class: c_int, why: *const c_char) -> c_int {
    // SAFETY: a string, as the header asks for.
    let why = unsafe { string(why) }.unwrap_or_default();
    to_c(|| Err(MpiError::new(ErrorClass::numbered(class as u64), why).logged()))
}

#[unsafe(no_mangle)]
extern "C" fn starfish_mpi_tell_error() {
    failure::tell_last(CallAccount::is_asked_for());
}

// Files by name.

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_is_ours(name: *const c_char) -> c_int {
    // SAFETY: a string, as the header asks for.
    let name = unsafe { string(name) };
    name.is_ok_and(|name| crate::names::find(name).is_some()).into()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_connect(name: *const c_char) -> c_int {
    // SAFETY: a string, as the header asks for.
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
        // SAFETY: there is room for as many, as the header asks for.
        unsafe { into.cast::<u8>().copy_from_nonoverlapping(name.as_ptr(), name.len()) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_hint_file(into: *mut c_char) {
    let mut lines = hint_file::read().into_bytes();
    lines.truncate(hint_file::BYTES_MAX);
    lines.push(0);
    // SAFETY: there is room for as many, as the header asks for.
    unsafe { into.cast::<u8>().copy_from_nonoverlapping(lines.as_ptr(), lines.len()) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_note_hints(lines: *const c_char) {
    // SAFETY: a string, as the header asks for.
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
    // SAFETY: two strings and an array of strings, as the header asks for.
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
        // SAFETY: there is room for a pointer, as the header asks for.
        unsafe { into.write(Arc::into_raw(file)) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_delete(name: *const c_char) -> c_int {
    // SAFETY: a string, as the header asks for.
    let name = unsafe { string(name) };
    of_name(name, |place| {
        let session = process::session(place)?.session;
        let _call = session.traced_call("MPI_File_delete");
        let unlinked = session.unlink(&place.path);
        place.revalidate();
        Ok(unlinked?)
    })
}

// Open files, by all processes of the group.

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_close(closed: *const CollectiveFile) -> c_int {
    // SAFETY: a file, as the header asks for.
    let closed = unsafe { file(closed) };
    open_files::remove(closed);
    of_file(closed, || closed.close())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_file_free(freed: *const CollectiveFile) {
    // SAFETY: `starfish_mpi_open` gave it away, and the caller gives it back, once.
    drop(unsafe { Arc::from_raw(freed) });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_sync(synced: *const CollectiveFile) -> c_int {
    // SAFETY: a file, as the header asks for.
    let synced = unsafe { file(synced) };
    named(synced, "MPI_File_sync", CollectiveFile::sync)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_set_size(
    sized: *const CollectiveFile,
    bytes: i64,
    only_longer: c_int,
) -> c_int {
    // SAFETY: a file, as the header asks for.
    let sized = unsafe { file(sized) };
    let name = if only_longer != 0 { "MPI_File_preallocate" } else { "MPI_File_set_size" };
    named(sized, name, |sized| sized.set_size(bytes, only_longer != 0))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_set_atomic(set: *const CollectiveFile, atomic: c_int) -> c_int {
    // SAFETY: a file, as the header asks for.
    let set = unsafe { file(set) };
    named(set, "MPI_File_set_atomicity", |set| set.set_atomic(atomic != 0))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_seek_shared(
    sought: *const CollectiveFile,
    units: i64,
    whence: c_int,
) -> c_int {
    // SAFETY: a file, as the header asks for.
    let sought = unsafe { file(sought) };
    named(sought, "MPI_File_seek_shared", |sought| sought.seek_shared(units, whence_of(whence)?))
}

// Open files, by each process for itself.

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_size(asked: *const CollectiveFile, bytes: *mut i64) -> c_int {
    // SAFETY: a file and room for a number, as the header asks for.
    named(unsafe { file(asked) }, "MPI_File_get_size", |asked| unsafe { put(asked.size(), bytes) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_set_view(
    set: *const CollectiveFile,
    displacement: i64,
    unit_bytes: i64,
    of: *const FileType,
) -> c_int {
    // SAFETY: a file and a type, as the header asks for, or null.
    let (set, of) = unsafe { (file(set), of.as_ref()) };
    named(set, "MPI_File_set_view", |set| {
        let of = of.ok_or_else(|| MpiError::new(ErrorClass::Type, "there is no such type"))?;
        set.set_view(FileView::new(displacement, unit_bytes, of)?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_current_displacement(
    asked: *const CollectiveFile,
    into: *mut i64,
) -> c_int {
    // SAFETY: a file, as the header asks for.
    let asked = unsafe { file(asked) };
    // SAFETY: room for a number, as the header asks for.
    of_file(asked, || unsafe { put(asked.current_displacement(), into) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_seek(sought: *const CollectiveFile, units: i64, whence: c_int) -> c_int {
    // SAFETY: a file, as the header asks for.
    let sought = unsafe { file(sought) };
    named(sought, "MPI_File_seek", |sought| sought.seek(units, whence_of(whence)?))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_position(asked: *const CollectiveFile, units: *mut i64) -> c_int {
    // SAFETY: a file and room for a number, as the header asks for.
    named(unsafe { file(asked) }, "MPI_File_get_position", |asked| unsafe {
        put(Ok(asked.position()), units)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_shared_position(asked: *const CollectiveFile, units: *mut i64) -> c_int {
    // SAFETY: a file and room for a number, as the header asks for.
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
    // SAFETY: a file and room for a number, as the header asks for.
    named(unsafe { file(asked) }, "MPI_File_get_byte_offset", |asked| unsafe {
        put(asked.byte_offset(units), offset)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_set_hints(
    set: *const CollectiveFile,
    given: *const *const c_char,
) -> c_int {
    // SAFETY: a file and an array of strings, as the header asks for.
    let (set, given) = unsafe { (file(set), hints(given)) };
    named(set, "MPI_File_set_info", |set| set.take_hints(given.into_iter()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_set_view_hints(set: *const CollectiveFile, given: *const *const c_char) {
    // SAFETY: a file and an array of strings, as the header asks for.
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
        // SAFETY: there is room for as many and a 0, as the header asks for.
        unsafe {
            into.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), bytes);
            into.add(bytes).write(0);
        }
    };
    // SAFETY: a file, as the header asks for.
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
        _ => Err(argument("there is no such place")),
    }
}

fn whence_of(whence: c_int) -> Outcome<Whence> {
    match whence {
        0 => Ok(Whence::Start),
        1 => Ok(Whence::Position),
        2 => Ok(Whence::End),
        _ => Err(argument("a pointer is moved from the start, from where it is, or from the end")),
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
    // SAFETY: a file and room for as many, as the header asks for.
    let (from, into) = unsafe { (file(from), array_mut(into.cast::<u8>(), bytes)) };
    of_file(from, || {
        let read = from.read(place_of(place, units)?, together != 0, into)?;
        // SAFETY: there is room for a number, as the header asks for.
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
    // SAFETY: there are as many, and a file, as the header asks for.
    let (from, to) = unsafe { (array(from.cast::<u8>(), bytes), file(to)) };
    of_file(to, || to.write(place_of(place, units)?, together != 0, from.into()))
}

// The same of memory that is packed.

/// Packs elements into memory for so many bytes, or unpacks them from there; the class of an error, which it has noted.
type Packing = unsafe extern "C" fn(of: *const c_void, packed: *mut c_void, bytes: usize) -> c_int;

/// Elements, packed into memory of ours; the class of an error, which has been noted.
///
/// # Safety
/// `pack` packs so many bytes of them.
unsafe fn packed(pack: Packing, of: *const c_void, bytes: usize) -> Result<Vec<u8>, c_int> {
    let mut packed = Vec::<u8>::new();
    if packed.try_reserve_exact(bytes).is_err() {
        let error = MpiError::new(ErrorClass::NoMemory, "there is no memory to pack in");
        return Err(to_c(|| Err(error)));
    }
    // SAFETY: as the caller says; there is room for them.
    match unsafe { pack(of, packed.as_mut_ptr().cast(), bytes) } {
        0 => {
            // SAFETY: they have been packed there.
            unsafe { packed.set_len(bytes) };
            Ok(packed)
        }
        class => Err(class),
    }
}

/// Unpacks what was read, if it was, and says how many bytes that are.
///
/// # Safety
/// `unpack` unpacks any number of bytes up to what was asked for, and there is room for a number.
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
    // SAFETY: as the caller says.
    unsafe {
        moved.write(bytes.len());
        unpack(of, bytes.as_mut_ptr().cast(), bytes.len())
    }
}

/// Begins a call with nothing, if all members make it, so that the others need not wait; returns the class of why.
fn give_up(class: c_int, of: &CollectiveFile, place: c_int, together: c_int, units: i64) -> c_int {
    if together != 0 {
        // Why is told by whoever knows the class.
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
    // SAFETY: a file, as the header asks for.
    let from = unsafe { file(from) };
    let read = || from.read_own(place_of(place, units)?, together != 0, bytes as u64);
    // SAFETY: a function that unpacks these and room for a number, as the header asks for.
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
    // SAFETY: a file and a function that packs these, as the header asks for.
    let (to, packed) = unsafe { (file(to), packed(pack, of, bytes)) };
    match packed {
        Ok(bytes) => of_file(to, || to.write(place_of(place, units)?, together != 0, bytes.into())),
        Err(class) => give_up(class, to, place, together, units),
    }
}

// Calls under way.

/// A call that has begun, and the file that it is of.
struct BegunCall {
    of: Arc<CollectiveFile>,
    moving: Moving,
}

/// Begins a call on a file, for C.
///
/// # Safety
/// There is room for a pointer.
unsafe fn begin(
    of: &CollectiveFile,
    into: *mut *mut BegunCall,
    begin: impl FnOnce(&CollectiveFile) -> Outcome<Moving>,
) -> c_int {
    of_file(of, || {
        let moving = begin(of)?;
        // SAFETY: it is of `starfish_mpi_open`, which made it so, and one more has it from here on.
        let of = unsafe {
            Arc::increment_strong_count(of);
            Arc::from_raw(of)
        };
        // SAFETY: as the caller says.
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
    // SAFETY: a file and room for a pointer, as the header asks for.
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
    // SAFETY: there are as many, as the header asks for.
    let from = unsafe { array(from.cast::<u8>(), bytes) };
    let write = |to: &CollectiveFile| to.begin_write(place_of(place, units)?, together != 0, from.into());
    // SAFETY: a file and room for a pointer, as the header asks for.
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
    // SAFETY: a file and a function that packs these, as the header asks for.
    let (to, packed) = unsafe { (file(to), packed(pack, of, bytes)) };
    let bytes = match packed {
        Ok(bytes) => bytes,
        Err(class) => return give_up(class, to, place, together, units),
    };
    let write = |to: &CollectiveFile| to.begin_write(place_of(place, units)?, together != 0, bytes.into());
    // SAFETY: there is room for a pointer, as the header asks for.
    unsafe { begin(to, into, write) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_is_done(call: *const BegunCall) -> c_int {
    // SAFETY: a call that has begun, as the header asks for.
    unsafe { &*call }.moving.is_done().into()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_end(
    ended: *mut BegunCall,
    into: *mut c_void,
    bytes: usize,
    moved: *mut usize,
) -> c_int {
    // SAFETY: a function that begins gave it away, and the caller gives it back, once.
    let BegunCall { of, moving } = *unsafe { Box::from_raw(ended) };
    // SAFETY: there is room for as many, as the header asks for.
    let into = unsafe { array_mut(into.cast::<u8>(), bytes) };
    of_file(&of, || {
        let bytes = of.end(moving, into)?;
        // SAFETY: there is room for a number, as the header asks for.
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
    // SAFETY: a function that begins gave it away, and the caller gives it back, once.
    let BegunCall { of: file, moving } = *unsafe { Box::from_raw(ended) };
    // SAFETY: a function that unpacks these and room for a number, as the header asks for.
    unsafe { unpacked(|| file.end_own(moving), &file, (unpack, of), moved) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_let_go(call: *mut BegunCall) {
    // SAFETY: a function that begins gave it away, and the caller gives it back, once.
    drop(unsafe { Box::from_raw(call) });
}

// Types.

/// A new type for C.
fn made(make: impl FnOnce() -> Outcome<FileType>) -> *mut FileType {
    let mut made = ptr::null_mut();
    to_c(|| {
        made = Box::into_raw(Box::new(make()?));
        Ok(())
    });
    made
}

fn no_type() -> MpiError {
    MpiError::new(ErrorClass::Type, "a type that it is made of does not exist")
}

/// A type of a caller.
///
/// # Safety
/// It is null, or of a function for types, and not freed as long as the reference is used.
unsafe fn type_<'a>(of: *const FileType) -> Outcome<&'a FileType> {
    // SAFETY: as the caller says.
    unsafe { of.as_ref() }.ok_or_else(no_type)
}

#[unsafe(no_mangle)]
extern "C" fn starfish_mpi_type_bytes(count: i64) -> *mut FileType {
    made(|| FileType::bytes(count))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_type_contiguous(count: i64, of: *const FileType) -> *mut FileType {
    // SAFETY: a type, as the header asks for.
    made(|| unsafe { type_(of) }?.contiguous(count))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_type_strided(
    count: i64,
    block: i64,
    stride: i64,
    of: *const FileType,
) -> *mut FileType {
    // SAFETY: a type, as the header asks for.
    made(|| unsafe { type_(of) }?.contiguous(block)?.strided(count, stride))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_type_indexed(
    count: usize,
    blocks: *const i64,
    displacements: *const i64,
    of: *const FileType,
) -> *mut FileType {
    // SAFETY: two arrays of this length and a type, as the header asks for.
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
    // SAFETY: arrays of this length, as the header asks for.
    let (blocks, displacements) = unsafe { (array(blocks, count), array(displacements, count)) };
    // SAFETY: the same, of types.
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
    // SAFETY: a type, as the header asks for.
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
    // SAFETY: three arrays of this length and a type, as the header asks for.
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
    // SAFETY: four arrays of this length and a type, as the header asks for.
    let (lengths, dealings, blocks, processes, of) = unsafe {
        let (lengths, dealings) = (array(lengths, sides), array(dealings, sides));
        (lengths, dealings, array(blocks, sides), array(processes, sides), type_(of))
    };
    made(|| {
        let side = |index: usize| {
            let dealing = match (dealings[index], blocks[index]) {
                (0, _) => Dealing::Whole,
                (1, 0) => Dealing::Blocks(None),
                (1, block) => Dealing::Blocks(Some(block)),
                (2, block) => Dealing::Cyclic(block),
                _ => return Err(MpiError::new(ErrorClass::Type, "an array: it is dealt in no known way")),
            };
            Ok(DealtSide { length: lengths[index], dealing, processes: processes[index] })
        };
        let sides: Outcome<Vec<DealtSide>> = (0..sides).map(side).collect();
        dealt_array(of?, &sides?, rank, rows_first != 0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn starfish_mpi_type_free(freed: *mut FileType) {
    if !freed.is_null() {
        // SAFETY: a function for types gave it away, and the caller gives it back, once.
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
    // SAFETY: a type, as the header asks for.
    let of = unsafe { type_(of) };
    to_c(|| {
        let (first, run) = of?.run_at(position)?;
        // SAFETY: there is room for two numbers, as the header asks for.
        unsafe {
            displacement.write(first);
            bytes.write(run);
        }
        Ok(())
    })
}
