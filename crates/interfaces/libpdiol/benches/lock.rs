//! Measures the time to read a byte: with the lock of this crate, with the lock of a library, and without a lock.
//!
//!     cargo bench -p libpdiol --bench lock
//!
//! The owner takes bytes inline, like the header. Threads that share a file call the library, since C cannot lock
//! inline. With the lock of a library the owner would also have to call it.

#![allow(dead_code, reason = "the benchmark uses a part of the lock")]

use std::hint::black_box;
use std::sync::atomic::{Ordering, compiler_fence};
use std::time::Instant;

use parking_lot::ReentrantMutex;

use front::Front;
use lock::Lock;

#[path = "../src/front.rs"]
mod front;
#[path = "../src/lock.rs"]
mod lock;
#[path = "../src/primitives.rs"]
mod primitives;

const BYTES: usize = 1 << 16;
const ROUNDS: usize = 2000;

fn main() {
    let bytes = vec![1; BYTES];
    let (front, library) = (Front::default(), ReentrantMutex::new(()));
    let lock = Lock::new(&front);
    // Make this thread the owner.
    lock.lock(&front);
    lock.unlock(&front);
    measure("without a lock", &front, &bytes, || front.take_byte().is_some());
    measure("its own lock, as the owner, inline", &front, &bytes, || take_as_owner(&front));
    measure("its own lock, as the owner, by a call", &front, &bytes, || take_by_call(&front, &lock));
    measure("parking_lot::ReentrantMutex, by a call", &front, &bytes, || take_by_library(&front, &library));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            lock.lock(&front);
            lock.unlock(&front);
        });
    });
    measure("its own lock, shared, by a call", &front, &bytes, || take_by_call(&front, &lock));
}

/// Returns the best time of several rounds, because other programs may disturb the others.
fn measure(name: &str, front: &Front, bytes: &[u8], take: impl Fn() -> bool) {
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        front.show_bytes(bytes);
        let begun = Instant::now();
        while black_box(take()) {}
        best = best.min(begun.elapsed().as_nanos() as f64 / BYTES as f64);
    }
    println!("{name:40} {best:6.2} ns a byte");
}

/// Takes a byte like `pdiol_getc` in `include/pdiol.h`.
#[inline]
fn take_as_owner(front: &Front) -> bool {
    let this = primitives::this_thread();
    if front.owner.load(Ordering::Relaxed) != this {
        return false;
    }
    let busy = front.busy.load(Ordering::Relaxed);
    front.busy.store(busy + 1, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    let is_taken = front.owner.load(Ordering::Relaxed) == this && front.take_byte().is_some();
    front.busy.store(busy, Ordering::Release);
    is_taken
}

#[inline(never)]
fn take_by_call(front: &Front, lock: &Lock) -> bool {
    lock.lock(front);
    let is_taken = front.take_byte().is_some();
    lock.unlock(front);
    is_taken
}

#[inline(never)]
fn take_by_library(front: &Front, lock: &ReentrantMutex<()>) -> bool {
    let _held = lock.lock();
    front.take_byte().is_some()
}
