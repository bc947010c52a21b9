//! Waiting for a time to come.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::executor::{Executor, Waiter};

/// Waits until `deadline`, at least.
pub(crate) struct Sleep<'a> {
    executor: &'a Executor,
    deadline: u64,
    /// Whose waking is scheduled.
    waiter: Option<Waiter>,
}

impl<'a> Sleep<'a> {
    pub(crate) fn until(executor: &'a Executor, deadline: u64) -> Self {
        Sleep { executor, deadline, waiter: None }
    }
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.executor.now() >= this.deadline {
            return Poll::Ready(());
        }
        if !this.waiter.as_ref().is_some_and(|waiter| waiter.is(context)) {
            let waiter = Waiter::of(context);
            this.waiter = Some(waiter.clone());
            this.executor.schedule_wake(this.deadline, waiter);
        }
        Poll::Pending
    }
}
