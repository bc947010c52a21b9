//! Reading side of a lane: reads frames, checks them record by record, and provides the memory for their payloads.

use std::io;

use machine::{BufferPool, CHECKSUM_UNIT_BYTES, Checksums, Message, Payload};

use super::arrivals::{Arrival, Arrivals};
use super::frame::{Kind, Prelude};
use super::lane::{Lane, LinkNotes, MESSAGE};
use super::records::{AlteredRecord, RECORD_BYTES_MAX, RecordStream, Tag};
use super::staging::Staging;
use crate::task::unless;

/// Frame, or the end of a lane.
pub(crate) enum Incoming {
    Message(Message),
    Ping,
    Pong,
    /// The other side closes the connection; all its messages have arrived.
    Bye,
    /// The other side has closed without a bye.
    End,
}

/// Memory for received payloads.
pub(crate) struct Room {
    /// Payloads that are arriving.
    arrivals: Arrivals,
    /// Pool for payloads that have arrived and are in use.
    pool: BufferPool,
}

impl Room {
    /// Creates room for `bytes` bytes of payloads that have arrived, and for as many bytes of payloads that are
    /// arriving.
    pub(crate) fn new(bytes: u64) -> Self {
        Room { arrivals: Arrivals::new(bytes), pool: BufferPool::new(bytes) }
    }

    /// Returns the limit in bytes of one connection in the pool: a part of the pool, but at least the largest message.
    pub(crate) fn share_bytes(&self) -> u64 {
        let pool = self.pool.capacity_bytes();
        (pool / SHARES).max(pool.min(Message::PAYLOAD_BYTES_MAX))
    }
}

/// Number of connections that, together, can fill a node's pool for received data.
const SHARES: u64 = 4;

/// Payloads up to this length in bytes get no buffer of the pool; the maximum number of messages in the inbox limits
/// their memory.
const SMALL_PAYLOAD_BYTES: u64 = 4096;

const _: () = assert!(SMALL_PAYLOAD_BYTES >= Message::CONTROL_PAYLOAD_BYTES_MAX);
const _: () = assert!(SMALL_PAYLOAD_BYTES <= RECORD_BYTES_MAX as u64);
/// Maximum length of the checksums of a payload, in bytes.
const CHECKSUM_BYTES_MAX: u64 = 8 * (Message::PAYLOAD_BYTES_MAX / CHECKSUM_UNIT_BYTES + 1);
const _: () = assert!(Message::HEADER_BYTES_MAX as u64 + CHECKSUM_BYTES_MAX <= RECORD_BYTES_MAX as u64);

/// Reads the frames of one lane.
pub(crate) struct Reader {
    bytes: Staging,
    records: RecordStream,
}

/// Reason why a lane cannot be read any more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaneError {
    #[error("{0}")]
    AlteredRecord(#[from] AlteredRecord),
    #[error("{0}")]
    Other(String),
}

impl<T: Into<String>> From<T> for LaneError {
    fn from(why: T) -> Self {
        LaneError::Other(why.into())
    }
}

type Result<T> = std::result::Result<T, LaneError>;

impl Reader {
    /// Creates a reader for the bytes that follow the handshake.
    pub(crate) fn new(bytes: Staging, records: RecordStream) -> Self {
        Reader { bytes, records }
    }

    /// Reads and discards until the other side has closed or the connection fails.
    pub(crate) async fn discard(&mut self) {
        self.bytes.discard().await;
    }

    /// Reads the next frame of the lane. Payloads are received into `room`, within the limit of `share`.
    pub(crate) async fn next(
        &mut self,
        lane: Lane,
        room: &Room,
        share: &BufferPool,
        noted: &LinkNotes,
    ) -> Result<Incoming> {
        let Some(mut prelude) = self.bytes.array().await.map_err(explain)? else { return Ok(Incoming::End) };
        self.open(&mut prelude).await?;
        let prelude = Prelude::decode(&prelude)?;
        let Prelude { kind, header_bytes, payload_bytes, lead } = prelude;
        let class = match kind {
            Kind::Message(class) if Lane::of(class) == lane => class,
            Kind::Ping if lane == Lane::Control => return Ok(Incoming::Ping),
            Kind::Pong if lane == Lane::Control => return Ok(Incoming::Pong),
            Kind::Bye => return Ok(Incoming::Bye),
            stray => {
                return Err(format!("it sent a frame over the wrong connection ({stray:?}, {lane:?})").into());
            }
        };
        let mut header = self.record(header_bytes + prelude.checksum_bytes()).await?;
        let sums = header[header_bytes..].as_chunks().0.iter().map(|sum| u64::from_le_bytes(*sum)).collect();
        header.truncate(header_bytes);
        let checksums = Checksums::received(lead, sums);
        let payload = self.payload(payload_bytes, checksums, room, share, noted).await?;
        Ok(Incoming::Message(Message { class, header, payload }))
    }

