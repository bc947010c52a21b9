//! Lock of an open file that costs nearly nothing in the common case: a file used by a single thread.
//!
//! The first thread that uses a file owns it. For the owner, locking and unlocking are plain loads and stores; the
//! header does the same inline, for single bytes (`include/pdiol.h`). A second thread ends the ownership permanently,
//! and from then on all threads take an ordinary lock:
//!
//! ```text
//!   owner                                   another thread
//!
//!   busy = busy + 1                         take the ordinary lock
//!   (the compiler keeps this order)         owner = SHARED
//!   still the owner? then it is locked      membarrier: every thread passes a full barrier
//!   ...                                     wait until busy = 0, then it is locked
//!   busy = busy - 1
//! ```
//!
//! Either the owner's store to `busy` precedes its barrier, and the other thread sees it. Or the owner's load of
//! `owner` follows the barrier, and sees that the ownership has ended. This is Dekker's mutual exclusion. The thread
//! that ends the ownership pays for the expensive half of the barrier, once in the life of a file. If the kernel has no
//! `membarrier`, files have no owners.
//!
//! Ownership is never assigned again, so only one thread ever writes `busy`.
//!
//! Benefit: `cargo bench -p libpdiol --bench lock`, on a virtual processor of 2026, takes 1.1 ns for a byte, 4.9 ns
//! with `parking_lot::ReentrantMutex` instead and 0.6 ns without any lock. Once threads share a file, they use the lock
//! of that library.
//!
//! `primitives.rs` has the building blocks. `tests/lock.rs` replaces them and explores every interleaving of a few
//! threads.

use crate::front::Front;
use crate::primitives::{
    AtomicBool, AtomicUsize, Ordering, Ordinary, barrier_for_all, is_barrier_there, order_for_compiler,
    pause, this_thread,
};

/// Owner of a file that no thread has used yet.
const NOBODY: usize = 0;

/// Owner of a file that all threads have to lock. No thread has this address.
const SHARED: usize = 1;

/// The part of a file's lock that is not in the front.
pub(crate) struct Lock {
    /// Address of the first thread that used the file.
    first_owner: AtomicUsize,
    /// True if the first owner is known to have left, so that the ordinary lock suffices.
    is_drained: AtomicBool,
    ordinary: Ordinary,
}

impl Lock {
    /// Returns the lock of a file that no thread has used.
    pub(crate) fn new(front: &Front) -> Self {
        let owner = if is_barrier_there() { NOBODY } else { SHARED };
        front.owner.store(owner, Ordering::Relaxed);
        let is_drained = AtomicBool::new(owner == SHARED);
        Lock { first_owner: AtomicUsize::new(NOBODY), is_drained, ordinary: Ordinary::new() }
    }

    /// Locks, again if this thread holds the lock already.
    #[inline]
    pub(crate) fn lock(&self, front: &Front) {
        if self.is_drained.load(Ordering::Relaxed) {
            // No thread owns the file any more, and none will own it again.
            self.ordinary.lock();
        } else {
            self.lock_owned(front);
        }
    }

    // Out of line, to keep this code off the fast path of shared files; the owner mostly locks inline, in the header.
    #[cold]
    fn lock_owned(&self, front: &Front) {
        if !self.enter_as_owner(front) {
            self.ordinary.lock();
            self.end_ownership(front);
            while !self.drained(front) {
                pause();
            }
        }
    }

    /// Locks if this is possible without blocking. Returns true if the file is now locked.
    pub(crate) fn try_lock(&self, front: &Front) -> bool {
        if self.enter_as_owner(front) {
            return true;
        }
        if !self.ordinary.try_lock() {
            return false;
        }
        self.end_ownership(front);
        let mine = self.drained(front);
        if !mine {
            self.ordinary.unlock_if_mine();
        }
        mine
    }

    /// Unlocks once. The lock is free after one call for each lock of this thread. Does nothing if this thread does not
    /// hold the lock.
    #[inline]
    pub(crate) fn unlock(&self, front: &Front) {
        if self.ordinary.unlock_if_mine() {
            return;
        }
        let this = this_thread();
        let busy = front.busy.load(Ordering::Relaxed);
        if busy > 0 && self.first_owner.load(Ordering::Relaxed) == this {
            front.busy.store(busy - 1, Ordering::Release);
        }
    }

    fn enter_as_owner(&self, front: &Front) -> bool {
        let this = this_thread();
        let claim = || front.owner.compare_exchange(NOBODY, this, Ordering::Relaxed, Ordering::Relaxed);
        if front.owner.load(Ordering::Relaxed) == NOBODY && claim().is_ok() {
            self.first_owner.store(this, Ordering::Relaxed);
        }
        if self.first_owner.load(Ordering::Relaxed) != this {
            return false;
        }
        let busy = front.busy.load(Ordering::Relaxed);
        front.busy.store(busy + 1, Ordering::Relaxed);
        order_for_compiler();
        // A thread that already holds the lock may take it again, even if others wait.
        let mine = busy > 0 || front.owner.load(Ordering::Relaxed) == this;
        if !mine {
            front.busy.store(busy, Ordering::Release);
        }
        mine
    }

    /// Ends the ownership. The caller holds the ordinary lock.
    fn end_ownership(&self, front: &Front) {
        if front.owner.load(Ordering::Relaxed) != SHARED {
            front.owner.store(SHARED, Ordering::SeqCst);
            barrier_for_all();
        }
    }

    /// True if the first owner has left. The caller holds the ordinary lock and has ended the ownership.
    fn drained(&self, front: &Front) -> bool {
        if !self.is_drained.load(Ordering::Relaxed) && front.busy.load(Ordering::Acquire) == 0 {
            self.is_drained.store(true, Ordering::Relaxed);
        }
        self.is_drained.load(Ordering::Relaxed)
    }
}
