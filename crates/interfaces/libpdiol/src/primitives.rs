//! What the lock of an open file is made of: atomic numbers, barriers, the addresses of threads, and an ordinary lock.
//!
//! They stand apart from `lock.rs` so that its model in `tests/lock.rs` can put its own in their place.
//!
//! `unsafe` here is a system call without memory, reading the thread's address from the register it is in, and giving
//! back an ordinary lock, which is sound because it is asked first whose it is.

use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::sync::atomic::compiler_fence;
use std::thread;
use std::time::Duration;

use parking_lot::RawMutex;
use parking_lot::lock_api::{GetThreadId, RawReentrantMutex};

pub(crate) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How long to sleep until an owner is looked at again. Once in the life of a file, if ever.
const PAUSE: Duration = Duration::from_micros(50);

/// The lock of files that several threads use. A thread may take it again while it has it.
pub(crate) struct Ordinary(RawReentrantMutex<RawMutex, Threads>);

/// Tells the lock above which thread it is.
struct Threads;

#[expect(unsafe_code, reason = "the lock relies on what it is told")]
// SAFETY: no two threads that live have the same address, and a thread keeps its own.
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

    /// Takes it, however long that takes.
    #[inline]
    pub(crate) fn lock(&self) {
        self.0.lock();
    }

    /// Takes it if that needs no waiting.
    #[inline]
    pub(crate) fn try_lock(&self) -> bool {
        self.0.try_lock()
    }

    /// Gives it back once, if this thread has it.
    #[inline]
    #[expect(unsafe_code, reason = "only who has a lock may give it back")]
    pub(crate) fn unlock_if_mine(&self) -> bool {
        let mine = self.0.is_owned_by_current_thread();
        if mine {
            // SAFETY: this thread has it.
            unsafe { self.0.unlock() }
        }
        mine
    }
}

/// Keeps the compiler from moving loads and stores past here. The processor may move them: to that the other half of
/// the barrier sees, [`barrier_for_all`].
#[inline]
pub(crate) fn order_for_compiler() {
    compiler_fence(Ordering::SeqCst);
}

/// Waits a little for an owner to be out.
pub(crate) fn pause() {
    thread::sleep(PAUSE);
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
pub(crate) fn is_barrier_there() -> bool {
    static THERE: OnceLock<bool> = OnceLock::new();
    *THERE.get_or_init(|| membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
}

/// Makes every thread of this process pass a full barrier.
pub(crate) fn barrier_for_all() {
    assert!(membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED), "it has been registered");
}

#[expect(unsafe_code, reason = "a system call")]
fn membarrier(command: libc::membarrier_cmd) -> bool {
    // SAFETY: it takes two numbers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command as libc::c_long, 0 as libc::c_long) == 0 }
}
