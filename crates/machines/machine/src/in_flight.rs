//! Counter of operations in flight. Each operation holds a guard, so that the count is right in whatever way the
//! operation ends.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use crate::condition::Condition;

/// Count of the operations in flight. Tasks can wait until these operations end. Cloning returns another handle to the
/// same count.
///
/// Also usable as a gate: each operation keeps the gate closed, so it is open while the count is 0.
#[derive(Clone, Default)]
pub struct InFlight(Rc<Inner>);

#[derive(Default)]
struct Inner {
    /// Number of the newest generation, and number of its operations in flight. A generation is complete when a task
    /// begins to wait for all operations in flight: later operations belong to the next one.
    generation: Cell<u64>,
    newest: Cell<usize>,
    /// Number of operations in flight of each earlier generation, beginning with the oldest that still has any.
    older: RefCell<VecDeque<usize>>,
    fell: Condition,
}

impl InFlight {
    /// Returns a count of 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins an operation. It is in flight until the returned guard is dropped.
    pub fn begin(&self) -> OperationInFlight {
        self.0.newest.set(self.0.newest.get() + 1);
        OperationInFlight { all: self.0.clone(), generation: self.0.generation.get() }
    }

    /// Returns the number of operations in flight.
    pub fn count(&self) -> usize {
        self.0.newest.get() + self.0.older.borrow().iter().sum::<usize>()
    }

    /// Returns true if no operation is in flight.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Waits until no operation is in flight.
    pub async fn none(&self) {
        while !self.is_empty() {
            self.0.fell.wait().await;
        }
    }

    /// Waits until all operations that are in flight now have ended. Operations that begin later do not delay the wait.
    pub async fn begun_before(&self) {
        if self.0.newest.get() > 0 {
            self.0.older.borrow_mut().push_back(self.0.newest.take());
            self.0.generation.set(self.0.generation.get() + 1);
        }
        let later = self.0.generation.get();
        while self.0.oldest() < later {
            self.0.fell.wait().await;
        }
    }

    /// Waits until one operation ends.
    pub async fn next_end(&self) {
        self.0.fell.wait().await;
    }
}

impl Inner {
    /// Returns the number of the oldest generation with operations in flight; of the newest generation if no
    /// operation is in flight.
    fn oldest(&self) -> u64 {
        self.generation.get() - self.older.borrow().len() as u64
    }

    fn end(&self, generation: u64) {
        if generation == self.generation.get() {
            return self.newest.set(self.newest.get() - 1);
        }
        let at = (generation - self.oldest()) as usize;
        let mut older = self.older.borrow_mut();
        older[at] -= 1;
        while older.front() == Some(&0) {
            older.pop_front();
        }
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InFlight").field(&self.count()).finish()
    }
}

/// Guard of an operation in flight. Dropping it ends the operation.
#[must_use = "dropped at once, the operation ends at once"]
pub struct OperationInFlight {
    all: Rc<Inner>,
    generation: u64,
}

impl Drop for OperationInFlight {
    fn drop(&mut self) {
        self.all.end(self.generation);
        self.all.fell.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn is_over(waiting: &mut Pin<&mut impl Future<Output = ()>>) -> bool {
        waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    #[test]
    fn a_wait_ignores_operations_begun_later() {
        let all = InFlight::new();
        assert!(is_over(&mut pin!(all.begun_before())), "nothing is in flight");
        let (first, second) = (all.begin(), all.begin());
        let mut of_two = pin!(all.begun_before());
        assert!(!is_over(&mut of_two));
        let third = all.begin();
        let mut of_three = pin!(all.begun_before());
        assert!(!is_over(&mut of_three));
        let fourth = all.begin();
        assert_eq!(all.count(), 4);
        // A later operation that ends first does not change the order.
        drop(third);
        assert!(!is_over(&mut of_three), "it waits for the first two operations");
        drop(first);
        assert!(!is_over(&mut of_two) && !is_over(&mut of_three));
        drop(second);
        assert!(is_over(&mut of_two) && is_over(&mut of_three));
        assert_eq!(all.count(), 1);
        let mut of_one = pin!(all.begun_before());
        assert!(!is_over(&mut of_one));
        let mut of_the_same = pin!(all.begun_before());
        assert!(!is_over(&mut of_the_same));
        let fifth = all.begin();
        let mut of_both = pin!(all.begun_before());
        assert!(!is_over(&mut of_both));
        drop(fourth);
        assert!(is_over(&mut of_one) && is_over(&mut of_the_same) && !is_over(&mut of_both));
        drop(fifth);
        assert!(all.is_empty() && is_over(&mut pin!(all.none())));
    }
}
