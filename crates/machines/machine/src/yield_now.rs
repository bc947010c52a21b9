//! Cooperative yield for a task that works for long without waiting.

use std::future::poll_fn;
use std::task::Poll;

/// Yields once to the other ready tasks.
pub async fn yield_now() {
    let mut given = false;
    poll_fn(|context| {
        if std::mem::replace(&mut given, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
