//! Incoming messages: limits the memory of messages before they have arrived completely.
//!
//! A message takes memory of the node's pool for received data only when it has arrived completely. A sender that stops
//! in the middle of a message therefore blocks none of the pool. Until then the memory of the message counts here: the
//! received bytes and the next allowed step. If the message still fits into half of the room, that step is the whole
//! message. Otherwise each step doubles the received bytes.
//!
//! When the room is full, messages that need more wait, except the oldest one. The oldest may always continue, so that
//! messages never wait for each other in a circle. While others wait, a message whose sender sends almost nothing for
//! about a second is evicted: its connection ends. A slow or stopped sender is tolerated as long as no message waits.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use compio::time::timeout;
use machine::Condition;

/// Smallest step that a message is allowed, in bytes.
const STEP_BYTES: u64 = 256 << 10;

/// Interval between checks of the messages while others wait. Eviction counts checks and not time, so that a pause of
/// this node itself has no effect.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Number of checks without progress after which a message is evicted.
const LOOKS: u32 = 4;

/// Number of bytes between two checks that counts as progress.
const PROGRESS_BYTES: u64 = 16 << 10;

/// All incoming messages of a node.
pub(crate) struct Arrivals {
    /// Limit in bytes for all messages together. The oldest message may exceed it by its own length.
    room: u64,
    held: Cell<u64>,
    /// Incoming messages in the order of their start.
    under_way: RefCell<BTreeMap<u64, Rc<Progress>>>,
    last: Cell<u64>,
    freed: Condition,
    looked: Cell<Instant>,
}

/// Progress of an incoming message.
#[derive(Default)]
struct Progress {
    /// Bytes allowed so far.
    allowed: Cell<u64>,
    /// Bytes received so far.
    come: Cell<u64>,
    /// Bytes received at the last check; below, the number of checks in a row without progress.
    seen: Cell<u64>,
    idle_looks: Cell<u32>,
    /// True while the message waits for this node, and not for its sender.
    waits_here: Cell<bool>,
    gives_way: Cell<bool>,
    word: Condition,
}

/// Incoming message. Counted until dropped.
pub(crate) struct Arrival<'a> {
    arrivals: &'a Arrivals,
    number: u64,
    bytes: u64,
    progress: Rc<Progress>,
}

impl Arrivals {
    pub(crate) fn new(room: u64) -> Self {
        Arrivals {
            room,
            held: Cell::new(0),
            under_way: RefCell::default(),
            last: Cell::new(0),
            freed: Condition::new(),
            looked: Cell::new(Instant::now()),
        }
    }

    /// Registers the start of a message of `bytes`.
    pub(crate) fn begin(&self, bytes: u64) -> Arrival<'_> {
        let number = self.last.get() + 1;
        self.last.set(number);
        let progress = Rc::<Progress>::default();
        self.under_way.borrow_mut().insert(number, progress.clone());
        Arrival { arrivals: self, number, bytes, progress }
    }

    /// Evicts stalled messages, on behalf of a message that waits for room.
    fn look(&self) {
        if self.looked.get().elapsed() < LOOK_EVERY {
            return;
        }
        self.looked.set(Instant::now());
        for progress in self.under_way.borrow().values() {
            progress.look();
        }
    }
}

impl Progress {
    fn look(&self) {
        let come = self.come.get();
        let moves = self.waits_here.get() || come >= self.seen.get() + PROGRESS_BYTES;
        self.seen.set(come);
        self.idle_looks.set(if moves { 0 } else { self.idle_looks.get() + 1 });
        if self.idle_looks.get() >= LOOKS {
            self.gives_way.set(true);
            self.word.wake_all();
        }
    }
}

