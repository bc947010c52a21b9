//! Jobs that share disks: each reads runs from some disks and writes one to another, as a placement policy says.
//!
//! The experiments of Sinclair, Tang & Varman, "Placement-related problems in shared disk I/O" (Kluwer 1996), by the
//! names that users have for their parts. What makes the file system behave as the model of that report:
//!
//! - a run is a file of one stripe, and its block is what is read or written at once; so each is one disk request;
//! - I/O nodes read nothing ahead, have a thread for each request, and memory for all blocks of their disks: nothing
//!   but a disk makes anybody wait;
//! - a disk is given one request at a time, in the order of the schedule.

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

/// Jobs of one kind on shared disks.
#[derive(Clone, Debug)]
pub struct PlacementCase {
    /// The machine: it has as many compute nodes as there are jobs at least, and the disks.
    pub machine: MachineDescription,
    /// What is chosen of the jobs and their disks.
    pub options: PlacementOptions,
    /// Where all randomness comes from.
    pub seed: u64,
}

/// What can be chosen of jobs that share disks. The default are the report's merges (section 2.1), five of them placed
/// by policy 2 on five disks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlacementOptions {
    /// What the jobs do.
    pub kind: PlacedJob,
    /// Which disks the runs of merges lie on.
    pub policy: Policy,
    /// How many jobs there are (j); as many as disks of those that do not merge.
    pub jobs: u32,
    /// How many disks they share (d).
    pub disks: u32,
    /// Input runs of each merge.
    pub runs: u32,
    /// Blocks of an input run.
    pub run_blocks: u64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Blocks that are read at once (b_r).
    pub read_blocks: u64,
    /// Blocks that are written at once (b_w).
    pub write_blocks: u64,
    /// The order in which a disk serves requests.
    pub scheduling: Scheduling,
    /// Blocks of buffers, of which each merge has an equal portion; without bound if this is none.
    pub buffer_blocks: Option<u64>,
    /// When merges ask for batches.
    pub reading: BatchReading,
    /// What a merge works on each block.
    pub work: Duration,
    /// How much later than the one before each job begins.
    pub stagger: Duration,
    /// What runs contain.
    pub contents: Contents,
}

/// What jobs do that share disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacedJob {
    /// Each merges its input runs (sections 2 and 2.1 of the report).
    Merge,
    /// Two jobs copy two disks onto each other (section 3).
    Copy,
    /// Each interleaves a run of every disk but the one it writes to (section 4).
    Interleave,
}

impl PlacementCase {
    /// Whether its jobs can race, if writing is slow enough: there are several, and they are placed so that they can.
    pub fn can_race(&self) -> bool {
        self.options.jobs >= 2 && self.policy().can_race()
    }

    /// By which policy its runs are placed: jobs that do not merge read from all disks but the one they write to.
    fn policy(&self) -> Policy {
        match self.options.kind {
            PlacedJob::Merge => self.options.policy,
            PlacedJob::Copy | PlacedJob::Interleave => Policy::SeparateWithinJob,
        }
    }

    /// Whether it is of two jobs that copy two disks onto each other, as which an interleave of two disks comes to the
    /// same.
    pub fn is_copy(&self) -> bool {
        self.options.kind != PlacedJob::Merge && self.options.disks == 2
    }

    /// The disks of each job's runs.
    pub fn placements(&self) -> Result<Vec<JobPlacement>, Error> {
        let (jobs, disks) = (self.options.jobs as usize, self.options.disks as usize);
        let runs = match self.options.kind {
            PlacedJob::Merge => self.options.runs as usize,
            // One run on each disk but that of the output.
            PlacedJob::Copy | PlacedJob::Interleave => disks.saturating_sub(1),
        };
        self.policy().place(jobs, disks, runs).map_err(|error| Error::invalid(error.to_string()))
    }

    /// The blocks of all input runs of a job, which are those of its output.
    pub fn job_blocks(&self) -> u64 {
        let runs = match self.options.kind {
            PlacedJob::Merge => u64::from(self.options.runs),
            PlacedJob::Copy | PlacedJob::Interleave => u64::from(self.options.disks) - 1,
        };
        runs * self.options.run_blocks
    }

