//! Early end of a program by Ctrl-C, SIGTERM or SIGHUP, and cleanup of its unfinished work.
//!
//! - `signals.rs`: catches the signals and runs a reaction
//! - `undo_guard.rs`: undoes unfinished work if the program fails or is interrupted

mod signals;
mod undo_guard;

pub use signals::{INTERRUPTED, Interrupt, end_when_interrupted, on_interruption, wait_if_ending};
pub use undo_guard::{UndoGuard, undo_when_interrupted};
