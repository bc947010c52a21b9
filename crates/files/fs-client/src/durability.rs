//! Where a change is that an I/O node has accepted: there, on its medium, or lost.
//!
//! An I/O node answers a write before the data are on the medium, and says which run of it has accepted them. The
//! client numbers these answers as they come. The run and the number are the *stamp* of a write; NFS has the run as
//! the verifier of a write (RFC 1813, 3.3.7). A flush covers what was answered before it began. So a stamp tells by
//! comparison where its write is:
//!
//! ```text
//!  its run has flushed up to this number        on the medium
//!  if not, and a later run has answered since   lost
//!  else                                         accepted
//! ```
//!
//! I/O nodes number nothing: an answer that comes while a flush is under way has a number beyond that flush, and its
//! write is flushed again.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use machine::NodeId;

/// The number of runs of an I/O node that are remembered. What an earlier one had accepted counts as lost.
const RUNS_MAX: usize = 64;

/// What tells the last write to something from earlier and later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The I/O node that has accepted it.
    pub(super) node: NodeId,
    /// The run of the I/O node.
    pub(super) run: u64,
    /// The number of the answer, from 1.
    pub(super) number: u64,
}

/// Where a write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Accepted,
    OnMedium,
    Lost,
}

/// The runs of the I/O nodes that a client has heard of, and what each of them has flushed.
#[derive(Default)]
pub(super) struct Durability {
    /// The number of the last answer.
    last: Cell<u64>,
    nodes: RefCell<BTreeMap<NodeId, Runs>>,
}

/// The runs of an I/O node.
#[derive(Default)]
struct Runs {
    /// Each with the number up to which it has flushed all that it had accepted, in the order in which they were heard
    /// of.
    known: Vec<(u64, u64)>,
    /// How many there have been.
    count: u64,
    /// The largest count of lost connections at which a request was made that one of them has answered.
    heard_at: u64,
}

