//! Logs that are drawn, after what the ENWRICH report says of the programs that it was made for (its sections 1 and
//! 5.3; CHARISMA's traces of a CM-5).
//!
//! - Jobs on 32 nodes, several to a trace: as many nodes, shared by a few jobs that run beside each other.
//! - Only writes are replayed, and more is written than read: writes, and as many files that are read as asked for.
//! - Requests of 500 to 1200 bytes on average in each trace: a record size for each file, a multiple of 8 bytes,
//!   exponential with that mean.
//! - Bytes of a file are hardly ever shared by nodes, its blocks often: records are dealt to the nodes in turn.
//! - Files of CMMD programs are ten times as large as those of CMF: ten times as many records with [`Kind::Cmmd`].
//! - Computation between requests: pauses, exponential with a given mean.
//!
//! How large files are, and how long programs compute, it does not say: these numbers are ours.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use layout::Operation;
use machine::{Duration, mix};

use crate::log::{LoggedNode, RequestLog};
use crate::request::{Action, REQUEST_BYTES_MAX, Request, Stretch};
use crate::text::LogWriter;

/// The kind of the report's programs that a log is to be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Message-passing programs in C and Fortran: large files.
    Cmmd,
    /// Data-parallel programs in CM Fortran: small files.
    Cmf,
}

/// What is drawn. Equal generators draw equal logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator {
    /// How many nodes.
    pub nodes: u32,
    /// In how many jobs: each has as many of the nodes, as nearly as can be, and files of its own.
    pub jobs: u32,
    /// How many files each job has, one after the other.
    pub files: u32,
    /// How many records each file has.
    pub records: u64,
    /// Bytes of a record, on average over the files.
    pub record_bytes: u64,
    /// How many of a hundred files are read; the others are written.
    pub reads_percent: u8,
    /// How long a node computes between two requests, on average.
    pub think: Duration,
    /// Where all of it comes from.
    pub seed: u64,
}

impl Kind {
    /// A generator of such a log.
    pub fn generator(self) -> Generator {
        let records = match self {
            Kind::Cmmd => 40_960,
            Kind::Cmf => 4096,
        };
        let (record_bytes, think) = (800, Duration::from_millis(1));
        Generator { nodes: 32, jobs: 4, files: 2, records, record_bytes, reads_percent: 0, think, seed: 1 }
    }
}

/// The size of a record is a multiple of this many bytes.
const WORD: u64 = 8;

/// The largest record, in averages: of a thousand files one or none would be larger.
const LARGEST: f64 = 8.0;

/// What tells one use of the seed from another.
const OF_RECORD: u64 = 1;
const OF_READS: u64 = 2;
const OF_THINK: u64 = 3;

impl Generator {
    /// Refuses settings that make no sense, in words for the user who has chosen them.
    pub fn check(&self) -> Result<(), String> {
        if self.jobs == 0 || self.nodes < self.jobs {
            return Err(format!("{} jobs cannot share {} nodes", self.jobs, self.nodes));
        }
        if self.files == 0 || self.records == 0 {
            return Err("there must be at least one file with one record".into());
        }
        if u64::from(self.files) * u64::from(self.jobs) > u64::from(u32::MAX) {
            return Err("there are too many files".into());
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

    /// How many requests there are.
    pub fn requests(&self) -> u64 {
        u64::from(self.jobs) * u64::from(self.files) * self.records
    }

    /// Writes the log, in memory that depends on the number of nodes and files only.
    ///
    /// # Panics
    /// If it makes no sense.
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

    /// The log itself.
    ///
    /// # Panics
    /// If it makes no sense.
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

    /// The first node of a job.
    fn first_node(&self, job: u32) -> u32 {
        (u64::from(self.nodes) * u64::from(job) / u64::from(self.jobs)) as u32
    }

    /// The record size of a file.
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

/// The requests of one node.
struct Drawn {
    generator: Generator,
    node: u32,
    /// The files of its job that are left, the one in use first.
    files: std::ops::Range<u32>,
    /// The next record of that file, and by how many it goes on.
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

/// The exponential distribution of this mean, of 53 random bits.
fn exponential(draw: u64, mean: f64) -> f64 {
    // Never the logarithm of nothing.
    let uniform = ((draw >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    -mean * uniform.ln()
}
