//! Small files: made, looked at, listed and removed by several clients at once, measured on agents and
//! predicted.
//!
//! - this file: what is done, and by how many; measuring it on agents of one's own
//! - `store_costs.rs`: what the store of metadata takes on this computer, measured for the prediction
//! - `prediction.rs`: what the simulated machine says of the same
//! - `results.rs`: rows, as text, CSV, JSON and a page

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

/// The block size of the files, in bytes: that of programs.
const BLOCK_BYTES: u64 = node::Settings::BLOCK_BYTES;

/// What the clients do with their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NameWork {
    /// Make, write and close each file.
    Create,
    /// Ask for the attributes of each file.
    Stat,
    /// List the directory with all attributes.
    List,
    /// Remove each file, and its contents.
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

/// What is done, and by how many clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamesCell {
    /// The operation on names.
    pub work: NameWork,
    /// Number of clients.
    pub clients: u32,
    /// Files of each client.
    pub files: u32,
    /// Bytes of each file.
    pub bytes: u64,
    /// Operations that each client has under way at once.
    pub outstanding: u32,
}

impl NamesCell {
    /// A job for each client, with a directory of its own.
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

    /// What the work is called.
    pub fn name(&self) -> String {
        NamesWork::from(self.work).to_string()
    }

    /// Who does it, in words.
    pub fn who(&self) -> String {
        counted(self.clients, "client")
    }

    /// The files of all clients together.
    pub fn all_files(&self) -> u64 {
        u64::from(self.clients) * u64::from(self.files)
    }
}

/// The outcome with these latencies.
#[derive(Clone, Copy, Debug)]
pub struct NamesTimes {
    /// Until the last client was through.
    pub elapsed: Duration,
    /// Latency of an operation in seconds: mean, 99th percentile, longest.
    pub latency_s: Option<[f64; 3]>,
}

impl NamesTimes {
    /// Of what came of all clients.
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

/// Has clients do it, each a node of this process. What they have made is checked, and removed.
pub fn measure(cluster: &Cluster, cell: &NamesCell) -> Result<NamesTimes> {
    let outcomes = have_done(cluster, cell.launches(), &JobFiles::new(), node::random()?)?;
    Ok(NamesTimes::of(&outcomes))
}
