//! An open file behind the page cache.
//!
//! Files opened by several clients are *close-to-open* consistent: within one cache, writes are visible at once
//! through every handle. Other clients see them when the writer has flushed or closed and they have reopened the
//! file or called [`PagedFile::note_changed`]; until then they may see older bytes, and of a page both write, each
//! sends only the bytes it wrote.
//!
//! A write that fails behind the application's back is never lost in silence. Through each handle on the file the next
//! [`write`](PagedFile::write) fails with it, and [`flush`](PagedFile::flush) and [`close`](PagedFile::close) report
//! it, once. The page stays dirty; flushing tries it again, and fails again if that fails.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use layout::{Extent, Striping};
use machine::{Class, Machine, OperationInFlight, Payload, Permit, Work};
use namespace::TreeRefusal;

use super::Inner;
use super::failures::Reported;
use super::files::LogicalFile;
use super::table::{Look, PageKey};
use super::transfer::{PinnedPage, about};
use super::window::{Order, Window};
use crate::File;
use crate::error::Result;
use crate::file::check_no_file_ends_before;
use crate::protocol::FileId;
use crate::unflushed::UnflushedMark;

/// An application's hint on its use of a file, in the terms of `posix_fadvise` and PDIOL. It changes when things
/// happen, never the data read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Nothing special: what the cache would do on its own.
    Normal,
    /// The file is used from front to back: bring pages in ahead from the first on.
    Sequential,
    /// The file is used here and there: bring nothing in ahead.
    Random,
    /// A range of bytes will be used soon: start to read it, as far as half the cache holds it.
    WillNeed {
        /// Offset in bytes of the first.
        offset: u64,
        /// How many bytes.
        bytes: u64,
    },
    /// The bytes of an extent will not be used soon: write dirty pages and drop the others.
    DontNeed {
        /// Offset in bytes of the first.
        offset: u64,
        /// How many bytes.
        bytes: u64,
    },
    /// The file is not used by this application after it has been closed (`FINAL_WRITE`): drop its pages then, also
    /// if it is temporary, after writing them.
    FinalWrite,
    /// The file is temporary: pages are not sent to the I/O nodes unless they have to give way to others, not even by
    /// flushing and closing, and what is left in the cache can be read when it is opened again. Unlinked, it has never
    /// been on any disk. No other client sees it as it is.
    Temporary,
}

/// What a client had sent of a file and not flushed at a moment.
#[derive(Clone, Copy)]
pub(crate) struct PagesMark {
    file: UnflushedMark,
    /// Whether only this client can flush it, or be told that it is lost.
    is_own: bool,
}

impl PagesMark {
    /// The number by which clients see that the same runs of the same I/O nodes have what they sent; 0 if there is
    /// nothing.
    pub(crate) fn runs(self) -> u64 {
        self.file.runs
    }

    /// Whether it is flushed for this client by one that has these runs to flush.
    pub(crate) fn is_flushed_with(self, runs: u64) -> bool {
        !self.is_own && (self.file.runs == 0 || self.file.runs == runs)
    }
}

/// A file open through a [`PageCache`](super::PageCache).
///
/// Dropped without [`close`](Self::close), it is closed by [`PageCache::finish`](super::PageCache::finish), which
/// reports failures of writing.
pub struct PagedFile<M: Machine> {
    cache: Rc<Inner<M>>,
    file: Rc<LogicalFile<M>>,
    window: RefCell<Window>,
    /// Which failed writes have been reported through this handle.
    told: Reported,
}

impl<M: Machine> Drop for PagedFile<M> {
    fn drop(&mut self) {
        self.file.handles.set(self.file.handles.get() - 1);
        if self.file.handles.get() == 0 && !self.file.stays_here() {
            let unwritten = self.cache.table.borrow().unwritten(self.file.number, false);
            for place in unwritten {
                self.cache.start_writing(place, Class::Background);
            }
        }
        self.cache.release(&self.file);
    }
}

