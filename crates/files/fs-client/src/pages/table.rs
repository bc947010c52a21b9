//! The pages of all open files, and the order of their eviction: pure state, without futures.
//!
//! ```text
//!            begin_read                finish_read
//!   (free) ------------> pending read ------------> clean <----------------------.
//!      |                                              | write                    |
//!      | write                                        v         begin_write      | finish_write
//!      '------------------------------------------> dirty ----------------> pending write
//! ```
//!
//! The five states are those of Zhang's PDIOL. A free page is not in the table at all. Each page records which of its
//! bytes are the file's (*valid*) and which of these the I/O nodes do not have yet (*dirty*). So a part of a page can
//! be written without reading the rest, and be read back.
//!
//! *Second Chance*: clean and dirty pages are in one queue. To free space, the table examines the head of the queue. If
//! that page was used since its last examination, it moves to the end of the queue. Otherwise a clean page is evicted,
//! and a dirty one is written first. Pending pages are not in the queue and pinned ones are skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use machine::{Buf, Condition, Payload, RangeSet};
use slab::Slab;

use crate::error::{Error, Result};

/// Identity of a page: the number of its file in this cache, and the page's index in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PageKey {
    pub(super) file: u64,
    pub(super) page: u64,
}

/// Slot of a page in the table. Valid while the page is pinned or pending.
pub(super) type PageSlot = usize;

/// State of a page in the table, with the transfer it waits for, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Its bytes are being read.
    PendingRead,
    /// The I/O nodes have all of it.
    Clean,
    /// Some of its bytes are only at this client.
    Dirty,
    /// Its dirty bytes are in flight to an I/O node, or are queued.
    PendingWrite,
}

/// A page in the table.
pub(super) struct Page {
    pub(super) key: PageKey,
    pub(super) state: State,
    buffer: Buf,
    valid: RangeSet,
    dirty: RangeSet,
    /// The dirty bytes in flight.
    leaving: RangeSet,
    pins: u32,
    /// True if used since it was last examined for eviction.
    referenced: bool,
    /// True if prefetched and not used yet.
    ahead: bool,
    /// Number of its background read, if one is in flight.
    background: Option<u64>,
    /// True if it is no longer found by its key. It is removed as soon as it is neither pending nor pinned.
    forgotten: bool,
    /// True if the data being read may be stale when they arrive.
    stale: bool,
    /// Its position in the queue; `None` if it is not queued.
    turn: Option<i64>,
    /// Failure of the last read, until a caller tries again.
    read_failure: Option<Box<Error>>,
    /// Failure of the last write. The page is not written again until a caller requests it.
    write_failure: Option<Box<Error>>,
    /// Wakes tasks when a transfer of the page ends.
    settled: Rc<Condition>,
}

impl Page {
    /// Returns the first byte from `from` on that the I/O node has not accepted, if any.
    pub(super) fn first_unsent(&self, from: u64) -> Option<u64> {
        let sets = [&self.dirty, &self.leaving];
        sets.into_iter().filter_map(|set| set.within(&(from..u64::MAX)).next()).map(|run| run.start).min()
    }

    /// Returns the end of the written bytes that the I/O nodes have not accepted, if any.
    pub(super) fn unsent_end(&self) -> Option<u64> {
        let sets = [&self.dirty, &self.leaving];
        sets.into_iter().filter_map(|set| set.ranges().last()).map(|run| run.end).max()
    }

    /// Returns true if it has dirty bytes that are not in flight.
    pub(super) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Returns true if its last write failed.
    pub(super) fn has_failed(&self) -> bool {
        self.write_failure.is_some()
    }

    fn slices(&self, set: &RangeSet) -> Vec<(u64, Payload)> {
        set.ranges().map(|run| (run.start, self.buffer.slice(run))).collect()
    }
}

/// Result of a reader's lookup of a page.
pub(super) enum PageLookup {
    /// The bytes.
    Here(Payload),
    /// The page is being read, or is unreadable during a write; the condition is woken at the end of the transfer.
    Pending(Rc<Condition>),
    /// Bytes are missing, and not being read.
    Missing,
    /// The page could not be read.
    Failed(Box<Error>),
}

