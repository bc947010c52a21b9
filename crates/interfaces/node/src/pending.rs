//! Answer to a call in flight.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use flume::{Receiver, RecvTimeoutError};

use crate::error::{Error, Result};

/// Answer to a call in flight, to be [waited](Self::wait) for or awaited in any executor.
///
/// The call is carried out even if this is dropped. If the node thread cannot carry it out, the answer is an error.
#[must_use = "the answer contains the error of a failed call"]
#[derive(Debug)]
pub struct Pending<T> {
    /// Subject of the call, for errors.
    what: Arc<str>,
    answer: Receiver<Result<T>>,
}

impl<T> Pending<T> {
    pub(crate) fn new(what: Arc<str>, answer: Receiver<Result<T>>) -> Self {
        Pending { what, answer }
    }

    /// Returns the answer of a completed call.
    pub(crate) fn over(what: &Arc<str>, outcome: Result<T>) -> Self {
        let (sender, answer) = flume::bounded(1);
        sender.send(outcome).expect("there is room for one");
        Pending::new(what.clone(), answer)
    }

    /// Blocks until the answer arrives.
    ///
    /// # Errors
    /// The error of the call.
    pub fn wait(self) -> Result<T> {
        self.answer.recv().unwrap_or_else(|_| Err(Error::closed(&self.what)))
    }

    /// Blocks until the answer arrives, for at most `patience`. After a timeout, returns the call, which is still in
    /// flight.
    ///
    /// # Errors
    /// The call in flight.
    pub fn wait_for(self, patience: Duration) -> std::result::Result<Result<T>, Self> {
        match self.answer.recv_timeout(patience) {
            Ok(outcome) => Ok(outcome),
            Err(RecvTimeoutError::Disconnected) => Ok(Err(Error::closed(&self.what))),
            Err(RecvTimeoutError::Timeout) => Err(self),
        }
    }

    /// True if the answer has arrived, so that waiting for it takes no time.
    pub fn is_ready(&self) -> bool {
        !self.answer.is_empty() || self.answer.is_disconnected()
    }
}

impl<T: Send + 'static> IntoFuture for Pending<T> {
    type Output = Result<T>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(
            async move { self.answer.recv_async().await.unwrap_or_else(|_| Err(Error::closed(&self.what))) },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_in_flight_is_returned_after_the_timeout() {
        let (sender, answer) = flume::bounded(1);
        let pending = Pending::new("a call".into(), answer);
        let pending = pending.wait_for(Duration::from_millis(1)).expect_err("nobody has answered");
        sender.send(Ok(7)).expect("it is waited for");
        assert_eq!(pending.wait_for(Duration::ZERO).expect("it is over").expect("it has not failed"), 7);
        let (sender, answer) = flume::bounded::<Result<()>>(1);
        drop(sender);
        let closed = Pending::new("a call".into(), answer).wait_for(Duration::ZERO);
        assert!(closed.expect("it is over").is_err(), "the node thread has ended");
    }
}
