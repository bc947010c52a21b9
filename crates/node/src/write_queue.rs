//! Writes through a write cache: the queue that the program's threads fill, and the node thread that takes them in.
//!
//! ```text
//!  program's threads   copy, note, go on            copy, note ...    the queue is full: wait for the node thread
//!                              | after some milliseconds, or when half full
//!  node thread                 takes all there is into the write cache; flushes with the other members of the job
//! ```
//!
//! A cached write costs an uncontended lock and two copies. A failure is kept here and told to the next call that
//! writes, flushes or closes, whatever file that is of. It loses nothing: what could not be taken in is tried again by
//! the next call of any kind, and until then the calls that would have to see it fail (`taker.rs`).

use std::mem;
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use fs::Written;
use machine::Duration;

use crate::error::{Error, Result};
use crate::pending::Pending;

/// How many bytes, and writes, the queue may hold before the node thread is woken to take them: enough that waking it
/// up does not count, few enough that the processor's cache holds them.
const DATA_BYTES: usize = 256 << 10;
const WRITES: usize = 4096;

/// Writes on their way to the write cache.
#[derive(Default)]
pub(crate) struct WriteQueue {
    waiting: Mutex<Waiting>,
    /// The call under way by which the node thread takes what is in the queue.
    taking: Mutex<Option<Pending<()>>>,
    /// A moment, and its date by the node's clock in nanoseconds since 1970.
    dated: OnceLock<(Instant, u64)>,
}

#[derive(Default)]
struct Waiting {
    batch: QueuedWrites,
    /// Why earlier writes could not be taken in, until a caller is told.
    failure: Option<Error>,
}

/// Writes in the order in which they were made.
#[derive(Default)]
pub(crate) struct QueuedWrites {
    pub(crate) writes: Vec<Written>,
    /// The files of the writes, by their numbers on the node thread, each with how many writes in a row are to it.
    pub(crate) runs: Vec<(u64, usize)>,
    pub(crate) data: Vec<u8>,
}

impl QueuedWrites {
    fn is_full(&self) -> bool {
        self.writes.len() >= WRITES || self.data.len() >= DATA_BYTES
    }

    /// Whether some are to the file of this number.
    pub(crate) fn has_any_to(&self, file: u64) -> bool {
        self.runs.iter().any(|(number, _)| *number == file)
    }

    fn push(&mut self, file: u64, write: Written, bytes: &[u8]) {
        match self.runs.last_mut() {
            Some((last, count)) if *last == file => *count += 1,
            _ => self.runs.push((file, 1)),
        }
        self.writes.push(write);
        self.data.extend_from_slice(bytes);
    }
}

impl WriteQueue {
    /// Takes in the time of the node's clock now. Call it before the first write.
    pub(crate) fn set_date(&self, date: Duration) {
        self.dated.get_or_init(|| (Instant::now(), date.as_nanos()));
    }

    /// Puts a write into the queue, if it is not full; whether it is the first there. Tells a failure instead, if there
    /// is one to be told.
    pub(crate) fn put(&self, file: u64, offset: u64, bytes: &[u8]) -> Result<Option<bool>> {
        let write = Written { offset, bytes: bytes.len() as u64, time: self.now() };
        let mut waiting = self.waiting();
        waiting.tell()?;
        if waiting.batch.is_full() {
            return Ok(None);
        }
        let is_first = waiting.batch.writes.is_empty();
        waiting.batch.push(file, write, bytes);
        Ok(Some(is_first))
    }

    /// Whether writes to the file of this number are in the queue.
    pub(crate) fn has_any_to(&self, file: u64) -> bool {
        self.waiting().batch.has_any_to(file)
    }

    /// Takes all writes out of the queue.
    pub(crate) fn take(&self) -> QueuedWrites {
        mem::take(&mut self.waiting().batch)
    }

    /// Keeps the first failure until it is told.
    pub(crate) fn note(&self, failure: Error) {
        self.waiting().failure.get_or_insert(failure);
    }

    /// Fails, once, if writes could not be taken in.
    pub(crate) fn tell(&self) -> Result<()> {
        self.waiting().tell()
    }

    /// If the queue is full, calls `send` to have its writes taken in, after the earlier such call has ended.
    pub(crate) fn send(&self, send: impl FnOnce() -> Pending<()>) -> Result<()> {
        let mut taking = self.taking.lock().expect("nobody panics with it");
        if let Some(earlier) = taking.take() {
            earlier.wait()?;
        }
        if self.waiting().batch.is_full() {
            *taking = Some(send());
        }
        Ok(())
    }

    /// The date, in nanoseconds since 1970: cheaper than the clock's, and never earlier than before.
    fn now(&self) -> u64 {
        let (moment, date) = self.dated.get().expect("set before anybody writes");
        date + moment.elapsed().as_nanos() as u64
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("nobody panics with it")
    }
}

impl Waiting {
    fn tell(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }
}
