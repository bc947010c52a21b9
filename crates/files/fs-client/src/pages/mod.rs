//! The page cache: it keeps the pages of files that a sequential program needs in the memory of its client.
//!
//! ```text
//!   PagedFile: read, write          PagedFile: read, write
//!        \                              /
//!         window: pages to fetch       /
//!          \                          /
//!       page table: all pages of all open files, one bound, Second Chance
//!          |  a task for each page            |  write agents
//!          v  that is read                    v  send dirty pages in order
//!                  File: block requests to the I/O nodes
//! ```
//!
//! Its parts. The header of each file states the rules of the part:
//!
//! - this file: the cache, and opening of files.
//! - `paged_file.rs`: an open file; start with this file.
//! - `files.rs`: the open files, the state that their handles share, and their lengths.
//! - `failures.rs`: failed writes of a file, and the handles that have not reported them.
//! - `table.rs`: the pages, the state of each, and the order of eviction.
//! - `window.rs`: selects pages to prefetch.
//! - `background_reads.rs`: the background reads in flight, and their promotion at I/O nodes.
//! - `write_list.rs`: the queue of dirty pages to send, and the number of write agents.
//! - `transfer.rs`: reads and writes pages, as the other parts decide.
//!
//! A page is a block of the file, so it is on one disk. The size limit applies to the pages in the table: a `Payload`
//! that the application has read keeps its memory as long as the application keeps the payload.
//!
//! The memory of a page belongs to the cache. A machine receives data into memory of a limited pool. If pages kept this
//! memory, they would exhaust the pool, and the machine could receive no more messages. So a page *adopts* the data
//! that fill it ([`machine::Buf::adopt`]): the pool gets its memory back before the next message needs it.

mod background_reads;
mod failures;
mod files;
mod paged_file;
mod table;
mod transfer;
mod window;
mod write_list;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use layout::Striping;
use machine::{BufferPool, Condition, Duration, Machine, Payload};

pub(super) use paged_file::PagesMark;
pub use paged_file::{Advice, PagedFile};
pub use window::Prefetch;

use super::{Client, File, NumberedFile};
use crate::error::{Error, Result};
use crate::file::FlushScope;
use crate::protocol::FileId;
use background_reads::BackgroundReads;
use files::{Files, LogicalFile};
use table::PageTable;
use write_list::WriteList;

/// Settings of a page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCacheSettings {
    /// Maximum size of the kept pages, in bytes. At least one page of each open file must fit.
    pub bytes: u64,
    /// Policy of prefetching. A window is never larger than half of the cache.
    pub prefetch: Prefetch,
    /// True if a write returns while pages are still in flight to the I/O nodes. Otherwise each write blocks until the
    /// I/O nodes have accepted its bytes.
    pub write_behind: bool,
    /// Time after which a write to a file of a namespace is sent, and reported to the metadata server, unless it was
    /// sent before, by a flush or because its page is full. If `None`, the write waits until it is flushed, its file is
    /// closed, or the page is evicted.
    pub send_parts_after: Option<Duration>,
}

impl Default for PageCacheSettings {
    fn default() -> Self {
        PageCacheSettings {
            bytes: 256 << 20,
            prefetch: Prefetch::Adaptive,
            write_behind: true,
            send_parts_after: None,
        }
    }
}

/// A cache of pages between one client and its applications. A clone is another handle on the same cache.
pub struct PageCache<M: Machine> {
    inner: Rc<Inner<M>>,
}

impl<M: Machine> Clone for PageCache<M> {
    fn clone(&self) -> Self {
        PageCache { inner: self.inner.clone() }
    }
}

struct Inner<M: Machine> {
    client: Client<M>,
    settings: PageCacheSettings,
    table: RefCell<PageTable>,
    /// Pool that recycles the memory of pages. It needs no limit, since the table has a limit.
    buffers: BufferPool,
    /// Condition that is woken when a page may have become evictable.
    room: Condition,
    files: Files<M>,
    reads: BackgroundReads,
    write_list: WriteList,
    counts: Cell<PageCacheCounts>,
}

/// Statistics of the programs' reads of pages since the creation of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCacheCounts {
    /// Number of reads of a page in the cache.
    pub hits: u64,
    /// Number of reads that waited for a page, including pages that were already in flight.
    pub misses: u64,
    /// Number of bytes of hits.
    pub hit_bytes: u64,
    /// Number of bytes of misses.
    pub missed_bytes: u64,
}

