//! The lock of atomic mode: one for a whole file, which the keeper of the namespace gives to one call at a time. It is
//! that of programs which lock the file on a mount, so these are kept out, too.
//!
//! It is of the lease of this process: that of a process that is killed ends with it, and what is on its way still from
//! one that has lost its lease is refused.

use std::sync::atomic::{AtomicU64, Ordering};

use machine::{Duration, Machine};
use namespace::FileNumber;
use node::{LockMode, LockRange, TreeNode};

/// The first and the longest pause before a lock that somebody else has is asked for again.
const PAUSE: Duration = Duration::from_micros(250);
const PAUSE_MAX: Duration = Duration::from_millis(16);

/// The lock of a file.
#[derive(Clone, Debug)]
pub(crate) struct FileLock {
    pub(crate) path: String,
    pub(crate) number: FileNumber,
}

impl FileLock {
    /// Does `work` on the node thread with the lock held, once nobody else has it.
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
        let (tree, told) = (node.tree(), |outcome| node.explained(&self.path, outcome));
        let kept = told(tree.check_locks(self.number).await);
        // What the keeper is not told ends with the lease.
        let given_back = told(tree.unlock(self.number, owner, LockRange::WHOLE).await);
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

/// Who holds a lock, among all calls of this process: two of them keep each other out.
fn next_owner() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}
