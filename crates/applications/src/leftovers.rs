//! What would be left behind if the program ended now: temporary files, and files that are not whole yet.
//!
//! They are removed when their [`Leftover`] is dropped, and when the program is interrupted. Making one and writing it
//! down is one step under a lock, which an interruption keeps until the program is gone.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use interruption::{INTERRUPTED, on_interruption};
use pdiol::Session;

/// Time limit for removing leftovers after Ctrl-C when an agent does not answer.
const REMOVING_MAX: Duration = Duration::from_secs(5);

static LEFTOVERS: Mutex<Vec<(u64, Thing)>> = Mutex::new(Vec::new());
static INTERRUPTION: AtomicBool = AtomicBool::new(false);

/// Something that can be left behind.
pub(crate) enum Thing {
    /// A file of this computer.
    Local(PathBuf),
    /// A striped file.
    Striped(Session, String),
    /// A striped file that is being filled from another one, with what is to be said of that one.
    Emptied { session: Session, name: String, stays: String },
}

/// Something that is removed when this is dropped, unless it is to stay.
pub(crate) struct Leftover(u64);

impl Leftover {
    /// Makes the thing; it is a leftover from then on.
    pub(crate) fn make<T, E>(thing: Thing, make: impl FnOnce() -> Result<T, E>) -> Result<(T, Leftover), E> {
        let mut leftovers = leftovers();
        let made = make()?;
        let number = leftovers.last().map_or(0, |(number, _)| number + 1);
        leftovers.push((number, thing));
        Ok((made, Leftover(number)))
    }

    /// It is whole, and stays.
    pub(crate) fn keep(self) {
        take(self.0);
    }
}

impl Drop for Leftover {
    fn drop(&mut self) {
        if let Some(thing) = take(self.0) {
            thing.remove();
        }
    }
}

impl Thing {
    fn remove(&self) {
        // Nothing can be done about what cannot be removed, and the reason is told where the work failed.
        match self {
            Thing::Local(path) => drop(std::fs::remove_file(path)),
            Thing::Striped(session, name) => drop(session.unlink(name)),
            Thing::Emptied { session, name, stays } => {
                drop(session.unlink(name));
                eprintln!("pfs:{name} is gone.\n  {stays}");
            }
        }
    }

    fn name(&self) -> String {
        match self {
            Thing::Local(path) => path.display().to_string(),
            Thing::Striped(_, name) | Thing::Emptied { name, .. } => format!("pfs:{name}"),
        }
    }
}

fn take(number: u64) -> Option<Thing> {
    let mut leftovers = leftovers();
    let index = leftovers.iter().position(|(other, _)| *other == number)?;
    Some(leftovers.remove(index).1)
}

fn leftovers() -> MutexGuard<'static, Vec<(u64, Thing)>> {
    LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on an interruption removes the leftovers and ends the program.
pub(crate) fn remove_when_interrupted(program: &str) -> io::Result<()> {
    let program = program.to_owned();
    on_interruption(move || {
        INTERRUPTION.store(true, Ordering::Release);
        let things = leftovers();
        let names: Vec<String> = things.iter().map(|(_, thing)| thing.name()).collect();
        let program = program.clone();
        thread::spawn(move || {
            thread::sleep(REMOVING_MAX);
            eprintln!("{program}: interrupted; there was no time to remove {}", names.join(", "));
            std::process::exit(INTERRUPTED);
        });
        things.iter().for_each(|(_, thing)| thing.remove());
        std::process::exit(INTERRUPTED);
    })
}

/// Waits for the end of the program if it is being interrupted: failures need not be reported then.
pub(crate) fn wait_if_interrupted() {
    while INTERRUPTION.load(Ordering::Acquire) {
        thread::park();
    }
}
