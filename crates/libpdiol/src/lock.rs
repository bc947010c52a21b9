//! The lock of an open file: free of charge for the one thread that most files are used by.
//!
//! The first thread that uses a file owns it. As long as it does, entering and leaving are plain loads and stores; the
//! header does the same inline, for single bytes (`include/pdiol.h`). When a second thread comes, it ends the ownership,
//! for good, and from then on all take an ordinary lock:
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
//! Either the owner's store of `busy` comes before its barrier, and the other thread sees it; or its look at `owner`
//! comes after, and it sees that it is the owner no more. This is Dekker's way of excluding each other with the
//! costly half of the barrier moved to the side that needs it once in the life of a file. Where the kernel has no
//! `membarrier`, files have no owners.
//!
//! Only the first owner ever writes `busy`, so nobody confuses two owners: ownership is not given anew.
//!
//! `unsafe` here is a system call without memory, reading the thread's address from the register it is in, and giving
//! back an ordinary lock, which is sound because its holder is noted.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, compiler_fence};
use std::thread;
use std::time::Duration;

use parking_lot::RawMutex;
use parking_lot::lock_api::RawMutex as _;

use crate::front::Front;

/// The owner of a file nobody has used yet.
const NOBODY: usize = 0;

/// The owner of a file that all have to lock. No thread has this address.
const SHARED: usize = 1;

/// How long to sleep until an owner is looked at again. Once in the life of a file, if ever.
const PAUSE: Duration = Duration::from_micros(50);

/// The part of a file's lock that is not in its front.
pub(crate) struct Lock {
    /// Who was the first to use the file.
    first_owner: AtomicUsize,
    /// Whether the first owner is known to be out, so that who has the ordinary lock has all.
    is_drained: AtomicBool,
    ordinary: RawMutex,
    /// Who has the ordinary lock, and how many times more than once.
    holder: AtomicUsize,
    again: AtomicU32,
}

impl Lock {
    /// The lock of a file nobody has used.
    pub(crate) fn new(front: &Front) -> Self {
        let owner = if is_barrier_there() { NOBODY } else { SHARED };
        front.owner.store(owner, Ordering::Relaxed);
        let is_drained = AtomicBool::new(owner == SHARED);
        Lock {
            first_owner: AtomicUsize::new(NOBODY),
            is_drained,
            ordinary: RawMutex::INIT,
            holder: AtomicUsize::new(NOBODY),
            again: AtomicU32::new(0),
        }
    }

    /// Takes the lock, once more if this thread has it.
    #[inline]
    pub(crate) fn lock(&self, front: &Front) {
        if self.is_drained.load(Ordering::Relaxed) {
            // Nobody owns the file any more, and nobody will.
            self.enter_ordinary(waiting);
        } else {
            self.lock_owned(front);
        }
    }

    // Out of the way of files that several threads use: the owner mostly enters in the header.
    #[cold]
    fn lock_owned(&self, front: &Front) {
        if !self.enter_as_owner(front) {
            self.enter_ordinary(waiting);
            self.end_ownership(front);
            while !self.drained(front) {
                thread::sleep(PAUSE);
            }
        }
    }

    /// Takes the lock if that needs no waiting.
    pub(crate) fn try_lock(&self, front: &Front) -> bool {
        if self.enter_as_owner(front) {
            return true;
        }
        if !self.enter_ordinary(RawMutex::try_lock) {
            return false;
        }
        self.end_ownership(front);
        let mine = self.drained(front);
        if !mine {
            self.leave_ordinary();
        }
        mine
    }

    /// Gives the lock back, as often as it was taken. Does nothing if this thread has not got it.
    #[inline]
    pub(crate) fn unlock(&self, front: &Front) {
        let this = this_thread();
        if self.holder.load(Ordering::Relaxed) == this {
            return self.leave_ordinary();
        }
        let busy = front.busy.load(Ordering::Relaxed);
        if busy > 0 && self.first_owner.load(Ordering::Relaxed) == this {
            front.busy.store(busy - 1, Ordering::Release);
        }
    }

