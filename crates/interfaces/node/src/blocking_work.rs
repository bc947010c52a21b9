//! Blocking work for a node, on a separate thread, since the node must keep serving its connections.

use std::panic::resume_unwind;
use std::thread::{self, JoinHandle};

use flume::Receiver;

/// Work on a separate thread, which may block.
pub struct BlockingWork<T> {
    thread: JoinHandle<()>,
    outcome: Receiver<T>,
}

impl<T: Send + 'static> BlockingWork<T> {
    /// Starts the work. It runs to completion even if this value is dropped.
    pub fn begin(work: impl FnOnce() -> T + Send + 'static) -> Self {
        let (done, outcome) = flume::bounded(1);
        let thread = thread::spawn(move || {
            // The caller may have dropped the receiver.
            let _ = done.send(work());
        });
        BlockingWork { thread, outcome }
    }

    /// Returns the outcome of the work; the node continues until then. The node must not join the thread instead: the
    /// thread may itself wait for the node to handle a wake-up, which would be a deadlock.
    pub async fn outcome(self) -> T {
        match self.outcome.recv_async().await {
            Ok(outcome) => outcome,
            Err(_) => resume_unwind(self.thread.join().expect_err("it ended without an outcome")),
        }
    }
}
