//! Jobs that share disks: each reads runs from some disks and writes one run to another disk. A placement policy
//! chooses the disks.
//!
//! These are the experiments of Sinclair, Tang & Varman, "Placement-related problems in shared disk I/O" (Kluwer 1996),
//! described by the settings that users choose. Three settings make the file system behave like the model of this
//! report:
//!
//! - A run is a file of one stripe. Its block size is the amount of data that is read or written at once, so each
//!   access is one disk request.
//! - I/O nodes do not prefetch, have a thread for each request, and have memory for all blocks of their disks.
//!   Therefore jobs wait only for disks.
//! - A disk receives one request at a time, in the order that the scheduler chooses.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::str::FromStr;

use description::MachineDescription;
use fs::{ClientSettings, IoNodeSettings, Scheduling, Threads};
use jobs::{BatchReading, Contents, InterleaveJob, Job, MergeJob, Outcome, Run, RunSet};
use machine::{Duration, Recorder};
use placement::{JobPlacement, Policy};

use crate::experiment::{Beginning, DiskLayout, Experiment, FilePlace, Launch, StoredFile};
use crate::placement_outcome::{DiskBacklog, PlacementOutcome, ends};
use crate::{Error, Trial};

/// A case of jobs on shared disks. All jobs are of the same kind.
#[derive(Clone, Debug)]
pub struct PlacementCase {
    /// Machine. It needs a compute node for each job, and all the shared disks.
    pub machine: MachineDescription,
    /// Options of the jobs and their disks.
    pub options: PlacementOptions,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// Options of jobs that share disks. The defaults are the report's merges (section 2.1): five jobs, placed by policy 2
/// on five disks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacementOptions {
    /// Kind of the jobs.
    pub kind: PlacedJob,
    /// Policy that places the runs of merges on disks.
    pub policy: Policy,
    /// Number of jobs (j). For kinds other than merges, it equals the number of disks.
    pub jobs: u32,
    /// Number of shared disks (d).
    pub disks: u32,
    /// Number of input runs of each merge.
    pub runs: u32,
    /// Number of blocks of an input run.
    pub run_blocks: u64,
    /// Size of a block in bytes.
    pub block_bytes: u64,
    /// Number of blocks read at once (b_r).
    pub read_blocks: u64,
    /// Number of blocks written at once (b_w).
    pub write_blocks: u64,
    /// Order in which a disk serves requests.
    pub scheduling: Scheduling,
    /// Total number of blocks in buffers, shared equally by the merges; `None` for no limit.
    pub buffer_blocks: Option<u64>,
    /// Event at which merges request the next batch.
    pub reading: BatchReading,
    /// Computation time of a merge for each block.
    pub work: Duration,
    /// Delay between the starts of consecutive jobs.
    pub stagger: Duration,
    /// Kind of contents of the runs.
    pub contents: Contents,
}

/// Kind of jobs that share disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacedJob {
    /// Each job merges its input runs (sections 2 and 2.1 of the report).
    Merge,
    /// Two jobs copy two disks onto each other (section 3).
    Copy,
    /// Each job interleaves one run of every disk except its output disk (section 4).
    Interleave,
}

impl PlacementCase {
    /// True if the jobs can race when writing is slow enough: there are several jobs, and their placement permits
    /// races.
    pub fn can_race(&self) -> bool {
        self.options.jobs >= 2 && self.policy().can_race()
    }

    /// Returns the policy that places the runs. Jobs that do not merge read from all disks except their output disk.
    fn policy(&self) -> Policy {
        match self.options.kind {
            PlacedJob::Merge => self.options.policy,
            PlacedJob::Copy | PlacedJob::Interleave => Policy::SeparateWithinJob,
        }
    }

    /// True for two jobs that copy two disks onto each other. An interleave of two disks is equivalent to a copy.
    pub fn is_copy(&self) -> bool {
        self.options.kind != PlacedJob::Merge && self.options.disks == 2
    }

