//! Buffered events of a node as a section of a trace.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use machine::{NodeId, NoteRing, RowId};
use trace::ProcessInfo;

use crate::file_recorder::FileRecorder;

/// Maximum number of events buffered for a node, about 40 MB. The oldest events are overwritten.
pub const KEPT_EVENTS: usize = 1 << 18;

/// Returns the section with all buffered events of `node`, which `process` describes.
pub fn section(ring: &NoteRing, node: NodeId, process: &ProcessInfo) -> Vec<u8> {
    let process = process.clone();
    let recorder = FileRecorder::new(Vec::new(), node, move |_| process.clone(), u64::MAX);
    let mut recorder = recorder.expect("a write to a vector succeeds");
    ring.drain_into(&mut recorder);
    if ring.dropped() > 0 && !ring.rows().is_empty() {
        recorder.dropped(RowId(0), ring.dropped());
    }
    recorder.finish().expect("a write to a vector succeeds");
    recorder.into_inner()
}

/// Appends a section to a trace; creates the file if it is missing. Several threads and processes may append at the
/// same time.
///
/// # Errors
/// If the file cannot be opened, locked or written.
pub fn append(path: &Path, section: &[u8]) -> io::Result<()> {
    let file = File::options().append(true).create(true).open(path)?;
    file.lock()?;
    (&file).write_all(section)
}
