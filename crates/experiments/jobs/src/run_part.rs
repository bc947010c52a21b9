//! State of a job on runs at its node, independent of the order in which the job uses blocks.

use std::cell::RefCell;

use fs::File;
use machine::Machine;

use crate::runs::{InputRuns, RunOutput, RunSet};
use crate::{Error, Member, Outcome};

/// The runs of a job at its node: input runs to read, and an output run to write.
pub(crate) struct RunPart<M: Machine> {
    pub(crate) inputs: InputRuns<M>,
    pub(crate) member: Member<M>,
    file: File<M>,
    /// Finished output, for the check.
    output: RefCell<Option<RunOutput<M>>>,
}

impl<M: Machine> RunPart<M> {
    pub(crate) async fn prepare(set: &RunSet, member: Member<M>) -> Result<Self, Error> {
        let inputs = InputRuns::open(set, &member).await?;
        let file = member.open(&set.output).await?;
        Ok(RunPart { inputs, member, file, output: RefCell::default() })
    }

    /// Creates the output, and starts its time.
    pub(crate) fn begin(&self, set: &RunSet) -> RunOutput<M> {
        RunOutput::new(self.file.clone(), set, &self.member)
    }

    /// Finishes the output and returns the outcome.
    pub(crate) async fn finish(&self, output: RunOutput<M>) -> Result<Outcome, Error> {
        let timeline = output.finish().await?;
        let mut outcome = Outcome { timeline: Some(timeline), ..Outcome::default() };
        outcome.reads.bytes = self.inputs.used_bytes();
        outcome.writes.bytes = output.bytes();
        outcome.elapsed = output.elapsed();
        self.output.replace(Some(output));
        Ok(outcome)
    }

    pub(crate) async fn check(&self) -> Result<(), Error> {
        let output = self.output.take();
        match output {
            Some(output) => output.check().await,
            None => Ok(()),
        }
    }
}