impl<M: Machine> PageCache<M> {
    /// Returns an empty cache in front of `client`.
    pub fn new(client: Client<M>, settings: PageCacheSettings) -> Self {
        let write_agents = transfer::WRITES_PER_DISK * u64::from(client.disks());
        PageCache {
            inner: Rc::new(Inner {
                client,
                settings,
                table: RefCell::new(PageTable::new(settings.bytes)),
                buffers: BufferPool::new(u64::MAX),
                room: Condition::new(),
                files: Files::new(),
                reads: BackgroundReads::default(),
                write_list: WriteList::new(write_agents),
                counts: Cell::default(),
            }),
        }
    }

    /// Returns the client behind the cache, for uncached operations: names, sizes, collective operations.
    pub fn client(&self) -> &Client<M> {
        &self.inner.client
    }

    /// Returns the settings of the cache.
    pub fn settings(&self) -> PageCacheSettings {
        self.inner.settings
    }

    /// Returns the size in bytes of the pages in the cache.
    pub fn bytes(&self) -> u64 {
        self.inner.table.borrow().bytes()
    }

    /// Returns the statistics of reads.
    pub fn counts(&self) -> PageCacheCounts {
        self.inner.counts.get()
    }

    /// Wraps bytes to be written as a payload. When the payload is no longer used, the cache keeps the memory for
    /// [`spare_memory`](Self::spare_memory).
    pub fn take_in(&self, bytes: Vec<u8>) -> Payload {
        let length = bytes.len() as u64;
        let mut buffer = self.inner.buffers.try_take(length).expect("a pool without a bound");
        buffer.fill_memory(bytes);
        buffer.slice(0..length)
    }

    /// Returns an empty vector with capacity for `bytes` bytes, from recycled memory if possible.
    pub fn spare_memory(&self, bytes: usize) -> Vec<u8> {
        self.inner.buffers.spare_memory(bytes)
    }

    /// Opens a file by its number, as [`Client::numbered`] does. All handles of the file in this cache share its pages
    /// and its length. A caller that opens the file after changes by other clients must [report the
    /// changes](PagedFile::note_changed).
    pub async fn open_numbered(&self, file: NumberedFile) -> Result<PagedFile<M>> {
        let (number, bytes) = (file.number, file.bytes);
        if let Some(known) = self.inner.files.known(number) {
            known.note_reported_bytes(bytes);
            return Ok(PagedFile::new(self.inner.clone(), known));
        }
        let file = self.inner.client.numbered(file).await?;
        // Another task may have opened the file during the wait.
        match self.inner.files.known(number) {
            Some(known) => {
                machine::sometimes!("another task opens the same file during an open");
                Ok(PagedFile::new(self.inner.clone(), known))
            }
            None => self.inner.enter(file),
        }
    }

    /// Returns another handle on a file, if the file is in the cache.
    pub(super) fn known_numbered(&self, file: FileId) -> Option<PagedFile<M>> {
        self.inner.files.known(file).map(|known| PagedFile::new(self.inner.clone(), known))
    }

    /// Discards the cached data of a file that is to be removed, including unsent writes. The file's handles become
    /// unusable.
    pub async fn give_up_numbered(&self, file: FileId) {
        self.inner.give_up(|cached| cached.file.id() == file).await;
    }

    /// Sets the lease of this client's locks on the file, if any. Data that are sent from now on include this lease.
    pub(super) fn note_lease(&self, file: FileId, lease: Option<u64>) {
        if let Some(known) = self.inner.files.known(file) {
            known.file.set_lease(lease);
        }
    }

    /// Discards the unsent writes to a file because its locks were lost. If there were unsent writes, all handles of
    /// the file report `failure`.
    pub(super) fn give_up_unsent(&self, file: FileId, failure: Box<Error>) {
        let Some(known) = self.inner.files.known(file) else { return };
        let unwritten = self.inner.table.borrow().unwritten(known.number, true);
        if !known.writes.is_empty() || !unwritten.is_empty() {
            machine::sometimes!("a client discards unsent writes with its lock");
            known.failures.note(Err(failure));
        }
        self.inner.forget_unsent(&known);
    }

