//! The session of this process. It is started with the first file, and ends with the process.

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
    /// A session beside this one whose writes go into a write cache: those who name the same job flush together.
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

/// Starts a session with the agents there are for this place.
fn connect(place: &NamedPlace) -> node::Result<Connected> {
    let found = agents::find();
    let agents = match &place.agents {
        // What a mount says counts if nobody says anything else.
        Some(of_mount) if found.is_err() => agents::named(of_mount.split(','))?,
        _ => found?,
    };
    let settings = Settings::of_environment(agents)?;
    let session = Session::start(settings.clone())?;
    // What is wrong with a disk whoever opens a file on it is told.
    let _ = session.learn_disks();
    Ok(Connected { tree: session.tree(), session, settings })
}

/// What a name means.
///
/// # Errors
/// If it means no file on Starfish.
pub(crate) fn place(name: &str) -> Outcome<NamedPlace> {
    names::find(name).ok_or_else(|| {
        let why = format!("{name}: it is neither on a mount of Starfish nor begins with `starfish:`");
        MpiError::new(ErrorClass::BadFile, why)
    })
}

/// The session of this process, which is started now if there is none.
pub(crate) fn session(place: &NamedPlace) -> Outcome<Connected> {
    let mut started = started();
    if let Some(connected) = &*started {
        return Ok(connected.clone());
    }
    // If it cannot be started, whoever asks again may mean other agents.
    let connected = connect(place).map_err(|error| MpiError::from(error).of_setup())?;
    PROCESS.get_or_init(|| {
        at_exit(end_session);
        process::id()
    });
    Ok(started.insert(connected).clone())
}

/// The process whose session it is, and whose threads.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Whether this process is the one that has started the session: a child that it has forked has nothing of that but
/// memory.
pub(crate) fn is_its_own() -> bool {
    PROCESS.get() == Some(&process::id())
}

/// Has a function called when the process ends, before those of which this was said earlier.
pub(crate) fn at_exit(end: extern "C" fn()) {
    #[expect(unsafe_code, reason = "a function without arguments, of code that stays until the process ends")]
    // SAFETY: as the reason says.
    unsafe {
        libc::atexit(end);
    }
}
