//! Background page reads, and the decision to promote one at its I/O node.
//!
//! A caller may need a page that is being prefetched. If its request has not left yet, it is sent at demand priority.
//! If it has left, a message to its I/O node helps only if the request must wait there. That is the case behind another
//! page that this client requested before. Behind other clients it is likely when that node's last reply took long. A
//! message for each page would cost more than it saves when I/O nodes answer at once.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use machine::{Class, Duration, NodeId};

/// Response time above which a page is promoted even if no other page of this client is ahead of it at its I/O node.
/// This is the time of a few disk accesses, so the node is busy with other clients.
const PROMOTED_AFTER: Duration = Duration::from_millis(20);

/// The reads of a cache, each identified by its I/O node and its number.
#[derive(Default)]
pub(super) struct BackgroundReads {
    /// The background reads in flight; true if the request of a read has left.
    under_way: RefCell<BTreeMap<(NodeId, u64), bool>>,
    /// Number of reads begun.
    begun: Cell<u64>,
    /// Response time of each I/O node for the last page it sent.
    response: RefCell<BTreeMap<NodeId, Duration>>,
}

impl BackgroundReads {
    /// Begins a read and returns its number.
    pub(super) fn begin(&self, node: NodeId, class: Class) -> u64 {
        let number = self.begun.get();
        self.begun.set(number + 1);
        if class == Class::Background {
            self.under_way.borrow_mut().insert((node, number), false);
        }
        number
    }

    /// Returns the class of a read whose request leaves now.
    pub(super) fn leave(&self, node: NodeId, number: u64) -> Class {
        match self.under_way.borrow_mut().get_mut(&(node, number)) {
            Some(left) => {
                *left = true;
                Class::Background
            }
            None => Class::Demand,
        }
    }

    /// Ends a read, which took `took`.
    pub(super) fn end(&self, node: NodeId, number: u64, took: Duration) {
        self.response.borrow_mut().insert(node, took);
        self.under_way.borrow_mut().remove(&(node, number));
    }

    /// Records that a caller waits for a background read. Returns true if a message to the I/O node would help.
    pub(super) fn promote(&self, node: NodeId, number: u64) -> bool {
        let mut under_way = self.under_way.borrow_mut();
        let others_first = under_way.range((node, 0)..(node, number)).next().is_some();
        let left = under_way.remove(&(node, number)) == Some(true);
        let slow = self.response.borrow().get(&node).is_some_and(|&response| response > PROMOTED_AFTER);
        left && (others_first || slow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(3);

    fn in_background(reads: &BackgroundReads) -> u64 {
        reads.begin(NODE, Class::Background)
    }

    #[test]
    fn an_unsent_background_read_is_sent_as_demand_after_promotion() {
        let reads = BackgroundReads::default();
        let (one, other) = (in_background(&reads), in_background(&reads));
        assert!(!reads.promote(NODE, one), "its request will be sent as demand");
        assert_eq!((reads.leave(NODE, one), reads.leave(NODE, other)), (Class::Demand, Class::Background));
        let on_demand = reads.begin(NODE, Class::Demand);
        assert_eq!(reads.leave(NODE, on_demand), Class::Demand);
    }

    #[test]
    fn a_promotion_is_sent_if_other_reads_are_ahead() {
        let reads = BackgroundReads::default();
        let pages = [in_background(&reads), in_background(&reads), in_background(&reads)];
        pages.iter().for_each(|&page| _ = reads.leave(NODE, page));
        assert!(!reads.promote(NODE, pages[0]), "it is at the head of the queue");
        assert!(reads.promote(NODE, pages[2]), "the second is before it");
        assert!(!reads.promote(NODE, pages[2]), "once is enough");
        assert!(!reads.promote(NODE, pages[1]));
    }

    #[test]
    fn a_promotion_is_sent_to_a_slow_node() {
        let reads = BackgroundReads::default();
        let first = in_background(&reads);
        reads.end(NODE, first, PROMOTED_AFTER + Duration::from_nanos(1));
        let second = in_background(&reads);
        reads.leave(NODE, second);
        assert!(reads.promote(NODE, second));
        let third = in_background(&reads);
        reads.leave(NODE, third);
        reads.end(NODE, first, PROMOTED_AFTER);
        assert!(!reads.promote(NODE, third));
    }
}
