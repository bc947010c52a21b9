//! The benchmark of the thesis on PDIOL, on this computer: programs that process a file from front to back, on one disk
//! used locally and on agents with such disks. The runs are measured. Programs that only read from modelled disks are
//! also predicted by the simulated machine.
//!
//! ```text
//!   limits        physical limits of this computer: a bare stripe, copying, reading a local file
//!     |             and the time of a page from an agent that has it in memory
//!     v
//!   prediction    the simulated machine `loopback` with these numbers in it
//!   measurement   agents on loopback, one modelled disk each        the same programs, files, windows
//!     |
//!     v
//!   report        both side by side; speed-ups over the local disk
//! ```
//!
//! - `application.rs`: cat, grep, sort and bzip2, their text, and the check of their outputs.
//! - `local_disk.rs`, `striped.rs`: the files of a modelled disk and of agents, as stores for these programs.
//! - `testbed.rs`: agents and a local disk with files on them, and one run of a program.
//! - `limits.rs`, `prediction.rs`: as above.
//! - `results.rs`, `targets.rs`: results and goals; `report.rs`, `page.rs`: both as table, CSV, JSON; as a page.

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
