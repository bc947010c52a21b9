//! Recording: the reads and writes of this process through MPI-IO, as a log that `starfish replay` repeats.
//!
//! With `STARFISH_MPI_RECORD=FILE` each process writes a separate request log of format 2: `FILE.0`, `FILE.1` and so
//! on, by its rank among all processes. The log has a line for each call that moved data, with its pieces in closed
//! form, and for each sync.
//!
//! Lines are in the order in which calls began. A line is passed to the operating system before its call returns, or
//! when all calls that began earlier have completed. So the log of a killed process contains all completed calls before
//! the first one that was in flight. If the variable is not set, each call only tests a flag.
//!
//! If the log cannot be written, a message on standard error says so, recording ends, and the program continues.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use layout::{Operation, Selection};
use machine::Duration;
use node::Stat;
use request_log::{
    Action, CallMethod, CallToWrite, LogWriter, OpeningToWrite, REQUEST_BYTES_MAX, Request, Stretch,
};

use crate::failure::say;

/// The environment variable that requests a recording.
const VARIABLE: &str = "STARFISH_MPI_RECORD";

/// Number of letters in the name of a collective open: enough for a unique name.
const NAME_LETTERS: usize = 16;

/// Rank of this process and number of processes, once MPI has reported them.
static PLACE: OnceLock<(u32, u32)> = OnceLock::new();

/// The log of this process; `None` if recording is off or has failed.
static LOG: OnceLock<Mutex<Option<ProcessLog>>> = OnceLock::new();

/// Stores the rank of this process and the number of processes.
pub(crate) fn note_process(rank: u32, size: u32) {
    // Only the first call counts: the values do not change.
    let _ = PLACE.set((rank, size));
}

struct ProcessLog {
    file_name: String,
    node: u32,
    writer: LogWriter<BufWriter<File>>,
    /// Start of the log on the monotonic clock, and since 1970. Times in the log are computed from both, so that they
    /// never decrease.
    started: Instant,
    started_at: Duration,
    /// Calls by number, beginning with the first one in flight. A completed call has a line that is yet to be written.
    begun: BTreeMap<u64, Option<Line>>,
    /// Number of calls begun.
    count: u64,
}

/// A function that writes the line of a call.
type Line = Box<dyn FnOnce(&mut ProcessLog) -> io::Result<()> + Send>;

/// Recording of an open file.
pub(crate) struct CallRecorder {
    path: String,
    opening: String,
    size: u32,
    /// Number of the next collective call.
    next: AtomicU64,
}

/// A call that has begun. A call that is dropped without a line has moved no data.
pub(crate) struct BegunCall {
    begun: Instant,
    /// Number of the call among all calls of this process.
    place: u64,
    number: Option<u64>,
}

fn nanoseconds(time: std::time::Duration) -> Duration {
    Duration::from_nanos(time.as_nanos().try_into().unwrap_or(u64::MAX))
}

#[expect(
    clippy::disallowed_methods,
    reason = "hosts share no other clock; only the start of the log uses this one"
)]
fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(Duration::ZERO, nanoseconds)
}

fn log() -> MutexGuard<'static, Option<ProcessLog>> {
    let log = LOG.get_or_init(|| Mutex::new(ProcessLog::asked_for()));
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProcessLog {
    /// Returns the log of this process if a recording is requested.
    fn asked_for() -> Option<ProcessLog> {
        let name = env::var(VARIABLE).ok().filter(|name| !name.is_empty())?;
        let (rank, size) = PLACE.get().copied().unwrap_or((0, 1));
        let file_name = format!("{name}.{rank}");
        let begun = ProcessLog::begin(&file_name, rank, size);
        begun.inspect_err(|error| print_error(&file_name, error)).ok()
    }

    fn begin(file_name: &str, node: u32, size: u32) -> io::Result<ProcessLog> {
        let mut writer = LogWriter::begin_calls(BufWriter::new(File::create(file_name)?))?;
        let started_at = since_1970();
        writer.write_process((started_at, node), size)?;
        writer.flush()?;
        let (file_name, started) = (file_name.to_owned(), Instant::now());
        Ok(ProcessLog { file_name, node, writer, started, started_at, begun: BTreeMap::new(), count: 0 })
    }

    /// Starts a call; returns its number and the start time.
    fn begin_call(&mut self) -> (u64, Instant) {
        self.count += 1;
        self.begun.insert(self.count, None);
        (self.count, Instant::now())
    }

    /// Writes the lines of completed calls, up to the first call in flight.
    fn write_lines(&mut self) -> io::Result<()> {
        while let Some(first) = self.begun.first_entry().filter(|first| first.get().is_some()) {
            first.remove().expect("it has one")(self)?;
        }
        Ok(())
    }

    fn time(&self, at: Instant) -> Duration {
        self.started_at + nanoseconds(at.saturating_duration_since(self.started))
    }
}

