//! Reads pages into the cache and sends dirty ones.
//!
//! Each page read has its own task, so that requests are sent at once and in parallel. Pages to be written wait in the
//! write list for one of a few write agents, which bound the writes in flight.
//!
//! Pages that a caller waits for are requested at demand priority, others in the background. A page requested in the
//! background is promoted when a caller needs it, unless that would not help (`background_reads.rs`).

use std::rc::Rc;

use layout::Extent;
use machine::{Class, Machine, OperationInFlight, Payload, Permit};

use super::Inner;
use super::files::LogicalFile;
use super::table::{EvictionResult, PageKey, PageSlot};
use super::window::Bounds;
use crate::error::{FailureKind, Result};
use crate::file::FlushScope;

/// Writes in flight for each disk: one at the disk, one at the I/O node, two in the network.
pub(super) const WRITES_PER_DISK: u64 = 4;

/// Initial pages of an adaptive window for each disk: one at the disk, one in flight.
const WINDOW_PER_DISK: u64 = 2;

/// Maximum pages of an adaptive window for each disk: 2 MiB of pages of 64 KiB, the data of 2 ms at 1 GB/s.
const WINDOW_PER_DISK_MAX: u64 = 32;

/// A page in use: it stays in the table until this is dropped.
pub(super) struct PinnedPage<M: Machine> {
    cache: Rc<Inner<M>>,
    pub(super) place: PageSlot,
}

impl<M: Machine> Drop for PinnedPage<M> {
    fn drop(&mut self) {
        self.cache.table.borrow_mut().unpin(self.place);
        self.cache.room.wake_all();
    }
}

impl<M: Machine> Inner<M> {
    /// Finds a page or adds an empty one. Blocks until the cache has space and no truncation of the file is in flight.
    pub(super) async fn pin(self: &Rc<Self>, file: &LogicalFile<M>, page: u64) -> Result<PinnedPage<M>> {
        let key = PageKey { file: file.number, page };
        loop {
            file.cuts.none().await;
            if let Some(pin) = self.pinned(key) {
                return Ok(pin);
            }
            match self.make_room(file.page_bytes()) {
                EvictionResult::Made => {
                    let place = self.insert(file, key, false);
                    return Ok(PinnedPage { cache: self.clone(), place });
                }
                EvictionResult::Later => self.wait_for_room().await,
                EvictionResult::Never(error) => {
                    machine::sometimes!("a page cache is full of pages that cannot be written");
                    return Err(error);
                }
            }
        }
    }

    /// Pins the page of this key, if it is in the table, in any state.
    pub(super) fn pinned(self: &Rc<Self>, key: PageKey) -> Option<PinnedPage<M>> {
        let place = self.table.borrow_mut().pin(key)?;
        Some(PinnedPage { cache: self.clone(), place })
    }

    /// Reads a page, or a part of one, without the page table. To the I/O node a whole page is an ordinary block.
    pub(super) async fn fetch_alone(&self, file: &LogicalFile<M>, part: Extent) -> Result<Payload> {
        let _span = self.client.inner.endpoint.machine().notes().span("fetch alone", || about(file, part));
        let data = match part.bytes == file.page_bytes() {
            true => file.file.read_block(part, || Class::Demand).await?,
            false => file.file.read_part_of_block(part).await?,
        };
        // As with a page: the machine soon needs its receive memory again.
        let mut buffer = self.buffers.try_take(part.bytes).expect("a pool without a bound");
        buffer.adopt(data);
        Ok(buffer.slice(0..part.bytes))
    }

    /// Counts a read by a program.
    pub(super) fn count_read(&self, is_hit: bool, bytes: u64) {
        let mut counts = self.counts.get();
        counts.count(is_hit, bytes);
        self.counts.set(counts);
    }

    /// Blocks until a page may have been evicted.
    pub(super) async fn wait_for_room(&self) {
        let _span = self.client.inner.endpoint.machine().notes().span("wait for room", || []);
        self.room.wait().await;
    }

