//! Ctrl-C (SIGINT), SIGTERM and SIGHUP: what ends a program before it is done.

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

/// The exit code of a program that was interrupted, as shells use it after Ctrl-C.
pub const INTERRUPTED: i32 = 130;

/// What interrupts a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// Ctrl-C (SIGINT).
    CtrlC,
    /// A request to end (SIGTERM), or the end of its terminal (SIGHUP).
    End,
}

/// What to do when interrupted.
type Reaction = Box<dyn FnMut(Interrupt) + Send>;

/// The reaction that counts: the last one set. The system takes only one handler for the whole process.
static REACTION: Mutex<Option<Reaction>> = Mutex::new(None);

/// Whether the process is about to end because it was interrupted.
static ENDING: AtomicBool = AtomicBool::new(false);

/// From now on `reaction` is called, on a thread of its own, each time the process is interrupted, with what does so.
/// Replaces what was to happen before.
///
/// Signals that the process was started to ignore stay ignored: what `nohup` starts outlives its terminal, and what a
/// script starts with `&` outlives a Ctrl-C that is meant for something else.
///
/// # Errors
/// If the system takes no handler or starts no thread.
pub fn on_interruption(reaction: impl FnMut(Interrupt) + Send + 'static) -> io::Result<()> {
    let is_first = reactions().replace(Box::new(reaction)).is_none();
    if is_first { listen() } else { Ok(()) }
}

/// From now on the process ends when interrupted, after `tidy_up`. Replaces what was to happen before.
///
/// # Errors
/// As those of [`on_interruption`].
pub fn end_when_interrupted(mut tidy_up: impl FnMut() + Send + 'static) -> io::Result<()> {
    on_interruption(move |_| {
        ENDING.store(true, Ordering::Release);
        tidy_up();
        exit(INTERRUPTED);
    })
}

/// Waits for the end of the process if it is about to end because it was interrupted. What fails meanwhile,
/// fails because things are being tidied up, and need not be told.
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
    // SAFETY: without a new action nothing is changed, and the system fills in the present one if it returns 0, before
    // which it is not looked at.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
