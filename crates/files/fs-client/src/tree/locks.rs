//! File locks, which the metadata server grants to all clients.
//!
//! Locks belong to a lease, which a task renews as long as the client has locks. A client relies on its lease for less
//! time than the metadata server grants it, counted from the request and not from the answer. So it has stopped before
//! the server grants the locks to another client. Users of the file get an error for lost locks, until their owner has
//! released them.
//!
//! Writes to a file with locks carry the client's lease. If locks are lost, unsent writes are discarded. Before a
//! client relies on a lock that another client has lost, it makes the I/O nodes reject writes with that client's lease.
//! Such writes may still be in flight, and a client whose clock has stood still may believe its lease valid.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};

use machine::{Duration, Instant, Machine, Payload, Permits};
use namespace::{FileNumber, TreeRefusal};

use super::{Tree, TreeInner};
use crate::error::{Error, Result};
use crate::protocol::{FENCED_MAX, FileId, HeldLock, LockAnswer, LockChange, LockStep, Reply, Request};
use crate::range_locks::LEASE;
use crate::range_locks::{LockMode, LockRange, RangeLock, RangeLocks};
use crate::unexpected;

/// Time for which a client relies on its lease. A fifth less than the metadata server's time, because clock rates may
/// differ by up to that much.
const RELIED: Duration = Duration::from_nanos(LEASE.as_nanos() / 5 * 4);

/// Interval between renewals: short enough that one may fail.
const RENEW_EVERY: Duration = Duration::from_nanos(LEASE.as_nanos() / 5);

/// Interval between requests to a metadata server that grants no locks yet.
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// The locks that a client has, as far as it knows.
pub(super) struct TreeLocks {
    /// The lease; 0 without one.
    lease: Cell<u64>,
    /// Time of the last request that the metadata server answered by renewing the lease.
    renewed: Cell<Instant>,
    held: RefCell<BTreeMap<FileNumber, RangeLocks<u64>>>,
    /// Files and owners with lost locks.
    lost: RefCell<BTreeSet<(FileNumber, u64)>>,
    /// Expired leases of others that the I/O nodes were asked to fence.
    fenced: RefCell<BTreeSet<u64>>,
    is_kept: Cell<bool>,
    /// Serialises requests, so that the local state changes in the order of the answers.
    turn: Permits,
}

impl Default for TreeLocks {
    fn default() -> Self {
        TreeLocks {
            lease: Cell::new(0),
            renewed: Cell::new(Instant::START),
            held: RefCell::default(),
            lost: RefCell::default(),
            fenced: RefCell::default(),
            is_kept: Cell::new(false),
            turn: Permits::new(1),
        }
    }
}

impl TreeLocks {
    fn note(&self, answer: &LockAnswer, asked: Instant) {
        if let LockAnswer::Done { lease }
        | LockAnswer::DoneAfter { lease, .. }
        | LockAnswer::Held { lease, .. } = *answer
        {
            self.lease.set(lease);
            self.renewed.set(self.renewed.get().max(asked));
        }
    }

    fn may_rely(&self, now: Instant) -> bool {
        self.lease.get() != 0 && now.since(self.renewed.get()) < RELIED
    }

    /// Repeats locally a change that the metadata server has made.
    fn set(&self, number: FileNumber, owner: u64, range: LockRange, mode: Option<LockMode>) {
        let mut held = self.held.borrow_mut();
        let locks = held.entry(number).or_default();
        locks.set(owner, range, mode);
        if locks.is_empty() {
            held.remove(&number);
        }
    }

    fn lose(&self, number: FileNumber, owner: u64) {
        self.set(number, owner, LockRange::WHOLE, None);
        self.lost.borrow_mut().insert((number, owner));
    }

    fn has_lost(&self, number: FileNumber) -> bool {
        self.lost.borrow().range((number, 0)..=(number, u64::MAX)).next().is_some()
    }

    fn all(&self) -> Vec<(FileNumber, RangeLock<u64>)> {
        let held = self.held.borrow();
        held.iter().flat_map(|(number, locks)| locks.all().map(|lock| (*number, lock))).collect()
    }
}

impl<M: Machine> Tree<M> {
    /// Locks a part of a file for `owner`, which identifies a lock owner within this client, and replaces the owner's
    /// other locks there. If a lock of another owner conflicts, returns that lock and changes nothing.
    ///
    /// Does not wait for other owners. After a restart of the metadata server, it blocks until locks of the server's
    /// earlier incarnation have expired.
    ///
    /// # Errors
    /// Fails if the metadata server does not answer, or if the owner's locks on that file are lost.
    pub async fn lock(
        &self,
        number: FileNumber,
        owner: u64,
        range: LockRange,
        mode: LockMode,
    ) -> Result<Option<HeldLock>> {
        self.ask_for_lock(number, owner, range, LockStep::Set(mode)).await
    }

