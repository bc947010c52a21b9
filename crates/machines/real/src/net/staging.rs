//! Reads bytes of a TCP connection ahead, so that one system call reads several short messages.

use std::io;

use compio::BufResult;
use compio::buf::{IntoInner, IoBuf};
use compio::io::AsyncRead;
use compio::net::TcpStream;

/// Number of bytes to read ahead. This suffices for a short message, and often for several. A larger number would not
/// be faster, because the beginning of a long payload must be copied.
const STAGING_BYTES: usize = 4096 + HEADS_BYTES;

/// Number of bytes for the prelude, the header and the tags of a message with a short payload.
const HEADS_BYTES: usize = 320;

/// Reading side of a TCP connection.
pub(crate) struct Staging {
    stream: TcpStream,
    /// Staging memory. `bytes[consumed..]` have been read from the stream but not consumed.
    bytes: Vec<u8>,
    consumed: usize,
}

impl Staging {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Staging { stream, bytes: Vec::with_capacity(STAGING_BYTES), consumed: 0 }
    }

    /// Returns the next `N` bytes, or `None` if the stream ends before them. `N` is small.
    pub(crate) async fn array<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        if self.bytes.len() == self.consumed {
            self.stage().await?;
            if self.bytes.is_empty() {
                return Ok(None);
            }
        }
        let bytes = self.fill(Vec::with_capacity(N), N).await?;
        Ok(Some(bytes.try_into().expect("filled to its length")))
    }

    /// Appends the next bytes to `memory` until it has `bytes` bytes.
    pub(crate) async fn fill(&mut self, mut memory: Vec<u8>, bytes: usize) -> io::Result<Vec<u8>> {
        while memory.len() < bytes {
            memory = self.fill_some(memory, bytes).await?;
        }
        Ok(memory)
    }

    /// Appends some of the next bytes to `memory`, up to a length of `bytes` bytes. The same system call stages the
    /// bytes after them.
    pub(crate) async fn fill_some(&mut self, mut memory: Vec<u8>, bytes: usize) -> io::Result<Vec<u8>> {
        let staged = &self.bytes[self.consumed..];
        if !staged.is_empty() {
            let staged = &staged[..staged.len().min(bytes - memory.len())];
            memory.extend_from_slice(staged);
            self.consumed += staged.len();
            return Ok(memory);
        }
        let read = memory.len();
        let buffers = (memory.slice(read..bytes), (self.empty(),));
        let BufResult(result, (slice, (staging,))) = self.stream.read_vectored(buffers).await;
        self.bytes = staging;
        if result? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(slice.into_inner())
    }

    /// Reads and discards until the other side has closed or the connection fails.
    pub(crate) async fn discard(&mut self) {
        while self.stage().await.is_ok() && !self.bytes.is_empty() {}
    }

    async fn stage(&mut self) -> io::Result<()> {
        let staging = self.empty();
        let BufResult(result, staging) = self.stream.read(staging).await;
        self.bytes = staging;
        result.map(drop)
    }

    /// Takes the staging memory. All its bytes must have been consumed.
    fn empty(&mut self) -> Vec<u8> {
        let mut staging = std::mem::take(&mut self.bytes);
        self.consumed = 0;
        staging.clear();
        // A cancelled read may have lost the memory.
        staging.reserve(STAGING_BYTES);
        staging
    }
}
