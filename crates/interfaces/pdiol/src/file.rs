//! File with a buffer: the page being read, or the page being filled.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::mem;

use node::{Advice, Error, ErrorKind, Handle, LentPage, Result, Stat, undisturbed};

use crate::writes::Writes;

/// Limit of bytes in ready pages that a handle takes together: large, so that transfers between threads are cheap;
/// bounded, because the page cache cannot use these pages until the handle returns them.
const AT_HAND_BYTES_MAX: u64 = 1 << 20;

/// Handle of a striped file with a position and a buffer, usable from any thread.
///
/// Each handle has a separate buffer of a page, as `BufReader` and `BufWriter` do. This handle sees its writes at once.
/// Other handles can see them after [`flush`](Write::flush), [`seek`](Seek::seek) elsewhere, or [`close`](Self::close)
/// of this handle. A handle sees data that other handles of its session have written after its own
/// [`flush`](Write::flush), any [`seek`](Seek::seek), or [`stat`](Self::stat). Only after `stat` does it see data of
/// other sessions, too.
///
/// One call that appends is one append: its data are contiguous in the file.
///
/// Dropping the handle closes it too, but then failed writes are not reported.
pub struct File {
    handle: Handle,
    is_closed: bool,
    /// Offset of the next byte to read or write.
    position: u64,
    buffer: Buffer,
    writes: Writes,
    /// Memory for the next write buffer, kept when a write cache has copied the data of the previous one.
    spare: Vec<u8>,
}

/// Buffer of a file.
enum Buffer {
    Empty,
    /// Bytes to read, in non-empty pages. The first page's `used` bytes have been read; the next byte is at `position`.
    Reading {
        pages: VecDeque<LentPage>,
        used: usize,
    },
    /// Written bytes that the node thread has not received: the first `filled` bytes, up to `position`. The buffer has
    /// space for `capacity` bytes, up to the end of the page; only an append may exceed this.
    Writing {
        bytes: Vec<u8>,
        filled: usize,
        capacity: usize,
    },
}

impl From<Handle> for File {
    /// Returns a buffer over this handle, at the beginning of the file.
    fn from(handle: Handle) -> Self {
        File {
            handle,
            is_closed: false,
            position: 0,
            buffer: Buffer::Empty,
            writes: Writes::default(),
            spare: Vec::new(),
        }
    }
}

impl File {
    /// Returns the name under which the file was opened.
    pub fn name(&self) -> &str {
        self.handle.name()
    }

    /// Returns the offset of the next byte to read or write.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns the file's metadata, including all writes of this handle. Later reads return data of other sessions.
    pub fn stat(&mut self) -> Result<Stat> {
        self.settle();
        self.buffer = Buffer::Empty;
        self.handle.stat()
    }

    /// Truncates the file to `bytes`, or extends it with zeros. The position is unchanged.
    pub fn set_len(&mut self, bytes: u64) -> Result<()> {
        self.check_writes()?;
        self.settle();
        self.buffer = Buffer::Empty;
        self.handle.set_len(bytes)
    }

    /// Gives advice about the future use of the file.
    pub fn hint(&mut self, advice: Advice) -> Result<()> {
        self.settle();
        self.handle.advise(advice)
    }

    /// Flushes all written data to stable storage, and reports any write that failed since the last report.
    pub fn sync(&mut self) -> Result<()> {
        self.settle();
        self.buffer = Buffer::Empty;
        let flushed = self.handle.flush();
        self.writes.take_failure().and(flushed)
    }

    /// Fails if the restart of an agent lost data of this file, or if another write has failed since the last report.
    /// Lost data are read as zeros. A temporary file is never flushed; call this before relying on data read from it.
    pub fn check_losses(&mut self) -> Result<()> {
        self.settle();
        let checked = self.handle.check_losses();
        self.writes.take_failure().and(checked)
    }

    /// Closes the file, and reports any write that failed since the last report. Clients that open the file later read
    /// all written data. The data may not be on stable storage: use [`sync`](Self::sync) for that.
    pub fn close(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        if mem::replace(&mut self.is_closed, true) {
            return Ok(());
        }
        self.settle();
        self.buffer = Buffer::Empty;
        let closed = self.handle.close();
        self.writes.take_failure().and(closed)
    }

