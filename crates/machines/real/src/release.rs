//! Retries for resources that another process has just released or will soon release: an address, the lock of a
//! directory.
//!
//! The system releases the resources of a process with an io_uring only some time after the process has ended. The lock
//! of a process also remains while a child process that it has forked has not yet executed its program. Without
//! retries, an agent that is restarted at once would find both in use.

use std::thread;
use std::time::{Duration, Instant};

/// Time limit of the retries.
const RELEASE: Duration = Duration::from_secs(1);

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Takes a resource. Retries for a second while the resource is in use.
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