    /// The experiment.
    pub fn experiment(&self) -> Result<Experiment, Error> {
        self.check_numbers()?;
        let placements = self.placements()?;
        let inputs: Vec<Vec<StoredFile>> =
            placements.iter().enumerate().map(|(job, placed)| self.inputs(job, placed)).collect();
        let outputs = placements.iter().enumerate().map(|(job, placed)| self.output(job, placed));
        let jobs = self.launches(&inputs);
        let files: Vec<StoredFile> = match self.options.kind {
            // Job by job: its input runs in order, then its output run.
            PlacedJob::Merge => inputs
                .into_iter()
                .zip(outputs)
                .flat_map(|(input, output)| input.into_iter().chain([output]))
                .collect(),
            // All inputs, then the output.
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

    /// The same files and jobs, with I/O nodes and clients that work as agents and their clients do. Of what is the
    /// report's there are left the order at the disks, that nothing is read ahead, and memory for all blocks of a disk.
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
                "{jobs} jobs on {disks} disks need as many compute nodes and disks; {} has {compute} and {there}",
                self.machine.name
            ));
        }
        match kind {
            PlacedJob::Copy if *jobs != 2 || *disks != 2 => {
                invalid(format!("a copy is of two jobs on two disks, not of {jobs} on {disks}"))
            }
            PlacedJob::Interleave if jobs != disks || *disks < 2 => invalid(format!(
                "an interleave has a job for each of at least two disks, not {jobs} jobs on {disks}"
            )),
            PlacedJob::Copy | PlacedJob::Interleave if self.options.buffer_blocks.is_some() => {
                invalid(format!("only merges can have bounded buffers, and these jobs {kind}"))
            }
            _ if self.options.read_blocks == 0 || self.options.write_blocks == 0 => invalid(format!(
                "{} blocks are read and {} written at once; expected at least one",
                self.options.read_blocks, self.options.write_blocks
            )),
            _ if self.chosen_time_ns() > u128::from(TIME_MAX.as_nanos()) => invalid(format!(
                "{} of work on each block and {} between jobs come to more than the hundred years that are simulated",
                self.options.work, self.options.stagger
            )),
            _ => Ok(()),
        }
    }

    /// What the jobs work and wait as it is chosen, at most: where they share a processor, one works after the other.
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

    /// Checks what can be checked before anything runs.
    pub fn check(&self) -> Result<(), Error> {
        self.experiment()?.check()
    }

    /// Runs the trial of this number.
    pub fn trial(&self, number: u64) -> Result<Trial, Error> {
        self.experiment()?.trial(number)
    }

    /// Runs the trial of this number and tells `recorder` of it; see [`Experiment::recorded_trial`].
    pub fn recorded_trial(&self, number: u64, recorder: Rc<RefCell<dyn Recorder>>) -> Result<Trial, Error> {
        self.experiment()?.recorded_trial(number, recorder)
    }

    /// What a trial of this case tells.
    pub fn outcome(&self, trial: &Trial) -> PlacementOutcome {
        PlacementOutcome::of(trial, &self.outputs(), self.options.block_bytes, self.options.stagger)
    }

    /// When the disk had the last write of each job, by number, since the first began: of jobs on whatever machine.
    pub fn ends(&self, jobs: &[Outcome]) -> Vec<Duration> {
        ends(jobs, self.options.stagger)
    }

    /// The writes that were pending at each disk: of jobs on whatever machine.
    pub fn backlogs(&self, jobs: &[Outcome]) -> Vec<DiskBacklog> {
        DiskBacklog::of_disks(self.options.disks as usize, jobs, &self.outputs(), self.options.stagger)
    }

    /// The disk that each job writes to.
    fn outputs(&self) -> Vec<usize> {
        self.placements().unwrap_or_default().iter().map(|placed| placed.output).collect()
    }
}

/// A hundred years, the most that jobs may take by what is chosen: with what the disks take besides, the clock does not
/// come near the end of 64 bits of nanoseconds.
const TIME_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Fewer blocks of cache than this would make requests of an agent wait for each other.
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
    /// What it is, for people, in a line.
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
