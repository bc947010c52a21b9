//! What a mount has done, in plain numbers, and how others than its thread come to them.

use std::time::Duration;

use flume::WeakSender;
use fs::{ClientCounts, PageCacheCounts, TimeHistogram};

use crate::mounted_tree::{MountTask, MountedTree};
use crate::tally::MountTally;

/// What a mount has done since it was mounted, and what it has now.
#[derive(Clone, Debug, Default)]
pub struct MountCounts {
    /// Calls of the kernel by operation, with the time from when each had come to when it was answered.
    pub requests: Vec<(&'static str, TimeHistogram)>,
    /// Those of them that were answered with an error, by its name, as `ENOENT`.
    pub failures: Vec<(String, u64)>,
    /// Calls under way.
    pub under_way: u64,
    /// Data that the kernel was given.
    pub read_bytes: u64,
    /// Data that it has given.
    pub written_bytes: u64,
    /// Handles that are open on files.
    pub open_files: u64,
    /// What was read of pages in the memory of the mount.
    pub pages: PageCacheCounts,
    /// How much these pages are.
    pub page_bytes: u64,
    /// How much they may be.
    pub page_bytes_max: u64,
    /// What was asked of agents.
    pub agents: ClientCounts,
}

impl MountedTree {
    fn counts(&self) -> MountCounts {
        let MountTally { requests, failures, read_bytes, written_bytes } = &self.tally;
        let cache = self.tree().cache();
        let name = |code: i32| format!("{:?}", nix::errno::Errno::from_raw(code));
        MountCounts {
            requests: requests.borrow().iter().map(|(name, times)| (*name, times.clone())).collect(),
            failures: failures.borrow().iter().map(|(code, count)| (name(*code), *count)).collect(),
            // This question is one, too.
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

/// Tells the numbers of a mount to whoever asks, on any thread. It does not keep the mount from ending.
#[derive(Clone)]
pub struct MountCounter {
    pub(crate) tasks: WeakSender<MountTask>,
}

impl MountCounter {
    /// The numbers as they are; nothing if the mount has ended or does not tell them in time.
    pub fn counts(&self, patience: Duration) -> Option<MountCounts> {
        let (tell, told) = flume::bounded(1);
        let task: MountTask = Box::new(move |mounted| {
            Box::pin(async move {
                // Who asked may have given up.
                let _ = tell.try_send(mounted.counts());
            })
        });
        self.tasks.upgrade()?.try_send(task).ok()?;
        told.recv_timeout(patience).ok()
    }
}
