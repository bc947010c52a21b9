//! Groups of tasks.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::Machine;
use crate::condition::Condition;
use crate::error::Error;
use crate::first_failure::FirstFailure;
use crate::in_flight::InFlight;

/// Group of tasks of one node. The first failure of a task is the failure of the group, and all tasks end when the
/// group is dropped. Cloning returns another handle to the same group.
///
/// ```text
/// let group = TaskGroup::new();
/// for part in parts {
///     group.spawn(&machine, "part", work_on(part));
/// }
/// group.join().await?;
/// ```
pub struct TaskGroup<E>(Rc<Owner<E>>);

/// State shared by the handles; when the last one is dropped, the tasks end.
struct Owner<E>(Rc<Shared<E>>);

struct Shared<E> {
    in_flight: InFlight,
    failure: FirstFailure<E>,
    is_over: Cell<bool>,
    over: Condition,
}

impl<E> Clone for TaskGroup<E> {
    fn clone(&self) -> Self {
        TaskGroup(self.0.clone())
    }
}

impl<E> Drop for Owner<E> {
    fn drop(&mut self) {
        self.0.is_over.set(true);
        self.0.over.wake_all();
    }
}

impl<E: From<Box<Error>> + 'static> Default for TaskGroup<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: From<Box<Error>> + 'static> TaskGroup<E> {
    /// Returns a group without tasks.
    pub fn new() -> Self {
        TaskGroup(Rc::new(Owner(Rc::new(Shared {
            in_flight: InFlight::new(),
            failure: FirstFailure::new(),
            is_over: Cell::new(false),
            over: Condition::new(),
        }))))
    }

    /// Spawns a task of the group. A panic in it is a failure of the group.
    pub fn spawn<M: Machine>(
        &self,
        machine: &M,
        name: &'static str,
        task: impl Future<Output = Result<(), E>> + 'static,
    ) {
        let (shared, node) = (self.0.0.clone(), machine.clone());
        let operation = shared.in_flight.begin();
        machine.spawn(name, async move {
            if let Some(outcome) = shared.until_over(node.contain(name, task)).await {
                shared.failure.note(outcome.unwrap_or_else(|defect| Err(defect.into())));
            }
            // Count the task as ended only after recording its failure, so that a task that waits in `join` sees the
            // failure.
            drop(operation);
            Ok(())
        });
    }

    /// Records a failure of the group that is not a failure of one of its tasks.
    pub fn note<T>(&self, outcome: Result<T, E>) {
        self.0.0.failure.note(outcome);
    }

    /// Returns true if a failure is recorded. Tasks need not begin further work then.
    pub fn has_failed(&self) -> bool {
        self.0.0.failure.is_some()
    }

    /// Waits until all tasks have ended, and returns the first failure.
    pub async fn join(&self) -> Result<(), E> {
        self.0.0.in_flight.none().await;
        self.0.0.failure.take()
    }

    /// Waits until all tasks have ended or one has failed. Remaining tasks end with the group.
    pub async fn join_or_fail(&self) -> Result<(), E> {
        let shared = &self.0.0;
        while !shared.in_flight.is_empty() && !shared.failure.is_some() {
            shared.in_flight.next_end().await;
        }
        shared.failure.take()
    }
}

impl<E> Shared<E> {
    /// Runs `work` until it is done, or returns `None` once the group is dropped.
    async fn until_over<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let (mut work, mut over, mut registered) = (pin!(work), pin!(self.over.wait()), None::<Waker>);
        poll_fn(|context| {
            if self.is_over.get() {
                return Poll::Ready(None);
            }
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            // Poll `over` only to be woken when the group is dropped; the flag above then shows it. Skip this if the
            // waker is already registered, because a task is polled often with the same waker.
            if !registered.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                registered = Some(context.waker().clone());
                let _ = over.as_mut().poll(context);
            }
            Poll::Pending
        })
        .await
    }
}