fn print_error(file_name: &str, error: &io::Error) {
    say(format!("starfish: {file_name}: cannot record this process: {error}"));
}

/// Writes to the log of this process, if it exists; ends the log if that fails.
fn record(write: impl FnOnce(&mut ProcessLog) -> io::Result<()>) {
    let mut log = log();
    let Some(open) = &mut *log else { return };
    if let Err(error) = write(open).and_then(|()| open.writer.flush()) {
        print_error(&open.file_name, &error);
        *log = None;
    }
}

impl CallRecorder {
    /// Records that this process opened a file with the other processes that use the same team name. Returns `None` if
    /// recording is off.
    pub(crate) fn begin(
        path: &str,
        (name, rank, size): (&str, u32, u32),
        stat: Stat,
    ) -> Option<CallRecorder> {
        note_process(rank, size);
        log().as_ref()?;
        let opening = name.get(..NAME_LETTERS).unwrap_or(name).to_owned();
        let recorder = CallRecorder { path: path.to_owned(), opening, size, next: AtomicU64::new(0) };
        let (opened, block_bytes, stripes) = (BegunCall::begin(None), stat.block_bytes, stat.stripes);
        let (path, opening, begun) = (recorder.path.clone(), recorder.opening.clone(), opened.begun);
        opened.end(move |log| {
            let opening = OpeningToWrite { name: &opening, rank, size, block_bytes, stripes };
            log.writer.write_opening((log.time(begun), log.node), &path, opening)
        });
        Some(recorder)
    }

    /// Records the start of a call, collective or not.
    pub(crate) fn call(&self, together: bool) -> BegunCall {
        match together && self.size > 1 {
            true => self.common_call(),
            false => BegunCall::begin(None),
        }
    }

    /// Records the start of a collective call, even if the file has a single member.
    pub(crate) fn common_call(&self) -> BegunCall {
        BegunCall::begin(Some(self.next.fetch_add(1, Ordering::Relaxed)))
    }

    /// Records that a call has moved `bytes` bytes of its selection, by the method of this name.
    pub(crate) fn moved(
        &self,
        call: BegunCall,
        operation: Operation,
        (selection, bytes): (&Selection, u64),
        method: &str,
    ) {
        let Ok(selection) = selection.slice(0, bytes) else { return };
        if selection.is_empty() && call.number.is_none() {
            return;
        }
        let method = CallMethod::named(method).unwrap_or(CallMethod::Independent);
        self.record(call, Some((operation, &selection)), Some(method));
    }

    /// Records a completed sync.
    pub(crate) fn synced(&self, call: BegunCall) {
        self.record(call, None, None);
    }

    fn record(&self, call: BegunCall, moves: Option<(Operation, &Selection)>, method: Option<CallMethod>) {
        let (took, begun, number) = (nanoseconds(call.begun.elapsed()), call.begun, call.number);
        let (path, opening) = (self.path.clone(), self.opening.clone());
        let moves = moves.map(|(operation, selection)| (operation, selection.clone()));
        let write = move |log: &mut ProcessLog| {
            let (time, node) = (log.time(begun), log.node);
            let request = |action| Request { time, took, action };
            let moves = moves.as_ref().map(|(operation, selection)| (*operation, selection));
            let alone = moves.filter(|_| number.is_none());
            if let Some((operation, selection)) = alone.filter(|(_, selection)| is_stretch(selection)) {
                let stretch =
                    Stretch { file: 0, bytes: selection.bytes() as u32, offset: selection.span().offset };
                return log.writer.write(node, &request(Action::Move(operation, stretch)), &[&path]);
            }
            let together = number.map(|number| (&*opening, number));
            let call = CallToWrite { file: &path, moves, together, method };
            log.writer.write_call(node, &request(Action::Sync), &call)
        };
        call.end(write);
    }
}

impl BegunCall {
    fn begin(number: Option<u64>) -> Self {
        let (place, begun) = log().as_mut().map_or((0, Instant::now()), ProcessLog::begin_call);
        BegunCall { begun, place, number }
    }

    /// Completes the call with this line.
    fn end(self, line: impl FnOnce(&mut ProcessLog) -> io::Result<()> + Send + 'static) {
        record(|log| {
            log.begun.insert(self.place, Some(Box::new(line)));
            log.write_lines()
        });
    }
}

impl Drop for BegunCall {
    fn drop(&mut self) {
        record(|log| match log.begun.get(&self.place) {
            Some(None) => {
                log.begun.remove(&self.place);
                log.write_lines()
            }
            _ => Ok(()),
        });
    }
}

/// True if the selection is a single range, as any request log can express it.
fn is_stretch(selection: &Selection) -> bool {
    selection.runs() == 1 && selection.bytes() <= REQUEST_BYTES_MAX
}