impl Arrival<'_> {
    /// Waits until the message may have more bytes than before, and returns the new limit.
    pub(crate) async fn allow_more(&self) -> u64 {
        let (arrivals, allowed) = (self.arrivals, self.progress.allowed.get());
        loop {
            let held = arrivals.held.get();
            let is_roomy = allowed == 0 && held + self.bytes <= arrivals.room / 2;
            let step = if is_roomy { self.bytes } else { STEP_BYTES.max(allowed).min(self.bytes - allowed) };
            if held + step <= arrivals.room || self.is_first() {
                arrivals.held.set(held + step);
                self.progress.allowed.set(allowed + step);
                return allowed + step;
            }
            self.progress.waits_here.set(true);
            let freed = timeout(LOOK_EVERY, arrivals.freed.wait()).await;
            self.progress.waits_here.set(false);
            if freed.is_err() {
                arrivals.look();
            }
        }
    }

    fn is_first(&self) -> bool {
        self.arrivals.under_way.borrow().keys().next() == Some(&self.number)
    }

    /// Records the number of received bytes.
    pub(crate) fn has_come(&self, bytes: u64) {
        self.progress.come.set(bytes);
        // Once the message has arrived completely, it only waits for room in this node.
        self.progress.waits_here.set(bytes == self.bytes);
    }

    /// Waits until the message is evicted.
    pub(crate) async fn gives_way(&self) {
        while !self.progress.gives_way.get() {
            self.progress.word.wait().await;
        }
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        let arrivals = self.arrivals;
        arrivals.under_way.borrow_mut().remove(&self.number);
        arrivals.held.set(arrivals.held.get() - self.progress.allowed.get());
        arrivals.freed.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const MESSAGE: u64 = 4 << 20;

    /// Returns the new limit of a message if that needs no waiting.
    fn allowed(arrival: &Arrival<'_>) -> Option<u64> {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(arrival.allow_more()).as_mut().poll(&mut context) {
            Poll::Ready(bytes) => Some(bytes),
            Poll::Pending => None,
        }
    }

    #[test]
    fn the_fuller_the_memory_the_smaller_the_steps_of_a_message() {
        crate::block_on(crate::Driver::Polling, async {
            let arrivals = Arrivals::new(4 * MESSAGE);
            let early: Vec<_> = (0..2).map(|_| arrivals.begin(MESSAGE)).collect();
            assert!(early.iter().all(|arrival| allowed(arrival) == Some(MESSAGE)));
            let late = arrivals.begin(MESSAGE);
            let steps: Vec<_> =
                std::iter::from_fn(|| allowed(&late).filter(|_| late.progress.allowed.get() < MESSAGE))
                    .collect();
            assert_eq!(steps, [1, 2, 4, 8].map(|steps| steps * STEP_BYTES));
            drop((early, late));
            assert_eq!(arrivals.held.get(), 0);
        })
        .expect("a runtime");
    }

    #[test]
    fn without_memory_the_first_message_continues_and_others_wait() {
        crate::block_on(crate::Driver::Polling, async {
            let arrivals = Arrivals::new(2 * STEP_BYTES);
            let first = arrivals.begin(MESSAGE);
            let second = arrivals.begin(MESSAGE);
            assert_eq!((allowed(&second), allowed(&first)), (Some(STEP_BYTES), Some(STEP_BYTES)));
            assert_eq!(allowed(&second), None, "no room");
            assert_eq!(allowed(&first), Some(2 * STEP_BYTES), "more than the room");
            drop(first);
            assert_eq!(allowed(&second), Some(2 * STEP_BYTES));
        })
        .expect("a runtime");
    }

    #[test]
    fn only_stalled_messages_are_evicted() {
        let arrivals = Arrivals::new(MESSAGE);
        let [silent, slow, whole] = [0; 3].map(|_| arrivals.begin(MESSAGE));
        whole.has_come(MESSAGE);
        for look in 1..=LOOKS {
            slow.has_come(u64::from(look) * PROGRESS_BYTES);
            for progress in arrivals.under_way.borrow().values() {
                progress.look();
            }
        }
        let evicted = [&silent, &slow, &whole].map(|arrival| arrival.progress.gives_way.get());
        assert_eq!(evicted, [true, false, false]);
    }
}
