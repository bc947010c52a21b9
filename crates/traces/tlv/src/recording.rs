//! Recording of this process: start, end, and behaviour at a fork.

use std::cell::RefCell;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek};
use std::mem::{self, ManuallyDrop};
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, RwLockWriteGuard};
use std::thread::{self, JoinHandle, Thread};

use nix::sys::signal::{SigSet, SigmaskHow};
use nix::unistd;
use trace::FileWriter;

use crate::declared::{Declarations, declared};
use crate::error::{Error, Result, invalid};
use crate::row::{self, Rows, rows};
use crate::settings::Settings;
use crate::switch::{self, RecordingSwitch};
use crate::ticks::{self, TickReading};
use crate::{process, record, writer};

/// Recording that was started and has not ended.
enum Begun {
    /// Recording that the user has switched off.
    Off,
    On(Running),
}

struct Running {
    path: PathBuf,
    descriptor: RawFd,
    is_over: Arc<AtomicBool>,
    writer: JoinHandle<io::Result<()>>,
}

static BEGUN: Mutex<Option<Begun>> = Mutex::new(None);

fn begun() -> MutexGuard<'static, Option<Begun>> {
    BEGUN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the recording of this process, at most one at a time, and adds this thread to it. The file is `NAME.tlv`
/// unless the settings name one. If another process is writing this file, the recording uses another name, with the
/// process id in it. Returns the file, or `None` if recording is off.
///
/// The recording continues until [`finish`], or until the process ends.
pub fn start(name: &str, settings: &Settings) -> Result<Option<PathBuf>> {
    settings.check()?;
    let title = Path::new(name).file_name().ok_or_else(|| invalid("a recording", "it has no name"))?;
    let mut begun = begun();
    if begun.is_some() {
        return Err(Error::AlreadyStarted);
    }
    watch_process();
    if !settings.is_on {
        *begun = Some(Begun::Off);
        switch::turn(RecordingSwitch::Off);
        return Ok(None);
    }
    let running = run(&title.to_string_lossy(), file_name(name, settings), settings)?;
    let path = running.path.clone();
    *begun = Some(Begun::On(running));
    Ok(Some(path))
}

fn file_name(name: &str, settings: &Settings) -> PathBuf {
    settings.file.clone().unwrap_or_else(|| {
        let stem = name.strip_suffix(".tlv").unwrap_or(name);
        format!("{stem}.tlv").into()
    })
}

fn run(title: &str, path: PathBuf, settings: &Settings) -> Result<Running> {
    let (path, file) = open(path)?;
    let descriptor = file.as_raw_fd();
    let failed = |source| Error::File { path: path.clone(), source };
    ticks::choose();
    row::set_slots(settings.slots());
    record::set_switches(settings.switches);
    // Discard records made after the end of the previous recording.
    rows().discard();
    let file = FileWriter::new(file, &process::info(title)).map_err(failed)?;
    let zero = TickReading::take();
    let is_over = Arc::new(AtomicBool::new(false));
    let writer = {
        let is_over = is_over.clone();
        let writer = thread::Builder::new().name("tlv".into());
        without_signals(|| writer.spawn(move || writer::write(file, zero, &is_over))).map_err(failed)?
    };
    *switch::writer() = Some(writer.thread().clone());
    let running = Running { path, descriptor, is_over, writer };
    switch::turn(RecordingSwitch::On);
    if let Err(refused) = row::add(None) {
        // Ignore the result: the file is still empty.
        let _ = end(running);
        return Err(refused.into());
    }
    Ok(running)
}

/// Opens the file. If another process is writing the file, opens a file with this process id in its name instead.
fn open(path: PathBuf) -> Result<(PathBuf, File)> {
    let ours = of_this_process(&path);
    for path in [path, ours.clone()] {
        match open_unless_taken(&path) {
            Ok(Some(file)) => return Ok((path, file)),
            Ok(None) => {}
            Err(source) => return Err(Error::File { path, source }),
        }
    }
    let source = io::Error::new(io::ErrorKind::ResourceBusy, "another process is writing it");
    Err(Error::File { path: ours, source })
}

/// Opens a file and truncates it, unless another process is writing it. Never replaces a file that is no trace.
fn open_unless_taken(path: &Path) -> io::Result<Option<File>> {
    let mut file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    if !file.metadata()?.is_file() {
        return Ok(Some(file));
    }
    let mut beginning = Vec::new();
    file.by_ref().take(16).read_to_end(&mut beginning)?;
    if !beginning.is_empty() && !trace::is_trace(&beginning) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "this is not a trace, and was not changed"));
    }
    file.set_len(0)?;
    file.rewind()?;
    Ok(Some(file))
}