    fn make_room(self: &Rc<Self>, bytes: u64) -> EvictionResult {
        let (mut to_write, mut table) = (Vec::new(), self.table.borrow_mut());
        let room = table.make_room(bytes, &mut to_write);
        let wasted = table.take_wasted();
        drop(table);
        for number in wasted {
            if let Some(file) = self.files.get(number) {
                file.wasted.set(file.wasted.get() + 1);
            }
        }
        self.list_for_writing(&to_write, Class::Demand);
        room
    }

    fn insert(&self, file: &LogicalFile<M>, key: PageKey, ahead: bool) -> PageSlot {
        let buffer = self.buffers.try_take(file.page_bytes()).expect("a pool without a bound");
        self.table.borrow_mut().insert(key, buffer, ahead)
    }

    /// Starts to read a missing page, if the cache has space now and the file is not being truncated. At demand
    /// priority, promotes a page in flight. Returns true if the page is now in the cache or in flight.
    pub(super) fn bring_in(self: &Rc<Self>, file: &Rc<LogicalFile<M>>, page: u64, class: Class) -> bool {
        let key = PageKey { file: file.number, page };
        let found = self.table.borrow().find(key);
        if let Some(place) = found {
            if class == Class::Demand {
                self.promote(file, place);
            }
            return true;
        }
        if !file.cuts.is_empty() || self.make_room(file.page_bytes()) != EvictionResult::Made {
            return false;
        }
        let place = self.insert(file, key, true);
        self.start_reading(file, place, 0, class);
        self.table.borrow_mut().unpin(place);
        true
    }

    /// Starts to read a pinned page: the bytes within the file, and at least `least` bytes.
    pub(super) fn start_reading(
        self: &Rc<Self>,
        file: &Rc<LogicalFile<M>>,
        place: PageSlot,
        least: u64,
        class: Class,
    ) {
        let mut table = self.table.borrow_mut();
        let page_bytes = file.page_bytes();
        let start = table.page(place).key.page * page_bytes;
        let node = file.file.home(start);
        let number = self.reads.begin(node, class);
        table.begin_read(place, (class == Class::Background).then_some(number));
        let there = file.length.bytes().saturating_sub(start).min(page_bytes);
        let extent = Extent::new(start, there.max(least));
        drop(table);
        let (cache, file) = (self.clone(), file.clone());
        let machine = self.client.inner.endpoint.machine().clone();
        self.client.inner.endpoint.machine().spawn("page read", async move {
            let name = if class == Class::Background { "prefetch" } else { "fetch page" };
            let _span = machine.notes().span(name, || about(&file, extent));
            let asked = machine.now();
            let class = || cache.reads.leave(node, number);
            let outcome = file.file.read_block(extent, class).await;
            cache.reads.end(node, number, machine.now().since(asked));
            cache.table.borrow_mut().finish_read(place, outcome);
            cache.room.wake_all();
            Ok(())
        });
    }

    /// Records that a caller waits for a page that is being read. Promotes a background read at the I/O node if that
    /// helps.
    pub(super) fn promote(self: &Rc<Self>, file: &Rc<LogicalFile<M>>, place: PageSlot) {
        let Some(number) = self.table.borrow_mut().promote(place) else { return };
        let offset = self.table.borrow().page(place).key.page * file.page_bytes();
        if self.reads.promote(file.file.home(offset), number) {
            self.ask_to_promote(file, offset);
        }
    }

    fn ask_to_promote(&self, file: &Rc<LogicalFile<M>>, offset: u64) {
        let file = file.clone();
        self.client.inner.endpoint.machine().spawn("promote", async move {
            // Ignore the error: if this request fails, so does the request that it promotes.
            let _ = file.file.promote_block(offset).await;
            Ok(())
        });
    }

    /// Begins to write a page. Returns true if it had bytes to write.
    pub(super) fn start_writing(self: &Rc<Self>, place: PageSlot, class: Class) -> bool {
        let begun = self.table.borrow_mut().begin_write(place);
        if begun {
            self.list_for_writing(&[place], class);
        }
        begun
    }

