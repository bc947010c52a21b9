//! Small files that several clients create, examine, list and remove at the same time: measured on agents and
//! predicted.
//!
//! - this file: the workload, and its measurement on agents started for the benchmark.
//! - `store_costs.rs`: costs of the metadata store on this computer, measured for the prediction.
//! - `prediction.rs`: prediction of the workload by the simulated machine.
//! - `results.rs`: rows, as text, CSV, JSON and a page.

pub mod prediction;
pub mod results;
pub mod store_costs;

use std::time::Duration;

use clap::ValueEnum;
use command_line::counted;
use command_line::failure::Result;
use experiment::{Job, Launch, NamesJob, NamesWork, Outcome};
use transfer::cluster::Cluster;
use transfer::scratch::JobFiles;

use crate::bench::job_nodes::have_done;

/// Block size of the files in bytes: the default of programs.
const BLOCK_BYTES: u64 = node::Settings::BLOCK_BYTES;

/// Operation of the clients on their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NameWork {
    /// Creates, writes and closes each file.
    Create,
    /// Requests the attributes of each file.
    Stat,
    /// Lists the directory with all attributes.
    List,
    /// Removes each file, and its contents.
    Remove,
}

impl From<NameWork> for NamesWork {
    fn from(work: NameWork) -> NamesWork {
        match work {
            NameWork::Create => NamesWork::Create,
            NameWork::Stat => NamesWork::Stat,
            NameWork::List => NamesWork::List,
            NameWork::Remove => NamesWork::Remove,
        }
    }
}

/// Workload: operation, clients and files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamesCell {
    /// Operation on names.
    pub work: NameWork,
    /// Number of clients.
    pub clients: u32,
    /// Number of files of each client.
    pub files: u32,
    /// Size of each file in bytes.
    pub bytes: u64,
    /// Number of operations that each client has in flight.
    pub outstanding: u32,
}

impl NamesCell {
    /// Returns a job for each client. Each client uses a separate directory.
    pub fn launches(&self) -> Vec<Launch> {
        let &NamesCell { work, clients, files, bytes, outstanding } = self;
        let job = |client| NamesJob {
            work: work.into(),
            directory: format!("starfish-bench-names/{client}"),
            files,
            bytes,
            block_bytes: BLOCK_BYTES,
            outstanding,
        };
        (0..clients).map(|client| Launch::at_once(Job::Names(job(client)), [client])).collect()
    }

    /// Returns the name of the operation.
    pub fn name(&self) -> String {
        NamesWork::from(self.work).to_string()
    }

    /// Returns the number of clients as text.
    pub fn who(&self) -> String {
        counted(self.clients, "client")
    }

    /// Returns the number of files of all clients together.
    pub fn all_files(&self) -> u64 {
        u64::from(self.clients) * u64::from(self.files)
    }
}

/// Times of an operation on names.
#[derive(Clone, Copy, Debug)]
pub struct NamesTimes {
    /// Time until the last client was done.
    pub elapsed: Duration,
    /// Latency of an operation in seconds: mean, 99th percentile, longest.
    pub latency_s: Option<[f64; 3]>,
}

impl NamesTimes {
    /// Returns the times of the outcomes of all clients.
    pub fn of(outcomes: &[Outcome]) -> NamesTimes {
        let mut sum = Outcome::default();
        outcomes.iter().for_each(|outcome| sum.add(outcome));
        let all = || {
            let times = [sum.names.mean()?, sum.names.percentile(99.0)?, sum.names.longest()?];
            Some(times.map(|time| time.as_secs_f64()))
        };
        NamesTimes { elapsed: Duration::from_nanos(sum.elapsed.as_nanos()), latency_s: all() }
    }
}

/// Runs the clients, each as a node of this process. Checks and removes their files.
pub fn measure(cluster: &Cluster, cell: &NamesCell) -> Result<NamesTimes> {
    let outcomes = have_done(cluster, cell.launches(), &JobFiles::new(), node::random()?)?;
    Ok(NamesTimes::of(&outcomes))
}
