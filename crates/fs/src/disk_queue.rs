//! A disk serves one request at a time; tasks wait here for their turn.
//!
//! There is no driver task: who needs the disk asks for a turn, uses the disk, and lets go. Letting go picks
//! the next by the disk's [`Scheduling`] at once, before the task that lets go does anything else, so the
//! disk is never idle for want of a decision.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use slab::Slab;

use crate::schedule::{Position, Scheduling, Waiting};

/// The queue of one disk.
pub(crate) struct DiskQueue {
    busy: Cell<bool>,
    arm: Cell<Position>,
    waiting: RefCell<Waiting>,
    waiters: RefCell<Slab<Waiter>>,
}

enum Waiter {
    Waiting(Waker),
    Granted,
}

/// The right to use the disk until dropped.
pub(crate) struct Turn<'a>(&'a DiskQueue);

impl DiskQueue {
    pub(crate) fn new(scheduling: Scheduling) -> Self {
        DiskQueue {
            busy: Cell::new(false),
            arm: Cell::new((0, 0)),
            waiting: RefCell::new(Waiting::new(scheduling)),
            waiters: RefCell::default(),
        }
    }

    /// Waits for a turn to use the disk at `position`.
    pub(crate) async fn turn(&self, position: Position) -> Turn<'_> {
        if self.busy.replace(true) {
            WaitForTurn { queue: self, position, waiter: None }.await;
        } else {
            self.arm.set(position);
        }
        Turn(self)
    }

    fn release(&self) {
        let next = self.waiting.borrow_mut().next(self.arm.get());
        match next {
            Some((position, request)) => {
                self.arm.set(position);
                let waiter = std::mem::replace(&mut self.waiters.borrow_mut()[request], Waiter::Granted);
                if let Waiter::Waiting(waker) = waiter {
                    waker.wake();
                }
            }
            None => self.busy.set(false),
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

struct WaitForTurn<'a> {
    queue: &'a DiskQueue,
    position: Position,
    waiter: Option<usize>,
}

impl Future for WaitForTurn<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let queue = self.queue;
        let Some(request) = self.waiter else {
            let request = queue.waiters.borrow_mut().insert(Waiter::Waiting(context.waker().clone()));
            queue.waiting.borrow_mut().add(self.position, request);
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
            Waiter::Waiting(_) => self.queue.waiting.borrow_mut().remove(request),
            Waiter::Granted => self.queue.release(),
        }
    }
}
