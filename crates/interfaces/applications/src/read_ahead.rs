//! Reads ahead: a thread fills buffers while the program uses earlier ones.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

/// Bytes per buffer.
const BUFFER_BYTES: usize = 512 << 10;

/// Maximum number of full buffers that wait. In addition, one buffer is being filled and one is in use.
const WAITING: usize = 2;

/// Reader of an input that a thread reads ahead.
pub(crate) struct ReadAhead<'scope> {
    buffers: Option<Receiver<io::Result<Vec<u8>>>>,
    buffer: Vec<u8>,
    used: usize,
    thread: Option<ScopedJoinHandle<'scope, ()>>,
}

impl<'scope> ReadAhead<'scope> {
    /// Starts a thread that reads `input` until it ends or the reader is dropped.
    pub(crate) fn new<'env>(scope: &'scope Scope<'scope, 'env>, input: impl Read + Send + 'scope) -> Self {
        let (full, buffers) = sync_channel(WAITING);
        let thread = scope.spawn(move || read_all(input, &full));
        ReadAhead { buffers: Some(buffers), buffer: Vec::new(), used: 0, thread: Some(thread) }
    }

    fn next_buffer(&mut self) -> io::Result<()> {
        (self.buffer, self.used) = (Vec::new(), 0);
        let next = self.buffers.as_ref().and_then(|buffers| buffers.recv().ok());
        self.buffer = next.transpose()?.unwrap_or_default();
        Ok(())
    }
}

impl Read for ReadAhead<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.used == self.buffer.len() {
            self.next_buffer()?;
        }
        let count = into.len().min(self.buffer.len() - self.used);
        into[..count].copy_from_slice(&self.buffer[self.used..self.used + count]);
        self.used += count;
        Ok(count)
    }
}

impl Drop for ReadAhead<'_> {
    fn drop(&mut self) {
        self.buffers = None;
        if let Some(thread) = self.thread.take()
            && let Err(panic) = thread.join()
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

fn read_all(mut input: impl Read, full: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut buffer = vec![0; BUFFER_BYTES];
        let filled = fill(&mut input, &mut buffer);
        let is_last = !matches!(filled, Ok(bytes) if bytes == BUFFER_BYTES);
        let filled = filled.map(|bytes| {
            buffer.truncate(bytes);
            buffer
        });
        // An error means that the reader has been dropped.
        if full.send(filled).is_err() || is_last {
            return;
        }
    }
}

/// Reads until `into` is full or the input ends. Returns the number of bytes read.
pub(crate) fn fill(input: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match input.read(&mut into[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_return_all_bytes_in_order_and_may_stop_early() {
        let bytes: Vec<u8> = (0..3_000_001_u32).map(|index| (index / 7) as u8).collect();
        std::thread::scope(|scope| {
            let mut read = Vec::new();
            ReadAhead::new(scope, &bytes[..]).read_to_end(&mut read).expect("memory");
            assert!(read == bytes);
            let mut few = [0; 10];
            ReadAhead::new(scope, io::repeat(7)).read_exact(&mut few).expect("endless");
            assert_eq!(few, [7; 10]);
            assert_eq!(ReadAhead::new(scope, io::empty()).read(&mut few).expect("empty"), 0);
        });
    }

    #[test]
    fn an_error_is_returned_after_the_data_before_it() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("broken"))
            }
        }
        let whole = vec![1; BUFFER_BYTES];
        std::thread::scope(|scope| {
            let mut ahead = ReadAhead::new(scope, (&whole[..]).chain(Broken));
            let mut read = vec![0; BUFFER_BYTES];
            ahead.read_exact(&mut read).expect("it was read");
            assert_eq!(ahead.read(&mut read).expect_err("broken").to_string(), "broken");
        });
    }
}
