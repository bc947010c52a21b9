//! Whether something is recorded, which every call looks at first; and the writer, to be woken when there is much to
//! write.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};
use std::thread::Thread;

use crate::error::Refused;

/// What is done with what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RecordingSwitch {
    /// No recording has begun.
    Idle,
    /// It is recorded.
    On,
    /// The user wants nothing to be recorded: all calls succeed and do nothing.
    Off,
    /// The process was forked off one that records.
    Forked,
}

static SWITCH: AtomicU8 = AtomicU8::new(RecordingSwitch::Idle as u8);

static WRITER: RwLock<Option<Thread>> = RwLock::new(None);

/// Whether something is recorded.
#[inline]
pub(crate) fn is_on() -> bool {
    SWITCH.load(Ordering::Relaxed) == RecordingSwitch::On as u8
}

/// What a call gives if nothing is recorded.
#[cold]
pub(crate) fn not_on() -> Result<(), Refused> {
    let switch = SWITCH.load(Ordering::Relaxed);
    match switch {
        _ if switch == RecordingSwitch::Idle as u8 => Err(Refused::NotStarted),
        _ if switch == RecordingSwitch::Forked as u8 => Err(Refused::Forked),
        _ => Ok(()),
    }
}

/// Turns the switch.
pub(crate) fn turn(to: RecordingSwitch) {
    SWITCH.store(to as u8, Ordering::Relaxed);
}

/// The place of the thread that writes, locked.
pub(crate) fn writer() -> RwLockWriteGuard<'static, Option<Thread>> {
    WRITER.write().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes the writer, if that needs no waiting: who cannot now will try again when there is more.
#[cold]
pub(crate) fn wake_writer() {
    if let Ok(Some(writer)) = WRITER.try_read().as_deref() {
        writer.unpark();
    }
}
