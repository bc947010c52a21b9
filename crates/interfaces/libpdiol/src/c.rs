//! The functions of `include/pdiol.h`.
//!
//! Each function locks the file, takes back the contents of the front, does its work in safe Rust, and publishes the
//! buffered bytes in the front again. `unsafe` is needed only for the C interface: pointers are valid as the header
//! demands, or null, which is rejected. The man pages state the duties of callers: a `PFS_FILE` comes from
//! `pdiol_fopen` and is not closed, a string is terminated, a buffer has the stated length.

#![expect(unsafe_code, reason = "a C interface: see above")]

use std::ffi::{CStr, OsString, c_char, c_int, c_long, c_void};
use std::io::SeekFrom;
use std::os::unix::ffi::OsStringExt;
use std::ptr;
use std::slice;
use std::sync::{Arc, Once};

use pdiol::{Advice, Error, ErrorKind, FileAttributes, Result, Session, Stat};

use crate::failure;
use crate::front::Front;
use crate::handle::{Handle, Held};
use crate::process;
use crate::stream::Stream;

/// Opens a file, and adds it to the open files.
fn open(path: &[u8], mode: &str) -> Result<Arc<Handle>> {
    let handle = Handle::new(Stream::open(&session(path)?, path, mode)?);
    process::enter(&handle);
    Ok(handle)
}

/// Returns the value of an outcome for C, or `failed` after recording the error.
fn to_c<T>(outcome: Result<T>, failed: T) -> T {
    outcome.unwrap_or_else(|error| {
        failure::set_error(&error);
        failed
    })
}

/// Returns 0, or -1 after setting errno.
fn done(outcome: Result<()>) -> c_int {
    to_c(outcome.map(|()| 0), -1)
}

fn invalid(what: &str, why: &str) -> Error {
    Error::new(ErrorKind::Invalid, what, why)
}

/// Returns the handle that the caller passed.
///
/// # Safety
/// `file` is null or from `pdiol_fopen`, and not closed as long as the reference is used.
unsafe fn handle<'a>(file: *const Handle) -> Result<&'a Handle> {
    process::check_not_forked("a PFS_FILE")?;
    // SAFETY: guaranteed by the caller.
    let handle = unsafe { file.as_ref() };
    handle.ok_or_else(|| {
        Error::new(ErrorKind::Closed, "a PFS_FILE", "it is NULL")
            .with_remedy("Check the result of pdiol_fopen")
    })
}

/// Runs `work` with the file locked, and then publishes the buffered bytes in the front.
///
/// # Safety
/// See [`handle`].
unsafe fn with<T>(file: *const Handle, work: impl FnOnce(&mut Stream) -> Result<T>) -> Result<T> {
    // SAFETY: guaranteed by the caller.
    let handle = unsafe { handle(file) }?;
    let mut held = Held::take(handle);
    let outcome = work(held.stream());
    held.stream().show_bytes(&handle.front);
    outcome
}

/// Returns a string of a caller.
///
/// # Safety
/// `text` is null or a terminated string that stays valid as long as the reference is used.
unsafe fn string<'a>(text: *const c_char, what: &str) -> Result<&'a CStr> {
    if text.is_null() {
        return Err(invalid(what, "it is NULL"));
    }
    // SAFETY: guaranteed by the caller.
    Ok(unsafe { CStr::from_ptr(text) })
}

/// Returns a path of a caller, which need not be UTF-8.
///
/// # Safety
/// See [`string`].
unsafe fn path_of<'a>(path: *const c_char) -> Result<&'a [u8]> {
    // SAFETY: guaranteed by the caller.
    unsafe { string(path, "a path") }.map(CStr::to_bytes)
}

/// Returns the session for an operation on this path.
fn session(path: &[u8]) -> Result<Session> {
    process::session(&String::from_utf8_lossy(path))
}

/// Layout of `struct pdiol_state_struct`.
#[repr(C)]
pub(crate) struct State {
    size: i64,
    block_size: i64,
    disk_number: i32,
    mode: u32,
    uid: u32,
    gid: u32,
    accessed: i64,
    modified: i64,
    changed: i64,
}

impl From<Stat> for State {
    fn from(stat: Stat) -> State {
        let Stat { bytes, block_bytes, stripes, attributes } = stat;
        let number = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let disk_number = i32::try_from(stripes).unwrap_or(i32::MAX);
        let FileAttributes { mode, uid, gid, accessed, modified, changed } = attributes;
        State {
            size: number(bytes),
            block_size: number(block_bytes),
            disk_number,
            mode: mode.into(),
            uid,
            gid,
            accessed,
            modified,
            changed,
        }
    }
}

