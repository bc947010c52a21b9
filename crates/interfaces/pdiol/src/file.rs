//! A buffer over a file: the page at hand, and the one being filled.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::mem;

use node::{Advice, Error, ErrorKind, Handle, LentPage, Result, Stat, undisturbed};

use crate::writes::Writes;

/// Maximum bytes of ready pages taken together: many, so that handing over is cheap; bounded, because a handle
/// withholds them from the page cache.
const AT_HAND_BYTES_MAX: u64 = 1 << 20;

/// A handle on a striped file with a position and a buffer, usable from any thread.
///
/// It reads and writes through a page of its own, as `BufReader` and `BufWriter` do: what is written is in the file for
/// other handles after [`flush`](Write::flush), [`seek`](Seek::seek) elsewhere, or [`close`](Self::close). Reading what
/// this handle has written needs none of them. A handle reads what others of its session have written after
/// [`flush`](Write::flush), any [`seek`](Seek::seek), or [`stat`](Self::stat); the last is the one after which it reads
/// what other sessions have written, too.
///
/// What one call appends is one append: no others' bytes are between.
///
/// Dropping the handle closes it too, but then failed writes are not reported.
pub struct File {
    handle: Handle,
    is_closed: bool,
    /// Offset of the next byte to read or write.
    position: u64,
    buffer: Buffer,
    writes: Writes,
    /// Memory for the next buffer of writes, if a write cache has copied what was in it.
    spare: Vec<u8>,
}

/// The buffer of a file.
enum Buffer {
    Empty,
    /// Bytes to read, in pages that are not empty. `used` of the first have been read; the next one is at `position`.
    Reading {
        pages: VecDeque<LentPage>,
        used: usize,
    },
    /// Bytes written that the node thread has not got: the first `filled` ones, up to `position`. There is room for
    /// `capacity`, up to the end of the page; only what one call appends may go beyond.
    Writing {
        bytes: Vec<u8>,
        filled: usize,
        capacity: usize,
    },
}

impl From<Handle> for File {
    /// A buffer over this handle, at the beginning of the file.
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
    /// The name under which the file was opened.
    pub fn name(&self) -> &str {
        self.handle.name()
    }

    /// Offset of the next byte to read or write.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The file's metadata, including all writes of this handle. What others have written is read from now on.
    pub fn stat(&mut self) -> Result<Stat> {
        self.settle();
        self.buffer = Buffer::Empty;
        self.handle.stat()
    }

    /// Cuts the file to `bytes`, or extends it to them with zeros. The position stays.
    pub fn set_len(&mut self, bytes: u64) -> Result<()> {
        self.check_writes()?;
        self.settle();
        self.buffer = Buffer::Empty;
        self.handle.set_len(bytes)
    }

    /// Says how the file is going to be used.
    pub fn hint(&mut self, advice: Advice) -> Result<()> {
        self.settle();
        self.handle.advise(advice)
    }

    /// Flushes everything written to the disks, and reports any write that failed since the last report.
    pub fn sync(&mut self) -> Result<()> {
        self.settle();
        self.buffer = Buffer::Empty;
        let flushed = self.handle.flush();
        self.writes.take_failure().and(flushed)
    }

    /// Reports what agents have lost that were restarted since it was written, or any other write that failed since
    /// the last report: what is missing is read as zeros. For a temporary file, which nobody flushes, before what was
    /// read of it counts.
    pub fn check_losses(&mut self) -> Result<()> {
        self.settle();
        let checked = self.handle.check_losses();
        self.writes.take_failure().and(checked)
    }

    /// Closes the file, and reports any write that failed since the last report. Clients that open the file later read
    /// all that was written. It need not be on the disks: [`sync`](Self::sync) brings it there.
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

    /// Buffered bytes to read, which need no request. [`consume`](BufRead::consume) takes them.
    pub fn at_hand(&self) -> &[u8] {
        match &self.buffer {
            Buffer::Reading { pages, used } => pages.front().map_or(&[], |page| &page.as_slice()[*used..]),
            _ => &[],
        }
    }

    /// Returns buffered bytes at the position, none only at the end of the file. `bytes` is how much the caller
    /// will read: if nothing is buffered, all of those pages are requested. [`consume`](BufRead::consume) takes the
    /// bytes returned.
    ///
    /// Without an adaptive window, the pages requested are those of the window.
    pub fn want(&mut self, bytes: usize) -> Result<&[u8]> {
        self.fetch(bytes)?;
        Ok(self.at_hand())
    }

