//! Future that waits for a point in time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::executor::{Executor, WakerId};

/// Wait until `deadline`, or slightly later.
pub(crate) struct Sleep<'a> {
    executor: &'a Executor,
    deadline: u64,
    /// Waker already scheduled.
    scheduled: Option<WakerId>,
}

impl<'a> Sleep<'a> {
    pub(crate) fn until(executor: &'a Executor, deadline: u64) -> Self {
        Sleep { executor, deadline, scheduled: None }
    }
}

impl Future for Sleep<'_> {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.executor.now() >= this.deadline {
            return Poll::Ready(());
        }
        let waker = context.waker();
        if this.scheduled != Some(WakerId::of(waker)) {
            this.scheduled = Some(WakerId::of(waker));
            this.executor.schedule_wake(this.deadline, waker);
        }
        Poll::Pending
    }
}
