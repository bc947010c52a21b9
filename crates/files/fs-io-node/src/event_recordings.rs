//! Recordings of the node's activity, on a client's request.
//!
//! A recording continues until any client stops it. It is limited: new events displace the oldest ones. The
//! recorded events are kept in the account of the client that has stopped the recording, until this client
//! has fetched them or disconnects.

use std::cell::RefCell;
use std::rc::Rc;

use machine::{Instant, Machine, NoteRing};
use recording::KEPT_EVENTS;
use trace::{ProcessInfo, ProcessNumber};

use super::client_account::Account;
use crate::error::Failure;
use crate::protocol::{RECORDED_BYTES_MAX, RecordingStep, Reply};
use crate::span_names;

/// The recording of a node.
pub(super) struct Recordings<M> {
    machine: M,
    current: RefCell<Option<Recording>>,
}

/// A recording in progress.
struct Recording {
    ring: Rc<RefCell<NoteRing>>,
    /// Time 0 of its events, in nanoseconds since 1970. Setting the wall clock during the recording does not
    /// change it.
    zero_unix_ns: u64,
}

impl<M: Machine> Recordings<M> {
    pub(super) fn new(machine: M) -> Self {
        Recordings { machine, current: RefCell::default() }
    }

    /// Serves a step of recording.
    pub(super) fn record(&self, account: &Account, step: RecordingStep) -> Result<Reply, Box<Failure>> {
        match step {
            RecordingStep::Start => self.start(),
            RecordingStep::ReadClock => self.clock(),
            RecordingStep::Stop => self.stop(account),
            RecordingStep::Fetch => Ok(next_part(account)),
        }
    }

    /// Starts recording. Drops an earlier recording in progress.
    fn start(&self) -> Result<Reply, Box<Failure>> {
        let mut recording = self.current.borrow_mut();
        if recording.is_none() && self.machine.notes().is_on() {
            let why = "it already records its whole run into a file";
            return Err(Failure::invalid(why).into());
        }
        let ring = Rc::new(RefCell::new(NoteRing::new(KEPT_EVENTS)));
        self.machine.notes().record(ring.clone());
        *recording = Some(Recording { ring, zero_unix_ns: span_names::zero_unix_ns(&self.machine) });
        Ok(Reply::Done)
    }

    /// Returns the time of the recording's clock.
    fn clock(&self) -> Result<Reply, Box<Failure>> {
        let recording = self.current.borrow();
        let Recording { zero_unix_ns, .. } = recording.as_ref().ok_or_else(nothing_recorded)?;
        let since_zero = self.machine.now().since(Instant::START).as_nanos();
        Ok(Reply::RecordingClock { unix_ns: zero_unix_ns.saturating_add(since_zero) })
    }

    /// Stops the recording, and keeps it for a client.
    fn stop(&self, account: &Account) -> Result<Reply, Box<Failure>> {
        let Recording { ring, zero_unix_ns } = self.current.take().ok_or_else(nothing_recorded)?;
        self.machine.notes().stop();
        // The client that fetches it knows a better name of the node.
        let process = ProcessInfo {
            host: String::new(),
            number: ProcessNumber::Node(0),
            program: "I/O node".to_owned(),
            command_line: String::new(),
            zero_unix_ns: Some(zero_unix_ns),
        };
        let section = recording::section(&ring.borrow(), self.machine.node(), &process);
        let bytes = section.len() as u64;
        account.recorded.replace(section.into());
        Ok(Reply::Recorded { zero_unix_ns, bytes })
    }
}

/// Returns the next part of the recording that a client fetches.
fn next_part(account: &Account) -> Reply {
    let mut recorded = account.recorded.borrow_mut();
    let bytes = RECORDED_BYTES_MAX.min(recorded.len());
    let bytes = recorded.drain(..bytes).collect();
    if recorded.is_empty() {
        recorded.shrink_to_fit();
    }
    Reply::RecordedPart { bytes }
}

fn nothing_recorded() -> Box<Failure> {
    Failure::invalid("it is not recording").into()
}