impl Runs {
    fn hear(&mut self, run: u64, disconnects: u64) {
        let (is_early, is_late) = (disconnects < self.heard_at, disconnects > self.heard_at);
        self.heard_at = self.heard_at.max(disconnects);
        match self.known.iter().position(|(known, _)| *known == run) {
            // An answer of the run before was noted later.
            Some(place) if is_late => self.known[place..].rotate_left(1),
            Some(_) => {}
            None => {
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

    fn place(&self, stamp: Stamp) -> Place {
        if self.flushed(stamp.run).is_some_and(|flushed| stamp.number <= flushed) {
            return Place::OnMedium;
        }
        // An answer of an earlier run may come after one of a later run.
        match self.known.last() {
            Some(&(latest, _)) if latest != stamp.run => Place::Lost,
            _ => Place::Accepted,
        }
    }
}

impl Durability {
    /// The number of the last answer: a flush that begins now covers the answers up to it.
    pub(super) fn last(&self) -> u64 {
        self.last.get()
    }

    /// Notes that a run of an I/O node has answered a request, which was made when so many connections had been lost.
    pub(super) fn hear(&self, node: NodeId, run: u64, disconnects: u64) {
        self.nodes.borrow_mut().entry(node).or_default().hear(run, disconnects);
    }

    /// Notes that a run of an I/O node has accepted something, which was sent when so many connections had been lost.
    pub(super) fn accepted(&self, node: NodeId, run: u64, disconnects: u64) -> Stamp {
        self.hear(node, run, disconnects);
        self.last.set(self.last.get() + 1);
        Stamp { node, run, number: self.last.get() }
    }

    /// Notes that a run of an I/O node has flushed all that it had accepted up to a number.
    pub(super) fn flushed(&self, node: NodeId, run: u64, number: u64) {
        let mut nodes = self.nodes.borrow_mut();
        let known = nodes.entry(node).or_default().known.iter_mut().find(|(known, _)| *known == run);
        if let Some((_, flushed)) = known {
            *flushed = number.max(*flushed);
        }
    }

    /// How often another run of an I/O node was heard of.
    pub(super) fn new_runs(&self, node: NodeId) -> u64 {
        self.nodes.borrow().get(&node).map_or(0, |runs| runs.count.saturating_sub(1))
    }

    fn place(&self, stamp: Stamp) -> Place {
        self.nodes.borrow().get(&stamp.node).map_or(Place::Accepted, |runs| runs.place(stamp))
    }

    fn is_lost(&self, stamp: Stamp) -> bool {
        self.place(stamp) == Place::Lost
    }

    /// True if a write is lost, or may be: no run has answered since the last of so many connections was lost.
    fn is_doubtful(&self, stamp: Stamp, disconnects: u64) -> bool {
        let nodes = self.nodes.borrow();
        nodes.get(&stamp.node).is_none_or(|runs| runs.heard_at != disconnects) || self.is_lost(stamp)
    }
}

/// The number from which on things are kept if a quarter of them, those with the lowest numbers, is forgotten.
pub(super) fn first_kept(numbers: impl Iterator<Item = u64>) -> u64 {
    let mut numbers: Vec<u64> = numbers.collect();
    let quarter = numbers.len() / 4;
    if numbers.is_empty() { 0 } else { *numbers.select_nth_unstable(quarter).1 }
}

/// The last writes to some things that were not on the media when that was last looked at.
pub(super) struct Unflushed<K> {
    last: BTreeMap<K, Stamp>,
    /// Things of which something is lost that nobody has been told of, each with the I/O node.
    lost: BTreeMap<K, NodeId>,
}

impl<K> Default for Unflushed<K> {
    fn default() -> Self {
        Unflushed { last: BTreeMap::new(), lost: BTreeMap::new() }
    }
}

impl<K: Copy + Ord> Unflushed<K> {
    /// Notes a write to something; what was noted before may be of a later write, or of a later run.
    pub(super) fn note(&mut self, key: K, stamp: Stamp, durability: &Durability) {
        let Some(other) = self.last.insert(key, stamp) else { return };
        let (first, last) = if stamp.number < other.number { (stamp, other) } else { (other, stamp) };
        self.last.insert(key, if durability.is_lost(last) { first } else { last });
        if let Some(lost) = [first, last].into_iter().find(|&stamp| durability.is_lost(stamp)) {
            self.lost.insert(key, lost.node);
        }
    }

    /// Notes that a run of an I/O node, which has these things, has flushed what it had accepted of them up to a
    /// number. What another I/O node had accepted, which had the disk before, is lost unless that has flushed it.
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
            if stamp.node != node && durability.place(stamp) != Place::OnMedium {
                self.lost.insert(key, stamp.node);
            }
        }
    }

    /// Notes that all that was written up to a number has been flushed.
    pub(super) fn note_all_flushed(&mut self, number: u64) {
        self.last.retain(|_, stamp| stamp.number > number);
    }

    /// Adds what was written to another thing.
    pub(super) fn add<L>(
        &mut self,
        key_of: impl Fn(NodeId) -> K,
        other: &Unflushed<L>,
        durability: &Durability,
    ) {
        other.last.values().for_each(|&stamp| self.note(key_of(stamp.node), stamp, durability));
        self.lost.extend(other.lost.values().map(|&node| (key_of(node), node)));
    }

    /// Looks where everything is now: forgets what is on the media, and notes what is lost.
    pub(super) fn settle(&mut self, durability: &Durability) {
        self.last.retain(|&key, stamp| match durability.place(*stamp) {
            Place::Accepted => true,
            Place::OnMedium => false,
            Place::Lost => {
                self.lost.insert(key, stamp.node);
                false
            }
        });
    }

    /// The last writes, as of the last [`settle`](Self::settle).
    pub(super) fn last(&self) -> &BTreeMap<K, Stamp> {
        &self.last
    }

    /// Keeps some `most` things at most: those that were written to last. Nobody is told of a loss of the others.
    pub(super) fn bound(&mut self, most: usize, durability: &Durability) {
        if self.last.len() > most {
            self.settle(durability);
        }
        if self.last.len() > most {
            // A quarter of them: rarely, since all are looked at.
            let first_kept = first_kept(self.last.values().map(|stamp| stamp.number));
            self.last.retain(|_, stamp| stamp.number >= first_kept);
        }
        while self.lost.len() > most {
            self.lost.pop_first();
        }
    }

    /// Number of entries, of stamps and of losses.
    pub(super) fn len(&self) -> usize {
        self.last.len() + self.lost.len()
    }

    /// True if all writes are on the media, as of the last [`settle`](Self::settle).
    pub(super) fn is_nothing(&self) -> bool {
        self.last.is_empty() && self.lost.is_empty()
    }

    /// True if a write is lost, as of the last [`settle`](Self::settle).
    pub(super) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// True if an accepted write may be lost. `disconnects` is the present count of lost connections.
    pub(super) fn may_have_lost(&self, durability: &Durability, disconnects: u64) -> bool {
        self.has_lost() || self.last.values().any(|&stamp| durability.is_doubtful(stamp, disconnects))
    }

    /// The I/O nodes that have lost writes. Reported once.
    pub(super) fn take_lost(&mut self) -> BTreeSet<NodeId> {
        std::mem::take(&mut self.lost).into_values().collect()
    }

    /// True if a write to this thing is lost. Reported once.
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

    /// Notes writes to thing 0 by these runs, in their order.
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
    fn what_an_earlier_run_has_accepted_is_lost_unless_it_has_flushed_it() {
        for flushes in [false, true] {
            let durability = Durability::default();
            let mut unflushed = written(&durability, &[7]);
            if flushes {
                durability.flushed(NODE, 7, durability.last());
            }
            assert_eq!(lost(&mut unflushed, &durability), 0, "nobody has heard of another run");
            durability.hear(NODE, 8, 0);
            durability.flushed(NODE, 8, durability.last());
            assert_eq!(lost(&mut unflushed, &durability), usize::from(!flushes));
            assert!(unflushed.is_nothing(), "it is told once");
            assert_eq!(lost(&mut written(&durability, &[8]), &durability), 0);
        }
    }

    #[test]
    fn what_a_later_run_has_accepted_hides_no_loss() {
        let durability = Durability::default();
        let mut unflushed = written(&durability, &[7, 8]);
        assert_eq!(lost(&mut unflushed, &durability), 1);
        assert_eq!(unflushed.last().len(), 1, "the later one is still to be flushed");
        durability.flushed(NODE, 8, durability.last());
        assert_eq!(lost(&mut unflushed, &durability), 0);
        assert!(unflushed.is_nothing());
    }

    #[test]
    fn an_answer_that_comes_late_is_of_the_run_before() {
        let durability = Durability::default();
        durability.hear(NODE, 7, 0);
        durability.hear(NODE, 8, 0);
        durability.hear(NODE, 7, 0);
        assert_eq!((durability.new_runs(NODE), durability.new_runs(NodeId(2))), (1, 0));
        assert_eq!(lost(&mut written(&durability, &[8]), &durability), 0);
        assert_eq!(lost(&mut written(&durability, &[7]), &durability), 1);
    }

    #[test]
    fn what_is_noted_late_of_an_earlier_run_hides_nothing() {
        let durability = Durability::default();
        // The next run is heard of first, after the connection was lost.
        let mut unflushed = written(&durability, &[]);
        unflushed.note(0, durability.accepted(NODE, 8, 1), &durability);
        unflushed.note(0, durability.accepted(NODE, 7, 0), &durability);
        assert_eq!(lost(&mut unflushed, &durability), 1);
        assert_eq!(unflushed.last().values().map(|stamp| stamp.run).collect::<Vec<_>>(), [8]);
        // Nobody could tell which was first, until the one that is there answers once more.
        let durability = Durability::default();
        let mut unflushed = written(&durability, &[8, 7]);
        durability.hear(NODE, 8, 1);
        assert_eq!(lost(&mut unflushed, &durability), 1);
        unflushed.note(0, durability.accepted(NODE, 8, 1), &durability);
        assert_eq!(lost(&mut unflushed, &durability), 0);
    }

    #[test]
    fn what_was_accepted_where_the_disk_was_before_is_lost_unless_it_was_flushed_there() {
        let durability = Durability::default();
        for is_flushed in [false, true] {
            let mut unflushed = written(&durability, &[7]);
            if is_flushed {
                durability.flushed(NODE, 7, durability.last());
                unflushed.settle(&durability);
            }
            durability.hear(NodeId(2), 9, 0);
            unflushed.note_flushed(&BTreeSet::from([0]), (NodeId(2), 9), durability.last(), &durability);
            assert_eq!(lost(&mut unflushed, &durability), usize::from(!is_flushed));
        }
    }

    #[test]
    fn a_flush_is_of_what_was_accepted_before_it_began() {
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
    fn what_was_accepted_before_a_node_was_gone_may_be_lost_until_it_answers() {
        let durability = Durability::default();
        let unflushed = written(&durability, &[7]);
        assert!(!unflushed.may_have_lost(&durability, 0) && unflushed.may_have_lost(&durability, 1));
        durability.hear(NODE, 7, 0);
        assert!(unflushed.may_have_lost(&durability, 1), "that was asked before");
        durability.hear(NODE, 7, 1);
        assert!(!unflushed.may_have_lost(&durability, 1));
        durability.hear(NODE, 8, 1);
        assert!(unflushed.may_have_lost(&durability, 1));
    }

    #[test]
    fn of_very_many_things_those_written_to_first_are_forgotten() {
        let durability = Durability::default();
        let mut unflushed = Unflushed::default();
        let note = |unflushed: &mut Unflushed<u32>, key| {
            unflushed.note(key, durability.accepted(NODE, 7, 0), &durability);
            unflushed.bound(100, &durability);
        };
        (0..100).for_each(|key| note(&mut unflushed, key));
        durability.flushed(NODE, 7, 50);
        // There is room for as many as are flushed.
        (100..150).for_each(|key| note(&mut unflushed, key));
        assert_eq!(unflushed.last().len(), 100);
        // It has the lowest key, and is written to last.
        note(&mut unflushed, 0);
        note(&mut unflushed, 150);
        durability.hear(NODE, 8, 0);
        let mut is_lost = |key| unflushed.take_lost_of(key, &durability);
        assert_eq!([0, 50, 150, 150].map(&mut is_lost), [true, false, true, false]);
    }

    #[test]
    fn no_more_runs_are_remembered_than_there_is_room_for() {
        let durability = Durability::default();
        let mut unflushed = written(&durability, &[0]);
        durability.flushed(NODE, 0, durability.last());
        (1..=RUNS_MAX as u64).for_each(|run| durability.hear(NODE, run, 0));
        assert_eq!(durability.nodes.borrow()[&NODE].known.len(), RUNS_MAX);
        assert_eq!(lost(&mut unflushed, &durability), 1, "nobody knows any more that it was flushed");
    }
}
