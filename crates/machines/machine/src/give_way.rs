//! How a task that has much to do without waiting lets other tasks run.

use std::future::poll_fn;
use std::task::Poll;

/// Lets the other tasks that are ready go first, once.
pub async fn give_way() {
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
