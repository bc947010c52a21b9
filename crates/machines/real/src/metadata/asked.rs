//! A transaction that a caller asks for, on its way to the thread and back.

use std::panic::{AssertUnwindSafe, catch_unwind};

use machine::{Error, Result, Transaction};

use crate::task::panicked;

/// A transaction whose types only its caller knows.
pub(super) trait Asked: Send {
    /// Carries out its body; says whether its changes are to be kept. It may be called again.
    fn carry_out(&mut self, entries: &mut dyn Transaction) -> bool;

    /// The panic that has ended the body, once.
    fn take_defect(&mut self) -> Option<Error>;

    /// Tells the caller the outcome: what the body has returned, if the commit succeeded.
    fn answer(self: Box<Self>, committed: Result<()>);
}

/// The body of a transaction, and whom to tell.
pub(super) struct Body<T, E, F> {
    body: F,
    outcome: Option<Result<std::result::Result<T, E>>>,
    defect: Option<Error>,
    tell: flume::Sender<Result<std::result::Result<T, E>>>,
}

impl<T, E, F> Body<T, E, F> {
    pub(super) fn new(body: F, tell: flume::Sender<Result<std::result::Result<T, E>>>) -> Self {
        Body { body, outcome: None, defect: None, tell }
    }
}

impl<T: Send, E: Send, F> Asked for Body<T, E, F>
where
    F: FnMut(&mut dyn Transaction) -> Result<std::result::Result<T, E>> + Send,
{
    fn carry_out(&mut self, entries: &mut dyn Transaction) -> bool {
        // What it leaves half done in the store is taken back, and it has nothing else to leave half done.
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
        let Body { outcome, tell, .. } = *self;
        // A caller that no longer waits need not be told.
        let _ = tell.send(committed.and_then(|()| outcome.expect("it was carried out")));
    }
}
