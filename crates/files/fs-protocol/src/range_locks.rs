//! Locks on ranges of one file: their owners and their conflicts.
//!
//! Plain data, used by the metadata server for the locks of all clients, and by each client for its own. As
//! in POSIX, a new lock of an owner replaces the owner's locks on that range, both stronger and weaker ones.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use machine::Duration;
use serde::{Deserialize, Serialize};

/// Duration of a lease after the last message of its client. A program on a failed computer blocks others for
/// this time. A program that loses its locks by a network outage was silent for at least this time.
pub const LEASE: Duration = Duration::from_secs(5);

/// Range of bytes of a file, with both ends included. A range to the largest offset means to the end of the
/// file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockRange {
    /// Offset of the first byte.
    pub first: u64,
    /// Offset of the last byte.
    pub last: u64,
}

impl LockRange {
    /// The whole file.
    pub const WHOLE: LockRange = LockRange { first: 0, last: u64::MAX };

    fn overlaps(self, other: LockRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Returns the parts of the range before and after an overlapping range.
    fn without(self, other: LockRange) -> [Option<LockRange>; 2] {
        let before =
            (self.first < other.first).then(|| LockRange { first: self.first, last: other.first - 1 });
        let after = (self.last > other.last).then(|| LockRange { first: other.last + 1, last: self.last });
        [before, after]
    }
}

/// Mode of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LockMode {
    /// For reading: compatible with other shared locks.
    Shared,
    /// For writing: compatible with no other lock.
    Exclusive,
}

/// A lock of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeLock<O> {
    /// The owner.
    pub owner: O,
    /// The locked bytes.
    pub range: LockRange,
    /// Shared or exclusive.
    pub mode: LockMode,
}

/// The locks on one file. Changing a lock and finding a conflict take time in proportion to the square root
/// of the number of locks, even if many overlap.
#[derive(Clone, Debug)]
pub struct RangeLocks<O> {
    /// Locks by owner and first byte. The locks of one owner are disjoint.
    of_owners: BTreeMap<(O, u64), (u64, LockMode)>,
    /// The same locks, of all owners, by first byte.
    by_first: LocksByStart<O>,
}

impl<O> Default for RangeLocks<O> {
    fn default() -> Self {
        RangeLocks { of_owners: BTreeMap::new(), by_first: LocksByStart(Vec::new()) }
    }
}

impl<O: Copy + Ord> RangeLocks<O> {
    /// Returns a lock of another owner that conflicts with the given one.
    pub fn conflict(&self, owner: O, range: LockRange, mode: LockMode) -> Option<RangeLock<O>> {
        self.by_first.of_others(owner, range, mode)
    }

    /// Sets the owner's lock on the range; without a mode, removes it.
    pub fn set(&mut self, owner: O, range: LockRange, mode: Option<LockMode>) {
        let mut whole = range;
        for lock in self.touched(owner, range) {
            if mode == Some(lock.mode) {
                whole.first = whole.first.min(lock.range.first);
                whole.last = whole.last.max(lock.range.last);
                self.take(lock);
            } else if lock.range.overlaps(range) {
                self.take(lock);
                for range in lock.range.without(range).into_iter().flatten() {
                    self.give(RangeLock { range, ..lock });
                }
            }
        }
        if let Some(mode) = mode {
            self.give(RangeLock { owner, range: whole, mode });
        }
    }

    /// True if one lock of the owner has bytes both before and after the range: without the range it becomes
    /// two locks.
    pub fn is_split_by(&self, owner: O, range: LockRange) -> bool {
        let before = self.of_owners.range((owner, 0)..(owner, range.first)).next_back();
        before.is_some_and(|(_, &(last, _))| last > range.last)
    }

    /// Returns the locks of an owner that overlap or touch a range.
    fn touched(&self, owner: O, range: LockRange) -> Vec<RangeLock<O>> {
        let before = self.of_owners.range((owner, 0)..(owner, range.first)).next_back();
        let others = self.of_owners.range((owner, range.first)..=(owner, range.last.saturating_add(1)));
        let all = before.into_iter().chain(others).map(as_lock);
        all.filter(|lock| touch(lock.range, range)).collect()
    }

