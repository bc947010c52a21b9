//! A connection: two of TCP, one for control and one for data, so that a long transfer, or a peer that does not
//! take its data, never delays a command. For each of them a task reads frames into the inbox, and one writes an
//! outbox.
//!
//! The readers report that a connection is over, after all that came over it; so a peer is lost exactly once. Ending in
//! order takes both sides: the side that closes writes what is left, sends a bye, and reads on, discarding, until the
//! other side has closed too. A socket closed with data unread would discard what was sent. A lane that ends without a
//! bye is that of a peer that is gone: then the other lane ends with it, whatever it waits for.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use compio::BufResult;
use compio::buf::{IntoInner, IoBuf};
use compio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use compio::net::TcpStream;
use machine::{BufferPool, Class, Condition, Error, Message, NodeId, NodeNotes, Payload, Result};

use super::arrivals::{Arrival, Arrivals};
use super::frame::{Kind, Prelude};
use super::inbox::InboxShare;
use super::outbox::Outbox;
use crate::bytes::{ByteRun, next_batch};
use crate::task::unless;

/// One of the two TCP connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Control,
    Data,
}

impl Lane {
    pub(crate) fn of(class: Class) -> Lane {
        match class {
            Class::Control => Lane::Control,
            Class::Demand | Class::Background => Lane::Data,
        }
    }
}

/// A connection to another node, as far as its senders and its tasks share it.
pub(crate) struct Connection {
    /// What this node calls the other.
    pub(crate) peer: NodeId,
    /// By lane.
    sides: [Side; 2],
    /// What of the node's pool for received data is the peer's. Used for its bound alone.
    share: BufferPool,
    /// Whether anything has come since the last look.
    pub(crate) heard: Cell<bool>,
    /// Woken when something comes.
    word: Condition,
    /// Woken when its other side has called again, or this side gives it up, and this connection is to end.
    pub(crate) replaced: Condition,
    /// Why this side has given the connection up, if it has.
    given_up: RefCell<Option<String>>,
    /// Why it is over, if it is.
    loss: RefCell<Option<String>>,
    /// Woken when the loss has been received.
    pub(crate) forgotten: Condition,
    noted: LinkNotes,
}

/// Where it is noted how long messages with data take the links from and to a node.
pub(crate) struct LinkNotes {
    pub(crate) notes: Rc<NodeNotes>,
    /// The number of the connection among those of the node.
    pub(crate) number: usize,
}

/// What a link does.
const MESSAGE: &str = "message";

/// One lane of a connection.
#[derive(Default)]
pub(crate) struct Side {
    pub(crate) outbox: Outbox,
    pub(crate) place: Rc<InboxShare>,
}

/// The two halves of one TCP connection.
pub(crate) struct TcpHalves {
    pub(crate) stream: TcpStream,
    pub(crate) reader: Reader,
}

impl Connection {
    /// A connection of whose messages `share_bytes` may wait in this node at once.
    pub(crate) fn new(peer: NodeId, share_bytes: u64, noted: LinkNotes) -> Rc<Self> {
        Rc::new(Connection {
            peer,
            sides: Default::default(),
            share: BufferPool::new(share_bytes),
            heard: Cell::new(true),
            word: Condition::new(),
            replaced: Condition::new(),
            given_up: RefCell::default(),
            loss: RefCell::default(),
            forgotten: Condition::new(),
            noted,
        })
    }

    pub(crate) fn side(&self, lane: Lane) -> &Side {
        &self.sides[lane as usize]
    }

    pub(crate) async fn send(&self, message: Message) -> Result<()> {
        self.side(Lane::of(message.class)).outbox.send(message).await
    }

    /// Something has come.
    pub(crate) fn hear(&self) {
        self.heard.set(true);
        self.word.wake_all();
    }

    /// Whether anything comes within `limit`, now that the other side is asked whether it is there.
    pub(crate) async fn shows_life(&self, limit: Duration) -> bool {
        self.side(Lane::Control).outbox.show_life(Prelude::PING);
        compio::time::timeout(limit, self.word.wait()).await.is_ok()
    }

    /// Takes no more messages. What waits is still sent.
    pub(crate) fn close(&self) {
        self.sides.iter().for_each(|side| side.outbox.close());
    }

    /// Has the connection ended, for this reason.
    pub(crate) fn give_up(&self, why: &str) {
        *self.given_up.borrow_mut() = Some(why.to_owned());
        self.replaced.wake_all();
    }

    /// Why it ends, once `replaced` has been woken.
    pub(crate) fn replaced_because(&self) -> String {
        let given_up = self.given_up.borrow().clone();
        given_up.unwrap_or_else(|| "it has called again and is silent over this connection".to_owned())
    }

    /// The connection is over.
    pub(crate) fn lose(&self, why: &str) {
        *self.loss.borrow_mut() = Some(why.to_owned());
        self.sides.iter().for_each(|side| side.outbox.lose(self.gone(why)));
    }