    /// Returns the lock of another owner that conflicts with a lock for `owner`, if any.
    ///
    /// # Errors
    /// Fails as [`lock`](Self::lock) does.
    pub async fn who_locks(
        &self,
        number: FileNumber,
        owner: u64,
        range: LockRange,
        mode: LockMode,
    ) -> Result<Option<HeldLock>> {
        self.ask_for_lock(number, owner, range, LockStep::Test(mode)).await
    }

    /// Releases the locks of `owner` on a part of a file. Sends no request if it has no locks there.
    ///
    /// # Errors
    /// Fails if the metadata server does not answer; the locks then end with the lease.
    pub async fn unlock(&self, number: FileNumber, owner: u64, range: LockRange) -> Result<()> {
        let locks = &self.inner.locks;
        let had_lost = locks.lost.borrow_mut().remove(&(number, owner));
        // The metadata server may have granted some of the lost locks at the reclaim.
        let may_have = had_lost && locks.lease.get() != 0;
        if !may_have && !self.has_locks(number, owner) {
            return Ok(());
        }
        self.ask_for_lock(number, owner, range, LockStep::Release).await.map(drop)
    }

    /// Returns true if `owner` has locks on a file, as far as this client knows.
    pub fn has_locks(&self, number: FileNumber, owner: u64) -> bool {
        let held = self.inner.locks.held.borrow();
        held.get(&number).is_some_and(|locks| locks.of(owner..=owner).next().is_some())
    }

    /// Returns true if locks of `owner` on a file were lost, and it has not unlocked any of them since.
    pub fn has_lost_locks(&self, number: FileNumber, owner: u64) -> bool {
        self.inner.locks.lost.borrow().contains(&(number, owner))
    }

    /// Fails if locks of this client on a file may have been granted to others. Call it before reading or writing data
    /// that the locks protect. Sends a request only from time to time.
    ///
    /// # Errors
    /// Fails with [`Error::LocksLost`], or if the metadata server does not answer.
    pub async fn check_locks(&self, number: FileNumber) -> Result<()> {
        let locks = &self.inner.locks;
        loop {
            if locks.has_lost(number) {
                return Err(Error::LocksLost { number, metadata_server: self.metadata_server() }.into());
            }
            let has_some = locks.held.borrow().contains_key(&number);
            if !has_some || locks.may_rely(self.machine().now()) {
                return Ok(());
            }
            self.renew_lease().await?;
        }
    }

