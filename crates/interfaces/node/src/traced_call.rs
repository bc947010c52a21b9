//! Calls by threads of a program, in the trace of the node.
//!
//! The trace shows the node's work for a call on lanes of the node's tasks, and the call itself on a row of the calling
//! thread. A call is recorded when it ends, with the time of its start. So the thread never waits, and if nothing is
//! recorded, a call costs only the test of a flag.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use machine::{Machine, NotedStretch};

use crate::session::Session;
use crate::thread::{Node, NodeThread};

/// Name of the rows of threads that make calls, without the number that follows.
const ROW: &str = "calls of thread";

/// Recorded call, which ends when this is dropped; or a call that is not recorded.
#[must_use = "dropped at once, the call ends at once"]
pub struct TracedCall(Option<Recorded>);

struct Recorded {
    node: Arc<NodeThread>,
    /// The call, and the activities within it, each nested in the previous one.
    stretches: Vec<Stretch>,
}

/// Name of an activity, its begin, and its arguments.
type Stretch = (&'static str, Instant, Vec<(&'static str, u64)>);

impl Session {
    /// Begins a call of the program; `name` is the function's name for its programmer.
    pub fn traced_call(&self, name: &'static str) -> TracedCall {
        let node = self.node_thread();
        let begin = || Recorded { node: node.clone(), stretches: vec![(name, Instant::now(), Vec::new())] };
        TracedCall(node.is_traced.then(begin))
    }
}

impl TracedCall {
    /// Begins an activity within the call, which lasts until the call ends. `arguments` is called only if the call is
    /// recorded.
    pub fn within<const N: usize>(
        &mut self,
        name: &'static str,
        arguments: impl FnOnce() -> [(&'static str, u64); N],
    ) {
        if let Some(recorded) = &mut self.0 {
            recorded.stretches.push((name, Instant::now(), arguments().into()));
        }
    }

    /// Adds arguments to the call, if it is recorded.
    pub fn say<const N: usize>(&mut self, arguments: impl FnOnce() -> [(&'static str, u64); N]) {
        if let Some((_, _, given_arguments)) =
            self.0.as_mut().and_then(|recorded| recorded.stretches.first_mut())
        {
            given_arguments.extend(arguments());
        }
    }
}

impl Drop for TracedCall {
    fn drop(&mut self) {
        if let Some(Recorded { node, stretches }) = self.0.take() {
            let (thread, until) = (this_thread(), Instant::now());
            node.run(move |node| note(node, thread, stretches, until));
        }
    }
}

/// Returns the number of this thread, counting threads in the order of their first calls.
fn this_thread() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed));
    }
    NUMBER.get()
}

/// Records a call.
fn note(node: &Node, thread: usize, stretches: Vec<Stretch>, until: Instant) {
    let noted = |(name, since, arguments)| NotedStretch { name, since: node.clock.at(since), arguments };
    let stretches: Vec<NotedStretch> = stretches.into_iter().map(noted).collect();
    let machine = &node.client.connection.machine;
    machine.notes().did_until((ROW, thread), &stretches, node.clock.at(until));
}