/// Result of freeing space.
#[derive(Debug, PartialEq)]
pub(super) enum EvictionResult {
    /// There is space now.
    Made,
    /// There will be space when pages are no longer pending or in use.
    Later,
    /// There will be no space: the remaining pages cannot be written, for this reason.
    Never(Box<Error>),
}

/// Limit of dirty pages written at once when the table is full: enough to keep several disks busy, few enough to leave
/// temporary files in memory.
const WRITES_AT_ONCE: usize = 8;

/// A bounded set of pages.
pub(super) struct PageTable {
    bytes_max: u64,
    bytes: u64,
    pages: Slab<Page>,
    by_key: BTreeMap<PageKey, PageSlot>,
    /// The queue of clean and dirty pages, by position.
    line: BTreeMap<i64, PageSlot>,
    first_turn: i64,
    last_turn: i64,
    /// Keys of the dirty pages that are not being written.
    dirty: BTreeSet<PageKey>,
    pending_writes: usize,
    pending_write_bytes: u64,
    /// Files of prefetched pages that were dropped before their use.
    wasted: Vec<u64>,
}

impl PageTable {
    /// Returns a table for pages of `bytes_max` bytes in total.
    pub(super) fn new(bytes_max: u64) -> Self {
        PageTable {
            bytes_max,
            bytes: 0,
            pages: Slab::new(),
            by_key: BTreeMap::new(),
            line: BTreeMap::new(),
            first_turn: 0,
            last_turn: 0,
            dirty: BTreeSet::new(),
            pending_writes: 0,
            pending_write_bytes: 0,
            wasted: Vec::new(),
        }
    }

    /// Returns the size in bytes of the pages in the table.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the size in bytes of the pages that are being written or are queued for it.
    pub(super) fn pending_write_bytes(&self) -> u64 {
        self.pending_write_bytes
    }

    /// Returns the slot of a page. If the page is neither pinned nor pending, any call that frees space can drop it.
    pub(super) fn find(&self, key: PageKey) -> Option<PageSlot> {
        self.by_key.get(&key).copied()
    }

    /// Returns true if the first `bytes` bytes of a page are usable without waiting.
    pub(super) fn is_here(&self, key: PageKey, bytes: u64) -> bool {
        self.by_key.get(&key).is_some_and(|&place| self.pages[place].valid.contains(&(0..bytes)))
    }

    pub(super) fn page(&self, place: PageSlot) -> &Page {
        &self.pages[place]
    }

    /// Finds a page and pins it.
    pub(super) fn pin(&mut self, key: PageKey) -> Option<PageSlot> {
        let place = *self.by_key.get(&key)?;
        self.pages[place].pins += 1;
        Some(place)
    }

    pub(super) fn unpin(&mut self, place: PageSlot) {
        self.pages[place].pins -= 1;
        self.drop_if_done(place);
    }

