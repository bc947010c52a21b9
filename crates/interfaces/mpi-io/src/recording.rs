//! Recording: what this process reads and writes through MPI-IO, as a log that `starfish replay` makes anew.
//!
//! With `STARFISH_MPI_RECORD=FILE` each process writes a request log of format 2 of its own, `FILE.0`, `FILE.1` and so
//! on by its rank among all processes: a line for each call that has moved data, with its pieces in closed form, and
//! for each sync. Lines are in the order in which calls have begun. Each is with the operating system before the call
//! returns, or when those are over that have begun before it: so a process that is killed leaves what it has done.
//! Without the variable there is a test for nothing at each call.
//!
//! A log that cannot be written ends, with a word on standard error; the program goes on.

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
    Action, CallMethod, LogWriter, REQUEST_BYTES_MAX, Request, Stretch, ToldCall, ToldOpening,
};

use crate::failure::say;

/// The environment variable that asks for it.
const VARIABLE: &str = "STARFISH_MPI_RECORD";

/// Letters of the name of an opening: enough that no two have the same.
const NAME_LETTERS: usize = 16;

/// Which process this is of how many, if the MPI has said it.
static PLACE: OnceLock<(u32, u32)> = OnceLock::new();

/// The log of this process: none if nobody asks for one, or if it could not be written.
static LOG: OnceLock<Mutex<Option<ProcessLog>>> = OnceLock::new();

/// Takes in which process this is, of how many.
pub(crate) fn note_process(rank: u32, size: u32) {
    // The first time counts: it does not change.
    let _ = PLACE.set((rank, size));
}

struct ProcessLog {
    file_name: String,
    node: u32,
    writer: LogWriter<BufWriter<File>>,
    /// Times are since 1970, and do not run backwards.
    started: Instant,
    started_at: Duration,
    /// The calls that have begun, by their numbers, from the first that is not over: with its line, if one is.
    begun: BTreeMap<u64, Option<Line>>,
    /// How many have begun.
    count: u64,
}

/// What writes the line of a call.
type Line = Box<dyn FnOnce(&mut ProcessLog) -> io::Result<()> + Send>;

/// What is recorded of an open file.
pub(crate) struct CallRecorder {
    path: String,
    opening: String,
    size: u32,
    /// The number of the next collective call.
    next: AtomicU64,
}

/// A call that has begun. Dropped without a line, it has moved nothing.
pub(crate) struct BegunCall {
    begun: Instant,
    /// Its number among all calls of this process.
    place: u64,
    number: Option<u64>,
}

fn nanoseconds(time: std::time::Duration) -> Duration {
    Duration::from_nanos(time.as_nanos().try_into().unwrap_or(u64::MAX))
}

#[expect(
    clippy::disallowed_methods,
    reason = "hosts have no other time in common; what follows does not run backwards"
)]
fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(Duration::ZERO, nanoseconds)
}

fn log() -> MutexGuard<'static, Option<ProcessLog>> {
    let log = LOG.get_or_init(|| Mutex::new(ProcessLog::asked_for()));
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProcessLog {
    /// The log of this process, if anybody asks for it.
    fn asked_for() -> Option<ProcessLog> {
        let name = env::var(VARIABLE).ok().filter(|name| !name.is_empty())?;
        let (rank, size) = PLACE.get().copied().unwrap_or((0, 1));
        let file_name = format!("{name}.{rank}");
        let begun = ProcessLog::begin(&file_name, rank, size);
        begun.inspect_err(|error| tell(&file_name, error)).ok()
    }

    fn begin(file_name: &str, node: u32, size: u32) -> io::Result<ProcessLog> {
        let mut writer = LogWriter::begin_calls(BufWriter::new(File::create(file_name)?))?;
        let started_at = since_1970();
        writer.write_process((started_at, node), size)?;
        writer.flush()?;
        let (file_name, started) = (file_name.to_owned(), Instant::now());
        Ok(ProcessLog { file_name, node, writer, started, started_at, begun: BTreeMap::new(), count: 0 })
    }

    /// A call begins; its place, and when that is.
    fn begin_call(&mut self) -> (u64, Instant) {
        self.count += 1;
        self.begun.insert(self.count, None);
        (self.count, Instant::now())
    }

    /// Writes the lines of those calls that are over with all before them.
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

fn tell(file_name: &str, error: &io::Error) {
    say(format!("starfish: {file_name}: what this process does is not recorded: {error}"));
}

/// Writes to the log of this process, if there is one; it ends if that fails.
fn record(write: impl FnOnce(&mut ProcessLog) -> io::Result<()>) {
    let mut log = log();
    let Some(open) = &mut *log else { return };
    if let Err(error) = write(open).and_then(|()| open.writer.flush()) {
        tell(&open.file_name, &error);
        *log = None;
    }
}

impl CallRecorder {
    /// Records that this process, of so many, has opened a file with the others who come with this name; nothing if
    /// nobody asks for it.
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
            let told = ToldOpening { name: &opening, rank, size, block_bytes, stripes };
            log.writer.write_opening((log.time(begun), log.node), &path, told)
        });
        Some(recorder)
    }

    /// A call begins, made together with the others or not.
    pub(crate) fn call(&self, together: bool) -> BegunCall {
        match together && self.size > 1 {
            true => self.common_call(),
            false => BegunCall::begin(None),
        }
    }

    /// A call begins that is common to all members, also if there is one only.
    pub(crate) fn common_call(&self) -> BegunCall {
        BegunCall::begin(Some(self.next.fetch_add(1, Ordering::Relaxed)))
    }

    /// A call has moved so many of the bytes that were selected, by a method of this name.
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

    /// What was written has been brought onto the disks.
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
            let told = ToldCall { file: &path, moves, together, method };
            log.writer.write_call(node, &request(Action::Sync), &told)
        };
        call.end(write);
    }
}

impl BegunCall {
    fn begin(number: Option<u64>) -> Self {
        let (place, begun) = log().as_mut().map_or((0, Instant::now()), ProcessLog::begin_call);
        BegunCall { begun, place, number }
    }

    /// It is over, and has this line.
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

/// Whether it is one piece, as any request log has it.
fn is_stretch(selection: &Selection) -> bool {
    selection.runs() == 1 && selection.bytes() <= REQUEST_BYTES_MAX
}
