//! The session of this process. It is started with the first file, and ends with the process.

use std::sync::{Mutex, MutexGuard, Once, PoisonError};

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

/// Memory of each process for what it has written and not flushed, unless the environment says otherwise.
const WRITE_CACHE_BYTES: u64 = 16 << 20;

impl Connected {
    /// A session beside this one whose writes go into a write cache: those who name the same job flush together.
    pub(crate) fn with_write_cache(&self, job: &str) -> Outcome<Connected> {
        let mut settings = self.settings.clone();
        let cache = settings.write_cache.unwrap_or_else(|| CacheWrites::of(WRITE_CACHE_BYTES));
        settings.write_cache = Some(CacheWrites { job: Some(job.to_owned()), ..cache });
        let session = Session::start(settings.clone())?;
        let tree = session.begin_tree()?;
        Ok(Connected { session, tree, settings })
    }
}

static STARTED: Mutex<Option<Connected>> = Mutex::new(None);

fn started() -> MutexGuard<'static, Option<Connected>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn at_exit() {
    let ended = started().take();
    drop(ended);
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

/// The session, which is started now if there is none. If `begins`, a namespace is begun where there is none.
pub(crate) fn session(place: &NamedPlace, begins: bool) -> Outcome<Connected> {
    let mut started = started();
    if let Some(known) = &*started {
        return Ok(known.clone());
    }
    let (settings, session) = connect(place).map_err(|error| MpiError::from(error).of_setup())?;
    let find = || if begins { session.begin_tree().map(Some) } else { session.tree() };
    let tree = match find().map_err(|error| MpiError::from(error).of_setup())? {
        Some(tree) => tree,
        None => {
            return Err(MpiError::new(
                ErrorClass::NoSuchFile,
                "the agents have no namespace; `starfish mkdir` begins one",
            ));
        }
    };
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[expect(
            unsafe_code,
            reason = "a function without arguments, of code that stays until the process ends"
        )]
        // SAFETY: as the reason says.
        unsafe {
            libc::atexit(at_exit);
        }
    });
    Ok(started.insert(Connected { session, tree, settings }).clone())
}
