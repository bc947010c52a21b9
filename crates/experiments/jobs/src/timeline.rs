//! When a job that reads runs and writes behind did what: how far ahead of its disk it was, and what it waited for.

use machine::Duration;

/// What one job did when. Times are since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobTimeline {
    /// Its writes, each twice: when it was started and when its disk had it; in order of time.
    pub writes: Vec<WriteStep>,
    /// When it waited, and what for; in order of time.
    pub waits: Vec<JobWait>,
}

/// A write is started, or its disk has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteStep {
    /// When.
    pub at: Duration,
    /// The blocks of the write.
    pub blocks: u64,
    /// Whether it is done.
    pub is_done: bool,
}

/// A stretch of time in which a job could not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobWait {
    /// From when.
    pub begin: Duration,
    /// Until when.
    pub end: Duration,
    /// What it waited for.
    pub cause: WaitCause,
}

/// What a job waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitCause {
    /// A block of the input run of this number.
    Input(usize),
    /// Room in its portion of the buffers: a write of its own has to be done.
    Room,
    /// The rest of its writes, when all blocks are used.
    Writes,
}

/// Writes that are started and not done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PendingWrites {
    /// How many.
    pub writes: u64,
    /// Their blocks.
    pub blocks: u64,
}

impl JobTimeline {
    /// The pending writes from each step on.
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

    /// The most writes that were pending at once.
    pub fn pending_most(&self) -> PendingWrites {
        self.pending().map(|(_, pending)| pending).max().unwrap_or_default()
    }

    /// How many blocks had been handed to writes by this time.
    pub fn started_by(&self, time: Duration) -> u64 {
        let started = self.writes.iter().take_while(|step| step.at <= time).filter(|step| !step.is_done);
        started.map(|step| step.blocks).sum()
    }

    /// How long it waited for each of these causes.
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
