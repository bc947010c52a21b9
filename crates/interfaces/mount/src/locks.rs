//! Locks of programs on files: `flock` and `fcntl`.
//!
//! They are kept by the keeper of the namespace, so that they hold between all mounts. Whoever gets a lock sees what
//! others have written under theirs, and what was written under a lock is with the agents before it is let go: so what
//! works with locks on one computer works on several.
//!
//! The kernel does not say whether it asks for `flock` or for `fcntl`, and has owners of its own for each. So they keep
//! each other out, as on NFS: who locks the same file both ways waits for himself.

use fs::{HeldLock, LockMode, LockRange};
use fuser::Errno;
use machine::{Duration, Machine, first_of};
use namespace::{FileNumber, TreeRefusal};
use nix::libc;

use crate::caller_signals::CallerSignals;
use crate::mounted_tree::{MountedFile, MountedTree, Outcome, about};

/// How long after a lock was refused it is asked for again, at first and at most. A lock that is let go through this
/// mount is asked for at once.
const ASK_AGAIN: Duration = Duration::from_millis(2);
const ASK_AGAIN_MOST: Duration = Duration::from_millis(64);

/// A lock that somebody asks for.
#[derive(Clone, Copy)]
pub(crate) struct WantedLock {
    /// The handle through which he does.
    pub(crate) handle: u64,
    /// Who he is to the kernel.
    pub(crate) owner: u64,
    pub(crate) range: LockRange,
    /// F_RDLCK, F_WRLCK or F_UNLCK.
    pub(crate) kind: i32,
    /// His process.
    pub(crate) process: u32,
}

/// A lock that keeps somebody out, as the kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelLock {
    pub(crate) range: LockRange,
    pub(crate) kind: i32,
    /// 0, if it is none of this computer's.
    pub(crate) process: u32,
}

/// The mode of a lock; none, if it is to be let go.
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
    /// Gives somebody a lock, or takes it from him. `caller` is the thread that waits for it if somebody else has it;
    /// without one that is EAGAIN.
    pub(crate) async fn lock(&self, wanted: WantedLock, caller: Option<u32>) -> Outcome<()> {
        let open = self.file(wanted.handle)?;
        let number = open.file.number();
        let Some(mode) = mode_of(wanted.kind)? else {
            return self.unlock(&open, wanted.owner, wanted.range).await;
        };
        if self.tree().has_locks(number, wanted.owner) {
            // If this one is weaker, others may read at once.
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

    /// The lock for which somebody could not have one.
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

    /// Takes from an owner all that he has locked of a file.
    pub(crate) async fn unlock_all(&self, handle: u64, owner: u64) -> Outcome<()> {
        let open = self.file(handle)?;
        open.lockers.borrow_mut().remove(&owner);
        self.unlock(&open, owner, LockRange::WHOLE).await
    }

    /// Takes from all who have locked through a handle, which is being closed, what they have locked of the file. With
    /// locks of the open file (F_OFD_SETLK) the kernel does not say whose go.
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
        // Whatever could not be written: the lock would keep others out for ever.
        let unlocked = self.tree().unlock(number, owner, range).await;
        self.unlocked.wake_all();
        self.settle(about(number), flushed.and(unlocked))
    }

    /// Whether somebody has locks on a file, or had some that were lost.
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

    /// Looks what others have written, and forgets what the kernel and this client know of the contents before.
    async fn see_anew(&self, open: &MountedFile) -> Outcome<()> {
        let seen = open.file.attributes().await;
        self.settle(about(open.file.number()), seen)?;
        self.heed_version_for_lock(&open.file).await;
        Ok(())
    }
}
