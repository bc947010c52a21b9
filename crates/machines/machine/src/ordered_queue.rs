//! Queue of tasks that become ready in any order, and act in the order in which they joined.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;

use crate::condition::Condition;

/// Queue that tasks join before they prepare an action. Cloning returns another handle to the same queue.
#[derive(Clone, Default)]
pub struct OrderedQueue(Rc<Inner>);

#[derive(Default)]
struct Inner {
    joined: Cell<u64>,
    /// Places of the tasks in the queue.
    places: RefCell<BTreeSet<u64>>,
    left: Condition,
}

impl OrderedQueue {
    /// Returns an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Joins the queue behind all others.
    pub fn join(&self) -> QueuePosition {
        let place = self.0.joined.get();
        self.0.joined.set(place + 1);
        self.0.places.borrow_mut().insert(place);
        QueuePosition { line: self.0.clone(), place }
    }
}

/// Place in a queue. Dropping it leaves the queue.
#[must_use = "dropping it leaves the queue"]
pub struct QueuePosition {
    line: Rc<Inner>,
    place: u64,
}

impl QueuePosition {
    /// Waits until all earlier tasks have left, then runs `act`. Leaves the queue after the first poll of `act`: when
    /// `act` waits for the first time, or is done.
    pub async fn begin<T>(self, act: impl Future<Output = T>) -> T {
        while self.line.places.borrow().first() != Some(&self.place) {
            self.line.left.wait().await;
        }
        let (mut act, mut place) = (pin!(act), Some(self));
        poll_fn(|context| {
            let polled = act.as_mut().poll(context);
            place = None;
            polled
        })
        .await
    }
}

impl Drop for QueuePosition {
    fn drop(&mut self) {
        self.line.places.borrow_mut().remove(&self.place);
        self.line.left.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Sets `begun` and never ends.
    async fn endless(begun: &Cell<bool>) {
        begun.set(true);
        std::future::pending().await
    }

    #[test]
    fn a_ready_member_waits_for_members_that_joined_before() {
        let line = OrderedQueue::new();
        let (one, two, three) = (line.join(), line.join(), line.join());
        let (begun, acted) = (Cell::new(false), Cell::new(0));
        let mut third = pin!(three.begin(async { acted.set(3) }));
        let mut second = pin!(two.begin(endless(&begun)));
        assert!(poll(third.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
        assert!(!begun.get() && acted.get() == 0, "the first task has not acted");
        assert!(poll(pin!(one.begin(async { acted.set(1) }))).is_ready());
        assert!(poll(third.as_mut()).is_pending(), "the second task has not acted");
        assert!(poll(second.as_mut()).is_pending() && begun.get());
        assert!(poll(third.as_mut()).is_ready(), "the second task has begun; it need not have ended");
    }

    #[test]
    fn a_cancelled_member_delays_no_others() {
        let line = OrderedQueue::new();
        let (one, two, three) = (line.join(), line.join(), line.join());
        let mut third = pin!(three.begin(async {}));
        {
            let mut second = pin!(two.begin(async {}));
            assert!(poll(second.as_mut()).is_pending() && poll(third.as_mut()).is_pending());
        }
        drop(one);
        assert!(poll(third.as_mut()).is_ready());
    }
}
