//! Waiting for calls on files without the interpreter lock, while attending to signals: Ctrl-C ends the wait.
//!
//! The call itself is under way at the node thread, and goes on there. The lock is taken twenty times a second at most,
//! so that a thread which reads much does not wait for others that compute.

use std::time::Instant;

use node::Pending;
use pyo3::prelude::*;

use crate::attend::INTERVAL;
use crate::error::FileResult;

/// Handles signals from time to time.
pub(crate) struct Signals {
    handled: Instant,
}

impl Signals {
    pub(crate) fn new() -> Self {
        Signals { handled: Instant::now() }
    }

    /// Waits for a call. For a thread without the interpreter lock.
    pub(crate) fn wait<T>(&mut self, mut pending: Pending<T>) -> FileResult<T> {
        loop {
            self.handle()?;
            match pending.wait_for(INTERVAL) {
                Ok(outcome) => return Ok(outcome?),
                Err(under_way) => pending = under_way,
            }
        }
    }

    /// Handles what has come, unless that was done a moment ago.
    fn handle(&mut self) -> PyResult<()> {
        if self.handled.elapsed() >= INTERVAL {
            Python::attach(|py| py.check_signals())?;
            self.handled = Instant::now();
        }
        Ok(())
    }
}

/// Waits for one call. For a thread without the interpreter lock.
pub(crate) fn wait<T>(pending: Pending<T>) -> FileResult<T> {
    Signals::new().wait(pending)
}