    /// Buffer space for bytes to write without a request. [`commit`](Self::commit) takes the bytes put there.
    ///
    /// There is room after a write that did not fill its page, and not otherwise.
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
    /// If `bytes` is more than the room.
    pub fn commit(&mut self, bytes: usize) {
        assert!(bytes <= self.room_bytes(), "{bytes} bytes of a room of {}", self.room_bytes());
        if let (Buffer::Writing { filled, .. }, true) = (&mut self.buffer, bytes > 0) {
            *filled += bytes;
            self.position += bytes as u64;
        }
    }

    /// How many bytes there is room for, while a page is being filled.
    fn room_bytes(&self) -> usize {
        match &self.buffer {
            Buffer::Writing { filled, capacity, .. } => capacity.saturating_sub(*filled),
            _ => 0,
        }
    }

    /// Copies what is at hand, as much as fits.
    fn take(&mut self, into: &mut [u8]) -> usize {
        let bytes = self.at_hand().len().min(into.len());
        into[..bytes].copy_from_slice(&self.at_hand()[..bytes]);
        self.consume(bytes);
        bytes
    }

    /// Fills the buffer, for a caller that wants `wanted` bytes; it stays empty only at the end of the file.
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

    /// Writes what fits into the page at the position; appends all.
    fn put(&mut self, from: &[u8]) -> Result<usize> {
        self.check_writes()?;
        if !matches!(self.buffer, Buffer::Writing { .. }) {
            if self.handle.options().appends() {
                self.position = self.handle.known_bytes()?;
            }
            self.begin_page()?;
        } else if self.room_bytes() == 0 {
            self.hand_over();
            // As soon as it is known.
            self.writes.note_those_that_ended();
            self.writes.take_failure()?;
            self.begin_page()?;
        }
        let appends = self.handle.options().appends();
        let count = if appends { from.len() } else { self.room_bytes().min(from.len()) };
        if let Buffer::Writing { bytes, filled, .. } = &mut self.buffer {
            // Some room may have been made before.
            let (into_room, beyond) = from[..count].split_at(count.min(bytes.len() - *filled));
            bytes[*filled..*filled + into_room.len()].copy_from_slice(into_room);
            bytes.extend_from_slice(beyond);
            *filled += count;
            self.position += count as u64;
        }
        Ok(count)
    }

    fn begin_page(&mut self) -> Result<()> {
        self.let_go();
        if self.position >= layout::FILE_BYTES_MAX {
            let why = format!("no file can have more than {} bytes", layout::FILE_BYTES_MAX);
            return Err(Error::new(ErrorKind::TooLarge, self.name(), why));
        }
        let page_bytes = self.handle.page_bytes();
        let capacity = (page_bytes - self.position % page_bytes) as usize;
        let mut bytes = mem::take(&mut self.spare);
        bytes.reserve_exact(capacity.saturating_sub(bytes.len()));
        self.buffer = Buffer::Writing { bytes, filled: 0, capacity };
        Ok(())
    }

    /// Gives the node thread what was written. What becomes of it, [`Writes`] knows.
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
            // Others may have appended before it.
            match self.handle.append(bytes) {
                Ok(offset) => self.position = offset + filled as u64,
                Err(error) => self.writes.note(error),
            }
            return;
        }
        self.writes.begin(&self.handle, self.position - filled as u64, bytes);
    }

    /// Empties the buffer: bytes written are handed over, pages lent are returned.
    fn let_go(&mut self) {
        self.hand_over();
        self.buffer = Buffer::Empty;
    }

    /// Hands over what was written, and waits until the page cache has all of it.
    fn settle(&mut self) {
        self.hand_over();
        self.writes.settle();
    }

    fn check_writes(&self) -> Result<()> {
        if self.handle.options().writes() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::BadMode, self.name(), "it is not open for writing"))
    }

    /// The offset that `to` stands for.
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
                SeekFrom::End(by) => format!("{by:+} bytes from its end"),
            };
            let why = format!("{place} is before its beginning or beyond any end");
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
        // All that is at hand, and no more: the rest may have to be waited for.
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

    /// The same as [`sync`](File::sync).
    fn flush(&mut self) -> io::Result<()> {
        Ok(self.sync()?)
    }
}

impl Seek for File {
    /// Gives up what is at hand to read, wherever it goes.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = self.target(to)?;
        if target != self.position || !matches!(self.buffer, Buffer::Writing { .. }) {
            self.let_go();
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
        // A program that wants the outcome calls `close`.
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
