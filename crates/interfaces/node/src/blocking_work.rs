//! Work that blocks, beside a node: on a thread of its own, since the node has its connections to look after.

use std::panic::resume_unwind;
use std::thread::{self, JoinHandle};

use flume::Receiver;

/// Work on a thread of its own, which may block.
pub struct BlockingWork<T> {
    thread: JoinHandle<()>,
    outcome: Receiver<T>,
}

impl<T: Send + 'static> BlockingWork<T> {
    /// Begins it. It comes to its end also if nobody waits for it.
    pub fn begin(work: impl FnOnce() -> T + Send + 'static) -> Self {
        let (done, outcome) = flume::bounded(1);
        let thread = thread::spawn(move || {
            // The caller may be gone.
            let _ = done.send(work());
        });
        BlockingWork { thread, outcome }
    }

    /// Waits for the outcome of the work while the node goes on. The node must not block on the thread instead: a
    /// thread that wakes a task of the node may itself have to wait until the node takes that in.
    pub async fn outcome(self) -> T {
        match self.outcome.recv_async().await {
            Ok(outcome) => outcome,
            Err(_) => resume_unwind(self.thread.join().expect_err("it ended without an outcome")),
        }
    }
}
