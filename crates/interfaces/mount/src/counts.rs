//! Counters of a mount, and access to them from other threads.

use std::time::Duration;

use flume::WeakSender;
use fs::{ClientCounts, PageCacheCounts, TimeHistogram};

use crate::counters::MountCounters;
use crate::mounted_tree::{MountTask, MountedTree};

/// Counters of a mount since it was mounted, and its current state.
#[derive(Clone, Debug, Default)]
pub struct MountCounts {
    /// Requests of the kernel by operation, with the time from arrival to answer.
    pub requests: Vec<(&'static str, TimeHistogram)>,
    /// Requests answered with an error, by its name, such as `ENOENT`.
    pub failures: Vec<(String, u64)>,
    /// Number of requests in flight.
    pub under_way: u64,
    /// Bytes returned to the kernel.
    pub read_bytes: u64,
    /// Bytes received from the kernel.
    pub written_bytes: u64,
    /// Number of open file handles.
    pub open_files: u64,
    /// Counters of the page cache in the memory of the mount.
    pub pages: PageCacheCounts,
    /// Bytes in that page cache.
    pub page_bytes: u64,
    /// Limit of these bytes.
    pub page_bytes_max: u64,
    /// Requests to agents.
    pub agents: ClientCounts,
}

impl MountedTree {
    fn counts(&self) -> MountCounts {
        let MountCounters { requests, failures, read_bytes, written_bytes } = &self.tally;
        let cache = self.tree().cache();
        let name = |code: i32| format!("{:?}", nix::errno::Errno::from_raw(code));
        MountCounts {
            requests: requests.borrow().iter().map(|(name, times)| (*name, times.clone())).collect(),
            failures: failures.borrow().iter().map(|(code, count)| (name(*code), *count)).collect(),
            // Do not count the request for these counters.
            under_way: self.calls.count().saturating_sub(1) as u64,
            read_bytes: read_bytes.get(),
            written_bytes: written_bytes.get(),
            open_files: self.open_count() as u64,
            pages: cache.counts(),
            page_bytes: cache.bytes(),
            page_bytes_max: cache.settings().bytes,
            agents: cache.client().counts(),
        }
    }
}

/// Returns the counters of a mount on any thread. Its existence does not delay the end of the mount.
#[derive(Clone)]
pub struct MountCounter {
    pub(crate) tasks: WeakSender<MountTask>,
}

impl MountCounter {
    /// Returns the current counters; `None` if the mount has ended or does not answer within `patience`.
    pub fn counts(&self, patience: Duration) -> Option<MountCounts> {
        let (sender, counts) = flume::bounded(1);
        let task: MountTask = Box::new(move |mounted| {
            Box::pin(async move {
                // The caller may have timed out.
                let _ = sender.try_send(mounted.counts());
            })
        });
        self.tasks.upgrade()?.try_send(task).ok()?;
        counts.recv_timeout(patience).ok()
    }
}