/// Returns the name of a file with this process id before its extension.
fn of_this_process(path: &Path) -> PathBuf {
    let number = std::process::id();
    match path.extension() {
        Some(extension) => path.with_extension(format!("{number}.{}", extension.to_string_lossy())),
        None => path.with_extension(number.to_string()),
    }
}

/// Starts a thread with all signals blocked: only threads of the program handle signals.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK).expect("a mask of valid signals");
    let started = start();
    before.thread_set_mask().expect("the previous mask");
    started
}

/// Ends the recording after writing all earlier records. Later records are rejected until the next recording starts.
pub fn finish() -> Result<()> {
    let mut begun = begun();
    match begun.take() {
        Some(Begun::On(running)) => end(running),
        Some(Begun::Off) => {
            switch::turn(RecordingSwitch::Idle);
            Ok(())
        }
        // In a process forked from one with recording off, there is no recording to end.
        None => Ok(switch::not_on()?),
    }
}

fn end(running: Running) -> Result<()> {
    switch::turn(RecordingSwitch::Idle);
    *switch::writer() = None;
    running.is_over.store(true, Ordering::Release);
    running.writer.thread().unpark();
    let outcome = running
        .writer
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the writer thread of the library panicked")));
    outcome.map_err(|source| Error::File { path: running.path, source })
}

/// Recording that ends when dropped.
///
/// ```
/// # fn main() -> tlv::Result<()> {
/// # let directory = tempfile::tempdir().expect("a directory");
/// # let file = Some(directory.path().join("sort.tlv"));
/// # let settings = tlv::Settings { file, ..tlv::Settings::default() };
/// let recording = tlv::Recording::start_with("sort", &settings)?;
/// // ...
/// recording.finish()
/// # }
/// ```
#[derive(Debug)]
#[must_use = "the recording ends when this is dropped"]
pub struct Recording {
    file: Option<PathBuf>,
}

impl Recording {
    /// Starts the recording of this process with the settings of the environment. See [`start`].
    pub fn start(name: &str) -> Result<Self> {
        Self::start_with(name, &Settings::of_environment()?)
    }

    /// Starts the recording of this process. See [`start`].
    pub fn start_with(name: &str, settings: &Settings) -> Result<Self> {
        Ok(Recording { file: start(name, settings)? })
    }

    /// Returns the file; `None` if recording is off.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Ends the recording; fails if not all records were written.
    pub fn finish(self) -> Result<()> {
        mem::forget(self);
        finish()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // A program that needs the result calls `finish`.
        let _ = finish();
    }
}

/// Makes the recording end with the process, and stop in forked processes.
fn watch_process() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[expect(unsafe_code, reason = "no safe function registers handlers for exit and fork")]
        // SAFETY: the handlers have no arguments, and their code is not unloaded before the process ends.
        unsafe {
            libc::atexit(at_exit);
            libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child));
        }
    });
}

extern "C" fn at_exit() {
    let _ = finish();
}

/// All locks of the library, in locking order. The forking thread holds all of them during the fork, so that their data
/// are consistent in the child.
struct Locks {
    begun: MutexGuard<'static, Option<Begun>>,
    rows: MutexGuard<'static, Rows>,
    _declared: MutexGuard<'static, Declarations>,
    writer: RwLockWriteGuard<'static, Option<Thread>>,
}

thread_local! {
    // This value has no destructor, so that a thread can fork even after its other thread-local values are destroyed.
    static LOCKS: RefCell<Option<ManuallyDrop<Locks>>> = const { RefCell::new(None) };
}

extern "C" fn before_fork() {
    let locks = Locks { begun: begun(), rows: rows(), _declared: declared(), writer: switch::writer() };
    LOCKS.set(Some(ManuallyDrop::new(locks)));
}

extern "C" fn after_fork_in_parent() {
    drop(LOCKS.take().map(ManuallyDrop::into_inner));
}

/// The child has no writer thread, and the file belongs to the parent: the child records nothing until it starts a
/// recording. If the user has switched recording off, recording stays off until then.
extern "C" fn after_fork_in_child() {
    let Some(mut locks) = LOCKS.take().map(ManuallyDrop::into_inner) else { return };
    if let Some(Begun::On(running)) = locks.begun.take() {
        // Close the descriptor: it shares the lock of the file, and the lock must be released when the parent ends.
        let _ = unistd::close(running.descriptor);
        // The writer thread does not exist in the child and cannot be detached.
        mem::forget(running.writer);
        switch::turn(RecordingSwitch::Forked);
    }
    *locks.writer = None;
    locks.rows.free_all();
    record::forget_flows();
}