    /// Returns buffered bytes to read, which need no request. [`consume`](BufRead::consume) removes bytes from the
    /// buffer.
    pub fn at_hand(&self) -> &[u8] {
        match &self.buffer {
            Buffer::Reading { pages, used } => pages.front().map_or(&[], |page| &page.as_slice()[*used..]),
            _ => &[],
        }
    }

    /// Returns buffered bytes at the position; no bytes only at the end of the file. `bytes` is the number of bytes
    /// that the caller will read: if nothing is buffered, all their pages are requested. [`consume`](BufRead::consume)
    /// removes bytes from the buffer.
    ///
    /// Without an adaptive window, the window determines the requested pages.
    pub fn want(&mut self, bytes: usize) -> Result<&[u8]> {
        self.fetch(bytes)?;
        Ok(self.at_hand())
    }

    /// Returns buffer space for bytes to write without a request. [`commit`](Self::commit) marks them as written.
    ///
    /// The space is empty except after a write that did not fill its page.
    pub fn room(&mut self) -> &mut [u8] {
        let room = self.room_bytes();
        match &mut self.buffer {
            Buffer::Writing { bytes, filled, .. } if *filled > 0 => {
                let end = *filled + room;
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                &mut bytes[*filled..end]
            }
            _ => &mut [],
        }
    }

    /// Writes the first `bytes` bytes of the [`room`](Self::room).
    ///
    /// # Panics
    /// If `bytes` exceeds the length of the room.
    pub fn commit(&mut self, bytes: usize) {
        assert!(bytes <= self.room_bytes(), "{bytes} bytes exceed a room of {} bytes", self.room_bytes());
        if let (Buffer::Writing { filled, .. }, true) = (&mut self.buffer, bytes > 0) {
            *filled += bytes;
            self.position += bytes as u64;
        }
    }

    /// Returns the free space in bytes of the page being filled.
    fn room_bytes(&self) -> usize {
        match &self.buffer {
            Buffer::Writing { filled, capacity, .. } => capacity.saturating_sub(*filled),
            _ => 0,
        }
    }

    /// Moves buffered bytes to `into`, up to its length, and returns their number.
    fn take(&mut self, into: &mut [u8]) -> usize {
        let bytes = self.at_hand().len().min(into.len());
        into[..bytes].copy_from_slice(&self.at_hand()[..bytes]);
        self.consume(bytes);
        bytes
    }

    /// Fills the buffer, for a caller that wants `wanted` bytes. The buffer stays empty only at the end of the file.
    fn fetch(&mut self, wanted: usize) -> Result<()> {
        if !self.at_hand().is_empty() {
            return Ok(());
        }
        self.settle();
        self.buffer = Buffer::Empty;
        let reading = self.handle.begin_read_ready(self.position, wanted as u64, AT_HAND_BYTES_MAX);
        self.buffer = Buffer::Reading { pages: reading.wait()?.into(), used: 0 };
        Ok(())
    }

    /// Writes the bytes that fit into the page at the position. In append mode, writes all bytes.
    fn put(&mut self, from: &[u8]) -> Result<usize> {
        self.check_writes()?;
        if !matches!(self.buffer, Buffer::Writing { .. }) {
            if self.handle.options().appends() {
                self.position = self.handle.known_bytes()?;
            }
            self.begin_page()?;
        } else if self.room_bytes() == 0 {
            self.hand_over();
            // Report a failure as soon as it is known.
            self.writes.note_those_that_ended();
            self.writes.take_failure()?;
            self.begin_page()?;
        }
        let appends = self.handle.options().appends();
        let count = if appends { from.len() } else { self.room_bytes().min(from.len()) };
        if let Buffer::Writing { bytes, filled, .. } = &mut self.buffer {
            // `room` may have extended the buffer before.
            let (into_room, beyond) = from[..count].split_at(count.min(bytes.len() - *filled));
            bytes[*filled..*filled + into_room.len()].copy_from_slice(into_room);
            bytes.extend_from_slice(beyond);
            *filled += count;
            self.position += count as u64;
        }
        Ok(count)
    }

