//! The lock of atomic mode: one per file, granted by the metadata server to one call at a time. Programs that lock the
//! file on a mount use the same lock, so it excludes them, too.
//!
//! The lock belongs to the lease of this process. If the process is killed, the lock expires with the lease, and the
//! agents reject requests in flight from a process that lost its lease.

use std::sync::atomic::{AtomicU64, Ordering};

use machine::{Duration, Machine};
use namespace::FileNumber;
use node::{LockMode, LockRange, TreeNode};

/// The first and the longest pause between attempts to take a lock that another call holds.
const PAUSE: Duration = Duration::from_micros(250);
const PAUSE_MAX: Duration = Duration::from_millis(16);

/// The lock of a file.
#[derive(Clone, Debug)]
pub(crate) struct FileLock {
    pub(crate) path: String,
    pub(crate) number: FileNumber,
}

impl FileLock {
    /// Runs `work` on the node thread while holding the lock. Waits until the lock is free.
    pub(crate) async fn hold<T>(
        &self,
        node: &TreeNode,
        work: impl Future<Output = node::Result<T>>,
    ) -> node::Result<T> {
        let owner = next_owner();
        let outcome = match self.take(node, owner).await {
            Ok(()) => work.await,
            Err(error) => Err(error),
        };
        let (tree, explained) = (node.tree(), |outcome| node.explained(&self.path, outcome));
        let kept = explained(tree.check_locks(self.number).await);
        // If the unlock request does not arrive, the lock expires with the lease.
        let given_back = explained(tree.unlock(self.number, owner, LockRange::WHOLE).await);
        let value = outcome?;
        kept.and(given_back).map(|()| value)
    }

    async fn take(&self, node: &TreeNode, owner: u64) -> node::Result<()> {
        let mut pause = PAUSE;
        loop {
            let asked = node.tree().lock(self.number, owner, LockRange::WHOLE, LockMode::Exclusive).await;
            if node.explained(&self.path, asked)?.is_none() {
                return Ok(());
            }
            let machine = node.machine();
            machine.sleep_until(machine.now() + pause).await;
            pause = PAUSE_MAX.min(pause + pause);
        }
    }
}

/// Returns a lock owner that is unique in this process, so that two of its calls exclude each other.
fn next_owner() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}
