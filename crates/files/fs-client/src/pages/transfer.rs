//! Reading pages into the cache and sending dirty ones.
//!
//! Each page that is read has a task of its own, so requests are sent at once and together. Pages to be written wait in
//! the write list for one of a few write agents, which bound the writes in flight.
//!
//! Pages that a caller waits for are requested on demand, others in the background. A page requested in the
//! background is promoted when a caller comes to wait for it, unless nothing is gained (`reads.rs`).

use std::rc::Rc;

use layout::Extent;
use machine::{Class, Machine, OperationInFlight, Payload, Permit};

use super::Inner;
use super::failures::Reported;
use super::files::LogicalFile;
use super::table::{PageKey, Place, Room};
use super::window::Bounds;
use crate::error::{FailureKind, Result};

/// Writes in flight for each disk: one at the disk, one at the I/O node, two in the network.
pub(super) const WRITES_PER_DISK: u64 = 4;

/// Initial pages of an adaptive window for each disk: one at the disk, one in flight.
const WINDOW_PER_DISK: u64 = 2;

/// Maximum pages of an adaptive window for each disk: 2 MiB of pages of 64 KiB, the data of 2 ms at 1 GB/s.
const WINDOW_PER_DISK_MAX: u64 = 32;

/// A page in use: it stays in the table until this is dropped.
pub(super) struct PinnedPage<M: Machine> {
    cache: Rc<Inner<M>>,
    pub(super) place: Place,
}

impl<M: Machine> Drop for PinnedPage<M> {
    fn drop(&mut self) {
        self.cache.table.borrow_mut().unpin(self.place);
        self.cache.room.wake_all();
    }
}

impl<M: Machine> Inner<M> {
    /// Finds a page or makes an empty one, waiting for room if need be, and for the end of a cut of the file.
    pub(super) async fn pin(self: &Rc<Self>, file: &LogicalFile<M>, page: u64) -> Result<PinnedPage<M>> {
        let key = PageKey { file: file.number, page };
        loop {
            file.cuts.none().await;
            if let Some(pin) = self.pinned(key) {
                return Ok(pin);
            }
            match self.make_room(file.page_bytes()) {
                Room::Made => {
                    let place = self.insert(file, key, false);
                    return Ok(PinnedPage { cache: self.clone(), place });
                }
                Room::Later => self.wait_for_room().await,
                Room::Never(error) => return Err(error),
            }
        }
    }

    /// Pins the page of this key, if it is in the table, in whatever state.
    pub(super) fn pinned(self: &Rc<Self>, key: PageKey) -> Option<PinnedPage<M>> {
        let place = self.table.borrow_mut().pin(key)?;
        Some(PinnedPage { cache: self.clone(), place })
    }

