//! The end of a program before it is done: Ctrl-C, SIGTERM and SIGHUP, and what they leave half done.
//!
//! - `signals.rs`: when a program is interrupted, and what happens then
//! - `half_done.rs`: things that are undone if the program fails or is interrupted

mod half_done;
mod signals;

pub use half_done::{HalfDone, undo_when_interrupted};
pub use signals::{INTERRUPTED, Interrupt, end_when_interrupted, on_interruption, wait_if_ending};
