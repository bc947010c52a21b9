//! What every job on runs has at its node, in whichever order it uses their blocks.

use std::cell::RefCell;

use fs::File;
use machine::Machine;

use crate::runs::{Inputs, RunOutput, RunSet};
use crate::{Error, Member, Outcome};

/// The runs of a job at its node: input runs to be used, and an output run to be made once.
pub(crate) struct RunPart<M: Machine> {
    pub(crate) inputs: Inputs<M>,
    pub(crate) member: Member<M>,
    file: File<M>,
    /// What has been made, once it has been.
    output: RefCell<Option<RunOutput<M>>>,
}

impl<M: Machine> RunPart<M> {
    pub(crate) async fn prepare(set: &RunSet, member: Member<M>) -> Result<Self, Error> {
        let inputs = Inputs::open(set, &member).await?;
        let file = member.open(&set.output).await?;
        Ok(RunPart { inputs, member, file, output: RefCell::default() })
    }

    /// The output, of which the time begins now.
    pub(crate) fn begin(&self, set: &RunSet) -> RunOutput<M> {
        RunOutput::new(self.file.clone(), set, &self.member)
    }

    /// Ends the output, of which nothing more is made, and tells what was done.
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
