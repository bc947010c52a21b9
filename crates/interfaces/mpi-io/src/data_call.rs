//! A call that reads or writes, from its start to its records: in the trace of the process, in its request log, and in
//! the account of the file.

use std::time::Instant;

use layout::{Operation, Selection};
use node::TracedCall;

use crate::access_path::{AccessPath, Choice};
use crate::account::CallAccount;
use crate::recording::{BegunCall, CallRecorder};

/// A call in flight.
pub(crate) struct DataCall {
    pub(crate) operation: Operation,
    /// True if the call is collective.
    pub(crate) together: bool,
    begun: Instant,
    /// Span of the call in the trace; ends when the call returns.
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

    /// Records the chosen access path and the number of pieces. The call moves its data from here on.
    pub(crate) fn goes(&mut self, choice: Choice, pieces: u64) -> AccessPath {
        if let Some(traced) = &mut self.traced {
            traced.within(choice.way.name(), || [("pieces", pieces)]);
        }
        self.choice = Some(choice);
        choice.way
    }

    /// Returns true if all members move their data together.
    pub(crate) fn is_common(&self) -> bool {
        matches!(self.choice, Some(Choice { way: AccessPath::Together(_), .. }))
    }

    /// Ends the span of the call, unless it has ended. `bytes` is the number of bytes moved or to be moved.
    pub(crate) fn returns(&mut self, bytes: u64) {
        if let Some(mut traced) = self.traced.take() {
            traced.say(|| [("bytes", bytes)]);
        }
    }

    /// Records that the call has moved `bytes` bytes of its selection.
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
