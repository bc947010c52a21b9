//! Many runs, on all processors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::Kind;

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
    failed: Mutex<Vec<Failed>>,
}

/// Failed run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Its kind.
    pub kind: Kind,
    /// Its seed.
    pub seed: u64,
    /// Reason of the failure.
    pub why: String,
}

/// Numbers of completed runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Number of runs that passed.
    pub passed: u64,
    /// Number of runs that failed.
    pub failed: u64,
}

impl Failed {
    /// Returns the command that repeats the run.
    pub fn command(&self) -> String {
        format!("cargo run -p seeds -- {} --from {} --count 1", self.kind, self.seed)
    }
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
            failed: Mutex::new(Vec::new()),
        }
    }

    /// Runs all seeds on `threads` threads with `run`, until all are done, one has failed or the sweep is
    /// [stopped](Self::stop). Completes the runs in flight.
    pub fn run(&self, threads: usize, run: impl Fn(Kind, u64) -> Result<(), String> + Sync) {
        let work = || {
            while let Some((kind, seed)) = self.next() {
                match run(kind, seed) {
                    Ok(()) => _ = self.passed.fetch_add(1, Ordering::Relaxed),
                    Err(why) => self.fail(Failed { kind, seed, why }),
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

    fn fail(&self, failed: Failed) {
        self.failed.lock().expect("nobody panics with it").push(failed);
        self.stop();
    }

    /// Stops before any further run.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns the numbers of completed runs so far.
    pub fn counts(&self) -> Counts {
        let failed = self.failed.lock().expect("nobody panics with it").len() as u64;
        Counts { passed: self.passed.load(Ordering::Relaxed), failed }
    }

    /// Returns the failed runs so far. There may be several, because each thread may have had one in flight.
    pub fn failed(&self) -> Vec<Failed> {
        self.failed.lock().expect("nobody panics with it").clone()
    }
}
