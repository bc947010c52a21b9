//! The agents that `starfish agents` starts and supervises together: a *set*.
//!
//! - `hosts.rs`: the agents to start, from a hosts file or a number.
//! - `host.rs`: shell commands on this computer or, over ssh, on another one; explanations of their failures.
//! - `start.rs`: starts an agent, which continues only if the start of the whole set succeeds.
//! - `record.rs`: record of the started agents in the state directory, for later commands.
//! - `process.rs`: checks that a started process still runs, and stops it.

pub mod host;
pub mod hosts;
pub mod process;
pub mod record;
pub mod start;

use std::panic::resume_unwind;
use std::thread;

/// Default size of the memory in which an agent caches blocks.
pub const AGENT_CACHE: &str = "256MiB";

/// Calls `work` for each item, in parallel, with a thread for each. Returns the results in the order of the items.
pub fn at_once<'a, I: Sync, T: Send>(items: &'a [I], work: impl Fn(&'a I) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = items.iter().map(|item| scope.spawn(move || work(item))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}
