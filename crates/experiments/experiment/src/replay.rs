//! The replay of a request log on a simulated machine, described by the settings that users choose.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use description::MachineDescription;
use fs::{ClientSettings, CollectiveMethod, Configuration, IoNodeSettings};
use jobs::{Contents, Job, ReplayAccess, ReplayJob, Think};
use machine::Recorder;
use request_log::RequestLog;

use crate::experiment::{Beginning, DiskLayout, Experiment, Launch, StoredFile};
use crate::{Error, Method, Options, Queued, Trial};

/// A replay of a request log by one method on one machine: a row of `starfish replay`.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Machine. The nodes of the log are its first compute nodes.
    pub machine: MachineDescription,
    /// Access method.
    pub method: Method,
    /// Log to replay.
    pub log: Arc<RequestLog>,
    /// Treatment of the time between requests.
    pub think: Think,
    /// Layout of the files on the disks.
    pub layout: DiskLayout,
    /// Options of the methods.
    pub options: Options,
    /// Configuration that provides the settings that the user has not chosen.
    pub configuration: Configuration,
    /// Size in bytes of a node's batch for one collective operation.
    pub batch_bytes: u64,
    /// Kind of contents of the files.
    pub contents: Contents,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl Replay {
    /// Methods by which every log can be replayed.
    pub const METHODS: [Method; 4] =
        [Method::Traditional, Method::TwoPhase, Method::DiskDirected, Method::WriteCached];

    /// Default size in bytes of a node's batch for one collective operation.
    pub const BATCH_BYTES: u64 = 1 << 20;

    /// Returns the job on files with these names, for any machine.
    pub fn job(&self, files: Vec<String>) -> ReplayJob {
        let access = self.options.access(self.method, &self.log, self.configuration, self.batch_bytes);
        ReplayJob::new(self.log.clone(), files, access, self.think)
    }

    /// Returns the experiment.
    pub fn experiment(&self) -> Result<Experiment, Error> {
        let nodes = self.log.nodes().len() as u32;
        let compute = self.machine.nodes.compute.value;
        if nodes > compute {
            let why = format!("the log has {nodes} nodes, and the machine {compute} compute nodes");
            return Err(Error::invalid(why));
        }
        let job = self.job((0..self.log.files().len()).map(|file| format!("file {file}")).collect());
        let file = |(name, bytes, is_read): (&str, u64, bool)| StoredFile {
            beginning: if is_read { Beginning::OnDisks } else { Beginning::Empty },
            ..StoredFile::on_disks(name, bytes, self.options.block_bytes)
        };
        Ok(Experiment {
            io_nodes: self.io_nodes(),
            clients: ClientSettings {
                outstanding_per_disk: self.options.outstanding,
                memget_writes: self.options.memget_writes && self.method == Method::Traditional,
                ..self.configuration.client()
            },
            layout: self.layout,
            contents: self.contents,
            files: job.files().map(file).collect(),
            jobs: vec![Launch::at_once(Job::Replay(job), 0..nodes)],
            seed: self.seed,
            machine: self.machine.clone(),
        })
    }

    /// Checks the replay as far as possible without running it.
    pub fn check(&self) -> Result<(), Error> {
        self.experiment()?.check()
    }

    /// Runs the replay.
    pub fn trial(&self) -> Result<Trial, Error> {
        self.numbered_trial(0)
    }

    /// Runs the trial of this number. Each trial has different random numbers.
    pub fn numbered_trial(&self, number: u64) -> Result<Trial, Error> {
        self.experiment()?.trial(number)
    }

    /// Runs the replay and reports its events to `recorder`; see [`Experiment::recorded_trial`].
    pub fn recorded_trial(&self, recorder: Rc<RefCell<dyn Recorder>>) -> Result<Trial, Error> {
        self.experiment()?.recorded_trial(0, recorder)
    }

    fn io_nodes(&self) -> IoNodeSettings {
        match self.configuration {
            Configuration::Report => self.options.io_nodes(&self.machine),
            Configuration::Agent => {
                let agent = IoNodeSettings::agent();
                IoNodeSettings {
                    scheduling: self.options.scheduling,
                    prefetch_blocks: self.options.prefetch_blocks,
                    buffers_per_disk: self.options.buffers as usize,
                    block_bytes_max: agent.block_bytes_max.max(self.options.block_bytes),
                    ..agent
                }
            }
        }
    }
}

/// Default block size in bytes of files on agents.
const AGENT_BLOCK_BYTES: u64 = 256 << 10;

impl Options {
    /// Returns the default options of agents, and of MPI programs on agents.
    pub fn of_agents() -> Options {
        Options {
            block_bytes: AGENT_BLOCK_BYTES,
            outstanding: ClientSettings::agent().outstanding_per_disk,
            scheduling: IoNodeSettings::agent().scheduling,
            prefetch_blocks: IoNodeSettings::agent().prefetch_blocks,
            buffers: IoNodeSettings::agent().buffers_per_disk as u64,
            queued: Queued::Always,
            presort: true,
            ..Options::default()
        }
    }

    /// Returns the access method for the requests of a log. A collective method uses batches of `batch_bytes` bytes,
    /// unless the log identifies its collective calls.
    pub fn access(
        &self,
        method: Method,
        log: &RequestLog,
        configuration: Configuration,
        batch_bytes: u64,
    ) -> ReplayAccess {
        let queued = self.is_queued(log.totals().mean_bytes() as u64);
        let batches = |method| match log.calls() {
            None => ReplayAccess::Batches { method, queued, bytes: batch_bytes },
            Some(_) => ReplayAccess::Calls { method, queued },
        };
        match method {
            Method::Traditional => match self.page_cache() {
                Some(settings) => ReplayAccess::Cached(settings),
                None => ReplayAccess::Requests,
            },
            Method::DiskDirected => batches(CollectiveMethod::DiskDirected { presort: self.presort }),
            Method::TwoPhase => batches(CollectiveMethod::TwoPhase),
            Method::WriteCached => ReplayAccess::WriteCached(self.write_cache(configuration, queued)),
        }
    }
}

impl fmt::Display for Replay {
    /// Writes a description for people, one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} replay, {}", self.method, self.layout)
    }
}
