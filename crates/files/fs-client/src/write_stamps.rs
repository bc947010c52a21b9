//! Tracks the state of changes that an I/O node has accepted: accepted, on the medium, or lost.
//!
//! An I/O node answers a write before the data are on the medium, and returns its incarnation, which is new after each
//! restart (`run` in the code). The client numbers these answers as they arrive. Incarnation and number are the *stamp*
//! of a write; in NFS the incarnation is the verifier of a write (RFC 1813, 3.3.7). A flush covers all writes answered
//! before it began. So comparing a stamp yields the state of its write:
//!
//! ```text
//!  its incarnation has flushed up to this number        on the medium
//!  if not, and a later incarnation has answered since   lost
//!  else                                                 accepted
//! ```
//!
//! I/O nodes number nothing. An answer that arrives during a flush has a number beyond that flush, so its write is
//! flushed again.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use machine::NodeId;

/// Number of incarnations of an I/O node that the client remembers. Unflushed writes of earlier ones count as lost.
const RUNS_MAX: usize = 64;

/// Identifies the last write to a file or stripe among earlier and later writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteStamp {
    /// The I/O node that accepted the write.
    pub(super) node: NodeId,
    /// The incarnation of the I/O node.
    pub(super) run: u64,
    /// The number of the answer, from 1.
    pub(super) number: u64,
}

/// State of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteState {
    Accepted,
    OnMedium,
    Lost,
}

/// The known incarnations of I/O nodes, and the writes that each has flushed.
#[derive(Default)]
pub(super) struct Durability {
    /// Number of the last answer.
    last: Cell<u64>,
    nodes: RefCell<BTreeMap<NodeId, Incarnations>>,
}

/// The incarnations of an I/O node.
#[derive(Default)]
struct Incarnations {
    /// Each incarnation with the number up to which it has flushed all its accepted writes, oldest first.
    known: Vec<(u64, u64)>,
    /// Number of incarnations so far.
    count: u64,
    /// The largest disconnect count of the node when a request was sent that an incarnation has answered.
    last_disconnects: u64,
}

impl Incarnations {
    fn note_incarnation(&mut self, run: u64, disconnects: u64) {
        let (is_early, is_late) = (disconnects < self.last_disconnects, disconnects > self.last_disconnects);
        self.last_disconnects = self.last_disconnects.max(disconnects);
        match self.known.iter().position(|(known, _)| *known == run) {
            // This is the latest incarnation after all: the answer of an earlier one was recorded later.
            Some(place) if is_late => {
                machine::sometimes!("an incarnation recorded as earlier is the latest", if place + 1 < self.known.len());
                self.known[place..].rotate_left(1);
            }
            Some(_) => {}
            None => {
                machine::sometimes!("an answer of an earlier incarnation comes late", if is_early);
                if self.known.len() == RUNS_MAX {
                    self.known.remove(0);
                }
                let latest = self.known.len();
                self.known.insert(if is_early { latest.saturating_sub(1) } else { latest }, (run, 0));
                self.count += 1;
            }
        }
    }

    fn flushed(&self, run: u64) -> Option<u64> {
        self.known.iter().rev().find(|(known, _)| *known == run).map(|&(_, flushed)| flushed)
    }

    fn place(&self, stamp: WriteStamp) -> WriteState {
        if self.flushed(stamp.run).is_some_and(|flushed| stamp.number <= flushed) {
            return WriteState::OnMedium;
        }
        // The latest incarnation decides, since an answer of an earlier one may arrive after one of a later one.
        match self.known.last() {
            Some(&(latest, _)) if latest != stamp.run => WriteState::Lost,
            _ => WriteState::Accepted,
        }
    }
}

impl Durability {
    /// Returns the number of the last answer. A flush that begins now covers all answers up to it.
    pub(super) fn last(&self) -> u64 {
        self.last.get()
    }

    /// Records that an incarnation of an I/O node answered a request. `disconnects` is the disconnect count of that
    /// node when the request was sent.
    pub(super) fn note_incarnation(&self, node: NodeId, run: u64, disconnects: u64) {
        self.nodes.borrow_mut().entry(node).or_default().note_incarnation(run, disconnects);
    }

    /// Records that an incarnation of an I/O node accepted a write, and returns the write's stamp. `disconnects` is the
    /// disconnect count of that node when the request was sent.
    pub(super) fn accepted(&self, node: NodeId, run: u64, disconnects: u64) -> WriteStamp {
        self.note_incarnation(node, run, disconnects);
        self.last.set(self.last.get() + 1);
        WriteStamp { node, run, number: self.last.get() }
    }

    /// Records that an incarnation of an I/O node has flushed all its accepted writes up to a number.
    pub(super) fn flushed(&self, node: NodeId, run: u64, number: u64) {
        let mut nodes = self.nodes.borrow_mut();
        let known = nodes.entry(node).or_default().known.iter_mut().find(|(known, _)| *known == run);
        if let Some((_, flushed)) = known {
            *flushed = number.max(*flushed);
        }
    }

