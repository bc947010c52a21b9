//! The outbox of a connection: messages in the order in which they leave, the more urgent class first.
//!
//! A message once put here is sent, whether or not its sender still waits, so that frames never interleave and a sender
//! that gives up leaves no half of a frame behind. Each class has its own bound in bytes: a sender that finds the
//! outbox full waits for others of its class, first come, first served.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use machine::{Buf, BufferPool, Checksums, Class, Condition, Error, Message, Result};

use super::frame::{Kind, Prelude};
use crate::bytes::{ByteRun, push_runs};
use crate::task::unless;

/// Bytes that may wait of each class: some of the largest messages, so that one is ready when another has left.
const WAITING_BYTES_MAX: u64 = 16 << 20;

/// A batch of messages is closed when it has reached this size, so that a large message does not wait for the memory of
/// others.
const BATCH_BYTES: u64 = 1 << 20;

const _: () = assert!(WAITING_BYTES_MAX > Message::PAYLOAD_BYTES_MAX + Message::HEADER_BYTES_MAX as u64);

/// Messages that wait to be written to a connection.
pub(crate) struct Outbox {
    /// By class, the most urgent first.
    lines: [Line; Class::ALL.len()],
    put: Condition,
    /// No more is taken from now on.
    end: Condition,
    /// The messages being written.
    leaving: RefCell<Vec<Rc<Sent>>>,
    state: RefCell<State>,
}

/// The messages of one class.
struct Line {
    waiting: RefCell<VecDeque<Waiting>>,
    /// Used for its bound and its line alone: what it lends never becomes memory.
    room: BufferPool,
}

enum State {
    Open,
    /// What waits is still sent, but no more is taken.
    Closing,
    /// Nothing leaves any more, for this reason.
    Lost(Box<Error>),
}

/// A message that waits.
pub(crate) struct Waiting {
    pub(crate) prelude: Prelude,
    /// The header, and the checksums of the payload.
    pub(crate) head: Vec<u8>,
    pub(crate) payload: Vec<ByteRun>,
    /// Its length in bytes, as room of its class.
    room: Buf,
    sent: Rc<Sent>,
}

/// What became of a message.
#[derive(Default)]
struct Sent {
    outcome: Cell<Option<Result<()>>>,
    known: Condition,
}

/// Messages that leave together.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) messages: Vec<Waiting>,
    /// Their length in bytes.
    pub(crate) bytes: u64,
}

impl Default for Outbox {
    fn default() -> Self {
        Outbox {
            lines: Class::ALL
                .map(|_| Line { waiting: RefCell::default(), room: BufferPool::new(WAITING_BYTES_MAX) }),
            put: Condition::new(),
            end: Condition::new(),
            leaving: RefCell::default(),
            state: RefCell::new(State::Open),
        }
    }
}

impl Outbox {
    /// Sends `message`; completes when the system has taken it.
    pub(crate) async fn send(&self, message: Message) -> Result<()> {
        let Message { class, header, payload } = message;
        let kind = Kind::Message(class);
        let checksums = payload.checksums();
        let (header_bytes, payload_bytes) = (header.len(), payload.len());
        let prelude = Prelude { kind, header_bytes, payload_bytes, lead: checksums.lead() };
        assert!(prelude.header_bytes <= Message::HEADER_BYTES_MAX, "{prelude:?}: too long a header");
        assert!(prelude.payload_bytes <= prelude.payload_bytes_max(), "{prelude:?}: too long a payload");
        let mut runs = Vec::new();
        push_runs(&payload, &mut runs)?;
        drop(payload);
        self.check()?;
        let head = with_checksums(header, &checksums);
        let bytes = (Prelude::BYTES + head.len()) as u64 + prelude.payload_bytes;
        // When the connection ends there will be no room: waiting for it ends too, also behind others in line.
        let room = unless(self.end.wait(), self.line(class).room.take(bytes)).await;
        let Some(room) = room else { return Err(self.check().err().unwrap_or(Error::Closed.into())) };
        self.put(class, prelude, head, runs, room)?.outcome().await
    }

    fn line(&self, class: Class) -> &Line {
        &self.lines[class as usize]
    }

