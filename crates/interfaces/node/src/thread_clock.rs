//! Times of the program's threads, on the clock of the node.

use std::time::Instant;

use machine::{Duration, Machine};

/// The clock of the program's threads, beside that of the node.
#[derive(Clone, Copy)]
pub(crate) struct ThreadClock {
    of_threads: Instant,
    of_node: machine::Instant,
}

impl ThreadClock {
    /// What both show now. Neither of them is ever set, so this is asked once.
    pub(crate) fn compare(machine: &impl Machine) -> Self {
        ThreadClock { of_threads: Instant::now(), of_node: machine.now() }
    }

    /// What the node's clock shows at a time; the time of the comparison if it was before that.
    pub(crate) fn at(self, time: Instant) -> machine::Instant {
        let later = time.saturating_duration_since(self.of_threads);
        self.of_node + Duration::from_nanos(later.as_nanos() as u64)
    }
}
