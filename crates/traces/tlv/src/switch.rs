//! Recording switch, which every call checks first, and the handle that wakes the writer when a ring fills.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};
use std::thread::Thread;

use crate::error::Refused;

/// State of recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RecordingSwitch {
    /// No recording has started.
    Idle,
    /// Recording is on.
    On,
    /// The user has disabled recording: all calls succeed without effect.
    Off,
    /// This process was forked from a process that was recording.
    Forked,
}

static SWITCH: AtomicU8 = AtomicU8::new(RecordingSwitch::Idle as u8);

static WRITER: RwLock<Option<Thread>> = RwLock::new(None);

/// Returns true if recording is on.
#[inline]
pub(crate) fn is_on() -> bool {
    SWITCH.load(Ordering::Relaxed) == RecordingSwitch::On as u8
}

/// Returns the result of a call while recording is not on.
#[cold]
pub(crate) fn not_on() -> Result<(), Refused> {
    let switch = SWITCH.load(Ordering::Relaxed);
    match switch {
        _ if switch == RecordingSwitch::Idle as u8 => Err(Refused::NotStarted),
        _ if switch == RecordingSwitch::Forked as u8 => Err(Refused::Forked),
        _ => Ok(()),
    }
}

/// Sets the switch.
pub(crate) fn turn(to: RecordingSwitch) {
    SWITCH.store(to as u8, Ordering::Relaxed);
}

/// Returns the locked handle of the writer thread.
pub(crate) fn writer() -> RwLockWriteGuard<'static, Option<Thread>> {
    WRITER.write().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes the writer, unless this would block. Callers call this again for later records.
#[cold]
pub(crate) fn wake_writer() {
    if let Ok(Some(writer)) = WRITER.try_read().as_deref() {
        writer.unpark();
    }
}
