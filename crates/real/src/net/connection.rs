//! One connection: a task that reads frames into the inbox, and one that writes the outbox.
//!
//! The reader is the one who says that a connection is over, after all that came over it; so a peer is lost
//! exactly once. Ending in order takes both sides: who closes writes what is left, says that no more comes,
//! and reads on, throwing away, until the other side has closed too. A socket closed with data unread would
//! take back what was sent.

use std::io;
use std::rc::Rc;

use compio::BufResult;
use compio::buf::{IntoInner, IoBuf};
use compio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use compio::net::TcpStream;
use machine::{BufferPool, Error, Message, NodeId, Payload};

use super::frame::Prelude;
use super::inbox::Place;
use super::outbox::Outbox;
use crate::bytes::{Run, next_batch};

/// A connection to another node, as far as its senders and its tasks share it.
pub(crate) struct Connection {
    pub(crate) peer: NodeId,
    pub(crate) outbox: Outbox,
    pub(crate) place: Rc<Place>,
}

impl Connection {
    pub(crate) fn new(peer: NodeId) -> Rc<Self> {
        Rc::new(Connection { peer, outbox: Outbox::new(), place: Rc::default() })
    }

    /// Writes the outbox until it is closed and empty, or the connection fails.
    pub(crate) async fn write(self: Rc<Self>, mut stream: TcpStream) {
        while let Some(mut batch) = self.outbox.next_batch().await {
            let outcome = write_all(&mut stream, &mut batch.runs).await;
            drop(batch);
            match outcome {
                Ok(()) => self.outbox.settle(),
                Err(error) => return self.outbox.lose(self.gone(&error.to_string())),
            }
        }
        // If the connection is gone there is nobody to say this to.
        let _ = stream.shutdown().await;
    }

    pub(crate) fn gone(&self, why: &str) -> Error {
        Error::PeerGone { node: self.peer, why: why.to_owned() }
    }
}

/// Writes `runs`, of which none is left then.
async fn write_all(stream: &mut TcpStream, runs: &mut Vec<Run>) -> io::Result<()> {
    while let Some(batch) = next_batch(runs) {
        let BufResult(outcome, _batch) = stream.write_vectored_all(batch).await;
        outcome?;
    }
    Ok(())
}

/// Reads ahead by so much: the lengths and the header of a message, together with the messages around it if
/// these are small. What of a large payload comes along is copied, so more would not be better.
const STAGING_BYTES: usize = 16 * 1024;

/// A payload this short is not worth a buffer of the pool; the bound on messages bounds these too.
const SMALL_PAYLOAD_BYTES: u64 = 4096;

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

    /// Fills `memory`, which is empty, with the next `bytes` bytes.
    pub(crate) async fn fill(&mut self, mut memory: Vec<u8>, bytes: usize) -> io::Result<Vec<u8>> {
        let staged = &self.staging[self.consumed..];
        let staged = &staged[..staged.len().min(bytes)];
        memory.extend_from_slice(staged);
        self.consumed += staged.len();
        while memory.len() < bytes {
            let read = memory.len();
            let BufResult(result, slice) = self.stream.read(memory.slice(read..bytes)).await;
            memory = slice.into_inner();
            if result? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(memory)
    }

    /// Reads and throws away until the other side has closed or the connection fails.
    pub(crate) async fn discard(&mut self) {
        while self.stage().await.is_ok() && !self.staging.is_empty() {}
    }

    async fn stage(&mut self) -> io::Result<()> {
        let mut staging = std::mem::take(&mut self.staging);
        staging.clear();
        // The last one may have been lost with a read that was given up.
        staging.reserve(STAGING_BYTES);
        let BufResult(result, staging) = self.stream.read(staging).await;
        (self.staging, self.consumed) = (staging, 0);
        result.map(drop)
    }

    /// The next message, or `None` if the other side has closed. Memory for the payload is of `pool`.
    pub(crate) async fn message(
        &mut self,
        pool: &BufferPool,
    ) -> std::result::Result<Option<Message>, String> {
        let Some(prelude) = self.array().await.map_err(explain)? else { return Ok(None) };
        let Prelude { class, header_bytes, payload_bytes } = Prelude::decode(&prelude)?;
        let header = self.fill(Vec::with_capacity(header_bytes), header_bytes).await.map_err(explain)?;
        let payload = self.payload(payload_bytes, pool).await?;
        Ok(Some(Message { class, header, payload }))
    }

    async fn payload(&mut self, bytes: u64, pool: &BufferPool) -> std::result::Result<Payload, String> {
        if bytes <= SMALL_PAYLOAD_BYTES {
            let memory = Vec::with_capacity(bytes as usize);
            return Ok(self.fill(memory, bytes as usize).await.map_err(explain)?.into());
        }
        if bytes > pool.capacity_bytes() {
            let room = pool.capacity_bytes();
            return Err(format!("it sent a payload of {bytes} bytes to a node that has memory for {room}"));
        }
        let mut buffer = pool.take(bytes).await;
        let memory = self.fill(buffer.take_memory(), bytes as usize).await.map_err(explain)?;
        buffer.fill_memory(memory);
        Ok(buffer.slice(0..bytes))
    }
}

fn explain(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the connection ended in the middle of a message".to_owned(),
        _ => error.to_string(),
    }
}