    /// Adds pages whose write has begun to the write list, and starts write agents for them as needed.
    fn list_for_writing(self: &Rc<Self>, places: &[PageSlot], class: Class) {
        for &place in places {
            let file = self.file_of(place);
            if let Some(permit) = self.write_list.put(place, class, file.writes.begin()) {
                let cache = self.clone();
                self.client.inner.endpoint.machine().spawn("write agent", cache.write_listed(permit));
            }
        }
    }

    fn file_of(&self, place: PageSlot) -> Rc<LogicalFile<M>> {
        let number = self.table.borrow().page(place).key.file;
        self.files.get(number).expect("a file with pages to write is not forgotten")
    }

    /// Runs a write agent: writes listed pages until the list is empty.
    async fn write_listed(self: Rc<Self>, _permit: Permit) -> machine::Result<()> {
        while let Some((place, operation)) = self.write_list.next() {
            self.write_page(place, operation).await;
        }
        Ok(())
    }

    async fn write_page(self: &Rc<Self>, place: PageSlot, operation: OperationInFlight) {
        let file = self.file_of(place);
        // Take the lease now: the locks may end while the data are in flight.
        let lease = file.file.lease();
        let (start, runs) = {
            let mut table = self.table.borrow_mut();
            (table.page(place).key.page * file.page_bytes(), table.take_dirty(place))
        };
        let mut outcome = Ok(());
        for (at, data) in runs {
            let machine = self.client.inner.endpoint.machine();
            let part = Extent::new(start + at, data.len());
            let _span = machine.notes().span("write behind", || about(&file, part));
            let class = || self.write_list.class(place);
            outcome = file.file.write_block(start + at, data, lease, class).await;
            if outcome.is_err() {
                break;
            }
        }
        // A failed write to a removed file is no loss.
        let outcome = if file.unlinked.get() { Ok(()) } else { outcome };
        file.failures.note(outcome.clone());
        if outcome.as_ref().is_err_and(|error| error.is_remote(FailureKind::Fenced)) {
            machine::sometimes!("a client discards writes after a fence");
            // Others have locked the file: do not retry.
            self.forget_unsent(&file);
        }
        self.write_list.end(place);
        self.table.borrow_mut().finish_write(place, outcome);
        drop(operation);
        self.room.wake_all();
        self.release(&file);
    }

    /// Sends all dirty bytes of a file, and blocks until they have been accepted or have failed. Retries earlier
    /// failures once. Does not wait for writes that begin later: there may be no end of them.
    pub(super) async fn write_out(self: &Rc<Self>, file: &Rc<LogicalFile<M>>) {
        self.promote_writes(file);
        let (mut due, mut again) = (self.dirty_pages(file), true);
        loop {
            due.retain(|&key| !self.is_leaving(key, again));
            again = false;
            let Some(pending) = due.last().and_then(|&key| self.table.borrow().pending(key)) else { break };
            pending.wait().await;
        }
        file.writes.begun_before().await;
        file.length.settle_beyond(self.unsent_end(file));
    }

    /// Returns the pages of a file with written bytes that the I/O nodes have not accepted.
    pub(super) fn unsent(&self, file: &LogicalFile<M>) -> Vec<PageSlot> {
        let table = self.table.borrow();
        let places = table.unwritten(file.number, true).into_iter().chain(self.write_list.places());
        places.filter(|&place| table.page(place).key.file == file.number).collect()
    }

    /// Returns the end of the written bytes of a file that the I/O nodes have not accepted, or 0.
    pub(super) fn unsent_end(&self, file: &LogicalFile<M>) -> u64 {
        let table = self.table.borrow();
        let pages = self.unsent(file).into_iter().map(|place| table.page(place));
        let ends = pages.filter_map(|page| Some(page.key.page * file.page_bytes() + page.unsent_end()?));
        ends.max().unwrap_or(0)
    }