/// # Safety
/// `into` is null or valid for writing.
unsafe fn put(stat: Result<Stat>, into: *mut State) -> c_int {
    let stat = stat.and_then(|stat| match into.is_null() {
        true => Err(invalid("a pdiol_state_struct", "it is NULL")),
        false => Ok(stat),
    });
    // SAFETY: the pointer is not null, and the caller guarantees the rest.
    done(stat.map(|stat| unsafe { into.write(stat.into()) }))
}

// Start and end of the library.

extern "C" fn at_exit() {
    if process::session("").is_ok() {
        // Ignore the outcome: a program that needs it calls finalize_pdiol.
        let _ = process::finish();
    }
}

unsafe extern "C" fn before_fork() {
    process::prepare_fork();
}

unsafe extern "C" fn in_forking() {
    process::end_fork();
}

unsafe extern "C" fn in_forked() {
    process::note_fork();
}

#[unsafe(no_mangle)]
unsafe extern "C" fn initialize_pdiol(pargc: *mut c_int, pargv: *mut *mut *mut c_char) -> c_int {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: functions without arguments, of code that is not unloaded before the process ends.
        unsafe {
            libc::atexit(at_exit);
            libc::pthread_atfork(Some(before_fork), Some(in_forking), Some(in_forked));
        }
    });
    // SAFETY: the arguments of `main`, or null.
    let count = unsafe { pargc.as_mut() };
    // SAFETY: the same.
    let vector = unsafe { pargv.as_ref() }.copied().filter(|vector| !vector.is_null());
    let (Some(count), Some(vector)) = (count, vector) else {
        return done(process::start(&mut Vec::new()));
    };
    let length = usize::try_from(*count).unwrap_or(0);
    // SAFETY: `argv` of `main` has `count` strings, and is ours to change.
    let vector = unsafe { slice::from_raw_parts_mut(vector, length) };
    // SAFETY: each of them is a string.
    let text = |&argument: &*mut c_char| unsafe { CStr::from_ptr(argument) }.to_bytes().to_vec();
    let mut arguments: Vec<OsString> =
        vector.iter().take_while(|argument| !argument.is_null()).map(text).map(OsString::from_vec).collect();
    let before = arguments.len();
    let outcome = process::start(&mut arguments);
    // The removed arguments are the first ones after the program's name.
    let taken = before - arguments.len();
    if taken > 0 {
        vector.copy_within(taken + 1.., 1);
        vector[before - taken] = ptr::null_mut();
        *count -= taken as c_int;
    }
    done(outcome)
}

#[unsafe(no_mangle)]
extern "C" fn finalize_pdiol() -> c_int {
    done(process::finish())
}

