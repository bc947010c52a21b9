//! The four policies of the report (section 2.2): which disks the input runs of a job and its output run lie on.

use std::fmt;

/// Where the runs of jobs lie. Disks and jobs are counted from 0; job k always writes to disk k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// Policy 1: the disks that are written to hold nothing else. Job k writes to disk k; all jobs read from the disks
    /// from j to d - 1. It needs fewer jobs than disks.
    DedicatedWriteDisks,
    /// Policy 2: job k writes to disk k and reads from all others. No job has input on the disk it writes to, which is
    /// what makes a race possible.
    SeparateWithinJob,
    /// Policy 3: as policy 2, but the input runs of job k on disk (k - 1) mod j lie on disk k instead, so that each job
    /// reads from the disk that it writes to. Where the runs of one job lie depends on how many jobs there are. For one
    /// job it is policy 2: disk (0 - 1) mod 1 is disk 0, which has none of its runs.
    SharedWithinJob,
    /// Policy 4: job k writes to disk k and reads from all disks.
    AllDisks,
}

/// The disks of one job's runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPlacement {
    /// The disk of each input run, by the number of the run.
    pub input: Vec<usize>,
    /// The disk of the output run.
    pub output: usize,
}

/// Why a policy places nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// There is nothing to place, or no disk to place it on.
    #[error("expected at least one job and one disk, not {jobs} jobs on {disks} disks")]
    Nothing {
        /// The jobs.
        jobs: usize,
        /// The disks.
        disks: usize,
    },
    /// Every job writes to a disk of its own.
    #[error(
        "{jobs} jobs need {jobs} disks to write to, and there are {disks}; expected no more jobs than disks"
    )]
    MoreJobsThanDisks {
        /// The jobs.
        jobs: usize,
        /// The disks.
        disks: usize,
    },
    /// The policy leaves a job no disk to read from.
    #[error(
        "{policy} leaves {jobs} jobs on {disks} disks no disk to read from; expected at least one disk more"
    )]
    NoDiskToRead {
        /// The policy.
        policy: Policy,
        /// The jobs.
        jobs: usize,
        /// The disks.
        disks: usize,
    },
}

impl Policy {
    /// All policies, by number.
    pub const ALL: [Policy; 4] =
        [Policy::DedicatedWriteDisks, Policy::SeparateWithinJob, Policy::SharedWithinJob, Policy::AllDisks];

    /// The number that the report gives to the policy, 1 to 4.
    pub fn number(self) -> u8 {
        match self {
            Policy::DedicatedWriteDisks => 1,
            Policy::SeparateWithinJob => 2,
            Policy::SharedWithinJob => 3,
            Policy::AllDisks => 4,
        }
    }

    /// The policy of that number in the report; `None` if there is none.
    pub fn numbered(number: u8) -> Option<Policy> {
        Policy::ALL.into_iter().find(|policy| policy.number() == number)
    }

    /// Whether several jobs that it places can race, if writing is slow enough: each reads where others write, and none
    /// where it writes itself. By policy 1 no read waits behind a write.
    pub fn can_race(self) -> bool {
        self == Policy::SeparateWithinJob
    }

    /// Of the policies by which jobs on `disks` disks cannot race, whatever the disks are, the one with the least load:
    /// 3. It is 4 on a single disk, where a job reads from the disk that it writes to in any case, and for jobs that
    /// arrive one after another, since by policy 3 the runs of a job lie where the number of jobs says (section 2.2).
    pub fn advised(disks: usize, are_staggered: bool) -> Policy {
        if disks < 2 || are_staggered { Policy::AllDisks } else { Policy::SharedWithinJob }
    }

    /// Places `runs` input runs and the output run of each of `jobs` jobs on `disks` disks; gives the jobs in order.
    ///
    /// A job's input runs are dealt in turn to the disks that it reads from, in the order of the disks' numbers: run i
    /// to disk i mod n of them. Policy 3 deals as policy 2 and moves runs then.
    ///
    /// # Errors
    /// If there are no jobs or disks, more jobs than disks, or no disk is left for input: policy 1 needs a disk more
    /// than there are jobs, policies 2 and 3 need two disks.
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

    /// The disks to which the input runs of a job are dealt.
    fn dealt_to(self, job: usize, jobs: usize, disks: usize) -> Vec<usize> {
        match self {
            Policy::DedicatedWriteDisks => (jobs..disks).collect(),
            Policy::SeparateWithinJob | Policy::SharedWithinJob => {
                (0..disks).filter(|&disk| disk != job).collect()
            }
            Policy::AllDisks => (0..disks).collect(),
        }
    }

    /// Where a run that was dealt to `disk` comes to lie.
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
    /// The input runs on a disk, in order.
    pub fn runs_on(&self, disk: usize) -> impl Iterator<Item = usize> {
        self.input.iter().enumerate().filter(move |&(_, &on)| on == disk).map(|(run, _)| run)
    }

    /// Whether the job reads from the disk that it writes to. If so, its own writes hold up its reads and it cannot
    /// race (section 6 of the report).
    pub fn reads_where_it_writes(&self) -> bool {
        self.input.contains(&self.output)
    }
}
