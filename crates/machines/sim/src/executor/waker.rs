//! Wakers that consist of a number only.
//!
//! Tasks of a simulation are woken hundreds of millions of times, so a waker must not allocate, count or lock. The data
//! pointer of the waker *is* the task's key, and never points anywhere. Cloning copies the number and dropping does
//! nothing. Waking finds the executor in a thread-local table by its number in the key. The standard library's safe
//! way, `Arc<impl Wake>`, would cost an atomic count for each clone and an allocation for each task.
//!
//! This is sound: the four functions treat the pointer as an integer and never dereference it, so there is no dangling
//! pointer, double free or race, on any thread. The contract of `RawWaker` requires no more. A waker that outlives its
//! task wakes no task, because the key has a generation. On another thread a waker finds no executor and does nothing.

use std::ptr;
use std::task::{RawWaker, RawWakerVTable, Waker};

use super::wake_anywhere;

/// Key of a task: its executor's number, its generation and its index, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskKey(u64);

const _: () = assert!(size_of::<usize>() == 8, "a task's key needs the whole of a 64-bit pointer");

impl TaskKey {
    /// Modulus of generations. After a wrap-around a stale waker may wake a task spuriously, which does no other harm.
    pub(crate) const GENERATION_END: u32 = 1 << 24;

    pub(crate) fn new(executor: u16, generation: u32, index: usize) -> Self {
        debug_assert!(generation < Self::GENERATION_END && index < crate::agenda::INDEX_END);
        TaskKey(u64::from(executor) << 48 | u64::from(generation) << 24 | index as u64)
    }

    /// Returns the key behind `waker`, if it is a waker of this module and not a combinator's.
    pub(crate) fn of(waker: &Waker) -> Option<Self> {
        ptr::eq(waker.vtable(), &VTABLE).then(|| TaskKey(waker.data().addr() as u64))
    }

    pub(crate) fn executor(self) -> u16 {
        (self.0 >> 48) as u16
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 24) as u32 & (Self::GENERATION_END - 1)
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize & (crate::agenda::INDEX_END - 1)
    }

    pub(crate) fn waker(self) -> Waker {
        #[expect(unsafe_code, reason = "the data are a number, which no function of the vtable follows")]
        // SAFETY: see the module header.
        unsafe {
            Waker::from_raw(self.raw())
        }
    }

    fn raw(self) -> RawWaker {
        RawWaker::new(ptr::without_provenance(self.0 as usize), &VTABLE)
    }
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake, |_| ());

fn clone(data: *const ()) -> RawWaker {
    TaskKey(data.addr() as u64).raw()
}

fn wake(data: *const ()) {
    wake_anywhere(TaskKey(data.addr() as u64));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waker_returns_the_key_of_its_task() {
        let key = TaskKey::new(u16::MAX, TaskKey::GENERATION_END - 1, 12345);
        let waker = key.waker().clone();
        assert_eq!(TaskKey::of(&waker), Some(key));
        assert_eq!((key.executor(), key.generation(), key.index()), (u16::MAX, (1 << 24) - 1, 12345));
        assert_eq!(TaskKey::of(Waker::noop()), None);
        waker.wake();
    }
}
