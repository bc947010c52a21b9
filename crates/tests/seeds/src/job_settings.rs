//! Settings of a job: its members among the clients of a schedule, and their write caches.

use fs::{Division, WriteCacheSettings};
use machine::Duration;
use serde::{Deserialize, Serialize};

use crate::draw::Draw;

/// Job of some clients, who write the shared files through its write cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSettings {
    /// Number of members: the first clients.
    pub members: u64,
    /// Memory of the write cache of each member, in bytes.
    pub bytes: u64,
    /// Percentage of the memory for the directory; `None` for a shared memory.
    pub directory: Option<u64>,
    /// Percentage of a log at which it is flushed in the background; `None` for a single log.
    pub background: Option<u64>,
    /// Time in microseconds after which a write is flushed; 0 for no limit.
    pub flush_after: u64,
    /// True if the pieces of a member for a block are sent together.
    pub queued: bool,
}

impl JobSettings {
    /// Draws the settings of a job of some of the clients.
    pub(crate) fn drawn(draw: &mut Draw, clients: u64) -> JobSettings {
        let some = 1 + draw.below(clients);
        JobSettings {
            members: draw.one_of(&[clients, clients, some]),
            bytes: draw.one_of(&[4096, 4096, 8192, 16384]),
            directory: draw.one_of(&[None, Some(10), Some(50)]),
            background: draw.one_of(&[None, Some(50), Some(100)]),
            flush_after: draw.one_of(&[0, 0, 5_000, 1_000_000]),
            queued: draw.below(2) == 0,
        }
    }

    /// Changes all settings to the simplest ones.
    pub(crate) fn simplify(&mut self) {
        *self = JobSettings { directory: None, background: None, flush_after: 0, queued: true, ..*self };
    }

    /// Returns the settings of a member's write cache.
    pub(crate) fn settings(&self) -> WriteCacheSettings {
        let fraction = |percentage: u64| percentage as f64 / 100.0;
        let shared = Division::Shared;
        WriteCacheSettings {
            bytes: self.bytes,
            division: self
                .directory
                .map_or(shared, |directory| Division::Fixed { directory: fraction(directory) }),
            queued: self.queued,
            background: self.background.map(fraction),
            flush_after: (self.flush_after > 0).then(|| Duration::from_micros(self.flush_after)),
        }
    }
}
