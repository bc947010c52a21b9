//! Ended leases of locks. The I/O node refuses data written under them, however late they arrive.
//!
//! If such a lease had an exclusive lock on a file, the next client with a lock on that file must fence the
//! lease: at all I/O nodes, before it relies on the lock. The computer or network of the earlier owner may
//! have been delayed: it may still have data in flight, and may not know that another client has its locks.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use machine::{Condition, NodeId};

use crate::error::{Failure, FailureKind};
use crate::protocol::FENCED_MAX;

/// Limit of leases remembered for one client: those of two answers of the metadata server.
const OF_CLIENT_MAX: usize = 2 * FENCED_MAX;

/// Limit of leases remembered for all disconnected clients together; 2 MiB.
const OF_GONE_MAX: usize = 1 << 16;

/// The fenced leases. A client's leases are displaced only by its own later ones.
#[derive(Default)]
pub(super) struct Fences {
    fenced: RefCell<Fenced>,
    /// Number of [changes](LeasedChange) in progress under each lease.
    in_progress: RefCell<BTreeMap<u64, usize>>,
    ended: Condition,
}

/// Change of a stripe in progress under a lease, if any. A [fence](Fences::raise) of the lease waits until the change
/// ends.
#[must_use]
pub(super) struct LeasedChange<'a> {
    fences: &'a Fences,
    lease: Option<u64>,
}

impl Drop for LeasedChange<'_> {
    fn drop(&mut self) {
        let Some(lease) = self.lease else { return };
        let mut in_progress = self.fences.in_progress.borrow_mut();
        let count = in_progress.get_mut(&lease).expect("a change is in progress");
        *count -= 1;
        if *count == 0 {
            in_progress.remove(&lease);
            self.fences.ended.wake_all();
        }
    }
}

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
    /// Fences leases for a client. Waits until the changes in progress under these leases end.
    pub(super) async fn raise(&self, client: NodeId, leases: &[u64]) -> Result<(), Box<Failure>> {
        self.add(client, leases)?;
        while leases.iter().any(|lease| self.in_progress.borrow().contains_key(lease)) {
            self.ended.wait().await;
        }
        Ok(())
    }

    fn add(&self, client: NodeId, leases: &[u64]) -> Result<(), Box<Failure>> {
        if leases.len() > FENCED_MAX {
            let text = format!("{} leases must be fenced; the limit is {FENCED_MAX} at once", leases.len());
            return Err(Failure::invalid(text).into());
        }
        let Fenced { leases: fenced, of_clients, .. } = &mut *self.fenced.borrow_mut();
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
        let Fenced { leases, of_clients, of_gone } = &mut *self.fenced.borrow_mut();
        of_gone.extend(of_clients.remove(&client).into_iter().flatten());
        Fenced::forget(leases, of_gone, OF_GONE_MAX);
    }

    /// Fails if a write was made under a fenced lease.
    pub(super) fn check(&self, lease: Option<u64>) -> Result<(), Box<Failure>> {
        match lease.filter(|lease| self.fenced.borrow().leases.contains_key(lease)) {
            None => Ok(()),
            Some(_) => {
                machine::sometimes!("a fence rejects a write");
                let text =
                    "it was written under an expired lock, and other clients have locked the file since";
                Err(Failure::new(FailureKind::Fenced, text).into())
            }
        }
    }

    /// Begins a change that other tasks can interrupt. Fails if its lease is fenced.
    pub(super) fn begin_change(&self, lease: Option<u64>) -> Result<LeasedChange<'_>, Box<Failure>> {
        self.check(lease)?;
        if let Some(lease) = lease {
            *self.in_progress.borrow_mut().entry(lease).or_default() += 1;
        }
        Ok(LeasedChange { fences: self, lease })
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn writes_under_an_ended_lease_are_rejected_and_fences_are_limited() {
        let (fences, client, other) = (Fences::default(), NodeId(1), NodeId(2));
        fences.add(client, &[7, 8, 7]).expect("raised");
        assert!(fences.check(Some(7)).is_err_and(|failure| failure.kind == FailureKind::Fenced));
        assert_eq!((fences.check(None), fences.check(Some(9))), (Ok(()), Ok(())));
        let many: Vec<u64> = (100..100 + OF_GONE_MAX as u64).collect();
        assert!(fences.add(other, &many).is_err_and(|failure| failure.kind == FailureKind::Invalid));
        many.chunks(FENCED_MAX).for_each(|some| fences.add(other, some).expect("raised"));
        assert!(fences.check(Some(7)).is_err(), "it is another client's");
        assert_eq!(fences.check(Some(100)), Ok(()), "the oldest of a client go");
        fences.client_disconnected(client);
        many.chunks(FENCED_MAX).take(60).for_each(|some| {
            assert!(fences.check(Some(8)).is_err(), "they stay");
            fences.add(other, some).expect("raised");
            fences.client_disconnected(other);
        });
        many.chunks(FENCED_MAX).for_each(|some| {
            fences.add(other, some).expect("raised");
            fences.client_disconnected(other);
        });
        let fenced = fences.fenced.borrow();
        assert!(fenced.of_gone.len() == OF_GONE_MAX && fenced.of_clients.is_empty());
        assert_eq!(fenced.leases.len(), OF_GONE_MAX, "the oldest fences of disconnected clients are dropped");
    }

    #[test]
    fn a_fence_waits_for_the_changes_in_progress_under_its_leases() {
        let (fences, mut context) = (Fences::default(), Context::from_waker(Waker::noop()));
        let changes = [7, 7, 9].map(|lease| fences.begin_change(Some(lease)).expect("not fenced"));
        let mut raised = pin!(fences.raise(NodeId(1), &[7, 8]));
        assert!(raised.as_mut().poll(&mut context).is_pending());
        let refused = fences.begin_change(Some(7)).map(drop);
        assert!(refused.is_err_and(|failure| failure.kind == FailureKind::Fenced), "no change begins");
        let [first, second, _other] = changes;
        drop(first);
        assert!(raised.as_mut().poll(&mut context).is_pending());
        drop(second);
        assert_eq!(raised.as_mut().poll(&mut context), Poll::Ready(Ok(())));
    }
}
