//! Locks of programs on files: `flock` and `fcntl`.
//!
//! The metadata server keeps the locks, so they hold between all mounts. A process that gets a lock sees all writes
//! made under earlier locks, and writes under a lock are with the agents before it is released. So programs that
//! synchronise by locks on one host also work on several.
//!
//! The kernel does not distinguish requests for `flock` and `fcntl`, but uses different owners for each. So locks of
//! the two kinds conflict with each other, as on NFS: a process that locks the same file in both ways deadlocks.

use fs::{HeldLock, LockMode, LockRange};
use fuser::Errno;
use machine::{Duration, Machine, first_of};
use namespace::{FileNumber, TreeRefusal};
use nix::libc;

use crate::caller_signals::CallerSignals;
use crate::mounted_tree::{MountedFile, MountedTree, Outcome, about};

/// The first and the longest pause between attempts to get a lock that another owner holds. When a lock is released
/// through this mount, the next attempt follows at once.
const ASK_AGAIN: Duration = Duration::from_millis(2);
const ASK_AGAIN_MOST: Duration = Duration::from_millis(64);

/// A lock that a process requests.
#[derive(Clone, Copy)]
pub(crate) struct WantedLock {
    /// Handle through which the process requests it.
    pub(crate) handle: u64,
    /// Kernel lock-owner id.
    pub(crate) owner: u64,
    pub(crate) range: LockRange,
    /// F_RDLCK, F_WRLCK or F_UNLCK.
    pub(crate) kind: i32,
    /// Process id.
    pub(crate) process: u32,
}

/// A conflicting lock, in the kernel's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelLock {
    pub(crate) range: LockRange,
    pub(crate) kind: i32,
    /// Process id; 0 if the process is not on this host.
    pub(crate) process: u32,
}

/// Returns the mode of a lock; `None` for F_UNLCK.
fn mode_of(kind: i32) -> Outcome<Option<LockMode>> {
    match kind {
        libc::F_RDLCK => Ok(Some(LockMode::Shared)),
        libc::F_WRLCK => Ok(Some(LockMode::Exclusive)),
        libc::F_UNLCK => Ok(None),
        _ => Err(Errno::EINVAL),
    }
}

fn kind_of(mode: LockMode) -> i32 {
    match mode {
        LockMode::Shared => libc::F_RDLCK,
        LockMode::Exclusive => libc::F_WRLCK,
    }
}

impl MountedTree {
    /// Grants or releases a lock. If another owner holds the lock: with `caller`, the thread of the request, waits;
    /// without it, fails with EAGAIN.
    pub(crate) async fn lock(&self, wanted: WantedLock, caller: Option<u32>) -> Outcome<()> {
        let open = self.file(wanted.handle)?;
        let number = open.file.number();
        let Some(mode) = mode_of(wanted.kind)? else {
            return self.unlock(&open, wanted.owner, wanted.range).await;
        };
        if self.tree().has_locks(number, wanted.owner) {
            // Flush first: the new lock may be weaker, and other clients can then read at once.
            let flushed = open.file.flush_shared().await;
            self.heed_version(&open.file).await;
            self.settle(about(number), flushed)?;
        }
        let mut signals = caller.map(CallerSignals::of);
        let mut pause = ASK_AGAIN;
        while self.ask_for_lock(number, &wanted, mode).await?.is_some() {
            let Some(signals) = &mut signals else { return Err(Errno::EAGAIN) };
            if signals.have_come() || self.has_ended.get() {
                return Err(Errno::EINTR);
            }
            let next = self.node.machine().now() + pause;
            first_of(self.unlocked.wait(), self.node.machine().sleep_until(next)).await;
            pause = ASK_AGAIN_MOST.min(pause + pause);
        }
        open.lockers.borrow_mut().insert(wanted.owner, wanted.process);
        self.see_anew(&open).await
    }

    /// Returns a lock that conflicts with the requested one.
    pub(crate) async fn who_locks(&self, wanted: WantedLock) -> Outcome<Option<KernelLock>> {
        let number = self.file(wanted.handle)?.file.number();
        let Some(mode) = mode_of(wanted.kind)? else { return Err(Errno::EINVAL) };
        let held = self.tree().who_locks(number, wanted.owner, wanted.range, mode).await;
        let held = self.settle_lock(number, held)?;
        Ok(held.map(|HeldLock { owner, range, mode }| {
            let process = owner.and_then(|owner| self.locker(number, owner));
            KernelLock { range, kind: kind_of(mode), process: process.unwrap_or(0) }
        }))
    }

    /// Releases all locks of an owner on a file.
    pub(crate) async fn unlock_all(&self, handle: u64, owner: u64) -> Outcome<()> {
        let open = self.file(handle)?;
        open.lockers.borrow_mut().remove(&owner);
        self.unlock(&open, owner, LockRange::WHOLE).await
    }

    /// Releases the locks of all owners that locked the file through this handle. Called when the handle is closed. For
    /// open file description locks (F_OFD_SETLK) the kernel does not name the owner.
    pub(crate) async fn unlock_all_through(&self, handle: u64) -> Outcome<()> {
        let open = self.file(handle)?;
        let lockers = open.lockers.take();
        let mut outcome = Ok(());
        for owner in lockers.into_keys() {
            outcome = outcome.and(self.unlock(&open, owner, LockRange::WHOLE).await);
        }
        outcome
    }

    async fn unlock(&self, open: &MountedFile, owner: u64, range: LockRange) -> Outcome<()> {
        let number = open.file.number();
        if !self.keeps(number, owner) {
            return Ok(());
        }
        let flushed = open.file.flush_shared().await;
        self.heed_version(&open.file).await;
        // Unlock even if the flush failed: otherwise the lock would never be released.
        let unlocked = self.tree().unlock(number, owner, range).await;
        self.unlocked.wake_all();
        self.settle(about(number), flushed.and(unlocked))
    }

    /// True if an owner has locks on a file, or had some that were lost.
    fn keeps(&self, number: FileNumber, owner: u64) -> bool {
        self.tree().has_locks(number, owner) || self.tree().has_lost_locks(number, owner)
    }

    async fn ask_for_lock(
        &self,
        number: FileNumber,
        wanted: &WantedLock,
        mode: LockMode,
    ) -> Outcome<Option<HeldLock>> {
        let asked = self.tree().lock(number, wanted.owner, wanted.range, mode).await;
        self.settle_lock(number, asked)
    }

    fn settle_lock<T>(&self, number: FileNumber, outcome: fs::Result<T>) -> Outcome<T> {
        match outcome {
            Err(error) if error.is_refused(TreeRefusal::Busy) => Err(Errno::ENOLCK),
            outcome => self.settle(about(number), outcome),
        }
    }

    /// Fetches the file's attributes, and drops outdated contents cached by the kernel and this client.
    async fn see_anew(&self, open: &MountedFile) -> Outcome<()> {
        let seen = open.file.attributes().await;
        self.settle(about(open.file.number()), seen)?;
        self.heed_version_for_lock(&open.file).await;
        Ok(())
    }
}
