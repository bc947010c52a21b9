//! Experiments of the reports, described by the settings that users choose.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use description::MachineDescription;
use fs::{ClientSettings, CollectiveMethod, CollectiveSettings, Configuration, WriteCacheSettings};
use jobs::{ArrayPattern, ArraysJob, Contents, Job, PatternAccess, PatternJob, Think};
use layout::{Operation, Problem};
use machine::{Duration, Recorder, Work};
use request_log::RequestLog;

use crate::array_calls;
use crate::experiment::{Beginning, DiskLayout, Experiment, Launch, StoredFile};
use crate::{AccessPattern, Error, Method, Options, Queued, Replay, Trial};

/// One access pattern by one method on one machine: a row of `starfish simulate`, or a cell of a plan.
#[derive(Clone, Debug)]
pub struct Case {
    /// Machine.
    pub machine: MachineDescription,
    /// Access method.
    pub method: Method,
    /// Access pattern: the data of each compute node.
    pub pattern: AccessPattern,
    /// Size of the file and of its records, and shape of the array in it. For a log: approximate size of all files
    /// together, and mean size of a request.
    pub problem: Problem,
    /// Layout of the file on the disks.
    pub layout: DiskLayout,
    /// Options of the methods.
    pub options: Options,
    /// Kind of contents of the file.
    pub contents: Contents,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// Returns the name of the file of an array. The case has `arrays` files.
fn name_of(array: usize, arrays: usize) -> String {
    if arrays == 1 { "experiment".to_owned() } else { format!("experiment {array}") }
}

impl Case {
    /// Returns the experiment: all compute nodes are members of one job, on one file.
    ///
    /// Settings without effect are left out, so that equivalent cases are equal experiments.
    ///
    /// # Panics
    /// If [`check`](Self::check) would reject the replay of a log, or of calls.
    pub fn experiment(&self) -> Experiment {
        let replayed = self.replay().expect("what check accepts");
        match (self.pattern, replayed) {
            (_, Some(replay)) => replay.experiment().expect("a log that can be replayed"),
            (AccessPattern::Arrays(pattern), None) => self.of_arrays(pattern),
            (AccessPattern::Log(log), None) => unreachable!("{log} is replayed"),
        }
    }

    /// Returns the replay of a log or of calls, or `None` if the case has neither.
    fn replay(&self) -> Result<Option<Replay>, Error> {
        let log = match self.pattern {
            AccessPattern::Log(log) => log.generator(&self.problem).log(),
            AccessPattern::Arrays(_) if self.options.calls => self.calls()?,
            AccessPattern::Arrays(_) => return Ok(None),
        };
        Ok(Some(Replay {
            machine: self.machine.clone(),
            method: self.method,
            log: Arc::new(log),
            think: Think::None,
            layout: self.layout,
            options: self.options,
            configuration: self.configuration(),
            batch_bytes: Replay::BATCH_BYTES,
            contents: self.contents,
            seed: self.seed,
        }))
    }

    fn calls(&self) -> Result<RequestLog, Error> {
        let Case { machine, problem, options, .. } = self;
        let stripes = machine.nodes.io.value * machine.disks.per_io_node.value;
        array_calls::log(self.pattern, problem, (options.block_bytes, stripes))
    }

    fn of_arrays(&self, pattern: ArrayPattern) -> Experiment {
        let Case { machine, problem, layout, options, contents, seed, .. } = self.in_effect();
        let beginning =
            if self.operation() == Operation::Read { Beginning::OnDisks } else { Beginning::Empty };
        let arrays = pattern.arrays();
        let names: Vec<String> = (1..=arrays).map(|array| name_of(array, arrays)).collect();
        let file = |name: &String| StoredFile {
            beginning,
            ..StoredFile::on_disks(name, problem.file_bytes / arrays as u64, options.block_bytes)
        };
        let files = names.iter().map(file).collect();
        let job = self.job(pattern, names, problem);
        Experiment {
            io_nodes: self.options.io_nodes(&self.machine),
            clients: ClientSettings {
                outstanding_per_disk: options.outstanding,
                memget_writes: options.memget_writes,
                ..ClientSettings::report()
            },
            layout,
            contents,
            files,
            jobs: vec![Launch {
                stagger: self.stagger(),
                ..Launch::at_once(job, 0..machine.nodes.compute.value)
            }],
            seed,
            machine,
        }
    }

    /// Returns the job of the compute nodes on files with these names.
    fn job(&self, pattern: ArrayPattern, names: Vec<String>, problem: Problem) -> Job {
        match (pattern, self.access()) {
            (ArrayPattern::One(pattern), Some(access)) => {
                Job::Pattern(PatternJob { file: names.concat(), pattern, problem, access })
            }
            (pattern, _) => {
                Job::Arrays(ArraysJob { files: names, pattern, problem, write_cache: self.write_cache() })
            }
        }
    }

    /// Returns the configuration that provides the settings that the user has not chosen.
    fn configuration(&self) -> Configuration {
        match self.pattern {
            AccessPattern::Arrays(_) if self.options.calls => Configuration::Agent,
            _ => Configuration::Report,
        }
    }

    /// Returns the settings of each compute node's write cache, if the method uses one.
    pub fn write_cache(&self) -> Option<WriteCacheSettings> {
        let settings = self.options.write_cache(self.configuration(), self.is_queued());
        (self.method == Method::WriteCached).then_some(settings)
    }

