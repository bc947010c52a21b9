//! Jobs that share disks: where their runs lie, and when one of them races ahead of the others.
//!
//! Several external merges read their runs from the same disks and write their output there. A job that gets a little
//! ahead puts writes into the queue of its output disk, where they delay the reads of all others but none of its own.
//! If writing is slow enough against reading, the delay lets it get further ahead: a *race*, which makes the jobs take
//! turns and leaves disks idle. This crate has what is known of that before anything runs:
//!
//! - [`Policy`] says which disks the runs of each job lie on;
//! - [`BlockTimes`] says what a block costs when several are read or written together;
//! - [`TwoDisks`] and [`ManyDisks`] say when a race is possible, from which backlog on, and how fast it grows.
//!
//! All of it is from Sinclair, Tang & Varman, "Placement-related problems in shared disk I/O", in Input/Output in
//! Parallel and Distributed Computer Systems (Kluwer 1996), pages 271-289: "the report". Its sections and equations are
//! named where they are used. Times are milliseconds, as there; amounts of data are blocks.

mod block_times;
mod many_disks;
mod parallel_ios;
mod policy;
mod two_disks;

pub use block_times::BlockTimes;
pub use many_disks::ManyDisks;
pub use parallel_ios::ParallelIos;
pub use policy::{JobPlacement, Policy, PolicyError};
pub use two_disks::TwoDisks;
