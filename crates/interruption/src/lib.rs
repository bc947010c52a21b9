//! Ctrl-C (SIGINT), SIGTERM and SIGHUP: what ends a program before it is done.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::thread;

use nix::libc;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The exit code of a program that was interrupted, as shells use it after Ctrl-C.
pub const INTERRUPTED: i32 = 130;

/// From now on `react` is called, on a thread of its own, each time the process is interrupted.
///
/// To be called once. Signals that the process was started to ignore stay ignored: what `nohup` starts outlives its
/// terminal, and what a script starts with `&` outlives a Ctrl-C that is meant for something else.
///
/// # Errors
///
/// If the system takes no handler or starts no thread.
pub fn on_interruption(mut react: impl FnMut() + Send + 'static) -> io::Result<()> {
    let heeded: Vec<c_int> =
        [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal)).collect();
    let mut signals = Signals::new(heeded)?;
    let listen = move || signals.forever().for_each(|_| react());
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