    /// Returns the number of known restarts of an I/O node.
    pub(super) fn new_runs(&self, node: NodeId) -> u64 {
        self.nodes.borrow().get(&node).map_or(0, |runs| runs.count.saturating_sub(1))
    }

    fn place(&self, stamp: WriteStamp) -> WriteState {
        self.nodes.borrow().get(&stamp.node).map_or(WriteState::Accepted, |runs| runs.place(stamp))
    }

    fn is_lost(&self, stamp: WriteStamp) -> bool {
        self.place(stamp) == WriteState::Lost
    }

    /// Returns true if a write is lost, or may be: no incarnation has answered a request made at disconnect count
    /// `disconnects`.
    fn is_doubtful(&self, stamp: WriteStamp, disconnects: u64) -> bool {
        let nodes = self.nodes.borrow();
        nodes.get(&stamp.node).is_none_or(|runs| runs.last_disconnects != disconnects) || self.is_lost(stamp)
    }
}

/// Returns the lowest number to keep when the quarter of the entries with the lowest numbers is dropped.
pub(super) fn first_kept(numbers: impl Iterator<Item = u64>) -> u64 {
    let mut numbers: Vec<u64> = numbers.collect();
    let quarter = numbers.len() / 4;
    if numbers.is_empty() { 0 } else { *numbers.select_nth_unstable(quarter).1 }
}

/// Last writes, by key, that were not on stable storage at the last check.
pub(super) struct Unflushed<K> {
    last: BTreeMap<K, WriteStamp>,
    /// Keys with unreported losses, each with the I/O node.
    lost: BTreeMap<K, NodeId>,
}

impl<K> Default for Unflushed<K> {
    fn default() -> Self {
        Unflushed { last: BTreeMap::new(), lost: BTreeMap::new() }
    }
}

impl<K: Copy + Ord> Unflushed<K> {
    /// Records a write to `key`. A write recorded before may be later, or of a later incarnation.
    pub(super) fn note(&mut self, key: K, stamp: WriteStamp, durability: &Durability) {
        let Some(other) = self.last.insert(key, stamp) else { return };
        let (first, last) = if stamp.number < other.number { (stamp, other) } else { (other, stamp) };
        self.last.insert(key, if durability.is_lost(last) { first } else { last });
        if let Some(lost) = [first, last].into_iter().find(|&stamp| durability.is_lost(stamp)) {
            self.lost.insert(key, lost.node);
        }
    }

    /// Records that an incarnation of an I/O node, which has these keys, has flushed their accepted writes up to a
    /// number. Writes accepted by another I/O node that had the disk before are lost unless that node has flushed them.
    pub(super) fn note_flushed(
        &mut self,
        keys: &BTreeSet<K>,
        (node, run): (NodeId, u64),
        number: u64,
        durability: &Durability,
    ) {
        for (key, stamp) in self.last.extract_if(.., |key, stamp| {
            stamp.number <= number && keys.contains(key) && (stamp.node != node || stamp.run == run)
        }) {
            if stamp.node != node && durability.place(stamp) != WriteState::OnMedium {
                self.lost.insert(key, stamp.node);
            }
        }
    }

    /// Records that all writes up to a number have been flushed.
    pub(super) fn note_all_flushed(&mut self, number: u64) {
        machine::sometimes!("a write is accepted during the flush of another team member", if self.last.values().any(|stamp| stamp.number > number));
        self.last.retain(|_, stamp| stamp.number > number);
    }

    /// Adds the writes of another collection, with keys by I/O node.
    pub(super) fn add<L>(
        &mut self,
        key_of: impl Fn(NodeId) -> K,
        other: &Unflushed<L>,
        durability: &Durability,
    ) {
        other.last.values().for_each(|&stamp| self.note(key_of(stamp.node), stamp, durability));
        self.lost.extend(other.lost.values().map(|&node| (key_of(node), node)));
    }

    /// Updates the state of all writes: drops writes that are on stable storage, and records losses.
    pub(super) fn settle(&mut self, durability: &Durability) {
        self.last.retain(|&key, stamp| match durability.place(*stamp) {
            WriteState::Accepted => true,
            WriteState::OnMedium => false,
            WriteState::Lost => {
                machine::sometimes!("a restart loses an unflushed write");
                self.lost.insert(key, stamp.node);
                false
            }
        });
    }

    /// Returns the writes to a key.
    pub(super) fn of(&self, key: K) -> Unflushed<()> {
        let (last, lost) = (self.last.get(&key), self.lost.get(&key));
        Unflushed {
            last: last.map(|&stamp| ((), stamp)).into_iter().collect(),
            lost: lost.map(|&node| ((), node)).into_iter().collect(),
        }
    }

