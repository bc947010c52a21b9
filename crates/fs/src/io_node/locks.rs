//! The locks of clients on files of the namespace, if this node keeps it.
//!
//! ```text
//!  client                              keeper
//!  Lock, lease 0            ------->   a new lease, good for LEASE
//!                           <-------   Done, lease 17
//!  Lock or Renew, lease 17  ------->   good for LEASE from now
//!                           <-------   Done
//!     nothing for LEASE                whoever asks next is given what lease 17 had, and told to fence 17 before
//!  Renew, lease 17          ------->
//!                           <-------   Lost
//! ```
//!
//! - All locks of a client are of one lease, which ends if nothing is heard of the client for [`LEASE`], and not with
//!   its connection: from here, a client that was killed looks like one that is still writing. A client relies on its
//!   lease for less than that (`client/tree/locks.rs`).
//! - Leases are in memory. A keeper that was started anew gives no lock until any lease of an earlier run has ended;
//!   until then clients claim again what they have.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use machine::{Duration, Instant, Machine, NodeId};
use namespace::FileNumber;

use super::IoNode;
use crate::error::Failure;
use crate::name;
use crate::protocol::{FENCED_MAX, HeldLock, LockAnswer, LockRequest, LockStep, Reply};
use crate::range_locks::{LockMode, RangeLock, RangeLocks};

/// How long a lease is good after its client was heard of. A program whose computer is lost keeps others out for so
/// long; one that loses its locks by a pause of its network has had to pause as long.
pub(crate) const LEASE: Duration = Duration::from_secs(5);

/// The most locks that one client has, on all files.
const LOCKS_MAX: usize = 1 << 16;

/// The most ended leases that are remembered: as many as can be told at once.
const ENDED_MAX: usize = FENCED_MAX;

/// The most files of an ended lease that are remembered; one with more of them counts for every file.
const ENDED_FILES_MAX: usize = 64;

/// The most leases of one client.
const LEASES_MAX: usize = 16;

/// Whose a lock is: a lease, and somebody of its client.
type Owner = (u64, u64);

/// The locks on all files.
pub(super) struct LockTable {
    began: Instant,
    /// Whether nobody can have locks of an earlier run.
    is_first_run: Cell<bool>,
    leases: RefCell<BTreeMap<u64, Lease>>,
    files: RefCell<BTreeMap<FileNumber, RangeLocks<Owner>>>,
    /// Leases that have ended with exclusive locks, the last ones.
    ended: RefCell<VecDeque<EndedLease>>,
    /// How many leases there have been.
    given: Cell<u64>,
}

struct Lease {
    client: NodeId,
    until: Instant,
    /// How many locks are of it.
    locks: usize,
}

/// A lease that has ended with exclusive locks.
struct EndedLease {
    lease: u64,
    /// The files on which it had some; none are named if it counts for every file.
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
            files: RefCell::default(),
            ended: RefCell::default(),
            given: Cell::new(0),
        }
    }

    /// Notes that the namespace was begun by this run: no earlier one has given locks.
    pub(super) fn note_beginning(&self) {
        self.is_first_run.set(true);
    }

    /// From when on locks are given.
    fn opens_at(&self) -> Instant {
        if self.is_first_run.get() { self.began } else { self.began + LEASE }
    }

    /// Ends the leases of which nothing was heard for too long.
    pub(super) fn end_leases(&self, now: Instant) {
        let mut leases = self.leases.borrow_mut();
        if leases.values().all(|lease| lease.until > now) {
            return;
        }
        leases.retain(|_, lease| lease.until > now);
        let mut ended = BTreeMap::<u64, BTreeSet<FileNumber>>::new();
        self.files.borrow_mut().retain(|&number, locks| {
            let is_over = |(lease, _): Owner| !leases.contains_key(&lease);
            let writers = locks.all().iter().filter(|lock| lock.mode == LockMode::Exclusive);
            for lock in writers.filter(|lock| is_over(lock.owner)) {
                ended.entry(lock.owner.0).or_default().insert(number);
            }
            locks.release(is_over);
            !locks.all().is_empty()
        });
        let mut all = self.ended.borrow_mut();
        all.extend(ended.into_iter().map(EndedLease::of));
        let too_many = all.len().saturating_sub(ENDED_MAX);
        all.drain(..too_many);
    }

    /// The leases that have ended with exclusive locks on a file, or may have had some, as far as they are remembered.
    fn ended_on(&self, number: FileNumber) -> Vec<u64> {
        let ended = self.ended.borrow();
        ended.iter().filter(|ended| ended.counts_for(number)).map(|ended| ended.lease).collect()
    }

    /// Renews a lease; whether it is good.
    fn renew(&self, lease: u64, now: Instant) -> bool {
        self.end_leases(now);
        let mut leases = self.leases.borrow_mut();
        let found = leases.get_mut(&lease);
        found.map(|lease| lease.until = now + LEASE).is_some()
    }

    /// A new lease; none, if the client has too many.
    fn lease(&self, client: NodeId, incarnation: u64, now: Instant) -> Option<u64> {
        self.given.set(self.given.get() + 1);
        // Of several runs there are no two alike.
        let lease = name::hash_of("lease", &[incarnation, self.began.as_nanos(), self.given.get()]);
        self.enter(lease, client, now).then_some(lease)
    }

    fn enter(&self, lease: u64, client: NodeId, now: Instant) -> bool {
        let mut leases = self.leases.borrow_mut();
        let has_room = leases.values().filter(|lease| lease.client == client).count() < LEASES_MAX;
        if has_room {
            leases.insert(lease, Lease { client, until: now + LEASE, locks: 0 });
        }
        has_room
    }

    /// How many locks a client has.
    fn count(&self, client: NodeId) -> usize {
        let leases = self.leases.borrow();
        leases.values().filter(|lease| lease.client == client).map(|lease| lease.locks).sum()
    }

    /// Does a step for a lease that is good.
    fn step(&self, lease: u64, request: &LockRequest) -> LockAnswer {
        let LockRequest { number, owner, range, step, .. } = *request;
        let mut files = self.files.borrow_mut();
        let (locks, owner) = (files.entry(number).or_default(), (lease, owner));
        let answer = match step {
            LockStep::Test(mode) | LockStep::Set(mode) => match locks.conflict(owner, range, mode) {
                Some(lock) => LockAnswer::Held { lease, lock: as_held_lock(lock, lease) },
                None => LockAnswer::Done { lease },
            },
            LockStep::Release => LockAnswer::Done { lease },
        };
        let (is_done, before) = (matches!(answer, LockAnswer::Done { .. }), locks.all().len());
        match step {
            LockStep::Set(mode) if is_done => locks.set(owner, range, Some(mode)),
            LockStep::Release => locks.set(owner, range, None),
            _ => {}
        }
        if let Some(lease) = self.leases.borrow_mut().get_mut(&lease) {
            lease.locks = lease.locks + locks.all().len() - before;
        }
        if locks.all().is_empty() {
            files.remove(&number);
        }
        if !is_done || !matches!(step, LockStep::Set(_)) {
            return answer;
        }
        match self.ended_on(number) {
            ended if ended.is_empty() => answer,
            ended => LockAnswer::DoneAfter { lease, ended },
        }
    }
}