    /// Reads a record of this length. For an empty record nothing is sent, not even a tag.
    async fn record(&mut self, bytes: usize) -> Result<Vec<u8>> {
        let mut record = self.bytes.fill(Vec::with_capacity(bytes), bytes).await.map_err(explain)?;
        if bytes > 0 {
            self.open(&mut record).await?;
        }
        Ok(record)
    }

    /// Reads the tag of a record, and opens the record.
    async fn open(&mut self, record: &mut [u8]) -> Result<()> {
        let tag: Option<Tag> = self.bytes.array().await.map_err(explain)?;
        let tag = tag.ok_or_else(|| explain(io::ErrorKind::UnexpectedEof.into()))?;
        Ok(self.records.open(record, tag)?)
    }

    // A control message is so small that it never waits for memory.
    async fn payload(
        &mut self,
        bytes: u64,
        checksums: Checksums,
        room: &Room,
        share: &BufferPool,
        LinkNotes { notes, number }: &LinkNotes,
    ) -> Result<Payload> {
        if bytes <= SMALL_PAYLOAD_BYTES {
            return Ok(Payload::with_checksums(self.record(bytes as usize).await?, checksums));
        }
        if bytes > room.pool.capacity_bytes() {
            let room = room.pool.capacity_bytes();
            return Err(
                format!("it sent a payload of {bytes} bytes to a node that has memory for {room}").into()
            );
        }
        let share = share.take(bytes).await;
        let arrival = room.arrivals.begin(bytes);
        let since = notes.moment();
        let memory = self.arrive(&arrival, bytes, &room.pool).await?;
        notes.did(("link in", *number), MESSAGE, since, || [("bytes", bytes)]);
        let mut buffer = room.pool.take_for(share).await;
        buffer.fill_memory(memory);
        buffer.set_checksums(checksums);
        Ok(buffer.slice(0..bytes))
    }

    /// Reads the records of a payload into memory, in the permitted steps.
    async fn arrive(&mut self, arrival: &Arrival<'_>, bytes: u64, pool: &BufferPool) -> Result<Vec<u8>> {
        let mut allowed = arrival.allow_more().await;
        // Reused memory already has all its pages. New memory gets pages only when data arrive.
        let mut memory = if allowed == bytes {
            pool.spare_memory(bytes as usize)
        } else {
            Vec::with_capacity(bytes as usize)
        };
        while (memory.len() as u64) < bytes {
            if memory.len() as u64 == allowed {
                allowed = arrival.allow_more().await;
            }
            let read =
                unless(arrival.gives_way(), self.arrive_some(memory, allowed as usize, bytes as usize)).await;
            memory = read.ok_or(STALLED)??;
            arrival.has_come(memory.len() as u64);
        }
        Ok(memory)
    }

    /// Reads more of a payload of `bytes` bytes into `memory`, up to `allowed` bytes in total. Opens the record if it
    /// is now complete.
    async fn arrive_some(&mut self, memory: Vec<u8>, allowed: usize, bytes: usize) -> Result<Vec<u8>> {
        let begin = memory.len() / RECORD_BYTES_MAX * RECORD_BYTES_MAX;
        let end = bytes.min(begin + RECORD_BYTES_MAX);
        let mut memory = self.bytes.fill_some(memory, end.min(allowed)).await.map_err(explain)?;
        if memory.len() == end {
            self.open(&mut memory[begin..]).await?;
        }
        Ok(memory)
    }
}

/// Reason of the end of a connection whose message was evicted.
const STALLED: &str = "it stopped in the middle of a message, and other connections needed the memory";

fn explain(error: io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the connection ended in the middle of a message".to_owned(),
        _ => error.to_string(),
    }
}
