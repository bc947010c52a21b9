//! A disk is given one request at a time, or a few; tasks wait here for their turn.
//!
//! There is no driver task: a task that needs the disk waits for a turn, uses the disk, and releases it. Releasing
//! it picks the next by the disk's [`Scheduling`] at once, before the releasing task does anything else, so the
//! disk is never idle for want of a decision. A task on demand gets the next turn before all those in the
//! background. With fair sharing, no task of a class is passed over for more than one sweep.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use machine::Class;
use slab::Slab;

use crate::schedule::{Position, Scheduling, Sweeps, Waiting};

/// The queue of one disk.
pub(crate) struct DiskQueue {
    /// Requests that the disk may have at a time.
    places: usize,
    /// Those it has.
    taken: Cell<usize>,
    arm: Cell<Position>,
    demand: RefCell<Waiting>,
    background: RefCell<Waiting>,
    waiters: RefCell<Slab<Waiter>>,
}

enum Waiter {
    Waiting(Waker),
    Granted,
}

/// Where a request waits.
#[derive(Clone, Copy)]
pub(crate) enum Urgency {
    Demand,
    /// With those on demand, but it has been accepted already, and few of these go at a time.
    Behind,
    Background,
}

impl From<Class> for Urgency {
    fn from(class: Class) -> Self {
        match class {
            Class::Control | Class::Demand => Urgency::Demand,
            Class::Background => Urgency::Background,
        }
    }
}

/// The right to use the disk until dropped.
pub(crate) struct DiskTurn<'a>(&'a DiskQueue);

impl DiskQueue {
    /// The queue of a disk that is given `places` requests at a time, one at least.
    pub(crate) fn new(scheduling: Scheduling, sweeps: Sweeps, places: usize) -> Self {
        DiskQueue {
            places: places.max(1),
            taken: Cell::new(0),
            arm: Cell::new((0, 0)),
            demand: RefCell::new(Waiting::new(scheduling, sweeps)),
            background: RefCell::new(Waiting::new(scheduling, sweeps)),
            waiters: RefCell::default(),
        }
    }

    /// Waits for a turn to use the disk at `position`.
    pub(crate) async fn turn(&self, position: Position, line: Urgency) -> DiskTurn<'_> {
        if self.taken.get() == self.places {
            WaitForTurn { queue: self, position, line, waiter: None }.await;
        } else {
            self.taken.set(self.taken.get() + 1);
            self.arm.set(position);
        }
        DiskTurn(self)
    }

    /// Whether anybody waits in the background.
    pub(crate) fn has_background(&self) -> bool {
        !self.background.borrow().is_empty()
    }

    /// Lets those who wait at `position` in the background wait on demand.
    pub(crate) fn promote(&self, position: Position) {
        for request in self.background.borrow_mut().take_at(position) {
            self.demand.borrow_mut().add(position, request);
        }
    }

    fn add(&self, line: Urgency, position: Position, request: usize) {
        match line {
            Urgency::Demand => self.demand.borrow_mut().add(position, request),
            Urgency::Behind => self.demand.borrow_mut().add_behind(position, request),
            Urgency::Background => self.background.borrow_mut().add(position, request),
        }
    }

    fn release(&self) {
        let arm = self.arm.get();
        let next = self.demand.borrow_mut().next(arm);
        let next = next.or_else(|| self.background.borrow_mut().next(arm));
        match next {
            Some((position, request)) => {
                self.arm.set(position);
                let waiter = std::mem::replace(&mut self.waiters.borrow_mut()[request], Waiter::Granted);
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
        self.0.release();
    }
}

struct WaitForTurn<'a> {
    queue: &'a DiskQueue,
    position: Position,
    line: Urgency,
    waiter: Option<usize>,
}

impl Future for WaitForTurn<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let queue = self.queue;
        let Some(request) = self.waiter else {
            let request = queue.waiters.borrow_mut().insert(Waiter::Waiting(context.waker().clone()));
            queue.add(self.line, self.position, request);
            self.waiter = Some(request);
            return Poll::Pending;
        };
        let mut waiters = queue.waiters.borrow_mut();
        match &mut waiters[request] {
            Waiter::Waiting(waker) => {
                waker.clone_from(context.waker());
                Poll::Pending
            }
            Waiter::Granted => {
                waiters.remove(request);
                self.waiter = None;
                Poll::Ready(())
            }
        }
    }
}

impl Drop for WaitForTurn<'_> {
    fn drop(&mut self) {
        let Some(request) = self.waiter else { return };
        let waiter = self.queue.waiters.borrow_mut().remove(request);
        match waiter {
            // It may have been promoted.
            Waiter::Waiting(_) => {
                self.queue.demand.borrow_mut().remove(request);
                self.queue.background.borrow_mut().remove(request);
            }
            Waiter::Granted => self.queue.release(),
        }
    }
}