// Files by name.

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_fopen(path: *const c_char, mode: *const c_char) -> *const Handle {
    // SAFETY: two strings, as the header demands.
    let strings = unsafe { path_of(path).and_then(|path| Ok((path, string(mode, "a mode")?))) };
    // A byte that is replaced here is not a valid letter, so such a mode is rejected.
    let opened = strings.and_then(|(path, mode)| open(path, &mode.to_string_lossy()));
    to_c(opened.map(Arc::into_raw), ptr::null())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_stat(path: *const c_char, pstat: *mut State) -> c_int {
    // SAFETY: a string, as the header demands.
    let stat = unsafe { path_of(path) }.and_then(|path| session(path)?.stat_path(path));
    // SAFETY: room for a state, as the header demands.
    unsafe { put(stat, pstat) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_unlink(path: *const c_char) -> c_int {
    // SAFETY: a string, as the header demands.
    let path = unsafe { path_of(path) };
    done(path.and_then(|path| session(path)?.unlink_path(path)))
}

// Open files.

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_fclose(file: *const Handle) -> c_int {
    // SAFETY: a file, as the header demands.
    if let Err(error) = unsafe { handle(file) } {
        return done(Err(error));
    }
    // SAFETY: the pointer is from `pdiol_fopen`, and the caller returns it once.
    let handle = unsafe { Arc::from_raw(file) };
    process::leave(&handle);
    done(handle.close())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_fflush(file: *const Handle) -> c_int {
    if !file.is_null() {
        // SAFETY: a file, as the header demands.
        return done(unsafe { with(file, Stream::flush) });
    }
    let mut outcome = process::check_not_forked("pdiol_fflush");
    if outcome.is_err() {
        return done(outcome);
    }
    for handle in process::open_files() {
        let mut held = Held::take(&handle);
        // If another thread has closed the file since then, the close has written its data.
        if held.stream().is_open() {
            outcome = outcome.and(held.stream().flush());
        }
    }
    done(outcome)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_fstat(file: *const Handle, pstat: *mut State) -> c_int {
    // SAFETY: a file and room for a state, as the header demands.
    unsafe { put(with(file, Stream::stat), pstat) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_ftruncate(file: *const Handle, size: i64) -> c_int {
    let work = |stream: &mut Stream| {
        stream.set_len(u64::try_from(size).map_err(|_| invalid("a size", "it is negative"))?)
    };
    // SAFETY: a file, as the header demands.
    done(unsafe { with(file, work) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_hint(file: *const Handle, access_pattern: c_int, hint: c_int) -> c_int {
    const FINAL_WRITE: c_int = 1;
    const TEMPORARY_FILE: c_int = 2;
    let work = |stream: &mut Stream| {
        let pattern = match access_pattern {
            0 => Advice::Normal,
            1 => Advice::Sequential,
            2 => Advice::Random,
            other => return Err(invalid("an access pattern", &format!("the value {other} is invalid"))),
        };
        if hint & !(FINAL_WRITE | TEMPORARY_FILE) != 0 {
            return Err(invalid("a hint", &format!("the value {hint} is invalid")));
        }
        stream.hint(pattern)?;
        let hints = [(TEMPORARY_FILE, Advice::Temporary), (FINAL_WRITE, Advice::FinalWrite)];
        let given = hints.into_iter().filter(|(bit, _)| hint & bit != 0);
        given.map(|(_, hint)| hint).try_for_each(|hint| stream.hint(hint))
    };
    // SAFETY: a file, as the header demands.
    done(unsafe { with(file, work) })
}

/// Gives advice about a range; see `pdiol_hint(3)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_fadvise(file: *const Handle, offset: i64, length: i64, advice: c_int) -> c_int {
    let work = |stream: &mut Stream| {
        let number = |number: i64, what| u64::try_from(number).map_err(|_| invalid(what, "it is negative"));
        let (offset, bytes) = (number(offset, "an offset")?, number(length, "a length")?);
        // A length of 0 means everything from the offset, as for posix_fadvise.
        let bytes = if bytes == 0 { i64::MAX as u64 - offset } else { bytes };
        stream.hint(match advice {
            libc::POSIX_FADV_NORMAL => Advice::Normal,
            libc::POSIX_FADV_SEQUENTIAL => Advice::Sequential,
            libc::POSIX_FADV_RANDOM => Advice::Random,
            libc::POSIX_FADV_WILLNEED => Advice::WillNeed { offset, bytes },
            libc::POSIX_FADV_DONTNEED => Advice::DontNeed { offset, bytes },
            // The cache evicts pages that are read once before others, with or without this advice.
            libc::POSIX_FADV_NOREUSE => return Ok(()),
            other => return Err(invalid("advice", &format!("the value {other} is invalid"))),
        })
    };
    // SAFETY: a file, as the header demands.
    done(unsafe { with(file, work) })
}

// Reading and writing.

/// Returns the number of bytes of `items` items of `size` bytes. Fails if this number exceeds the largest buffer, or if
/// the buffer is null.
fn bytes_of(buffer: *const c_void, size: usize, items: usize) -> Result<usize> {
    let bytes = size.checked_mul(items).filter(|&bytes| isize::try_from(bytes).is_ok());
    let bytes = bytes.ok_or_else(|| invalid("size and nmemb", "their product exceeds the largest buffer"))?;
    if buffer.is_null() && bytes > 0 {
        return Err(no_buffer());
    }
    Ok(bytes)
}

fn no_buffer() -> Error {
    invalid("a buffer", "it is NULL")
}

/// Returns the number of whole items in `bytes`, or -1 for an error without a whole item.
fn items(bytes: usize, size: usize, outcome: Result<()>) -> isize {
    let items = bytes.checked_div(size).unwrap_or(0) as isize;
    to_c(outcome.map(|()| items), if items > 0 { items } else { -1 })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_fread(into: *mut c_void, size: usize, nmemb: usize, file: *const Handle) -> isize {
    let mut read = 0;
    let work = |stream: &mut Stream| {
        let bytes = bytes_of(into, size, nmemb)?;
        while read < bytes {
            let found = stream.fetch(bytes - read)?;
            let count = found.len().min(bytes - read);
            if count == 0 {
                break;
            }
            // SAFETY: the buffer has room for `bytes`, and no other code is writing there.
            unsafe { into.cast::<u8>().add(read).copy_from_nonoverlapping(found.as_ptr(), count) };
            stream.consume(count);
            read += count;
        }
        Ok(())
    };
    // SAFETY: a file, as the header demands.
    let outcome = unsafe { with(file, work) };
    items(read, size, outcome)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_fwrite(
    from: *const c_void,
    size: usize,
    nmemb: usize,
    file: *const Handle,
) -> isize {
    let mut written = 0;
    let work = |stream: &mut Stream| {
        let bytes = bytes_of(from, size, nmemb)?;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the buffer has `bytes` bytes.
        let from = unsafe { slice::from_raw_parts(from.cast::<u8>(), bytes) };
        while written < bytes {
            written += stream.write(&from[written..])?;
        }
        Ok(())
    };
    // SAFETY: a file, as the header demands.
    let outcome = unsafe { with(file, work) };
    items(written, size, outcome)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_fgets(into: *mut c_char, size: c_int, file: *const Handle) -> *mut c_char {
    let mut read = 0;
    let work = |stream: &mut Stream| {
        let room = usize::try_from(size).ok().and_then(|size| size.checked_sub(1));
        let room = room.ok_or_else(|| invalid("the size of a line", "it is not positive"))?;
        if into.is_null() {
            return Err(no_buffer());
        }
        let mut is_whole = false;
        while read < room && !is_whole {
            let found = stream.fetch(1)?;
            let found = &found[..found.len().min(room - read)];
            let end = memchr::memchr(b'\n', found);
            let count = end.map_or(found.len(), |end| end + 1);
            if count == 0 {
                break;
            }
            // SAFETY: the buffer has `size` bytes, and one of them is left for the end of the string.
            unsafe { into.cast::<u8>().add(read).copy_from_nonoverlapping(found.as_ptr(), count) };
            stream.consume(count);
            read += count;
            is_whole = end.is_some();
        }
        if read > 0 || room == 0 {
            // SAFETY: the same.
            unsafe { into.add(read).write(0) };
        }
        Ok(if read > 0 || room == 0 { into } else { ptr::null_mut() })
    };
    // SAFETY: a file, as the header demands.
    to_c(unsafe { with(file, work) }, ptr::null_mut())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_fputs(text: *const c_char, file: *const Handle) -> c_int {
    if text.is_null() {
        return done(Err(invalid("a string", "it is NULL")));
    }
    let work = |stream: &mut Stream| {
        // SAFETY: a string, as the header demands.
        let mut rest = unsafe { CStr::from_ptr(text) }.to_bytes();
        while !rest.is_empty() {
            rest = &rest[stream.write(rest)?..];
        }
        Ok(())
    };
    // SAFETY: a file, as the header demands.
    done(unsafe { with(file, work) })
}

/// Uses a byte in the front, with the file locked, as the header does inline without a lock. All further work is in
/// separate functions, so that a byte of a shared file costs little more than the lock.
///
/// # Safety
/// See [`handle`]; and `work` uses the address only for the byte there.
#[inline]
unsafe fn at_hand<A, T>(
    file: *const Handle,
    take: impl FnOnce(&Front) -> Option<A>,
    work: impl FnOnce(A) -> T,
) -> Option<T> {
    if process::is_forked() {
        return None;
    }
    // SAFETY: guaranteed by the caller.
    let handle = unsafe { file.as_ref() }?;
    handle.lock.lock(&handle.front);
    let done = take(&handle.front).map(work);
    handle.lock.unlock(&handle.front);
    done
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_getc(file: *const Handle) -> c_int {
    let shown = |front: &Front| front.take_byte();
    // SAFETY: a file, as the header demands.
    let byte = unsafe { at_hand(file, shown, |address| c_int::from(*address)) };
    // SAFETY: the same.
    byte.unwrap_or_else(|| unsafe { get_next(file) })
}

/// Reads a byte that is not buffered. Returns EOF at the end of the file or after an error.
///
/// # Safety
/// See [`handle`].
#[inline(never)]
unsafe fn get_next(file: *const Handle) -> c_int {
    let work = |stream: &mut Stream| {
        let byte = stream.fetch(1)?.first().map_or(libc::EOF, |&byte| c_int::from(byte));
        stream.consume(1);
        Ok(byte)
    };
    // SAFETY: a file, as the header demands.
    to_c(unsafe { with(file, work) }, libc::EOF)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_putc(byte: c_int, file: *const Handle) -> c_int {
    let shown = |front: &Front| front.take_room();
    // SAFETY: a file, as the header demands.
    if unsafe { at_hand(file, shown, |address| *address = byte as u8) }.is_some() {
        return c_int::from(byte as u8);
    }
    // SAFETY: the same.
    unsafe { put_next(byte, file) }
}

/// Writes a byte if the write buffer in the front is full. Returns EOF after an error.
///
/// # Safety
/// See [`handle`].
#[inline(never)]
unsafe fn put_next(byte: c_int, file: *const Handle) -> c_int {
    let work = |handle: &Handle| {
        let mut held = Held::take(handle);
        // Only the lowest byte is written, as by putc.
        let written = held.stream().write(&[byte as u8]);
        held.stream().show_room(&handle.front);
        written.map(|_| c_int::from(byte as u8))
    };
    // SAFETY: a file, as the header demands.
    to_c(unsafe { handle(file) }.and_then(work), libc::EOF)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_getc_unlocked(file: *const Handle) -> c_int {
    // SAFETY: a file, as the header demands. A thread that holds the lock may lock again.
    unsafe { pdiol_getc(file) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_putc_unlocked(byte: c_int, file: *const Handle) -> c_int {
    // SAFETY: a file, as the header demands. A thread that holds the lock may lock again.
    unsafe { pdiol_putc(byte, file) }
}

// The position.

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_fseek(file: *const Handle, offset: c_long, whence: c_int) -> c_int {
    // SAFETY: a file, as the header demands.
    unsafe { pdiol_fseeko(file, offset, whence) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_fseeko(file: *const Handle, offset: i64, whence: c_int) -> c_int {
    let work = |stream: &mut Stream| {
        stream.seek(match whence {
            libc::SEEK_SET => {
                SeekFrom::Start(u64::try_from(offset).map_err(|_| invalid("an offset", "it is negative"))?)
            }
            libc::SEEK_CUR => SeekFrom::Current(offset),
            libc::SEEK_END => SeekFrom::End(offset),
            other => return Err(invalid("whence", &format!("the value {other} is invalid"))),
        })
    };
    // SAFETY: a file, as the header demands.
    done(unsafe { with(file, work) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_ftell(file: *const Handle) -> c_long {
    // SAFETY: a file, as the header demands.
    unsafe { pdiol_ftello(file) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_ftello(file: *const Handle) -> i64 {
    // SAFETY: a file, as the header demands.
    let position = unsafe { with(file, Stream::position) };
    to_c(position.map(|position| i64::try_from(position).unwrap_or(i64::MAX)), -1)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_rewind(file: *const Handle) {
    let work = |stream: &mut Stream| {
        stream.has_failed = false;
        stream.seek(SeekFrom::Start(0))
    };
    // SAFETY: a file, as the header demands.
    done(unsafe { with(file, work) });
}

// End of file and errors.

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_feof(file: *const Handle) -> c_int {
    // SAFETY: a file, as the header demands. A null file counts as being at its end, so that loops that read to the end
    // stop.
    to_c(unsafe { with(file, |stream| Ok(c_int::from(stream.is_at_end))) }, 1)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_ferror(file: *const Handle) -> c_int {
    // SAFETY: a file, as the header demands.
    to_c(unsafe { with(file, |stream| Ok(c_int::from(stream.has_failed))) }, 1)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_clearerr(file: *const Handle) {
    let work = |stream: &mut Stream| {
        (stream.is_at_end, stream.has_failed) = (false, false);
        Ok(())
    };
    // SAFETY: a file, as the header demands.
    done(unsafe { with(file, work) });
}

#[unsafe(no_mangle)]
extern "C" fn pdiol_strerror() -> *const c_char {
    let last = failure::last();
    if last.is_null() { c"".as_ptr() } else { last }
}

// Locking of a file over several calls.

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_flockfile(file: *const Handle) {
    // SAFETY: a file, as the header demands.
    done(unsafe { handle(file) }.map(|handle| handle.lock.lock(&handle.front)));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_ftrylockfile(file: *const Handle) -> c_int {
    // SAFETY: a file, as the header demands.
    let locked = unsafe { handle(file) }.map(|handle| handle.lock.try_lock(&handle.front));
    c_int::from(!to_c(locked, false))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_funlockfile(file: *const Handle) {
    // SAFETY: a file, as the header demands.
    done(unsafe { handle(file) }.map(|handle| handle.lock.unlock(&handle.front)));
}
