//! The lock of an open file: free of charge for the one thread that most files are used by.
//!
//! The first thread that uses a file owns it. As long as it does, taking and releasing the lock are plain loads and
//! stores; the header does the same inline, for single bytes (`include/pdiol.h`). When a second thread comes, it ends
//! the ownership, for good, and from then on all take an ordinary lock:
//!
//! ```text
//!   owner                                   another thread
//!
//!   busy = busy + 1                         take the ordinary lock
//!   (the compiler keeps this order)         owner = SHARED
//!   is it still me? then it is mine         membarrier: every thread passes a full barrier
//!   ...                                     wait until busy = 0, then it is mine
//!   busy = busy - 1
//! ```
//!
//! Either the owner's store of `busy` comes before its barrier, and the other thread sees it; or its load of `owner`
//! comes after, and it sees that it is the owner no more. This is Dekker's mutual exclusion with the costly half of the
//! barrier moved to the side that needs it once in the life of a file. Where the kernel has no `membarrier`, files have
//! no owners.
//!
//! Only the first owner ever writes `busy`, so two owners cannot be confused: ownership is not given anew.
//!
//! What it is worth: `cargo bench -p libpdiol --bench lock`, on a virtual processor of 2026, takes 1.1 ns for a byte,
//! 4.9 ns with `parking_lot::ReentrantMutex` in its place and 0.6 ns without any lock. Once a file is shared, its lock
//! is that of the library.
//!
//! What it is made of is in `primitives.rs`. `tests/lock.rs` puts others in their place and goes through every order in
//! which a few threads can meet here.

use crate::front::Front;
use crate::primitives::{
    AtomicBool, AtomicUsize, Ordering, Ordinary, barrier_for_all, is_barrier_there, order_for_compiler,
    pause, this_thread,
};

/// The owner of a file that no thread has used yet.
const NOBODY: usize = 0;

/// The owner of a file that all have to lock. No thread has this address.
const SHARED: usize = 1;

/// The part of a file's lock that is not in its front.
pub(crate) struct Lock {
    /// The thread that was the first to use the file.
    first_owner: AtomicUsize,
    /// Whether the first owner is known to have left, so that the ordinary lock suffices.
    is_drained: AtomicBool,
    ordinary: Ordinary,
}

impl Lock {
    /// The lock of a file that no thread has used.
    pub(crate) fn new(front: &Front) -> Self {
        let owner = if is_barrier_there() { NOBODY } else { SHARED };
        front.owner.store(owner, Ordering::Relaxed);
        let is_drained = AtomicBool::new(owner == SHARED);
        Lock { first_owner: AtomicUsize::new(NOBODY), is_drained, ordinary: Ordinary::new() }
    }

    /// Takes the lock, once more if this thread has it.
    #[inline]
    pub(crate) fn lock(&self, front: &Front) {
        if self.is_drained.load(Ordering::Relaxed) {
            // No thread owns the file any more, and none will.
            self.ordinary.lock();
        } else {
            self.lock_owned(front);
        }
    }

    // Out of the way of files that several threads use: the owner mostly enters in the header.
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

    /// Takes the lock if that needs no waiting.
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

    /// Gives the lock back, as often as it was taken. Does nothing if this thread has not got it.
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
        // A thread that holds the lock already may take it again, even if others wait.
        let mine = busy > 0 || front.owner.load(Ordering::Relaxed) == this;
        if !mine {
            front.busy.store(busy, Ordering::Release);
        }
        mine
    }

    /// Called with the ordinary lock.
    fn end_ownership(&self, front: &Front) {
        if front.owner.load(Ordering::Relaxed) != SHARED {
            front.owner.store(SHARED, Ordering::SeqCst);
            barrier_for_all();
        }
    }

    /// Whether the first owner is out. Called with the ordinary lock, after the ownership has ended.
    fn drained(&self, front: &Front) -> bool {
        if !self.is_drained.load(Ordering::Relaxed) && front.busy.load(Ordering::Acquire) == 0 {
            self.is_drained.store(true, Ordering::Relaxed);
        }
        self.is_drained.load(Ordering::Relaxed)
    }
}
