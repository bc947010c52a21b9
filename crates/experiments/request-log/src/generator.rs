//! Random logs modelled on the workloads of the ENWRICH report (sections 1 and 5.3; CHARISMA's traces of a CM-5).
//!
//! - A trace has jobs on 32 nodes: a few concurrent jobs share the nodes.
//! - The report replays only writes, because programs write more than they read. So all files are written, except for a
//!   chosen share of files that are read.
//! - Requests average 500 to 1200 bytes in each trace. All records of a file have the same size: a multiple of 8 bytes,
//!   drawn from an exponential distribution with this mean.
//! - Nodes rarely share bytes of a file, but often share blocks. So records are distributed round-robin over the nodes.
//! - Files of CMMD programs are ten times as large as files of CMF programs. So [`Kind::Cmmd`] has ten times the
//!   records.
//! - Programs compute between requests. So pauses are drawn from an exponential distribution with a given mean.
//!
//! The report does not state file sizes and computation times. We chose these numbers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use layout::Operation;
use machine::{Duration, mix};

use crate::log::{LoggedNode, RequestLog};
use crate::request::{Action, REQUEST_BYTES_MAX, Request, Stretch};
use crate::text::LogWriter;

/// Kind of the report's programs that a log imitates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Message-passing programs in C and Fortran: large files.
    Cmmd,
    /// Data-parallel programs in CM Fortran: small files.
    Cmf,
}

/// Settings of a random log. Equal settings produce equal logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator {
    /// Number of nodes.
    pub nodes: u32,
    /// Number of jobs. The jobs share the nodes as evenly as possible; each has separate files.
    pub jobs: u32,
    /// Number of files of each job, used one after the other.
    pub files: u32,
    /// Number of records in each file.
    pub records: u64,
    /// Mean size of a record in bytes, over all files.
    pub record_bytes: u64,
    /// Percentage of files that are read; all others are written.
    pub reads_percent: u8,
    /// Mean computation time of a node between two requests.
    pub think: Duration,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl Kind {
    /// Returns the default settings for this kind.
    pub fn generator(self) -> Generator {
        let records = match self {
            Kind::Cmmd => 40_960,
            Kind::Cmf => 4096,
        };
        let (record_bytes, think) = (800, Duration::from_millis(1));
        Generator { nodes: 32, jobs: 4, files: 2, records, record_bytes, reads_percent: 0, think, seed: 1 }
    }
}

/// Record sizes are multiples of this number of bytes.
const WORD: u64 = 8;

/// Maximum size of a record relative to the mean. At most about one file in a thousand would exceed it.
const LARGEST: f64 = 8.0;

/// Distinct numbers for each use of the seed, so that the draws are independent.
const OF_RECORD: u64 = 1;
const OF_READS: u64 = 2;
const OF_THINK: u64 = 3;

impl Generator {
    /// Rejects inconsistent settings, with a message for the user.
    pub fn check(&self) -> Result<(), String> {
        if self.jobs == 0 || self.nodes < self.jobs {
            return Err(format!("{} jobs cannot share {} nodes", self.jobs, self.nodes));
        }
        if self.files == 0 || self.records == 0 {
            return Err("expected at least one file with one record".into());
        }
        if u64::from(self.files) * u64::from(self.jobs) > u64::from(u32::MAX) {
            return Err("expected fewer files".into());
        }
        let largest = self.record_bytes.saturating_mul(LARGEST as u64);
        if !(WORD..=REQUEST_BYTES_MAX).contains(&largest) || self.record_bytes < WORD {
            let most = REQUEST_BYTES_MAX / LARGEST as u64;
            return Err(format!("records of {} bytes on average: use {WORD} to {most}", self.record_bytes));
        }
        if self.records.checked_mul(largest).is_none_or(|bytes| bytes > crate::request::OFFSET_MAX) {
            return Err("files would be larger than 256 TiB".into());
        }
        if self.reads_percent > 100 {
            return Err(format!("{} of 100 files cannot be read", self.reads_percent));
        }
        Ok(())
    }

    /// Returns the number of requests.
    pub fn requests(&self) -> u64 {
        u64::from(self.jobs) * u64::from(self.files) * self.records
    }

