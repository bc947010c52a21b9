//! Reactions to the signals that interrupt a program: Ctrl-C (SIGINT), SIGTERM and SIGHUP.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use nix::libc;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Exit code of an interrupted program: the one that shells use after Ctrl-C.
pub const INTERRUPTED: i32 = 130;

/// Cause of an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// Ctrl-C (SIGINT).
    CtrlC,
    /// Request to terminate (SIGTERM), or loss of the terminal (SIGHUP).
    End,
}

/// Function to call on each interruption.
type Reaction = Box<dyn FnMut(Interrupt) + Send>;

/// Current reaction: the one set last. The system accepts only one handler for the whole process.
static REACTION: Mutex<Option<Reaction>> = Mutex::new(None);

/// True if the process is about to end because of an interruption.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Calls `reaction` with the cause, on a separate thread, each time the process is interrupted. Replaces any earlier
/// reaction.
///
/// Signals that were ignored when the process started stay ignored. So a program started by `nohup` survives the end of
/// its terminal, and one that a script started with `&` survives a Ctrl-C meant for another program.
///
/// # Errors
/// If the system rejects the handler, or cannot start a thread.
pub fn on_interruption(reaction: impl FnMut(Interrupt) + Send + 'static) -> io::Result<()> {
    let is_first = reactions().replace(Box::new(reaction)).is_none();
    if is_first { listen() } else { Ok(()) }
}

/// Calls `tidy_up` and ends the process when it is interrupted. Replaces any earlier reaction.
///
/// # Errors
/// The errors of [`on_interruption`].
pub fn end_when_interrupted(mut tidy_up: impl FnMut() + Send + 'static) -> io::Result<()> {
    on_interruption(move |_| {
        ENDING.store(true, Ordering::Release);
        tidy_up();
        exit(INTERRUPTED);
    })
}

/// Blocks until the process ends, if an interruption is ending it. Callers use it before they report an error: during
/// the cleanup, errors are a consequence of the cleanup and need no report.
pub fn wait_if_ending() {
    while ENDING.load(Ordering::Acquire) {
        thread::park();
    }
}

fn reactions() -> MutexGuard<'static, Option<Reaction>> {
    REACTION.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen() -> io::Result<()> {
    let heeded: Vec<c_int> =
        [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal)).collect();
    let mut signals = Signals::new(heeded)?;
    let listen = move || {
        for signal in signals.forever() {
            if let Some(react) = reactions().as_mut() {
                react(if signal == SIGINT { Interrupt::CtrlC } else { Interrupt::End });
            }
        }
    };
    thread::Builder::new().name("interruption".into()).spawn(listen)?;
    Ok(())
}

#[expect(unsafe_code, reason = "nobody offers a safe way to ask for it")]
fn is_ignored(signal: c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null new action changes nothing. The system fills in the current action if it returns 0, and the code
    // reads the action only in this case.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
