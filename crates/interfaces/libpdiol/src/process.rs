//! The session of this process, and its open files.

use std::cell::Cell;
use std::env;
use std::ffi::OsString;
use std::mem::{self, ManuallyDrop};
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pdiol::log::Log;
use pdiol::options::{self, Asked, Options};
use pdiol::{Error, ErrorKind, Result, Session, agents};

use crate::handle::Handle;

/// State between `initialize_pdiol` and `finalize_pdiol`.
struct Process {
    session: Session,
    log: Log,
}

static PROCESS: Mutex<Option<Process>> = Mutex::new(None);

/// The open files. Held for moments, and while the process is forked.
static OPEN: Mutex<Vec<Arc<Handle>>> = Mutex::new(Vec::new());

/// The lock of the open files. Never destroyed with a thread, which can fork even when its other values have been.
type LockedFiles = ManuallyDrop<MutexGuard<'static, Vec<Arc<Handle>>>>;

thread_local! {
    /// While this thread forks the process.
    static OPEN_WHILE_FORKING: Cell<Option<LockedFiles>> = const { Cell::new(None) };
}

/// Whether there is a session, or one is being started.
static HAS_SESSION: AtomicBool = AtomicBool::new(false);

/// Whether this process was forked off one that had a session. Its threads are not here, and locks may be theirs, so
/// nothing may be asked of the session, or locked.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

fn process() -> MutexGuard<'static, Option<Process>> {
    PROCESS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open() -> MutexGuard<'static, Vec<Arc<Handle>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the session as the command line and the environment say. Takes the options of PDIOL out of `arguments`.
///
/// Asked for help, it prints that and ends the process.
pub(crate) fn start(arguments: &mut Vec<OsString>) -> Result<()> {
    let program = options::program_name(arguments);
    let Asked::Run(options) = options::find(arguments, |name| env::var_os(name))? else {
        print!("{}", options::help(&program));
        exit(0);
    };
    check_not_forked("initialize_pdiol")?;
    let mut process = process();
    if process.is_some() {
        return Err(Error::new(ErrorKind::Invalid, "initialize_pdiol", "it has been called already"));
    }
    HAS_SESSION.store(true, Ordering::Relaxed);
    let started = Process::start(&options);
    HAS_SESSION.store(started.is_ok(), Ordering::Relaxed);
    *process = Some(started?);
    Ok(())
}

/// Called before the process is forked, in the thread that does so.
pub(crate) fn prepare_fork() {
    OPEN_WHILE_FORKING.set(Some(ManuallyDrop::new(open())));
}

/// Called in the parent when it has been forked.
pub(crate) fn end_fork() {
    drop(OPEN_WHILE_FORKING.take().map(ManuallyDrop::into_inner));
}

/// Called in a process that has just been forked off. Its files show nothing any more: the inline functions of the
/// header would read bytes and fill room without asking here.
pub(crate) fn note_fork() {
    let open = OPEN_WHILE_FORKING.take().map(ManuallyDrop::into_inner);
    if HAS_SESSION.load(Ordering::Relaxed) {
        IS_FORKED.store(true, Ordering::Relaxed);
        open.iter().flat_map(|open| open.iter()).for_each(|handle| handle.front.clear());
    }
}

/// Whether the session is another process's.
#[inline]
pub(crate) fn is_forked() -> bool {
    IS_FORKED.load(Ordering::Relaxed)
}

/// Fails where the session is another process's; `what` it is needed for.
#[inline]
pub(crate) fn check_not_forked(what: &str) -> Result<()> {
    if is_forked() { Err(forked(what)) } else { Ok(()) }
}

#[cold]
fn forked(what: &str) -> Error {
    let why = "this process has been forked, and the session is its parent's";
    let remedy = "It may start another program with exec, or end. To use files in both, fork first, and then call \
                  initialize_pdiol in each";
    Error::new(ErrorKind::Closed, what, why).with_remedy(remedy)
}

impl Process {
    fn start(options: &Options) -> Result<Process> {
        let (settings, log) = options.begin(agents::find()?)?;
        Ok(Process { session: Session::start(settings)?, log })
    }
}

/// Closes all files and ends the session. Fails with the first failure after all has been tried.
pub(crate) fn finish() -> Result<()> {
    const WHAT: &str = "finalize_pdiol";
    check_not_forked(WHAT)?;
    let Some(Process { session, log }) = process().take() else {
        return Err(not_started(WHAT));
    };
    HAS_SESSION.store(false, Ordering::Relaxed);
    let mut outcome = Ok(());
    for handle in mem::take(&mut *open()) {
        outcome = outcome.and(handle.close());
    }
    outcome = outcome.and(session.finish());
    // The node thread ends before the log does.
    drop(session);
    log.line(&format!(
        "end: {}",
        outcome.as_ref().map_or_else(ToString::to_string, |()| "all is well".into())
    ));
    outcome
}

/// The session; `what` it is needed for.
pub(crate) fn session(what: &str) -> Result<Session> {
    check_not_forked(what)?;
    process().as_ref().map(|process| process.session.clone()).ok_or_else(|| not_started(what))
}

/// Notes a file that is open.
pub(crate) fn enter(handle: &Arc<Handle>) {
    open().push(handle.clone());
}

/// Forgets a file that is about to be closed.
pub(crate) fn leave(handle: &Arc<Handle>) {
    open().retain(|other| !Arc::ptr_eq(other, handle));
}

/// The files that are open.
pub(crate) fn open_files() -> Vec<Arc<Handle>> {
    open().clone()
}

fn not_started(what: &str) -> Error {
    Error::new(ErrorKind::Closed, what, "there is no session").with_remedy(
        "Call initialize_pdiol first, and look at what it returns: if it is -1, pdiol_strerror() says why",
    )
}
