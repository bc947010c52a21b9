//! Open file with its C state: end of file, error, and the buffers for the inline functions of the header.

use std::io::{BufRead, Seek, SeekFrom, Write};

use pdiol::{Advice, Error, ErrorKind, File, OpenOptions, Result, Session, Stat};

use crate::front::Front;

/// The part of an open file that is not in the front.
pub(crate) struct Stream {
    name: String,
    /// Open file; `None` after it has been closed.
    file: Option<File>,
    /// True if a read has reached the end of the file, until the state is cleared.
    pub(crate) is_at_end: bool,
    /// True if an operation has failed since the last clear.
    pub(crate) has_failed: bool,
    shown: Shown,
}

/// Contents of the front, with the number of published bytes.
#[derive(Clone, Copy)]
enum Shown {
    Nothing,
    Bytes(usize),
    Room(usize),
}

impl Stream {
    /// Opens a file in one of the modes of `fopen`.
    pub(crate) fn open(session: &Session, path: &[u8], mode: &str) -> Result<Stream> {
        let options = options_of(&String::from_utf8_lossy(path), mode)?;
        let mut file = session.open_path(path, options)?;
        if mode.starts_with('a') && !mode.contains('+') {
            let end = file.stat()?.bytes;
            go_to(&mut file, SeekFrom::Start(end))?;
        }
        let name = file.name().to_owned();
        Ok(Stream { name, file: Some(file), is_at_end: false, has_failed: false, shown: Shown::Nothing })
    }

    /// Takes back the contents of the front, and records the bytes used by the header's functions.
    pub(crate) fn take_in(&mut self, front: &Front) {
        if let Some(file) = &mut self.file {
            match self.shown {
                Shown::Nothing => return,
                Shown::Bytes(bytes) => file.consume(bytes - front.bytes_left()),
                Shown::Room(bytes) => file.commit(bytes - front.room_left()),
            }
        }
        self.shown = Shown::Nothing;
        front.clear();
    }

    /// Publishes the buffered bytes for reading, or none after the end of the file was reached.
    pub(crate) fn show_bytes(&mut self, front: &Front) {
        if let Some(file) = self.file.as_ref().filter(|_| !self.is_at_end)
            && !file.at_hand().is_empty()
        {
            front.show_bytes(file.at_hand());
            self.shown = Shown::Bytes(file.at_hand().len());
        }
    }

    /// Publishes the free space of the write buffer.
    pub(crate) fn show_room(&mut self, front: &Front) {
        let Some(file) = &mut self.file else { return };
        let room = file.room();
        if !room.is_empty() {
            front.show_room(room);
            self.shown = Shown::Room(room.len());
        }
    }

    /// Returns true if the file has not been closed.
    pub(crate) fn is_open(&self) -> bool {
        self.file.is_some()
    }

    fn file(&mut self) -> Result<&mut File> {
        self.file.as_mut().ok_or_else(|| closed(&self.name))
    }

    /// Returns the next bytes for a caller that wants `wanted` bytes, or none at the end of the file. Records the end
    /// of the file or an error.
    pub(crate) fn fetch(&mut self, wanted: usize) -> Result<&[u8]> {
        if self.is_at_end {
            return Ok(&[]);
        }
        let Some(file) = &mut self.file else { return Err(closed(&self.name)) };
        match file.want(wanted) {
            Ok(bytes) => {
                self.is_at_end = bytes.is_empty();
                Ok(bytes)
            }
            Err(error) => {
                self.has_failed = true;
                Err(error)
            }
        }
    }

    /// Consumes bytes that were fetched.
    pub(crate) fn consume(&mut self, bytes: usize) {
        if let Some(file) = &mut self.file {
            file.consume(bytes);
        }
    }

    /// Writes some of `from`, at least one byte unless `from` is empty. Returns their number, and records an error.
    pub(crate) fn write(&mut self, from: &[u8]) -> Result<usize> {
        let written = self.file().and_then(|file| file.write(from).map_err(ours));
        self.noted(written)
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        let flushed = self.file().and_then(File::sync);
        self.noted(flushed)
    }

    pub(crate) fn seek(&mut self, to: SeekFrom) -> Result<()> {
        go_to(self.file()?, to)?;
        self.is_at_end = false;
        Ok(())
    }

    pub(crate) fn position(&mut self) -> Result<u64> {
        Ok(self.file()?.position())
    }

    pub(crate) fn stat(&mut self) -> Result<Stat> {
        self.file()?.stat()
    }

    pub(crate) fn set_len(&mut self, bytes: u64) -> Result<()> {
        self.file()?.set_len(bytes)
    }

    pub(crate) fn hint(&mut self, hint: Advice) -> Result<()> {
        self.file()?.hint(hint)
    }

    pub(crate) fn close(&mut self) -> Result<()> {
        self.file()?;
        self.file.take().map_or(Ok(()), File::close)
    }

    fn noted<T>(&mut self, outcome: Result<T>) -> Result<T> {
        self.has_failed |= outcome.is_err();
        outcome
    }
}

fn closed(name: &str) -> Error {
    Error::new(ErrorKind::Closed, name, "finalize_pdiol has closed the file")
}

fn go_to(file: &mut File, to: SeekFrom) -> Result<()> {
    file.seek(to).map(drop).map_err(ours)
}

/// Unwraps the error of this crate from a `std::io::Error`.
fn ours(error: std::io::Error) -> Error {
    error.downcast::<Error>().unwrap_or_else(|other| Error::new(ErrorKind::Io, "a file", other))
}

/// Parses a mode of `fopen`.
fn options_of(path: &str, mode: &str) -> Result<OpenOptions> {
    let wrong = |why: &str| {
        let error = Error::new(ErrorKind::Invalid, path, format!("mode {mode:?} {why}"));
        Err(error.with_remedy("Modes are r, w and a, followed by any of +, b and e, and x after w or a"))
    };
    let mut letters = mode.chars();
    let first = letters.next();
    let (mut plus, mut exclusive) = (false, false);
    for letter in letters {
        match letter {
            '+' => plus = true,
            'x' => exclusive = true,
            // Ignore these letters: files have no text mode, and no descriptor that a new program could inherit.
            'b' | 'e' => {}
            _ => return wrong("contains an invalid letter"),
        }
    }
    let new = OpenOptions::new().read(plus);
    match first {
        Some('r') if exclusive => wrong("creates no file, so x is invalid"),
        Some('r') => Ok(new.read(true).write(plus)),
        Some('w') if exclusive => Ok(new.write(true).create_new(true)),
        Some('w') => Ok(new.write(true).create(true).truncate(true)),
        Some('a') => Ok(new.append(true).create(true).create_new(exclusive)),
        _ => wrong("begins with an invalid letter"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_of_fopen_are_accepted_and_others_rejected() {
        for mode in [
            "r", "rb", "r+", "rb+", "r+b", "re", "w", "wb", "w+", "wx", "w+x", "wbx", "a", "a+", "ab+e",
            "ax", "a+x",
        ] {
            assert!(options_of("x", mode).is_ok(), "{mode}");
        }
        for mode in ["", "b", "+", "rw", "rx", "W", "r ", "ö"] {
            let error = options_of("x", mode).expect_err(mode);
            assert_eq!(error.kind(), ErrorKind::Invalid);
        }
    }
}
