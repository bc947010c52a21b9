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

/// Open files. The lock is held only briefly, and during a fork.
static OPEN: Mutex<Vec<Arc<Handle>>> = Mutex::new(Vec::new());

/// Guard of the open files. It is not dropped with the thread's other local values, since a thread can fork even after
/// those were dropped.
type LockedFiles = ManuallyDrop<MutexGuard<'static, Vec<Arc<Handle>>>>;

thread_local! {
    /// Lock held while this thread forks the process.
    static OPEN_WHILE_FORKING: Cell<Option<LockedFiles>> = const { Cell::new(None) };
}

/// True if a session exists or is being started.
static HAS_SESSION: AtomicBool = AtomicBool::new(false);

/// True if this process was forked from one with a session. The session's threads do not exist in the child and may
/// have held locks at the fork, so the child may use neither the session nor its locks.
static IS_FORKED: AtomicBool = AtomicBool::new(false);

fn process() -> MutexGuard<'static, Option<Process>> {
    PROCESS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn open() -> MutexGuard<'static, Vec<Arc<Handle>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the session with the options of the command line and the environment. Removes the options of PDIOL from
/// `arguments`.
///
/// If the arguments request help, prints the help and ends the process.
pub(crate) fn start(arguments: &mut Vec<OsString>) -> Result<()> {
    let program = options::program_name(arguments);
    let Asked::Run(options) = options::find(arguments, |name| env::var_os(name))? else {
        print!("{}", options::help(&program));
        exit(0);
    };
    check_not_forked("initialize_pdiol")?;
    let mut process = process();
    if process.is_some() {
        return Err(Error::new(ErrorKind::Invalid, "initialize_pdiol", "the process already has a session"));
    }
    HAS_SESSION.store(true, Ordering::Relaxed);
    let started = Process::start(&options);
    HAS_SESSION.store(started.is_ok(), Ordering::Relaxed);
    *process = Some(started?);
    Ok(())
}

/// Prepares a fork. The forking thread calls it before the fork.
pub(crate) fn prepare_fork() {
    OPEN_WHILE_FORKING.set(Some(ManuallyDrop::new(open())));
}

/// Ends the preparation in the parent, after the fork.
pub(crate) fn end_fork() {
    drop(OPEN_WHILE_FORKING.take().map(ManuallyDrop::into_inner));
}

/// Marks the child process as forked, after the fork. Clears the fronts of its files, because the inline functions of
/// the header would otherwise read and write buffered bytes without any check.
pub(crate) fn note_fork() {
    let open = OPEN_WHILE_FORKING.take().map(ManuallyDrop::into_inner);
    if HAS_SESSION.load(Ordering::Relaxed) {
        IS_FORKED.store(true, Ordering::Relaxed);
        open.iter().flat_map(|open| open.iter()).for_each(|handle| handle.front.clear());
    }
}

/// True if the session belongs to the parent process.
#[inline]
pub(crate) fn is_forked() -> bool {
    IS_FORKED.load(Ordering::Relaxed)
}

/// Fails if the session belongs to the parent process. The error names the operation that needs it.
#[inline]
pub(crate) fn check_not_forked(what: &str) -> Result<()> {
    if is_forked() { Err(forked(what)) } else { Ok(()) }
}

#[cold]
fn forked(what: &str) -> Error {
    let why = "the session belongs to the parent process, which forked this one";
    let remedy = "This process can call exec or exit. To use files in both, fork first, then call \
                  initialize_pdiol in each";
    Error::new(ErrorKind::Closed, what, why).with_remedy(remedy)
}

impl Process {
    fn start(options: &Options) -> Result<Process> {
        let (settings, log) = options.begin(agents::find()?)?;
        Ok(Process { session: Session::start(settings)?, log })
    }
}

/// Closes all files and ends the session. After an error tries all further steps, and then returns the first error.
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
    // End the node thread before the last line of the log, so that its reports precede that line.
    drop(session);
    log.line(&format!(
        "end: {}",
        outcome.as_ref().map_or_else(ToString::to_string, |()| "all is well".into())
    ));
    outcome
}

/// Returns the session. An error names the operation that needs it.
pub(crate) fn session(what: &str) -> Result<Session> {
    check_not_forked(what)?;
    process().as_ref().map(|process| process.session.clone()).ok_or_else(|| not_started(what))
}

/// Adds an open file.
pub(crate) fn enter(handle: &Arc<Handle>) {
    open().push(handle.clone());
}

/// Removes a file that is about to be closed.
pub(crate) fn leave(handle: &Arc<Handle>) {
    open().retain(|other| !Arc::ptr_eq(other, handle));
}

/// Returns the open files.
pub(crate) fn open_files() -> Vec<Arc<Handle>> {
    open().clone()
}

fn not_started(what: &str) -> Error {
    Error::new(ErrorKind::Closed, what, "there is no session").with_remedy(
        "Call initialize_pdiol first, and check its result: after -1, pdiol_strerror() returns the reason",
    )
}
