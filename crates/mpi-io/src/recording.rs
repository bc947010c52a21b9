//! Recording: what this process reads and writes through MPI-IO, as a log that `starfish replay` makes anew.
//!
//! With `STARFISH_MPI_RECORD=FILE` each process writes a request log of format 2 of its own, `FILE.0`, `FILE.1` and so
//! on by its rank among all processes: a line for each call that has moved data, with its pieces in closed form, and
//! for each sync. Every line is with the operating system before the call returns, so a process that is killed leaves
//! what it has done. Nothing is kept in memory. Without the variable there is a test for nothing at each call.
//!
//! A log that cannot be written ends, with a word on standard error; the program goes on.

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
}

/// What is recorded of an open file.
pub(crate) struct CallRecorder {
    path: String,
    opening: String,
    size: u32,
    /// The number of the next collective call.
    next: AtomicU64,
}

/// A call that has begun.
pub(crate) struct BegunCall {
    begun: Instant,
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
        Ok(ProcessLog { file_name: file_name.to_owned(), node, writer, started: Instant::now(), started_at })
    }

    fn time(&self, at: Instant) -> Duration {
        self.started_at + nanoseconds(at.saturating_duration_since(self.started))
    }
}

fn tell(file_name: &str, error: &io::Error) {
    eprintln!("starfish: {file_name}: what this process does is not recorded: {error}");
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
        let (block_bytes, stripes) = (stat.block_bytes, stat.stripes);
        record(|log| {
            let (told, time) =
                (ToldOpening { name: &opening, rank, size, block_bytes, stripes }, log.time(Instant::now()));
            log.writer.write_opening((time, log.node), path, told)
        });
        Some(CallRecorder { path: path.to_owned(), opening, size, next: AtomicU64::new(0) })
    }

    /// A call begins, made together with the others or not.
    pub(crate) fn call(&self, together: bool) -> BegunCall {
        match together && self.size > 1 {
            true => self.common_call(),
            false => BegunCall { begun: Instant::now(), number: None },
        }
    }

    /// A call begins that is common to all members, also if there is one only.
    pub(crate) fn common_call(&self) -> BegunCall {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        BegunCall { begun: Instant::now(), number: Some(number) }
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
        let took = nanoseconds(call.begun.elapsed());
        record(|log| {
            let request = |action| Request { time: log.time(call.begun), took, action };
            let alone = moves.filter(|_| call.number.is_none());
            if let Some((operation, selection)) = alone.filter(|(_, selection)| is_stretch(selection)) {
                let stretch =
                    Stretch { file: 0, bytes: selection.bytes() as u32, offset: selection.span().offset };
                return log.writer.write(log.node, &request(Action::Move(operation, stretch)), &[&self.path]);
            }
            let together = call.number.map(|number| (&*self.opening, number));
            let told = ToldCall { file: &self.path, moves, together, method };
            log.writer.write_call(log.node, &request(Action::Sync), &told)
        });
    }
}

/// Whether it is one piece, as any request log has it.
fn is_stretch(selection: &Selection) -> bool {
    selection.runs() == 1 && selection.bytes() <= REQUEST_BYTES_MAX
}
