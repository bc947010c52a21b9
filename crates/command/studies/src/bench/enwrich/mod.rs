//! Processes that write one shared file in small records: by requests of their own, in two phases, disk-directed, and
//! through a write cache (ENWRICH), measured on agents and predicted.
//!
//! - this file: what is written, and how
//! - `member.rs`: a process that writes its part; `measure.rs`: having several do so, on agents of one's own
//! - `cache_costs.rs`: what small records in a write cache take on this computer, measured for the prediction
//! - `prediction.rs`: what the simulated machine says of the same
//! - `results.rs`: rows, as text, CSV, JSON and a page

pub mod cache_costs;
pub mod measure;
pub mod member;
pub mod prediction;
pub mod results;

use std::fmt;

use clap::ValueEnum;
use fs::{CollectiveSettings, WriteCacheSettings};
use jobs::{ArrayPattern, ArraysJob, Job, PatternAccess, PatternJob};
use layout::Problem;
use serde::{Deserialize, Serialize};

/// The block size of the files, in bytes: that of programs.
pub const BLOCK_BYTES: u64 = node::Settings::BLOCK_BYTES;

/// Records that each process writes by requests of its own, at most: enough for a throughput and its percentiles.
const REQUESTS_MAX: u64 = 10_000;

/// How the processes write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteMethod {
    /// A request for each record, and the agents' caches.
    Traditional,
    /// All together, exchanging data first, so that each process writes one part of the file.
    TwoPhase,
    /// All together, the agents fetching what they write.
    DiskDirected,
    /// Record by record into a cache in each process, flushed by all together.
    WriteCached,
}

impl fmt::Display for WriteMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            WriteMethod::Traditional => "traditional",
            WriteMethod::TwoPhase => "two-phase",
            WriteMethod::DiskDirected => "disk-directed",
            WriteMethod::WriteCached => "write-cached",
        })
    }
}

/// What is written, by whom and how.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WriteCell {
    /// The method.
    pub method: WriteMethod,
    /// The pattern.
    pub pattern: ArrayPattern,
    /// Size of a record.
    pub record_bytes: u64,
    /// Size of all files together, in bytes; by requests for each record, only the first part of that is written.
    pub file_bytes: u64,
    /// Number of processes.
    pub processes: u32,
    /// Memory of each process's write cache, in bytes.
    pub cache_bytes: u64,
}

impl WriteCell {
    /// Whether there is such a thing: a collective operation writes one array.
    pub fn makes_sense(&self) -> bool {
        match self.method {
            WriteMethod::TwoPhase | WriteMethod::DiskDirected => self.pattern.arrays() == 1,
            WriteMethod::Traditional | WriteMethod::WriteCached => true,
        }
    }

    /// The bytes that are written.
    pub fn bytes(&self) -> u64 {
        match self.method {
            WriteMethod::Traditional => {
                let of_all = REQUESTS_MAX * u64::from(self.processes) * self.record_bytes;
                // Whole blocks on all of a few disks, so that a part is like the rest.
                let most = of_all.next_multiple_of(u64::from(self.processes) * 4 * BLOCK_BYTES);
                self.file_bytes.min(most)
            }
            _ => self.file_bytes,
        }
    }

    /// The size of each of the files, in bytes.
    pub fn bytes_of_each(&self) -> u64 {
        self.bytes() / self.pattern.arrays() as u64
    }

    /// What the processes do with files of these names.
    pub fn job(&self, files: Vec<String>) -> Job {
        let problem = Problem::new(self.bytes(), self.record_bytes, self.processes);
        let collective = |settings: CollectiveSettings| {
            let access = PatternAccess::Collective(settings.queued());
            Job::Pattern(PatternJob {
                file: files.concat(),
                pattern: self.pattern.of_array(0),
                problem,
                access,
            })
        };
        let write_cache = WriteCacheSettings { bytes: self.cache_bytes, ..WriteCacheSettings::agent() };
        let arrays = |write_cache| {
            Job::Arrays(ArraysJob { files: files.clone(), pattern: self.pattern, problem, write_cache })
        };
        match self.method {
            WriteMethod::Traditional => arrays(None),
            WriteMethod::WriteCached => arrays(Some(write_cache)),
            WriteMethod::TwoPhase => collective(CollectiveSettings::two_phase()),
            WriteMethod::DiskDirected => collective(CollectiveSettings::disk_directed().presorted()),
        }
    }
}
