//! The benchmark of the PDIOL thesis, on this computer: programs that process a file sequentially, on one disk used
//! locally and on agents with such disks. The runs are measured. For programs that only read from modelled disks, the
//! runs are also predicted by the simulated machine.
//!
//! ```text
//!   limits        physical limits of this computer: a bare stripe, copying, reading a local file
//!     |             and the time of a page from an agent that has it in memory
//!     v
//!   prediction    the simulated machine `loopback` with these limits
//!   measurement   agents on loopback, one modelled disk each        the same programs, files, windows
//!     |
//!     v
//!   report        measurement and prediction; speed-ups over the local disk
//! ```
//!
//! - `application.rs`: cat, grep, sort and bzip2, their input text, and the check of their outputs.
//! - `local_disk.rs`, `striped.rs`: files on a modelled disk and on agents, as stores for these programs.
//! - `testbed.rs`: agents and a local disk with files on them, and one run of a program.
//! - `limits.rs`, `prediction.rs`: see the diagram.
//! - `results.rs`, `targets.rs`: results and goals; `report.rs`, `page.rs`: both as table, CSV and JSON, and as a page.

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

/// Size in bytes of a page, and of each read or write call of a program, as in the thesis.
pub const PAGE_BYTES: u64 = 64 << 10;