    /// Removes all locks of these owners.
    pub fn release(&mut self, owners: RangeInclusive<O>) {
        let of_owners = (*owners.start(), 0)..=(*owners.end(), u64::MAX);
        for lock in self.of_owners.range(of_owners).map(as_lock).collect::<Vec<_>>() {
            self.take(lock);
        }
    }

    fn give(&mut self, lock: RangeLock<O>) {
        self.of_owners.insert((lock.owner, lock.range.first), (lock.range.last, lock.mode));
        self.by_first.insert(lock);
    }

    fn take(&mut self, lock: RangeLock<O>) {
        self.of_owners.remove(&(lock.owner, lock.range.first));
        self.by_first.remove(&lock);
    }

    /// Returns all locks, by owner.
    pub fn all(&self) -> impl Iterator<Item = RangeLock<O>> {
        self.of_owners.iter().map(as_lock)
    }

    /// Returns all locks of some owners.
    pub fn of(&self, owners: RangeInclusive<O>) -> impl Iterator<Item = RangeLock<O>> {
        self.of_owners.range((*owners.start(), 0)..=(*owners.end(), u64::MAX)).map(as_lock)
    }

    /// Returns the number of locks.
    pub fn len(&self) -> usize {
        self.of_owners.len()
    }

    /// True if there are no locks.
    pub fn is_empty(&self) -> bool {
        self.of_owners.is_empty()
    }
}

fn as_lock<O: Copy>((&(owner, first), &(last, mode)): (&(O, u64), &(u64, LockMode))) -> RangeLock<O> {
    RangeLock { owner, range: LockRange { first, last }, mode }
}

/// Locks in the order of their first bytes, in runs of at most [`RUN_MAX`].
#[derive(Clone, Debug)]
struct LocksByStart<O>(Vec<Run<O>>);

/// Limit of locks of a run. A longer run is split in two.
const RUN_MAX: usize = 128;

/// Neighbouring locks, at least one, with the locks that reach furthest.
#[derive(Clone, Debug)]
struct Run<O> {
    locks: Vec<RangeLock<O>>,
    any: Reach<O>,
    exclusive: Reach<O>,
}

/// The lock that ends last, and the lock of a different owner that ends last.
#[derive(Clone, Copy, Debug)]
struct Reach<O>(Option<RangeLock<O>>, Option<RangeLock<O>>);

impl<O: Copy + Ord> LocksByStart<O> {
    /// Returns the index of the run that has, or would have, a lock with this key.
    fn run_of(&self, key: (u64, O)) -> usize {
        self.0.partition_point(|run| run.key(0) <= key).saturating_sub(1)
    }

    fn insert(&mut self, lock: RangeLock<O>) {
        let at = self.run_of(lock.key());
        let Some(run) = self.0.get_mut(at) else { return self.0.push(Run::of(vec![lock])) };
        let place = run.locks.partition_point(|other| other.key() < lock.key());
        run.locks.insert(place, lock);
        if run.locks.len() <= RUN_MAX {
            run.any.add(lock);
            if lock.mode == LockMode::Exclusive {
                run.exclusive.add(lock);
            }
            return;
        }
        let second = run.locks.split_off(RUN_MAX / 2);
        *run = Run::of(std::mem::take(&mut run.locks));
        self.0.insert(at + 1, Run::of(second));
    }

    fn remove(&mut self, lock: &RangeLock<O>) {
        let at = self.run_of(lock.key());
        let mut locks = std::mem::take(&mut self.0[at].locks);
        locks.retain(|other| other.key() != lock.key());
        if locks.is_empty() {
            self.0.remove(at);
        } else {
            self.0[at] = Run::of(locks);
        }
        self.merge(at);
        self.merge(at.saturating_sub(1));
    }