impl<M: Machine> PagedFile<M> {
    pub(super) fn new(cache: Rc<Inner<M>>, file: Rc<LogicalFile<M>>) -> Self {
        file.handles.set(file.handles.get() + 1);
        let window = RefCell::new(Window::new(cache.settings.prefetch));
        let told = file.failures.cursor();
        PagedFile { cache, file, window, told }
    }

    /// The name under which the file was opened.
    pub fn name(&self) -> &str {
        self.file.file.name()
    }

    /// The file's identity.
    pub fn id(&self) -> FileId {
        self.file.file.id()
    }

    /// The file itself, past the cache.
    pub fn file(&self) -> &File<M> {
        &self.file.file
    }

    /// The size in bytes: as of opening or [`note_changed`](Self::note_changed), and with what this cache has written
    /// since.
    pub fn bytes(&self) -> u64 {
        self.file.length.bytes()
    }

    /// The bytes of a page, which is a block of the file.
    pub fn page_bytes(&self) -> u64 {
        self.file.page_bytes()
    }

    /// How the file is striped.
    pub fn striping(&self) -> Striping {
        self.file.file.striping()
    }

    /// Whether the page at `offset` can be read without waiting. Where the file ends there is nothing to read.
    pub fn is_ready(&self, offset: u64) -> bool {
        let page = offset / self.page_bytes();
        let bytes = self.page_bytes().min(self.bytes().saturating_sub(page * self.page_bytes()));
        let key = PageKey { file: self.file.number, page };
        bytes > 0 && self.cache.table.borrow().is_here(key, bytes)
    }

    /// Notes that others have changed a file, which has `bytes` bytes now: what this cache has of it is
    /// forgotten, but for what was written here and has not been sent, and a flush is to bring theirs onto the media,
    /// too.
    pub fn note_changed(&self, bytes: u64) {
        self.file.file.note_changed_by_others();
        self.note_written_past(bytes);
    }

    /// Notes that a file was written to past the cache, and has `bytes` bytes now: what this cache has
    /// of it is forgotten, but for what was written here and has not been sent.
    pub fn note_written_past(&self, bytes: u64) {
        self.file.hear_bytes(bytes);
        if !self.file.stays_here() {
            self.file.file.forget_absent_stripes();
            self.cache.table.borrow_mut().forget_clean(self.file.number);
        }
    }

    /// Takes in the size that others count of a file; see [`File::set_bytes`].
    pub fn set_bytes(&self, bytes: u64) {
        self.file.hear_bytes(bytes);
    }

    /// Where what was written here to a file ends that others do not [count](File::note_counted) yet; 0
    /// if there is nothing of it. It may not have been sent yet.
    pub fn uncounted_end(&self) -> u64 {
        self.file.own_end()
    }

    /// How often what was written here was given up, as locks on the file were lost.
    pub(crate) fn given_up(&self) -> u64 {
        self.file.given_up.get()
    }

    /// Reads `bytes` from `offset` on: fewer at the end of the file, none beyond it.
    ///
    /// The payload returned shares the memory of the pages. A piece of it never crosses the end of a page, so
    /// reading page by page gives one piece each time. Later writes do not change it, and it keeps its memory for
    /// as long as it lives: do not hoard it.
    ///
    /// Fails if a page cannot be read, or if there is no room for it because nothing in the cache can be written.
    pub async fn read(&self, offset: u64, bytes: u64) -> Result<Payload> {
        let extent = Extent::new(offset, bytes).clip(self.bytes().max(offset));
        let (mut found, mut at) = (Payload::empty(), offset);
        while at < extent.end() {
            let some = self.read_some(at, extent.end() - at).await?;
            // Somebody has cut the file.
            if some.is_empty() {
                break;
            }
            at += some.len();
            found.push(&some);
        }
        Ok(found)
    }

