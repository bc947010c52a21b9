//! Detached tasks and transfers.
//!
//! The runtime cancels a task when its handle is dropped, and ignores the panic of a detached task. This module avoids
//! both: the failure of a detached task is reported, and a *transfer* that has begun completes even if its caller no
//! longer waits.

use std::any::Any;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use compio::runtime::{JoinError, JoinHandle};
use machine::{Error, InFlight, NodeId, Result, first_of};

use crate::report::{Report, Reporter};

/// Tasks of one node. A clone is another handle.
#[derive(Clone)]
pub(crate) struct Tasks {
    inner: Rc<Inner>,
}

struct Inner {
    node: NodeId,
    reporter: Reporter,
    transfers: InFlight,
    /// Number of tasks started until now.
    started: Cell<u64>,
    running: Cell<RunningTask>,
}

/// Task that is currently running on a node.
#[derive(Clone, Copy)]
pub(crate) struct RunningTask {
    /// Unique number of the task.
    pub(crate) number: u64,
    pub(crate) name: &'static str,
}

/// Boxed future of any type: the runtime's code is compiled once for all boxed tasks, and not for each type of task.
pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T>>>;

struct Running<'a> {
    running: &'a Cell<RunningTask>,
    before: RunningTask,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.running.set(self.before);
    }
}

/// Placeholder while no task that the node started is running.
const MAIN: RunningTask = RunningTask { number: 0, name: "main" };

impl Tasks {
    pub(crate) fn new(node: NodeId, reporter: Reporter) -> Self {
        let (started, running) = (Cell::new(0), Cell::new(MAIN));
        Tasks { inner: Rc::new(Inner { node, reporter, transfers: InFlight::new(), started, running }) }
    }

    /// Returns the running task.
    pub(crate) fn running(&self) -> RunningTask {
        self.inner.running.get()
    }

    /// Marks a task as running until the returned guard is dropped, even by a panic.
    fn run(&self, task: RunningTask) -> Running<'_> {
        Running { running: &self.inner.running, before: self.inner.running.replace(task) }
    }

    pub(crate) fn report(&self, report: &Report) {
        self.inner.reporter.report(report);
    }

    /// Reports the failure of a disk. Ignores errors that callers can cause.
    pub(crate) fn report_disk(&self, error: &Error) {
        if !matches!(error, Error::NotFound { .. } | Error::Exists { .. } | Error::Closed) {
            self.report(&Report::DiskFailed { node: self.inner.node, error: error.clone() });
        }
    }

    /// Reports that reads from a disk are delayed by node `by`, which has `writes` writes in the queue of the disk.
    pub(crate) fn report_held_up(&self, disk: String, by: NodeId, writes: u64) {
        self.report(&Report::ReadsHeldUp { node: self.inner.node, disk, by, writes });
    }

    /// Starts a task whose failure is reported.
    pub(crate) fn spawn(&self, name: &'static str, task: impl Future<Output = Result<()>> + 'static) {
        // Box the task, because the runtime moves it several times and our tasks are large.
        self.supervise(name, Box::pin(task));
    }

    fn supervise(&self, name: &'static str, mut task: Boxed<Result<()>>) {
        let tasks = self.clone();
        let number = self.inner.started.get() + 1;
        self.inner.started.set(number);
        let supervised = async move {
            let marked = poll_fn(|context| {
                let _running = tasks.run(RunningTask { number, name });
                task.as_mut().poll(context)
            });
            if let Err(error) = catch_panic(name, pin!(marked)).await {
                tasks.report(&Report::TaskFailed { node: tasks.inner.node, task: name, error: *error });
            }
        };
        compio::runtime::spawn(supervised).detach();
    }

    /// Runs `work`. A panic in `work` is reported and returned as an error.
    pub(crate) async fn contain<T>(&self, name: &'static str, work: impl Future<Output = T>) -> Result<T> {
        let mut work = pin!(async { Ok(work.await) });
        let outcome = catch_panic(name, work.as_mut()).await;
        outcome.inspect_err(|error| {
            let (node, error) = (self.inner.node, Error::clone(error));
            self.report(&Report::Defect { node, part: name, error });
        })
    }

    /// Runs `transfer` to completion, even if the returned future is dropped after its first poll.
    pub(crate) async fn complete<T: 'static>(
        &self,
        name: &'static str,
        mut transfer: Boxed<Result<T>>,
    ) -> Result<T> {
        // A transfer that completes without waiting needs no task.
        let at_once = poll_fn(|context| Poll::Ready(transfer.as_mut().poll(context))).await;
        if let Poll::Ready(outcome) = at_once {
            return outcome;
        }
        let operation = self.inner.transfers.begin();
        let handle = compio::runtime::spawn(async move {
            let outcome = transfer.await;
            drop(operation);
            outcome
        });
        match DetachOnDrop(Some(handle)).await {
            Ok(outcome) => outcome,
            Err(JoinError::Panicked(panic)) => Err(panicked(name, &*panic)),
            Err(JoinError::Cancelled) => {
                Err(Error::Failed { task: name.to_owned(), why: "the node has stopped".to_owned() }.into())
            }
        }
    }

    /// Waits until no transfer is in flight.
    pub(crate) async fn transfers_completed(&self) {
        self.inner.transfers.none().await;
    }
}

/// Wait for the end of a task. The task continues if the wait is dropped.
struct DetachOnDrop<T>(Option<JoinHandle<T>>);

impl<T> Future for DetachOnDrop<T> {
    type Output = std::result::Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let handle = self.0.as_mut().expect("present until dropped");
        Pin::new(handle).poll(context)
    }
}

impl<T> Drop for DetachOnDrop<T> {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            handle.detach();
        }
    }
}

async fn catch_panic<T>(
    name: &'static str,
    mut task: Pin<&mut impl Future<Output = Result<T>>>,
) -> Result<T> {
    poll_fn(|context| {
        // A task that has panicked is never polled again, so its inconsistent state is never seen. State shared with
        // other tasks is as after an early return between two statements.
        match catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(context))) {
            Ok(poll) => poll,
            Err(panic) => Poll::Ready(Err(panicked(name, &*panic))),
        }
    })
    .await
}

/// Returns the error of a task that has panicked with `panic`.
pub(crate) fn panicked(task: &str, panic: &(dyn Any + Send)) -> Box<Error> {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message");
    Error::Failed { task: task.to_owned(), why: format!("panicked: {text}") }.into()
}

/// Returns the output of `work`, or `None` if `end` completes first.
pub(crate) async fn unless<T>(end: impl Future<Output = ()>, work: impl Future<Output = T>) -> Option<T> {
    let ended = async {
        end.await;
        None
    };
    first_of(async { Some(work.await) }, ended).await
}
