//! Tests the lock of an open file with real threads. `tests/lock.rs` explores all interleavings.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::front::Front;
use crate::lock::Lock;

struct Counted {
    front: Front,
    lock: Lock,
    count: UnsafeCell<u64>,
}

#[expect(unsafe_code, reason = "the test checks that the lock makes this sound")]
// SAFETY: only the thread that holds the lock uses the count.
unsafe impl Sync for Counted {}

impl Counted {
    fn new() -> Arc<Self> {
        let front = Front::default();
        let lock = Lock::new(&front);
        Arc::new(Counted { front, lock, count: UnsafeCell::new(0) })
    }

    #[expect(unsafe_code, reason = "the test checks that the lock makes this sound")]
    fn count(&self) -> u64 {
        self.lock.lock(&self.front);
        // SAFETY: this thread holds the lock.
        let count = unsafe {
            *self.count.get() += 1;
            *self.count.get()
        };
        self.lock.unlock(&self.front);
        count
    }
}

#[test]
fn threads_exclude_each_other_at_any_start_time() {
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
fn a_lock_is_recursive_and_blocks_others_until_the_last_unlock() {
    let counted = Counted::new();
    counted.lock.lock(&counted.front);
    let other = {
        let counted = counted.clone();
        thread::spawn(move || (counted.lock.try_lock(&counted.front), counted.count()))
    };
    thread::sleep(Duration::from_millis(20));
    assert_eq!(counted.count(), 1);
    assert!(counted.lock.try_lock(&counted.front), "this thread already holds the lock");
    counted.lock.unlock(&counted.front);
    counted.lock.unlock(&counted.front);
    assert_eq!(other.join().expect("no panic"), (false, 2));
    assert_eq!(counted.count(), 3);
}
