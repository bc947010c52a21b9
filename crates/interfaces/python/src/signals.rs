//! Waits for calls on files without the interpreter lock, and handles signals: Ctrl-C ends the wait.
//!
//! The call itself runs on the node thread and continues there. The lock is taken at most twenty times a second, so
//! that a thread with many reads does not wait for computing threads.

use std::time::Instant;

use node::Pending;
use pyo3::prelude::*;

use crate::error::FileResult;
use crate::interruptible_wait::INTERVAL;

/// Handles signals at intervals.
pub(crate) struct Signals {
    handled: Instant,
}

impl Signals {
    pub(crate) fn new() -> Self {
        Signals { handled: Instant::now() }
    }

    /// Waits for a call. The caller must not hold the interpreter lock.
    pub(crate) fn wait<T>(&mut self, mut pending: Pending<T>) -> FileResult<T> {
        loop {
            self.handle()?;
            match pending.wait_for(INTERVAL) {
                Ok(outcome) => return Ok(outcome?),
                Err(under_way) => pending = under_way,
            }
        }
    }

    /// Handles pending signals, unless that was done a moment ago.
    fn handle(&mut self) -> PyResult<()> {
        if self.handled.elapsed() >= INTERVAL {
            Python::attach(|py| py.check_signals())?;
            self.handled = Instant::now();
        }
        Ok(())
    }
}

/// Waits for one call. The caller must not hold the interpreter lock.
pub(crate) fn wait<T>(pending: Pending<T>) -> FileResult<T> {
    Signals::new().wait(pending)
}
