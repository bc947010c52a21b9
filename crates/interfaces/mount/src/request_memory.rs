//! Buffer pool for write requests.
//!
//! ```text
//!   thread of the kernel's requests                    node thread
//!     data -> memory that was used before -- write --> page cache -- sent, dropped ----.
//!                ^                                                                     |
//!                '---------------------------- spare memory <--------------------------'
//! ```
//!
//! The kernel clears new memory page by page at the first access, which costs more than the copy into that memory. Only
//! large requests use the pool, because a small request would leave most of a pooled buffer unused.

use flume::{Receiver, Sender};

/// Number of buffers kept for reuse: enough for the requests of one program that are in flight at the same time.
const SPARES: usize = 8;

/// Minimum size in bytes of a request that uses a pooled buffer. All pooled buffers have the size of the largest
/// request.
const LARGE_BYTES: usize = 512 << 10;

/// The end of the pool that takes back buffers.
pub(crate) struct SpareGiver(Sender<Vec<u8>>);

/// The end of the pool that hands out buffers.
pub(crate) struct SpareTaker(Receiver<Vec<u8>>);

/// Returns both ends of a new pool.
pub(crate) fn spare_memory() -> (SpareGiver, SpareTaker) {
    let (give, take) = flume::bounded(SPARES);
    (SpareGiver(give), SpareTaker(take))
}

impl SpareGiver {
    /// Returns the buffer of a request of `bytes` bytes to the pool, if the request was large and the pool has room;
    /// `find` supplies the buffer.
    pub(crate) fn give(&self, bytes: usize, find: impl FnOnce(usize) -> Vec<u8>) {
        if bytes >= LARGE_BYTES && !self.0.is_full() {
            // An error means that the other end is closed.
            let _ = self.0.try_send(find(bytes));
        }
    }
}

impl SpareTaker {
    /// Copies the data of a request.
    pub(crate) fn copy(&self, data: &[u8]) -> Vec<u8> {
        if data.len() < LARGE_BYTES {
            return data.to_vec();
        }
        let mut memory = self.0.try_recv().unwrap_or_default();
        memory.clear();
        memory.extend_from_slice(data);
        memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_large_requests_is_reused() {
        let (giver, taker) = spare_memory();
        let first = taker.copy(&[1; 1 << 20]);
        let place = first.as_ptr();
        giver.give(first.len(), |_| first);
        let second = taker.copy(&[2; LARGE_BYTES]);
        assert!(second.as_ptr() == place && second == [2; LARGE_BYTES]);
        assert_eq!(taker.copy(&[3; 1 << 20]), [3; 1 << 20]);
    }

    #[test]
    fn spare_memory_is_limited_and_small_requests_use_none() {
        let (giver, taker) = spare_memory();
        giver.give(4096, |_| unreachable!("it is small"));
        for _ in 0..SPARES {
            giver.give(1 << 20, Vec::with_capacity);
        }
        giver.give(1 << 20, |_| unreachable!("there is enough"));
        assert!(taker.copy(&[1; 4096]).capacity() < LARGE_BYTES);
    }
}
