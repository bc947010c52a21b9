//! What happens on Ctrl-C, SIGTERM and SIGHUP.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::failure::{Failure, Result};

/// What shells expect of a process that was interrupted.
const INTERRUPTED: i32 = 130;

/// What to do when interrupted.
type Reaction = Box<dyn FnMut() + Send>;

/// The reaction that counts: the last one set. The system takes only one handler for the whole process.
static REACTION: Mutex<Option<Reaction>> = Mutex::new(None);

/// Whether the process is about to end because it was interrupted.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Waits for the end of the process if it is about to end because it was interrupted. What fails meanwhile,
/// fails because things are being tidied up, and need not be told.
pub(crate) fn wait_for_end() {
    while ENDING.load(Ordering::Acquire) {
        std::thread::park();
    }
}

/// Ends the process when interrupted, after `tidy_up`. Replaces what was to happen before.
pub(crate) fn tidy_up_and_exit(mut tidy_up: impl FnMut() + Send + 'static) -> Result<()> {
    set(Box::new(move || {
        ENDING.store(true, Ordering::Release);
        tidy_up();
        std::process::exit(INTERRUPTED);
    }))
}

/// A channel on which every interruption arrives. Replaces what was to happen before.
pub(crate) fn channel() -> Result<flume::Receiver<()>> {
    let (sender, receiver) = flume::unbounded();
    set(Box::new(move || {
        // Whoever listened may have ended meanwhile.
        let _ = sender.send(());
    }))?;
    Ok(receiver)
}

fn set(reaction: Reaction) -> Result<()> {
    let first = reactions().replace(reaction).is_none();
    if first {
        let react = || {
            if let Some(react) = reactions().as_mut() {
                react();
            }
        };
        ctrlc::set_handler(react).map_err(|error| Failure::new("preparing for Ctrl-C", error))?;
    }
    Ok(())
}

fn reactions() -> MutexGuard<'static, Option<Reaction>> {
    REACTION.lock().unwrap_or_else(PoisonError::into_inner)
}
