//! An open file behind the page cache.
//!
//! Files opened by several clients are *close-to-open* consistent. Within one cache, writes are visible at once through
//! every handle. Other clients see them when the writer has flushed or closed the file, and they have reopened it or
//! called [`PagedFile::note_changed`]; until then they may read older bytes. If two clients write to one page, each
//! sends only the bytes it wrote.
//!
//! Every failed background write is reported. Through each handle on the file the next [`write`](PagedFile::write)
//! fails with it, and [`flush`](PagedFile::flush) and [`close`](PagedFile::close) report it, once. The page remains
//! dirty; a flush retries it, and fails again if the retry fails.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use layout::{Extent, Striping};
use machine::{Class, Machine, NodeId, OperationInFlight, Payload, Permit, Work};
use namespace::TreeRefusal;

use super::Inner;
use super::failures::Reported;
use super::files::LogicalFile;
use super::table::{PageKey, PageLookup};
use super::transfer::{PinnedPage, about};
use super::window::{Order, Window};
use crate::File;
use crate::error::Result;
use crate::file::{FlushScope, check_no_file_ends_before};
use crate::protocol::FileId;
use crate::unflushed::UnflushedMark;

/// An application's hint on its use of a file, in the terms of `posix_fadvise` and PDIOL. It changes the timing of
/// transfers, never the data read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// The default behaviour of the cache.
    Normal,
    /// Sequential access from front to back: prefetch pages from the first access on.
    Sequential,
    /// Random access: do not prefetch.
    Random,
    /// A range of bytes will be used soon: start to read it, up to half the cache.
    WillNeed {
        /// Offset in bytes of the first byte.
        offset: u64,
        /// Number of bytes.
        bytes: u64,
    },
    /// An extent will not be used soon: send its dirty pages and drop the others.
    DontNeed {
        /// Offset in bytes of the first byte.
        offset: u64,
        /// Number of bytes.
        bytes: u64,
    },
    /// This application does not use the file after closing it (`FINAL_WRITE`): send its pages then and drop them, even
    /// if the file is temporary.
    FinalWrite,
    /// The file is temporary: its pages are sent to the I/O nodes only on eviction, not even by a flush or close. Pages
    /// left in the cache can be read when the file is opened again. A file unlinked before any eviction never reaches a
    /// disk. Other clients do not see its contents.
    Temporary,
}

/// Snapshot of a client's sent and unflushed writes to a file.
#[derive(Clone, Copy)]
pub(crate) struct PagesMark {
    file: UnflushedMark,
    /// True if only this client can flush them, or report their loss.
    is_own: bool,
}

impl PagesMark {
    /// Returns a number that is equal for clients whose sent writes are in the same incarnations of the same I/O nodes;
    /// 0 if there are no unflushed writes.
    pub(crate) fn runs(self) -> u64 {
        self.file.runs
    }

    /// Returns true if a client that flushes the incarnations of `runs` flushes these writes, too.
    pub(crate) fn is_flushed_with(self, runs: u64) -> bool {
        !self.is_own && (self.file.runs == 0 || self.file.runs == runs)
    }
}