    pub(crate) fn loss(&self) -> Option<String> {
        self.loss.borrow().clone()
    }

    /// Writes the outbox of a lane until it is closed and empty, or the connection fails.
    pub(crate) async fn write(self: Rc<Self>, lane: Lane, mut stream: TcpStream) {
        let outbox = &self.side(lane).outbox;
        while let Some(mut batch) = outbox.next_batch().await {
            let since = self.noted.notes.moment().filter(|_| lane == Lane::Data);
            let bytes = batch.bytes;
            let outcome = write_all(&mut stream, &mut batch.runs).await;
            drop(batch);
            let LinkNotes { notes, number } = &self.noted;
            notes.did(("link out", *number), MESSAGE, since, || [("bytes", bytes)]);
            match outcome {
                Ok(()) => outbox.settle(),
                Err(error) => return outbox.lose(self.gone(&error.to_string())),
            }
        }
        // If the connection is gone this is not said.
        if outbox.is_closed_in_order() {
            let _ = stream.write_all(Prelude::BYE.encode()).await;
        }
        let _ = stream.shutdown().await;
    }

    /// What comes next over a lane of which `reader` is the reading side.
    pub(crate) async fn next(
        &self,
        lane: Lane,
        reader: &mut Reader,
        room: &Room,
    ) -> std::result::Result<Heard, String> {
        reader.next(lane, room, &self.share, &self.noted).await
    }

    pub(crate) fn gone(&self, why: &str) -> Box<Error> {
        Error::PeerGone { node: self.peer, why: why.to_owned() }.into()
    }
}

/// What a reader hears.
pub(crate) enum Heard {
    Message(Message),
    Ping,
    Pong,
    /// The other side closes: all that it had to send has come.
    Bye,
    /// The other side has closed without a word.
    End,
}

/// Where received data go.
pub(crate) struct Room {
    /// What is on its way in.
    pub(crate) arrivals: Arrivals,
    /// What has come and is not done with.
    pub(crate) pool: BufferPool,
}

impl Room {
    /// Room for `bytes` that have come, and as much again on its way.
    pub(crate) fn new(bytes: u64) -> Self {
        Room { arrivals: Arrivals::new(bytes), pool: BufferPool::new(bytes) }
    }

    /// What one connection may have of the pool, in bytes: a part of it, but no less than the largest message.
    pub(crate) fn share_bytes(&self) -> u64 {
        let pool = self.pool.capacity_bytes();
        (pool / SHARES).max(pool.min(Message::PAYLOAD_BYTES_MAX))
    }
}

/// The number of connections that can fill a node's pool for received data.
const SHARES: u64 = 4;

/// Writes `runs`, of which none is left then.
async fn write_all(stream: &mut TcpStream, runs: &mut Vec<ByteRun>) -> io::Result<()> {
    while let Some(batch) = next_batch(runs) {
        let BufResult(outcome, _batch) = stream.write_vectored_all(batch).await;
        outcome?;
    }
    Ok(())
}

/// Reads ahead by so much: a message with a small payload, whole, together with the messages around it if these are
/// smaller. What of a large payload comes along is copied, so more would not be better.
const STAGING_BYTES: usize = SMALL_PAYLOAD_BYTES as usize + HEADS_BYTES;

/// Enough for the lengths and the header of a message that moves a small payload.
const HEADS_BYTES: usize = 256;

/// A payload this short is not worth a buffer of the pool; the bound on messages bounds these too.
const SMALL_PAYLOAD_BYTES: u64 = 4096;

const _: () = assert!(SMALL_PAYLOAD_BYTES >= Message::CONTROL_PAYLOAD_BYTES_MAX);

/// The reading side of a connection.
pub(crate) struct Reader {
    stream: TcpStream,
    /// What has been read and not been consumed is `staging[consumed..]`.
    staging: Vec<u8>,
    consumed: usize,
}