    /// Takes the ordinary lock with `lock`, unless this thread has it: then it has it once more.
    #[inline]
    fn enter_ordinary(&self, lock: impl FnOnce(&RawMutex) -> bool) -> bool {
        let this = this_thread();
        if self.holder.load(Ordering::Relaxed) == this {
            self.again.store(self.again.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            return true;
        }
        let entered = lock(&self.ordinary);
        if entered {
            self.holder.store(this, Ordering::Relaxed);
        }
        entered
    }

    /// Called by who is the holder.
    #[inline]
    #[expect(unsafe_code, reason = "only who has a lock may give it back")]
    fn leave_ordinary(&self) {
        let again = self.again.load(Ordering::Relaxed);
        if again > 0 {
            return self.again.store(again - 1, Ordering::Relaxed);
        }
        self.holder.store(NOBODY, Ordering::Relaxed);
        // SAFETY: this thread is the holder, so it has it.
        unsafe { self.ordinary.unlock() }
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
        compiler_fence(Ordering::SeqCst);
        // A thread that is in already stays in, whoever waits for it.
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

/// Takes a lock, however long that takes.
#[inline]
fn waiting(lock: &RawMutex) -> bool {
    lock.lock();
    true
}

/// The address of this thread, the same that the header finds.
#[cfg(all(target_pointer_width = "64", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
#[expect(unsafe_code, reason = "there is no safe way to read that register")]
pub(crate) fn this_thread() -> usize {
    let thread: usize;
    // SAFETY: reads the thread pointer, which the ABI of ELF keeps there for as long as the thread lives.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("mov {}, fs:[0]", out(reg) thread, options(nostack, preserves_flags, readonly));
    }
    // SAFETY: the same.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) thread, options(nostack, preserves_flags, nomem));
    }
    thread
}

/// The address of something that every thread has its own of.
#[cfg(not(all(target_pointer_width = "64", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

/// Whether the kernel can make all threads of this process pass a barrier. Asks for it the first time.
fn is_barrier_there() -> bool {
    static THERE: OnceLock<bool> = OnceLock::new();
    *THERE.get_or_init(|| membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
}

fn barrier_for_all() {
    assert!(membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED), "it has been registered");
}

#[expect(unsafe_code, reason = "a system call")]
fn membarrier(command: libc::membarrier_cmd) -> bool {
    // SAFETY: it takes two numbers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command as libc::c_long, 0 as libc::c_long) == 0 }
}

#[cfg(test)]
mod tests {
    use std::cell::UnsafeCell;
    use std::sync::Arc;

    use super::*;

    struct Counted {
        front: Front,
        lock: Lock,
        count: UnsafeCell<u64>,
    }

    #[expect(unsafe_code, reason = "what is tested is whether the lock makes it true")]
    // SAFETY: the count is touched by who has the lock.
    unsafe impl Sync for Counted {}

    impl Counted {
        fn new() -> Arc<Self> {
            let front = Front::default();
            let lock = Lock::new(&front);
            Arc::new(Counted { front, lock, count: UnsafeCell::new(0) })
        }

        #[expect(unsafe_code, reason = "what is tested is whether the lock makes it safe")]
        fn count(&self) -> u64 {
            self.lock.lock(&self.front);
            // SAFETY: this thread has the lock.
            let count = unsafe {
                *self.count.get() += 1;
                *self.count.get()
            };
            self.lock.unlock(&self.front);
            count
        }
    }

    #[test]
    fn threads_exclude_each_other_whenever_the_second_comes() {
        for round in 0..200 {
            let counted = Counted::new();
            let threads: Vec<_> = (0..3)
                .map(|number| {
                    let counted = counted.clone();
                    thread::spawn(move || {
                        thread::sleep(Duration::from_micros(number * round));
                        (0..2000).for_each(|_| _ = counted.count());
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
            assert_eq!(counted.count(), 6001);
        }
    }

    #[test]
    fn a_thread_may_lock_again_and_others_wait_until_it_is_out() {
        let counted = Counted::new();
        counted.lock.lock(&counted.front);
        let other = {
            let counted = counted.clone();
            thread::spawn(move || (counted.lock.try_lock(&counted.front), counted.count()))
        };
        thread::sleep(Duration::from_millis(20));
        assert_eq!(counted.count(), 1);
        assert!(counted.lock.try_lock(&counted.front), "it has it");
        counted.lock.unlock(&counted.front);
        counted.lock.unlock(&counted.front);
        assert_eq!(other.join().expect("no panic"), (false, 2));
        assert_eq!(counted.count(), 3);
    }
}
