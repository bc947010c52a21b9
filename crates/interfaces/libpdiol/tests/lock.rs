//! Tests the lock of an open file in every interleaving of a few threads.
//!
//! `loom` runs a model repeatedly, in every order of the threads' steps and with every value that a load may return.
//! The model is the real `src/lock.rs` with other building blocks. According to membarrier(2), a barrier that
//! the kernel makes all threads pass is equivalent to a full barrier on both sides. The model uses such barriers:
//! without them two threads can hold the lock at the same time.
//!
//! Loom also fails a model in which a thread waits or polls for ever, so the tests find lost wake-ups.

use std::cell::Cell;

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;

use front::Front;
use lock::Lock;
use primitives::{AtomicI32, Ordering, order_for_compiler, this_thread, with_name};

#[allow(dead_code, reason = "each model uses a part of the lock")]
#[path = "../src/lock.rs"]
mod lock;

/// Fields of a file that its lock uses.
mod front {
    use crate::primitives::{AtomicI32, AtomicUsize};

    #[derive(Default)]
    pub(crate) struct Front {
        pub(crate) owner: AtomicUsize,
        pub(crate) busy: AtomicI32,
    }
}

/// Building blocks of the lock, made of loom's types.
mod primitives {
    use std::cell::Cell;

    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering, fence};
    use loom::sync::{Condvar, Mutex};
    use loom::thread;

    use super::HAS_BARRIER;

    loom::thread_local! {
        static NAME: Cell<usize> = Cell::new(0);
    }

    /// Runs `work` as the thread with this name, which must not be 0 or 1: these values mean "no thread" and "shared".
    pub(crate) fn with_name<T>(name: usize, work: impl FnOnce() -> T) -> T {
        NAME.with(|cell| cell.set(name));
        work()
    }

    pub(crate) fn this_thread() -> usize {
        NAME.with(Cell::get)
    }

    pub(crate) fn is_barrier_there() -> bool {
        true
    }

    pub(crate) fn order_for_compiler() {
        if HAS_BARRIER.get() {
            fence(Ordering::SeqCst);
        }
    }

    pub(crate) fn barrier_for_all() {
        if HAS_BARRIER.get() {
            fence(Ordering::SeqCst);
        }
    }

    pub(crate) fn pause() {
        thread::yield_now();
    }

    /// Lock that one thread may take several times.
    pub(crate) struct Ordinary {
        held: Mutex<Option<(usize, u32)>>,
        free: Condvar,
    }

    impl Ordinary {
        pub(crate) fn new() -> Self {
            Ordinary { held: Mutex::new(None), free: Condvar::new() }
        }

        pub(crate) fn lock(&self) {
            let mut held = self.held.lock().expect("no panic");
            while held.is_some_and(|(holder, _)| holder != this_thread()) {
                held = self.free.wait(held).expect("no panic");
            }
            *held = Some((this_thread(), held.map_or(1, |(_, times)| times + 1)));
        }

        pub(crate) fn try_lock(&self) -> bool {
            let mut held = self.held.lock().expect("no panic");
            let mine = held.is_none_or(|(holder, _)| holder == this_thread());
            if mine {
                *held = Some((this_thread(), held.map_or(1, |(_, times)| times + 1)));
            }
            mine
        }

        pub(crate) fn unlock_if_mine(&self) -> bool {
            let mut held = self.held.lock().expect("no panic");
            let Some((holder, times)) = held.filter(|(holder, _)| *holder == this_thread()) else {
                return false;
            };
            *held = (times > 1).then_some((holder, times - 1));
            if held.is_none() {
                self.free.notify_one();
            }
            true
        }
    }
}

thread_local! {
    /// True if the model has the barrier. A thread-local value suffices, because all threads of a model run on one
    /// thread of the system.
    static HAS_BARRIER: Cell<bool> = const { Cell::new(true) };
}

/// File whose lock guards a count. Loom fails a model in which two threads use the count at the same time, or in which
/// a thread does not see the changes of another.
struct Counted {
    front: Front,
    lock: Lock,
    count: UnsafeCell<u32>,
}

