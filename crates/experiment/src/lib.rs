//! Experiments of the reports on a simulated machine: one file, a group of compute nodes, one access pattern.
//!
//! An [`Experiment`] says what is to be done on which machine; [`Experiment::trial`] does it once, with all
//! that is random drawn from the seed and the trial's number, checks every byte, and tells how long it took.
//! [`summarise`] makes one line of several trials.
//!
//! - `lib.rs`: the experiment and its summary
//! - `trial.rs`: one trial, step by step
//! - `contents.rs`: what is in the file, and whether it arrived
//! - `workload/`: clients that read or write a file at once, on either machine
//! - `sequential.rs`: one program behind the page cache instead of a group; `local.rs`: a disk without a file system

mod contents;
mod local;
mod sequential;
mod trial;
mod workload;

use std::fmt;
use std::str::FromStr;

use description::MachineDescription;
use fs::{IoNodeSettings, Scheduling, Threads};
use layout::{Operation, Pattern, Problem};

pub use contents::Contents;
pub use local::LocalReader;
pub use sequential::{FilePlace, Sequential, SequentialTrial};
pub use trial::Trial;
pub use workload::{Latencies, Order, Outcome, SimulatedOutcome, SimulatedWorkload, Tally, Workload};

/// One access pattern, by one method, on one machine.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The machine.
    pub machine: MachineDescription,
    /// The access method.
    pub method: Method,
    /// Who accesses what.
    pub pattern: Pattern,
    /// Size of the file, of its records, and the shape of the array in it.
    pub problem: Problem,
    /// How the file lies on the disks.
    pub layout: DiskLayout,
    /// What can be chosen of the methods.
    pub options: Options,
    /// What the file contains.
    pub contents: Contents,
    /// Where all randomness comes from.
    pub seed: u64,
}

/// An access method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Compute nodes request blocks; I/O nodes cache, prefetch and write behind.
    Traditional,
    /// Compute nodes request blocks of a distribution that suits the disks, and exchange data among themselves.
    TwoPhase,
    /// Compute nodes make one collective request; I/O nodes work through their disks in their own order.
    DiskDirected,
}

/// How the file lies on each disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskLayout {
    /// From the first block of the disk on.
    Contiguous,
    /// Each block at a random place of its own.
    Random,
}

/// What can be chosen of the methods. The default is the report's own choice (section 5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Bytes of a block, and of a stripe unit.
    pub block_bytes: u64,
    /// Outstanding requests for each compute node and disk (the reports' K).
    pub outstanding: usize,
    /// The order in which a disk's requests are served; traditional only.
    pub scheduling: Scheduling,
    /// Whether each request has a thread of its own; traditional only.
    pub thread_per_request: bool,
    /// Blocks brought in ahead of each read; traditional only.
    pub prefetch_blocks: u64,
    /// Whether an I/O node fetches the data of a write with Memget, instead of finding them in the request; not for
    /// the disk-directed method.
    pub memget_writes: bool,
    /// Which Memputs and Memgets are queued, to be sent many at a time; not for the traditional method.
    pub queued: Queued,
    /// Whether each disk's blocks are sorted by physical position; disk-directed only.
    pub presort: bool,
}

/// Which Memputs and Memgets are queued for their destination and sent a block at a time (gather/scatter).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// None.
    Never,
    /// All.
    Always,
    /// Those of records smaller than a block, as the report does where it compares methods.
    SmallRecords,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            block_bytes: 8192,
            outstanding: 4,
            scheduling: Scheduling::CyclicScan,
            thread_per_request: false,
            prefetch_blocks: 1,
            memget_writes: false,
            queued: Queued::SmallRecords,
            presort: false,
        }
    }
}