    /// Returns the last writes, as of the last [`settle`](Self::settle).
    pub(super) fn last(&self) -> &BTreeMap<K, WriteStamp> {
        &self.last
    }

    /// Drops the keys with the oldest writes until at most `most` remain. Their losses are not reported.
    pub(super) fn bound(&mut self, most: usize, durability: &Durability) {
        if self.last.len() > most {
            self.settle(durability);
        }
        if self.last.len() > most {
            // Drop a quarter of them at once: each drop scans all entries, so it should be rare.
            let first_kept = first_kept(self.last.values().map(|stamp| stamp.number));
            self.last.retain(|_, stamp| stamp.number >= first_kept);
        }
        while self.lost.len() > most {
            self.lost.pop_first();
        }
    }

    /// Returns the number of entries, of stamps and of losses.
    pub(super) fn len(&self) -> usize {
        self.last.len() + self.lost.len()
    }

    /// Returns true if all writes are on stable storage, as of the last [`settle`](Self::settle).
    pub(super) fn is_nothing(&self) -> bool {
        self.last.is_empty() && self.lost.is_empty()
    }

    /// Returns true if a write is lost, as of the last [`settle`](Self::settle).
    pub(super) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Returns true if an accepted write may be lost. `disconnects_of` returns the present disconnect count of a node.
    pub(super) fn may_have_lost(
        &self,
        durability: &Durability,
        disconnects_of: impl Fn(NodeId) -> u64,
    ) -> bool {
        let is_doubtful = |&stamp: &WriteStamp| durability.is_doubtful(stamp, disconnects_of(stamp.node));
        self.has_lost() || self.last.values().any(is_doubtful)
    }

    /// Returns the I/O nodes with unreported losses, which stay unreported.
    pub(super) fn lost_nodes(&self) -> impl Iterator<Item = NodeId> {
        self.lost.values().copied()
    }

    /// Returns the I/O nodes that have lost writes. Reports each loss once.
    pub(super) fn take_lost(&mut self) -> BTreeSet<NodeId> {
        std::mem::take(&mut self.lost).into_values().collect()
    }

