//! The four policies of the report (section 2.2) that choose the disks of a job's input runs and output run.

use std::fmt;

/// A rule that places the runs of jobs on disks. Disks and jobs are counted from 0; job k always writes to disk k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// Policy 1: the output disks contain no input. Job k writes to disk k; all jobs read from disks j to d - 1. There
    /// must be fewer jobs than disks.
    DedicatedWriteDisks,
    /// Policy 2: job k writes to disk k and reads from all others. No job has input on its output disk, so a race is
    /// possible.
    SeparateWithinJob,
    /// Policy 3: like policy 2, but the input runs of job k on disk (k - 1) mod j are on disk k instead. So each job
    /// reads from its output disk. The placement of a job's runs depends on the number of jobs. For a single job,
    /// policy 3 equals policy 2, because disk (0 - 1) mod 1 is disk 0, which has none of its runs.
    SharedWithinJob,
    /// Policy 4: job k writes to disk k and reads from all disks.
    AllDisks,
}

/// Disks of one job's runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPlacement {
    /// Disk of each input run, by the number of the run.
    pub input: Vec<usize>,
    /// Disk of the output run.
    pub output: usize,
}

/// Reason why a policy cannot place the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// There is no job or no disk.
    #[error("expected at least one job and one disk, not {jobs} jobs on {disks} disks")]
    Nothing {
        /// Number of jobs.
        jobs: usize,
        /// Number of disks.
        disks: usize,
    },
    /// There are more jobs than disks, and every job needs its own output disk.
    #[error(
        "{jobs} jobs need {jobs} disks to write to, but there are {disks}; expected no more jobs than disks"
    )]
    MoreJobsThanDisks {
        /// Number of jobs.
        jobs: usize,
        /// Number of disks.
        disks: usize,
    },
    /// No disk is left to read from.
    #[error(
        "{policy} leaves {jobs} jobs on {disks} disks without a disk to read from; expected at least one \
         more disk"
    )]
    NoDiskToRead {
        /// Policy.
        policy: Policy,
        /// Number of jobs.
        jobs: usize,
        /// Number of disks.
        disks: usize,
    },
}

impl Policy {
    /// All policies, by number.
    pub const ALL: [Policy; 4] =
        [Policy::DedicatedWriteDisks, Policy::SeparateWithinJob, Policy::SharedWithinJob, Policy::AllDisks];

    /// Returns the number of the policy in the report, 1 to 4.
    pub fn number(self) -> u8 {
        match self {
            Policy::DedicatedWriteDisks => 1,
            Policy::SeparateWithinJob => 2,
            Policy::SharedWithinJob => 3,
            Policy::AllDisks => 4,
        }
    }

    /// Returns the policy with this number in the report, or `None` for any other number.
    pub fn numbered(number: u8) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.number() == number)
    }

    /// True if jobs placed by this policy can race when writing is slow enough. For this, each job must read from the
    /// output disks of other jobs, but not from its own. With policy 1, no read waits for a write.
    pub fn can_race(self) -> bool {
        self == Policy::SeparateWithinJob
    }

    /// Returns the policy that excludes races on any `disks` disks with the smallest load: 3. Returns 4 for a single
    /// disk, where a job always reads from its output disk. Returns 4 also for jobs that start one after another,
    /// because policy 3 depends on the number of jobs (section 2.2).
    pub fn advised(disks: usize, are_staggered: bool) -> Policy {
        if disks < 2 || are_staggered { Policy::AllDisks } else { Policy::SharedWithinJob }
    }

    /// Places `runs` input runs and the output run of each of `jobs` jobs on `disks` disks, and returns the jobs in
    /// order.
    ///
    /// A job's input runs are distributed round-robin, in the order of their numbers, over the n disks that it reads
    /// from: run i is placed on disk i mod n of these disks. Policy 3 distributes the runs like policy 2 and then moves
    /// some.
    ///
    /// # Errors
    /// If there are no jobs or disks, if there are more jobs than disks, or if no disk is left for input. Policy 1
    /// needs one disk more than jobs; policies 2 and 3 need at least two disks.
    pub fn place(self, jobs: usize, disks: usize, runs: usize) -> Result<Vec<JobPlacement>, PolicyError> {
        if jobs == 0 || disks == 0 {
            return Err(PolicyError::Nothing { jobs, disks });
        }
        if jobs > disks {
            return Err(PolicyError::MoreJobsThanDisks { jobs, disks });
        }
        (0..jobs)
            .map(|job| {
                let readable = self.dealt_to(job, jobs, disks);
                if readable.is_empty() {
                    return Err(PolicyError::NoDiskToRead { policy: self, jobs, disks });
                }
                let input = (0..runs).map(|run| self.moved(readable[run % readable.len()], job, jobs));
                Ok(JobPlacement { input: input.collect(), output: job })
            })
            .collect()
    }

    /// Returns the disks over which the input runs of a job are distributed.
    fn dealt_to(self, job: usize, jobs: usize, disks: usize) -> Vec<usize> {
        match self {
            Policy::DedicatedWriteDisks => (jobs..disks).collect(),
            Policy::SeparateWithinJob | Policy::SharedWithinJob => {
                (0..disks).filter(|&disk| disk != job).collect()
            }
            Policy::AllDisks => (0..disks).collect(),
        }
    }

    /// Returns the final disk of a run that policy 2 places on `disk`.
    fn moved(self, disk: usize, job: usize, jobs: usize) -> usize {
        let before = (job + jobs - 1) % jobs;
        if self == Policy::SharedWithinJob && disk == before { job } else { disk }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Policy::DedicatedWriteDisks => "dedicated write disks",
            Policy::SeparateWithinJob => "separate within a job",
            Policy::SharedWithinJob => "shared within a job",
            Policy::AllDisks => "all disks",
        };
        write!(f, "policy {} ({name})", self.number())
    }
}

impl JobPlacement {
    /// Iterates over the input runs on a disk, in order.
    pub fn runs_on(&self, disk: usize) -> impl Iterator<Item = usize> {
        self.input.iter().enumerate().filter(move |&(_, &on)| on == disk).map(|(run, _)| run)
    }

    /// True if the job reads from its output disk. Then its own writes delay its reads, so it cannot race (section 6 of
    /// the report).
    pub fn reads_where_it_writes(&self) -> bool {
        self.input.contains(&self.output)
    }
}