/// Why an experiment could not be run, or cannot be believed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The experiment makes no sense as it is.
    #[error("{0}")]
    Invalid(String),
    /// The pattern does not fit the file.
    #[error(transparent)]
    Layout(#[from] layout::LayoutError),
    /// The machine's description does not hold together.
    #[error(transparent)]
    Description(#[from] description::Error),
    /// The file system failed.
    #[error(transparent)]
    FileSystem(#[from] Box<fs::Error>),
    /// The simulated machine failed.
    #[error(transparent)]
    Machine(#[from] Box<machine::Error>),
    /// A byte is not what it should be.
    #[error("wrong data: {0}")]
    WrongData(String),
}

impl Experiment {
    /// Checks what can be checked before anything runs.
    pub fn check(&self) -> Result<(), Error> {
        let compute_nodes = self.machine.nodes.compute.value;
        if self.problem.nodes != compute_nodes {
            let nodes = self.problem.nodes;
            let text = format!("a pattern for {nodes} compute nodes on a machine with {compute_nodes}");
            return Err(Error::Invalid(text));
        }
        if self.options.outstanding == 0 {
            return Err(Error::Invalid("at least one request for each disk must be outstanding".into()));
        }
        if self.options.presort && self.method != Method::DiskDirected {
            return Err(Error::Invalid("only the disk-directed method can presort".into()));
        }
        if self.options.memget_writes && self.method == Method::DiskDirected {
            return Err(Error::Invalid(
                "the disk-directed method makes no write requests to fetch data for".into(),
            ));
        }
        self.pattern.view(&self.problem)?;
        check_disks(&self.machine, self.options.block_bytes, self.problem.file_bytes)
    }

    /// The settings of the I/O nodes: the cache has two buffers for each compute node, disk and outstanding
    /// request, and a pool as many threads as buffers (the report, sections 2.2 and 3.2).
    fn io_node_settings(&self) -> IoNodeSettings {
        let disks = self.machine.disks.per_io_node.value as usize;
        let buffers = 2 * self.options.outstanding * self.problem.nodes as usize * disks;
        let threads =
            if self.options.thread_per_request { Threads::PerRequest } else { Threads::Pool(buffers) };
        IoNodeSettings {
            scheduling: self.options.scheduling,
            cache_blocks: buffers,
            block_bytes_max: self.options.block_bytes,
            threads,
            prefetch_blocks: self.options.prefetch_blocks,
            ..IoNodeSettings::report()
        }
    }

    /// The same experiment without options that have no effect on it: a read fetches no data of writes, and there are
    /// two ways to say what is queued. Experiments that are equal then have equal trials, and need to be run only once.
    pub fn in_effect(&self) -> Experiment {
        let mut experiment = self.clone();
        let options = &mut experiment.options;
        options.memget_writes &= self.operation() == Operation::Write;
        let makes_memputs = self.method != Method::Traditional;
        options.queued = if makes_memputs && self.is_queued() { Queued::Always } else { Queued::Never };
        experiment
    }

    /// Whether its Memputs and Memgets are queued, if it makes any.
    fn is_queued(&self) -> bool {
        match self.options.queued {
            Queued::Never => false,
            Queued::Always => true,
            Queued::SmallRecords => self.problem.record_bytes < self.options.block_bytes,
        }
    }

    /// Whether data go to the disks or come from them.
    pub fn operation(&self) -> Operation {
        self.pattern.operation()
    }
}

/// Checks that a file over all disks of a machine fits onto them, block by block.
fn check_disks(machine: &MachineDescription, block: u64, file: u64) -> Result<(), Error> {
    if block == 0 {
        return Err(Error::Invalid("a block must have at least one byte".into()));
    }
    let Some(disk) = machine.disk()? else { return Ok(()) };
    let model = disk::Model::new(&disk, 0.0);
    let sector = model.sector_bytes();
    if !block.is_multiple_of(sector) {
        let text =
            format!("blocks of {block} bytes on disks whose sectors have {sector}: make it a multiple");
        return Err(Error::Invalid(text));
    }
    let disks = u64::from(machine.nodes.io.value) * u64::from(machine.disks.per_io_node.value);
    let needed = file.div_ceil(block).div_ceil(disks);
    let there = model.capacity_sectors() / (block / sector);
    if needed > there {
        let text = format!(
            "a file of {file} bytes is {needed} blocks of {block} bytes on each of {disks} disks, which has room \
             for {there}: make the file smaller, or the disks more"
        );
        return Err(Error::Invalid(text));
    }
    Ok(())
}

/// The outcome of several trials of one experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// How many trials.
    pub trials: usize,
    /// Mean throughput in MiB/s.
    pub throughput_mib_s: f64,
    /// Coefficient of variation of the throughput: standard deviation over mean.
    pub cv: f64,
    /// Mean number of disk movements, of all disks together.
    pub disk_movements: f64,
    /// Timed events of all trials.
    pub events: u64,
    /// Mean virtual time of the measured part, in seconds.
    pub virtual_s: f64,
    /// A mix of the event digests of all trials, in order.
    pub digest: u64,
}

/// Summarises trials.
///
/// # Panics
/// If there are none.
pub fn summarise(trials: &[Trial]) -> Summary {
    assert!(!trials.is_empty(), "nothing to summarise");
    let count = trials.len() as f64;
    let mean = |value: &dyn Fn(&Trial) -> f64| trials.iter().map(value).sum::<f64>() / count;
    let throughput = mean(&Trial::throughput_mib_s);
    let squares = mean(&|trial| (trial.throughput_mib_s() - throughput).powi(2));
    let deviation = if trials.len() > 1 { (squares * count / (count - 1.0)).sqrt() } else { 0.0 };
    Summary {
        trials: trials.len(),
        throughput_mib_s: throughput,
        cv: deviation / throughput,
        disk_movements: mean(&|trial| trial.disk_movements as f64),
        events: trials.iter().map(|trial| trial.events).sum(),
        virtual_s: mean(&|trial| trial.elapsed.as_secs_f64()),
        digest: trials.iter().fold(0, |digest, trial| digest.rotate_left(7) ^ trial.digest),
    }
}

impl Method {
    /// All methods.
    pub const ALL: [Method; 3] = [Method::Traditional, Method::TwoPhase, Method::DiskDirected];
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Method::Traditional => "traditional",
            Method::TwoPhase => "two-phase",
            Method::DiskDirected => "disk-directed",
        })
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Method::ALL.into_iter().find(|method| method.to_string() == text);
        found.ok_or_else(|| format!("no method {text:?}: traditional, two-phase or disk-directed"))
    }
}

impl fmt::Display for DiskLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            DiskLayout::Contiguous => "contiguous",
            DiskLayout::Random => "random",
        })
    }
}

impl FromStr for DiskLayout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "contiguous" => Ok(DiskLayout::Contiguous),
            "random" => Ok(DiskLayout::Random),
            _ => Err(format!("no layout {text:?}: contiguous or random")),
        }
    }
}

impl fmt::Display for Queued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Queued::Never => "never",
            Queued::Always => "always",
            Queued::SmallRecords => "small-records",
        })
    }
}

impl FromStr for Queued {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = [Queued::Never, Queued::Always, Queued::SmallRecords]
            .into_iter()
            .find(|queued| queued.to_string() == text);
        found.ok_or_else(|| format!("{text:?} is none of never, always and small-records"))
    }
}