    /// Returns true if a write to `key` is lost. Reports a loss once.
    pub(super) fn take_lost_of(&mut self, key: K, durability: &Durability) -> bool {
        let is_lost = self.last.get(&key).is_some_and(|&stamp| durability.is_lost(stamp));
        if is_lost {
            self.last.remove(&key);
        }
        self.lost.remove(&key).is_some() || is_lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(1);

    /// Records writes to key 0 accepted by these incarnations, in their order.
    fn written(durability: &Durability, runs: &[u64]) -> Unflushed<u32> {
        let mut unflushed = Unflushed::default();
        runs.iter().for_each(|&run| unflushed.note(0, durability.accepted(NODE, run, 0), durability));
        unflushed
    }

    fn lost(unflushed: &mut Unflushed<u32>, durability: &Durability) -> usize {
        unflushed.settle(durability);
        unflushed.take_lost().len()
    }

    #[test]
    fn an_unflushed_write_to_an_earlier_incarnation_is_lost() {
        for flushes in [false, true] {
            let durability = Durability::default();
            let mut unflushed = written(&durability, &[7]);
            if flushes {
                durability.flushed(NODE, 7, durability.last());
            }
            assert_eq!(lost(&mut unflushed, &durability), 0, "no other incarnation is known");
            durability.note_incarnation(NODE, 8, 0);
            durability.flushed(NODE, 8, durability.last());
            assert_eq!(lost(&mut unflushed, &durability), usize::from(!flushes));
            assert!(unflushed.is_nothing(), "it is reported once");
            assert_eq!(lost(&mut written(&durability, &[8]), &durability), 0);
        }
    }

    #[test]
    fn a_write_to_a_later_incarnation_hides_no_loss() {
        let durability = Durability::default();
        let mut unflushed = written(&durability, &[7, 8]);
        assert_eq!(lost(&mut unflushed, &durability), 1);
        assert_eq!(unflushed.last().len(), 1, "the later one is still to be flushed");
        durability.flushed(NODE, 8, durability.last());
        assert_eq!(lost(&mut unflushed, &durability), 0);
        assert!(unflushed.is_nothing());
    }

    #[test]
    fn a_late_reply_belongs_to_the_earlier_incarnation() {
        let durability = Durability::default();
        durability.note_incarnation(NODE, 7, 0);
        durability.note_incarnation(NODE, 8, 0);
        durability.note_incarnation(NODE, 7, 0);
        assert_eq!((durability.new_runs(NODE), durability.new_runs(NodeId(2))), (1, 0));
        assert_eq!(lost(&mut written(&durability, &[8]), &durability), 0);
        assert_eq!(lost(&mut written(&durability, &[7]), &durability), 1);
    }

    #[test]
    fn a_late_reply_of_an_earlier_incarnation_hides_no_loss() {
        let durability = Durability::default();
        // The next incarnation answers first, after the connection was lost.
        let mut unflushed = written(&durability, &[]);
        unflushed.note(0, durability.accepted(NODE, 8, 1), &durability);
        unflushed.note(0, durability.accepted(NODE, 7, 0), &durability);
        assert_eq!(lost(&mut unflushed, &durability), 1);
        assert_eq!(unflushed.last().values().map(|stamp| stamp.run).collect::<Vec<_>>(), [8]);
        // Their order is unknown until the present incarnation answers again.
        let durability = Durability::default();
        let mut unflushed = written(&durability, &[8, 7]);
        durability.note_incarnation(NODE, 8, 1);
        assert_eq!(lost(&mut unflushed, &durability), 1);
        unflushed.note(0, durability.accepted(NODE, 8, 1), &durability);
        assert_eq!(lost(&mut unflushed, &durability), 0);
    }

    #[test]
    fn an_unflushed_write_is_lost_if_its_disk_moves_to_another_node() {
        let durability = Durability::default();
        for is_flushed in [false, true] {
            let mut unflushed = written(&durability, &[7]);
            if is_flushed {
                durability.flushed(NODE, 7, durability.last());
                unflushed.settle(&durability);
            }
            durability.note_incarnation(NodeId(2), 9, 0);
            unflushed.note_flushed(&BTreeSet::from([0]), (NodeId(2), 9), durability.last(), &durability);
            assert_eq!(lost(&mut unflushed, &durability), usize::from(!is_flushed));
        }
    }

    #[test]
    fn a_flush_covers_only_writes_accepted_before_its_start() {
        let durability = Durability::default();
        let mut unflushed = written(&durability, &[7]);
        let begun = durability.last();
        unflushed.note(1, durability.accepted(NODE, 7, 0), &durability);
        unflushed.note_flushed(&BTreeSet::from([0, 1]), (NODE, 8), begun, &durability);
        unflushed.note_flushed(&BTreeSet::from([1]), (NODE, 7), begun, &durability);
        assert_eq!(unflushed.last().len(), 2);
        unflushed.note_flushed(&BTreeSet::from([0, 1]), (NODE, 7), begun, &durability);
        assert_eq!(unflushed.last().keys().collect::<Vec<_>>(), [&1]);
        durability.flushed(NODE, 7, begun);
        unflushed.settle(&durability);
        assert_eq!(unflushed.last().len(), 1);
    }

    #[test]
    fn a_write_before_a_disconnect_may_be_lost_until_the_node_answers() {
        let durability = Durability::default();
        let unflushed = written(&durability, &[7]);
        assert!(!unflushed.may_have_lost(&durability, |_| 0) && unflushed.may_have_lost(&durability, |_| 1));
        durability.note_incarnation(NODE, 7, 0);
        assert!(unflushed.may_have_lost(&durability, |_| 1), "that was asked before");
        durability.note_incarnation(NODE, 7, 1);
        assert!(!unflushed.may_have_lost(&durability, |_| 1));
        durability.note_incarnation(NODE, 8, 1);
        assert!(unflushed.may_have_lost(&durability, |_| 1));
    }

    #[test]
    fn the_keys_written_first_are_forgotten_first() {
        let durability = Durability::default();
        let mut unflushed = Unflushed::default();
        let note = |unflushed: &mut Unflushed<u32>, key| {
            unflushed.note(key, durability.accepted(NODE, 7, 0), &durability);
            unflushed.bound(100, &durability);
        };
        (0..100).for_each(|key| note(&mut unflushed, key));
        durability.flushed(NODE, 7, 50);
        // There is space for as many keys as were flushed.
        (100..150).for_each(|key| note(&mut unflushed, key));
        assert_eq!(unflushed.last().len(), 100);
        // Key 0 is the lowest, and is written last.
        note(&mut unflushed, 0);
        note(&mut unflushed, 150);
        durability.note_incarnation(NODE, 8, 0);
        let mut is_lost = |key| unflushed.take_lost_of(key, &durability);
        assert_eq!([0, 50, 150, 150].map(&mut is_lost), [true, false, true, false]);
    }

    #[test]
    fn the_number_of_remembered_incarnations_is_limited() {
        let durability = Durability::default();
        let mut unflushed = written(&durability, &[0]);
        durability.flushed(NODE, 0, durability.last());
        (1..=RUNS_MAX as u64).for_each(|run| durability.note_incarnation(NODE, run, 0));
        assert_eq!(durability.nodes.borrow()[&NODE].known.len(), RUNS_MAX);
        assert_eq!(lost(&mut unflushed, &durability), 1, "the record of the flush was dropped");
    }
}