impl Reader {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Reader { stream, staging: Vec::with_capacity(STAGING_BYTES), consumed: 0 }
    }

    /// The next `N` bytes, or `None` if the stream ends before them. `N` is small.
    pub(crate) async fn array<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        if self.staging.len() == self.consumed {
            self.stage().await?;
            if self.staging.is_empty() {
                return Ok(None);
            }
        }
        let bytes = self.fill(Vec::with_capacity(N), N).await?;
        Ok(Some(bytes.try_into().expect("filled to its length")))
    }

    /// Fills `memory` up to `bytes` with what comes next.
    pub(crate) async fn fill(&mut self, mut memory: Vec<u8>, bytes: usize) -> io::Result<Vec<u8>> {
        while memory.len() < bytes {
            memory = self.fill_some(memory, bytes).await?;
        }
        Ok(memory)
    }

    /// Puts what comes next into `memory`, which then has no more than `bytes`. What is there behind them is staged in
    /// the same call.
    async fn fill_some(&mut self, mut memory: Vec<u8>, bytes: usize) -> io::Result<Vec<u8>> {
        let staged = &self.staging[self.consumed..];
        if !staged.is_empty() {
            let staged = &staged[..staged.len().min(bytes - memory.len())];
            memory.extend_from_slice(staged);
            self.consumed += staged.len();
            return Ok(memory);
        }
        let read = memory.len();
        let buffers = (memory.slice(read..bytes), (self.empty_staging(),));
        let BufResult(result, (slice, (staging,))) = self.stream.read_vectored(buffers).await;
        self.staging = staging;
        if result? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(slice.into_inner())
    }

    /// Reads and throws away until the other side has closed or the connection fails.
    pub(crate) async fn discard(&mut self) {
        while self.stage().await.is_ok() && !self.staging.is_empty() {}
    }

    async fn stage(&mut self) -> io::Result<()> {
        let staging = self.empty_staging();
        let BufResult(result, staging) = self.stream.read(staging).await;
        self.staging = staging;
        result.map(drop)
    }

    /// Takes the staging memory to read into it. All that it had has been consumed.
    fn empty_staging(&mut self) -> Vec<u8> {
        let mut staging = std::mem::take(&mut self.staging);
        self.consumed = 0;
        staging.clear();
        // The last one may have been lost with a read that was given up.
        staging.reserve(STAGING_BYTES);
        staging
    }

    /// What comes next over the lane. Payloads are received into `room`, within the bound of `share`.
    async fn next(
        &mut self,
        lane: Lane,
        room: &Room,
        share: &BufferPool,
        noted: &LinkNotes,
    ) -> std::result::Result<Heard, String> {
        let Some(prelude) = self.array().await.map_err(explain)? else { return Ok(Heard::End) };
        let Prelude { kind, header_bytes, payload_bytes } = Prelude::decode(&prelude)?;
        let class = match kind {
            Kind::Message(class) if Lane::of(class) == lane => class,
            Kind::Ping if lane == Lane::Control => return Ok(Heard::Ping),
            Kind::Pong if lane == Lane::Control => return Ok(Heard::Pong),
            Kind::Bye => return Ok(Heard::Bye),
            stray => return Err(format!("it sent a frame over the wrong connection ({stray:?}, {lane:?})")),
        };
        let header = self.fill(Vec::with_capacity(header_bytes), header_bytes).await.map_err(explain)?;
        let payload = self.payload(payload_bytes, room, share, noted).await?;
        Ok(Heard::Message(Message { class, header, payload }))
    }

    // A message of control is so small that it never waits for memory.
    async fn payload(
        &mut self,
        bytes: u64,
        room: &Room,
        share: &BufferPool,
        LinkNotes { notes, number }: &LinkNotes,
    ) -> std::result::Result<Payload, String> {
        if bytes <= SMALL_PAYLOAD_BYTES {
            let memory = Vec::with_capacity(bytes as usize);
            return Ok(self.fill(memory, bytes as usize).await.map_err(explain)?.into());
        }
        if bytes > room.pool.capacity_bytes() {
            let room = room.pool.capacity_bytes();
            return Err(format!("it sent a payload of {bytes} bytes to a node that has memory for {room}"));
        }
        let share = share.take(bytes).await;
        let arrival = room.arrivals.begin(bytes);
        let since = notes.moment();
        let memory = self.arrive(&arrival, bytes, &room.pool).await?;
        notes.did(("link in", *number), MESSAGE, since, || [("bytes", bytes)]);
        let mut buffer = room.pool.take_for(share).await;
        buffer.fill_memory(memory);
        Ok(buffer.slice(0..bytes))
    }

    /// Reads a payload into memory as far as that is allowed.
    async fn arrive(
        &mut self,
        arrival: &Arrival<'_>,
        bytes: u64,
        pool: &BufferPool,
    ) -> std::result::Result<Vec<u8>, String> {
        let mut allowed = arrival.allow_more().await;
        // Memory that was used before has all its pages; new memory gets them with what comes.
        let mut memory = if allowed == bytes {
            pool.spare_memory(bytes as usize)
        } else {
            Vec::with_capacity(bytes as usize)
        };
        while (memory.len() as u64) < bytes {
            if memory.len() as u64 == allowed {
                allowed = arrival.allow_more().await;
            }
            let read = unless(arrival.gives_way(), self.fill_some(memory, allowed as usize)).await;
            memory = read.ok_or(STALLED)?.map_err(explain)?;
            arrival.has_come(memory.len() as u64);
        }
        Ok(memory)
    }
}

/// Why a connection ends whose message had to give way.
const STALLED: &str = "it stopped in the middle of a message, and others needed the memory";

fn explain(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the connection ended in the middle of a message".to_owned(),
        _ => error.to_string(),
    }
}
