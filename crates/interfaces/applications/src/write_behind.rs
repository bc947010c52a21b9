//! Writes behind: a thread writes full buffers while the program fills other ones.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

/// Bytes per buffer.
const BUFFER_BYTES: usize = 512 << 10;

/// Maximum number of full buffers that wait.
const WAITING: usize = 2;

/// Writer whose bytes a thread writes to the output.
pub(crate) struct WriteBehind<'scope, W> {
    buffer: Vec<u8>,
    full: Option<SyncSender<Vec<u8>>>,
    thread: Option<ScopedJoinHandle<'scope, io::Result<W>>>,
}

impl<'scope, W: Write + Send + 'scope> WriteBehind<'scope, W> {
    /// Starts a thread that writes to `output`.
    pub(crate) fn new<'env>(scope: &'scope Scope<'scope, 'env>, output: W) -> Self {
        let (full, buffers) = sync_channel(WAITING);
        let thread = scope.spawn(move || write_all(output, &buffers));
        WriteBehind { buffer: Vec::with_capacity(BUFFER_BYTES), full: Some(full), thread: Some(thread) }
    }

    /// Waits until everything is written, and returns the output.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.send()?;
        self.full = None;
        self.joined()
    }

    fn send(&mut self) -> io::Result<()> {
        let buffer = std::mem::replace(&mut self.buffer, Vec::with_capacity(BUFFER_BYTES));
        let sent = self.full.as_ref().map(|full| full.send(buffer));
        if matches!(sent, Some(Ok(()))) {
            return Ok(());
        }
        // The thread stopped receiving because a write failed.
        self.joined().and_then(|_| Err(io::ErrorKind::BrokenPipe.into()))
    }

    fn joined(&mut self) -> io::Result<W> {
        let joined = self.thread.take().map(ScopedJoinHandle::join);
        match joined {
            Some(outcome) => outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            None => Err(io::Error::other("an earlier write has failed")),
        }
    }
}

impl<'scope, W: Write + Send + 'scope> Write for WriteBehind<'scope, W> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        if self.buffer.len() == BUFFER_BYTES {
            self.send()?;
        }
        let count = from.len().min(BUFFER_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&from[..count]);
        Ok(count)
    }

    /// Does nothing: [`finish`](Self::finish) waits.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_all<W: Write>(mut output: W, buffers: &Receiver<Vec<u8>>) -> io::Result<W> {
    for buffer in buffers {
        output.write_all(&buffer)?;
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_written_in_order() {
        let bytes: Vec<u8> = (0..3_000_001_u32).map(|index| (index / 7) as u8).collect();
        std::thread::scope(|scope| {
            let mut behind = WriteBehind::new(scope, Vec::new());
            for part in bytes.chunks(1009) {
                behind.write_all(part).expect("memory");
            }
            assert!(behind.finish().expect("memory") == bytes);
            assert_eq!(WriteBehind::new(scope, Vec::new()).finish().expect("nothing"), [0; 0]);
        });
    }

    #[test]
    fn a_failed_write_is_reported() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::other("full"))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        std::thread::scope(|scope| {
            let mut behind = WriteBehind::new(scope, Full);
            let error = behind.write_all(&vec![0; 10 << 20]).expect_err("it is full");
            assert_eq!(error.to_string(), "full");
            let mut few = WriteBehind::new(scope, Full);
            few.write_all(b"few").expect("it is kept");
            assert_eq!(few.finish().err().expect("it is full").to_string(), "full");
            let mut late = WriteBehind::new(scope, Full);
            late.write_all(&vec![0; BUFFER_BYTES + 1]).expect("the first buffer is handed over");
            while late.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
                std::thread::yield_now();
            }
            assert_eq!(late.finish().err().expect("it is full").to_string(), "full");
        });
    }
}
