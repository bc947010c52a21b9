//! Waiting for what other processes take part in.
//!
//! The others may need messages of this process before they take part, and an MPI moves messages on only while somebody
//! calls it. So the wait is cut into pauses, and after each of them the shim calls its MPI.

use std::sync::OnceLock;
use std::time::Duration;

use node::Pending;

/// Has the MPI move its messages on.
pub(crate) type Progress = extern "C" fn();

/// How long this process sleeps before the first such call: some thousand times as long as one takes, and short beside
/// the milliseconds that a collective call takes anyway.
const FIRST_PAUSE: Duration = Duration::from_millis(2);

/// How long it sleeps at most. Pauses double until then: each wakes the process, which takes a processor from others
/// where processes are more than processors, and delays a message by no more than the wait has lasted already.
const LONGEST_PAUSE: Duration = Duration::from_millis(32);

static PROGRESS: OnceLock<Progress> = OnceLock::new();

/// Says how the MPI moves its messages on. The first that says so counts.
pub(crate) fn note_progress(progress: Progress) {
    PROGRESS.get_or_init(|| progress);
}

/// Waits for a call while the messages of this process go on: in the thread that has called MPI, and with nothing
/// locked that a call of MPI may want.
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