    /// Takes the files of pages dropped unused, one entry for each page.
    pub(super) fn take_wasted(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.wasted)
    }

    /// Frees space for a page of `bytes` by dropping clean pages. Begins to write the dirty pages it examines; the
    /// caller must write the pages in `to_write`, even without space.
    pub(super) fn make_room(&mut self, bytes: u64, to_write: &mut Vec<PageSlot>) -> EvictionResult {
        let mut failure = None;
        // Two passes over the queue: the first clears each page's reference, the second finds pages to drop.
        let mut looks = 2 * self.line.len();
        while self.bytes + bytes > self.bytes_max && looks > 0 {
            looks -= 1;
            let Some((_, place)) = self.line.pop_first() else { break };
            let page = &mut self.pages[place];
            page.turn = None;
            if page.pins > 0 || std::mem::take(&mut page.referenced) {
                self.stand_at_end(place);
            } else if page.state == State::Clean {
                self.remove(place);
            } else if let Some(error) = &page.write_failure {
                failure.get_or_insert(error.clone());
                self.stand_at_end(place);
            } else if self.pending_writes < WRITES_AT_ONCE {
                self.begin_write(place);
                to_write.push(place);
            } else {
                self.stand_in_front(place);
                break;
            }
        }
        if self.bytes + bytes <= self.bytes_max {
            return EvictionResult::Made;
        }
        let nothing_moves = || self.pages.iter().all(|(_, page)| page.turn.is_some() && page.pins == 0);
        match failure {
            Some(error) if to_write.is_empty() && nothing_moves() => EvictionResult::Never(error),
            _ => EvictionResult::Later,
        }
    }

    /// Adds an empty, pinned page to the table; `ahead` if it is prefetched. Call [`make_room`](Self::make_room) first.
    pub(super) fn insert(&mut self, key: PageKey, buffer: Buf, ahead: bool) -> PageSlot {
        self.bytes += buffer.len();
        assert!(self.bytes <= self.bytes_max, "the caller has made room");
        let place = self.pages.insert(Page {
            key,
            state: State::Clean,
            buffer,
            valid: RangeSet::default(),
            dirty: RangeSet::default(),
            leaving: RangeSet::default(),
            pins: 1,
            referenced: true,
            ahead,
            background: None,
            forgotten: false,
            stale: false,
            turn: None,
            read_failure: None,
            write_failure: None,
            settled: Rc::default(),
        });
        let before = self.by_key.insert(key, place);
        assert!(before.is_none(), "one page of a key");
        self.stand_at_end(place);
        place
    }

    /// Uses `range` of a pinned page, if it is valid.
    pub(super) fn look(&mut self, place: PageSlot, range: &Range<u64>) -> PageLookup {
        let page = &mut self.pages[place];
        (page.referenced, page.ahead) = (true, false);
        if page.valid.contains(range) {
            PageLookup::Here(page.buffer.slice(range.clone()))
        } else if matches!(page.state, State::PendingRead | State::PendingWrite) {
            PageLookup::Pending(page.settled.clone())
        } else if let Some(error) = page.read_failure.take() {
            PageLookup::Failed(error)
        } else {
            PageLookup::Missing
        }
    }

    /// Writes data to a pinned page. Returns true if the page is now dirty in one range up to its last byte, so that
    /// its transfer can begin.
    pub(super) fn write(&mut self, place: PageSlot, at: u64, data: Payload) -> bool {
        let page = &mut self.pages[place];
        let (range, bytes) = (at..at + data.len(), page.buffer.len());
        if range == (0..bytes) {
            page.buffer.adopt(data);
        } else {
            page.buffer.put(at, &data);
        }
        (page.referenced, page.ahead) = (true, false);
        page.valid.insert(range.clone());
        page.dirty.insert(range);
        if page.state == State::Clean {
            page.state = State::Dirty;
        }
        if page.state != State::PendingWrite {
            self.dirty.insert(page.key);
        }
        page.state == State::Dirty
            && page.write_failure.is_none()
            && page.dirty.len() == 1
            && page.dirty.span().is_some_and(|dirty| dirty.end == bytes)
    }

    /// Begins to read a page, with the number of the read if in the background. The page stays in the table until
    /// [`finish_read`](Self::finish_read).
    pub(super) fn begin_read(&mut self, place: PageSlot, background: Option<u64>) {
        self.leave_line(place);
        let page = &mut self.pages[place];
        debug_assert!(matches!(page.state, State::Clean | State::Dirty), "read once at a time");
        page.state = State::PendingRead;
        (page.background, page.read_failure) = (background, None);
    }

    /// Returns the number of a page's background read, which is at demand priority from now on.
    pub(super) fn promote(&mut self, place: PageSlot) -> Option<u64> {
        self.pages[place].background.take()
    }

    /// Completes a read with the bytes from the page's beginning on, or with a failure. Bytes written to the page
    /// during the read take precedence.
    pub(super) fn finish_read(&mut self, place: PageSlot, outcome: Result<Payload>) {
        let page = &mut self.pages[place];
        let stale = std::mem::take(&mut page.stale);
        page.background = None;
        match outcome {
            Ok(_) if stale => {
                machine::sometimes!("a read page is out of date on arrival");
            }
            Ok(data) => {
                let bytes = data.len();
                let written: Vec<(u64, Payload)> = page.slices(&page.valid);
                page.buffer.adopt(data);
                for (at, data) in written {
                    page.buffer.put(at, &data);
                }
                page.valid.insert(0..bytes);
            }
            Err(error) => page.read_failure = Some(error),
        }
        self.settle(place);
    }

    /// Begins to write a page's dirty bytes. The page stays in the table until [`finish_write`](Self::finish_write).
    /// Returns false, without effect, if the page is clean or already has a transfer in flight.
    pub(super) fn begin_write(&mut self, place: PageSlot) -> bool {
        if self.pages[place].state != State::Dirty {
            return false;
        }
        self.leave_line(place);
        let page = &mut self.pages[place];
        page.state = State::PendingWrite;
        page.write_failure = None;
        self.pending_writes += 1;
        self.pending_write_bytes += page.buffer.len();
        self.dirty.remove(&page.key);
        true
    }

    /// Returns the dirty bytes of a page whose write has begun, each run with its offset in the page. Bytes written to
    /// the page from now on are dirty again.
    pub(super) fn take_dirty(&mut self, place: PageSlot) -> Vec<(u64, Payload)> {
        let page = &mut self.pages[place];
        page.leaving = std::mem::take(&mut page.dirty);
        page.slices(&page.leaving)
    }

    /// Completes a write of a page. After a failure its bytes are dirty again, and stay until a caller requests a
    /// retry.
    pub(super) fn finish_write(&mut self, place: PageSlot, outcome: Result<()>) {
        let page = &mut self.pages[place];
        debug_assert_eq!(page.state, State::PendingWrite, "begun before");
        self.pending_writes -= 1;
        self.pending_write_bytes -= page.buffer.len();
        let leaving = std::mem::take(&mut page.leaving);
        machine::sometimes!("a failed write belongs to a forgotten page", if outcome.is_err() && page.forgotten);
        // A forgotten page has nothing left to write.
        if let Err(error) = outcome
            && !page.forgotten
        {
            page.dirty.extend(leaving.ranges());
            page.write_failure = Some(error);
        }
        self.settle(place);
    }

    /// Returns the pages of a file with dirty bytes not in flight, in order. They include pages that cannot be written
    /// yet because they are being read, and with `failed_too` those whose last write failed.
    pub(super) fn unwritten(&self, file: u64, failed_too: bool) -> Vec<PageSlot> {
        let keys = PageKey { file, page: 0 }..=PageKey { file, page: u64::MAX };
        let places = self.dirty.range(keys).map(|key| self.by_key[key]);
        places.filter(|&place| failed_too || self.pages[place].write_failure.is_none()).collect()
    }

    /// Forgets all pages of a file from index `first` on, including dirty ones. A page that is pending or in use is no
    /// longer found and is removed later; its unsent bytes are discarded.
    pub(super) fn forget(&mut self, file: u64, first: u64) {
        for place in self.places(file, first..u64::MAX) {
            let page = &mut self.pages[place];
            page.forgotten = true;
            page.dirty = RangeSet::default();
            page.write_failure = None;
            self.dirty.remove(&page.key);
            self.by_key.remove(&page.key);
            if page.state == State::Dirty {
                page.state = State::Clean;
            }
            self.drop_if_done(place);
        }
    }

    /// Forgets the bytes of a file that others may have changed: all data from the I/O nodes. Unsent bytes stay.
    pub(super) fn forget_clean(&mut self, file: u64) {
        for place in self.places(file, 0..u64::MAX) {
            let page = &mut self.pages[place];
            match page.state {
                State::PendingRead if !page.dirty.is_empty() => page.stale = true,
                State::Clean | State::PendingRead => {
                    page.forgotten = true;
                    self.by_key.remove(&page.key);
                    self.drop_if_done(place);
                }
                State::Dirty | State::PendingWrite => {
                    page.valid = page.dirty.clone();
                    page.valid.extend(page.leaving.ranges());
                }
            }
        }
    }

    /// Drops the clean ones of these pages of a file. The others become the next to be evicted.
    pub(super) fn evict_pages(&mut self, file: u64, pages: Range<u64>) {
        for place in self.places(file, pages) {
            let page = &mut self.pages[place];
            page.referenced = false;
            if page.state == State::Clean && page.pins == 0 {
                page.ahead = false;
                self.remove(place);
            }
        }
    }

    /// Truncates a page to its first `bytes`. The page must not be pending.
    pub(super) fn cut(&mut self, key: PageKey, bytes: u64) {
        let Some(&place) = self.by_key.get(&key) else { return };
        let page = &mut self.pages[place];
        page.valid.truncate(bytes);
        page.dirty.truncate(bytes);
        if page.dirty.is_empty() {
            page.state = State::Clean;
            self.dirty.remove(&key);
        }
        self.drop_if_done(place);
    }

    /// Returns the condition that is woken at the end of the page's transfer, if one is in flight.
    pub(super) fn pending(&self, key: PageKey) -> Option<Rc<Condition>> {
        let page = &self.pages[*self.by_key.get(&key)?];
        let pending = matches!(page.state, State::PendingRead | State::PendingWrite);
        pending.then(|| page.settled.clone())
    }

    fn places(&self, file: u64, pages: Range<u64>) -> Vec<PageSlot> {
        let keys = PageKey { file, page: pages.start }..PageKey { file, page: pages.end.max(pages.start) };
        self.by_key.range(keys).map(|(_, &place)| place).collect()
    }

    /// Returns a page to the queue after a transfer.
    fn settle(&mut self, place: PageSlot) {
        let page = &mut self.pages[place];
        page.settled.wake_all();
        page.state = if page.dirty.is_empty() { State::Clean } else { State::Dirty };
        if page.forgotten || page.valid.is_empty() {
            self.drop_if_done(place);
        }
        let Some(page) = self.pages.get(place) else { return };
        if page.state == State::Dirty {
            self.dirty.insert(page.key);
        }
        // Written or not, a page unused since its last examination is the next to be evicted.
        if page.referenced { self.stand_at_end(place) } else { self.stand_in_front(place) }
    }

    /// Removes a page from the table if it is useless, unpinned and not pending.
    fn drop_if_done(&mut self, place: PageSlot) {
        let page = &self.pages[place];
        let idle = page.pins == 0 && matches!(page.state, State::Clean | State::Dirty);
        if idle && (page.forgotten || page.valid.is_empty()) {
            self.remove(place);
        }
    }

    fn remove(&mut self, place: PageSlot) {
        self.leave_line(place);
        let page = self.pages.remove(place);
        if !page.forgotten {
            self.by_key.remove(&page.key);
            self.dirty.remove(&page.key);
        }
        self.bytes -= page.buffer.len();
        if page.ahead {
            self.wasted.push(page.key.file);
        }
    }

    fn stand_at_end(&mut self, place: PageSlot) {
        self.last_turn += 1;
        self.stand(place, self.last_turn);
    }

    fn stand_in_front(&mut self, place: PageSlot) {
        self.first_turn -= 1;
        self.stand(place, self.first_turn);
    }

    fn stand(&mut self, place: PageSlot, turn: i64) {
        debug_assert!(self.pages[place].turn.is_none(), "stands in the line once");
        self.pages[place].turn = Some(turn);
        self.line.insert(turn, place);
    }

    fn leave_line(&mut self, place: PageSlot) {
        if let Some(turn) = self.pages[place].turn.take() {
            self.line.remove(&turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::BufferPool;
    use proptest::prelude::*;

    const PAGE: u64 = 8;

    fn key(page: u64) -> PageKey {
        PageKey { file: 1, page }
    }

    fn buffer() -> Buf {
        BufferPool::new(PAGE).try_take(PAGE).expect("room")
    }

    /// Adds a page to a table with enough space. Reads it if it is not written to.
    fn enter(table: &mut PageTable, page: u64, written: Option<Range<u64>>) {
        let place = table.insert(key(page), buffer(), false);
        match written {
            Some(range) => {
                table.write(place, range.start, Payload::zeros(range.end - range.start));
            }
            None => {
                table.begin_read(place, None);
                table.finish_read(place, Ok(Payload::zeros(PAGE)));
            }
        }
        table.unpin(place);
    }

    fn table_of(pages: &[u64]) -> PageTable {
        let mut table = PageTable::new(pages.len() as u64 * PAGE);
        for &page in pages {
            enter(&mut table, page, None);
        }
        table
    }

    fn there(table: &PageTable, pages: Range<u64>) -> Vec<u64> {
        pages.filter(|&page| table.find(key(page)).is_some()).collect()
    }

    fn touch(table: &mut PageTable, page: u64) {
        let place = table.pin(key(page)).expect("there");
        assert!(matches!(table.look(place, &(0..1)), PageLookup::Here(_)));
        table.unpin(place);
    }

    fn failure() -> Box<Error> {
        Error::Invalid("no".into()).into()
    }

    #[test]
    fn a_recently_used_page_gets_a_second_chance() {
        let mut table = table_of(&[1, 2, 3]);
        let mut none = Vec::new();
        assert_eq!(table.make_room(PAGE, &mut none), EvictionResult::Made);
        assert_eq!(there(&table, 0..9), [2, 3], "all had been used, so the first goes");
        enter(&mut table, 4, None);
        touch(&mut table, 2);
        assert_eq!(table.make_room(PAGE, &mut none), EvictionResult::Made);
        assert_eq!(there(&table, 0..9), [2, 4], "3 was the first not used since");
        assert!(none.is_empty());
    }

    #[test]
    fn pinned_and_pending_pages_are_not_evicted() {
        let mut table = table_of(&[1, 2]);
        let pinned = table.pin(key(1)).expect("there");
        let reading = table.pin(key(2)).expect("there");
        table.begin_read(reading, None);
        table.unpin(reading);
        assert_eq!(table.make_room(PAGE, &mut Vec::new()), EvictionResult::Later);
        table.finish_read(reading, Ok(Payload::zeros(PAGE)));
        assert_eq!(table.make_room(PAGE, &mut Vec::new()), EvictionResult::Made);
        assert_eq!(there(&table, 0..9), [1]);
        table.unpin(pinned);
    }

    #[test]
    fn a_dirty_page_is_written_before_eviction() {
        let mut table = PageTable::new(PAGE);
        enter(&mut table, 1, Some(2..5));
        let mut to_write = Vec::new();
        assert_eq!(table.make_room(PAGE, &mut to_write), EvictionResult::Later);
        let runs: Vec<_> = table.take_dirty(to_write[0]).iter().map(|(at, data)| (*at, data.len())).collect();
        assert_eq!(runs, [(2, 3)], "only the written bytes");
        assert_eq!(table.make_room(PAGE, &mut Vec::new()), EvictionResult::Later);
        table.finish_write(to_write[0], Ok(()));
        assert_eq!(table.make_room(PAGE, &mut Vec::new()), EvictionResult::Made);
        assert!(table.find(key(1)).is_none());
    }

    #[test]
    fn a_page_modified_during_its_write_back_is_dirty_again() {
        let mut table = PageTable::new(PAGE);
        enter(&mut table, 1, Some(0..PAGE));
        let place = table.unwritten(1, false)[0];
        assert!(table.begin_write(place));
        table.take_dirty(place);
        let pinned = table.pin(key(1)).expect("there");
        assert!(!table.write(pinned, 3, Payload::zeros(1)));
        table.unpin(pinned);
        table.finish_write(place, Ok(()));
        assert_eq!(table.unwritten(1, false), [place]);
    }

    #[test]
    fn a_page_whose_write_failed_stays_dirty_and_is_not_evicted() {
        let mut table = PageTable::new(PAGE);
        enter(&mut table, 1, Some(0..3));
        let place = table.unwritten(1, false)[0];
        table.begin_write(place);
        table.take_dirty(place);
        table.finish_write(place, Err(failure()));
        assert_eq!(table.make_room(PAGE, &mut Vec::new()), EvictionResult::Never(failure()));
        assert!(table.unwritten(1, false).is_empty(), "not retried without a request");
        assert_eq!(table.unwritten(1, true), [place]);
        assert!(table.begin_write(place));
        assert_eq!(table.take_dirty(place).len(), 1, "it still has its bytes");
    }

    #[test]
    fn a_forgotten_page_whose_write_failed_is_not_written_again() {
        let mut table = PageTable::new(PAGE);
        enter(&mut table, 1, Some(0..3));
        let place = table.pin(key(1)).expect("there");
        table.begin_write(place);
        table.take_dirty(place);
        table.forget(1, 0);
        table.finish_write(place, Err(failure()));
        assert!(table.unwritten(1, true).is_empty());
        table.unpin(place);
        assert_eq!(table.bytes(), 0);
    }

    #[test]
    fn a_read_fills_a_page_around_its_dirty_bytes() {
        let mut table = PageTable::new(PAGE);
        let place = table.insert(key(1), buffer(), false);
        table.write(place, 2, Payload::from(vec![9, 9]));
        assert!(matches!(table.look(place, &(0..4)), PageLookup::Missing));
        table.begin_read(place, None);
        table.write(place, 6, Payload::from(vec![8]));
        table.finish_read(place, Ok(Payload::from(vec![1; 7])));
        let PageLookup::Here(data) = table.look(place, &(0..7)) else { panic!("it has been read") };
        assert_eq!(data.to_vec(), Some(vec![1, 1, 9, 9, 1, 1, 8]));
        assert!(matches!(table.look(place, &(0..8)), PageLookup::Missing), "the file had no more");
        assert_eq!(table.page(place).state, State::Dirty);
    }

    #[test]
    fn a_page_being_written_is_not_read_at_the_same_time() {
        let mut table = PageTable::new(PAGE);
        let place = table.insert(key(1), buffer(), false);
        table.write(place, 2, Payload::zeros(2));
        table.begin_write(place);
        assert!(matches!(table.look(place, &(0..8)), PageLookup::Pending(_)));
        assert!(matches!(table.look(place, &(2..4)), PageLookup::Here(_)), "cached bytes can be used");
    }

    #[test]
    fn clean_bytes_are_forgotten_and_dirty_bytes_are_not() {
        let mut table = table_of(&[1, 2]);
        let place = table.pin(key(2)).expect("there");
        table.write(place, 3, Payload::zeros(2));
        table.forget_clean(1);
        assert_eq!(there(&table, 0..9), [2]);
        assert!(matches!(table.look(place, &(3..5)), PageLookup::Here(_)));
        assert!(matches!(table.look(place, &(0..1)), PageLookup::Missing));
    }

    #[test]
    fn bytes_in_flight_during_an_invalidation_are_discarded() {
        let mut table = PageTable::new(2 * PAGE);
        let (alone, written) = (table.insert(key(1), buffer(), false), table.insert(key(2), buffer(), false));
        table.write(written, 0, Payload::from(vec![9]));
        for place in [alone, written] {
            table.begin_read(place, None);
        }
        table.forget_clean(1);
        for place in [alone, written] {
            table.finish_read(place, Ok(Payload::from(vec![1; PAGE as usize])));
        }
        assert_eq!(there(&table, 0..9), [2]);
        assert!(matches!(table.look(written, &(0..1)), PageLookup::Here(_)));
        assert!(matches!(table.look(written, &(1..2)), PageLookup::Missing));
    }

    #[test]
    fn prefetched_pages_evicted_before_use_are_reported() {
        let mut table = PageTable::new(PAGE);
        let place = table.insert(key(1), buffer(), true);
        table.begin_read(place, None);
        table.finish_read(place, Ok(Payload::zeros(PAGE)));
        table.unpin(place);
        assert_eq!(table.make_room(PAGE, &mut Vec::new()), EvictionResult::Made);
        assert_eq!(table.take_wasted(), [1]);
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Read(u64),
        Write(u64, u64, u64),
        Finish { fail: bool },
        Flush,
        Forget(u64),
        ForgetClean,
        Pin(u64),
        Unpin,
    }

    fn step() -> impl Strategy<Value = Step> {
        let page = 0u64..9;
        prop_oneof![
            4 => page.clone().prop_map(Step::Read),
            4 => (page.clone(), 0..PAGE, 1..=PAGE).prop_map(|(page, at, bytes)| Step::Write(page, at, bytes)),
            4 => prop::bool::weighted(0.1).prop_map(|fail| Step::Finish { fail }),
            1 => Just(Step::Flush),
            1 => page.clone().prop_map(Step::Forget),
            1 => Just(Step::ForgetClean),
            1 => page.prop_map(Step::Pin),
            2 => Just(Step::Unpin),
        ]
    }

    /// Runs of bytes with their offsets in a page.
    type Runs = Vec<(u64, Payload)>;

    /// Model of the pages at an I/O node and an application, to compare with the table.
    #[derive(Default)]
    struct World {
        reads: Vec<PageSlot>,
        writes: Vec<(PageSlot, u64, Runs)>,
        to_write: Vec<PageSlot>,
        pinned: Vec<PageSlot>,
        sent: BTreeMap<u64, [u8; PAGE as usize]>,
        written: BTreeMap<u64, [u8; PAGE as usize]>,
        stamp: u8,
    }

    impl World {
        fn find(&mut self, table: &mut PageTable, page: u64) -> Option<PageSlot> {
            let found = table.pin(key(page));
            if found.is_some() {
                return found;
            }
            let room = table.make_room(PAGE, &mut self.to_write);
            (room == EvictionResult::Made).then(|| table.insert(key(page), buffer(), false))
        }

        fn take(&mut self, table: &mut PageTable, step: Step) {
            match step {
                Step::Read(page) => {
                    let Some(place) = self.find(table, page) else { return };
                    match table.look(place, &(0..PAGE)) {
                        PageLookup::Missing => {
                            table.begin_read(place, None);
                            self.reads.push(place);
                        }
                        PageLookup::Here(data) => {
                            let expected = self.written.get(&page).copied().unwrap_or_default();
                            assert_eq!(data.to_vec(), Some(expected.to_vec()), "page {page}");
                        }
                        PageLookup::Pending(_) | PageLookup::Failed(_) => {}
                    }
                    table.unpin(place);
                }
                Step::Write(page, at, bytes) => {
                    let Some(place) = self.find(table, page) else { return };
                    self.stamp = self.stamp.wrapping_add(1);
                    let (bytes, page) = (bytes.min(PAGE - at), self.written.entry(page).or_default());
                    page[at as usize..(at + bytes) as usize].fill(self.stamp);
                    table.write(place, at, Payload::from(vec![self.stamp; bytes as usize]));
                    table.unpin(place);
                }
                Step::Finish { fail } => self.finish(table, fail),
                Step::Flush => {
                    for place in table.unwritten(1, true) {
                        if table.begin_write(place) {
                            self.to_write.push(place);
                        }
                    }
                }
                Step::Forget(first) => {
                    table.forget(1, first);
                    // As for a truncation: unsent bytes are lost on purpose.
                    while !(self.reads.is_empty() && self.writes.is_empty() && self.to_write.is_empty()) {
                        self.finish(table, false);
                    }
                    self.sent.split_off(&first);
                    self.written.split_off(&first);
                }
                Step::ForgetClean => table.forget_clean(1),
                Step::Pin(page) => self.pinned.extend(table.pin(key(page))),
                Step::Unpin => self.pinned.pop().into_iter().for_each(|place| table.unpin(place)),
            }
        }

        /// Completes a transfer, after beginning a requested one.
        fn finish(&mut self, table: &mut PageTable, fail: bool) {
            if let Some(place) = self.to_write.pop() {
                self.writes.push((place, table.page(place).key.page, table.take_dirty(place)));
            }
            if let Some(place) = self.reads.pop() {
                let page = table.page(place).key.page;
                let sent = self.sent.get(&page).copied().unwrap_or_default();
                table
                    .finish_read(place, if fail { Err(failure()) } else { Ok(Payload::from(sent.to_vec())) });
            } else if let Some((place, page, runs)) = self.writes.pop() {
                for (at, data) in runs.iter().filter(|_| !fail) {
                    let sent = &mut self.sent.entry(page).or_default()[*at as usize..];
                    assert!(data.copy_to(&mut sent[..data.len() as usize]));
                }
                table.finish_write(place, if fail { Err(failure()) } else { Ok(()) });
            }
        }
    }

    proptest! {
        #[test]
        fn the_table_keeps_its_limit_and_loses_no_write(
            pages in 1u64..5, steps in prop::collection::vec(step(), 1..200),
        ) {
            let (mut table, mut world) = (PageTable::new(pages * PAGE), World::default());
            for step in steps {
                world.take(&mut table, step);
                prop_assert!(table.bytes() <= pages * PAGE);
                prop_assert_eq!(table.pages.len() as u64 * PAGE, table.bytes());
                for (_, page) in &table.pages {
                    let pending = matches!(page.state, State::PendingRead | State::PendingWrite);
                    prop_assert_eq!(page.turn.is_none(), pending, "only pending pages are not in the queue");
                    prop_assert_eq!(page.state == State::Clean, !pending && page.dirty.is_empty());
                    let listed = !page.dirty.is_empty() && page.state != State::PendingWrite;
                    prop_assert_eq!(table.dirty.contains(&page.key) && !page.forgotten, listed);
                }
            }
            // In the end all writes have been sent, and the I/O nodes have the same bytes as the application.
            for _ in 0..3 {
                world.take(&mut table, Step::Flush);
                while !(world.reads.is_empty() && world.writes.is_empty() && world.to_write.is_empty()) {
                    world.finish(&mut table, false);
                }
            }
            prop_assert_eq!(world.sent, world.written);
        }
    }
}
