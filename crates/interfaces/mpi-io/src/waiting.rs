//! Waits for calls in which other processes take part.
//!
//! Other processes may need messages of this process before they take part, and MPI makes progress only inside MPI
//! calls. So the thread waits in short pauses, and calls MPI after each.

use std::sync::OnceLock;
use std::time::Duration;

use node::Pending;

/// Lets MPI make progress on its messages.
pub(crate) type Progress = extern "C" fn();

/// Pause before the first progress call: about a thousand times as long as such a call, and short compared with the
/// milliseconds of a collective call.
const FIRST_PAUSE: Duration = Duration::from_millis(2);

/// Limit of a pause. Pauses double up to this limit, because each wake-up takes processor time from other processes on
/// an oversubscribed host. A pause delays a message at most as long as the wait has already lasted.
const LONGEST_PAUSE: Duration = Duration::from_millis(32);

static PROGRESS: OnceLock<Progress> = OnceLock::new();

/// Sets the progress function of MPI. Only the first call counts.
pub(crate) fn note_progress(progress: Progress) {
    PROGRESS.get_or_init(|| progress);
}

/// Waits for a call while MPI continues to make progress. Runs in the thread that called MPI; the caller must hold no
/// lock that a call of MPI may need.
pub(crate) fn wait<T>(mut call: Pending<T>) -> node::Result<T> {
    let mut pause = FIRST_PAUSE;
    loop {
        match call.wait_for(pause) {
            Ok(outcome) => return outcome,
            Err(under_way) => call = under_way,
        }
        if let Some(progress) = PROGRESS.get() {
            progress();
        }
        pause = LONGEST_PAUSE.min(2 * pause);
    }
}
