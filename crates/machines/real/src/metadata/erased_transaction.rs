//! Transaction requested by a caller, on its way to the thread and back.

use std::panic::{AssertUnwindSafe, catch_unwind};

use machine::{Error, Result, Transaction};

use crate::task::panicked;

/// Transaction whose types only its caller knows.
pub(super) trait ErasedTransaction: Send {
    /// Runs the body. Returns true if its changes are to be kept. May be called again.
    fn carry_out(&mut self, entries: &mut dyn Transaction) -> bool;

    /// Takes the panic that ended the body, if any.
    fn take_defect(&mut self) -> Option<Error>;

    /// Sends the outcome to the caller: the result of the body, if the commit succeeded.
    fn answer(self: Box<Self>, committed: Result<()>);
}

/// Body of a transaction, and the channel to its caller.
pub(super) struct Body<T, E, F> {
    body: F,
    outcome: Option<Result<std::result::Result<T, E>>>,
    defect: Option<Error>,
    sender: flume::Sender<Result<std::result::Result<T, E>>>,
}

impl<T, E, F> Body<T, E, F> {
    pub(super) fn new(body: F, sender: flume::Sender<Result<std::result::Result<T, E>>>) -> Self {
        Body { body, outcome: None, defect: None, sender }
    }
}

impl<T: Send, E: Send, F> ErasedTransaction for Body<T, E, F>
where
    F: FnMut(&mut dyn Transaction) -> Result<std::result::Result<T, E>> + Send,
{
    fn carry_out(&mut self, entries: &mut dyn Transaction) -> bool {
        // Unwind safe: partial changes in the store are rolled back, and the body has no other state.
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.body)(entries)));
        let outcome = outcome.unwrap_or_else(|panic| {
            let error = panicked("a transaction", &*panic);
            self.defect = Some(Error::clone(&error));
            Err(error)
        });
        let is_to_be_kept = matches!(outcome, Ok(Ok(_)));
        self.outcome = Some(outcome);
        is_to_be_kept
    }

    fn take_defect(&mut self) -> Option<Error> {
        self.defect.take()
    }

    fn answer(self: Box<Self>, committed: Result<()>) {
        let Body { outcome, sender, .. } = *self;
        // A caller that no longer waits does not need the outcome.
        let _ = sender.send(committed.and_then(|()| outcome.expect("it was carried out")));
    }
}
