//! Many runs, on all processors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::Kind;

/// Seeds that are to be run, each in every one of some kinds, and how far that has come.
pub struct Sweep {
    kinds: Vec<Kind>,
    from: u64,
    /// How many seeds; none for no end.
    count: Option<u64>,
    /// Runs begun. Of each seed one of each kind, and then of the next.
    begun: AtomicU64,
    passed: AtomicU64,
    stopped: AtomicBool,
    failed: Mutex<Vec<Failed>>,
}

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Of which kind it was.
    pub kind: Kind,
    /// Its seed.
    pub seed: u64,
    /// What went wrong.
    pub why: String,
}

/// How many runs have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Those in which all was well.
    pub passed: u64,
    /// The others.
    pub failed: u64,
}

impl Failed {
    /// The command that repeats it.
    pub fn command(&self) -> String {
        format!("cargo run -p seeds -- {} --from {} --count 1", self.kind, self.seed)
    }
}

impl Sweep {
    /// These kinds, with `count` seeds, or all that there are, from `from` on.
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

    /// Runs them on so many threads with `run`, until all are done, one has failed or it is [stopped](Self::stop). What
    /// has been begun is finished.
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

    /// Begins no further run.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// How many have ended so far.
    pub fn counts(&self) -> Counts {
        let failed = self.failed.lock().expect("nobody panics with it").len() as u64;
        Counts { passed: self.passed.load(Ordering::Relaxed), failed }
    }

    /// Those that have failed so far: of several threads, each may have had one under way.
    pub fn failed(&self) -> Vec<Failed> {
        self.failed.lock().expect("nobody panics with it").clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_is_run_once_in_every_kind() {
        let sweep = Sweep::new(&[Kind::Crashes, Kind::Cached], 10, Some(5));
        let runs = Mutex::new(Vec::new());
        sweep.run(3, |kind, seed| {
            runs.lock().unwrap().push((kind.to_string(), seed));
            Ok(())
        });
        let mut runs = runs.into_inner().unwrap();
        runs.sort();
        let expected = ["cached", "crashes"].into_iter();
        let expected: Vec<_> =
            expected.flat_map(|kind| (10..15).map(move |seed| (kind.to_owned(), seed))).collect();
        assert_eq!(runs, expected);
        assert_eq!(sweep.counts(), Counts { passed: 10, failed: 0 });
    }

    #[test]
    fn a_failure_ends_an_endless_sweep_and_is_told_with_the_command_that_repeats_it() {
        let sweep = Sweep::new(&Kind::ALL, 0, None);
        let fails = |kind, seed| kind == Kind::Requests && seed == 7;
        sweep.run(1, |kind, seed| if fails(kind, seed) { Err("lost".into()) } else { Ok(()) });
        let failed = sweep.failed();
        assert_eq!(failed, [Failed { kind: Kind::Requests, seed: 7, why: "lost".into() }]);
        assert_eq!(failed[0].command(), "cargo run -p seeds -- requests --from 7 --count 1");
        let before = Kind::ALL.iter().take_while(|kind| **kind != Kind::Requests).count();
        let passed = (7 * Kind::ALL.len() + before) as u64;
        assert_eq!(sweep.counts(), Counts { passed, failed: 1 });
    }

    #[test]
    fn a_sweep_that_is_stopped_begins_nothing() {
        let sweep = Sweep::new(&[Kind::Crashes], 0, None);
        sweep.run(2, |_, seed| {
            if seed == 20 {
                sweep.stop();
            }
            Ok(())
        });
        assert!((20..30).contains(&sweep.counts().passed), "{:?}", sweep.counts());
    }
}
