//! Calls that threads of a program make of a door, in the trace of the node.
//!
//! What the node does for a call is on lanes of its tasks. The call itself is on a row of the thread that makes it, and
//! is told when it is over, with the time at which it began. So the thread never waits, and a call that is not recorded
//! costs a look at a flag.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use machine::{Machine, NotedStretch};

use crate::session::Session;
use crate::thread::{Node, NodeThread};

/// The rows of threads that make calls are called so, and numbered.
const ROW: &str = "calls of thread";

/// A call that is recorded, from when it was made until this is dropped; or one that is not recorded.
#[must_use = "dropped at once, the call ends at once"]
pub struct TracedCall(Option<Recorded>);

struct Recorded {
    node: Arc<NodeThread>,
    /// The call, and what is done within it, each within the one before.
    stretches: Vec<Stretch>,
}

/// What is done, from when on, and more about it.
type Stretch = (&'static str, Instant, Vec<(&'static str, u64)>);

impl Session {
    /// A call of the program begins, by the name that its programmer knows.
    pub fn traced_call(&self, name: &'static str) -> TracedCall {
        let node = self.node_thread();
        let begin = || Recorded { node: node.clone(), stretches: vec![(name, Instant::now(), Vec::new())] };
        TracedCall(node.is_traced.then(begin))
    }
}

impl TracedCall {
    /// From here on the call does this, until it ends. `arguments` is called only if the call is recorded.
    pub fn within<const N: usize>(
        &mut self,
        name: &'static str,
        arguments: impl FnOnce() -> [(&'static str, u64); N],
    ) {
        if let Some(recorded) = &mut self.0 {
            recorded.stretches.push((name, Instant::now(), arguments().into()));
        }
    }

    /// Says more about the call, if it is recorded.
    pub fn say<const N: usize>(&mut self, arguments: impl FnOnce() -> [(&'static str, u64); N]) {
        if let Some((_, _, said)) = self.0.as_mut().and_then(|recorded| recorded.stretches.first_mut()) {
            said.extend(arguments());
        }
    }
}

impl Drop for TracedCall {
    fn drop(&mut self) {
        if let Some(Recorded { node, stretches }) = self.0.take() {
            let (thread, until) = (this_thread(), Instant::now());
            node.tell(move |node| note(node, thread, stretches, until));
        }
    }
}

/// The number of this thread, among those that have made calls.
fn this_thread() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed));
    }
    NUMBER.get()
}

/// Notes a call.
fn note(node: &Node, thread: usize, stretches: Vec<Stretch>, until: Instant) {
    let noted = |(name, since, arguments)| NotedStretch { name, since: node.clock.at(since), arguments };
    let stretches: Vec<NotedStretch> = stretches.into_iter().map(noted).collect();
    let machine = &node.client.connection.machine;
    machine.notes().did_until((ROW, thread), &stretches, node.clock.at(until));
}
