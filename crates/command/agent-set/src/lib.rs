//! The agents that `starfish agents` starts and supervises together: a *set*.
//!
//! - `hosts.rs`: the agents to start, from a hosts file or a number.
//! - `host.rs`: shell commands on this computer or, over ssh, on another; meaning of their failures.
//! - `start.rs`: starts an agent there, so that it stays only if all goes well.
//! - `record.rs`: record of the started agents in the state directory, for the next command.
//! - `process.rs`: checks that a started process still runs, and stops it.

pub mod host;
pub mod hosts;
pub mod process;
pub mod record;
pub mod start;

use std::panic::resume_unwind;
use std::thread;

/// Default memory in which an agent keeps blocks.
pub const AGENT_CACHE: &str = "256MiB";

/// Maps `work` over `items` in parallel, on a thread each. Returns the results in the order of the items.
pub fn at_once<'a, I: Sync, T: Send>(items: &'a [I], work: impl Fn(&'a I) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = items.iter().map(|item| scope.spawn(move || work(item))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}
