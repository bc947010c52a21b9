//! A call that reads or writes, from its beginning to what is told of it: to whoever traces the process, to the log of
//! what it does, and in the account of its file.

use std::time::Instant;

use layout::{Operation, Selection};
use node::TracedCall;

use crate::account::CallAccount;
use crate::recording::{BegunCall, CallRecorder};
use crate::way::{Choice, Way};

/// A call that is under way.
pub(crate) struct DataCall {
    pub(crate) operation: Operation,
    /// Whether all members make it.
    pub(crate) together: bool,
    begun: Instant,
    /// Until it returns.
    traced: Option<TracedCall>,
    recorded: Option<BegunCall>,
    choice: Option<Choice>,
}

impl DataCall {
    pub(crate) fn begin(
        operation: Operation,
        together: bool,
        traced: TracedCall,
        recorder: Option<&CallRecorder>,
    ) -> Self {
        let recorded = recorder.map(|recorder| recorder.call(together));
        DataCall { operation, together, begun: Instant::now(), traced: Some(traced), recorded, choice: None }
    }

    /// From here on it moves its data, of so many pieces, as it has been chosen.
    pub(crate) fn goes(&mut self, choice: Choice, pieces: u64) -> Way {
        if let Some(traced) = &mut self.traced {
            traced.within(choice.way.name(), || [("pieces", pieces)]);
        }
        self.choice = Some(choice);
        choice.way
    }

    /// Whether all members move their data at once.
    pub(crate) fn is_common(&self) -> bool {
        matches!(self.choice, Some(Choice { way: Way::Together(_), .. }))
    }

    /// It returns, if it has not: so many bytes have been moved, or will be.
    pub(crate) fn returns(&mut self, bytes: u64) {
        if let Some(mut traced) = self.traced.take() {
            traced.say(|| [("bytes", bytes)]);
        }
    }

    /// It has moved so many bytes of what it has selected.
    pub(crate) fn done(
        mut self,
        account: &CallAccount,
        recorder: Option<&CallRecorder>,
        selection: &Selection,
        bytes: u64,
    ) {
        self.returns(bytes);
        let Some(choice) = self.choice else { return };
        let kind = match (self.operation, self.together) {
            (Operation::Read, false) => "reads",
            (Operation::Read, true) => "collective reads",
            (Operation::Write, false) => "writes",
            (Operation::Write, true) => "collective writes",
        };
        account.note((kind, choice), bytes, selection.runs(), self.begun.elapsed());
        if let Some((recorder, call)) = recorder.zip(self.recorded) {
            recorder.moved(call, self.operation, (selection, bytes), choice.way.name());
        }
    }
}
