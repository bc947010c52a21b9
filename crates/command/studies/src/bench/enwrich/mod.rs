//! Processes that write one shared file in small records: with a request for each record, in two phases, disk-directed,
//! or through a write cache (ENWRICH). The benchmark is measured on agents and predicted.
//!
//! - this file: the workload and its methods.
//! - `member.rs`: a process that writes its part of the files.
//! - `measure.rs`: runs several such processes, on agents started for the benchmark.
//! - `cache_costs.rs`: costs of small records in a write cache on this computer, measured for the prediction.
//! - `prediction.rs`: prediction of the workload by the simulated machine.
//! - `results.rs`: rows, as text, CSV, JSON and a page.

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

/// Block size of the files in bytes: the default of programs.
pub const BLOCK_BYTES: u64 = node::Settings::BLOCK_BYTES;

/// Maximum number of records that each process writes by independent requests: enough to measure the throughput and the
/// percentiles.
const REQUESTS_MAX: u64 = 10_000;

/// Write method of the processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteMethod {
    /// Each record is written by a request. The agents cache the data.
    Traditional,
    /// Two-phase I/O: the processes first exchange data, so that each writes one part of the file.
    TwoPhase,
    /// Collective and disk-directed: the agents fetch the data from the processes.
    DiskDirected,
    /// Records are written into a cache in each process, and the processes flush their caches collectively.
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

/// Workload: size, pattern, processes and method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WriteCell {
    /// Write method.
    pub method: WriteMethod,
    /// Access pattern.
    pub pattern: ArrayPattern,
    /// Size of a record in bytes.
    pub record_bytes: u64,
    /// Size of all files together, in bytes. With a request for each record, only the beginning is written.
    pub file_bytes: u64,
    /// Number of processes.
    pub processes: u32,
    /// Size of the write cache of each process, in bytes.
    pub cache_bytes: u64,
}

impl WriteCell {
    /// True if the combination is valid: a collective operation can write only one array.
    pub fn makes_sense(&self) -> bool {
        match self.method {
            WriteMethod::TwoPhase | WriteMethod::DiskDirected => self.pattern.arrays() == 1,
            WriteMethod::Traditional | WriteMethod::WriteCached => true,
        }
    }

    /// Returns the number of bytes to write.
    pub fn bytes(&self) -> u64 {
        match self.method {
            WriteMethod::Traditional => {
                let of_all = REQUESTS_MAX * u64::from(self.processes) * self.record_bytes;
                // Use whole blocks on all disks (of a small number of disks), so that the written part is typical of
                // the rest.
                let most = of_all.next_multiple_of(u64::from(self.processes) * 4 * BLOCK_BYTES);
                self.file_bytes.min(most)
            }
            _ => self.file_bytes,
        }
    }

    /// Returns the size of each file, in bytes.
    pub fn bytes_of_each(&self) -> u64 {
        self.bytes() / self.pattern.arrays() as u64
    }

    /// Returns the job of the processes on files with these names.
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