    /// Reads up to `bytes` bytes from `offset`, not beyond its page: nothing at the end of the file, and otherwise
    /// some. The other pages of these bytes are requested on demand, too, as many as an adaptive window can have, so
    /// that they do not wait for each other.
    pub async fn read_some(&self, offset: u64, bytes: u64) -> Result<Payload> {
        self.file.cuts.none().await;
        let page_bytes = self.page_bytes();
        let extent = Extent::new(offset, bytes).clip(self.bytes().max(offset));
        if extent.bytes == 0 {
            return Ok(Payload::empty());
        }
        let _span = self.file.file.notes().span("page-cache read", || about(&self.file, extent));
        let (page, last) = (offset / page_bytes, (extent.end() - 1) / page_bytes);
        let too = if page == last {
            0..0
        } else {
            let through = last.min(page + self.cache.bounds(&self.file).most);
            self.window.borrow_mut().want(page, through)
        };
        self.read_page(page, part_of_page(extent, page, page_bytes), too).await
    }

    /// Reads up to `bytes` bytes from `offset`, not beyond its page, without caching or prefetching: for random access.
    /// Nothing is read at the end of the file, and otherwise some. Of a page that is not in the cache only these bytes
    /// are requested. The window stays where it is.
    pub async fn read_alone(&self, offset: u64, bytes: u64) -> Result<Payload> {
        self.file.cuts.none().await;
        let page_bytes = self.page_bytes();
        let extent = Extent::new(offset, bytes).clip(self.bytes().max(offset));
        if extent.bytes == 0 {
            return Ok(Payload::empty());
        }
        let page = offset / page_bytes;
        let range = part_of_page(extent, page, page_bytes);
        let here = self.cache.pinned(PageKey { file: self.file.number, page });
        match here {
            Some(pin) => {
                let (look, _) = self.look(&pin, &range);
                self.wait_for(&pin, &range, look).await
            }
            None => {
                let part = Extent::new(offset, range.end - range.start);
                self.cache.count_read(false, part.bytes);
                self.cache.fetch_alone(&self.file, part).await
            }
        }
    }

    /// Reads part of a page, after starting to read `too`, which is wanted next, and what the window says.
    async fn read_page(&self, page: u64, range: Range<u64>, too: Range<u64>) -> Result<Payload> {
        let pin = self.cache.pin(&self.file, page).await?;
        let (look, waits) = self.look(&pin, &range);
        if let Some(stop) = self.bring_in(too, Class::Demand) {
            self.window.borrow_mut().wanted_to(stop);
        }
        self.bring_in_ahead(page, waits);
        self.wait_for(&pin, &range, look).await
    }

    /// Looks at part of a page, and starts to read it on demand if need be; whether it was on its way before.
    fn look(&self, pin: &PinnedPage<M>, range: &Range<u64>) -> (Look, bool) {
        let look = self.cache.table.borrow_mut().look(pin.place, range);
        let waits = matches!(look, Look::Pending(_));
        self.cache.count_read(matches!(look, Look::Here(_)), range.end - range.start);
        if matches!(look, Look::Missing) {
            return (self.start_reading(pin, range), waits);
        }
        if waits {
            self.cache.promote(&self.file, pin.place);
        }
        (look, waits)
    }

    /// Waits until part of a page is there.
    async fn wait_for(&self, pin: &PinnedPage<M>, range: &Range<u64>, mut look: Look) -> Result<Payload> {
        loop {
            match look {
                Look::Here(data) => return Ok(data),
                Look::Pending(settled) => {
                    let page = self.cache.table.borrow().page(pin.place).key.page;
                    let _span = self.file.file.notes().span("wait for page", || [("page", page)]);
                    settled.wait().await;
                }
                Look::Missing => {}
                Look::Failed(error) => return Err(error),
            }
            self.file.cuts.none().await;
            look = self.cache.table.borrow_mut().look(pin.place, range);
            if matches!(look, Look::Missing) {
                look = self.start_reading(pin, range);
            }
        }
    }

