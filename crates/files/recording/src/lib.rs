//! Writes events recorded by nodes to trace files.
//!
//! - `file_recorder.rs`: a [`machine::Recorder`] that writes a section of a trace, [`FileRecorder`].
//! - `numbered_names.rs`: the numbers of names in such a section.
//! - `section.rs`: writes the buffered events of a node as such a section, and appends sections to files.
//!
//! This crate reads no clock, and does not depend on the kinds of nodes.

mod file_recorder;
mod numbered_names;
mod section;

pub use file_recorder::{FileRecorder, RecordedPart};
pub use section::{KEPT_EVENTS, append, section};
