//! The locks of clients on files of the namespace, if this node is the metadata server.
//!
//! ```text
//!  client                              metadata server
//!  Lock, lease 0            ------->   a new lease, valid for LEASE
//!                           <-------   Done, lease 17
//!  Lock or Renew, lease 17  ------->   valid for LEASE from now
//!                           <-------   Done
//!     nothing for LEASE                other clients may get the locks of lease 17, and must fence 17 before
//!  Renew, lease 17          ------->
//!                           <-------   Lost
//! ```
//!
//! - All locks of a client belong to one lease. The lease ends if the client sends nothing for [`LEASE`], not
//!   with its connection: to this node, a killed client looks like one that is still writing. A client relies
//!   on its lease for less than that (`fs-client/src/tree/locks.rs`).
//! - A lease is valid for its own client only, and a client locks files that it [has open](super::open_refs).
//! - Leases are in memory. A restarted metadata server grants no lock until all leases of earlier
//!   incarnations have ended. Until then clients reclaim their locks.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use machine::{Instant, NodeId};
use namespace::FileNumber;

use super::client_quotas::{Share, Shares};
use crate::error::Failure;
use crate::name;
use crate::protocol::{FENCED_MAX, HeldLock, LockAnswer, LockChange, LockStep};
use crate::range_locks::{LEASE, LockMode, RangeLock, RangeLocks};

/// Limit of locks on all files: of each client in any case, and of all clients beyond that. Each takes some
/// 150 bytes.
const LOCKS: (u64, u64) = (1 << 10, 1 << 17);

/// Limit of remembered ended leases: the number that fits in one answer.
const ENDED_MAX: usize = FENCED_MAX;

/// Limit of remembered files of an ended lease; a lease with more counts for every file.
const ENDED_FILES_MAX: usize = 64;

/// Limit of leases of one client.
const LEASES_MAX: u64 = 16;

/// Owner of a lock: a lease, and a lock owner within its client.
type Owner = (u64, u64);

/// The locks on all files.
pub(super) struct LockTable {
    began: Instant,
    /// True if no client can have locks of an earlier incarnation.
    is_first_run: Cell<bool>,
    leases: RefCell<BTreeMap<u64, Lease>>,
    /// No lease ends before this time.
    next_end: Cell<Instant>,
    lease_shares: Shares,
    lock_shares: Shares,
    files: RefCell<BTreeMap<FileNumber, RangeLocks<Owner>>>,
    /// The latest leases that have ended with exclusive locks.
    ended: RefCell<VecDeque<EndedLease>>,
    /// Number of leases granted.
    given: Cell<u64>,
}

struct Lease {
    client: NodeId,
    until: Instant,
    /// The files on which it has locks.
    files: BTreeSet<FileNumber>,
    _share: Share,
}

/// A lease that has ended with exclusive locks.
struct EndedLease {
    lease: u64,
    /// The files on which it had exclusive locks; `None` if it counts for every file.
    files: Option<BTreeSet<FileNumber>>,
}

impl EndedLease {
    fn of((lease, files): (u64, BTreeSet<FileNumber>)) -> Self {
        EndedLease { lease, files: Some(files).filter(|files| files.len() <= ENDED_FILES_MAX) }
    }

    fn counts_for(&self, number: FileNumber) -> bool {
        self.files.as_ref().is_none_or(|files| files.contains(&number))
    }
}

impl LockTable {
    pub(super) fn new(began: Instant) -> Self {
        LockTable {
            began,
            is_first_run: Cell::new(false),
            leases: RefCell::default(),
            next_end: Cell::new(began),
            lease_shares: Shares::new(LEASES_MAX, 0),
            lock_shares: Shares::new(LOCKS.0, LOCKS.1),
            files: RefCell::default(),
            ended: RefCell::default(),
            given: Cell::new(0),
        }
    }

    /// Records that this incarnation created the namespace: no earlier one has granted locks.
    pub(super) fn note_beginning(&self) {
        self.is_first_run.set(true);
    }

    /// Serves a change of a lock of a client, by this incarnation of the node.
    pub(super) fn serve(
        &self,
        client: NodeId,
        lease: u64,
        change: &LockChange,
        (incarnation, now): (u64, Instant),
    ) -> LockAnswer {
        let gives = !matches!(change.step, LockStep::Release) && !change.claims;
        if gives && now < self.opens_at() {
            return LockAnswer::NotYet;
        }
        self.end_leases(now);
        let is_known = lease != 0 && self.renew(client, lease, now);
        let lease = match lease {
            0 if gives => self.lease(client, incarnation, now),
            lease if is_known => Some(lease),
            lease if lease != 0 && change.claims && now < self.opens_at() => {
                machine::sometimes!("a claim restores a lease after a restart");
                self.enter(lease, client, now).then_some(lease)
            }
            _ => return LockAnswer::Lost,
        };
        lease.map_or(LockAnswer::TooMany, |lease| self.step(client, lease, change))
    }