    /// Returns the disks of each job's runs.
    pub fn placements(&self) -> Result<Vec<JobPlacement>, Error> {
        let (jobs, disks) = (self.options.jobs as usize, self.options.disks as usize);
        let runs = match self.options.kind {
            PlacedJob::Merge => self.options.runs as usize,
            // One run on each disk except the output disk.
            PlacedJob::Copy | PlacedJob::Interleave => disks.saturating_sub(1),
        };
        self.policy().place(jobs, disks, runs).map_err(|error| Error::invalid(error.to_string()))
    }

    /// Returns the number of blocks in all input runs of a job, which equals the number of blocks in its output.
    pub fn job_blocks(&self) -> u64 {
        let runs = match self.options.kind {
            PlacedJob::Merge => u64::from(self.options.runs),
            PlacedJob::Copy | PlacedJob::Interleave => u64::from(self.options.disks) - 1,
        };
        runs * self.options.run_blocks
    }

    /// Returns the experiment.
    pub fn experiment(&self) -> Result<Experiment, Error> {
        self.check_numbers()?;
        let placements = self.placements()?;
        let inputs: Vec<Vec<StoredFile>> =
            placements.iter().enumerate().map(|(job, placed)| self.inputs(job, placed)).collect();
        let outputs = placements.iter().enumerate().map(|(job, placed)| self.output(job, placed));
        let jobs = self.launches(&inputs);
        let files: Vec<StoredFile> = match self.options.kind {
            // Job by job: the input runs in order, then the output run. The order of creation determines the positions
            // on the disks.
            PlacedJob::Merge => inputs
                .into_iter()
                .zip(outputs)
                .flat_map(|(input, output)| input.into_iter().chain([output]))
                .collect(),
            // All inputs, then all outputs.
            PlacedJob::Copy | PlacedJob::Interleave => inputs.into_iter().flatten().chain(outputs).collect(),
        };
        Ok(Experiment {
            io_nodes: self.io_nodes(&files),
            clients: ClientSettings::report(),
            layout: DiskLayout::Packed,
            contents: self.options.contents,
            files,
            jobs,
            seed: self.seed,
            machine: self.machine.clone(),
        })
    }

    /// Returns the same files and jobs, with the settings of agents for I/O nodes and of agents' clients for clients.
    /// Three settings of the report remain: the disk scheduling, no prefetching, and memory for all blocks of a disk.
    pub fn experiment_on_agents(&self) -> Result<Experiment, Error> {
        let experiment = self.experiment()?;
        let IoNodeSettings { scheduling, block_bytes_max, prefetch_blocks, .. } = experiment.io_nodes;
        let blocks_on = |disk: u32| {
            let there = experiment.files.iter().filter(|file| file.place == FilePlace::Disks(vec![disk]));
            there.map(|file| file.bytes.div_ceil(file.block_bytes)).sum::<u64>()
        };
        let cache_blocks =
            (0..self.options.disks).map(blocks_on).max().unwrap_or(0).max(CACHE_BLOCKS_MIN) as usize;
        let agent = IoNodeSettings::agent();
        let io_nodes = IoNodeSettings { scheduling, block_bytes_max, prefetch_blocks, cache_blocks, ..agent };
        Ok(Experiment { io_nodes, clients: ClientSettings::agent(), ..experiment })
    }

