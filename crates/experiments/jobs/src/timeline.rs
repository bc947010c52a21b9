//! Timeline of a job that reads runs and writes a run with write-behind: its pending writes, and its waits.

use machine::Duration;

/// Timeline of one job. Times count from the start of the job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobTimeline {
    /// Starts and completions of writes, in order of time.
    pub writes: Vec<WriteStep>,
    /// Waits and their causes, in order of time.
    pub waits: Vec<JobWait>,
}

/// Start or completion of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteStep {
    /// Time of the step.
    pub at: Duration,
    /// Number of blocks of the write.
    pub blocks: u64,
    /// True if the write is complete, false if it starts.
    pub is_done: bool,
}

/// A period in which a job was blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobWait {
    /// Begin of the wait.
    pub begin: Duration,
    /// End of the wait.
    pub end: Duration,
    /// Cause of the wait.
    pub cause: WaitCause,
}

/// Cause of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitCause {
    /// The next block of the input run of this number has not arrived.
    Input(usize),
    /// The job's portion of the buffers is full, until a write completes.
    Room,
    /// All blocks were used, and the last writes are not complete.
    Writes,
}

/// Writes that have started and are not complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PendingWrites {
    /// Number of writes.
    pub writes: u64,
    /// Number of their blocks.
    pub blocks: u64,
}

impl JobTimeline {
    /// Iterates over the pending writes after each step.
    pub fn pending(&self) -> impl Iterator<Item = (Duration, PendingWrites)> {
        let add = |pending: &mut PendingWrites, step: &WriteStep| {
            if step.is_done {
                pending.writes -= 1;
                pending.blocks -= step.blocks;
            } else {
                pending.writes += 1;
                pending.blocks += step.blocks;
            }
            Some((step.at, *pending))
        };
        self.writes.iter().scan(PendingWrites::default(), add)
    }

    /// Returns the maximum number of pending writes.
    pub fn pending_most(&self) -> PendingWrites {
        self.pending().map(|(_, pending)| pending).max().unwrap_or_default()
    }

    /// Returns the number of blocks of all writes that had started by this time.
    pub fn started_by(&self, time: Duration) -> u64 {
        let started = self.writes.iter().take_while(|step| step.at <= time).filter(|step| !step.is_done);
        started.map(|step| step.blocks).sum()
    }

    /// Returns the total duration of all waits whose cause `is_meant` selects.
    pub fn waited(&self, is_meant: impl Fn(WaitCause) -> bool) -> Duration {
        let meant = self.waits.iter().filter(|wait| is_meant(wait.cause));
        meant.fold(Duration::ZERO, |sum, wait| sum + (wait.end - wait.begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_writes_are_those_started_and_not_done() {
        let step = |at, blocks, is_done| WriteStep { at: Duration::from_millis(at), blocks, is_done };
        let timeline = JobTimeline {
            writes: vec![step(1, 40, false), step(2, 40, false), step(5, 40, true), step(6, 3, false)],
            waits: Vec::new(),
        };
        let pending: Vec<(u64, u64)> =
            timeline.pending().map(|(_, pending)| (pending.writes, pending.blocks)).collect();
        assert_eq!(pending, [(1, 40), (2, 80), (1, 40), (2, 43)]);
        assert_eq!(timeline.pending_most(), PendingWrites { writes: 2, blocks: 80 });
        assert_eq!(timeline.started_by(Duration::from_millis(4)), 80);
    }
}
