//! The queue of a disk: a limited number of requests is at the disk at a time, and tasks wait here for their
//! turn.
//!
//! There is no driver task: a task that needs the disk waits for a turn, uses the disk, and releases it.
//! Releasing it selects the next request by the disk's [`DiskSchedule`] at once, before the releasing task
//! does anything else. So the disk never idles for lack of a decision.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use slab::Slab;

use crate::backlog_detector::{Backlog, HeldUp};
use crate::schedule::{DiskRequest, DiskSchedule, Number, Position};

/// The queue of one disk.
pub(crate) struct DiskQueue {
    /// Limit of requests at the disk at a time.
    places: usize,
    /// Number of requests at the disk. No request waits while this is below the limit.
    taken: Cell<usize>,
    arm: Cell<Position>,
    schedule: RefCell<Box<dyn DiskSchedule>>,
    backlog: RefCell<Backlog>,
    waiters: RefCell<Slab<Waiter>>,
}

enum Waiter {
    Waiting(Waker),
    Granted(Option<HeldUp>),
}

/// The right to use the disk until dropped.
pub(crate) struct DiskTurn<'a> {
    queue: &'a DiskQueue,
    /// Cause of a delay of its job, if it was delayed.
    pub(crate) held_up: Option<HeldUp>,
}

impl DiskQueue {
    /// Creates the queue of a disk with at most `places` requests at a time, at least one, in the order of
    /// `schedule`.
    pub(crate) fn new(schedule: Box<dyn DiskSchedule>, places: usize) -> Self {
        DiskQueue {
            places: places.max(1),
            taken: Cell::new(0),
            arm: Cell::new((0, 0)),
            schedule: RefCell::new(schedule),
            backlog: RefCell::default(),
            waiters: RefCell::default(),
        }
    }

    /// Waits for a turn to use the disk.
    pub(crate) async fn turn(&self, request: DiskRequest) -> DiskTurn<'_> {
        let held_up = if self.taken.get() == self.places {
            WaitForTurn { queue: self, request, waiter: None }.await
        } else {
            self.taken.set(self.taken.get() + 1);
            // The request goes through the schedule like all others, so that it counts as its job's turn.
            self.schedule.borrow_mut().push(request, Number::MAX);
            let next = self.next();
            debug_assert_eq!(next, Some((request, Number::MAX)), "nobody else waits");
            None
        };
        DiskTurn { queue: self, held_up }
    }

    /// Returns the number of requests waiting for a turn.
    pub(crate) fn waiting(&self) -> u64 {
        let waiters = self.waiters.borrow();
        waiters.iter().filter(|(_, waiter)| matches!(waiter, Waiter::Waiting(_))).count() as u64
    }

    /// True if a background request waits.
    pub(crate) fn has_background(&self) -> bool {
        self.schedule.borrow().has_background()
    }

    /// Promotes the background requests at `position` to demand.
    pub(crate) fn promote(&self, position: Position) {
        self.schedule.borrow_mut().promote(position);
    }

    /// Takes the next request out of the queue, if any, and moves the arm to its position.
    fn next(&self) -> Option<(DiskRequest, Number)> {
        let (request, number) = self.schedule.borrow_mut().pop(self.arm.get())?;
        self.arm.set(request.position);
        Some((request, number))
    }

    fn release(&self) {
        match self.next() {
            Some((request, number)) => {
                let granted = Waiter::Granted(self.backlog.borrow_mut().serve(&request));
                let waiter = std::mem::replace(&mut self.waiters.borrow_mut()[number], granted);
                if let Waiter::Waiting(waker) = waiter {
                    waker.wake();
                }
            }
            None => self.taken.set(self.taken.get() - 1),
        }
    }
}

impl Drop for DiskTurn<'_> {
    fn drop(&mut self) {
        self.queue.release();
    }
}

struct WaitForTurn<'a> {
    queue: &'a DiskQueue,
    request: DiskRequest,
    waiter: Option<Number>,
}

impl Future for WaitForTurn<'_> {
    type Output = Option<HeldUp>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<HeldUp>> {
        let queue = self.queue;
        let Some(number) = self.waiter else {
            let number = queue.waiters.borrow_mut().insert(Waiter::Waiting(context.waker().clone()));
            queue.schedule.borrow_mut().push(self.request, number);
            queue.backlog.borrow_mut().add(&self.request);
            self.waiter = Some(number);
            return Poll::Pending;
        };
        let mut waiters = queue.waiters.borrow_mut();
        match &mut waiters[number] {
            Waiter::Waiting(waker) => {
                waker.clone_from(context.waker());
                Poll::Pending
            }
            &mut Waiter::Granted(held_up) => {
                waiters.remove(number);
                self.waiter = None;
                Poll::Ready(held_up)
            }
        }
    }
}

impl Drop for WaitForTurn<'_> {
    fn drop(&mut self) {
        let Some(number) = self.waiter else { return };
        let waiter = self.queue.waiters.borrow_mut().remove(number);
        match waiter {
            Waiter::Waiting(_) => {
                self.queue.schedule.borrow_mut().remove(number);
                self.queue.backlog.borrow_mut().remove(&self.request);
            }
            Waiter::Granted(_) => self.queue.release(),
        }
    }
}
