//! Locks on files, which the keeper gives to all clients.
//!
//! They are of a lease, which a task renews as long as there are locks. A client relies on its lease for less time than
//! the keeper keeps it, counted from when it has asked and not from the answer; so when the keeper gives the locks to
//! somebody else, this client has stopped. What was lost is told to whoever uses the file, until the owner has released
//! what he believed to have.
//!
//! What is written to a file of which this client has locks is sent with its lease. If locks are lost, what has not
//! left is given up; and before a lock is relied on that somebody else has lost, the I/O nodes refuse what comes with
//! his lease: it may be on its way still, and he may believe his lease good if his clock has stood still.

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

/// How long a client relies on its lease. A fifth less than the keeper: clocks may differ by as much, and more.
const RELIED: Duration = Duration::from_nanos(LEASE.as_nanos() / 5 * 4);

/// How often it is renewed: one may fail.
const RENEW_EVERY: Duration = Duration::from_nanos(LEASE.as_nanos() / 5);

/// How long to wait with the next question to a keeper that gives no locks yet.
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// The locks that a client has, as far as it knows.
pub(super) struct TreeLocks {
    /// 0 if there is none.
    lease: Cell<u64>,
    /// When the last question was asked that the keeper has answered by renewing the lease.
    renewed: Cell<Instant>,
    held: RefCell<BTreeMap<FileNumber, RangeLocks<u64>>>,
    /// Whose locks on which file were lost.
    lost: RefCell<BTreeSet<(FileNumber, u64)>>,
    /// Ended leases of others that the I/O nodes were asked to fence.
    fenced: RefCell<BTreeSet<u64>>,
    is_kept: Cell<bool>,
    /// The turn at asking: what is known here follows in the order of the answers.
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

    /// Does here what the keeper has done.
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
    /// Has `owner`, of those that this client tells apart, have a lock on a part of a file, in place of what he has of
    /// that part. If somebody else has one that does not allow it, that is answered, and nothing is done.
    ///
    /// Nobody is waited for, but the keeper: if it was started anew, until locks of its earlier run have ended.
    ///
    /// # Errors
    /// If the keeper cannot be asked, or the owner's locks on that file are lost.
    pub async fn lock(
        &self,
        number: FileNumber,
        owner: u64,
        range: LockRange,
        mode: LockMode,
    ) -> Result<Option<HeldLock>> {
        self.ask_for_lock(number, owner, range, LockStep::Set(mode)).await
    }

    /// The lock of somebody else for which `owner` could not have one now, if there is one.
    ///
    /// # Errors
    /// As those of [`lock`](Self::lock).
    pub async fn who_locks(
        &self,
        number: FileNumber,
        owner: u64,
        range: LockRange,
        mode: LockMode,
    ) -> Result<Option<HeldLock>> {
        self.ask_for_lock(number, owner, range, LockStep::Test(mode)).await
    }

    /// Takes from `owner` what he has locked of a part of a file. Nothing is asked if he has nothing there.
    ///
    /// # Errors
    /// If the keeper cannot be told; the locks end with the lease then.
    pub async fn unlock(&self, number: FileNumber, owner: u64, range: LockRange) -> Result<()> {
        let locks = &self.inner.locks;
        let had_lost = locks.lost.borrow_mut().remove(&(number, owner));
        // Of what was lost the keeper may have given some when it was claimed.
        let may_have = had_lost && locks.lease.get() != 0;
        if !may_have && !self.has_locks(number, owner) {
            return Ok(());
        }
        self.ask_for_lock(number, owner, range, LockStep::Release).await.map(drop)
    }

    /// Whether `owner` has locks on a file, as far as this client knows.
    pub fn has_locks(&self, number: FileNumber, owner: u64) -> bool {
        let held = self.inner.locks.held.borrow();
        held.get(&number).is_some_and(|locks| locks.of(owner..=owner).next().is_some())
    }

    /// Whether locks that `owner` had on a file were lost, and he has not unlocked any of them since.
    pub fn has_lost_locks(&self, number: FileNumber, owner: u64) -> bool {
        self.inner.locks.lost.borrow().contains(&(number, owner))
    }