/// A file open through a [`PageCache`](super::PageCache).
///
/// If dropped without [`close`](Self::close), it is closed by [`PageCache::finish`](super::PageCache::finish), which
/// reports failed writes.
pub struct PagedFile<M: Machine> {
    cache: Rc<Inner<M>>,
    file: Rc<LogicalFile<M>>,
    window: RefCell<Window>,
    /// Number of failed writes reported through this handle.
    reported: Reported,
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
        let reported = file.failures.cursor();
        PagedFile { cache, file, window, reported }
    }

    /// Returns the file's name for errors: the name of its stripes on their disks.
    pub fn name(&self) -> &str {
        self.file.file.name()
    }

    /// Returns the file's identity.
    pub fn id(&self) -> FileId {
        self.file.file.id()
    }

    /// Returns the file itself, for access without the cache.
    pub fn file(&self) -> &File<M> {
        &self.file.file
    }

    /// Returns the size in bytes: that of opening or of [`note_changed`](Self::note_changed), extended by later writes
    /// through this cache.
    pub fn bytes(&self) -> u64 {
        self.file.length.bytes()
    }

    /// Returns the size of a page in bytes. A page is a block of the file.
    pub fn page_bytes(&self) -> u64 {
        self.file.page_bytes()
    }

    /// Returns the file's striping.
    pub fn striping(&self) -> Striping {
        self.file.file.striping()
    }

    /// Returns true if the page at `offset` can be read without waiting. False at the end of the file.
    pub fn is_ready(&self, offset: u64) -> bool {
        let page = offset / self.page_bytes();
        let bytes = self.page_bytes().min(self.bytes().saturating_sub(page * self.page_bytes()));
        let key = PageKey { file: self.file.number, page };
        bytes > 0 && self.cache.table.borrow().is_here(key, bytes)
    }

    /// Records that others have changed the file, whose size is now `bytes` bytes. Drops its cached data except unsent
    /// writes. The next flush covers the changes of others, too.
    pub fn note_changed(&self, bytes: u64) {
        self.file.file.note_changed_by_others();
        self.note_written_past(bytes);
    }

    /// Records that the file was written to without the cache, and that its size is now `bytes` bytes. Drops its cached
    /// data except unsent writes.
    pub fn note_written_past(&self, bytes: u64) {
        self.file.note_reported_bytes(bytes);
        if !self.file.stays_here() {
            self.file.file.forget_absent_stripes();
            self.cache.table.borrow_mut().forget_clean(self.file.number);
        }
    }

    /// Sets the size that others report; see [`File::set_bytes`].
    pub fn set_bytes(&self, bytes: u64) {
        self.file.note_reported_bytes(bytes);
    }

    /// Returns the end of this client's writes that others do not [count](File::note_counted) yet, sent or not; 0 if it
    /// has none.
    pub fn uncounted_end(&self) -> u64 {
        self.file.own_end()
    }

    /// Returns the number of times that unsent writes were discarded because locks on the file were lost.
    pub fn given_up(&self) -> u64 {
        self.file.given_up.get()
    }

    /// Reads `bytes` from `offset` on: fewer at the end of the file, none beyond it.
    ///
    /// The payload returned shares the memory of the pages. A piece of it never crosses the end of a page, so reading
    /// page by page returns one piece each time. Later writes do not change it, and it keeps its memory for as long as
    /// it lives: do not hoard it.
    ///
    /// # Errors
    /// Fails if a page cannot be read, or if the cache is full of pages that cannot be written.
    pub async fn read(&self, offset: u64, bytes: u64) -> Result<Payload> {
        let extent = Extent::new(offset, bytes).clip(self.bytes().max(offset));
        let (mut found, mut at) = (Payload::empty(), offset);
        while at < extent.end() {
            let some = self.read_some(at, extent.end() - at).await?;
            // A concurrent truncation has shortened the file.
            if some.is_empty() {
                machine::sometimes!("a truncation ends a read of several pages");
                break;
            }
            at += some.len();
            found.push(&some);
        }
        Ok(found)
    }

    /// Reads up to `bytes` bytes from `offset`, within one page: none at the end of the file, and otherwise at least
    /// one. The other pages of the range are requested at demand priority, too, up to the limit of an adaptive window,
    /// so that they are fetched in parallel.
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

    /// Reads up to `bytes` bytes from `offset`, within one page, without caching or prefetching: for random access.
    /// Reads none at the end of the file, and otherwise at least one. If the page is not in the cache, requests only
    /// these bytes. The window does not move.
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

    /// Reads part of a page, after starting to read the pages `too`, which are needed next, and the pages of the
    /// window.
    async fn read_page(&self, page: u64, range: Range<u64>, too: Range<u64>) -> Result<Payload> {
        let pin = self.cache.pin(&self.file, page).await?;
        let (look, waits) = self.look(&pin, &range);
        if let Some(stop) = self.bring_in(too, Class::Demand) {
            self.window.borrow_mut().wanted_to(stop);
        }
        self.bring_in_ahead(page, waits);
        self.wait_for(&pin, &range, look).await
    }

    /// Looks up part of a page, and starts to read it at demand priority if necessary. Also returns true if the page
    /// was in flight before.
    fn look(&self, pin: &PinnedPage<M>, range: &Range<u64>) -> (PageLookup, bool) {
        let look = self.cache.table.borrow_mut().look(pin.place, range);
        let waits = matches!(look, PageLookup::Pending(_));
        self.cache.count_read(matches!(look, PageLookup::Here(_)), range.end - range.start);
        if matches!(look, PageLookup::Missing) {
            return (self.start_reading(pin, range), waits);
        }
        if waits {
            self.cache.promote(&self.file, pin.place);
        }
        (look, waits)
    }

    /// Blocks until part of a page has arrived.
    async fn wait_for(
        &self,
        pin: &PinnedPage<M>,
        range: &Range<u64>,
        mut look: PageLookup,
    ) -> Result<Payload> {
        loop {
            match look {
                PageLookup::Here(data) => return Ok(data),
                PageLookup::Pending(settled) => {
                    let page = self.cache.table.borrow().page(pin.place).key.page;
                    let _span = self.file.file.notes().span("wait for page", || [("page", page)]);
                    settled.wait().await;
                }
                PageLookup::Missing => {}
                PageLookup::Failed(error) => return Err(error),
            }
            self.file.cuts.none().await;
            look = self.cache.table.borrow_mut().look(pin.place, range);
            if matches!(look, PageLookup::Missing) {
                look = self.start_reading(pin, range);
            }
        }
    }

    fn start_reading(&self, pin: &PinnedPage<M>, range: &Range<u64>) -> PageLookup {
        self.cache.start_reading(&self.file, pin.place, range.end, Class::Demand);
        self.cache.table.borrow_mut().look(pin.place, range)
    }

    /// Moves the window to a page, and starts to prefetch.
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
            self.cache.table.borrow_mut().evict_pages(self.file.number, passed..passed + 1);
        }
        let stop = self.bring_in(wanted, window.class());
        window.asked_to(stop.unwrap_or(end));
    }

    /// Starts to fetch pages, until one does not fit in the cache. Returns that page.
    fn bring_in(&self, mut pages: Range<u64>, class: Class) -> Option<u64> {
        pages.find(|&page| !self.cache.bring_in(&self.file, page, class))
    }

    /// Writes `data` at `offset`, extending the file if necessary.
    ///
    /// On completion the data are in the cache, or at the I/O nodes if the cache does not write behind. A write of a
    /// whole page adopts the payload without a copy.
    ///
    /// # Errors
    /// Fails with the first failure of an earlier write that this handle has not reported; then nothing has been
    /// written.
    pub async fn write(&self, offset: u64, data: Payload) -> Result<()> {
        let extent = Extent::new(offset, data.len());
        check_no_file_ends_before(extent)?;
        self.file.failures.check(&self.reported)?;
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
            let before_call = self.failures_before_call();
            self.cache.write_out(&self.file).await;
            return self.report_failures(before_call);
        }
        // Limit pages in flight to half the cache, and leave the other half to readers.
        while self.cache.table.borrow().pending_write_bytes() > self.cache.settings.bytes / 2 {
            self.cache.wait_for_room().await;
        }
        Ok(())
    }

    /// Blocks until the caller may find the end of the file and write there. One task through this cache has the permit
    /// at a time.
    pub async fn turn_to_append(&self) -> Permit {
        self.file.appending.take().await
    }

    async fn write_page(&self, page: u64, at: u64, part: Payload) -> Result<()> {
        if part.len() < self.page_bytes() {
            self.cache.client.inner.endpoint.machine().compute(Work::Copy { bytes: part.len() }).await;
        }
        let pin = self.cache.pin(&self.file, page).await?;
        let end = page * self.page_bytes() + at + part.len();
        // No await between finding the page and writing to it, so that it cannot be dropped before.
        let full = self.cache.table.borrow_mut().write(pin.place, at, part);
        self.file.length.reach(end);
        if full && self.cache.settings.write_behind && !self.file.stays_here() {
            self.cache.start_writing(pin.place, Class::Background);
        }
        Ok(())
    }

    /// Truncates the file to `bytes`, or extends it to that length with zeros. Blocks reads and writes during the
    /// operation.
    pub async fn truncate(&self, bytes: u64) -> Result<()> {
        self.cut(bytes).await.map(drop)
    }

    /// Truncates as [`truncate`](Self::truncate) does. Blocks reads and writes until the result is dropped.
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
            // Wait for writes in flight: they would extend the file again after the truncation.
            self.file.writes.none().await;
            let pending = self.cache.table.borrow().pending(last);
            match pending {
                Some(settled) => {
                    machine::sometimes!("a truncation waits for the transfer of its last page");
                    settled.wait().await;
                }
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

    /// Waits until no truncation is in progress. A truncation discards unsent writes before the I/O nodes truncate
    /// their stripes: until then they have older data.
    pub(crate) async fn truncations_ended(&self) {
        self.file.cuts.none().await;
    }

    /// Returns the first offset from `offset` on that may be data and not a hole; `None` if only a hole follows up to
    /// the end of the file.
    pub async fn next_data(&self, offset: u64) -> Result<Option<u64>> {
        let found = match self.has_sent_all().await {
            true => self.file.file.next_data(offset).await?,
            false => Some(offset),
        };
        Ok(found.filter(|&at| at < self.bytes()))
    }

    /// Returns the first offset from `offset` on that is in a hole. The end of the file counts as a hole.
    pub async fn next_hole(&self, offset: u64) -> Result<u64> {
        let found = match self.has_sent_all().await {
            true => self.file.file.next_hole(offset).await?,
            false => None,
        };
        Ok(found.map_or(self.bytes(), |at| at.min(self.bytes())))
    }

    /// Sends all writes. Returns true if the I/O nodes have accepted all of them.
    async fn has_sent_all(&self) -> bool {
        self.write_out().await;
        !self.file.stays_here() && self.is_sent()
    }

    /// Returns true if the I/O nodes have accepted all writes.
    pub(crate) fn is_sent(&self) -> bool {
        self.file.writes.is_empty() && self.cache.table.borrow().unwritten(self.file.number, true).is_empty()
    }

    /// Returns the offset of the first written byte from `from` on that the I/O nodes have not accepted, if any.
    pub(crate) fn first_unsent(&self, from: u64) -> Option<u64> {
        let table = self.cache.table.borrow();
        let first = self.cache.unsent(&self.file).into_iter().filter_map(|place| {
            let page = table.page(place);
            let start = page.key.page * self.page_bytes();
            page.first_unsent(from.saturating_sub(start)).map(|at| start + at)
        });
        first.min()
    }

    /// Returns the end of the written bytes that the I/O nodes have not accepted, or 0.
    pub(crate) fn unsent_end(&self) -> u64 {
        self.cache.unsent_end(&self.file)
    }

    /// Blocks until all writes to the file are on stable storage, and reports failed writes that this handle has not
    /// reported. Retries failed pages. Sends nothing of a temporary file.
    pub async fn flush(&self) -> Result<()> {
        let before_call = self.failures_before_call();
        let flushed = self.flush_shared().await;
        self.report_failures(before_call).and(flushed)
    }

    /// Flushes as [`flush`](Self::flush) does, but failures remain unreported.
    pub(crate) async fn flush_shared(&self) -> Result<()> {
        if !self.file.stays_here() {
            self.cache.flush(&self.file, FlushScope::Own).await;
        }
        self.file.failures.check(&self.reported)
    }

    /// Flushes the file as [`flush_shared`](Self::flush_shared) does, including sent writes of the other members of a
    /// team. Fails if a write of any member has failed.
    pub(crate) async fn flush_for_team(&self, members: &[NodeId]) -> Result<()> {
        self.cache.flush(&self.file, FlushScope::Team(members)).await;
        self.file.failures.check(&self.reported)
    }

    /// Returns the number of failures that this handle has reported, for a call that begins now.
    pub(crate) fn failures_before_call(&self) -> u64 {
        self.reported.before_call()
    }

    /// Fails if the file has a failure that this handle had not reported when a call began, and marks it as reported.
    /// To be called at the end of the call: until then the caller does not know of the failure, so other flushes must
    /// fail with it, too.
    pub(crate) fn report_failures(&self, before_call: u64) -> Result<()> {
        self.file.failures.report(&self.reported, before_call)
    }

    /// Waits for the flushes in progress.
    pub(crate) async fn flushes_ended(&self) {
        drop(self.file.flushing.take().await);
    }

    /// Returns a snapshot of this client's sent and unflushed writes.
    pub(crate) fn unflushed(&self) -> PagesMark {
        let file = self.file.file.writes().mark();
        PagesMark { file, is_own: file.has_lost || self.file.size_unsent.get() }
    }

    /// Records that another client has flushed all stripes when this client's unflushed writes were those of `mark`, in
    /// the same incarnations of the same I/O nodes.
    pub(crate) fn note_flushed_by_other(&self, mark: PagesMark) {
        self.file.file.note_flushed_by_other(mark.file);
    }

    /// Blocks until the I/O nodes have accepted all writes to the file, and reports failed writes that this handle has
    /// not reported.
    pub async fn send(&self) -> Result<()> {
        let before_call = self.failures_before_call();
        self.write_out().await;
        self.report_failures(before_call)
    }

    /// Reports writes that I/O nodes have accepted and lost before a flush, as well as failed writes, if this handle
    /// has not reported them. Flushes sent writes, even of a temporary file, only if an I/O node disconnected since it
    /// accepted them.
    pub async fn check_losses(&self) -> Result<()> {
        let before_call = self.failures_before_call();
        self.cache.look_for_losses(&self.file).await;
        self.report_failures(before_call)
    }

    /// Sends as [`send`](Self::send) does, for a handle that several processes share: failures remain unreported.
    pub async fn send_shared(&self) -> Result<()> {
        self.write_out().await;
        self.file.failures.check(&self.reported)
    }

    async fn write_out(&self) {
        if !self.file.stays_here() {
            self.cache.write_out(&self.file).await;
            self.cache.look_for_losses(&self.file).await;
        }
    }

    /// Closes the file: the I/O nodes have accepted its writes, but they are not flushed. The last handle drops the
    /// pages. After a failure, unsent writes are discarded.
    pub async fn close(self) -> Result<()> {
        let outcome = self.send().await;
        if outcome.is_err() {
            // Wait for writes in flight, but ignore their failures.
            self.file.writes.begun_before().await;
            if self.file.handles.get() == 1 {
                self.cache.forget(&self.file);
            }
        }
        outcome
    }

    /// Announces the future use of the file.
    pub fn advise(&self, advice: Advice) {
        match advice {
            Advice::Normal => self.window.borrow_mut().set_order(Order::Unknown),
            Advice::Sequential => self.window.borrow_mut().set_order(Order::Sequential),
            Advice::Random => self.window.borrow_mut().set_order(Order::Random),
            Advice::WillNeed { offset, bytes } => self.bring_in_range(Extent::new(offset, bytes)),
            Advice::DontNeed { offset, bytes } => self.evict_pages(Extent::new(offset, bytes)),
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

    /// Drops the pages that lie entirely within the extent, after sending dirty ones.
    fn evict_pages(&self, extent: Extent) {
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
        self.cache.table.borrow_mut().evict_pages(self.file.number, pages);
        self.cache.room.wake_all();
    }
}

/// Returns the part of the extent that lies in a page, as offsets in the page.
fn part_of_page(extent: Extent, page: u64, page_bytes: u64) -> Range<u64> {
    let start = page * page_bytes;
    extent.offset.max(start) - start..(extent.end() - start).min(page_bytes)
}
