//! Condition variable for the tasks of one node: the primitive on which all waits among them are built.
//!
//! Nodes are single-threaded, so their tasks share state in plain cells and need only a way to wait for a change:
//!
//! ```text
//! while !state.is_ready() { condition.wait().await; }      // one task
//! state.make_ready(); condition.wake_one();                // another
//! ```
//!
//! Waiters wake in order of arrival. A simulated run is deterministic only with this order, so the condition variable
//! is not taken from a library.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Queue of waiting tasks, woken first come, first served.
#[derive(Default)]
pub struct Condition {
    /// The waiting tasks, sorted by ticket. A woken task leaves the queue.
    waiting: RefCell<VecDeque<(i64, Waker)>>,
    last_ticket: Cell<i64>,
    first_ticket: Cell<i64>,
}

impl Condition {
    /// Returns a condition without waiting tasks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits, behind all others, until woken.
    pub fn wait(&self) -> Wait<'_> {
        Wait { condition: self, ticket: None, in_front: false }
    }

    /// Waits at the head of the queue until woken: used by a task that was woken too early and keeps its place.
    pub fn wait_in_front(&self) -> Wait<'_> {
        Wait { condition: self, ticket: None, in_front: true }
    }

    /// Wakes the task that has waited longest, if any.
    pub fn wake_one(&self) {
        let first = self.waiting.borrow_mut().pop_front();
        if let Some((_, waker)) = first {
            waker.wake();
        }
    }

    /// Wakes the task that has waited for the shortest time, if any. Use it for interchangeable tasks: the data of the
    /// newest task are most likely still in the processor's caches.
    pub fn wake_newest(&self) {
        let last = self.waiting.borrow_mut().pop_back();
        if let Some((_, waker)) = last {
            waker.wake();
        }
    }

    /// Wakes all tasks waiting now, in order.
    pub fn wake_all(&self) {
        if self.waiting.borrow().is_empty() {
            return;
        }
        let all = std::mem::take(&mut *self.waiting.borrow_mut());
        for (_, waker) in all {
            waker.wake();
        }
    }

    fn enqueue(&self, in_front: bool, waker: &Waker) -> i64 {
        let mut waiting = self.waiting.borrow_mut();
        if in_front {
            let ticket = self.first_ticket.get() - 1;
            self.first_ticket.set(ticket);
            waiting.push_front((ticket, waker.clone()));
            ticket
        } else {
            let ticket = self.last_ticket.get() + 1;
            self.last_ticket.set(ticket);
            waiting.push_back((ticket, waker.clone()));
            ticket
        }
    }

    fn position(&self, ticket: i64) -> Option<usize> {
        let waiting = self.waiting.borrow();
        let (&(first, _), &(last, _)) = (waiting.front()?, waiting.back()?);
        // A woken task was at one end of the queue, so this range check usually shows that it was removed.
        if !(first..=last).contains(&ticket) {
            return None;
        }
        waiting.binary_search_by_key(&ticket, |&(ticket, _)| ticket).ok()
    }
}

/// Wait on a [`Condition`]. If the wait is dropped after it was woken but before its task ran, the next waiter is woken
/// instead.
pub struct Wait<'a> {
    condition: &'a Condition,
    ticket: Option<i64>,
    in_front: bool,
}

impl Future for Wait<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(ticket) = self.ticket else {
            self.ticket = Some(self.condition.enqueue(self.in_front, context.waker()));
            return Poll::Pending;
        };
        match self.condition.position(ticket) {
            Some(position) => {
                self.condition.waiting.borrow_mut()[position].1.clone_from(context.waker());
                Poll::Pending
            }
            None => {
                self.ticket = None;
                Poll::Ready(())
            }
        }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        match self.condition.position(ticket) {
            Some(position) => drop(self.condition.waiting.borrow_mut().remove(position)),
            None => self.condition.wake_one(),
        }
    }
}