    /// Writes the log. The memory that this takes depends only on the numbers of nodes and files.
    ///
    /// # Panics
    /// If the settings are inconsistent.
    pub fn write_to(&self, output: impl Write) -> io::Result<()> {
        let names = self.names();
        let mut writer = LogWriter::begin(output)?;
        let mut nodes: Vec<Drawn> = (0..self.nodes).map(|node| Drawn::new(*self, node)).collect();
        let mut heap = BinaryHeap::new();
        let mut pending: Vec<Option<Request>> = nodes.iter_mut().map(Iterator::next).collect();
        heap.extend(
            (0..).zip(&pending).filter_map(|(node, next)| Some(Reverse((next.as_ref()?.time, node)))),
        );
        while let Some(Reverse((_, node))) = heap.pop() {
            let index: usize = node;
            let next = nodes[index].next();
            heap.extend(next.map(|next| Reverse((next.time, index))));
            if let Some(request) = std::mem::replace(&mut pending[index], next) {
                writer.write(index as u32, &request, &names)?;
            }
        }
        writer.finish()
    }

    /// Returns the log in memory.
    ///
    /// # Panics
    /// If the settings are inconsistent.
    pub fn log(&self) -> RequestLog {
        let node = |number| LoggedNode { number, requests: Drawn::new(*self, number).collect() };
        let nodes = (0..self.nodes).map(node).filter(|node| !node.requests.is_empty()).collect();
        RequestLog::of(self.names(), nodes)
    }

    fn names(&self) -> Vec<String> {
        self.check().expect("a generator that makes sense");
        let name = |file| format!("job{}/file{}", file / self.files, file % self.files);
        (0..self.jobs * self.files).map(name).collect()
    }

    /// Returns the first node of a job.
    fn first_node(&self, job: u32) -> u32 {
        (u64::from(self.nodes) * u64::from(job) / u64::from(self.jobs)) as u32
    }

    /// Returns the record size of a file in bytes.
    fn record_of(&self, file: u32) -> u64 {
        let mean = self.record_bytes as f64;
        let drawn = exponential(self.draw(OF_RECORD, file.into()), mean).min(LARGEST * mean);
        ((drawn / WORD as f64).round() as u64).max(1) * WORD
    }

    fn operation_of(&self, file: u32) -> Operation {
        let is_read = self.draw(OF_READS, file.into()) % 100 < u64::from(self.reads_percent);
        if is_read { Operation::Read } else { Operation::Write }
    }

    fn draw(&self, of: u64, number: u64) -> u64 {
        mix(mix(mix(self.seed) ^ of) ^ number)
    }
}

/// Iterator over the requests of one node.
struct Drawn {
    generator: Generator,
    node: u32,
    /// Remaining files of the node's job. The first one is in use.
    files: std::ops::Range<u32>,
    /// Next record of the file in use. `step` is the distance between consecutive records of this node.
    first: u64,
    record: u64,
    step: u64,
    record_bytes: u64,
    operation: Operation,
    time: Duration,
    made: u64,
}

impl Drawn {
    fn new(generator: Generator, node: u32) -> Self {
        let job = (0..generator.jobs).rfind(|&job| generator.first_node(job) <= node).unwrap_or(0);
        let (begin, end) = (generator.first_node(job), generator.first_node(job + 1));
        let files = job * generator.files..(job + 1) * generator.files;
        let first = u64::from(node - begin);
        Drawn {
            generator,
            node,
            first,
            record: first,
            step: u64::from(end - begin),
            record_bytes: generator.record_of(files.start),
            operation: generator.operation_of(files.start),
            files,
            time: Duration::ZERO,
            made: 0,
        }
    }
}

impl Iterator for Drawn {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        while self.record >= self.generator.records {
            self.files.next();
            if self.files.is_empty() || self.first >= self.generator.records {
                return None;
            }
            self.record = self.first;
            self.record_bytes = self.generator.record_of(self.files.start);
            self.operation = self.generator.operation_of(self.files.start);
        }
        if self.files.is_empty() {
            return None;
        }
        let draw = self.generator.draw(OF_THINK, u64::from(self.node) << 40 ^ self.made);
        let pause = exponential(draw, self.generator.think.as_nanos() as f64);
        self.time += Duration::from_nanos(pause as u64);
        let stretch = Stretch {
            file: self.files.start,
            bytes: self.record_bytes as u32,
            offset: self.record * self.record_bytes,
        };
        self.record += self.step;
        self.made += 1;
        Some(Request { time: self.time, took: Duration::ZERO, action: Action::Move(self.operation, stretch) })
    }
}

/// Maps 53 random bits to the exponential distribution with this mean.
fn exponential(draw: u64, mean: f64) -> f64 {
    // Adding 0.5 avoids the logarithm of zero.
    let uniform = ((draw >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    -mean * uniform.ln()
}
