//! Detection of a hanging part of a node: a disk, or the metadata store.
//!
//! An agent whose disk hangs still answers heartbeats, so a timeout of connections never ends the wait. [`HangWatch`]
//! watches the part that does the work: if operations are in flight and none completes within the patience, the part is
//! *stuck*. The callers in flight then fail, and new operations fail at once, until one of the old ones completes.
//!
//! Patience is counted in periodic checks: an agent that was suspended does not take its disks for stuck.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use machine::{Condition, Error, Result};

use crate::task::Boxed;

/// Number of checks without a completed operation after which a part is stuck.
const CHECKS: u32 = 8;

/// Watched part of a node.
pub(crate) struct HangWatch {
    /// Name of the part in errors.
    what: String,
    patience: Duration,
    in_flight: Cell<u64>,
    /// True if an operation has completed since the last check.
    has_answered: Cell<bool>,
    /// Number of checks since the last completed operation.
    silent: Cell<u32>,
    stuck: Condition,
}

/// Operation in flight, until dropped.
pub(crate) struct WorkInFlight(Rc<HangWatch>);

impl HangWatch {
    /// Watches a part. Runs only within [`block_on`](crate::block_on).
    pub(crate) fn watch(what: String, patience: Duration) -> Rc<Self> {
        let (in_flight, has_answered, silent) = Default::default();
        let watch = HangWatch { what, patience, in_flight, has_answered, silent, stuck: Condition::new() };
        let watch = Rc::new(watch);
        let watched = Rc::downgrade(&watch);
        let watching = async move {
            loop {
                compio::time::sleep(patience / CHECKS).await;
                let Some(watch) = watched.upgrade() else { break };
                watch.check();
            }
        };
        compio::runtime::spawn(watching).detach();
        watch
    }

    fn check(&self) {
        if self.in_flight.get() == 0 || self.has_answered.take() {
            self.silent.set(0);
            return;
        }
        self.silent.set(self.silent.get().saturating_add(1));
        if self.is_stuck() {
            self.stuck.wake_all();
        }
    }

    fn is_stuck(&self) -> bool {
        self.silent.get() >= CHECKS
    }

    /// Begins an operation.
    ///
    /// # Errors
    /// Fails if the part is stuck.
    pub(crate) fn begin(self: &Rc<Self>) -> Result<WorkInFlight> {
        if self.is_stuck() {
            return Err(self.error());
        }
        self.in_flight.set(self.in_flight.get() + 1);
        Ok(WorkInFlight(self.clone()))
    }

    /// Begins an operation that records its own completion. The future is boxed, because the futures of a whole file
    /// system contain it, and would overflow a stack.
    ///
    /// # Errors
    /// Fails if the part is stuck.
    pub(crate) fn record<T: 'static>(
        self: &Rc<Self>,
        operation: impl Future<Output = T> + 'static,
    ) -> Result<Boxed<T>> {
        let work = self.begin()?;
        Ok(Box::pin(async move {
            let outcome = operation.await;
            work.complete();
            outcome
        }))
    }

    /// Waits until the operation completes. Returns `None` if the part becomes stuck first.
    pub(crate) async fn unless_stuck<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let (mut work, mut stuck) = (pin!(work), pin!(self.stuck()));
        poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending => stuck.as_mut().poll(context).map(|()| None),
        })
        .await
    }

    async fn stuck(&self) {
        while !self.is_stuck() {
            self.stuck.wait().await;
        }
    }

    /// Returns the error of an operation of a stuck part.
    pub(crate) fn error(&self) -> Box<Error> {
        let seconds = self.patience.as_secs_f64();
        let why = format!("it has not answered for {seconds} s; operations in flight may still complete");
        Error::Io { what: self.what.clone(), why }.into()
    }
}

impl WorkInFlight {
    /// Records that the operation has completed, with or without an error.
    pub(crate) fn complete(self) {
        self.0.has_answered.set(true);
        self.0.silent.set(0);
    }
}

impl Drop for WorkInFlight {
    fn drop(&mut self) {
        self.0.in_flight.set(self.0.in_flight.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Instant;

    use super::*;
    use crate::Driver;

    const PATIENCE: Duration = Duration::from_millis(80);

    #[test]
    fn waits_for_a_hanging_part_end_until_it_answers_again() {
        let test = async {
            let watch = HangWatch::watch("disk directory /d".to_owned(), PATIENCE);
            let (first, start) = (watch.begin().expect("it answers"), Instant::now());
            assert!(watch.unless_stuck(pending::<()>()).await.is_none());
            assert!((PATIENCE / 2..20 * PATIENCE).contains(&start.elapsed()), "{:?}", start.elapsed());
            let refused = watch.begin().map(drop).expect_err("it is stuck").to_string();
            assert!(
                refused.contains("disk directory /d") && refused.contains("has not answered"),
                "{refused}"
            );
            first.complete();
            let work = watch.begin().expect("it answers again");
            assert_eq!(watch.unless_stuck(async { 7 }).await, Some(7));
            work.complete();
        };
        crate::block_on(Driver::Polling, test).expect("a runtime");
    }

    #[test]
    fn a_slow_part_does_not_count_as_hanging() {
        let test = async {
            let watch = HangWatch::watch("a disk".to_owned(), PATIENCE);
            let _long = watch.begin().expect("it answers");
            for _ in 0..12 {
                let work = watch.begin().expect("it answers");
                compio::time::sleep(PATIENCE / 4).await;
                work.complete();
            }
            assert!(watch.begin().is_ok());
        };
        crate::block_on(Driver::Polling, test).expect("a runtime");
    }
}
