//! An open file: the page at hand, and the one being filled.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fs::Advice;
use layout::Striping;

use crate::error::{Error, ErrorKind, Result};
use crate::lease::Lent;
use crate::node::{NodeThread, undisturbed};
use crate::settings::OpenOptions;
use crate::task::{Answer, Command, Line};

/// Maximum bytes of ready pages taken together: many, so that handing over is cheap; bounded, because a handle
/// withholds them from the page cache.
const AT_HAND_BYTES_MAX: u64 = 1 << 20;

/// The metadata of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its size in bytes.
    pub bytes: u64,
    /// Its block size in bytes, which is that of its pages.
    pub block_bytes: u64,
    /// How many stripes it has, each on another disk.
    pub stripes: u32,
}

impl Stat {
    pub(crate) fn of(bytes: u64, striping: Striping) -> Self {
        Stat { bytes, block_bytes: striping.block_bytes(), stripes: striping.stripe_count() }
    }
}

/// A handle on a striped file, usable from any thread.
///
/// It reads and writes through a page of its own, as `BufReader` and `BufWriter` do: what is written is in the file for
/// other handles after [`flush`](Write::flush), [`seek`](Seek::seek) elsewhere, or [`close`](Self::close). Reading what
/// this handle has written needs none of them.
///
/// Dropping the handle closes it too, but then failed writes are not reported.
pub struct File {
    name: String,
    options: OpenOptions,
    line: Line,
    /// Offset of the next byte to read or write.
    position: u64,
    hand: Hand,
    /// Keeps the node thread alive.
    _node: Arc<NodeThread>,
}

/// The buffer of a handle.
enum Hand {
    Nothing,
    /// Bytes to read, in pages that are not empty. `used` of the first have been read; the next one is at `position`.
    Reading {
        pages: VecDeque<Lent>,
        used: usize,
    },
    /// Bytes written that the node thread has not got: the first `filled` ones, up to `position`.
    Writing {
        bytes: Vec<u8>,
        filled: usize,
    },
}

impl File {
    pub(crate) fn new(node: Arc<NodeThread>, name: &str, options: OpenOptions, line: Line) -> Self {
        let name = name.to_owned();
        File { name, options, line, position: 0, hand: Hand::Nothing, _node: node }
    }

    /// The name under which the file was opened.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Offset of the next byte to read or write.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The file's metadata, including all writes of this handle.
    pub fn stat(&mut self) -> Result<Stat> {
        self.hand_over()?;
        match self.ask(Command::Stat)? {
            Answer::Stat(stat) => Ok(stat),
            _ => unreachable!("the answer to another question"),
        }
    }

    /// Cuts the file to `bytes`, or extends it to them with zeros. The position stays.
    pub fn set_len(&mut self, bytes: u64) -> Result<()> {
        self.check_writes()?;
        self.let_go()?;
        self.ask(Command::SetLen(bytes)).map(drop)
    }

    /// Says how the file is going to be used.
    pub fn hint(&mut self, advice: Advice) -> Result<()> {
        self.hand_over()?;
        self.ask(Command::Advise(advice)).map(drop)
    }

    /// Flushes everything written to the disks, and reports any write that failed since the last report.
    pub fn sync(&mut self) -> Result<()> {
        self.hand_over()?;
        self.ask(Command::Flush).map(drop)
    }

    /// Closes the file, and reports any write that failed since the last report.
    pub fn close(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let let_go = self.let_go();
        if self.line.commands.take().is_none() {
            // It has been closed already.
            return Ok(());
        }
        let_go.and(self.answer().map(drop))
    }