    fn start_reading(&self, pin: &PinnedPage<M>, range: &Range<u64>) -> Look {
        self.cache.start_reading(&self.file, pin.place, range.end, Class::Demand);
        self.cache.table.borrow_mut().look(pin.place, range)
    }

    /// Moves the window to a page, and starts to read what it is to bring in.
    fn bring_in_ahead(&self, page: u64, waited: bool) {
        let mut window = self.window.borrow_mut();
        if window.is_at(page) {
            return;
        }
        let bounds = self.cache.bounds(&self.file);
        let wanted = window.advance(page, waited, self.file.wasted.get(), bounds);
        let end = wanted.end;
        if self.bytes() > self.cache.settings.bytes
            && let Some(passed) = window.passed()
        {
            self.cache.table.borrow_mut().let_go_of(self.file.number, passed..passed + 1);
        }
        let stop = self.bring_in(wanted, window.class());
        window.asked_to(stop.unwrap_or(end));
    }

    /// Starts to bring in pages, until there is no room for one: that one is returned.
    fn bring_in(&self, mut pages: Range<u64>, class: Class) -> Option<u64> {
        pages.find(|&page| !self.cache.bring_in(&self.file, page, class))
    }

    /// Writes `data` at `offset`, making the file longer if need be.
    ///
    /// When this completes the data are in the cache, or at the I/O nodes if the cache does not write behind. A write
    /// of a whole page takes the payload over without copying it. Fails with the first failure of an earlier write of
    /// which nobody has been told; then nothing has been written.
    pub async fn write(&self, offset: u64, data: Payload) -> Result<()> {
        let extent = Extent::new(offset, data.len());
        check_no_file_ends_before(extent)?;
        self.file.failures.check(&self.told)?;
        if extent.bytes == 0 {
            return Ok(());
        }
        let _span = self.file.file.notes().span("page-cache write", || about(&self.file, extent));
        let page_bytes = self.page_bytes();
        for page in offset / page_bytes..=(extent.end() - 1) / page_bytes {
            let range = part_of_page(extent, page, page_bytes);
            let start = page * page_bytes + range.start - offset;
            let part = data.slice(start..start + range.end - range.start);
            self.write_page(page, range.start, part).await?;
        }
        if !self.cache.settings.write_behind && !self.file.stays_here() {
            self.cache.write_out(&self.file).await;
            return self.file.failures.tell(&self.told);
        }
        // Half the cache is enough for pages on their way: the other half is for who reads.
        while self.cache.table.borrow().pending_write_bytes() > self.cache.settings.bytes / 2 {
            self.cache.wait_for_room().await;
        }
        Ok(())
    }

    /// The turn at finding out where the file ends and writing there: of all through this cache who append to the file,
    /// one has it at a time.
    pub async fn turn_to_append(&self) -> Permit {
        self.file.appending.take().await
    }

    async fn write_page(&self, page: u64, at: u64, part: Payload) -> Result<()> {
        if part.len() < self.page_bytes() {
            self.cache.client.inner.endpoint.machine().compute(Work::Copy { bytes: part.len() }).await;
        }
        let pin = self.cache.pin(&self.file, page).await?;
        let end = page * self.page_bytes() + at + part.len();
        // Nothing is waited for between finding the page and writing to it, so it cannot be forgotten before.
        let full = self.cache.table.borrow_mut().write(pin.place, at, part);
        self.file.length.reach(end);
        if full && self.cache.settings.write_behind && !self.file.stays_here() {
            self.cache.start_writing(pin.place, Class::Background);
        }
        Ok(())
    }

    /// Cuts the file to `bytes`, or extends it to them with zeros. Who reads or writes it meanwhile waits for that.
    pub async fn truncate(&self, bytes: u64) -> Result<()> {
        self.cut(bytes).await.map(drop)
    }

