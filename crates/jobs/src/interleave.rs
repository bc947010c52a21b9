//! Interleaving runs: a job reads a batch of each of its input runs at once, waits for all, and writes their blocks in
//! turn, behind its own back. With one input run it is a copy.
//!
//! These are the jobs of sections 3 (two disks that are copied onto each other) and 4 (d disks) of Sinclair, Tang &
//! Varman, "Placement-related problems in shared disk I/O" (Kluwer 1996).

use std::cell::RefCell;
use std::fmt;

use fs::File;
use machine::Machine;

use crate::runs::{Inputs, RunOutput, RunSet};
use crate::timeline::WaitCause;
use crate::{Error, Member, Outcome};

/// A job that interleaves runs, or copies one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterleaveJob {
    /// Its runs.
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

/// One job that interleaves runs.
pub struct InterleavePart<M: Machine> {
    job: InterleaveJob,
    inputs: Inputs<M>,
    file: File<M>,
    member: Member<M>,
    /// What has been made, once it has been.
    output: RefCell<Option<RunOutput<M>>>,
}

impl<M: Machine> InterleavePart<M> {
    pub(crate) async fn prepare(job: &InterleaveJob, member: Member<M>) -> Result<Self, Error> {
        let inputs = Inputs::open(&job.runs, &member).await?;
        let file = member.client()?.open_unfinished(&job.runs.output).await?;
        Ok(InterleavePart { job: job.clone(), inputs, file, member, output: RefCell::default() })
    }

    pub(crate) async fn run(&self) -> Result<Outcome, Error> {
        let begin = self.member.machine.now();
        let output = RunOutput::new(self.file.clone(), &self.job.runs, &self.member);
        let all = 0..self.inputs.count();
        while !all.clone().all(|run| self.inputs.is_used_up(run)) {
            all.clone().for_each(|run| self.inputs.ask(run));
            // The first of those that are not there yet stands for all.
            let late = all.clone().find(|&run| !self.inputs.has_next(run)).unwrap_or(0);
            output.note_wait(WaitCause::Input(late), self.inputs.wait_for_all(all.clone())).await?;
            self.use_round(&output);
        }
        let timeline = output.finish().await?;
        let mut outcome = Outcome { timeline: Some(timeline), ..Outcome::default() };
        outcome.reads.bytes = self.inputs.used_bytes();
        outcome.writes.bytes = output.bytes();
        outcome.elapsed = self.member.machine.now().since(begin);
        self.output.replace(Some(output));
        Ok(outcome)
    }

    /// Uses all that has come, block by block of the runs in turn.
    fn use_round(&self, output: &RunOutput<M>) {
        for _ in 0..self.job.runs.read_blocks {
            for run in (0..self.inputs.count()).filter(|&run| self.inputs.has_next(run)) {
                let (block, data) = self.inputs.take(run);
                output.make(block, &data);
                output.write_if_full();
            }
        }
    }

    pub(crate) async fn check(&self) -> Result<(), Error> {
        let output = self.output.take();
        match output {
            Some(output) => output.check().await,
            None => Ok(()),
        }
    }
}
