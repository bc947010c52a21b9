//! Optional trace of the work of a node of this process.

use std::cell::RefCell;
use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process;
use std::rc::Rc;

use machine::{Instant, Machine, NoteRing};
use real::RealMachine;
use recording::KEPT_EVENTS;
use trace::{ProcessInfo, ProcessNumber};

use crate::client_node::hostname;
use crate::error::{Error, ErrorKind, Result};

/// Length in bytes of the mark at the start of a trace file.
const MARK_BYTES: u64 = 8;

/// Recording of a node's work, in memory, until it [ends](Self::end).
pub struct NodeTrace {
    machine: RealMachine,
    ring: Rc<RefCell<NoteRing>>,
    path: PathBuf,
}

impl NodeTrace {
    /// Begins to record the work of `machine` in the trace file at `path`; without a path, records nothing.
    ///
    /// # Errors
    /// If the file cannot be created or appended to, or is no trace.
    pub fn begin(machine: &RealMachine, path: Option<&Path>) -> Result<Option<NodeTrace>> {
        let Some(path) = path else { return Ok(None) };
        check(path).map_err(|error| cannot_trace(path, &error))?;
        let ring = Rc::new(RefCell::new(NoteRing::new(KEPT_EVENTS)));
        machine.notes().record(ring.clone());
        Ok(Some(NodeTrace { machine: machine.clone(), ring, path: path.to_owned() }))
    }

    /// Appends the records to the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn end(self) -> Result<()> {
        self.machine.notes().stop();
        let section =
            recording::section(&self.ring.borrow(), self.machine.node(), &this_process(&self.machine));
        recording::append(&self.path, &section).map_err(|error| cannot_trace(&self.path, &error))
    }
}

/// Creates the file if it is missing. Fails if it is no trace.
fn check(path: &Path) -> io::Result<()> {
    let file = File::options().read(true).append(true).create(true).open(path)?;
    let mut beginning = Vec::new();
    file.take(MARK_BYTES).read_to_end(&mut beginning)?;
    if beginning.is_empty() || trace::is_trace(&beginning) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "this is not a trace, and was not changed"))
}

fn cannot_trace(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("the trace {}", path.display()), error)
        .with_remedy("Name a file in an existing, writable directory")
}

/// Returns the description of this process, of which `machine` is a node, for a trace.
fn this_process(machine: &RealMachine) -> ProcessInfo {
    let mut arguments = env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let program = arguments.next().unwrap_or_default();
    let name =
        Path::new(&program).file_name().map_or(program.clone(), |name| name.to_string_lossy().into_owned());
    let command_line: Vec<String> = std::iter::once(program).chain(arguments).collect();
    let since_start = machine.now().since(Instant::START).as_nanos();
    ProcessInfo {
        host: hostname(),
        number: ProcessNumber::Pid(process::id()),
        program: name,
        command_line: command_line.join(" "),
        zero_unix_ns: machine.date().as_nanos().checked_sub(since_start),
    }
}
