//! Leases of locks that have ended. Data written under one of them are refused, however late they come.
//!
//! A client that is given a lock on a file on which such a lease had an exclusive lock fences that lease at all I/O
//! nodes before it relies on the lock: the earlier owner, whose computer or network was held up, may still have data in
//! flight, and may not know yet that another client has its locks.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};

use crate::error::{Failure, FailureKind};
use crate::protocol::FENCED_MAX;

/// The most leases that are remembered, 1 MiB of them: a client is held up for seconds until one of its leases ends.
const REMEMBERED_MAX: usize = 1 << 16;

/// The leases that are fenced.
#[derive(Default)]
pub(super) struct Fences(RefCell<Fenced>);

#[derive(Default)]
struct Fenced {
    leases: BTreeSet<u64>,
    /// In the order in which they came.
    order: VecDeque<u64>,
}

impl Fences {
    /// Fences leases.
    pub(super) fn raise(&self, leases: &[u64]) -> Result<(), Box<Failure>> {
        if leases.len() > FENCED_MAX {
            let text =
                format!("{} leases are to be fenced, at most {FENCED_MAX} can be at once", leases.len());
            return Err(Failure::invalid(text).into());
        }
        let mut fenced = self.0.borrow_mut();
        for &lease in leases {
            if fenced.leases.insert(lease) {
                fenced.order.push_back(lease);
            }
            if fenced.order.len() > REMEMBERED_MAX
                && let Some(oldest) = fenced.order.pop_front()
            {
                fenced.leases.remove(&oldest);
            }
        }
        Ok(())
    }

    /// Fails if a write was made under a lease that is fenced.
    pub(super) fn check(&self, lease: Option<u64>) -> Result<(), Box<Failure>> {
        match lease.filter(|lease| self.0.borrow().leases.contains(lease)) {
            None => Ok(()),
            Some(_) => {
                let text =
                    "it was written under a lock that has ended, and others have locked the file since";
                Err(Failure::new(FailureKind::Fenced, text).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_under_an_ended_lease_is_refused_and_memory_is_bounded() {
        let fences = Fences::default();
        fences.raise(&[7, 8, 7]).expect("raised");
        assert!(fences.check(Some(7)).is_err_and(|failure| failure.kind == FailureKind::Fenced));
        assert_eq!((fences.check(None), fences.check(Some(9))), (Ok(()), Ok(())));
        let many: Vec<u64> = (100..100 + REMEMBERED_MAX as u64).collect();
        assert!(fences.raise(&many).is_err_and(|failure| failure.kind == FailureKind::Invalid));
        many.chunks(FENCED_MAX).for_each(|some| fences.raise(some).expect("raised"));
        assert_eq!(fences.check(Some(7)), Ok(()), "the oldest go");
        assert!(fences.check(Some(100)).is_err() && fences.0.borrow().order.len() == REMEMBERED_MAX);
    }
}
