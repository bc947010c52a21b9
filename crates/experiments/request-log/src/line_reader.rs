//! Reads lines of bounded length.

use std::io::{BufRead, Read};

use crate::error::{Error, Place};

/// Maximum length of a line in bytes: a file name of 4096 bytes, all of them escaped, and numbers.
pub(crate) const LINE_BYTES_MAX: usize = 16 << 10;

/// Maximum length in bytes of a line in a log with calls: a selection of the maximum size for a message, with two
/// numbers for each of its nodes.
pub(crate) const CALL_BYTES_MAX: usize = 16 << 20;

/// Reader of lines that reuses one buffer.
pub(crate) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    number: u64,
    bytes_max: usize,
    is_ended: bool,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Lines { input, line: Vec::new(), number: 0, bytes_max: LINE_BYTES_MAX, is_ended: false }
    }

    /// Returns the number of the line that was read last, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Raises the maximum length of a line to `bytes` bytes.
    pub(crate) fn allow(&mut self, bytes: usize) {
        self.bytes_max = bytes;
    }

    /// Returns the line that was read last.
    pub(crate) fn last(&self) -> &str {
        std::str::from_utf8(&self.line).unwrap_or_default()
    }

    /// True if the line that was read last ended with a newline.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Fails if the line that was read last has no newline. Such a line may be truncated and still parse, with a
    /// shorter number.
    pub(crate) fn expect_end(&self) -> Result<(), Error> {
        if self.is_ended {
            return Ok(());
        }
        let why = "it has no newline, so the log may be truncated here: end the line with a newline, or \
                   remove it";
        Err(Error::new(Place::Line(self.number), why))
    }

    /// Reads the next line. Returns it without its newline, or `None` at the end of the log.
    pub(crate) fn next(&mut self) -> Result<Option<&str>, Error> {
        self.line.clear();
        self.number += 1;
        let most = self.bytes_max as u64 + 1;
        let read = self.input.by_ref().take(most).read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| Error::reading(self.number, &error))?;
        if read == 0 {
            return Ok(None);
        }
        if self.line.len() > self.bytes_max {
            let why = format!("it is longer than {} bytes", self.bytes_max);
            return Err(Error::new(Place::Line(self.number), why));
        }
        self.is_ended = self.line.ends_with(b"\n");
        while self.line.last().is_some_and(|last| matches!(last, b'\n' | b'\r')) {
            self.line.pop();
        }
        match std::str::from_utf8(&self.line) {
            Ok(line) => Ok(Some(line)),
            Err(error) => {
                let place = Place::Column(self.number, error.valid_up_to() + 1);
                Err(Error::new(place, "it is not UTF-8 text"))
            }
        }
    }
}