    /// As [`truncate`](Self::truncate). Who reads or writes the file waits until what this gives is dropped.
    pub(crate) async fn cut(&self, bytes: u64) -> Result<OperationInFlight> {
        if bytes > layout::FILE_BYTES_MAX {
            return Err(TreeRefusal::FileTooLarge.into());
        }
        self.file.cuts.none().await;
        let cut = self.file.cuts.begin();
        let (number, page_bytes) = (self.file.number, self.page_bytes());
        self.cache.table.borrow_mut().forget(number, bytes.div_ceil(page_bytes));
        let last = PageKey { file: number, page: bytes / page_bytes };
        loop {
            // A write on its way would make the file longer again after it was cut.
            self.file.writes.none().await;
            let pending = self.cache.table.borrow().pending(last);
            match pending {
                Some(settled) => settled.wait().await,
                None => break,
            }
        }
        self.cache.table.borrow_mut().cut(last, bytes % page_bytes);
        let unknown_there = self.file.temporary.get() && bytes >= self.file.file.bytes();
        if unknown_there || self.file.unlinked.get() {
            self.file.size_unsent.set(true);
        } else {
            self.file.file.truncate(bytes).await?;
        }
        self.file.length.cut(bytes);
        Ok(cut)
    }

    /// The first offset from `offset` on that may be data, and not zeros that nobody has written; none if there are
    /// none up to the end of the file.
    pub async fn next_data(&self, offset: u64) -> Result<Option<u64>> {
        let found = match self.has_sent_all().await {
            true => self.file.file.next_data(offset).await?,
            false => Some(offset),
        };
        Ok(found.filter(|&at| at < self.bytes()))
    }

    /// The first offset from `offset` on that is in a hole, which the end of the file is, too.
    pub async fn next_hole(&self, offset: u64) -> Result<u64> {
        let found = match self.has_sent_all().await {
            true => self.file.file.next_hole(offset).await?,
            false => None,
        };
        Ok(found.map_or(self.bytes(), |at| at.min(self.bytes())))
    }

    /// Sends what was written; whether the I/O nodes have all of it then.
    async fn has_sent_all(&self) -> bool {
        self.write_out().await;
        !self.file.stays_here() && self.is_sent()
    }

    /// Whether the I/O nodes have accepted all that was written.
    pub(crate) fn is_sent(&self) -> bool {
        self.file.writes.is_empty() && self.cache.table.borrow().unwritten(self.file.number, true).is_empty()
    }

    /// The offset of the first byte from `from` on that was written and that the I/O nodes have not accepted, if there
    /// is one.
    pub(crate) fn first_unsent(&self, from: u64) -> Option<u64> {
        let table = self.cache.table.borrow();
        let unwritten = table.unwritten(self.file.number, true).into_iter();
        let pages = unwritten.chain(self.cache.write_list.places()).map(|place| table.page(place));
        let of_file = pages.filter(|page| page.key.file == self.file.number);
        let first = of_file.filter_map(|page| {
            let start = page.key.page * self.page_bytes();
            page.first_unsent(from.saturating_sub(start)).map(|at| start + at)
        });
        first.min()
    }

    /// Waits until everything written to the file is on the media, and reports any write that failed, if this handle
    /// has not done so. Pages that could not be written are tried again. Of a temporary file nothing is sent.
    pub async fn flush(&self) -> Result<()> {
        if self.file.stays_here() {
            return self.file.failures.tell(&self.told);
        }
        self.cache.flush(&self.file, &self.told, false).await
    }

    /// Flushes the file as [`flush`](Self::flush) does, what other clients have sent included.
    pub(crate) async fn flush_all(&self) -> Result<()> {
        self.cache.flush(&self.file, &self.told, true).await
    }

    /// What this client has sent and not flushed, as of now.
    pub(crate) fn unflushed(&self) -> PagesMark {
        let file = self.file.file.writes().mark();
        PagesMark { file, is_own: file.has_lost || self.file.size_unsent.get() }
    }