    fn check_numbers(&self) -> Result<(), Error> {
        let invalid = |why: String| Err(Error::invalid(why));
        let PlacementOptions { kind, jobs, disks, .. } = &self.options;
        let (compute, there) = (
            self.machine.nodes.compute.value,
            self.machine.nodes.io.value * self.machine.disks.per_io_node.value,
        );
        if *jobs > compute || *disks > there {
            return invalid(format!(
                "{jobs} jobs on {disks} disks need {jobs} compute nodes and {disks} disks; {} has {compute} \
                 and {there}",
                self.machine.name
            ));
        }
        match kind {
            PlacedJob::Copy if *jobs != 2 || *disks != 2 => {
                invalid(format!("a copy needs two jobs on two disks, not {jobs} on {disks}"))
            }
            PlacedJob::Interleave if jobs != disks || *disks < 2 => invalid(format!(
                "an interleave needs one job for each of at least two disks, not {jobs} jobs on {disks}"
            )),
            PlacedJob::Copy | PlacedJob::Interleave if self.options.buffer_blocks.is_some() => {
                invalid(format!("only merges can have bounded buffers, and these jobs {kind}"))
            }
            _ if self.options.read_blocks == 0 || self.options.write_blocks == 0 => invalid(format!(
                "{} blocks are read and {} written at once; expected at least one",
                self.options.read_blocks, self.options.write_blocks
            )),
            _ if self.chosen_time_ns() > u128::from(TIME_MAX.as_nanos()) => invalid(format!(
                "{} of work on each block and {} between jobs exceed the limit of a hundred simulated years",
                self.options.work, self.options.stagger
            )),
            _ => Ok(()),
        }
    }

    /// Returns an upper bound of the chosen computation times and delays of all jobs, in nanoseconds. It is a sum over
    /// the jobs, because they may share a processor.
    fn chosen_time_ns(&self) -> u128 {
        let PlacementOptions { jobs, work, stagger, .. } = &self.options;
        let of_job = u128::from(work.as_nanos()) * u128::from(self.job_blocks());
        u128::from(*jobs) * (of_job + u128::from(stagger.as_nanos()))
    }

    fn inputs(&self, job: usize, placed: &JobPlacement) -> Vec<StoredFile> {
        let run = |(run, disk): (usize, &usize)| StoredFile {
            name: format!("job {job} run {run}"),
            bytes: self.options.run_blocks * self.options.block_bytes,
            block_bytes: self.options.read_blocks * self.options.block_bytes,
            place: FilePlace::Disks(vec![*disk as u32]),
            beginning: Beginning::OnDisks,
        };
        placed.input.iter().enumerate().map(run).collect()
    }

    fn output(&self, job: usize, placed: &JobPlacement) -> StoredFile {
        StoredFile {
            name: output_name(job),
            bytes: self.job_blocks() * self.options.block_bytes,
            block_bytes: self.options.write_blocks * self.options.block_bytes,
            place: FilePlace::Disks(vec![placed.output as u32]),
            beginning: Beginning::Allocated,
        }
    }

    fn launches(&self, inputs: &[Vec<StoredFile>]) -> Vec<Launch> {
        let launch = |(job, inputs): (usize, &Vec<StoredFile>)| {
            let run = |file: &StoredFile| Run { file: file.name.clone(), blocks: self.options.run_blocks };
            let runs = RunSet {
                inputs: inputs.iter().map(run).collect(),
                output: output_name(job),
                block_bytes: self.options.block_bytes,
                read_blocks: self.options.read_blocks,
                write_blocks: self.options.write_blocks,
            };
            let start = self.options.stagger * job as u64;
            Launch { start, ..Launch::at_once(self.job(runs), [job as u32]) }
        };
        inputs.iter().enumerate().map(launch).collect()
    }

    fn job(&self, runs: RunSet) -> Job {
        match self.options.kind {
            PlacedJob::Merge => Job::Merge(MergeJob {
                runs,
                reading: self.options.reading,
                work: self.options.work,
                portion: self.options.buffer_blocks.map(|blocks| blocks / u64::from(self.options.jobs)),
            }),
            PlacedJob::Copy | PlacedJob::Interleave => Job::Interleave(InterleaveJob { runs }),
        }
    }

    fn io_nodes(&self, files: &[StoredFile]) -> IoNodeSettings {
        let blocks: u64 = files.iter().map(|file| file.bytes.div_ceil(file.block_bytes)).sum();
        IoNodeSettings {
            scheduling: self.options.scheduling,
            cache_blocks: blocks as usize,
            block_bytes_max: self.options.block_bytes
                * self.options.read_blocks.max(self.options.write_blocks),
            threads: Threads::PerRequest,
            prefetch_blocks: 0,
            ..IoNodeSettings::report()
        }
    }

