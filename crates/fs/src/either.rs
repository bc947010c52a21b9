//! Waiting for one of two things.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Waits until one of both is done.
pub(crate) async fn until_either(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| match one.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => other.as_mut().poll(context),
    })
    .await;
}