    /// Fails if one of these leases was granted here and has not ended: it cannot be fenced.
    pub(super) fn check_ended(&self, leases: &[u64], now: Instant) -> Result<(), Box<Failure>> {
        match leases.iter().find(|&&lease| self.is_good(lease, now)) {
            Some(good) => {
                Err(Failure::invalid(format!("cannot fence lease {good:016x}: it has not ended")).into())
            }
            None => Ok(()),
        }
    }

    /// Returns the time from which on locks are granted.
    fn opens_at(&self) -> Instant {
        if self.is_first_run.get() { self.began } else { self.began + LEASE }
    }

    /// Ends the leases whose clients have sent nothing for too long.
    pub(super) fn end_leases(&self, now: Instant) {
        if now < self.next_end.get() {
            return;
        }
        let mut leases = self.leases.borrow_mut();
        let over: Vec<(u64, Lease)> = leases.extract_if(.., |_, lease| lease.until <= now).collect();
        self.next_end.set(leases.values().map(|lease| lease.until).min().unwrap_or(now + LEASE));
        let (mut files, mut ended) = (self.files.borrow_mut(), self.ended.borrow_mut());
        for (number, Lease { client, files: its_files, .. }) in over {
            let (owners, mut written) = ((number, 0)..=(number, u64::MAX), BTreeSet::new());
            for file in its_files {
                let Some(locks) = files.get_mut(&file) else { continue };
                if locks.of(owners.clone()).any(|lock| lock.mode == LockMode::Exclusive) {
                    written.insert(file);
                }
                let before = locks.len();
                locks.release(owners.clone());
                self.lock_shares.remove(client, (before - locks.len()) as u64);
                if locks.is_empty() {
                    files.remove(&file);
                }
            }
            if !written.is_empty() {
                machine::sometimes!("a lease with an exclusive lock expires");
                ended.push_back(EndedLease::of((number, written)));
            }
        }
        let too_many = ended.len().saturating_sub(ENDED_MAX);
        ended.drain(..too_many);
    }

    /// Returns true if a lease is valid.
    pub(super) fn is_good(&self, lease: u64, now: Instant) -> bool {
        self.end_leases(now);
        self.leases.borrow().contains_key(&lease)
    }

    /// Returns the remembered leases that have ended with exclusive locks on a file, or may have had some.
    fn ended_on(&self, number: FileNumber) -> Vec<u64> {
        let ended = self.ended.borrow();
        ended.iter().filter(|ended| ended.counts_for(number)).map(|ended| ended.lease).collect()
    }

    /// Renews a lease of a client. Returns true if the client has a valid lease of this number.
    pub(super) fn renew(&self, client: NodeId, lease: u64, now: Instant) -> bool {
        self.end_leases(now);
        let mut leases = self.leases.borrow_mut();
        let found = leases.get_mut(&lease).filter(|lease| lease.client == client);
        found.map(|lease| lease.until = now + LEASE).is_some()
    }

    /// Grants a new lease; returns `None` if the client has too many.
    fn lease(&self, client: NodeId, incarnation: u64, now: Instant) -> Option<u64> {
        self.given.set(self.given.get() + 1);
        // Unique among all incarnations of the node.
        let lease = name::hash_of("lease", &[incarnation, self.began.as_nanos(), self.given.get()]);
        self.enter(lease, client, now).then_some(lease)
    }

    /// Enters a lease. Returns false if the client has too many, or the lease exists already.
    fn enter(&self, lease: u64, client: NodeId, now: Instant) -> bool {
        let mut leases = self.leases.borrow_mut();
        if leases.contains_key(&lease) {
            return false;
        }
        let Some(_share) = self.lease_shares.try_take(client, 1) else { return false };
        self.next_end.set(self.next_end.get().min(now + LEASE));
        leases.insert(lease, Lease { client, until: now + LEASE, files: BTreeSet::new(), _share });
        true
    }

    /// Performs an operation on a lock under a client's valid lease.
    fn step(&self, client: NodeId, lease: u64, change: &LockChange) -> LockAnswer {
        let LockChange { number, owner, range, step, .. } = *change;
        let mut files = self.files.borrow_mut();
        let (locks, owner) = (files.entry(number).or_default(), (lease, owner));
        let conflict = match step {
            LockStep::Test(mode) | LockStep::Set(mode) => locks.conflict(owner, range, mode),
            LockStep::Release => None,
        };
        // Locks that a change adds at most: the lock itself, and the remains of another one on either side.
        let (mode, most) = match step {
            LockStep::Set(mode) => (Some(mode), 2),
            LockStep::Release => (None, u64::from(locks.is_split_by(owner, range))),
            LockStep::Test(_) => (None, 0),
        };
        let before = locks.len() as u64;
        let answer = match conflict {
            Some(lock) => LockAnswer::Held { lease, lock: as_held_lock(lock, lease) },
            None if matches!(step, LockStep::Test(_)) => LockAnswer::Done { lease },
            None if !self.lock_shares.try_add(client, most) => LockAnswer::TooMany,
            None => {
                locks.set(owner, range, mode);
                self.lock_shares.remove(client, before + most - locks.len() as u64);
                LockAnswer::Done { lease }
            }
        };
        if let Some(lease) = self.leases.borrow_mut().get_mut(&lease) {
            match locks.of((owner.0, 0)..=(owner.0, u64::MAX)).next() {
                Some(_) => lease.files.insert(number),
                None => lease.files.remove(&number),
            };
        }
        if locks.is_empty() {
            files.remove(&number);
        }
        if !matches!((&answer, step), (LockAnswer::Done { .. }, LockStep::Set(_))) {
            return answer;
        }
        match self.ended_on(number) {
            ended if ended.is_empty() => answer,
            ended => LockAnswer::DoneAfter { lease, ended },
        }
    }
}