    /// Fails if locks of this client on a file may have been given to others: before something is read or written that
    /// they are to protect. Nobody is asked but from time to time.
    ///
    /// # Errors
    /// [`Error::LocksLost`], or if the keeper cannot be asked.
    pub async fn check_locks(&self, number: FileNumber) -> Result<()> {
        let locks = &self.inner.locks;
        loop {
            if locks.has_lost(number) {
                return Err(Error::LocksLost { number, keeper: self.keeper() }.into());
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
                return Err(Error::LocksLost { number, keeper: self.keeper() }.into());
            }
            match self.ask_lock_once(number, owner, range, step, false).await {
                Ok(answer @ (LockAnswer::Done { .. } | LockAnswer::DoneAfter { .. })) => {
                    if let LockAnswer::DoneAfter { ended, .. } = answer
                        && let Err(error) = self.fence(ended).await
                    {
                        // Without that the lock is worth nothing; if this fails, it ends with the lease.
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
                    self.claim().await?;
                    if step == LockStep::Release && !self.has_locks(number, owner) {
                        locks.lost.borrow_mut().remove(&(number, owner));
                        return Ok(None);
                    }
                }
                Ok(LockAnswer::TooMany) => return Err(TreeRefusal::Busy.into()),
                Ok(LockAnswer::NotYet) => {
                    drop(turn);
                    let next = self.machine().now() + ASK_AGAIN;
                    self.machine().sleep_until(next).await;
                }
                // Asking twice is as good as once.
                Err(error) if error.is_of_new_start() && !was_gone => was_gone = true,
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
        // The keeper gives locks on files that it knows to be open here.
        self.hold_again().await?;
        let lease = self.inner.locks.lease.get();
        self.ask_about_locks(lease, Some(LockChange { number, owner, range, step, claims })).await
    }

    async fn ask_about_locks(&self, lease: u64, change: Option<LockChange>) -> Result<LockAnswer> {
        let (request, asked) = (Request::Lock { lease, change }, self.machine().now());
        let endpoint = &self.inner.cache.client().inner.endpoint;
        match endpoint.call(self.keeper(), request, Payload::empty()).await? {
            (Reply::Lock(answer), _) => {
                self.inner.locks.note(&answer, asked);
                Ok(answer)
            }
            _ => Err(unexpected(self.keeper())),
        }
    }

    /// Renews the lease. If it has ended, locks are lost, unless the keeper was started anew.
    async fn renew_lease(&self) -> Result<()> {
        let lease = self.inner.locks.lease.get();
        if self.ask_about_locks(lease, None).await? == LockAnswer::Lost {
            let _turn = self.inner.locks.turn.take().await;
            // Unless somebody else has done it meanwhile.
            if self.inner.locks.lease.get() == lease {
                self.claim().await?;
            }
        }
        Ok(())
    }

    /// Claims what was locked from a keeper that does not know the lease. It gives that if it was started anew, and
    /// not if it has ended the lease; nor is it asked if that may have been before.
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
            if !is_given {
                locks.lose(number, owner);
                let lost = Error::LocksLost { number, keeper: self.keeper() };
                self.cache().give_up_unsent(FileId(number.0), lost.into());
                self.note_lease(number);
            }
        }
        if !has_some {
            locks.lease.set(0);
        }
        Ok(())
    }

    /// Has all I/O nodes refuse what was written under leases that have ended, unless they have been asked for that.
    ///
    /// # Errors
    /// If one of them does not answer.
    async fn fence(&self, mut leases: Vec<u64>) -> Result<()> {
        let fenced = &self.inner.locks.fenced;
        leases.retain(|lease| !fenced.borrow().contains(lease));
        if leases.is_empty() {
            return Ok(());
        }
        self.cache().client().have_all(&Request::Fence { leases: leases.clone() }).await?;
        let mut fenced = fenced.borrow_mut();
        if fenced.len() > FENCED_MAX {
            fenced.clear();
        }
        fenced.extend(leases);
        Ok(())
    }

    /// Has what is written to a file sent with the lease as long as there are locks on it.
    pub(super) fn note_lease(&self, number: FileNumber) {
        let locks = &self.inner.locks;
        let lease = locks.held.borrow().contains_key(&number).then(|| locks.lease.get());
        self.cache().note_lease(FileId(number.0), lease);
    }

    /// Has the lease renewed as long as there are locks.
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
        // What fails is asked for again, and told to whoever uses a file.
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
