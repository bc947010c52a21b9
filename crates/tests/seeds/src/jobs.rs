//! Schedules whose clients write the shared files through the write cache of a job.
//!
//! One schedule in four has a job. Half of the operations of its members are then small writes, flushes and departures,
//! and some more faults come during them.

use crate::draw::Draw;
use crate::job_settings::JobSettings;
use crate::schedule::{BYTES, ClientOperation, Fault, FileTarget, SHARED, Schedule, TimedFault, drawn_time};

/// Interval of the seeds with a job, and the first of them. Schedules with a focus have no job.
const EVERY: u64 = 4;
const FIRST: u64 = 3;

impl Schedule {
    /// Lets some clients join a job if the seed is one of those with a job.
    pub(crate) fn add_job(&mut self, draw: &mut Draw) {
        if self.seed % EVERY != FIRST {
            return;
        }
        let job = JobSettings::drawn(draw, self.clients.len() as u64);
        self.job = Some(job);
        let most_bytes = draw.one_of(&[16, 100, 700]);
        for operation in self.clients.iter_mut().take(job.members as usize).flatten() {
            if !matches!(operation, ClientOperation::Together(_)) && draw.below(2) == 0 {
                *operation = drawn_operation(draw, most_bytes);
            }
        }
        if draw.below(2) == 0 {
            return;
        }
        let (io_nodes, clients) = (self.io_nodes.into(), self.clients.len() as u64);
        for _ in 0..1 + draw.below(3) {
            let client = draw.below(job.members) as usize;
            let operation = draw.below(self.clients[client].len() as u64) as usize;
            let kind = draw.below(Fault::KINDS);
            let (at, fault) = (drawn_time(draw, 16), Fault::drawn(kind, draw, io_nodes, clients));
            self.faults.push(TimedFault { during: Some((client, operation)), at, fault });
        }
    }
}

/// Draws an operation of a member. Many writes are small and close together, so that they overlap.
fn drawn_operation(draw: &mut Draw, most_bytes: u64) -> ClientOperation {
    let file = draw.below(SHARED);
    let target = FileTarget::Shared(file);
    let offset = draw.below(BYTES);
    match draw.below(16) {
        0..=8 => ClientOperation::Write(target, offset, 1 + draw.below(most_bytes)),
        9 => ClientOperation::Write(target, offset, 1 + draw.below(BYTES)),
        10 => ClientOperation::Append(target, 1 + draw.below(most_bytes)),
        11 => ClientOperation::Read(target, 0, 4 * BYTES, draw.below(2) == 0),
        12 => ClientOperation::FlushJob(Some(file)),
        13 => ClientOperation::FlushJob(None),
        14 => ClientOperation::Sync(target),
        _ => ClientOperation::LeaveJob,
    }
}
