//! Outbox of a connection: messages in the order in which they leave, the more urgent class first.
//!
//! A queued message is sent even if its sender no longer waits. So frames never interleave, and a cancelled send leaves
//! no partial frame behind. Each class has its own limit in bytes. A sender that finds the outbox full waits behind the
//! earlier senders of its class.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use machine::{Buf, BufferPool, Checksums, Class, Condition, Error, Message, Result};

use super::frame::{Kind, Prelude};
use crate::bytes::{ByteRun, push_runs};
use crate::task::unless;

/// Limit of waiting bytes of each class: a few of the largest messages, so that one is ready when another has left.
const WAITING_BYTES_MAX: u64 = 16 << 20;

/// Size in bytes at which a batch of messages is closed, so that a large message soon gets the room that the batch
/// releases.
const BATCH_BYTES: u64 = 1 << 20;

const _: () = assert!(WAITING_BYTES_MAX > Message::PAYLOAD_BYTES_MAX + Message::HEADER_BYTES_MAX as u64);

/// Messages that wait to be written to a connection.
pub(crate) struct Outbox {
    /// Queues by class, the most urgent first.
    lines: [Line; Class::ALL.len()],
    put: Condition,
    /// Woken when the outbox accepts no more messages.
    end: Condition,
    /// Messages being written.
    leaving: RefCell<Vec<Rc<Sent>>>,
    state: RefCell<State>,
}

/// Queue of one class.
struct Line {
    waiting: RefCell<VecDeque<Waiting>>,
    /// Used only for its limit and its queue: no memory is allocated from it.
    room: BufferPool,
}

enum State {
    Open,
    /// Waiting messages are still sent, but no more are accepted.
    Closing,
    /// No message leaves any more, for this reason.
    Lost(Box<Error>),
}

/// Waiting message.
pub(crate) struct Waiting {
    pub(crate) prelude: Prelude,
    /// Header, and the checksums of the payload.
    pub(crate) head: Vec<u8>,
    pub(crate) payload: Vec<ByteRun>,
    /// Length of the message in bytes, as room of its class.
    room: Buf,
    sent: Rc<Sent>,
}

/// Outcome of sending a message.
#[derive(Default)]
struct Sent {
    outcome: Cell<Option<Result<()>>>,
    known: Condition,
}

/// Messages that leave together.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) messages: Vec<Waiting>,
    /// Length of the messages in bytes.
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
    /// Sends `message`. Completes when the system has taken it.
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
        // A connection that ends frees no room, so the wait must end too, even behind other senders in the queue.
        let room = unless(self.end.wait(), self.line(class).room.take(bytes)).await;
        let Some(room) = room else { return Err(self.check().err().unwrap_or(Error::Closed.into())) };
        self.put(class, prelude, head, runs, room)?.outcome().await
    }

    fn line(&self, class: Class) -> &Line {
        &self.lines[class as usize]
    }

    /// Sends a ping or pong, unless the outbox is full or closed. If it is full, the other side receives other frames
    /// anyway.
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

    /// Returns true if the outbox was closed and its connection has not failed.
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

    /// Waits for messages to write. Returns `None` once the outbox is empty and closed.
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
        // Messages handed to the system cannot be overtaken, so less urgent ones wait here and not in a batch.
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

    /// Completes the senders of the last batch. The memory of the batch must have been released before.
    pub(crate) fn settle(&self) {
        for sent in self.leaving.take() {
            sent.settle(Ok(()));
        }
    }

    /// Accepts no more messages. Waiting messages are still sent.
    pub(crate) fn close(&self) {
        let mut state = self.state.borrow_mut();
        if matches!(*state, State::Open) {
            *state = State::Closing;
        }
        drop(state);
        self.put.wake_all();
        self.end.wake_all();
    }

    /// Fails all messages that have not left, and all later ones.
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

/// Returns the header, followed by the checksums of the payload.
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
