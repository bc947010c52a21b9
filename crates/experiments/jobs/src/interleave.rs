//! Interleaves runs: a job reads a batch of every input run at the same time, waits for all batches, and writes their
//! blocks in turn, with write-behind. With a single input run it is a copy.
//!
//! Source: sections 3 (two disks copied onto each other) and 4 (d disks) of Sinclair, Tang & Varman, "Placement-related
//! problems in shared disk I/O" (Kluwer 1996).

use std::fmt;

use machine::Machine;

use crate::run_part::RunPart;
use crate::runs::{RunOutput, RunSet};
use crate::timeline::WaitCause;
use crate::{Error, Member, Outcome};

/// A job that interleaves runs, or copies one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterleaveJob {
    /// Runs of the job.
    pub runs: RunSet,
}

impl InterleaveJob {
    pub(crate) fn check(&self, members: u32) -> Result<(), Error> {
        self.runs.check(members)
    }
}

impl fmt::Display for InterleaveJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.runs.inputs[..] {
            [run] => write!(f, "copying {} to {}", run.file, self.runs.output),
            runs => write!(f, "interleaving {} runs to {}", runs.len(), self.runs.output),
        }
    }
}

/// Part of the member in the job.
pub struct InterleavePart<M: Machine> {
    job: InterleaveJob,
    part: RunPart<M>,
}

impl<M: Machine> InterleavePart<M> {
    pub(crate) async fn prepare(job: &InterleaveJob, member: Member<M>) -> Result<Self, Error> {
        Ok(InterleavePart { job: job.clone(), part: RunPart::prepare(&job.runs, member).await? })
    }

    pub(crate) async fn run(&self) -> Result<Outcome, Error> {
        let output = self.part.begin(&self.job.runs);
        let all = 0..self.part.inputs.count();
        while !all.clone().all(|run| self.part.inputs.is_used_up(run)) {
            all.clone().for_each(|run| self.part.inputs.ask(run));
            // The job waits for all runs. Record the wait as one for the first run without data.
            let late = all.clone().find(|&run| !self.part.inputs.has_next(run)).unwrap_or(0);
            output.note_wait(WaitCause::Input(late), self.part.inputs.wait_for_all(all.clone())).await?;
            self.use_round(&output);
        }
        self.part.finish(output).await
    }

    /// Uses all blocks that have arrived, one block of each run in turn.
    fn use_round(&self, output: &RunOutput<M>) {
        for _ in 0..self.job.runs.read_blocks {
            for run in (0..self.part.inputs.count()).filter(|&run| self.part.inputs.has_next(run)) {
                let (block, data) = self.part.inputs.take(run);
                output.make(block, &data);
                output.write_if_full();
            }
        }
    }

    pub(crate) async fn check(&self) -> Result<(), Error> {
        self.part.check().await
    }
}
