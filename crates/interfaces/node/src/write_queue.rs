//! Queue of writes to a write cache: the program's threads fill it, and the node thread empties it.
//!
//! ```text
//!  program's threads   copy, record, continue       copy, record ...  the queue is full: wait for the node thread
//!                              | after some milliseconds, or when it is full
//!  node thread                 moves all writes into the write cache; flushes with the other members of the job
//! ```
//!
//! A cached write costs an uncontended lock and two copies. Writes without room in the cache stay with the node thread,
//! which tries again.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use fs::Written;
use machine::Duration;

use crate::error::Result;
use crate::pending::Pending;

/// Numbers of queued bytes, and of queued writes, at which the node thread is woken to empty the queue: large enough
/// that the cost of waking is negligible, small enough for the processor's cache.
const DATA_BYTES: usize = 256 << 10;
const WRITES: usize = 4096;

/// Queue of writes to the write cache.
#[derive(Default)]
pub(crate) struct WriteQueue {
    batch: Mutex<QueuedWrites>,
    /// Call in flight by which the node thread empties the queue.
    taking: Mutex<Option<Pending<()>>>,
    /// True if there may be an unreported failure. The next write asks the node thread for the failure.
    has_failed: AtomicBool,
    /// A time of the monotonic clock, and the same time by the node's clock in nanoseconds since 1970.
    dated: OnceLock<(Instant, u64)>,
}

/// Writes in the order in which they were made.
#[derive(Default)]
pub(crate) struct QueuedWrites {
    pub(crate) writes: Vec<Written>,
    /// Files of the writes, by their numbers on the node thread, each with the number of consecutive writes to it.
    pub(crate) runs: Vec<(u64, usize)>,
    pub(crate) data: Vec<u8>,
}

impl QueuedWrites {
    fn is_full(&self) -> bool {
        self.writes.len() >= WRITES || self.data.len() >= DATA_BYTES
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
    /// Sets the current date of the node's clock. To be called before the first write.
    pub(crate) fn set_date(&self, date: Duration) {
        self.dated.get_or_init(|| (Instant::now(), date.as_nanos()));
    }

    /// Puts a write into the queue. Returns true if the write is the first there, or `None` if the queue is full.
    pub(crate) fn put(&self, file: u64, offset: u64, bytes: &[u8]) -> Option<bool> {
        let write = Written { offset, bytes: bytes.len() as u64, time: self.now() };
        let mut batch = self.batch();
        if batch.is_full() {
            return None;
        }
        let is_first = batch.writes.is_empty();
        batch.push(file, write, bytes);
        Some(is_first)
    }

    /// Records that there may be an unreported failure, or that there is no such failure.
    pub(crate) fn note_failed(&self, has_failed: bool) {
        self.has_failed.store(has_failed, Ordering::Relaxed);
    }

    /// True if there may be an unreported failure.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Takes all writes out of the queue.
    pub(crate) fn take(&self) -> QueuedWrites {
        mem::take(&mut *self.batch())
    }

    /// If the queue is full, waits for the previous call that empties the queue, and then calls `send` to begin another
    /// one. Fails if the previous call failed.
    pub(crate) fn send(&self, send: impl FnOnce() -> Pending<()>) -> Result<()> {
        let mut taking = self.taking.lock().expect("no thread panics with this lock");
        if let Some(earlier) = taking.take() {
            earlier.wait()?;
        }
        if self.batch().is_full() {
            *taking = Some(send());
        }
        Ok(())
    }

    /// Returns the date in nanoseconds since 1970: cheaper than the node's clock, and never earlier than before.
    fn now(&self) -> u64 {
        let (moment, date) = self.dated.get().expect("set before the first write");
        date + moment.elapsed().as_nanos() as u64
    }

    fn batch(&self) -> MutexGuard<'_, QueuedWrites> {
        self.batch.lock().expect("no thread panics with this lock")
    }
}
