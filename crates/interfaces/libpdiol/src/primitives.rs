//! Building blocks of the lock of an open file: atomic numbers, barriers, the addresses of threads, and an ordinary
//! lock.
//!
//! This module is separate from `lock.rs` so that the model in `tests/lock.rs` can replace it.
//!
//! `unsafe` code in this module makes a system call without pointers, reads the thread's address from a register, and
//! unlocks an ordinary lock after a check that this thread holds the lock.

use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::sync::atomic::compiler_fence;
use std::thread;
use std::time::Duration;

use parking_lot::RawMutex;
use parking_lot::lock_api::{GetThreadId, RawReentrantMutex};

pub(crate) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Interval between checks for the end of the owner's use; such a wait happens at most once in the life of a file.
const PAUSE: Duration = Duration::from_micros(50);

/// Lock of files that several threads use. A thread that holds it may take it again.
pub(crate) struct Ordinary(RawReentrantMutex<RawMutex, Threads>);

/// Identifies the current thread to the lock above.
struct Threads;

#[expect(unsafe_code, reason = "the lock relies on correct identities")]
// SAFETY: no two live threads have the same address, and the address of a thread never changes.
unsafe impl GetThreadId for Threads {
    const INIT: Self = Threads;

    #[inline]
    fn nonzero_thread_id(&self) -> NonZeroUsize {
        NonZeroUsize::new(this_thread()).expect("no thread has the address 0")
    }
}

impl Ordinary {
    pub(crate) fn new() -> Self {
        Ordinary(RawReentrantMutex::INIT)
    }

    /// Blocks until this thread holds the lock.
    #[inline]
    pub(crate) fn lock(&self) {
        self.0.lock();
    }

    /// Locks if this is possible without blocking. Returns true if the lock is now held.
    #[inline]
    pub(crate) fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    /// Unlocks once if this thread holds the lock. Returns true if this thread held the lock.
    #[inline]
    #[expect(unsafe_code, reason = "only the thread with the lock may unlock it")]
    pub(crate) fn unlock_if_mine(&self) -> bool {
        let mine = self.0.is_owned_by_current_thread();
        if mine {
            // SAFETY: this thread holds the lock.
            unsafe { self.0.unlock() }
        }
        mine
    }
}

/// Keeps the compiler from moving loads and stores across this call. The processor may still reorder them;
/// [`barrier_for_all`], the other half of the barrier, handles this case.
#[inline]
pub(crate) fn order_for_compiler() {
    compiler_fence(Ordering::SeqCst);
}

/// Sleeps for a short time, to wait for an owner to leave.
pub(crate) fn pause() {
    thread::sleep(PAUSE);
}

/// Returns the address of this thread, as the header computes it.
#[cfg(all(target_pointer_width = "64", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
#[expect(unsafe_code, reason = "there is no safe way to read this register")]
pub(crate) fn this_thread() -> usize {
    let thread: usize;
    // SAFETY: reads the thread pointer, which the ELF ABI keeps there for as long as the thread lives.
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

/// Returns the address of a thread-local variable, which differs for each thread.
#[cfg(not(all(target_pointer_width = "64", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

/// Returns true if the kernel can make all threads of this process pass a barrier. The first call registers the process
/// for this.
pub(crate) fn is_barrier_there() -> bool {
    static THERE: OnceLock<bool> = OnceLock::new();
    *THERE.get_or_init(|| membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
}

/// Makes every thread of this process pass a full barrier.
pub(crate) fn barrier_for_all() {
    assert!(membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED), "the process is registered for membarrier");
}

#[expect(unsafe_code, reason = "a system call")]
fn membarrier(command: libc::membarrier_cmd) -> bool {
    // SAFETY: the call takes two numbers and touches no memory of this process.
    unsafe { libc::syscall(libc::SYS_membarrier, command as libc::c_long, 0 as libc::c_long) == 0 }
}