    /// Checks the case as far as possible without running it.
    pub fn check(&self) -> Result<(), Error> {
        self.experiment()?.check()
    }

    /// Runs the trial of this number.
    pub fn trial(&self, number: u64) -> Result<Trial, Error> {
        self.experiment()?.trial(number)
    }

    /// Runs the trial of this number and reports its events to `recorder`; see [`Experiment::recorded_trial`].
    pub fn recorded_trial(&self, number: u64, recorder: Rc<RefCell<dyn Recorder>>) -> Result<Trial, Error> {
        self.experiment()?.recorded_trial(number, recorder)
    }

    /// Returns the outcome of a trial of this case.
    pub fn outcome(&self, trial: &Trial) -> PlacementOutcome {
        PlacementOutcome::of(trial, &self.outputs(), self.options.block_bytes, self.options.stagger)
    }

    /// Returns, for each job by number, the time from the start of the first job until the disk completed the job's
    /// last write. The jobs may have run on any machine.
    pub fn ends(&self, jobs: &[Outcome]) -> Vec<Duration> {
        ends(jobs, self.options.stagger)
    }

    /// Returns the writes that were pending at each disk. The jobs may have run on any machine.
    pub fn backlogs(&self, jobs: &[Outcome]) -> Vec<DiskBacklog> {
        DiskBacklog::of_disks(self.options.disks as usize, jobs, &self.outputs(), self.options.stagger)
    }

    /// Returns the output disk of each job.
    fn outputs(&self) -> Vec<usize> {
        self.placements().unwrap_or_default().iter().map(|placed| placed.output).collect()
    }
}

/// Maximum of the chosen times of jobs: a hundred years. Even with the time of the disks added, the clock then stays
/// far below 2^64 nanoseconds.
const TIME_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Minimum number of cache blocks. With fewer blocks, requests of an agent would wait for each other.
const CACHE_BLOCKS_MIN: u64 = 64;

fn output_name(job: usize) -> String {
    format!("job {job} output")
}

impl Default for PlacementOptions {
    fn default() -> Self {
        PlacementOptions {
            kind: PlacedJob::Merge,
            policy: Policy::SeparateWithinJob,
            jobs: 5,
            disks: 5,
            runs: 20,
            run_blocks: 1000,
            block_bytes: 4096,
            read_blocks: 12,
            write_blocks: 40,
            scheduling: Scheduling::Fcfs,
            buffer_blocks: None,
            reading: BatchReading::Prefetched,
            work: Duration::ZERO,
            stagger: Duration::ZERO,
            contents: Contents::Phantom,
        }
    }
}

fn counted(count: impl Into<u64>, one: &str) -> String {
    let count = count.into();
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

impl fmt::Display for PlacementCase {
    /// Writes a description for people, one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PlacementOptions { kind, jobs, disks, read_blocks, write_blocks, scheduling, .. } = &self.options;
        write!(
            f,
            "{} {kind} on {}, {} read and {write_blocks} written at once",
            counted(*jobs, "job"),
            counted(*disks, "disk"),
            counted(*read_blocks, "block")
        )?;
        if *kind == PlacedJob::Merge {
            write!(f, ", {}", self.options.policy)?;
        }
        if let Some(blocks) = self.options.buffer_blocks {
            write!(f, ", {blocks} blocks of buffers")?;
        }
        write!(f, ", {scheduling}")
    }
}

impl fmt::Display for PlacedJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            PlacedJob::Merge => "merge",
            PlacedJob::Copy => "copy",
            PlacedJob::Interleave => "interleave",
        })
    }
}

impl FromStr for PlacedJob {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "merge" => Ok(PlacedJob::Merge),
            "copy" => Ok(PlacedJob::Copy),
            "interleave" => Ok(PlacedJob::Interleave),
            _ => Err(format!("no kind of job {text:?}: merge, copy or interleave")),
        }
    }
}