    /// Merges this run and the next if both are short, since each lookup goes through all runs.
    fn merge(&mut self, at: usize) {
        let [first, second] = [at, at + 1].map(|at| self.0.get(at).map_or(RUN_MAX, |run| run.locks.len()));
        if first + second <= RUN_MAX / 2 {
            let second = self.0.remove(at + 1);
            let locks = std::mem::take(&mut self.0[at].locks);
            self.0[at] = Run::of(locks.into_iter().chain(second.locks).collect());
        }
    }

    /// Returns a lock of another owner that overlaps the range and conflicts with this mode.
    fn of_others(&self, owner: O, range: LockRange, mode: LockMode) -> Option<RangeLock<O>> {
        let found = |reach: Reach<O>| reach.of_others(owner).filter(|lock| lock.range.last >= range.first);
        for run in &self.0 {
            if run.locks[0].range.first > range.last {
                return None;
            }
            let ends_before = run.locks.last().is_none_or(|last| last.range.first <= range.last);
            let reach = if ends_before { run.reach(mode) } else { run.reach_until(range.last, mode) };
            if let Some(lock) = found(reach) {
                return Some(lock);
            }
        }
        None
    }
}

impl<O: Copy + Ord> Run<O> {
    fn of(locks: Vec<RangeLock<O>>) -> Self {
        let mut run = Run { locks, any: Reach(None, None), exclusive: Reach(None, None) };
        run.any = run.reach_until(u64::MAX, LockMode::Exclusive);
        run.exclusive = run.reach_until(u64::MAX, LockMode::Shared);
        run
    }

    fn key(&self, index: usize) -> (u64, O) {
        self.locks[index].key()
    }

    /// Returns the furthest locks among those that conflict with this mode.
    fn reach(&self, mode: LockMode) -> Reach<O> {
        match mode {
            LockMode::Exclusive => self.any,
            LockMode::Shared => self.exclusive,
        }
    }

    /// Returns the same among the locks that begin at or before `last`.
    fn reach_until(&self, last: u64, mode: LockMode) -> Reach<O> {
        let mut reach = Reach(None, None);
        for lock in self.locks.iter().take_while(|lock| lock.range.first <= last) {
            if mode.max(lock.mode) == LockMode::Exclusive {
                reach.add(*lock);
            }
        }
        reach
    }
}

impl<O: Copy + Ord> RangeLock<O> {
    fn key(&self) -> (u64, O) {
        (self.range.first, self.owner)
    }
}

impl<O: Copy + Eq> Reach<O> {
    fn add(&mut self, lock: RangeLock<O>) {
        let ends_later =
            |other: &Option<RangeLock<O>>| other.is_none_or(|other| lock.range.last > other.range.last);
        let is_of_another = self.0.is_some_and(|first| first.owner != lock.owner);
        if ends_later(&self.0) {
            let second = if is_of_another { self.0 } else { self.1 };
            *self = Reach(Some(lock), second);
        } else if is_of_another && ends_later(&self.1) {
            self.1 = Some(lock);
        }
    }

    fn of_others(self, owner: O) -> Option<RangeLock<O>> {
        if self.0.is_some_and(|lock| lock.owner == owner) { self.1 } else { self.0 }
    }
}

