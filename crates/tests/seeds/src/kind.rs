//! The kinds of runs, and what it takes to run one.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use clap::ValueEnum;
use promises::{cached_operations_of_a_seed, operations_of_a_seed, requests_of_a_seed};

use crate::crashes;
use crate::testbed::drawn_testbed;
use crate::trees;

/// What is done in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Several clients work on several files, alone, side by side and in groups; compared with files in memory.
    Operations,
    /// The same through page caches.
    Cached,
    /// Requests that make sense alone and not together; each is to be answered.
    Requests,
    /// Clients and I/O nodes crash, and I/O nodes are started anew; what is called whole is to be whole.
    Crashes,
    /// Clients of a namespace, with crashes of its keeper and of others; names are those before or after each
    /// operation.
    Trees,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] = [Kind::Operations, Kind::Cached, Kind::Requests, Kind::Crashes, Kind::Trees];

    /// Runs a seed.
    ///
    /// # Errors
    /// What went wrong, with the place in the code if an assertion did not hold.
    pub fn run(self, seed: u64) -> Result<(), String> {
        told_by_panics(|| match self {
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
            Kind::Crashes => crashes::run(seed),
            Kind::Trees => trees::run(seed),
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Operations => "operations",
            Kind::Cached => "cached",
            Kind::Requests => "requests",
            Kind::Crashes => "crashes",
            Kind::Trees => "trees",
        })
    }
}

thread_local! {
    /// Where the run of this thread has panicked, as long as there is a run.
    static PLACES: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Runs `work`, in which a panic is an error that says where it was, and not a message on the terminal.
///
/// # Errors
/// That of `work`, or what it has panicked with.
pub fn told_by_panics(work: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
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
        Err(format!("{} ({place})", message_of(&*panic)))
    })
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "a panic without a message",
    }
}
