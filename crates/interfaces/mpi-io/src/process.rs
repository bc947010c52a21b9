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
        let tree = session.begin_tree()?;
        Ok(Connected { session, tree, settings })
    }
}

/// The session as it is started, and its namespace once there is one.
struct Started {
    session: Session,
    settings: Settings,
    tree: Option<Tree>,
}

static STARTED: Mutex<Option<Started>> = Mutex::new(None);

fn started() -> MutexGuard<'static, Option<Started>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn end_session() {
    if is_its_own() {
        let ended = started().take();
        drop(ended);
    }
}

/// Starts a session with the agents there are for this place.
fn connect(place: &NamedPlace) -> node::Result<(Settings, Session)> {
    let found = agents::find();
    let agents = match &place.agents {
        // What a mount says counts if nobody says anything else.
        Some(of_mount) if found.is_err() => agents::named(of_mount.split(','))?,
        _ => found?,
    };
    let settings = Settings::of_environment(agents)?;
    Ok((settings.clone(), Session::start(settings)?))
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

/// Starts the session of this process, if there is none, and finds out what is to be known to open files. There need
/// not be a namespace yet.
pub(crate) fn reach(place: &NamedPlace) -> Outcome<()> {
    reached(&mut started(), place).map(drop)
}

/// The session, which is started now if there is none. If `begins`, a namespace is begun where there is none.
pub(crate) fn session(place: &NamedPlace, begins: bool) -> Outcome<Connected> {
    let mut started = started();
    let connected = reached(&mut started, place)?.tree(begins);
    if connected.is_err() {
        // Whoever asks again may mean other agents.
        *started = None;
    }
    connected
}

fn reached<'a>(started: &'a mut Option<Started>, place: &NamedPlace) -> Outcome<&'a mut Started> {
    if started.is_none() {
        let (settings, session) = connect(place).map_err(|error| MpiError::from(error).of_setup())?;
        PROCESS.get_or_init(|| {
            at_exit(end_session);
            process::id()
        });
        let mut new = Started { session, settings, tree: None };
        // Why there is none is told by whoever needs it.
        let tree = new.session.tree().unwrap_or_default();
        new.note_tree(tree);
        *started = Some(new);
    }
    Ok(started.as_mut().expect("it has been started"))
}

impl Started {
    fn tree(&mut self, begins: bool) -> Outcome<Connected> {
        if self.tree.is_none() {
            let found = if begins { self.session.begin_tree().map(Some) } else { self.session.tree() };
            self.note_tree(found.map_err(|error| MpiError::from(error).of_setup())?);
        }
        let tree = self.tree.clone().ok_or_else(|| {
            let why = "the agents have no namespace; `starfish mkdir` begins one";
            MpiError::new(ErrorClass::NoSuchFile, why)
        })?;
        Ok(Connected { session: self.session.clone(), tree, settings: self.settings.clone() })
    }

    fn note_tree(&mut self, tree: Option<Tree>) {
        self.tree = tree;
        if self.tree.is_some() {
            // What is wrong with a disk whoever opens a file on it is told.
            let _ = self.session.learn_disks();
        }
    }
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
