//! The benchmark of the thesis on PDIOL, on this computer: programs that go through a file from front to back, on one
//! disk used locally and on agents with such disks; measured, and, if they only read from modelled disks, predicted by
//! the simulated machine.
//!
//! ```text
//!   limits        what this computer gives at most: a bare stripe, copying, reading a local file
//!     |             and how long a page takes from an agent that has it in memory
//!     v
//!   prediction    the simulated machine `loopback` with these numbers in it
//!   measurement   agents on loopback, one modelled disk each        the same programs, files, windows
//!     |
//!     v
//!   report        both side by side; speed-ups over the local disk
//! ```
//!
//! - `application.rs`: cat, grep, sort and bzip2, the text they work on, and whether they did it right
//! - `local_disk.rs`, `striped.rs`: the files of a modelled disk and of agents, as these programs have them
//! - `testbed.rs`: agents and a local disk with files on them, and one run of a program
//! - `limits.rs`, `prediction.rs`: as above
//! - `results.rs`, `targets.rs`: what was found, and what is to be reached; `report.rs`, `page.rs`: both as table, CSV,
//!   JSON; as a page

pub mod application;
pub mod limits;
pub mod local_disk;
pub mod page;
pub mod prediction;
pub mod report;
pub mod results;
pub mod striped;
pub mod targets;
pub mod testbed;

/// Bytes of a page, and of a call of a program: those of the thesis.
pub const PAGE_BYTES: u64 = 64 << 10;