/// True if two ranges overlap, or one begins directly after the end of the other.
fn touch(one: LockRange, other: LockRange) -> bool {
    one.first <= other.last.saturating_add(1) && other.first <= one.last.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same locks, stored byte by byte.
    type Bytes = [[Option<LockMode>; 16]; 3];

    fn draw(state: &mut u64, below: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % below
    }

    fn conflicts(bytes: &Bytes, owner: usize, range: LockRange, mode: LockMode) -> bool {
        let is_excluded =
            |other: Option<LockMode>| other.is_some_and(|other| other.max(mode) == LockMode::Exclusive);
        (0..bytes.len()).filter(|other| *other != owner).any(|other| {
            bytes[other][range.first as usize..=range.last as usize].iter().any(|lock| is_excluded(*lock))
        })
    }

    #[test]
    fn range_locks_equal_locks_of_single_bytes() {
        let (mut state, mut bytes, mut locks) = (7, Bytes::default(), RangeLocks::default());
        for _ in 0..20_000 {
            let owner = draw(&mut state, 3) as usize;
            let first = draw(&mut state, 16);
            let range = LockRange { first, last: first + draw(&mut state, 16 - first) };
            let mode =
                [None, Some(LockMode::Shared), Some(LockMode::Exclusive)][draw(&mut state, 3) as usize];
            if let Some(mode) = mode {
                let conflict = locks.conflict(owner, range, mode);
                assert_eq!(conflict.is_some(), conflicts(&bytes, owner, range, mode));
                if conflict.is_some() {
                    continue;
                }
            }
            locks.set(owner, range, mode);
            bytes[owner][range.first as usize..=range.last as usize].fill(mode);
            let mut expected = Bytes::default();
            for RangeLock { owner, range, mode } in locks.all() {
                for byte in &mut expected[owner][range.first as usize..=range.last as usize] {
                    assert_eq!(byte.replace(mode), None, "each byte once");
                }
            }
            assert_eq!(expected, bytes);
            // The number of locks is minimal.
            let runs = bytes.iter().map(|bytes| bytes.chunk_by(|one, other| one == other));
            let runs: usize = runs.map(|runs| runs.filter(|run| run[0].is_some()).count()).sum();
            assert_eq!(locks.len(), runs);
            check_runs(&locks);
        }
    }

    #[test]
    fn a_range_can_end_at_the_last_offset() {
        let mut locks = RangeLocks::default();
        locks.set(1, LockRange::WHOLE, Some(LockMode::Shared));
        locks.set(1, LockRange { first: 10, last: u64::MAX }, None);
        assert_eq!(locks.all().next().map(|lock| lock.range), Some(LockRange { first: 0, last: 9 }));
        let mode = LockMode::Exclusive;
        assert!(locks.conflict(2, LockRange { first: 9, last: 9 }, mode).is_some());
        assert!(locks.conflict(2, LockRange { first: 10, last: u64::MAX }, mode).is_none());
        locks.release(1..=1);
        assert!(locks.is_empty() && locks.by_first.0.is_empty());
    }

    /// Checks that runs have all locks in order, are not too long, and are few if there are few locks.
    fn check_runs(locks: &RangeLocks<usize>) {
        let runs = &locks.by_first.0;
        assert!(runs.iter().all(|run| (1..=RUN_MAX).contains(&run.locks.len())));
        let all = || runs.iter().flat_map(|run| &run.locks);
        assert!(all().is_sorted_by_key(|lock| lock.key()) && all().count() == locks.len());
        assert!(runs.windows(2).all(|two| two[0].locks.len() + two[1].locks.len() > RUN_MAX / 2));
    }

    #[test]
    fn many_locks_are_stored_in_few_runs() {
        const LOCKS: u64 = 66_000;
        let (mut state, mut locks) = (7, RangeLocks::default());
        let byte = |first| LockRange { first, last: first };
        for lock in 0..LOCKS {
            let owner = draw(&mut state, 3) as usize;
            locks.set(owner, byte(2 * lock), Some(LockMode::Shared));
        }
        assert!(locks.by_first.0.len() as u64 <= 2 * LOCKS / RUN_MAX as u64, "{}", locks.by_first.0.len());
        check_runs(&locks);
        let exclusive = LockMode::Exclusive;
        assert!(locks.conflict(0, byte(1), exclusive).is_none());
        assert!(locks.conflict(0, LockRange::WHOLE, LockMode::Shared).is_none());
        assert!(locks.conflict(0, LockRange::WHOLE, exclusive).is_some_and(|lock| lock.owner != 0));
        for lock in 0..LOCKS {
            let owner = draw(&mut state, 3) as usize;
            locks.set(owner, byte(2 * lock), None);
        }
        check_runs(&locks);
        locks.release(0..=2);
        assert!(locks.is_empty() && locks.by_first.0.is_empty());
    }
}
