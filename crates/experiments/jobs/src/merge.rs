//! An external merge: a job uses the blocks of its input runs in an order that depends on the data, and writes an
//! output run with write-behind. This job draws the order at random.
//!
//! ```text
//!   request the first batch of every run
//!   until all runs are used up:
//!     choose a run with blocks left, each equally likely           random block depletion
//!     wait for its next block; use it: a block of output
//!     if the block was the first of its batch, request the next one     waiting while the portion is full
//!     if b_w blocks of output are ready, start to write them
//!   write the rest; wait for all writes
//! ```
//!
//! Source: Sinclair, Tang & Varman, "Placement-related problems in shared disk I/O" (Kluwer 1996), sections 2 and 2.1.
//! The job waits only for disks, so it runs at the speed of the disks if no other job uses them.

use std::fmt;

use machine::{Duration, Machine, mix};

use crate::run_part::RunPart;
use crate::runs::{RunOutput, RunSet};
use crate::timeline::WaitCause;
use crate::{Error, Member, Outcome};

/// An external merge of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeJob {
    /// Runs of the merge.
    pub runs: RunSet,
    /// Event at which the merge requests the next batch.
    pub reading: BatchReading,
    /// Computation time for each block. Reads and writes continue during the computation.
    pub work: Duration,
    /// Maximum memory in blocks; `None` for no limit. It holds blocks that were requested and not yet used, and output
    /// blocks that were not yet written.
    pub portion: Option<u64>,
}

/// Event at which a merge requests the next batch of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchReading {
    /// Use of the first block of the previous batch (intra-run prefetching).
    Prefetched,
    /// Use of the last block of the previous batch.
    OnDemand,
}

impl MergeJob {
    /// Returns the minimum portion without deadlock, in blocks: all batches that the job can hold, the write that is
    /// being collected, and one batch to request.
    pub fn portion_least(runs: usize, read_blocks: u64, write_blocks: u64, reading: BatchReading) -> u64 {
        let batches = match reading {
            BatchReading::Prefetched => 2,
            BatchReading::OnDemand => 1,
        };
        runs as u64 * batches * read_blocks + write_blocks + read_blocks
    }

    pub(crate) fn check(&self, members: u32) -> Result<(), Error> {
        self.runs.check(members)?;
        let RunSet { inputs, read_blocks, write_blocks, .. } = &self.runs;
        let least = Self::portion_least(inputs.len(), *read_blocks, *write_blocks, self.reading);
        match self.portion {
            Some(portion) if portion < least => Err(Error::Invalid(format!(
                "a merge of {} runs with a portion of {portion} blocks may wait forever; expected at least \
                 {least}",
                inputs.len()
            ))),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for MergeJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "merging {} runs to {}", self.runs.inputs.len(), self.runs.output)
    }
}

/// Part of the member in the job.
pub struct MergePart<M: Machine> {
    job: MergeJob,
    part: RunPart<M>,
}

impl<M: Machine> MergePart<M> {
    pub(crate) async fn prepare(job: &MergeJob, member: Member<M>) -> Result<Self, Error> {
        Ok(MergePart { job: job.clone(), part: RunPart::prepare(&job.runs, member).await? })
    }

    pub(crate) async fn run(&self) -> Result<Outcome, Error> {
        let output = self.part.begin(&self.job.runs);
        (0..self.part.inputs.count()).for_each(|run| self.part.inputs.ask(run));
        let mut depletion = Depletion::new(self.part.member.draws(), self.part.inputs.count());
        while let Some(run) = depletion.next() {
            self.use_block(run, &output).await?;
            if self.part.inputs.is_used_up(run) {
                depletion.end(run);
            }
        }
        self.part.finish(output).await
    }

