//! The functions of `include/pdiol.h`.
//!
//! Each takes the lock of the file, takes back what the front shows, works on safe Rust, and shows again what is at
//! hand. `unsafe` here is what a face for C consists of: pointers are what the header asks for, or null, which is
//! refused. What a caller has to keep is in the man pages: a `PFS_FILE` is of `pdiol_fopen` and not closed, a string
//! ends, a buffer has the length it is said to have.

#![expect(unsafe_code, reason = "a face for C: see above")]

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

/// Opens a file, and notes that it is open.
fn open(path: &[u8], mode: &str) -> Result<Arc<Handle>> {
    let handle = Handle::new(Stream::open(&session(path)?, path, mode)?);
    process::enter(&handle);
    Ok(handle)
}

/// The C return value of an outcome.
fn to_c<T>(outcome: Result<T>, failed: T) -> T {
    outcome.unwrap_or_else(|error| {
        failure::tell(&error);
        failed
    })
}

/// 0, or -1 and errno.
fn done(outcome: Result<()>) -> c_int {
    to_c(outcome.map(|()| 0), -1)
}

fn invalid(what: &str, why: &str) -> Error {
    Error::new(ErrorKind::Invalid, what, why)
}

/// The handle a caller means.
///
/// # Safety
/// `file` is null or from `pdiol_fopen`, and not closed as long as the reference is used.
unsafe fn handle<'a>(file: *const Handle) -> Result<&'a Handle> {
    process::check_not_forked("a PFS_FILE")?;
    // SAFETY: as the caller says.
    let handle = unsafe { file.as_ref() };
    handle.ok_or_else(|| {
        Error::new(ErrorKind::Closed, "a PFS_FILE", "it is NULL")
            .with_remedy("Look at what pdiol_fopen returned")
    })
}

/// Does `work` with a file's lock, and shows what is then at hand to read.
///
/// # Safety
/// As of [`handle`].
unsafe fn with<T>(file: *const Handle, work: impl FnOnce(&mut Stream) -> Result<T>) -> Result<T> {
    // SAFETY: as the caller says.
    let handle = unsafe { handle(file) }?;
    let mut held = Held::take(handle);
    let outcome = work(held.stream());
    held.stream().show_bytes(&handle.front);
    outcome
}

/// A string of a caller.
///
/// # Safety
/// `text` is null or a string that ends and stays as long as the reference is used.
unsafe fn string<'a>(text: *const c_char, what: &str) -> Result<&'a CStr> {
    if text.is_null() {
        return Err(invalid(what, "it is NULL"));
    }
    // SAFETY: as the caller says.
    Ok(unsafe { CStr::from_ptr(text) })
}

/// A path of a caller, which need not be a text.
///
/// # Safety
/// As of [`string`].
unsafe fn path_of<'a>(path: *const c_char) -> Result<&'a [u8]> {
    // SAFETY: as the caller says.
    unsafe { string(path, "a path") }.map(CStr::to_bytes)
}

/// The session, for something to be done with what has this path.
fn session(path: &[u8]) -> Result<Session> {
    process::session(&String::from_utf8_lossy(path))
}

/// `struct pdiol_state_struct`.
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
/// `into` is null or has room for a state.
unsafe fn put(stat: Result<Stat>, into: *mut State) -> c_int {
    let stat = stat.and_then(|stat| match into.is_null() {
        true => Err(invalid("a pdiol_state_struct", "it is NULL")),
        false => Ok(stat),
    });
    // SAFETY: it is not null, so as the caller says.
    done(stat.map(|stat| unsafe { into.write(stat.into()) }))
}

// Beginning and end.

