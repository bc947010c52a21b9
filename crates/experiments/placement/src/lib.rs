//! Jobs that share disks: placement of their runs, and conditions under which one job races ahead of the others.
//!
//! Several external merges read their runs from the same disks, and write their output to these disks. A job that is a
//! little ahead queues writes at its output disk. These writes delay the reads of all other jobs, but not its own
//! reads. If writing is slow enough compared with reading, the delay lets the job get further ahead: a *race*. The jobs
//! then take turns and leave disks idle. This crate contains the analysis of races, which needs no simulation:
//!
//! - [`Policy`] chooses the disks of each job's runs.
//! - [`BlockTimes`] holds the times to read and to write a block as part of a larger request.
//! - [`TwoDisks`] and [`ManyDisks`] compute if a race is possible, from which backlog on, and how fast the backlog
//!   grows.
//!
//! The source is Sinclair, Tang & Varman, "Placement-related problems in shared disk I/O", in Input/Output in Parallel
//! and Distributed Computer Systems (Kluwer 1996), pages 271-289: "the report". Comments cite its sections and
//! equations. Times are in milliseconds, as in the report; amounts of data are in blocks.

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