    /// Reads a page, or a part of one, past the page table. To the I/O node a whole page is a block like any other.
    pub(super) async fn fetch_alone(&self, file: &LogicalFile<M>, part: Extent) -> Result<Payload> {
        let _span = self.client.inner.endpoint.machine().notes().span("fetch alone", || about(file, part));
        let data = match part.bytes == file.page_bytes() {
            true => file.file.read_block(part, || Class::Demand).await?,
            false => file.file.read_part_of_block(part).await?,
        };
        // As with a page: what the machine receives into is soon wanted again.
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

    /// Waits until a page may have given way.
    pub(super) async fn wait_for_room(&self) {
        let _span = self.client.inner.endpoint.machine().notes().span("wait for room", || []);
        self.room.wait().await;
    }

    fn make_room(self: &Rc<Self>, bytes: u64) -> Room {
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

    fn insert(&self, file: &LogicalFile<M>, key: PageKey, ahead: bool) -> Place {
        let buffer = self.buffers.try_take(file.page_bytes()).expect("a pool without a bound");
        self.table.borrow_mut().insert(key, buffer, ahead)
    }

    /// Starts to bring in a page that is not there, if there is room for it now and the file is not being cut; on
    /// demand, one that is under way is promoted. Returns whether it is there now, or under way.
    pub(super) fn bring_in(self: &Rc<Self>, file: &Rc<LogicalFile<M>>, page: u64, class: Class) -> bool {
        let key = PageKey { file: file.number, page };
        let found = self.table.borrow().find(key);
        if let Some(place) = found {
            if class == Class::Demand {
                self.promote(file, place);
            }
            return true;
        }
        if !file.cuts.is_empty() || self.make_room(file.page_bytes()) != Room::Made {
            return false;
        }
        let place = self.insert(file, key, true);
        self.start_reading(file, place, 0, class);
        self.table.borrow_mut().unpin(place);
        true
    }

    /// Starts to read a pinned page: what the file has of it, and at least `least` bytes.
    pub(super) fn start_reading(
        self: &Rc<Self>,
        file: &Rc<LogicalFile<M>>,
        place: Place,
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

    /// Notes that a caller waits for a page that is being read. If the read is in the background, and it helps, the I/O
    /// node is told.
    pub(super) fn promote(self: &Rc<Self>, file: &Rc<LogicalFile<M>>, place: Place) {
        let Some(number) = self.table.borrow_mut().promote(place) else { return };
        let offset = self.table.borrow().page(place).key.page * file.page_bytes();
        if self.reads.promote(file.file.home(offset), number) {
            self.tell_to_promote(file, offset);
        }
    }

    fn tell_to_promote(&self, file: &Rc<LogicalFile<M>>, offset: u64) {
        let file = file.clone();
        self.client.inner.endpoint.machine().spawn("promote", async move {
            // If this fails, so does the request that it is about.
            let _ = file.file.promote_block(offset).await;
            Ok(())
        });
    }

    /// Begins to write a page. Returns whether there was anything to write.
    pub(super) fn start_writing(self: &Rc<Self>, place: Place, class: Class) -> bool {
        let begun = self.table.borrow_mut().begin_write(place);
        if begun {
            self.list_for_writing(&[place], class);
        }
        begun
    }

    /// Puts pages whose writing has begun into the write list, and sees to it that there are agents to take them.
    fn list_for_writing(self: &Rc<Self>, places: &[Place], class: Class) {
        for &place in places {
            let file = self.file_of(place);
            if let Some(permit) = self.write_list.put(place, class, file.writes.begin()) {
                let cache = self.clone();
                self.client.inner.endpoint.machine().spawn("write agent", cache.write_listed(permit));
            }
        }
    }

    fn file_of(&self, place: Place) -> Rc<LogicalFile<M>> {
        let number = self.table.borrow().page(place).key.file;
        self.files.get(number).expect("a file with pages to write is not forgotten")
    }

    /// A write agent: writes listed pages until there is none.
    async fn write_listed(self: Rc<Self>, _permit: Permit) -> machine::Result<()> {
        while let Some((place, operation)) = self.write_list.next() {
            self.write_page(place, operation).await;
        }
        Ok(())
    }

    async fn write_page(self: &Rc<Self>, place: Place, operation: OperationInFlight) {
        let file = self.file_of(place);
        // The lease as it is now: the locks may end while the data are in flight.
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
        // A failed write to a file that was removed is no loss.
        let outcome = if file.unlinked.get() { Ok(()) } else { outcome };
        file.failures.note(outcome.clone());
        if outcome.as_ref().is_err_and(|error| error.is_remote(FailureKind::Fenced)) {
            // Others have the file: it is not tried again.
            self.forget_unsent(&file);
        }
        self.write_list.end(place);
        self.table.borrow_mut().finish_write(place, outcome);
        drop(operation);
        self.room.wake_all();
        self.release(&file);
    }

    /// Sends everything dirty of a file, and waits until it has been accepted or has failed. What failed before is
    /// tried again, once. What others write meanwhile is not waited for: they may do so without end.
    pub(super) async fn write_out(self: &Rc<Self>, file: &Rc<LogicalFile<M>>) {
        self.hurry(file);
        let (mut due, mut again) = (self.dirty_pages(file), true);
        loop {
            due.retain(|&key| !self.is_leaving(key, again));
            again = false;
            let Some(pending) = due.last().and_then(|&key| self.table.borrow().pending(key)) else { break };
            pending.wait().await;
        }
        file.writes.begun_before().await;
        let has_left = file.writes.is_empty() && self.table.borrow().unwritten(file.number, false).is_empty();
        if has_left {
            file.length.settle(u64::MAX);
        }
    }

    /// The pages of a file with dirty bytes, also those that are being written without these.
    fn dirty_pages(&self, file: &LogicalFile<M>) -> Vec<PageKey> {
        let table = self.table.borrow();
        let unwritten = table.unwritten(file.number, true).into_iter();
        let pages = unwritten.chain(self.write_list.places()).map(|place| table.page(place));
        pages.filter(|page| page.key.file == file.number && page.is_dirty()).map(|page| page.key).collect()
    }

    /// Begins to write a page that has been dirty, if that is possible now; whether nothing of that is left to be
    /// written then. What could not be written before is tried if it is to be tried again.
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
    fn hurry(&self, file: &Rc<LogicalFile<M>>) {
        let table = self.table.borrow();
        let of_file = |place: Place| table.page(place).key.file == file.number;
        for place in self.write_list.hurry(of_file) {
            self.tell_to_promote(file, table.page(place).key.page * file.page_bytes());
        }
    }

    /// Brings everything written to a file onto the media, what other clients have sent included if `all` says so, and
    /// tells what failed, here or at the I/O nodes.
    pub(super) async fn flush(
        self: &Rc<Self>,
        file: &Rc<LogicalFile<M>>,
        told: &Reported,
        all: bool,
    ) -> Result<()> {
        self.write_out(file).await;
        file.failures.note(self.bring_to_media(file, all).await);
        file.failures.tell(told)
    }

    /// If an I/O node was gone since it accepted data of a file, finds out whether they are lost: nothing else may tell
    /// before a file is closed, or one that is never flushed is read.
    pub(super) async fn look_for_losses(&self, file: &Rc<LogicalFile<M>>) {
        if file.file.may_have_lost() {
            file.failures.note(self.bring_to_media(file, false).await);
        }
    }

    /// Has the I/O nodes bring onto their media what they have of a file, at the size it has here.
    async fn bring_to_media(&self, file: &Rc<LogicalFile<M>>, all: bool) -> Result<()> {
        if file.unlinked.get() {
            return Ok(());
        }
        if file.size_unsent.replace(false) {
            let resized = file.file.truncate(file.length.bytes()).await;
            resized.inspect_err(|_| file.size_unsent.set(true))?;
        }
        if all || file.file.has_unflushed() {
            file.file.flush_of(all).await?;
        }
        Ok(())
    }

    /// Bounds of the windows of a file.
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

/// What is noted of a part of a file.
pub(super) fn about<M: Machine>(file: &LogicalFile<M>, part: Extent) -> [(&'static str, u64); 3] {
    [("file", file.file.id().0), ("offset", part.offset), ("bytes", part.bytes)]
}