extern "C" fn at_exit() {
    if process::session("").is_ok() {
        // A program that wants the outcome calls finalize_pdiol.
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
    // Those taken out are the first after the program's name.
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
    // SAFETY: two strings, as the header asks for.
    let strings = unsafe { path_of(path).and_then(|path| Ok((path, string(mode, "a mode")?))) };
    // What is no letter is none of a mode.
    let opened = strings.and_then(|(path, mode)| open(path, &mode.to_string_lossy()));
    to_c(opened.map(Arc::into_raw), ptr::null())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_stat(path: *const c_char, pstat: *mut State) -> c_int {
    // SAFETY: a string, as the header asks for.
    let stat = unsafe { path_of(path) }.and_then(|path| session(path)?.stat_path(path));
    // SAFETY: room for a state, as the header asks for.
    unsafe { put(stat, pstat) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_unlink(path: *const c_char) -> c_int {
    // SAFETY: a string, as the header asks for.
    let path = unsafe { path_of(path) };
    done(path.and_then(|path| session(path)?.unlink_path(path)))
}

// Open files.

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_fclose(file: *const Handle) -> c_int {
    // SAFETY: a file, as the header asks for.
    if let Err(error) = unsafe { handle(file) } {
        return done(Err(error));
    }
    // SAFETY: `pdiol_fopen` gave it away, and the caller gives it back, once.
    let handle = unsafe { Arc::from_raw(file) };
    process::leave(&handle);
    done(handle.close())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_fflush(file: *const Handle) -> c_int {
    if !file.is_null() {
        // SAFETY: a file, as the header asks for.
        return done(unsafe { with(file, Stream::flush) });
    }
    let mut outcome = process::check_not_forked("pdiol_fflush");
    if outcome.is_err() {
        return done(outcome);
    }
    for handle in process::open_files() {
        let mut held = Held::take(&handle);
        // One that another thread has closed meanwhile was written then.
        if held.stream().is_open() {
            outcome = outcome.and(held.stream().flush());
        }
    }
    done(outcome)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_fstat(file: *const Handle, pstat: *mut State) -> c_int {
    // SAFETY: a file and room for a state, as the header asks for.
    unsafe { put(with(file, Stream::stat), pstat) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_ftruncate(file: *const Handle, size: i64) -> c_int {
    let work = |stream: &mut Stream| {
        stream.set_len(u64::try_from(size).map_err(|_| invalid("a size", "it is negative"))?)
    };
    // SAFETY: a file, as the header asks for.
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
            other => return Err(invalid("an access pattern", &format!("there is no number {other}"))),
        };
        if hint & !(FINAL_WRITE | TEMPORARY_FILE) != 0 {
            return Err(invalid("a hint", &format!("there is no number {hint}")));
        }
        stream.hint(pattern)?;
        let hints = [(TEMPORARY_FILE, Advice::Temporary), (FINAL_WRITE, Advice::FinalWrite)];
        let given = hints.into_iter().filter(|(bit, _)| hint & bit != 0);
        given.map(|(_, hint)| hint).try_for_each(|hint| stream.hint(hint))
    };
    // SAFETY: a file, as the header asks for.
    done(unsafe { with(file, work) })
}

/// See `pdiol_hint(3)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_fadvise(file: *const Handle, offset: i64, length: i64, advice: c_int) -> c_int {
    let work = |stream: &mut Stream| {
        let number = |number: i64, what| u64::try_from(number).map_err(|_| invalid(what, "it is negative"));
        let (offset, bytes) = (number(offset, "an offset")?, number(length, "a length")?);
        // As for posix_fadvise: nothing is all that follows.
        let bytes = if bytes == 0 { i64::MAX as u64 - offset } else { bytes };
        stream.hint(match advice {
            libc::POSIX_FADV_NORMAL => Advice::Normal,
            libc::POSIX_FADV_SEQUENTIAL => Advice::Sequential,
            libc::POSIX_FADV_RANDOM => Advice::Random,
            libc::POSIX_FADV_WILLNEED => Advice::WillNeed { offset, bytes },
            libc::POSIX_FADV_DONTNEED => Advice::DontNeed { offset, bytes },
            // Pages that are read once give way first, told or not.
            libc::POSIX_FADV_NOREUSE => return Ok(()),
            other => return Err(invalid("advice", &format!("there is no number {other}"))),
        })
    };
    // SAFETY: a file, as the header asks for.
    done(unsafe { with(file, work) })
}

// Reading and writing.

/// Bytes of `items` items of `size` bytes in a buffer; an error if no memory could hold them, or there is none.
fn bytes_of(buffer: *const c_void, size: usize, items: usize) -> Result<usize> {
    let bytes = size.checked_mul(items).filter(|&bytes| isize::try_from(bytes).is_ok());
    let bytes = bytes.ok_or_else(|| invalid("size and nmemb", "no buffer has that many bytes"))?;
    if buffer.is_null() && bytes > 0 {
        return Err(no_buffer());
    }
    Ok(bytes)
}

fn no_buffer() -> Error {
    invalid("a buffer", "it is NULL")
}

/// The number of whole items in `bytes`; -1 if there is an error and none.
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
    // SAFETY: a file, as the header asks for.
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
    // SAFETY: a file, as the header asks for.
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
    // SAFETY: a file, as the header asks for.
    to_c(unsafe { with(file, work) }, ptr::null_mut())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_fputs(text: *const c_char, file: *const Handle) -> c_int {
    if text.is_null() {
        return done(Err(invalid("a string", "it is NULL")));
    }
    let work = |stream: &mut Stream| {
        // SAFETY: a string, as the header asks for.
        let mut rest = unsafe { CStr::from_ptr(text) }.to_bytes();
        while !rest.is_empty() {
            rest = &rest[stream.write(rest)?..];
        }
        Ok(())
    };
    // SAFETY: a file, as the header asks for.
    done(unsafe { with(file, work) })
}

/// Does with a file's lock what the header does inline without one: uses a byte that the front shows. What else there
/// is to do is left to functions of their own, so that a byte of a file that several threads share costs little more
/// than its lock.
///
/// # Safety
/// As of [`handle`], and `work` uses the address only for the byte there.
#[inline]
unsafe fn at_hand<A, T>(
    file: *const Handle,
    take: impl FnOnce(&Front) -> Option<A>,
    work: impl FnOnce(A) -> T,
) -> Option<T> {
    if process::is_forked() {
        return None;
    }
    // SAFETY: as the caller says.
    let handle = unsafe { file.as_ref() }?;
    handle.lock.lock(&handle.front);
    let done = take(&handle.front).map(work);
    handle.lock.unlock(&handle.front);
    done
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_getc(file: *const Handle) -> c_int {
    let shown = |front: &Front| front.take_byte();
    // SAFETY: a file, as the header asks for.
    let byte = unsafe { at_hand(file, shown, |address| c_int::from(*address)) };
    // SAFETY: the same.
    byte.unwrap_or_else(|| unsafe { get_next(file) })
}

/// Reads a byte that is not at hand, or finds out why there is none.
///
/// # Safety
/// As of [`handle`].
#[inline(never)]
unsafe fn get_next(file: *const Handle) -> c_int {
    let work = |stream: &mut Stream| {
        let byte = stream.fetch(1)?.first().map_or(libc::EOF, |&byte| c_int::from(byte));
        stream.consume(1);
        Ok(byte)
    };
    // SAFETY: a file, as the header asks for.
    to_c(unsafe { with(file, work) }, libc::EOF)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_putc(byte: c_int, file: *const Handle) -> c_int {
    let shown = |front: &Front| front.take_room();
    // SAFETY: a file, as the header asks for.
    if unsafe { at_hand(file, shown, |address| *address = byte as u8) }.is_some() {
        return c_int::from(byte as u8);
    }
    // SAFETY: the same.
    unsafe { put_next(byte, file) }
}

/// Writes a byte for which there is no room yet, or finds out why there cannot be.
///
/// # Safety
/// As of [`handle`].
#[inline(never)]
unsafe fn put_next(byte: c_int, file: *const Handle) -> c_int {
    let work = |handle: &Handle| {
        let mut held = Held::take(handle);
        // Only the lowest byte counts, as for putc.
        let written = held.stream().write(&[byte as u8]);
        held.stream().show_room(&handle.front);
        written.map(|_| c_int::from(byte as u8))
    };
    // SAFETY: a file, as the header asks for.
    to_c(unsafe { handle(file) }.and_then(work), libc::EOF)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_getc_unlocked(file: *const Handle) -> c_int {
    // SAFETY: a file, as the header asks for. Who has the lock may take it again.
    unsafe { pdiol_getc(file) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_putc_unlocked(byte: c_int, file: *const Handle) -> c_int {
    // SAFETY: a file, as the header asks for. Who has the lock may take it again.
    unsafe { pdiol_putc(byte, file) }
}

// The position.

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_fseek(file: *const Handle, offset: c_long, whence: c_int) -> c_int {
    // SAFETY: a file, as the header asks for.
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
            other => return Err(invalid("whence", &format!("there is no number {other}"))),
        })
    };
    // SAFETY: a file, as the header asks for.
    done(unsafe { with(file, work) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_ftell(file: *const Handle) -> c_long {
    // SAFETY: a file, as the header asks for.
    unsafe { pdiol_ftello(file) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_ftello(file: *const Handle) -> i64 {
    // SAFETY: a file, as the header asks for.
    let position = unsafe { with(file, Stream::position) };
    to_c(position.map(|position| i64::try_from(position).unwrap_or(i64::MAX)), -1)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_rewind(file: *const Handle) {
    let work = |stream: &mut Stream| {
        stream.has_failed = false;
        stream.seek(SeekFrom::Start(0))
    };
    // SAFETY: a file, as the header asks for.
    done(unsafe { with(file, work) });
}

// What happened.

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_feof(file: *const Handle) -> c_int {
    // SAFETY: a file, as the header asks for. A null file is at its end, so that loops that read to the end stop.
    to_c(unsafe { with(file, |stream| Ok(c_int::from(stream.is_at_end))) }, 1)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_ferror(file: *const Handle) -> c_int {
    // SAFETY: a file, as the header asks for.
    to_c(unsafe { with(file, |stream| Ok(c_int::from(stream.has_failed))) }, 1)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_clearerr(file: *const Handle) {
    let work = |stream: &mut Stream| {
        (stream.is_at_end, stream.has_failed) = (false, false);
        Ok(())
    };
    // SAFETY: a file, as the header asks for.
    done(unsafe { with(file, work) });
}

#[unsafe(no_mangle)]
extern "C" fn pdiol_strerror() -> *const c_char {
    let last = failure::last();
    if last.is_null() { c"".as_ptr() } else { last }
}

// A file for one thread over several calls.

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_flockfile(file: *const Handle) {
    // SAFETY: a file, as the header asks for.
    done(unsafe { handle(file) }.map(|handle| handle.lock.lock(&handle.front)));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_ftrylockfile(file: *const Handle) -> c_int {
    // SAFETY: a file, as the header asks for.
    let locked = unsafe { handle(file) }.map(|handle| handle.lock.try_lock(&handle.front));
    c_int::from(!to_c(locked, false))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pdiol_funlockfile(file: *const Handle) {
    // SAFETY: a file, as the header asks for.
    done(unsafe { handle(file) }.map(|handle| handle.lock.unlock(&handle.front)));
}
