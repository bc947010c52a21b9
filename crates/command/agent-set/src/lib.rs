//! The agents that `starfish agents` starts together and keeps an eye on: a *set*.
//!
//! - `hosts.rs`: which agents are wanted, from a hosts file or a number
//! - `host.rs`: shell commands on this computer or, over ssh, on another; what their failures mean
//! - `start.rs`: starting an agent there, so that it stays only if all goes well
//! - `record.rs`: what has been started, in the state directory, for the next command
//! - `process.rs`: whether a process that was started still runs, and ending it

pub mod host;
pub mod hosts;
pub mod process;
pub mod record;
pub mod start;

use std::panic::resume_unwind;
use std::thread;

/// Memory in which an agent keeps blocks, unless it is told otherwise.
pub const AGENT_CACHE: &str = "256MiB";

/// Does `work` for all `items` at once, on a thread each; the outcomes are in their order.
pub fn at_once<'a, I: Sync, T: Send>(items: &'a [I], work: impl Fn(&'a I) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = items.iter().map(|item| scope.spawn(move || work(item))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}
