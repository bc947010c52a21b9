//! Memory of one collective call for the next.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// No more than this is kept: a program that moves more at a time may want the memory itself meanwhile.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Memory that was used before, if there is any: the system hands out new memory page by page, which takes about as
/// long as a copy.
#[derive(Default)]
pub(crate) struct SpareMemory(Mutex<Vec<u8>>);

impl SpareMemory {
    /// All of it, whatever it contains. Another thread has none meanwhile.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.spare())
    }

    /// Keeps this for the next call, or what there is already, if that is larger.
    pub(crate) fn keep(&self, memory: Vec<u8>) {
        let mut spare = self.spare();
        if spare.capacity() < memory.capacity() && memory.capacity() <= KEPT_BYTES_MAX {
            *spare = memory;
        }
    }

    fn spare(&self) -> MutexGuard<'_, Vec<u8>> {
        // Nothing panics under the lock that would leave less than a vector.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_is_kept_and_no_more_than_the_most() {
        let spare = SpareMemory::default();
        for (bytes, kept) in [(100, 100), (10, 100), (1000, 1000), (KEPT_BYTES_MAX + 1, 1000)] {
            spare.keep(Vec::with_capacity(bytes));
            assert_eq!(spare.spare().capacity(), kept);
        }
        assert_eq!((spare.take().capacity(), spare.take().capacity()), (1000, 0));
    }
}
