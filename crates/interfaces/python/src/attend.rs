//! Waiting for other threads without the interpreter lock, while attending to Python.
//!
//! ```text
//!   Python's thread   detach ... attach: signals? progress? ... detach ... attach: signals? ...
//!   another thread    work: trial after trial, on threads of its own;  watch.add(1), watch.is_cancelled()
//! ```
//!
//! An interrupt, or an error of the function that shows progress, cancels the work. What is under way cannot be stopped
//! within a trial; after [`PATIENCE`] it is left to end by itself, and its outcome is dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::error::{Failure, Result};

/// How long an interrupt may go unnoticed: less than a user notices.
pub(crate) const INTERVAL: Duration = Duration::from_millis(50);

/// How long cancelled work may go on before it is left alone: most trials are over by then.
const PATIENCE: Duration = Duration::from_millis(500);

/// What the thread that works and the one that waits know of each other.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    done: AtomicU64,
    /// Whether `done` says how many are done: some may have been done before.
    is_told: AtomicBool,
    cancelled: AtomicBool,
}

impl Watch {
    /// Notes that `count` more are done.
    pub(crate) fn add(&self, count: u64) {
        self.done.fetch_add(count, Ordering::Relaxed);
        self.is_told.store(true, Ordering::Release);
    }

    /// Notes how many are done.
    pub(crate) fn set(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.is_told.store(true, Ordering::Release);
    }

    /// How many are done, if the work has said so yet.
    fn done(&self) -> Option<u64> {
        self.is_told.load(Ordering::Acquire).then(|| self.done.load(Ordering::Relaxed))
    }

    /// Whether the result is no longer waited for.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Does `work` in a thread of its own; meanwhile calls `report` with how many of `total` are done, once `work` has said
/// so and whenever that has changed.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    total: u64,
    report: Option<Py<PyAny>>,
    work: impl FnOnce(&Watch) -> T + Send + 'static,
) -> Result<T> {
    let watch = Arc::new(Watch::default());
    let (sender, receiver) = sync_channel(1);
    let watched = watch.clone();
    let worker = thread::Builder::new().name("starfish".to_owned()).spawn(move || {
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&watched)));
        // Without a receiver the result is no longer waited for.
        let _ = sender.send(outcome.map_err(|panic| Failure::of_panic(&*panic)));
    });
    worker.map_err(|error| Failure::Simulation(format!("starting a thread: {error}")))?;
    let mut reporter = Reporter { report, total, reported: None };
    py.detach(|| attend(receiver, &watch, &mut reporter))
}

fn attend<T>(receiver: Receiver<Result<T>>, watch: &Watch, reporter: &mut Reporter) -> Result<T> {
    loop {
        let outcome = receiver.recv_timeout(INTERVAL);
        let attended = Python::attach(|py| {
            py.check_signals()?;
            reporter.report(py, watch.done())
        });
        if let Err(error) = attended {
            watch.cancelled.store(true, Ordering::Relaxed);
            if matches!(outcome, Err(RecvTimeoutError::Timeout)) {
                drop(receiver.recv_timeout(PATIENCE));
            }
            return Err(error.into());
        }
        match outcome {
            Ok(outcome) => return outcome,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => unreachable!("it sends before it ends"),
        }
    }
}

/// Tells Python how much is done.
struct Reporter {
    report: Option<Py<PyAny>>,
    total: u64,
    reported: Option<u64>,
}

impl Reporter {
    fn report(&mut self, py: Python<'_>, done: Option<u64>) -> PyResult<()> {
        if let Some(report) = &self.report
            && done != self.reported
        {
            report.call1(py, (done, self.total))?;
            self.reported = done;
        }
        Ok(())
    }
}
