//! Times of the program's threads, converted to the clock of the node.

use std::time::Instant;

use machine::{Duration, Machine};

/// Corresponding times of the program's threads and of the node.
#[derive(Clone, Copy)]
pub(crate) struct ThreadClock {
    of_threads: Instant,
    of_node: machine::Instant,
}

impl ThreadClock {
    /// Reads both clocks. Neither clock is ever set, so one comparison suffices.
    pub(crate) fn compare(machine: &impl Machine) -> Self {
        ThreadClock { of_threads: Instant::now(), of_node: machine.now() }
    }

    /// Converts a time to the node's clock. A time before the comparison becomes the time of the comparison.
    pub(crate) fn at(self, time: Instant) -> machine::Instant {
        let later = time.saturating_duration_since(self.of_threads);
        self.of_node + Duration::from_nanos(later.as_nanos() as u64)
    }
}
