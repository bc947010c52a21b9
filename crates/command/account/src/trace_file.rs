//! Trace of a simulated run, in the format that the ending of its file name selects.
//!
//! Nodes write a trace file during the run. For the Perfetto UI this is a temporary file, which is converted after the
//! run.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use command_line::failure::{Failure, Result};
use description::MachineDescription;
use experiment::{Experiment, Trial};
use machine::{Instant, NodeId, NotedEvent, Recorder, RowId};
use recording::{FileRecorder, RecordedPart};
use transfer::local;

use crate::node_names::NodeNames;

/// Trace that is being written.
pub struct TraceFile {
    path: PathBuf,
    recorder: FileRecorder<BufWriter<File>>,
    /// Output file for the Perfetto UI, and the temporary trace; `None` if another format is wanted.
    perfetto: Option<(File, File)>,
}

impl TraceFile {
    /// Creates the file, or replaces it, for a trace of at most `most` spans, counts and messages on this machine.
    pub fn create(path: &Path, machine: &MachineDescription, most: u64) -> Result<Self> {
        let failed = |error| Failure::new(path.display().to_string(), error);
        let file = File::create(path).map_err(|error| {
            failed(error).remedy("For --trace, name a file in an existing, writable directory.")
        })?;
        let is_trace = path.extension().is_some_and(|extension| extension == "tlv");
        let (recorded, perfetto) = if is_trace {
            (file, None)
        } else {
            let recorded = tempfile::tempfile().map_err(|error| Failure::new("a temporary file", error))?;
            let again = recorded.try_clone().map_err(failed)?;
            (recorded, Some((file, again)))
        };
        let names = NodeNames::of(machine);
        let describe = move |node| names.process(node);
        let recorder = FileRecorder::new(BufWriter::new(recorded), NodeId(0), describe, most);
        Ok(TraceFile { path: path.to_owned(), recorder: recorder.map_err(failed)?, perfetto })
    }

    /// Completes the file. Fails if any part could not be written.
    pub fn finish(&mut self) -> Result<RecordedPart> {
        self.write().map_err(|error| Failure::new(self.path.display().to_string(), error))
    }

    fn write(&mut self) -> io::Result<RecordedPart> {
        let part = self.recorder.finish()?;
        if let Some((file, mut recorded)) = self.perfetto.take() {
            recorded.rewind()?;
            let timeline = trace::read("the run", BufReader::new(recorded)).map_err(io::Error::other)?;
            trace_formats::write_perfetto(&timeline, BufWriter::new(file))?;
        }
        Ok(part)
    }
}

/// Maximum number of events in the trace of a prediction.
const PREDICTED_EVENTS_MAX: u64 = 10_000_000;

/// Runs the first trial of an experiment as a prediction, and traces it if a file is named.
pub fn predicted_trial(experiment: &Experiment, trace: Option<&Path>) -> Result<Trial> {
    let trial = match trace {
        None => experiment.trial(0),
        Some(path) => {
            let file = TraceFile::create(path, &experiment.machine, PREDICTED_EVENTS_MAX)?;
            let file = Rc::new(RefCell::new(file));
            let trial = experiment.recorded_trial(0, file.clone());
            file.borrow_mut().finish()?;
            trial
        }
    };
    trial.map_err(|error| Failure::new("predicting", error))
}

/// Returns the paths of two traces: of the measurement, and of its prediction in the same directory. Fails unless there
/// is exactly one measurement. `choose` is the remedy.
pub fn measured_and_predicted(path: &Path, measurements: usize, choose: &str) -> Result<(PathBuf, PathBuf)> {
    if measurements != 1 {
        let why = format!("a trace needs a single measurement, and there are {measurements}");
        return Err(Failure::usage("--trace", why).remedy(choose));
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    local::check_writable(path)?;
    // Empty the file now, because several processes will append their parts of the measurement.
    File::create(path).map_err(|error| Failure::new(path.display().to_string(), error))?;
    let whole = std::path::absolute(path).map_err(|error| Failure::new(path.display().to_string(), error))?;
    let predicted = whole.with_file_name(format!("{name}-predicted.tlv"));
    Ok((whole, predicted))
}

impl Recorder for TraceFile {
    fn row(&mut self, node: NodeId, name: &str, counts: bool) -> RowId {
        self.recorder.row(node, name, counts)
    }

    fn note(&mut self, row: RowId, time: Instant, event: NotedEvent<'_>) {
        self.recorder.note(row, time, event);
    }
}
