//! Waits for one of two futures.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Returns the output of the future that completes first, or of `one` if both are ready. The other future is dropped.
pub async fn first_of<T>(one: impl Future<Output = T>, other: impl Future<Output = T>) -> T {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| match one.as_mut().poll(context) {
        Poll::Ready(first) => Poll::Ready(first),
        Poll::Pending => other.as_mut().poll(context),
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::{Context, Waker};

    use super::*;

    fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn the_first_future_wins_if_both_are_ready() {
        assert_eq!(poll(first_of(ready(1), ready(2))), Poll::Ready(1));
        assert_eq!(poll(first_of(pending(), ready(2))), Poll::Ready(2));
        assert_eq!(poll(first_of(ready(1), pending())), Poll::Ready(1));
        assert_eq!(poll(first_of(pending::<u8>(), pending())), Poll::Pending);
    }
}
