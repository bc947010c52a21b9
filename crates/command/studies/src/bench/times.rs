//! Where the time of a run goes.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::time::{ClockId, clock_gettime};

use crate::bench::processes::Agents;

/// What a run of a program took, in the words of the thesis.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// From opening the file to having closed it.
    pub elapsed: Duration,
    /// The processor's in this process: program, library, and its node thread.
    pub user: Duration,
    /// The processor's in the kernel for this process.
    pub system: Duration,
    /// The processor's for other processes: agents, or the senders of a bare stripe.
    pub others: Duration,
}

impl Times {
    /// The elapsed time in which the processor did not work for this process.
    pub fn waiting(&self) -> Duration {
        self.elapsed.saturating_sub(self.user + self.system)
    }

    /// The processor's time for all of it.
    pub fn processor(&self) -> Duration {
        self.user + self.system + self.others
    }
}

/// What `work` takes of this process and, if there are any, of the agents.
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
    /// All of it.
    pub fn sum(&self) -> Duration {
        self.0[0] + self.0[1]
    }
}

/// What processors have worked for these so far.
pub fn processor(who: UsageWho) -> ProcessorTimes {
    // It cannot fail for these.
    let usage = getrusage(who).ok();
    ProcessorTimes(
        usage.map_or_else(Default::default, |usage| {
            [duration(usage.user_time()), duration(usage.system_time())]
        }),
    )
}

/// What processors have worked for this thread so far.
pub fn thread_worked() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

fn duration(time: TimeVal) -> Duration {
    Duration::new(time.tv_sec().unsigned_abs(), time.tv_usec().unsigned_abs() as u32 * 1000)
}
