//! Kinds of runs, and the code to run one.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use clap::ValueEnum;
use promises::{cached_operations_of_a_seed, operations_of_a_seed, requests_of_a_seed};

use crate::coverage::{Hit, RunCoverage};
use crate::run::{BrokenLaw, observe};
use crate::schedule::Schedule;
use crate::testbed::drawn_testbed;

/// Kind of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Kind {
    /// Several clients work on several files, independently, concurrently and in groups; compared with files in memory.
    Operations,
    /// The same through page caches.
    Cached,
    /// Requests that are valid individually and inconsistent together; each must be answered.
    Requests,
    /// Programs of clients of a namespace, with faults of all parts; see [`Schedule`].
    Schedules,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 4] = [Kind::Operations, Kind::Cached, Kind::Requests, Kind::Schedules];

    /// Runs a seed.
    ///
    /// # Errors
    /// If the run fails, with the place in the code if an assertion failed.
    pub fn run(self, seed: u64) -> Result<(), BrokenLaw> {
        self.run_covered(seed).0
    }

    /// Runs a seed as [`run`](Self::run) does, and also returns its coverage. After a panic, only the marks are known.
    pub fn run_covered(self, seed: u64) -> (Result<(), BrokenLaw>, RunCoverage) {
        let mut coverage = RunCoverage::default();
        machine::marks::take();
        let outcome = errors_of_panics(|| match self {
            Kind::Operations => {
                operations_of_a_seed(&drawn_testbed(seed), seed);
                Ok(())
            }
            Kind::Cached => {
                cached_operations_of_a_seed(&drawn_testbed(seed), seed);
                Ok(())
            }
            Kind::Requests => {
                requests_of_a_seed(&drawn_testbed(seed), seed);
                Ok(())
            }
            Kind::Schedules => {
                let observed = observe(&Schedule::drawn(seed), None);
                coverage = observed.coverage;
                observed.outcome
            }
        });
        coverage.hits.extend(machine::marks::take().into_iter().map(Hit::Mark));
        (outcome, coverage)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Operations => "operations",
            Kind::Cached => "cached",
            Kind::Requests => "requests",
            Kind::Schedules => "schedules",
        })
    }
}

thread_local! {
    /// Places of panics in the run of this thread, during a run.
    static PLACES: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Runs `work` and converts a panic to an error with its place, without a message on the terminal.
///
/// # Errors
/// That of `work`, or its panic.
pub fn errors_of_panics(work: impl FnOnce() -> Result<(), BrokenLaw>) -> Result<(), BrokenLaw> {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let place = panic.location().map_or("nowhere".into(), ToString::to_string);
            let is_first = PLACES.with_borrow_mut(|places| {
                places
                    .as_mut()
                    .map(|places| places.push(place))
                    .is_some_and(|()| places.as_ref().is_some_and(|places| places.len() == 1))
            });
            // A panic while another unwinds ends the process: then this is the only output.
            if !is_first {
                before(panic);
            }
        }));
    });
    PLACES.set(Some(Vec::new()));
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    let places = PLACES.take().unwrap_or_default();
    outcome.unwrap_or_else(|panic| {
        let place = places.first().map_or("nowhere", String::as_str);
        Err(BrokenLaw { law: format!("panic at {place}"), why: message_of(&*panic).to_owned() })
    })
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "a panic without a message",
    }
}
