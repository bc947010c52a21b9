//! The experiment of the reports, by the names that users have for its parts.

use std::fmt;

use description::MachineDescription;
use fs::{
    ClientSettings, CollectiveMethod, CollectiveSettings, IoNodeSettings, PageCacheSettings, Prefetch,
    Threads,
};
use jobs::{Contents, Job, PatternAccess, PatternJob};
use layout::{Operation, Pattern, Problem};
use machine::{Duration, Work};
use sim::Recorder;

use crate::experiment::{Beginning, DiskLayout, Experiment, Launch, StoredFile};
use crate::{Error, Method, Options, Queued, Trial};

/// One access pattern, by one method, on one machine: what a row of `starfish simulate` and a cell of a plan are.
#[derive(Clone, Debug)]
pub struct Case {
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

/// What its file is called.
const NAME: &str = "experiment";

impl Case {
    /// The experiment: all compute nodes are members of one job, on one file.
    ///
    /// What has no effect on it is not in it, so cases that come to the same are equal experiments.
    pub fn experiment(&self) -> Experiment {
        let Case { machine, problem, layout, options, contents, seed, .. } = self.in_effect();
        let is_cached = options.page_cache_bytes > 0;
        let beginning =
            if self.operation() == Operation::Read { Beginning::OnDisks } else { Beginning::Empty };
        let job = PatternJob { file: NAME.to_owned(), pattern: self.pattern, problem, access: self.access() };
        let file = StoredFile {
            beginning,
            // A page cache opens what is finished.
            is_finished: is_cached,
            ..StoredFile::on_disks(NAME, problem.file_bytes, options.block_bytes)
        };
        Experiment {
            io_nodes: self.io_nodes(),
            clients: ClientSettings {
                outstanding_per_disk: options.outstanding,
                memget_writes: options.memget_writes,
                ..ClientSettings::report()
            },
            layout,
            contents,
            files: vec![file],
            jobs: vec![Launch {
                stagger: self.stagger(),
                ..Launch::at_once(Job::Pattern(job), 0..machine.nodes.compute.value)
            }],
            seed,
            machine,
        }
    }

    /// Checks what can be checked before anything runs.
    pub fn check(&self) -> Result<(), Error> {
        let Case { machine, method, problem, options, .. } = self;
        let compute_nodes = machine.nodes.compute.value;
        if problem.nodes != compute_nodes {
            let nodes = problem.nodes;
            let text = format!("a pattern for {nodes} compute nodes on a machine with {compute_nodes}");
            return Err(Error::invalid(text));
        }
        if options.outstanding == 0 {
            return Err(Error::invalid("at least one request for each disk must be outstanding"));
        }
        if options.presort && *method != Method::DiskDirected {
            return Err(Error::invalid("only the disk-directed method can presort"));
        }
        if options.memget_writes && *method == Method::DiskDirected {
            return Err(Error::invalid("the disk-directed method makes no write requests to fetch data for"));
        }
        if options.page_cache_bytes > 0 && *method != Method::Traditional {
            return Err(Error::invalid("only the traditional method can use a page cache"));
        }
        if options.window.is_some() && options.page_cache_bytes == 0 {
            return Err(Error::invalid("a window is that of a page cache: choose its size (page_cache) too"));
        }
        self.experiment().check()
    }

    /// Runs the trial of this number; see [`Experiment::trial`].
    pub fn trial(&self, number: u64) -> Result<Trial, Error> {
        self.check()?;
        self.experiment().trial(number)
    }

    /// Runs the trial of this number and tells `recorder` of it; see [`Experiment::recorded_trial`].
    pub fn recorded_trial(&self, number: u64, recorder: Box<dyn Recorder>) -> Result<Trial, Error> {
        self.check()?;
        self.experiment().recorded_trial(number, recorder)
    }

    /// Whether data go to the disks or come from them.
    pub fn operation(&self) -> Operation {
        self.pattern.operation()
    }

    /// The same case without options that have no effect on it: a read fetches no data of writes, and there are two
    /// ways to say what is queued.
    pub fn in_effect(&self) -> Case {
        let mut case = self.clone();
        let options = &mut case.options;
        options.memget_writes &= self.operation() == Operation::Write;
        let makes_memputs = self.method != Method::Traditional;
        options.queued = if makes_memputs && self.is_queued() { Queued::Always } else { Queued::Never };
        case
    }

    /// Whether its Memputs and Memgets are queued, if it makes any.
    fn is_queued(&self) -> bool {
        match self.options.queued {
            Queued::Never => false,
            Queued::Always => true,
            Queued::SmallRecords => self.problem.record_bytes < self.options.block_bytes,
        }
    }

    fn access(&self) -> PatternAccess {
        let Options { page_cache_bytes, window, presort, .. } = self.options;
        let method = match self.method {
            Method::Traditional if page_cache_bytes > 0 => {
                let prefetch = window.unwrap_or(Prefetch::Adaptive);
                let settings = PageCacheSettings { bytes: page_cache_bytes, prefetch, write_behind: true };
                return PatternAccess::Cached(settings);
            }
            Method::Traditional => return PatternAccess::Requests,
            Method::TwoPhase => CollectiveMethod::TwoPhase,
            Method::DiskDirected => CollectiveMethod::DiskDirected { presort },
        };
        PatternAccess::Collective(CollectiveSettings { method, queued: self.is_queued() })
    }

    /// The settings of the I/O nodes: the cache has two buffers for each compute node, disk and outstanding
    /// request, and a pool as many threads as buffers (the report, sections 2.2 and 3.2).
    fn io_nodes(&self) -> IoNodeSettings {
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

    /// The compute nodes start in their order, each later than its predecessor by the work of a barrier, as if one that
    /// they have all come to let one after the other go.
    fn stagger(&self) -> Duration {
        let processor = &self.machine.processor;
        processor.cost.at(Work::Barrier.index()).cycles.value.at(processor.clock.value)
    }
}

impl fmt::Display for Case {
    /// What it is, for people, in a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { method, pattern, problem, layout, .. } = self;
        write!(f, "{method} {pattern}, {layout}, records of {} bytes", problem.record_bytes)
    }
}