    /// Checks the case as far as possible without running it.
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
        if options.memget_writes && matches!(method, Method::DiskDirected | Method::WriteCached) {
            return Err(Error::invalid(format!(
                "the {method} method makes no write requests, for which data could be fetched"
            )));
        }
        if *method == Method::WriteCached && self.operation() == Operation::Read {
            return Err(Error::invalid("a write cache is for patterns that write"));
        }
        let is_of_starfish = !matches!(
            self.pattern,
            AccessPattern::Arrays(
                ArrayPattern::InRounds | ArrayPattern::InTurn(..) | ArrayPattern::Apart(..)
            )
        );
        if !is_of_starfish && !matches!(method, Method::Traditional | Method::WriteCached) {
            let text =
                format!("{} is written by the traditional or the write-cached method only", self.pattern);
            return Err(Error::invalid(text));
        }
        if !is_of_starfish && options.page_cache_bytes > 0 {
            return Err(Error::invalid(format!("{} is not written through a page cache", self.pattern)));
        }
        if let Some(write_cache) = self.write_cache() {
            write_cache.check().map_err(|error| Error::invalid(error.to_string()))?;
        }
        if options.page_cache_bytes > 0 && *method != Method::Traditional {
            return Err(Error::invalid("only the traditional method can use a page cache"));
        }
        let (cache, block) = (options.page_cache_bytes, options.block_bytes);
        if (1..block).contains(&cache) {
            let why =
                format!("a page cache of {cache} bytes has no room for a block of the file, {block} bytes");
            return Err(Error::invalid(format!("{why}: choose a larger page_cache")));
        }
        if options.window.is_some() && options.page_cache_bytes == 0 {
            return Err(Error::invalid("a window needs a page cache: set page_cache, too"));
        }
        if let AccessPattern::Log(log) = self.pattern {
            let makes_sense = log.generator(problem).check();
            makes_sense.map_err(|why| Error::invalid(format!("{log}: {why}")))?;
        }
        if options.calls && (options.thread_per_request || options.memget_writes) {
            let why = "calls need the configuration of agents, without thread_per_request and memget_writes";
            return Err(Error::invalid(why));
        }
        match self.replay()? {
            Some(replay) => replay.check(),
            None => self.experiment().check(),
        }
    }

    /// Runs the trial of this number; see [`Experiment::trial`].
    pub fn trial(&self, number: u64) -> Result<Trial, Error> {
        self.check()?;
        self.experiment().trial(number)
    }

    /// Runs the trial of this number and reports its events to `recorder`; see [`Experiment::recorded_trial`].
    pub fn recorded_trial(&self, number: u64, recorder: Rc<RefCell<dyn Recorder>>) -> Result<Trial, Error> {
        self.check()?;
        self.experiment().recorded_trial(number, recorder)
    }

    /// Returns the operation: write if the nodes write to the disks, otherwise read.
    pub fn operation(&self) -> Operation {
        self.pattern.operation()
    }

    /// Returns the reason why a chosen field has no effect with this pattern or method; `None` if it has an effect.
    pub(crate) fn ignores(&self, field: &str) -> Option<&'static str> {
        let (writes, uses_cache) = (self.operation() == Operation::Write, self.options.page_cache_bytes > 0);
        match field {
            "memget_writes" if !writes => Some("no data are written, so none can be fetched"),
            // A page cache reads a page before it overwrites a part of it, so prefetching may have an effect on writes.
            "prefetch" if writes && !uses_cache => Some("no data are read, so none are prefetched"),
            "queued" if self.method == Method::Traditional => {
                Some("the traditional method makes no Memputs and Memgets")
            }
            _ => None,
        }
    }

    /// Returns the same case without options that have no effect. In a read, `memget_writes` becomes false. `queued`
    /// becomes `Always` or `Never`.
    pub fn in_effect(&self) -> Case {
        let mut case = self.clone();
        let options = &mut case.options;
        options.memget_writes &= self.operation() == Operation::Write;
        let makes_memputs = self.method != Method::Traditional;
        options.queued = if makes_memputs && self.is_queued() { Queued::Always } else { Queued::Never };
        case
    }

    /// True if Memputs and Memgets are queued, in a case that makes any.
    fn is_queued(&self) -> bool {
        self.options.is_queued(self.problem.record_bytes)
    }

    /// Returns the access method for one array; `None` for a write cache.
    fn access(&self) -> Option<PatternAccess> {
        let method = match self.method {
            Method::Traditional => {
                let cached = self.options.page_cache().map(PatternAccess::Cached);
                return Some(cached.unwrap_or(PatternAccess::Requests));
            }
            Method::TwoPhase => CollectiveMethod::TwoPhase,
            Method::DiskDirected => CollectiveMethod::DiskDirected { presort: self.options.presort },
            Method::WriteCached => return None,
        };
        Some(PatternAccess::Collective(CollectiveSettings { method, queued: self.is_queued() }))
    }

    /// Returns the delay between the starts of consecutive compute nodes. It is the processor time of a barrier, as if
    /// a barrier released the nodes one after the other.
    fn stagger(&self) -> Duration {
        let processor = &self.machine.processor;
        processor.cost.at(Work::Barrier.index()).cycles.value.at(processor.clock.value)
    }
}

impl fmt::Display for Case {
    /// Writes a description for people, one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { method, pattern, problem, layout, .. } = self;
        write!(f, "{method} {pattern}, {layout}, records of {} bytes", problem.record_bytes)
    }
}
