//! The trace of a simulated run, in the format that the name of its file asks for.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use command_line::failure::{Failure, Result};
use description::MachineDescription;
use machine::{Instant, NodeId, NotedEvent, Recorder, RowId};
use recording::{FileRecorder, RecordedPart};

use crate::node_names::NodeNames;
use crate::perfetto_file::PerfettoFile;

/// A trace that is being written.
pub(crate) struct TraceFile {
    path: PathBuf,
    writer: Writer,
}

enum Writer {
    /// A `.tlv` file.
    Trace(FileRecorder<BufWriter<File>>),
    /// A file for the Perfetto UI.
    Perfetto(PerfettoFile),
}

impl TraceFile {
    /// Creates the file, or replaces it, for a trace of at most `most` spans, counts and messages on this machine.
    pub(crate) fn create(path: &Path, machine: &MachineDescription, most: u64) -> Result<Self> {
        let file = BufWriter::new(File::create(path).map_err(|error| {
            let failure = Failure::new(path.display().to_string(), error);
            failure.remedy("Give --trace a file in a directory that exists and can be written to.")
        })?);
        let names = NodeNames::of(machine);
        let writer = if path.extension().is_some_and(|extension| extension == "tlv") {
            let recorder = FileRecorder::new(file, NodeId(0), move |node| names.process(node), most);
            Writer::Trace(recorder.map_err(|error| Failure::new(path.display().to_string(), error))?)
        } else {
            Writer::Perfetto(PerfettoFile::new(file, names, most))
        };
        Ok(TraceFile { path: path.to_owned(), writer })
    }

    /// Ends the file; fails if any of it could not be written.
    pub(crate) fn finish(&mut self) -> Result<RecordedPart> {
        let written = match &mut self.writer {
            Writer::Trace(recorder) => recorder.finish(),
            Writer::Perfetto(file) => file.finish(),
        };
        written.map_err(|error| Failure::new(self.path.display().to_string(), error))
    }

    fn recorder(&mut self) -> &mut dyn Recorder {
        match &mut self.writer {
            Writer::Trace(recorder) => recorder,
            Writer::Perfetto(file) => file,
        }
    }
}

impl Recorder for TraceFile {
    fn row(&mut self, node: NodeId, name: &str, counts: bool) -> RowId {
        self.recorder().row(node, name, counts)
    }

    fn note(&mut self, row: RowId, time: Instant, event: NotedEvent<'_>) {
        self.recorder().note(row, time, event);
    }
}