    async fn ask_for_lock(
        &self,
        number: FileNumber,
        owner: u64,
        range: LockRange,
        step: LockStep,
    ) -> Result<Option<HeldLock>> {
        let locks = &self.inner.locks;
        let mut was_gone = false;
        loop {
            let turn = locks.turn.take().await;
            if self.has_lost_locks(number, owner) {
                return Err(Error::LocksLost { number, metadata_server: self.metadata_server() }.into());
            }
            match self.ask_lock_once(number, owner, range, step, false).await {
                Ok(answer @ (LockAnswer::Done { .. } | LockAnswer::DoneAfter { .. })) => {
                    if let LockAnswer::DoneAfter { ended, .. } = answer
                        && let Err(error) = self.fence(ended).await
                    {
                        machine::sometimes!("a lock is given up because a fence failed");
                        // Without the fence the lock is useless. If the release fails, the lock ends with the lease.
                        let _ = self.ask_lock_once(number, owner, range, LockStep::Release, false).await;
                        locks.set(number, owner, range, None);
                        return Err(error);
                    }
                    match step {
                        LockStep::Test(_) => {}
                        LockStep::Set(mode) => locks.set(number, owner, range, Some(mode)),
                        LockStep::Release => locks.set(number, owner, range, None),
                    }
                    self.keep_lease();
                    self.note_lease(number);
                    return Ok(None);
                }
                Ok(LockAnswer::Held { lock, .. }) => return Ok(Some(lock)),
                Ok(LockAnswer::Lost) => {
                    machine::sometimes!("a lock request finds its lease lost");
                    self.claim().await?;
                    if step == LockStep::Release && !self.has_locks(number, owner) {
                        locks.lost.borrow_mut().remove(&(number, owner));
                        return Ok(None);
                    }
                }
                Ok(LockAnswer::TooMany) => return Err(TreeRefusal::Busy.into()),
                Ok(LockAnswer::NotYet) => {
                    machine::sometimes!("a lock waits for the grace period of the metadata server");
                    drop(turn);
                    let next = self.machine().now() + ASK_AGAIN;
                    self.machine().sleep_until(next).await;
                }
                // Retry: lock requests are idempotent.
                Err(error) if error.is_restart() && !was_gone => {
                    machine::sometimes!("a lock request is retried after a disconnect");
                    was_gone = true;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn ask_lock_once(
        &self,
        number: FileNumber,
        owner: u64,
        range: LockRange,
        step: LockStep,
        claims: bool,
    ) -> Result<LockAnswer> {
        // The metadata server grants locks only on files that it knows to be open here.
        self.reclaim_open_files().await?;
        let lease = self.inner.locks.lease.get();
        self.ask_about_locks(lease, Some(LockChange { number, owner, range, step, claims })).await
    }

    async fn ask_about_locks(&self, lease: u64, change: Option<LockChange>) -> Result<LockAnswer> {
        let (request, asked) = (Request::Lock { lease, change }, self.machine().now());
        let endpoint = &self.inner.cache.client().inner.endpoint;
        match endpoint.call(self.metadata_server(), request, Payload::empty()).await? {
            (Reply::Lock(answer), _) => {
                self.inner.locks.note(&answer, asked);
                Ok(answer)
            }
            _ => Err(unexpected(self.metadata_server())),
        }
    }

    /// Renews the lease. If it has expired, its locks are lost, unless the metadata server has restarted.
    async fn renew_lease(&self) -> Result<()> {
        let lease = self.inner.locks.lease.get();
        if self.ask_about_locks(lease, None).await? == LockAnswer::Lost {
            let _turn = self.inner.locks.turn.take().await;
            machine::sometimes!("a renewal finds the lease lost");
            machine::sometimes!("another task reclaims the locks during a renewal", if self.inner.locks.lease.get() != lease);
            // Another task may have reclaimed the locks during the wait.
            if self.inner.locks.lease.get() == lease {
                self.claim().await?;
            }
        }
        Ok(())
    }

    /// Reclaims the locks from a metadata server that does not know the lease. The server grants them if it has
    /// restarted, and refuses if it has ended the lease. If the lease may have expired before, the locks are lost
    /// without a request.
    async fn claim(&self) -> Result<()> {
        let locks = &self.inner.locks;
        let mut has_some = false;
        for (number, RangeLock { owner, range, mode }) in locks.all() {
            if self.has_lost_locks(number, owner) {
                continue;
            }
            let is_given = locks.may_rely(self.machine().now()) && {
                let answer = self.ask_lock_once(number, owner, range, LockStep::Set(mode), true).await?;
                matches!(answer, LockAnswer::Done { .. })
            };
            has_some |= is_given;
            machine::sometimes!("a client reclaims a lock", if is_given);
            machine::sometimes!("a client loses a lock", if !is_given);
            if !is_given {
                locks.lose(number, owner);
                let lost = Error::LocksLost { number, metadata_server: self.metadata_server() };
                self.cache().give_up_unsent(FileId(number.0), lost.into());
                self.note_lease(number);
            }
        }
        if !has_some {
            locks.lease.set(0);
        }
        Ok(())
    }

    /// Makes all I/O nodes reject writes under expired leases, unless they have been asked before.
    ///
    /// # Errors
    /// Fails if an I/O node does not answer.
    async fn fence(&self, mut leases: Vec<u64>) -> Result<()> {
        let fenced = &self.inner.locks.fenced;
        leases.retain(|lease| !fenced.borrow().contains(lease));
        if leases.is_empty() {
            return Ok(());
        }
        machine::sometimes!("a client fences expired leases");
        self.cache().client().have_all(&Request::Fence { leases: leases.clone() }).await?;
        let mut fenced = fenced.borrow_mut();
        if fenced.len() > FENCED_MAX {
            fenced.clear();
        }
        fenced.extend(leases);
        Ok(())
    }

    /// Attaches the lease to writes to a file as long as there are locks on it.
    pub(super) fn note_lease(&self, number: FileNumber) {
        let locks = &self.inner.locks;
        let lease = locks.held.borrow().contains_key(&number).then(|| locks.lease.get());
        self.cache().note_lease(FileId(number.0), lease);
    }

    /// Starts the task that renews the lease as long as there are locks.
    fn keep_lease(&self) {
        if !self.inner.locks.is_kept.replace(true) {
            let tree = Rc::downgrade(&self.inner);
            self.machine().spawn("renewing a lease", async move {
                keep(tree).await;
                Ok(())
            });
        }
    }
}

async fn keep<M: Machine>(tree: Weak<TreeInner<M>>) {
    while let Some(inner) = tree.upgrade() {
        let tree = Tree { inner };
        if tree.inner.locks.held.borrow().is_empty() {
            tree.inner.locks.is_kept.set(false);
            return;
        }
        // Ignore errors: the task retries, and users of a file get them, too.
        let outcome = tree.renew_lease().await;
        if outcome.is_err_and(|error| matches!(*error, Error::Machine(machine::Error::Closed))) {
            return;
        }
        let machine = tree.machine().clone();
        drop(tree);
        let next = machine.now() + RENEW_EVERY;
        machine.sleep_until(next).await;
    }
}