/// Describes a lock for a client that it blocks.
fn as_held_lock(lock: RangeLock<Owner>, lease: u64) -> HeldLock {
    let RangeLock { owner: (its_lease, owner), range, mode } = lock;
    HeldLock { owner: (its_lease == lease).then_some(owner), range, mode }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range_locks::LockRange;

    /// Locks `ranges` ranges of each file in exclusive mode, for a client with a new lease. Returns the
    /// lease.
    fn lock(table: &LockTable, client: u64, files: std::ops::Range<u64>, ranges: u64) -> u64 {
        let lease = table.lease(NodeId(client), 1, Instant::START).expect("its first");
        for number in files {
            for first in (0..ranges).map(|range| 2 * range) {
                let range = LockRange { first, last: first };
                let (number, step) = (FileNumber(number), LockStep::Set(LockMode::Exclusive));
                let request = LockChange { number, owner: 1, range, step, claims: false };
                assert!(!matches!(table.step(NodeId(client), lease, &request), LockAnswer::Held { .. }));
            }
        }
        lease
    }

    #[test]
    fn a_client_gets_a_limited_share_of_locks_and_returns_it() {
        let table = LockTable::new(Instant::START);
        let lease = lock(&table, 2, 0..1, 0);
        let change = |client, first, last, step| {
            let (number, range) = (FileNumber(0), LockRange { first, last });
            let request = LockChange { number, owner: 1, range, step, claims: false };
            table.step(NodeId(client), lease, &request)
        };
        let set = LockStep::Set(LockMode::Exclusive);
        let all =
            (0..).take_while(|lock| matches!(change(2, 2 * lock, 2 * lock, set), LockAnswer::Done { .. }));
        let all = all.count() as u64;
        assert!((LOCKS.1 / 2..LOCKS.0 + LOCKS.1).contains(&all), "half of what is free: {all}");
        assert_eq!(change(2, 0, 99, set), LockAnswer::TooMany);
        for lock in all - 4..all {
            assert!(matches!(change(2, 2 * lock, 2 * lock, LockStep::Release), LockAnswer::Done { .. }));
        }
        // A lock that replaces fifty frees their share, and splitting a lock takes one more.
        assert!(matches!(change(2, 0, 99, set), LockAnswer::Done { .. }), "one for fifty");
        assert!(matches!(change(2, 10, 20, LockStep::Release), LockAnswer::Done { .. }));
        let more = (all - 4..)
            .take_while(|lock| matches!(change(2, 2 * lock, 2 * lock, set), LockAnswer::Done { .. }));
        assert!((49..=53).contains(&more.count()));
        let split = |split: u64| change(2, 30 + 10 * split, 31 + 10 * split, LockStep::Release);
        let splits: Vec<LockAnswer> = (0..4_u64).map(split).collect();
        assert_eq!(splits.last(), Some(&LockAnswer::TooMany), "each makes one more");
        assert!(matches!(change(2, 0, u64::MAX, LockStep::Release), LockAnswer::Done { .. }));
        assert!(table.lock_shares.try_add(NodeId(2), LOCKS.1 / 2), "all shares are free again");
        table.end_leases(Instant::START + LEASE);
        assert!(table.files.borrow().is_empty() && table.leases.borrow().is_empty());
    }

    #[test]
    fn an_ended_lease_is_remembered_despite_many_locks_of_others() {
        let table = LockTable::new(Instant::START);
        let first = lock(&table, 1, 1..2, 1);
        table.end_leases(Instant::START + LEASE);
        let of_many_ranges = lock(&table, 2, 2..3, 5000);
        let of_many_files = lock(&table, 3, 3..9000, 1);
        table.end_leases(Instant::START + LEASE);
        assert_eq!(table.ended_on(FileNumber(1)), [first, of_many_files]);
        let mut on_second = table.ended_on(FileNumber(2));
        on_second.sort_unstable();
        let mut expected = [of_many_ranges, of_many_files];
        expected.sort_unstable();
        assert_eq!(on_second, expected);
        assert_eq!(table.ended_on(FileNumber(8999)), [of_many_files]);
        for client in 4..4 + ENDED_MAX as u64 {
            lock(&table, client, 1..2, 1);
            table.end_leases(Instant::START + LEASE);
        }
        assert_eq!(table.ended_on(FileNumber(1)).len(), ENDED_MAX, "the oldest go");
    }
}
