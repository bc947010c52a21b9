//! Writing side of a lane: messages as frames, record by record.
//!
//! ```text
//! frame:   | prelude | header and checksums | payload, in records of up to 256 KiB |
//! ```
//!
//! The prelude and the header are one record each. Each record is followed by its tag; an empty part is not sent.
//! Records are copied into the memory for the next system call, and sealed in this memory.

use std::io;

use compio::BufResult;
use compio::buf::IoBuf;
use compio::io::{AsyncWrite, AsyncWriteExt};
use compio::net::TcpStream;

use super::frame::Prelude;
use super::outbox::Waiting;
use super::records::{RECORD_BYTES_MAX, RecordStream, TAG_BYTES};
use crate::bytes::ByteRun;

/// Number of bytes that are gathered for one system call.
const GATHERED_BYTES: usize = RECORD_BYTES_MAX;

/// Number of bytes for the tags of a short message.
const TAGS_BYTES: usize = 3 * TAG_BYTES;

/// Writes the frames of one lane.
pub(crate) struct Writer {
    stream: TcpStream,
    records: RecordStream,
    /// Sealed bytes that are not written yet.
    gathered: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(stream: TcpStream, records: RecordStream) -> Self {
        Writer { stream, records, gathered: Vec::new() }
    }

    /// Writes the rest of the handshake unchanged.
    pub(crate) async fn greet(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        self.gathered = bytes;
        self.flush().await
    }

    /// Writes `messages`, which have `bytes` bytes in total.
    pub(crate) async fn write(&mut self, messages: &[Waiting], bytes: u64) -> io::Result<()> {
        self.gathered.reserve((bytes as usize + messages.len() * TAGS_BYTES).min(2 * GATHERED_BYTES));
        for message in messages {
            self.prelude(message.prelude);
            if !message.head.is_empty() {
                self.record(|record| record.extend_from_slice(&message.head));
            }
            self.payload(&message.payload).await?;
        }
        self.flush().await?;
        // An idle lane must not hold memory.
        self.gathered = Vec::new();
        Ok(())
    }

    /// Writes the last frame of a lane, and closes it.
    pub(crate) async fn bye(mut self) {
        self.prelude(Prelude::BYE);
        // Ignore errors: the other side may have disconnected.
        let _ = self.flush().await;
        self.close().await;
    }

    /// Closes the lane.
    pub(crate) async fn close(mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Writes all gathered bytes.
    async fn flush(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let BufResult(written, gathered) = self.stream.write_all(std::mem::take(&mut self.gathered)).await;
        self.gathered = gathered;
        self.gathered.clear();
        written
    }

    fn prelude(&mut self, prelude: Prelude) {
        self.record(|record| record.extend_from_slice(&prelude.encode()));
    }

    /// Gathers a record; `put` appends its bytes.
    fn record(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        let begin = self.gathered.len();
        put(&mut self.gathered);
        let tag = self.records.seal(&mut self.gathered[begin..]);
        self.gathered.extend_from_slice(&tag);
    }

    async fn payload(&mut self, runs: &[ByteRun]) -> io::Result<()> {
        let mut runs = Cursor { runs, consumed: 0 };
        while !runs.is_at_end() {
            self.record(|record| runs.append(record, RECORD_BYTES_MAX));
            if self.gathered.len() >= GATHERED_BYTES {
                self.flush().await?;
            }
        }
        Ok(())
    }
}

/// Remaining bytes of some runs.
struct Cursor<'a> {
    runs: &'a [ByteRun],
    /// Number of consumed bytes of the first run.
    consumed: usize,
}

impl Cursor<'_> {
    fn is_at_end(&self) -> bool {
        self.runs.is_empty()
    }

    /// Appends the next bytes to `memory`, at most `bytes`.
    fn append(&mut self, memory: &mut Vec<u8>, mut bytes: usize) {
        while let Some((run, later)) = self.runs.split_first().filter(|_| bytes > 0) {
            let rest = &run.as_init()[self.consumed..];
            let here = &rest[..rest.len().min(bytes)];
            memory.extend_from_slice(here);
            bytes -= here.len();
            self.consumed += here.len();
            if here.len() == rest.len() {
                (self.runs, self.consumed) = (later, 0);
            }
        }
    }
}
