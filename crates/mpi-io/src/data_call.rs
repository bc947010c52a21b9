//! A call that reads or writes, from its beginning to what is told of it: to whoever traces the process, to the log of
//! what it does, and in the account of its file.

use std::time::Instant;

use layout::{Operation, Selection};
use node::TracedCall;

use crate::account::CallAccount;
use crate::recording::{BegunCall, CallRecorder};
use crate::way::{Choice, Way};

/// A call that is under way.
pub(crate) struct DataCall<'a> {
    pub(crate) operation: Operation,
    /// Whether all members make it.
    pub(crate) together: bool,
    begun: Instant,
    traced: TracedCall,
    recorded: Option<(&'a CallRecorder, BegunCall)>,
    choice: Option<Choice>,
}

impl<'a> DataCall<'a> {
    pub(crate) fn begin(
        operation: Operation,
        together: bool,
        traced: TracedCall,
        recorder: Option<&'a CallRecorder>,
    ) -> Self {
        let recorded = recorder.map(|recorder| (recorder, recorder.call(together)));
        DataCall { operation, together, begun: Instant::now(), traced, recorded, choice: None }
    }

    /// From here on it moves its data, of so many pieces, as it has been chosen.
    pub(crate) fn goes(&mut self, choice: Choice, pieces: u64) -> Way {
        self.traced.within(choice.way.name(), || [("pieces", pieces)]);
        self.choice = Some(choice);
        choice.way
    }

    /// It has moved so many bytes of what it has selected.
    pub(crate) fn done(mut self, account: &CallAccount, selection: &Selection, bytes: u64) {
        self.traced.say(|| [("bytes", bytes)]);
        let Some(choice) = self.choice else { return };
        let kind = match (self.operation, self.together) {
            (Operation::Read, false) => "reads",
            (Operation::Read, true) => "collective reads",
            (Operation::Write, false) => "writes",
            (Operation::Write, true) => "collective writes",
        };
        account.note((kind, choice), bytes, selection.runs(), self.begun.elapsed());
        if let Some((recorder, call)) = self.recorded {
            recorder.moved(call, self.operation, (selection, bytes), choice.way.name());
        }
    }
}
