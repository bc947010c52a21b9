//! Waits for calls on files without the interpreter lock, and handles signals: Ctrl-C ends the wait.
//!
//! The call runs on the thread of the node, and continues after the wait has ended. The lock is taken at most twenty
//! times a second, so that a thread with many reads rarely waits for threads that compute in Python.

use std::time::Instant;

use node::Pending;
use pyo3::prelude::*;

use crate::error::FileResult;
use crate::interruptible_wait::INTERVAL;

/// Handler of pending signals, at most once every [`INTERVAL`].
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

    /// Handles pending signals, unless they were handled less than [`INTERVAL`] ago.
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
