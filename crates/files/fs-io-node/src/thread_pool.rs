//! The threads that serve block requests, and the requests that wait for a thread.
//!
//! - A thread is created when a request arrives and no thread is idle, up to the number in the settings.
//!   Threads that are never needed are never created: a pool for thousands of compute nodes is large.
//! - Some threads of a pool never serve background requests, so that these cannot occupy all threads.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use machine::{Class, Condition, InFlight, NodeId, OperationInFlight};

use super::counts::PoolCounts;
use crate::protocol::FileId;
use crate::request_queue::{KEPT_FOR_DEMAND, Placed, RequestQueue};
use crate::settings::{IoNodeSettings, Threads};

/// The threads, which are only counted, and the requests.
pub(super) struct Pool<T> {
    threads: Threads,
    requests: RefCell<RequestQueue<T>>,
    request_came: Condition,
    /// Number of threads created, and number of those that wait for a request and have not been woken.
    made: Cell<usize>,
    idle: Cell<usize>,
    /// Background requests that threads of the pool are serving.
    background: InFlight,
}

/// A request that a thread serves until this is dropped.
pub(super) struct Serving<T> {
    pub(super) request: T,
    /// Class of the request, which may have been promoted since its arrival.
    pub(super) class: Class,
    /// Counts the request among the background requests in service, if it is one.
    pub(super) background: Option<OperationInFlight>,
}

impl<T: Placed> Pool<T> {
    pub(super) fn new(settings: &IoNodeSettings) -> Self {
        Pool {
            threads: settings.threads,
            requests: RefCell::new(RequestQueue::new(settings.sharing, settings.service_slots())),
            request_came: Condition::new(),
            made: Cell::new(0),
            idle: Cell::new(0),
            background: InFlight::new(),
        }
    }

    /// True if another request of this client may wait.
    pub(super) fn has_room_for(&self, client: NodeId) -> bool {
        self.requests.borrow().has_room_for(client)
    }

    /// Puts a request into the queue. Returns true if the caller must create a thread for it.
    #[must_use]
    pub(super) fn put(&self, class: Class, client: NodeId, bytes: u64, request: T) -> bool {
        self.requests.borrow_mut().push(class, client, bytes, request);
        self.wake()
    }

    /// Waits for the next request for an idle thread.
    pub(super) async fn next(&self) -> Serving<T> {
        loop {
            let background_allowed = self.background.count() < self.background_max();
            let next = self.requests.borrow_mut().pop(background_allowed);
            if let Some((class, request)) = next {
                let in_background = class == Class::Background;
                let background = in_background.then(|| self.background.begin());
                return Serving { request, class, background };
            }
            self.idle.set(self.idle.get() + 1);
            self.request_came.wait().await;
        }
    }

    /// Frees the slot of a request of this client whose answer has left. Returns the number of threads that
    /// the caller must create.
    #[must_use]
    pub(super) fn done(&self, client: NodeId) -> usize {
        let others = self.requests.borrow_mut().done(client);
        self.wake_for(others)
    }

    /// Promotes background requests for a part of a stripe to demand. Returns the number of threads that the
    /// caller must create.
    #[must_use]
    pub(super) fn promote(&self, file: FileId, stripe: u32, part: Range<u64>) -> usize {
        let promoted = self.requests.borrow_mut().promote(file, stripe, part);
        // Threads may be idle: all waiting requests may have been background ones beyond the limit.
        self.wake_for(promoted)
    }

    /// Returns the numbers of waiting requests and of busy threads.
    pub(super) fn counts(&self) -> PoolCounts {
        let requests = self.requests.borrow();
        PoolCounts {
            waiting_on_demand: requests.len_of_class(Class::Demand) as u64,
            waiting_in_background: requests.len_of_class(Class::Background) as u64,
            busy_threads: (self.made.get() - self.idle.get()) as u64,
        }
    }

    /// Drops the waiting requests of a disconnected client.
    pub(super) fn forget(&self, client: NodeId) {
        self.requests.borrow_mut().forget(client);
    }

    fn wake_for(&self, requests: usize) -> usize {
        (0..requests).filter(|_| self.wake()).count()
    }

    /// Wakes an idle thread of the pool. Returns true if the caller must create one instead.
    fn wake(&self) -> bool {
        let Threads::Pool(most) = self.threads else { return false };
        if let Some(idle) = self.idle.get().checked_sub(1) {
            self.idle.set(idle);
            self.request_came.wake_newest();
            return false;
        }
        let is_new = self.made.get() < most;
        self.made.set(self.made.get() + usize::from(is_new));
        is_new
    }

    /// Returns the limit of background requests in service: at least one, or they would wait forever.
    fn background_max(&self) -> usize {
        match self.threads {
            Threads::Pool(threads) => (threads - threads / KEPT_FOR_DEMAND).max(1),
            Threads::PerRequest => usize::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::request_queue::RequestPlace;

    struct Request(u64);

    impl Placed for Request {
        fn place(&self) -> RequestPlace {
            (FileId(1), 0, self.0)
        }
    }

    const CLIENT: NodeId = NodeId(7);

    fn pool(threads: usize) -> Pool<Request> {
        Pool::new(&IoNodeSettings { threads: Threads::Pool(threads), ..IoNodeSettings::report() })
    }

    fn put(pool: &Pool<Request>, class: Class, offset: u64) -> bool {
        pool.put(class, CLIENT, 1, Request(offset))
    }

    /// Returns the request that a thread gets now.
    fn next(pool: &Pool<Request>) -> Option<Serving<Request>> {
        poll(pin!(pool.next()))
    }

    fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    #[test]
    fn threads_are_created_when_needed_up_to_the_limit() {
        let pool = pool(2);
        assert!(put(&pool, Class::Demand, 0), "no thread exists yet");
        let serving = next(&pool).expect("there is a request");
        assert!(put(&pool, Class::Demand, 1), "the first is busy");
        assert!(!put(&pool, Class::Demand, 2), "there may be two");
        drop(serving);
        let offsets: Vec<u64> = (0..2).filter_map(|_| next(&pool)).map(|serving| serving.request.0).collect();
        assert_eq!(offsets, [1, 2]);
    }

    #[test]
    fn an_idle_thread_is_woken_before_another_is_created() {
        let pool = pool(9);
        assert!(put(&pool, Class::Demand, 0));
        drop(next(&pool));
        let mut idle = pin!(pool.next());
        assert!(poll(idle.as_mut()).is_none(), "nothing to do");
        assert!(!put(&pool, Class::Demand, 1));
        assert!(put(&pool, Class::Demand, 2), "the idle one has been woken already");
        assert_eq!(poll(idle.as_mut()).map(|serving| serving.request.0), Some(1));
    }

    #[test]
    fn some_threads_are_reserved_for_demand_requests() {
        let pool = pool(KEPT_FOR_DEMAND);
        for offset in 0..KEPT_FOR_DEMAND as u64 {
            assert!(put(&pool, Class::Background, offset));
        }
        let serving: Vec<_> = (0..KEPT_FOR_DEMAND).filter_map(|_| next(&pool)).collect();
        assert_eq!(serving.len(), KEPT_FOR_DEMAND - 1);
        let left = KEPT_FOR_DEMAND as u64 - 1;
        let _ = pool.promote(FileId(1), 0, left..left + 1);
        let promoted = next(&pool).expect("it was promoted");
        assert_eq!((promoted.class, promoted.request.0), (Class::Demand, left));
        drop(serving);
        assert!(put(&pool, Class::Background, 99) || next(&pool).is_some());
    }
}
