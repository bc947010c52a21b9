//! Waits for work in another thread without the interpreter lock. Handles signals and reports progress to
//! Python while it waits.
//!
//! ```text
//!   Python's thread   detach ... attach: signals? progress? ... detach ... attach: signals? ...
//!   another thread    work: trial after trial, on its own threads;  watch.add(1), watch.is_cancelled()
//! ```
//!
//! An interrupt, or an error of the progress function, cancels the work. A trial in flight cannot be stopped. After
//! [`PATIENCE`] the waiting thread returns without it; the trial continues, and its outcome is dropped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::error::{Failure, Result};

/// Interval between checks for interrupts, short enough that a user does not notice the delay.
pub(crate) const INTERVAL: Duration = Duration::from_millis(50);

/// Time to wait for cancelled work before it is abandoned. Most trials end within this time.
const PATIENCE: Duration = Duration::from_millis(500);

/// State shared by the working thread and the waiting thread.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    done: AtomicU64,
    /// True once the work has set `done`: before, the number is unknown, because a journal may already contain trials.
    is_known: AtomicBool,
    cancelled: AtomicBool,
}

impl Watch {
    /// Adds `count` to the completed trials.
    pub(crate) fn add(&self, count: u64) {
        self.done.fetch_add(count, Ordering::Relaxed);
        self.is_known.store(true, Ordering::Release);
    }

    /// Sets the number of completed trials.
    pub(crate) fn set(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.is_known.store(true, Ordering::Release);
    }

    /// Returns the number of completed trials; `None` before the work has set it.
    fn done(&self) -> Option<u64> {
        self.is_known.load(Ordering::Acquire).then(|| self.done.load(Ordering::Relaxed))
    }

    /// True if the waiting thread no longer needs the result.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Runs `work` in a new thread, and returns its result. Calls `report` with the number of completed trials and `total`
/// whenever the number changes, once `work` has set it.
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
        // An error means that the result is no longer needed.
        let _ = sender.send(outcome.map_err(|panic| Failure::of_panic(&*panic)));
    });
    worker.map_err(|error| Failure::Simulation(format!("cannot start a thread: {error}")))?;
    let mut reporter = Reporter { report, total, reported: None };
    py.detach(|| interruptible_wait(receiver, &watch, &mut reporter))
}

fn interruptible_wait<T>(receiver: Receiver<Result<T>>, watch: &Watch, reporter: &mut Reporter) -> Result<T> {
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
            Err(RecvTimeoutError::Disconnected) => {
                unreachable!("the worker thread sends its result before it ends")
            }
        }
    }
}

/// Reports progress to Python.
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