    /// Returns the pages of a file with dirty bytes not in flight, including pages with other bytes in flight.
    fn dirty_pages(&self, file: &LogicalFile<M>) -> Vec<PageKey> {
        let table = self.table.borrow();
        let pages = self.unsent(file).into_iter().map(|place| table.page(place));
        pages.filter(|page| page.is_dirty()).map(|page| page.key).collect()
    }

    /// Begins to write a dirty page, if possible now. Returns true if none of its dirty bytes still need a write.
    /// Retries a failed page with `again`.
    fn is_leaving(self: &Rc<Self>, key: PageKey, again: bool) -> bool {
        let place = {
            let table = self.table.borrow();
            let Some(place) = table.find(key) else { return true };
            let page = table.page(place);
            if !page.is_dirty() || (page.has_failed() && !again) {
                return true;
            }
            place
        };
        self.start_writing(place, Class::Demand)
    }

    /// Promotes all background writes of a file to demand.
    fn promote_writes(&self, file: &Rc<LogicalFile<M>>) {
        let table = self.table.borrow();
        let of_file = |place: PageSlot| table.page(place).key.file == file.number;
        for place in self.write_list.promote_writes(of_file) {
            self.ask_to_promote(file, table.page(place).key.page * file.page_bytes());
        }
    }

    /// Flushes the writes of a scope to stable storage. Records failures of this client and of the I/O nodes.
    pub(super) async fn flush(self: &Rc<Self>, file: &Rc<LogicalFile<M>>, scope: FlushScope<'_>) {
        self.write_out(file).await;
        // A truncation in progress has discarded writes. After it, the flush persists the truncation in their place.
        file.cuts.begun_before().await;
        let begun = file.flushes.get();
        let _turn = file.flushing.take().await;
        // A flush that began during the wait has flushed the writes of this client.
        if file.flushes.get() == begun || !matches!(scope, FlushScope::Own) {
            self.flush_in_turn(file, scope).await;
        }
    }

    /// Flushes the writes of a scope to stable storage, and records a failure. The caller has the turn to flush.
    async fn flush_in_turn(&self, file: &Rc<LogicalFile<M>>, scope: FlushScope<'_>) {
        file.flushes.set(file.flushes.get() + 1);
        file.failures.note(self.flush_to_media(file, scope).await);
    }

    /// If an I/O node disconnected since it accepted data of a file, finds out if they are lost. No other request may
    /// report the loss before the file is closed, or before a file that is never flushed is read.
    pub(super) async fn look_for_losses(&self, file: &Rc<LogicalFile<M>>) {
        if file.file.may_have_lost() {
            let _turn = file.flushing.take().await;
            self.flush_in_turn(file, FlushScope::Own).await;
        }
    }

    /// Makes the I/O nodes flush their data of a file, after sending them the size.
    async fn flush_to_media(&self, file: &Rc<LogicalFile<M>>, scope: FlushScope<'_>) -> Result<()> {
        if file.unlinked.get() {
            return Ok(());
        }
        if file.size_unsent.replace(false) {
            let resized = file.file.truncate(file.length.bytes()).await;
            resized.inspect_err(|_| file.size_unsent.set(true))?;
        }
        if !matches!(scope, FlushScope::Own) || file.file.has_unflushed() {
            file.file.flush_of(scope).await?;
        }
        Ok(())
    }

    /// Returns the bounds of the windows of a file.
    pub(super) fn bounds(&self, file: &LogicalFile<M>) -> Bounds {
        let (page_bytes, disks) = (file.page_bytes(), u64::from(self.client.disks()));
        let half = (self.settings.bytes / page_bytes / 2).max(1);
        Bounds {
            pages: file.length.bytes().div_ceil(page_bytes),
            least: (WINDOW_PER_DISK * disks).clamp(4, half.max(4)),
            most: half.min(WINDOW_PER_DISK_MAX * disks),
            half,
        }
    }
}

/// Returns the recorded attributes of a part of a file.
pub(super) fn about<M: Machine>(file: &LogicalFile<M>, part: Extent) -> [(&'static str, u64); 3] {
    [("file", file.file.id().0), ("offset", part.offset), ("bytes", part.bytes)]
}
