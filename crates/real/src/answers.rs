//! Whether a part of a node that does work answers: a disk, or the store of metadata.
//!
//! A disk that hangs leaves its agent alive, which continues to answer its peers. So the part itself is watched: if work
//! is in flight and none of it completes for as long as patience lasts, the part is *stuck*. Its callers then get an
//! error, and new work is refused at once, until some of the old work completes. Patience is counted in looks: an agent
//! that was suspended itself does not take a disk for stuck.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use machine::{Condition, Error, Result, first_of};

/// Looks without an answer after which a part is stuck.
const LOOKS: u32 = 8;

/// A part that is watched.
pub(crate) struct Answers {
    /// What errors call it.
    what: String,
    patience: Duration,
    in_flight: Cell<u64>,
    /// Whether work has completed since the last look.
    has_answered: Cell<bool>,
    /// Looks since the last answer.
    silent: Cell<u32>,
    stuck: Condition,
}

/// Work that is in flight until this is dropped.
pub(crate) struct WorkInFlight(Rc<Answers>);

impl Answers {
    /// Watches a part from now on. Runs only within [`block_on`](crate::block_on).
    pub(crate) fn watch(what: String, patience: Duration) -> Rc<Self> {
        let (in_flight, has_answered, silent) = Default::default();
        let answers = Answers { what, patience, in_flight, has_answered, silent, stuck: Condition::new() };
        let answers = Rc::new(answers);
        let watched = Rc::downgrade(&answers);
        let watching = async move {
            loop {
                compio::time::sleep(patience / LOOKS).await;
                let Some(answers) = watched.upgrade() else { break };
                answers.look();
            }
        };
        compio::runtime::spawn(watching).detach();
        answers
    }

    fn look(&self) {
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
        self.silent.get() >= LOOKS
    }

    /// Begins work.
    ///
    /// # Errors
    /// If the part is stuck.
    pub(crate) fn begin(self: &Rc<Self>) -> Result<WorkInFlight> {
        if self.is_stuck() {
            return Err(self.error());
        }
        self.in_flight.set(self.in_flight.get() + 1);
        Ok(WorkInFlight(self.clone()))
    }

    /// Waits for work in flight, which goes on elsewhere if the part is stuck before it has completed: then there is
    /// nothing.
    pub(crate) async fn unless_stuck<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let stuck = async {
            while !self.is_stuck() {
                self.stuck.wait().await;
            }
            None
        };
        first_of(async { Some(work.await) }, stuck).await
    }

    /// Why work has not completed.
    pub(crate) fn error(&self) -> Box<Error> {
        let seconds = self.patience.as_secs_f64();
        let why =
            format!("it has not answered for {seconds} s: what was asked of it may still be done, or not");
        Error::Io { what: self.what.clone(), why }.into()
    }
}

impl WorkInFlight {
    /// Notes that the work has completed: the part answers.
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
    fn a_part_that_hangs_ends_all_waits_until_it_answers_again() {
        let test = async {
            let answers = Answers::watch("disk directory /d".to_owned(), PATIENCE);
            let (first, start) = (answers.begin().expect("it answers"), Instant::now());
            assert!(answers.unless_stuck(pending::<()>()).await.is_none());
            assert!((PATIENCE / 2..20 * PATIENCE).contains(&start.elapsed()), "{:?}", start.elapsed());
            let refused = answers.begin().map(drop).expect_err("it is stuck").to_string();
            assert!(
                refused.contains("disk directory /d") && refused.contains("has not answered"),
                "{refused}"
            );
            first.complete();
            let work = answers.begin().expect("it answers again");
            assert_eq!(answers.unless_stuck(async { 7 }).await, Some(7));
            work.complete();
        };
        crate::block_on(Driver::Polling, test).expect("a runtime");
    }

    #[test]
    fn a_part_that_is_slow_is_not_stuck() {
        let test = async {
            let answers = Answers::watch("a disk".to_owned(), PATIENCE);
            let _long = answers.begin().expect("it answers");
            for _ in 0..12 {
                let work = answers.begin().expect("it answers");
                compio::time::sleep(PATIENCE / 4).await;
                work.complete();
            }
            assert!(answers.begin().is_ok());
        };
        crate::block_on(Driver::Polling, test).expect("a runtime");
    }
}
