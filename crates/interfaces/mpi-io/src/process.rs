//! The session of this process. It starts with the first file, and ends with the process.

use std::process;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use node::{CacheWrites, Session, Settings, Tree, agents};

use crate::failure::{ErrorClass, MpiError, Outcome};
use crate::names::{self, NamedPlace};

/// The session, and the namespace of its agents.
#[derive(Clone)]
pub(crate) struct Connected {
    pub(crate) session: Session,
    pub(crate) tree: Tree,
    settings: Settings,
}

impl Connected {
    /// Starts a second session whose writes go into a write cache. Sessions with the same `job` flush together.
    pub(crate) fn with_write_cache(&self, job: &str) -> Outcome<Connected> {
        let mut settings = self.settings.clone();
        let cache = settings.write_cache.unwrap_or_else(CacheWrites::usual);
        settings.write_cache = Some(CacheWrites { job: Some(job.to_owned()), ..cache });
        let session = Session::start(settings.clone())?;
        Ok(Connected { tree: session.tree(), session, settings })
    }
}

static STARTED: Mutex<Option<Connected>> = Mutex::new(None);

fn started() -> MutexGuard<'static, Option<Connected>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn end_session() {
    if is_its_own() {
        let ended = started().take();
        drop(ended);
    }
}

/// Starts a session with the agents of this place.
fn connect(place: &NamedPlace) -> node::Result<Connected> {
    let found = agents::find();
    let agents = match &place.agents {
        // The agents of a mount count only if the environment and the configuration name none.
        Some(of_mount) if found.is_err() => agents::named(of_mount.split(','))?,
        _ => found?,
    };
    let settings = Settings::of_environment(agents)?;
    let session = Session::start(settings.clone())?;
    // Ignore the error: opening a file on a faulty disk reports it.
    let _ = session.learn_disks();
    Ok(Connected { tree: session.tree(), session, settings })
}

/// Returns the file that a name denotes.
///
/// # Errors
/// Fails if the name denotes no file on Starfish.
pub(crate) fn place(name: &str) -> Outcome<NamedPlace> {
    names::find(name).ok_or_else(|| {
        let why = format!("{name} is not on a mount of Starfish, and does not begin with `starfish:`");
        MpiError::new(ErrorClass::BadFile, why)
    })
}

/// Returns the session of this process; starts it if necessary.
pub(crate) fn session(place: &NamedPlace) -> Outcome<Connected> {
    let mut started = started();
    if let Some(connected) = &*started {
        return Ok(connected.clone());
    }
    // Do not store a failure: the next call may name other agents.
    let connected = connect(place).map_err(|error| MpiError::from(error).of_setup())?;
    PROCESS.get_or_init(|| {
        at_exit(end_session);
        process::id()
    });
    Ok(started.insert(connected).clone())
}

/// ID of the process that started the session and owns its threads.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// True if this process started the session. A forked child has only a copy of its memory, not its threads.
pub(crate) fn is_its_own() -> bool {
    PROCESS.get() == Some(&process::id())
}

/// Registers a function to be called when the process ends, before the functions registered earlier.
pub(crate) fn at_exit(end: extern "C" fn()) {
    #[expect(unsafe_code, reason = "a function without arguments, of code that stays until the process ends")]
    // SAFETY: see the reason above.
    unsafe {
        libc::atexit(end);
    }
}
