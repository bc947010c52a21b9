//! Elapsed time and processor times of a run.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::time::{ClockId, clock_gettime};

use crate::bench::processes::Agents;

/// Times of a run of a program, in the terms of the thesis.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Time from opening the file until it is closed.
    pub elapsed: Duration,
    /// Processor time in this process: program, library, and its node thread.
    pub user: Duration,
    /// Processor time in the kernel for this process.
    pub system: Duration,
    /// Processor time of other processes: agents, or the senders of a bare stripe.
    pub others: Duration,
}

impl Times {
    /// Returns the part of the elapsed time in which no processor worked for this process.
    pub fn waiting(&self) -> Duration {
        self.elapsed.saturating_sub(self.user + self.system)
    }

    /// Returns the total processor time.
    pub fn processor(&self) -> Duration {
        self.user + self.system + self.others
    }
}

/// Measures the times that `work` takes: of this process, and of `agents`, or else of child processes.
pub fn measure<T>(agents: Option<&Agents>, work: impl FnOnce() -> T) -> (T, Times) {
    let others = || agents.map_or_else(|| processor(UsageWho::RUSAGE_CHILDREN).sum(), Agents::processor_time);
    let (before, others_before, start) = (processor(UsageWho::RUSAGE_SELF), others(), Instant::now());
    let outcome = work();
    let (elapsed, after) = (start.elapsed(), processor(UsageWho::RUSAGE_SELF));
    let [user, system] = [0, 1].map(|index| after.0[index].saturating_sub(before.0[index]));
    (outcome, Times { elapsed, user, system, others: others().saturating_sub(others_before) })
}

/// User and system time.
pub struct ProcessorTimes([Duration; 2]);

impl ProcessorTimes {
    /// Returns the sum of user and system time.
    pub fn sum(&self) -> Duration {
        self.0[0] + self.0[1]
    }
}

/// Returns the processor times of these processes so far.
pub fn processor(who: UsageWho) -> ProcessorTimes {
    // The call cannot fail for these arguments.
    let usage = getrusage(who).ok();
    ProcessorTimes(
        usage.map_or_else(Default::default, |usage| {
            [duration(usage.user_time()), duration(usage.system_time())]
        }),
    )
}

/// Returns the processor time of this thread so far.
pub fn thread_worked() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

fn duration(time: TimeVal) -> Duration {
    Duration::new(time.tv_sec().unsigned_abs(), time.tv_usec().unsigned_abs() as u32 * 1000)
}
