//! The lines of a log, of bounded length.

use std::io::{BufRead, Read};

use crate::error::{Error, Place};

/// The longest line, in bytes: a file name of 4096 bytes, each of them escaped, and numbers.
pub(crate) const LINE_BYTES_MAX: usize = 16 << 10;

/// Line after line, each in the same memory.
pub(crate) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Lines { input, line: Vec::new(), number: 0 }
    }

    /// The number of the line that was read last, from 1 on.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The next line without its end; none at the end of the log.
    pub(crate) fn next(&mut self) -> Result<Option<&str>, Error> {
        self.line.clear();
        self.number += 1;
        let most = LINE_BYTES_MAX as u64 + 1;
        let read = self.input.by_ref().take(most).read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| Error::reading(self.number, &error))?;
        if read == 0 {
            return Ok(None);
        }
        if self.line.len() > LINE_BYTES_MAX {
            let why = format!("it is longer than {LINE_BYTES_MAX} bytes");
            return Err(Error::new(Place::Line(self.number), why));
        }
        while self.line.last().is_some_and(|last| matches!(last, b'\n' | b'\r')) {
            self.line.pop();
        }
        match std::str::from_utf8(&self.line) {
            Ok(line) => Ok(Some(line)),
            Err(error) => {
                let place = Place::Column(self.number, error.valid_up_to() + 1);
                Err(Error::new(place, "this is no text (UTF-8)"))
            }
        }
    }
}
