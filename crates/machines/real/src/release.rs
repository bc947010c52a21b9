//! What another process has just let go of, or is about to: an address, the lock of a directory.
//!
//! The system releases what a process with an io_uring had only some moments after its end; and a lock of a process
//! stays held while another process that it was just starting has not yet begun. An agent that is started anew at once
//! would find them in use.

use std::thread;
use std::time::{Duration, Instant};

/// How long it is waited for.
const RELEASE: Duration = Duration::from_secs(1);

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Takes something; again for a second, as long as that fails because it is in use.
pub(crate) fn once_released<T, E>(
    is_in_use: impl Fn(&E) -> bool,
    take: impl Fn() -> Result<T, E>,
) -> Result<T, E> {
    let asked = Instant::now();
    loop {
        match take() {
            Err(error) if is_in_use(&error) && asked.elapsed() < RELEASE => thread::sleep(PAUSE),
            outcome => return outcome,
        }
    }
}