    fn begin_page(&mut self) -> Result<()> {
        self.empty_buffer();
        if self.position >= layout::FILE_BYTES_MAX {
            let why = format!("the limit of a file is {} bytes", layout::FILE_BYTES_MAX);
            return Err(Error::new(ErrorKind::TooLarge, self.name(), why));
        }
        let page_bytes = self.handle.page_bytes();
        let capacity = (page_bytes - self.position % page_bytes) as usize;
        let mut bytes = mem::take(&mut self.spare);
        bytes.reserve_exact(capacity.saturating_sub(bytes.len()));
        self.buffer = Buffer::Writing { bytes, filled: 0, capacity };
        Ok(())
    }

    /// Passes written bytes to the node thread. [`Writes`] records the outcome.
    fn hand_over(&mut self) {
        if !matches!(self.buffer, Buffer::Writing { .. }) {
            return;
        }
        let Buffer::Writing { mut bytes, filled, .. } = mem::replace(&mut self.buffer, Buffer::Empty) else {
            unreachable!("just seen")
        };
        if filled == 0 {
            return;
        }
        if self.handle.caches_writes() && !self.handle.options().appends() {
            let written = self.handle.write_from(self.position - filled as u64, &bytes[..filled]);
            self.spare = bytes;
            return written.unwrap_or_else(|error| self.writes.note(error));
        }
        bytes.truncate(filled);
        if self.handle.options().appends() {
            // Other handles may have appended before, so the offset is known only after the append.
            match self.handle.append(bytes) {
                Ok(offset) => self.position = offset + filled as u64,
                Err(error) => self.writes.note(error),
            }
            return;
        }
        self.writes.begin(&self.handle, self.position - filled as u64, bytes);
    }

    /// Empties the buffer: passes written bytes to the node thread, and returns lent pages.
    fn empty_buffer(&mut self) {
        self.hand_over();
        self.buffer = Buffer::Empty;
    }

    /// Passes written bytes to the node thread, and waits until the page cache has all of them.
    fn settle(&mut self) {
        self.hand_over();
        self.writes.settle();
    }

    fn check_writes(&self) -> Result<()> {
        if self.handle.options().writes() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::BadMode, self.name(), "the file is not open for writing"))
    }

    /// Returns the offset from the start of the file for `to`.
    fn target(&mut self, to: SeekFrom) -> Result<u64> {
        let target = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.stat()?.bytes.checked_add_signed(by),
        };
        target.filter(|&offset| offset <= layout::FILE_BYTES_MAX).ok_or_else(|| {
            let place = match to {
                SeekFrom::Start(offset) => format!("offset {offset}"),
                SeekFrom::Current(by) => format!("{by:+} bytes from offset {}", self.position),
                SeekFrom::End(by) => format!("{by:+} bytes from the end"),
            };
            let why = format!("{place} is before the start of the file or beyond the largest possible file");
            Error::new(ErrorKind::Invalid, self.name(), why)
        })
    }
}

impl Read for File {
    fn read(&mut self, mut into: &mut [u8]) -> io::Result<usize> {
        let whole = into.len();
        if whole > 0 {
            self.fetch(whole)?;
        }
        // Return only buffered bytes, because fetching more may block.
        while !into.is_empty() {
            let taken = self.take(into);
            if taken == 0 {
                break;
            }
            into = &mut into[taken..];
        }
        Ok(whole - into.len())
    }
}

impl BufRead for File {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.want(0)?)
    }

    fn consume(&mut self, bytes: usize) {
        let Buffer::Reading { pages, used } = &mut self.buffer else { return };
        let Some(page) = pages.front() else { return };
        let bytes = bytes.min(page.as_slice().len() - *used);
        *used += bytes;
        self.position += bytes as u64;
        if *used == page.as_slice().len() {
            pages.pop_front();
            *used = 0;
        }
    }
}

impl Write for File {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        Ok(self.put(from)?)
    }

    /// Flushes like [`sync`](File::sync).
    fn flush(&mut self) -> io::Result<()> {
        Ok(self.sync()?)
    }
}

impl Seek for File {
    /// Moves the position. Always discards bytes buffered for reading.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = self.target(to)?;
        if target != self.position || !matches!(self.buffer, Buffer::Writing { .. }) {
            self.empty_buffer();
            self.position = target;
        }
        Ok(target)
    }

    fn stream_position(&mut self) -> io::Result<u64> {
        Ok(self.position)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // Ignore the outcome: a program that needs it calls `close`.
        undisturbed(|| drop(self.end()));
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File")
            .field("name", &self.name())
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
