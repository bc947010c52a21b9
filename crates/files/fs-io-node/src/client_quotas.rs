//! A resource that clients share: each may have a small amount in any case, and beyond that as much as is
//! still free.
//!
//! The guaranteed part keeps greedy clients, however many, from starving others. The rest follows a *dynamic
//! threshold* (Choudhury and Hahne 1998): a single client gets half of it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use machine::NodeId;

/// The shares of all clients. Clones refer to the same shares.
#[derive(Clone)]
pub(super) struct Shares(Rc<RefCell<Inner>>);

struct Inner {
    /// Amount that each client may have in any case.
    each: u64,
    /// Free amount beyond that, for all clients.
    free: u64,
    taken: BTreeMap<NodeId, u64>,
}

/// A part of a client's share, until this is dropped.
#[must_use = "dropped at once, it returns at once"]
pub(super) struct Share {
    shares: Shares,
    client: NodeId,
    amount: u64,
}

impl Shares {
    /// Creates shares with `each` for every client, and `common` beyond that for all of them.
    pub(super) fn new(each: u64, common: u64) -> Self {
        Shares(Rc::new(RefCell::new(Inner { each, free: common, taken: BTreeMap::new() })))
    }

    /// Takes an amount for a client. Fails if the client's total beyond its guaranteed part would exceed the
    /// amount that stays free.
    pub(super) fn try_take(&self, client: NodeId, amount: u64) -> Option<Share> {
        self.try_add(client, amount).then(|| Share { shares: self.clone(), client, amount })
    }

    /// Takes an amount for a client like [`try_take`](Self::try_take), to be [returned](Self::remove) by the
    /// caller.
    pub(super) fn try_add(&self, client: NodeId, amount: u64) -> bool {
        let inner = &mut *self.0.borrow_mut();
        let before = inner.taken.get(&client).copied().unwrap_or(0);
        let Some(after) = before.checked_add(amount) else { return false };
        let beyond = |taken: u64| taken.saturating_sub(inner.each);
        let more = beyond(after) - beyond(before);
        // A client that takes nothing from the others always may, for example to release a lock.
        if more > 0 && (more > inner.free || beyond(after) > inner.free - more) {
            return false;
        }
        inner.free -= more;
        inner.taken.insert(client, after);
        true
    }

    /// Returns to the shares an amount that a client has taken.
    pub(super) fn remove(&self, client: NodeId, amount: u64) {
        let inner = &mut *self.0.borrow_mut();
        let Some(taken) = inner.taken.get_mut(&client) else { return };
        let after = taken.saturating_sub(amount);
        inner.free += taken.saturating_sub(inner.each) - after.saturating_sub(inner.each);
        *taken = after;
        if after == 0 {
            inner.taken.remove(&client);
        }
    }

    /// Returns to the shares all that a client has taken.
    pub(super) fn remove_all(&self, client: NodeId) {
        self.remove(client, u64::MAX);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shares.remove(self.client, self.amount);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_client_has_its_share_despite_greedy_clients() {
        let shares = Shares::new(4, 1000);
        let greedy = |client| std::iter::from_fn(move || Some(client));
        let taken: Vec<u64> = (0..100)
            .map(|client| greedy(client).take_while(|_| shares.try_add(NodeId(client), 1)).count() as u64)
            .collect();
        assert_eq!((taken[0], taken[1]), (504, 254), "half of the free amount, and the share of each client");
        assert!(taken.iter().all(|&taken| taken >= 4) && taken.iter().sum::<u64>() <= 100 * 4 + 1000);
        assert!(shares.try_take(NodeId(100), 5).is_none() && shares.try_add(NodeId(100), 4));
        shares.remove_all(NodeId(0));
        assert!(shares.try_take(NodeId(1), 100).is_some());
    }

    #[test]
    fn one_large_request_gets_at_most_half() {
        let shares = Shares::new(4, 1000);
        assert!(!shares.try_add(NodeId(0), 505) && shares.try_add(NodeId(0), 504));
        assert!(shares.try_add(NodeId(1), 254), "the other half is free");
    }

    #[test]
    fn a_client_at_its_limit_may_add_zero_but_not_one() {
        let shares = Shares::new(4, 1000);
        assert!(shares.try_add(NodeId(0), 504) && shares.try_add(NodeId(1), 254));
        assert!(shares.try_add(NodeId(0), 0) && !shares.try_add(NodeId(0), 1));
    }

    proptest! {
        #[test]
        fn returned_shares_are_free_again(takes in prop::collection::vec((0u64..5, 0u64..40), 0..60)) {
            let shares = Shares::new(10, 100);
            let mut kept = Vec::new();
            for (client, amount) in takes {
                kept.extend(shares.try_take(NodeId(client), amount));
                if kept.len() > 7 {
                    drop(kept.remove(amount as usize % kept.len()));
                }
                let inner = shares.0.borrow();
                let beyond: u64 = inner.taken.values().map(|taken| taken.saturating_sub(10)).sum();
                prop_assert_eq!(inner.free + beyond, 100);
            }
            drop(kept);
            prop_assert!(shares.0.borrow().taken.is_empty() && shares.0.borrow().free == 100);
        }
    }
}
