//! Collective requests served at the same time, and the memory of their queues.
//!
//! - A limited number is served at a time. A client may not have more in service than are still free, so that
//!   a client that sends many leaves half to others.
//! - The queues of all requests together have limited memory. A request waits for its share before it moves
//!   any data.

use machine::{Buf, BufferPool, Condition, InFlight, Message, OperationInFlight};

use super::client_account::Account;
use crate::error::Failure;
use crate::keyed_mutex::KeyedMutex;
use crate::protocol::FileId;

/// Limit of collective requests served at a time; others wait. A client may not have more in service than are
/// still free.
const COLLECTIVES_MAX: usize = 16;

/// Memory for the queues of all collective requests together, in bytes. This is more than any two of them
/// need, since a block is no larger than a message's payload.
const QUEUE_BYTES: u64 = 64 << 20;

/// Size of a queue in blocks, if a message may carry several blocks and there is enough memory.
///
/// Heads of pieces take some of the space: a queue of one block would have none for the second half of it.
/// And each message wakes a member, which takes long where there are more processes than processors. Measured
/// with eight processes of MPICH on two busy processors: with four blocks a message, writes were 1.1 to 1.3
/// times as fast as with one, and reads 1.1 to 1.9 times.
const BLOCKS_IN_QUEUE: u64 = 4;

/// A block of which parts are written: its file, its stripe, and its offset in bytes within the stripe.
pub(super) type PatchedBlock = (FileId, u32, u64);

/// The collective requests in service.
pub(super) struct Collectives {
    served: InFlight,
    done: Condition,
    queue_memory: BufferPool,
    /// Mutual exclusion for blocks of which parts are written, and the bytes between them must not change.
    pub(super) patched: KeyedMutex<PatchedBlock>,
}

/// The right to be served, until this is dropped.
pub(super) struct CollectiveTurn<'a> {
    operations: Option<(OperationInFlight, OperationInFlight)>,
    done: &'a Condition,
}

impl Drop for CollectiveTurn<'_> {
    fn drop(&mut self) {
        self.operations.take();
        self.done.wake_all();
    }
}

impl Collectives {
    pub(super) fn new() -> Self {
        Collectives {
            served: InFlight::new(),
            done: Condition::new(),
            queue_memory: BufferPool::new(QUEUE_BYTES),
            patched: KeyedMutex::default(),
        }
    }

    /// Waits until a request of this client may be served. Fails if the client disconnects before.
    pub(super) async fn turn(&self, account: &Account) -> Result<CollectiveTurn<'_>, Box<Failure>> {
        while account.collectives.count() >= COLLECTIVES_MAX - self.served.count() {
            self.done.wait().await;
            account.check()?;
        }
        let operations = Some((self.served.begin(), account.collectives.begin()));
        Ok(CollectiveTurn { operations, done: &self.done })
    }

    /// Wakes waiting requests, so that those of a disconnected client fail.
    pub(super) fn client_disconnected(&self) {
        self.done.wake_all();
    }

    /// Returns the number of buffers for the queues of a collective request, if `queued`, with the permit for
    /// their memory.
    pub(super) async fn queue_buffers_for(
        &self,
        queued: bool,
        members: usize,
        block_bytes: u64,
    ) -> (Option<u64>, Option<Buf>) {
        if !queued {
            return (None, None);
        }
        let buffers = queue_buffers(members, block_bytes);
        (Some(buffers), Some(self.queue_memory.take(buffers * block_bytes).await))
    }
}

/// Returns the number of buffers of a collective request's queues: two for each member, one to fill and one
/// in flight, limited by the request's share of the memory for all queues.
fn queue_buffers(members: usize, block_bytes: u64) -> u64 {
    (2 * members as u64).min((QUEUE_BYTES / 4 / block_bytes.max(1)).max(1))
}

/// Returns the size in bytes of a queue for several blocks. The size is limited so that each member can have
/// two such queues, but is at least one block.
pub(super) fn roomy_queue_bytes(members: usize, block_bytes: u64) -> u64 {
    let most = QUEUE_BYTES / 4 / (2 * members as u64).max(1);
    (block_bytes * BLOCKS_IN_QUEUE).min(most).min(Message::PAYLOAD_BYTES_MAX).max(block_bytes)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn turn<'a>(collectives: &'a Collectives, account: &Account) -> Option<CollectiveTurn<'a>> {
        match pin!(collectives.turn(account)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => Some(turn.expect("the client is there")),
            Poll::Pending => None,
        }
    }

    fn turns<'a>(collectives: &'a Collectives, account: &Account) -> Vec<CollectiveTurn<'a>> {
        std::iter::from_fn(|| turn(collectives, account)).collect()
    }

    #[test]
    fn a_client_with_many_collective_operations_leaves_half_to_others() {
        let (collectives, one, other) =
            (Collectives::new(), Account::new(machine::NodeId(1)), Account::new(machine::NodeId(2)));
        let of_one = turns(&collectives, &one);
        let of_other = turns(&collectives, &other);
        assert_eq!((of_one.len(), of_other.len()), (COLLECTIVES_MAX / 2, COLLECTIVES_MAX / 4));
        drop(of_one);
        assert!(turn(&collectives, &one).is_some());
    }

    #[test]
    fn queues_of_one_group_take_at_most_a_quarter_of_the_memory() {
        assert_eq!(queue_buffers(16, 8192), 32);
        for (members, block_bytes) in [(1 << 20, 8192), (9, 1 << 20), (1, QUEUE_BYTES)] {
            let buffers = queue_buffers(members, block_bytes);
            assert!(buffers >= 1 && (buffers == 1 || buffers * block_bytes <= QUEUE_BYTES / 4));
        }
    }
    #[test]
    fn larger_queues_do_not_reduce_the_number_of_queues() {
        assert_eq!(roomy_queue_bytes(8, 65_536), 4 * 65_536);
        for (members, block_bytes) in [(8, 1 << 20), (64, 65_536), (1000, 65_536), (1, 4 << 20), (0, 8192)] {
            let bytes = roomy_queue_bytes(members, block_bytes);
            assert!((block_bytes..=Message::PAYLOAD_BYTES_MAX).contains(&bytes));
            assert_eq!(queue_buffers(members, bytes), queue_buffers(members, block_bytes));
        }
    }
}
