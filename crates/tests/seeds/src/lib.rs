//! Runs of the file system on simulated machines, each drawn from a seed, to find situations that no test shows.
//!
//! ```text
//!   seed --> machine, settings, number of nodes, what is done, who crashes when --> kept, or broken and why
//! ```
//!
//! A run depends only on its [`Kind`] and its seed, so that two words identify a failure and repeat it. A few hundred
//! runs are part of all tests (`tests/seeds.rs`); the program `seeds` continues until a run fails.
//!
//! - `kind.rs`: kinds of runs; `draw.rs`: pseudorandom numbers from a seed
//! - `testbed.rs`: simulated machines of the runs; `crashing_nodes.rs`: I/O nodes that crash and restart
//! - `keeper_crashes.rs`: clients with open files when the metadata server, or all I/O nodes, crash
//! - `crashes.rs`, `trees.rs`: state of files, and of a namespace, after crashes
//! - `sweep.rs`: many runs on all processors, until one fails, all are done or the sweep is stopped
//!
//! The operations and requests themselves are in the crate `promises`.

mod crashes;
mod crashing_nodes;
mod draw;
pub mod keeper_crashes;
mod kind;
mod sweep;
mod testbed;
mod trees;

pub use kind::{Kind, told_by_panics};
pub use sweep::{Counts, Failed, Sweep};
