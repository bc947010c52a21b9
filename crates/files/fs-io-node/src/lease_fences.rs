//! Ended leases of locks. The I/O node refuses data written under them, however late they arrive.
//!
//! If such a lease had an exclusive lock on a file, the next client with a lock on that file must fence the
//! lease: at all I/O nodes, before it relies on the lock. The computer or network of the earlier owner may
//! have been delayed: it may still have data in flight, and may not know that another client has its locks.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use machine::NodeId;

use crate::error::{Failure, FailureKind};
use crate::protocol::FENCED_MAX;

/// Limit of leases remembered for one client: those of two answers of the metadata server.
const OF_CLIENT_MAX: usize = 2 * FENCED_MAX;

/// Limit of leases remembered for all disconnected clients together; 2 MiB.
const OF_GONE_MAX: usize = 1 << 16;

/// The fenced leases. A client's leases are displaced only by its own later ones.
#[derive(Default)]
pub(super) struct Fences(RefCell<Fenced>);

#[derive(Default)]
struct Fenced {
    /// Number of clients, connected or not, that have fenced each lease.
    leases: BTreeMap<u64, usize>,
    /// The leases of each client, in order of arrival.
    of_clients: BTreeMap<NodeId, VecDeque<u64>>,
    of_gone: VecDeque<u64>,
}

impl Fenced {
    /// Drops the first leases of a queue that has more than `most`.
    fn forget(leases: &mut BTreeMap<u64, usize>, queue: &mut VecDeque<u64>, most: usize) {
        while queue.len() > most
            && let Some(oldest) = queue.pop_front()
            && let Some(count) = leases.get_mut(&oldest)
        {
            *count -= 1;
            if *count == 0 {
                leases.remove(&oldest);
            }
        }
    }
}

impl Fences {
    /// Fences leases for a client.
    pub(super) fn raise(&self, client: NodeId, leases: &[u64]) -> Result<(), Box<Failure>> {
        if leases.len() > FENCED_MAX {
            let text = format!("{} leases must be fenced; the limit is {FENCED_MAX} at once", leases.len());
            return Err(Failure::invalid(text).into());
        }
        let Fenced { leases: fenced, of_clients, .. } = &mut *self.0.borrow_mut();
        let of_client = of_clients.entry(client).or_default();
        for &lease in leases {
            *fenced.entry(lease).or_default() += 1;
            of_client.push_back(lease);
        }
        Fenced::forget(fenced, of_client, OF_CLIENT_MAX);
        Ok(())
    }

    /// Handles the disconnect of a client. Its leases stay fenced: data may still arrive late.
    pub(super) fn client_disconnected(&self, client: NodeId) {
        let Fenced { leases, of_clients, of_gone } = &mut *self.0.borrow_mut();
        of_gone.extend(of_clients.remove(&client).into_iter().flatten());
        Fenced::forget(leases, of_gone, OF_GONE_MAX);
    }

    /// Fails if a write was made under a fenced lease.
    pub(super) fn check(&self, lease: Option<u64>) -> Result<(), Box<Failure>> {
        match lease.filter(|lease| self.0.borrow().leases.contains_key(lease)) {
            None => Ok(()),
            Some(_) => {
                let text =
                    "it was written under an expired lock, and other clients have locked the file since";
                Err(Failure::new(FailureKind::Fenced, text).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_under_an_ended_lease_are_rejected_and_fences_are_limited() {
        let (fences, client, other) = (Fences::default(), NodeId(1), NodeId(2));
        fences.raise(client, &[7, 8, 7]).expect("raised");
        assert!(fences.check(Some(7)).is_err_and(|failure| failure.kind == FailureKind::Fenced));
        assert_eq!((fences.check(None), fences.check(Some(9))), (Ok(()), Ok(())));
        let many: Vec<u64> = (100..100 + OF_GONE_MAX as u64).collect();
        assert!(fences.raise(other, &many).is_err_and(|failure| failure.kind == FailureKind::Invalid));
        many.chunks(FENCED_MAX).for_each(|some| fences.raise(other, some).expect("raised"));
        assert!(fences.check(Some(7)).is_err(), "it is another client's");
        assert_eq!(fences.check(Some(100)), Ok(()), "the oldest of a client go");
        fences.client_disconnected(client);
        many.chunks(FENCED_MAX).take(60).for_each(|some| {
            assert!(fences.check(Some(8)).is_err(), "they stay");
            fences.raise(other, some).expect("raised");
            fences.client_disconnected(other);
        });
        many.chunks(FENCED_MAX).for_each(|some| {
            fences.raise(other, some).expect("raised");
            fences.client_disconnected(other);
        });
        let fenced = fences.0.borrow();
        assert!(fenced.of_gone.len() == OF_GONE_MAX && fenced.of_clients.is_empty());
        assert_eq!(fenced.leases.len(), OF_GONE_MAX, "the oldest fences of disconnected clients are dropped");
    }
}