/// A lock, as somebody hears of it whom it keeps out.
fn as_held_lock(lock: RangeLock<Owner>, lease: u64) -> HeldLock {
    let RangeLock { owner: (its_lease, owner), range, mode } = lock;
    HeldLock { owner: (its_lease == lease).then_some(owner), range, mode }
}

impl<M: Machine> IoNode<M> {
    /// Serves a request for a lock.
    pub(super) fn lock(&self, client: NodeId, request: LockRequest) -> Result<Reply, Box<Failure>> {
        if request.range.first > request.range.last {
            return Err(Failure::invalid("a lock on bytes that end before they begin").into());
        }
        let locks = &self.keeper.locks;
        let gives = !matches!(request.step, LockStep::Release) && !request.claims;
        let now = self.machine.now();
        if gives && now < locks.opens_at() {
            return Ok(Reply::Lock(LockAnswer::NotYet));
        }
        locks.end_leases(now);
        let is_known = request.lease != 0 && locks.renew(request.lease, now);
        let lease = match request.lease {
            0 if gives => locks.lease(client, self.settings.incarnation, now),
            lease if is_known => Some(lease),
            lease if lease != 0 && request.claims && now < locks.opens_at() => {
                locks.enter(lease, client, now).then_some(lease)
            }
            _ => return Ok(Reply::Lock(LockAnswer::Lost)),
        };
        let has_room = || !matches!(request.step, LockStep::Set(_)) || locks.count(client) < LOCKS_MAX;
        match lease {
            Some(lease) if has_room() => Ok(Reply::Lock(locks.step(lease, &request))),
            _ => Ok(Reply::Lock(LockAnswer::TooMany)),
        }
    }

    /// Renews a client's lease.
    pub(super) fn renew_lease(&self, lease: u64) -> Reply {
        Reply::Lock(match self.keeper.locks.renew(lease, self.machine.now()) {
            true => LockAnswer::Done { lease },
            false => LockAnswer::Lost,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range_locks::LockRange;

    /// Has a client with a lease of its own lock so many ranges of each file, from the first file on.
    fn lock(table: &LockTable, client: u64, files: std::ops::Range<u64>, ranges: u64) -> u64 {
        let lease = table.lease(NodeId(client), 1, Instant::START).expect("its first");
        for number in files {
            for first in (0..ranges).map(|range| 2 * range) {
                let range = LockRange { first, last: first };
                let (number, step) = (FileNumber(number), LockStep::Set(LockMode::Exclusive));
                let request = LockRequest { lease, number, owner: 1, range, step, claims: false };
                assert!(!matches!(table.step(lease, &request), LockAnswer::Held { .. }));
            }
        }
        lease
    }

    #[test]
    fn counting_a_clients_locks_costs_no_more_when_there_are_many() {
        const FILES: u64 = 20_000;
        let table = LockTable::new(Instant::START);
        lock(&table, 1, 0..FILES, 1);
        let lease = lock(&table, 2, 0..0, 0);
        let change = |number, step| {
            let range = LockRange { first: 0, last: 9 };
            let number = FileNumber(FILES + number);
            let request = LockRequest { lease, number, owner: 1, range, step, claims: false };
            assert!(matches!(table.step(lease, &request), LockAnswer::Done { .. }));
        };
        for number in 0..FILES {
            change(number, LockStep::Set(LockMode::Exclusive));
            change(number, LockStep::Set(LockMode::Shared));
            assert_eq!(
                (table.count(NodeId(1)), table.count(NodeId(2))),
                (FILES as usize, 1 + number as usize)
            );
        }
        for number in 0..FILES {
            change(number, LockStep::Release);
        }
        assert_eq!(table.count(NodeId(2)), 0);
        table.end_leases(Instant::START + LEASE);
        assert_eq!(table.count(NodeId(1)), 0);
    }

    #[test]
    fn a_lease_that_has_ended_is_remembered_however_many_locks_others_had() {
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
