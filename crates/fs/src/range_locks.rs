//! Locks on ranges of one file: which owner has which, and which keep others out.
//!
//! Plain data, used by the keeper for the locks of all clients and by each client for its own. As POSIX has it, a lock
//! that an owner sets replaces what it had of that range, be it stronger or weaker.

use serde::{Deserialize, Serialize};

/// Bytes of a file from the first to the last of them; to the greatest offset there is means to the end, wherever that
/// is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockRange {
    /// Offset of the first byte.
    pub first: u64,
    /// Offset of the last one.
    pub last: u64,
}

impl LockRange {
    /// All of a file.
    pub const WHOLE: LockRange = LockRange { first: 0, last: u64::MAX };

    fn meets(self, other: LockRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// What of it is before and after another range that it meets.
    fn without(self, other: LockRange) -> [Option<LockRange>; 2] {
        let before =
            (self.first < other.first).then(|| LockRange { first: self.first, last: other.first - 1 });
        let after = (self.last > other.last).then(|| LockRange { first: other.last + 1, last: self.last });
        [before, after]
    }
}

/// What a lock lets others have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LockMode {
    /// Shared locks: for reading.
    Shared,
    /// Nothing: for writing.
    Exclusive,
}

/// A lock of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RangeLock<O> {
    pub(crate) owner: O,
    pub(crate) range: LockRange,
    pub(crate) mode: LockMode,
}

/// The locks on one file.
#[derive(Clone, Debug)]
pub(crate) struct RangeLocks<O>(Vec<RangeLock<O>>);

impl<O> Default for RangeLocks<O> {
    fn default() -> Self {
        RangeLocks(Vec::new())
    }
}

impl<O: Copy + Eq> RangeLocks<O> {
    /// The first lock of another owner that does not allow one like this.
    pub(crate) fn conflict(&self, owner: O, range: LockRange, mode: LockMode) -> Option<RangeLock<O>> {
        let excludes = |lock: &&RangeLock<O>| {
            lock.owner != owner
                && lock.range.meets(range)
                && (mode == LockMode::Exclusive || lock.mode == LockMode::Exclusive)
        };
        self.0.iter().find(excludes).copied()
    }

    /// Has the owner have this lock on the range, or none.
    pub(crate) fn set(&mut self, owner: O, range: LockRange, mode: Option<LockMode>) {
        let mut whole = range;
        let mut kept = Vec::with_capacity(self.0.len() + 2);
        for lock in self.0.drain(..) {
            if lock.owner != owner {
                kept.push(lock);
            } else if mode == Some(lock.mode) && touch(lock.range, whole) {
                whole = LockRange {
                    first: whole.first.min(lock.range.first),
                    last: whole.last.max(lock.range.last),
                };
            } else if lock.range.meets(range) {
                let rest = lock.range.without(range).into_iter().flatten();
                kept.extend(rest.map(|range| RangeLock { range, ..lock }));
            } else {
                kept.push(lock);
            }
        }
        kept.extend(mode.map(|mode| RangeLock { owner, range: whole, mode }));
        self.0 = kept;
    }

    /// Takes all locks away whose owners are like this.
    pub(crate) fn release(&mut self, is_gone: impl Fn(O) -> bool) {
        self.0.retain(|lock| !is_gone(lock.owner));
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[RangeLock<O>] {
        &self.0
    }
}

/// Whether two ranges have bytes in common, or one ends where the other begins.
fn touch(one: LockRange, other: LockRange) -> bool {
    one.first <= other.last.saturating_add(1) && other.first <= one.last.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same, kept byte by byte.
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
    fn locks_are_those_that_are_kept_byte_by_byte() {
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
                for byte in &mut expected[*owner][range.first as usize..=range.last as usize] {
                    assert_eq!(byte.replace(*mode), None, "each byte once");
                }
            }
            assert_eq!(expected, bytes);
            // As few as there can be.
            let runs = bytes.iter().map(|bytes| bytes.chunk_by(|one, other| one == other));
            let runs: usize = runs.map(|runs| runs.filter(|run| run[0].is_some()).count()).sum();
            assert_eq!(locks.all().len(), runs);
        }
    }

    #[test]
    fn a_range_to_the_end_has_no_byte_after_it() {
        let mut locks = RangeLocks::default();
        locks.set(1, LockRange::WHOLE, Some(LockMode::Shared));
        locks.set(1, LockRange { first: 10, last: u64::MAX }, None);
        assert_eq!(locks.all()[0].range, LockRange { first: 0, last: 9 });
        let mode = LockMode::Exclusive;
        assert!(locks.conflict(2, LockRange { first: 9, last: 9 }, mode).is_some());
        assert!(locks.conflict(2, LockRange { first: 10, last: u64::MAX }, mode).is_none());
        locks.release(|owner| owner == 1);
        assert!(locks.all().is_empty());
    }
}
