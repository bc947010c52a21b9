//! Many runs, on all processors. Failures are grouped, and the sweep continues.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::{BrokenLaw, Kind};

/// Maximum number of failed runs kept of each group.
const KEPT_MAX: usize = 5;

/// Sweep over seeds, each run in every given kind, with its progress.
pub struct Sweep {
    kinds: Vec<Kind>,
    from: u64,
    /// Number of seeds; `None` for an endless sweep.
    count: Option<u64>,
    /// Number of runs begun: all kinds of one seed, then those of the next.
    begun: AtomicU64,
    passed: AtomicU64,
    stopped: AtomicBool,
    groups: Mutex<BTreeMap<FailureGroup, Failures>>,
}

/// Group of failures: the kind of their runs and the broken law.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailureGroup {
    /// Kind of the runs.
    pub kind: Kind,
    /// Name of the law, or place of a panic.
    pub law: String,
}

/// Failed runs of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Number of failed runs.
    pub count: u64,
    /// Some of them: their seeds, and the reasons.
    pub kept: Vec<(u64, String)>,
}

/// Numbers of completed runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Number of runs that passed.
    pub passed: u64,
    /// Number of runs that failed.
    pub failed: u64,
}

impl Sweep {
    /// Returns a sweep over these kinds with `count` seeds, or all seeds, from `from` on.
    pub fn new(kinds: &[Kind], from: u64, count: Option<u64>) -> Self {
        Sweep {
            kinds: kinds.to_vec(),
            from,
            count,
            begun: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            groups: Mutex::default(),
        }
    }

    /// Runs all seeds on `threads` threads with `run`, until all are done or the sweep is [stopped](Self::stop).
    /// Completes the runs in flight.
    pub fn run(&self, threads: usize, run: impl Fn(Kind, u64) -> Result<(), BrokenLaw> + Sync) {
        let work = || {
            while let Some((kind, seed)) = self.next() {
                match run(kind, seed) {
                    Ok(()) => _ = self.passed.fetch_add(1, Ordering::Relaxed),
                    Err(broken) => self.note(kind, seed, broken),
                }
            }
        };
        thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(work)));
    }

    fn next(&self) -> Option<(Kind, u64)> {
        if self.stopped.load(Ordering::Relaxed) {
            return None;
        }
        let kinds = self.kinds.len() as u64;
        let index = self.begun.fetch_add(1, Ordering::Relaxed);
        let is_left = self.count.is_none_or(|count| index / kinds < count);
        is_left.then(|| (self.kinds[(index % kinds) as usize], self.from.wrapping_add(index / kinds)))
    }

    fn note(&self, kind: Kind, seed: u64, BrokenLaw { law, why }: BrokenLaw) {
        let mut groups = self.groups.lock().expect("no holder panics");
        let failures = groups.entry(FailureGroup { kind, law }).or_default();
        failures.count += 1;
        failures.kept.push((seed, why));
        // The lowest seeds are kept, whichever thread was first.
        failures.kept.sort();
        failures.kept.truncate(KEPT_MAX);
    }

    /// Stops before any further run.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns the numbers of completed runs so far.
    pub fn counts(&self) -> Counts {
        let failed = self.groups.lock().expect("no holder panics").values().map(|group| group.count).sum();
        Counts { passed: self.passed.load(Ordering::Relaxed), failed }
    }

    /// Returns the failures so far, by group.
    pub fn failures(&self) -> BTreeMap<FailureGroup, Failures> {
        self.groups.lock().expect("no holder panics").clone()
    }
}
