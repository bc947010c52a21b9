//! What nodes note, in trace files.
//!
//! - `file_recorder.rs`: a [`machine::Recorder`] that writes a section of a trace, [`FileRecorder`]
//! - `section.rs`: what a node has kept, as such a section, added to a file
//!
//! Here is no clock, and nothing of what a node is.

mod file_recorder;
mod section;

pub use file_recorder::{FileRecorder, RecordedPart};
pub use section::{KEPT_EVENTS, append, section};
