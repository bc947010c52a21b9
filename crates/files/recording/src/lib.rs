//! What nodes note, in trace files.
//!
//! - `file_recorder.rs`: a [`machine::Recorder`] that writes a section of a trace, [`FileRecorder`]
//! - `numbered_names.rs`: the numbers of names in such a section
//! - `section.rs`: what a node has kept, as such a section, added to a file
//!
//! Here is no clock, and nothing of what a node is.

mod file_recorder;
mod numbered_names;
mod section;

pub use file_recorder::{FileRecorder, RecordedPart};
pub use section::{KEPT_EVENTS, append, section};