impl Counted {
    fn new() -> Arc<Self> {
        let front = Front::default();
        let lock = Lock::new(&front);
        Arc::new(Counted { front, lock, count: UnsafeCell::new(0) })
    }

    /// Increments the count. The caller must hold the lock.
    #[expect(unsafe_code, reason = "the test checks that the lock makes this sound")]
    fn touch(&self) -> u32 {
        // SAFETY: loom checks that no other thread uses the count.
        self.count.with_mut(|count| unsafe {
            *count += 1;
            *count
        })
    }

    fn count(&self) -> u32 {
        self.lock.lock(&self.front);
        let count = self.touch();
        self.lock.unlock(&self.front);
        count
    }

    /// Increments the count like the header does for a single byte: a line-by-line copy of `pdiol_enter_` and
    /// `pdiol_leave_` in `include/pdiol.h`.
    fn count_in_header(&self) -> u32 {
        let (Front { owner, busy }, this) = (&self.front, this_thread());
        if owner.load(Ordering::Relaxed) != this {
            return self.count();
        }
        let before = busy.load(Ordering::Relaxed);
        busy.store(before + 1, Ordering::Relaxed);
        order_for_compiler();
        if owner.load(Ordering::Relaxed) == this {
            let count = self.touch();
            leave(busy, before);
            return count;
        }
        leave(busy, before);
        self.count()
    }
}

fn leave(busy: &AtomicI32, before: i32) {
    busy.store(before, Ordering::Release);
}

/// Explores all orders with at most `switches` preemptions (switches away from a thread that could continue), or
/// `LOOM_MAX_PREEMPTIONS`, if that is set.
fn model(switches: usize, scenario: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(switches));
    builder.check(scenario);
}

fn owner_and_newcomer() {
    let counted = Counted::new();
    let newcomer = {
        let counted = counted.clone();
        thread::spawn(move || with_name(20, || counted.count()))
    };
    with_name(10, || {
        counted.count();
        counted.count_in_header();
        counted.count_in_header();
    });
    newcomer.join().expect("no panic");
    assert_eq!(with_name(10, || counted.count()), 5);
}

#[test]
fn an_owner_and_a_newcomer_exclude_each_other() {
    model(3, owner_and_newcomer);
}

#[test]
#[should_panic(expected = "Concurrent write accesses")]
fn without_the_barrier_two_threads_enter_the_lock() {
    HAS_BARRIER.set(false);
    model(3, owner_and_newcomer);
}

#[test]
fn an_owner_and_two_newcomers_exclude_each_other() {
    model(2, || {
        let counted = Counted::new();
        let newcomers: Vec<_> = [20, 30]
            .into_iter()
            .map(|name| {
                let counted = counted.clone();
                thread::spawn(move || with_name(name, || counted.count()))
            })
            .collect();
        with_name(10, || counted.count());
        newcomers.into_iter().for_each(|newcomer| _ = newcomer.join().expect("no panic"));
        assert_eq!(with_name(10, || counted.count_in_header()), 4);
    });
}

#[test]
fn the_holder_can_lock_again_while_another_thread_tries() {
    model(2, || {
        let counted = Counted::new();
        let newcomer = {
            let counted = counted.clone();
            thread::spawn(move || {
                with_name(20, || {
                    let tried = counted.lock.try_lock(&counted.front);
                    if tried {
                        counted.touch();
                        counted.lock.unlock(&counted.front);
                    }
                    counted.count();
                    u32::from(tried)
                })
            })
        };
        with_name(10, || {
            counted.lock.lock(&counted.front);
            let first = counted.touch();
            assert!(counted.lock.try_lock(&counted.front), "it has it");
            assert_eq!(counted.count(), first + 1);
            counted.lock.unlock(&counted.front);
            assert_eq!(counted.count_in_header(), first + 2, "this thread still holds the lock");
            counted.lock.unlock(&counted.front);
        });
        let tried_by_other = newcomer.join().expect("no panic");
        assert_eq!(with_name(10, || counted.count()), 5 + tried_by_other);
    });
}
