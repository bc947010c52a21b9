//! Clock of a node: the system's monotonic clock, counted from the start of the node.

use machine::Instant;

/// Returns and waits for the time of a node.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    start: std::time::Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Clock { start: std::time::Instant::now() }
    }

    pub(crate) fn now(self) -> Instant {
        Instant::START + self.start.elapsed().into()
    }

    /// Waits until `deadline`. Wakes late by the delay of the system's timers, but never early.
    pub(crate) async fn sleep_until(self, deadline: Instant) {
        let deadline = self.start + deadline.since(Instant::START).into();
        while std::time::Instant::now() < deadline {
            compio::time::sleep_until(deadline).await;
        }
    }
}