    /// Notes that another client has flushed all stripes, of which this one had left that much to be flushed: by the
    /// same runs of the same I/O nodes.
    pub(crate) fn note_flushed_by_other(&self, mark: PagesMark) {
        self.file.file.note_flushed_by_other(mark.file);
    }

    /// Waits until everything written to the file has been accepted by the I/O nodes, and reports any write that
    /// failed, if this handle has not done so.
    pub async fn send(&self) -> Result<()> {
        self.write_out().await;
        self.file.failures.tell(&self.told)
    }

    /// Reports what I/O nodes have accepted and lost before it was flushed, as far as any write that failed, if this
    /// handle has not done so. Only if an I/O node was gone meanwhile does this flush what has been sent, also of a
    /// temporary file.
    pub async fn check_losses(&self) -> Result<()> {
        self.cache.look_for_losses(&self.file).await;
        self.file.failures.tell(&self.told)
    }

    /// As [`send`](Self::send), for one of several who share the handle: what failed is still to be reported.
    pub async fn send_shared(&self) -> Result<()> {
        self.write_out().await;
        self.file.failures.check(&self.told)
    }

    async fn write_out(&self) {
        if !self.file.stays_here() {
            self.cache.write_out(&self.file).await;
            self.cache.look_for_losses(&self.file).await;
        }
    }

    /// Closes the file: what was written has been accepted by the I/O nodes then, and is flushed by nobody. Of the last
    /// handle, the pages are forgotten. If that fails, what could not be written is given up.
    pub async fn close(self) -> Result<()> {
        let outcome = self.send().await;
        if outcome.is_err() {
            // What is on its way has to come to its end, but nobody is told of it any more.
            self.file.writes.begun_before().await;
            if self.file.handles.get() == 1 {
                self.cache.forget(&self.file);
            }
        }
        outcome
    }

    /// Says how the file is going to be used.
    pub fn advise(&self, advice: Advice) {
        match advice {
            Advice::Normal => self.window.borrow_mut().set_order(Order::Unknown),
            Advice::Sequential => self.window.borrow_mut().set_order(Order::Sequential),
            Advice::Random => self.window.borrow_mut().set_order(Order::Random),
            Advice::WillNeed { offset, bytes } => self.bring_in_range(Extent::new(offset, bytes)),
            Advice::DontNeed { offset, bytes } => self.let_go_of(Extent::new(offset, bytes)),
            Advice::FinalWrite => self.file.temporary.set(false),
            Advice::Temporary => self.file.temporary.set(true),
        }
    }

    fn bring_in_range(&self, extent: Extent) {
        let extent = extent.clip(self.bytes().max(extent.offset));
        let half = self.cache.bounds(&self.file).half;
        let pages = extent.offset / self.page_bytes()..extent.end().div_ceil(self.page_bytes());
        for page in pages.take(half as usize) {
            if extent.bytes == 0 || !self.cache.bring_in(&self.file, page, Class::Background) {
                break;
            }
        }
    }

    /// Lets go of the pages that lie wholly within the extent.
    fn let_go_of(&self, extent: Extent) {
        let end = if extent.end() >= self.bytes() { u64::MAX } else { extent.end() / self.page_bytes() };
        let pages = extent.offset.div_ceil(self.page_bytes())..end;
        if !self.file.stays_here() {
            let unwritten = self.cache.table.borrow().unwritten(self.file.number, false);
            for place in unwritten {
                if pages.contains(&self.cache.table.borrow().page(place).key.page) {
                    self.cache.start_writing(place, Class::Background);
                }
            }
        }
        self.cache.table.borrow_mut().let_go_of(self.file.number, pages);
        self.cache.room.wake_all();
    }
}

/// The part of the extent that lies in a page, by its offsets there.
fn part_of_page(extent: Extent, page: u64, page_bytes: u64) -> Range<u64> {
    let start = page * page_bytes;
    extent.offset.max(start) - start..(extent.end() - start).min(page_bytes)
}
