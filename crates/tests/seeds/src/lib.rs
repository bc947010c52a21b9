//! Runs of the file system on simulated machines, each drawn from a seed, to find the situations that no test shows.
//!
//! ```text
//!   seed --> machine, settings, number of nodes, what is done, who crashes when --> kept, or broken and why
//! ```
//!
//! A run depends on its [`Kind`] and its seed alone, so that a failure is told by two words and repeats. A few hundred
//! run with all other tests (`tests/seeds.rs`); the program `seeds` runs as many as there is time for.
//!
//! - `kind.rs`: the kinds of runs; `draw.rs`: the numbers that follow from a seed
//! - `testbed.rs`: the machines that they run on; `crashing_nodes.rs`: I/O nodes that crash and are started anew
//! - `keeper_crashes.rs`: what clients that have files open see when the keeper of a namespace, or all I/O nodes, crash
//! - `crashes.rs`, `trees.rs`: what is left then of files, and of a namespace
//! - `sweep.rs`: many runs on all processors, until one fails, all are done or the sweep is stopped
//!
//! What operations and requests there are is in the crate `promises`, beside the promises.

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