    /// Fails if there are more stripes than disks, if the blocks are too large for some I/O node, or if a page does not
    /// fit in the cache.
    pub fn check_striping(&self, name: &str, striping: Striping) -> Result<()> {
        self.inner.check_page(name, striping.block_bytes())?;
        self.inner.client.check_stripes(name, striping)
    }

    /// Returns the state of the failed writes of all files, for a flush of all files that begins.
    pub(crate) fn failures(&self) -> FailuresBefore<M> {
        let files = self.inner.files.all().into_iter();
        FailuresBefore(files.map(|file| (file.failures.cursor().before_call(), file)).collect())
    }

    /// Fails with a failed write that no handle had reported when a flush of all files began. The failure stays
    /// unreported.
    pub(crate) async fn check_failures(&self, before: FailuresBefore<M>) -> Result<()> {
        for (reported, file) in before.0 {
            // A flush of the file may have got a failure that the flush of all files has not.
            let _turn = file.flushing.take().await;
            file.failures.check_since(reported)?;
        }
        self.inner.files.all().iter().try_for_each(|file| file.failures.check(&file.failures.cursor()))
    }

    /// Flushes all writes through the cache to stable storage, and then reports the first failure. Call this function
    /// when the cache is no longer needed.
    pub async fn finish(&self) -> Result<()> {
        let mut outcome = Ok(());
        for file in self.inner.files.all() {
            if !file.stays_here() {
                let unreported = file.failures.cursor();
                self.inner.flush(&file, FlushScope::Own).await;
                outcome = outcome.and(file.failures.report(&unreported, unreported.before_call()));
            }
            self.inner.release(&file);
        }
        outcome
    }
}

/// The files of a page cache, each with the number of its reported failures when a flush of all files began.
pub(crate) struct FailuresBefore<M: Machine>(Vec<(u64, Rc<LogicalFile<M>>)>);

impl PageCacheCounts {
    fn count(&mut self, is_hit: bool, bytes: u64) {
        let (reads, all) = match is_hit {
            true => (&mut self.hits, &mut self.hit_bytes),
            false => (&mut self.misses, &mut self.missed_bytes),
        };
        *reads += 1;
        *all += bytes;
    }
}

impl<M: Machine> Inner<M> {
    /// Discards the cached data of files that were removed or will be removed, and drops those of the files that are
    /// not open.
    async fn give_up(self: &Rc<Self>, is_gone: impl Fn(&LogicalFile<M>) -> bool) {
        let mut files = self.files.all();
        files.retain(|file| is_gone(file));
        for file in &files {
            file.unlinked.set(true);
            file.failures.forget();
            self.table.borrow_mut().forget(file.number, 0);
            file.writes.none().await;
        }
        for file in &files {
            self.release(file);
        }
        self.room.wake_all();
    }

    fn check_page(&self, name: &str, page_bytes: u64) -> Result<()> {
        let bytes = self.settings.bytes;
        if page_bytes <= bytes {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "{name}: a page of {page_bytes} bytes does not fit into a cache of {bytes} bytes: choose a \
             larger cache"
        ))
        .into())
    }

    fn enter(self: &Rc<Self>, file: File<M>) -> Result<PagedFile<M>> {
        self.check_page(file.name(), file.striping().block_bytes())?;
        Ok(PagedFile::new(self.clone(), self.files.enter(file)))
    }

    /// Drops a file that is not open and has no unsent writes, no writes in flight and no unreported failures.
    fn release(self: &Rc<Self>, file: &LogicalFile<M>) {
        if file.handles.get() > 0 || !file.writes.is_empty() {
            return;
        }
        let unsent = !self.table.borrow().unwritten(file.number, true).is_empty();
        let unreported = file.failures.is_unreported();
        if file.unlinked.get() || !(file.temporary.get() || unsent || unreported) {
            self.forget(file);
        }
    }

    /// Discards the unsent writes to a file and all its cached data.
    fn forget_unsent(&self, file: &LogicalFile<M>) {
        self.table.borrow_mut().forget(file.number, 0);
        file.length.cut(file.file.bytes());
        file.given_up.set(file.given_up.get() + 1);
        self.room.wake_all();
    }

    /// Drops a file and all its pages.
    fn forget(&self, file: &LogicalFile<M>) {
        self.table.borrow_mut().forget(file.number, 0);
        self.files.remove(file);
        self.room.wake_all();
    }
}