    /// Buffered bytes to read, which need no request. [`consume`](BufRead::consume) takes them.
    pub fn at_hand(&self) -> &[u8] {
        match &self.hand {
            Hand::Reading { pages, used } => pages.front().map_or(&[], |page| &page.as_slice()[*used..]),
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
        match &mut self.hand {
            Hand::Writing { bytes, filled } if *filled > 0 => {
                bytes.resize(*filled + room, 0);
                &mut bytes[*filled..]
            }
            _ => &mut [],
        }
    }

    /// Writes the first `bytes` bytes of the [`room`](Self::room).
    ///
    /// # Panics If `bytes` is more than the room.
    pub fn commit(&mut self, bytes: usize) {
        assert!(bytes <= self.room_bytes(), "{bytes} bytes of a room of {}", self.room_bytes());
        if let (Hand::Writing { filled, .. }, true) = (&mut self.hand, bytes > 0) {
            *filled += bytes;
            self.position += bytes as u64;
        }
    }

    /// Bytes from the position to the end of its page, while a page is being filled.
    fn room_bytes(&self) -> usize {
        let page_bytes = self.line.page_bytes;
        match &self.hand {
            // Full, and not handed over yet.
            Hand::Writing { filled, .. } if *filled > 0 && self.position.is_multiple_of(page_bytes) => 0,
            Hand::Writing { .. } => (page_bytes - self.position % page_bytes) as usize,
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

    /// Fills the buffer, for a caller who wants `wanted` bytes; it stays empty only at the end of the file.
    fn fetch(&mut self, wanted: usize) -> Result<()> {
        if !self.at_hand().is_empty() {
            return Ok(());
        }
        if !self.options.read {
            return Err(Error::new(ErrorKind::BadMode, &self.name, "it is not open for reading"));
        }
        self.let_go()?;
        let pages = (AT_HAND_BYTES_MAX / self.line.page_bytes).max(1) as usize;
        let read = Command::Read { offset: self.position, wanted: wanted as u64, pages };
        let Answer::Pages(pages) = self.ask(read)? else { unreachable!("the answer to another question") };
        self.hand = Hand::Reading { pages: pages.into(), used: 0 };
        Ok(())
    }

    /// Writes what fits into the page at the position.
    fn put(&mut self, from: &[u8]) -> Result<usize> {
        self.check_writes()?;
        if !matches!(self.hand, Hand::Writing { .. }) {
            if self.options.append {
                self.position = self.ask_size(Command::Size)?;
            }
            self.begin_page()?;
        } else if self.room_bytes() == 0 {
            self.hand_over()?;
            self.tell_failure()?;
            self.begin_page()?;
        }
        let count = self.room_bytes().min(from.len());
        if let Hand::Writing { bytes, filled } = &mut self.hand {
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
        self.let_go()?;
        if self.position >= layout::FILE_BYTES_MAX {
            let why = format!("no file can have more than {} bytes", layout::FILE_BYTES_MAX);
            return Err(Error::new(ErrorKind::TooLarge, &self.name, why));
        }
        let page_bytes = self.line.page_bytes;
        let capacity = (page_bytes - self.position % page_bytes) as usize;
        self.hand = Hand::Writing { bytes: Vec::with_capacity(capacity), filled: 0 };
        Ok(())
    }

    /// Gives the node thread what was written.
    fn hand_over(&mut self) -> Result<()> {
        if !matches!(self.hand, Hand::Writing { .. }) {
            return Ok(());
        }
        let Hand::Writing { mut bytes, filled } = mem::replace(&mut self.hand, Hand::Nothing) else {
            unreachable!("just seen")
        };
        if filled == 0 {
            return Ok(());
        }
        bytes.truncate(filled);
        if self.options.append {
            // Others may have appended before it.
            self.position = self.ask_size(Command::Append(bytes))?;
            return Ok(());
        }
        self.say(Command::Write { offset: self.position - filled as u64, bytes })
    }

    /// Empties the buffer: bytes written are handed over, pages lent are returned.
    fn let_go(&mut self) -> Result<()> {
        let handed_over = self.hand_over();
        self.hand = Hand::Nothing;
        handed_over
    }

    /// Reports a failed write as soon as it is known.
    fn tell_failure(&self) -> Result<()> {
        if self.line.failed.load(Ordering::Acquire) { self.ask(Command::Check).map(drop) } else { Ok(()) }
    }

    fn check_writes(&self) -> Result<()> {
        if self.options.writes() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::BadMode, &self.name, "it is not open for writing"))
    }

    fn ask_size(&self, command: Command) -> Result<u64> {
        match self.ask(command)? {
            Answer::Size(bytes) => Ok(bytes),
            _ => unreachable!("the answer to another question"),
        }
    }

    fn ask(&self, command: Command) -> Result<Answer> {
        self.say(command)?;
        self.answer()
    }

    fn answer(&self) -> Result<Answer> {
        self.line.answers.recv().unwrap_or_else(|_| Err(Error::closed(&self.name)))
    }

    fn say(&self, command: Command) -> Result<()> {
        let commands = self.line.commands.as_ref();
        commands.and_then(|commands| commands.send(command).ok()).ok_or_else(|| Error::closed(&self.name))
    }

    /// The offset that `to` stands for.
    fn target(&mut self, to: SeekFrom) -> Result<u64> {
        let target = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.stat()?.bytes.checked_add_signed(by),
        };
        target.filter(|&offset| offset <= layout::FILE_BYTES_MAX).ok_or_else(|| {
            let why = format!("{to:?} is before its beginning or beyond any end");
            Error::new(ErrorKind::Invalid, &self.name, why)
        })
    }

    /// Goes to an offset within the pages at hand; tells whether it was there.
    fn skip_to(&mut self, target: u64) -> bool {
        let position = self.position;
        let Hand::Reading { pages, used } = &mut self.hand else { return false };
        let mut start = position - *used as u64;
        if target < start {
            return false;
        }
        while let Some(page) = pages.front() {
            let bytes = page.as_slice().len() as u64;
            if target < start + bytes {
                *used = (target - start) as usize;
                self.position = target;
                return true;
            }
            start += bytes;
            pages.pop_front();
            *used = 0;
        }
        false
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
        let Hand::Reading { pages, used } = &mut self.hand else { return };
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
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = self.target(to)?;
        if target != self.position && !self.skip_to(target) {
            self.let_go()?;
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
        // Who wants to know whether that worked calls `close`.
        undisturbed(|| drop(self.end()));
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File")
            .field("name", &self.name)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