    /// Sends a ping or pong, unless the outbox is full or takes no more: then it is not for want of one that the
    /// other side hears nothing.
    pub(crate) fn show_life(&self, sign: Prelude) {
        let class = Class::Control;
        if let Some(room) = self.line(class).room.try_take(Prelude::BYTES as u64) {
            let _ = self.put(class, sign, Vec::new(), Vec::new(), room);
        }
    }

    fn put(
        &self,
        class: Class,
        prelude: Prelude,
        head: Vec<u8>,
        payload: Vec<ByteRun>,
        room: Buf,
    ) -> Result<Rc<Sent>> {
        self.check()?;
        let sent = Rc::<Sent>::default();
        let waiting = Waiting { prelude, head, payload, room, sent: sent.clone() };
        self.line(class).waiting.borrow_mut().push_back(waiting);
        self.put.wake_one();
        Ok(sent)
    }

    /// Whether it was closed and its connection has not failed.
    pub(crate) fn is_closed_in_order(&self) -> bool {
        matches!(*self.state.borrow(), State::Closing)
    }

    fn check(&self) -> Result<()> {
        match &*self.state.borrow() {
            State::Open => Ok(()),
            State::Closing => Err(Error::Closed.into()),
            State::Lost(error) => Err(error.clone()),
        }
    }

    /// Waits for messages to write; `None` when there are none and will be none.
    pub(crate) async fn next_batch(&self) -> Option<Batch> {
        loop {
            if let Some(batch) = self.take_batch() {
                return Some(batch);
            }
            if !matches!(*self.state.borrow(), State::Open) {
                return None;
            }
            self.put.wait().await;
        }
    }

    fn take_batch(&self) -> Option<Batch> {
        let mut leaving = self.leaving.borrow_mut();
        debug_assert!(leaving.is_empty(), "one batch at a time");
        let mut batch = Batch::default();
        // What has left this process cannot be overtaken, so what is not urgent waits here and not in a batch.
        let line = self.lines.iter().find(|line| !line.waiting.borrow().is_empty())?;
        let mut waiting = line.waiting.borrow_mut();
        while let Some(next) = waiting.front() {
            if batch.bytes + next.room.len() > BATCH_BYTES && !leaving.is_empty() {
                break;
            }
            let next = waiting.pop_front().expect("just looked at");
            batch.bytes += next.room.len();
            leaving.push(next.sent.clone());
            batch.messages.push(next);
        }
        Some(batch)
    }

    /// Tells the senders of the last batch that it has left. Its memory must have been let go of before.
    pub(crate) fn settle(&self) {
        for sent in self.leaving.take() {
            sent.settle(Ok(()));
        }
    }

    /// Takes no more messages. What waits is still sent.
    pub(crate) fn close(&self) {
        let mut state = self.state.borrow_mut();
        if matches!(*state, State::Open) {
            *state = State::Closing;
        }
        drop(state);
        self.put.wake_all();
        self.end.wake_all();
    }

    /// Fails all that has not left, and all that is put here later.
    pub(crate) fn lose(&self, error: Box<Error>) {
        *self.state.borrow_mut() = State::Lost(error.clone());
        let waiting = self.lines.iter().flat_map(|line| line.waiting.take()).map(|waiting| waiting.sent);
        for sent in self.leaving.take().into_iter().chain(waiting) {
            sent.settle(Err(error.clone()));
        }
        self.put.wake_all();
        self.end.wake_all();
    }
}

/// The header, followed by the checksums of the payload.
fn with_checksums(mut header: Vec<u8>, checksums: &Checksums) -> Vec<u8> {
    header.reserve_exact(8 * checksums.sums().len());
    checksums.sums().iter().for_each(|sum| header.extend_from_slice(&sum.to_le_bytes()));
    header
}

impl Sent {
    fn settle(&self, outcome: Result<()>) {
        self.outcome.set(Some(outcome));
        self.known.wake_one();
    }

    async fn outcome(&self) -> Result<()> {
        loop {
            match self.outcome.take() {
                Some(outcome) => return outcome,
                None => self.known.wait().await,
            }
        }
    }
}
