//! Running counters of a mount, on the node thread.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use fs::TimeHistogram;
use fuser::Errno;

/// Counters on the node thread.
#[derive(Default)]
pub(crate) struct MountCounters {
    pub(crate) requests: RefCell<BTreeMap<&'static str, TimeHistogram>>,
    /// Number of requests that failed, by error number.
    pub(crate) failures: RefCell<BTreeMap<i32, u64>>,
    pub(crate) read_bytes: Cell<u64>,
    pub(crate) written_bytes: Cell<u64>,
}

impl MountCounters {
    /// Counts an answered request, with the time that the answer took.
    pub(crate) fn count(&self, operation: &'static str, took: Duration, failure: Option<Errno>) {
        let took = machine::Duration::from_nanos(took.as_nanos() as u64);
        self.requests.borrow_mut().entry(operation).or_default().add(took);
        if let Some(errno) = failure {
            *self.failures.borrow_mut().entry(errno.code()).or_default() += 1;
        }
    }
}

/// Adds to a counter.
pub(crate) fn add(count: &Cell<u64>, bytes: u64) {
    count.set(count.get() + bytes);
}