    /// Uses the next block of a run.
    async fn use_block(&self, run: usize, output: &RunOutput<M>) -> Result<(), Error> {
        if !self.part.inputs.has_next(run) {
            output.note_wait(WaitCause::Input(run), self.part.inputs.wait_for(run)).await?;
        }
        let (block, data) = self.part.inputs.take(run);
        if !self.job.work.is_zero() {
            let machine = &self.part.member.machine;
            machine.sleep_until(machine.now() + self.job.work).await;
        }
        output.make(block, &data);
        let read_blocks = self.job.runs.read_blocks;
        let asks = match self.job.reading {
            BatchReading::Prefetched => block % read_blocks == 0,
            BatchReading::OnDemand => (block + 1) % read_blocks == 0,
        };
        if asks && self.part.inputs.next_batch(run) > 0 {
            self.wait_for_room(self.part.inputs.next_batch(run), output).await?;
            self.part.inputs.ask(run);
        }
        output.write_if_full();
        Ok(())
    }

    /// Waits until the portion has space for a batch.
    async fn wait_for_room(&self, batch: u64, output: &RunOutput<M>) -> Result<(), Error> {
        let Some(portion) = self.job.portion else { return Ok(()) };
        let is_full = || self.part.inputs.held() + output.unwritten() + batch > portion;
        if !is_full() {
            return Ok(());
        }
        output
            .note_wait(WaitCause::Room, async {
                while is_full() {
                    output.wait_for_write().await?;
                }
                Ok(())
            })
            .await
    }

    pub(crate) async fn check(&self) -> Result<(), Error> {
        self.part.check().await
    }
}

/// Random choice of the run whose block is used next. Each run that has blocks left is equally likely.
struct Depletion {
    key: u64,
    drawn: u64,
    left: Vec<usize>,
}

impl Depletion {
    fn new(key: u64, runs: usize) -> Self {
        Depletion { key, drawn: 0, left: (0..runs).collect() }
    }

    fn next(&mut self) -> Option<usize> {
        let draw = mix(self.key ^ mix(self.drawn));
        self.drawn += 1;
        let index = (u128::from(draw) * self.left.len() as u128) >> u64::BITS;
        self.left.get(index as usize).copied()
    }

    /// Removes a run that has no blocks left.
    fn end(&mut self, run: usize) {
        self.left.retain(|left| *left != run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;

    #[test]
    fn runs_are_drawn_equally_often_and_never_after_their_end() {
        let (mut depletion, mut counts) = (Depletion::new(7, 20), [0; 20]);
        (0..20_000).for_each(|_| counts[depletion.next().expect("runs are left")] += 1);
        // Four standard deviations of a binomial count with mean 1000.
        assert!(counts.iter().all(|count| (875..1125).contains(count)), "{counts:?}");
        for run in (0..20).filter(|run| *run != 3) {
            depletion.end(run);
        }
        assert!((0..50).all(|_| depletion.next() == Some(3)));
        depletion.end(3);
        assert_eq!(depletion.next(), None);
        let first = |key| -> Vec<_> {
            let mut depletion = Depletion::new(key, 20);
            (0..50).map(|_| depletion.next()).collect()
        };
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }

    #[test]
    fn invalid_merges_are_rejected_with_the_reason() {
        let run = |blocks| Run { file: "run".into(), blocks };
        let job = |read_blocks, write_blocks, portion| MergeJob {
            runs: RunSet {
                inputs: vec![run(1000); 20],
                output: "output".into(),
                block_bytes: 4096,
                read_blocks,
                write_blocks,
            },
            reading: BatchReading::Prefetched,
            work: Duration::ZERO,
            portion,
        };
        let why = |job: MergeJob| job.check(1).expect_err("refused").to_string();
        assert!(job(12, 40, Some(532)).check(1).is_ok());
        assert!(why(job(12, 40, Some(531))).contains("expected at least 532"));
        assert!(why(job(0, 40, None)).contains("0 blocks are read at once"));
        assert!(why(job(12, 0, None)).contains("0 blocks are written at once"));
        assert!(job(12, 40, None).check(2).is_err());
        let mut none = job(12, 40, None);
        none.runs.inputs.clear();
        assert!(why(none).contains("at least one input run"));
    }
}
