//! Common parts of links: transfer times, times of a message, and arguments for recorders.

use machine::Duration;

/// Time when a message has left its source, and time when all of it has arrived at its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageTiming {
    pub(crate) departure: u64,
    pub(crate) arrival: u64,
}

/// Rate of a link.
#[derive(Clone, Copy)]
pub(crate) struct LinkRate {
    pub(crate) bytes_per_second: u64,
}

impl LinkRate {
    pub(crate) fn time(self, bytes: u64) -> u64 {
        match bytes.checked_mul(1_000_000_000) {
            Some(scaled) => scaled.div_ceil(self.bytes_per_second),
            None => Duration::of_transfer(bytes, self.bytes_per_second).as_nanos(),
        }
    }
}

/// Name of slices on links.
pub(crate) const MESSAGE: &str = "message";

/// Returns the arguments recorded for a message on a link.
pub(crate) fn message_arguments(source: usize, target: usize, bytes: u64) -> [(&'static str, u64); 3] {
    [("from_node", source as u64), ("to_node", target as u64), ("bytes", bytes)]
}
