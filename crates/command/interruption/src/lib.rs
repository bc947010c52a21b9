//! Early end of a program by Ctrl-C, SIGTERM or SIGHUP, and cleanup of its unfinished work.
//!
//! - `signals.rs`: catches the signals and runs a reaction
//! - `half_done.rs`: undoes unfinished work if the program fails or is interrupted

mod half_done;
mod signals;

pub use half_done::{HalfDone, undo_when_interrupted};
pub use signals::{INTERRUPTED, Interrupt, end_when_interrupted, on_interruption, wait_if_ending};
