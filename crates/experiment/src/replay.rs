//! The replay of a request log on a simulated machine, by the names that users have for its parts.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use description::MachineDescription;
use fs::{ClientSettings, CollectiveMethod};
use jobs::{Contents, Job, ReplayAccess, ReplayJob, Think};
use machine::Recorder;
use request_log::RequestLog;

use crate::experiment::{Beginning, DiskLayout, Experiment, Launch, StoredFile};
use crate::{Error, Method, Options, Trial};

/// A request log, replayed by one method on one machine: a row of `starfish replay`.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The machine. The nodes of the log are its first compute nodes.
    pub machine: MachineDescription,
    /// The access method.
    pub method: Method,
    /// What is replayed.
    pub log: Arc<RequestLog>,
    /// What becomes of the time between requests.
    pub think: Think,
    /// How files lie on the disks.
    pub layout: DiskLayout,
    /// What can be chosen of the methods.
    pub options: Options,
    /// Bytes that a node gathers for one collective operation.
    pub batch_bytes: u64,
    /// What files contain.
    pub contents: Contents,
    /// Where all randomness comes from.
    pub seed: u64,
}

impl Replay {
    /// The methods by which every log can be replayed.
    pub const METHODS: [Method; 4] =
        [Method::Traditional, Method::TwoPhase, Method::DiskDirected, Method::WriteCached];

    /// Bytes that a node gathers for one collective operation, if nobody says otherwise.
    pub const BATCH_BYTES: u64 = 1 << 20;

    /// The job, for any machine, on files of these names.
    pub fn job(&self, files: Vec<String>) -> ReplayJob {
        let access = self.options.access(self.method, self.is_queued(), self.batch_bytes);
        ReplayJob::new(self.log.clone(), files, access, self.think)
    }

    /// The experiment.
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
            is_finished: job.wants_finished_files(),
            ..StoredFile::on_disks(name, bytes, self.options.block_bytes)
        };
        Ok(Experiment {
            io_nodes: self.options.io_nodes(&self.machine),
            clients: ClientSettings {
                outstanding_per_disk: self.options.outstanding,
                memget_writes: self.options.memget_writes && self.method == Method::Traditional,
                ..ClientSettings::report()
            },
            layout: self.layout,
            contents: self.contents,
            files: job.files().map(file).collect(),
            jobs: vec![Launch::at_once(Job::Replay(job), 0..nodes)],
            seed: self.seed,
            machine: self.machine.clone(),
        })
    }

    /// Checks what can be checked before anything runs.
    pub fn check(&self) -> Result<(), Error> {
        self.experiment()?.check()
    }

    /// Runs it.
    pub fn trial(&self) -> Result<Trial, Error> {
        self.experiment()?.trial(0)
    }

    /// Runs it and tells `recorder` of it; see [`Experiment::recorded_trial`].
    pub fn recorded_trial(&self, recorder: Rc<RefCell<dyn Recorder>>) -> Result<Trial, Error> {
        self.experiment()?.recorded_trial(0, recorder)
    }

    fn is_queued(&self) -> bool {
        self.options.is_queued(self.log.totals().mean_bytes() as u64)
    }
}

impl Options {
    /// How the requests of a log are made; by a collective method in batches of so many bytes.
    pub fn access(&self, method: Method, queued: bool, batch_bytes: u64) -> ReplayAccess {
        let batches = |method| ReplayAccess::Batches { method, queued, bytes: batch_bytes };
        match method {
            Method::Traditional => match self.page_cache() {
                Some(settings) => ReplayAccess::Cached(settings),
                None => ReplayAccess::Requests,
            },
            Method::DiskDirected => batches(CollectiveMethod::DiskDirected { presort: self.presort }),
            Method::TwoPhase => batches(CollectiveMethod::TwoPhase),
            Method::WriteCached => ReplayAccess::WriteCached(self.write_cache(queued)),
        }
    }
}

impl fmt::Display for Replay {
    /// What it is, for people, in a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} replay, {}", self.method, self.layout)
    }
}
