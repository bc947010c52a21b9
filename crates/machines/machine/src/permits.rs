//! Permits: a semaphore that limits the number of concurrent tasks of some kind.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Semaphore: a number of permits, granted in order of request. Cloning returns another handle to the same permits.
#[derive(Clone)]
pub struct Permits(Rc<Inner>);

struct Inner {
    free: Cell<u64>,
    /// Tasks waiting for permits, in order of arrival. The first task needs more permits than are free.
    queue: RefCell<VecDeque<Rc<Waiter>>>,
}

/// Task waiting for `count` permits.
struct Waiter {
    count: u64,
    is_served: Cell<bool>,
    waker: RefCell<Waker>,
}

impl Permits {
    /// Returns `count` permits, all free.
    pub fn new(count: u64) -> Self {
        Permits(Rc::new(Inner { free: Cell::new(count), queue: RefCell::default() }))
    }

    /// Takes a permit. Waits behind earlier takers until a permit is free. Dropping the permit returns it.
    pub async fn take(&self) -> Permit {
        self.take_many(1).await
    }

    /// Takes `count` permits together. Waits behind earlier takers until this number of permits is free.
    ///
    /// A new request waits behind earlier ones even if enough permits are free for it; otherwise a large request might
    /// wait for ever. A request for more permits than exist is never granted.
    pub async fn take_many(&self, count: u64) -> Permit {
        match self.try_take_many(count) {
            Some(permit) => permit,
            None => Take { inner: &self.0, count, waiter: None }.await,
        }
    }

    /// Takes a permit if one is free and no task waits.
    pub fn try_take(&self) -> Option<Permit> {
        self.try_take_many(1)
    }

    /// Takes `count` permits if they are free and no task waits.
    pub fn try_take_many(&self, count: u64) -> Option<Permit> {
        let is_first = self.0.queue.borrow().is_empty();
        (is_first && count <= self.0.free.get()).then(|| self.0.give(count))
    }

    /// Returns the number of free permits.
    pub fn free(&self) -> u64 {
        self.0.free.get()
    }
}

impl Inner {
    fn give(self: &Rc<Self>, count: u64) -> Permit {
        self.free.set(self.free.get() - count);
        Permit { permits: self.clone(), count }
    }

    fn put_back(&self, count: u64) {
        self.free.set(self.free.get() + count);
        self.serve();
    }

    /// Grants free permits to the tasks that have waited longest. These tasks own the permits before they run, so that
    /// no other task can take them first.
    fn serve(&self) {
        while let Some(waiter) = self.next_served() {
            waiter.waker.borrow().wake_by_ref();
        }
    }

    fn next_served(&self) -> Option<Rc<Waiter>> {
        let mut queue = self.queue.borrow_mut();
        let left = self.free.get().checked_sub(queue.front()?.count)?;
        self.free.set(left);
        let waiter = queue.pop_front()?;
        waiter.is_served.set(true);
        Some(waiter)
    }
}

/// Wait for permits.
struct Take<'a> {
    inner: &'a Rc<Inner>,
    count: u64,
    /// Place in the queue; `None` once the permits were taken.
    waiter: Option<Rc<Waiter>>,
}

impl Future for Take<'_> {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Permit> {
        match &self.waiter {
            Some(waiter) if waiter.is_served.get() => {
                self.waiter = None;
                Poll::Ready(Permit { permits: self.inner.clone(), count: self.count })
            }
            Some(waiter) => {
                waiter.waker.borrow_mut().clone_from(context.waker());
                Poll::Pending
            }
            None => {
                let waker = RefCell::new(context.waker().clone());
                let waiter = Rc::new(Waiter { count: self.count, is_served: Cell::new(false), waker });
                self.inner.queue.borrow_mut().push_back(waiter.clone());
                self.waiter = Some(waiter);
                Poll::Pending
            }
        }
    }
}

impl Drop for Take<'_> {
    fn drop(&mut self) {
        let Some(waiter) = self.waiter.take() else { return };
        if waiter.is_served.get() {
            self.inner.put_back(self.count);
        } else {
            self.inner.queue.borrow_mut().retain(|other| !Rc::ptr_eq(other, &waiter));
            // The removed request may have blocked smaller ones behind it.
            self.inner.serve();
        }
    }
}

/// One or more permits that were taken together. Dropping the value returns them.
#[must_use = "dropping it returns the permits"]
pub struct Permit {
    permits: Rc<Inner>,
    count: u64,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.permits.put_back(self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn permits_are_granted_in_order_of_arrival() {
        let permits = Permits::new(5);
        let mut given: Vec<Permit> = (0..5).map(|_| permits.try_take().expect("a permit is free")).collect();
        assert!(permits.try_take().is_none());
        let (mut large, mut small) = (pin!(permits.take_many(4)), pin!(permits.take()));
        assert!(poll(large.as_mut()).is_pending() && poll(small.as_mut()).is_pending());
        // Return several permits before a waiting task runs.
        given.truncate(2);
        assert!(
            poll(small.as_mut()).is_pending(),
            "the first task needs four permits, but only three are free"
        );
        assert!(permits.try_take().is_none(), "others wait");
        given.truncate(0);
        assert!(poll(small.as_mut()).is_ready() && poll(large.as_mut()).is_ready());
        assert_eq!(permits.free(), 5);
    }

    #[test]
    fn a_cancelled_wait_delays_no_others() {
        let permits = Permits::new(3);
        let one = permits.try_take();
        let mut small = pin!(permits.take_many(2));
        {
            let mut large = pin!(permits.take_many(3));
            assert!(poll(large.as_mut()).is_pending() && poll(small.as_mut()).is_pending());
        }
        let Poll::Ready(two) = poll(small.as_mut()) else { panic!("two were free all the time") };
        {
            let mut served = pin!(permits.take());
            assert!(poll(served.as_mut()).is_pending());
            drop(one);
            assert_eq!(permits.free(), 0, "the permit is reserved for the waiter");
        }
        assert_eq!(permits.free(), 1, "the permit is free, since its waiter was cancelled");
        drop(two);
        assert_eq!(permits.free(), 3);
    }
}
