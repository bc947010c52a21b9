//! The page cache: the part of files that a sequential program needs, in the memory of its client.
//!
//! ```text
//!   PagedFile: read, write          PagedFile: read, write
//!        \                              /
//!         window: what comes next      /
//!          \                          /
//!       page table: all pages of all open files, one bound, Second Chance
//!          |  a task for each page            |  write agents
//!          v  that is read                    v  take dirty pages in turn
//!                  File: block requests to the I/O nodes
//! ```
//!
//! Its parts; each keeps its own rules, stated at the head of its file:
//!
//! - this file: the cache, and opening of files
//! - `paged_file.rs`: an open file; start there
//! - `files.rs`: the files that are open, what their handles share, how long they are
//! - `failures.rs`: which writes of a file have failed, and which handles are still to be told
//! - `table.rs`: the pages, the state of each, and which of them is evicted first
//! - `window.rs`: which pages to prefetch
//! - `reads.rs`: the background reads in flight, and when an I/O node is to promote one
//! - `write_list.rs`: which dirty pages are sent next, and by how many agents
//! - `transfer.rs`: bringing pages in and sending them out, as all of these say
//!
//! A page is a block of the file, so it lies on one disk. The bound is on the pages in the table: a `Payload` that
//! the application has read keeps its memory for as long as the application keeps it.
//!
//! The memory of a page is the cache's own. A machine receives into memory of a bounded pool. Pages that kept such
//! memory would use the pool up, and nothing more could be received; so a page *adopts* the data that fill it
//! ([`machine::Buf::adopt`]), and the pool has its bytes back before the next message needs them.

mod failures;
mod files;
mod paged_file;
mod reads;
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
use crate::protocol::FileId;
use files::{Files, LogicalFile};
use reads::BackgroundReads;
use table::PageTable;
use write_list::WriteList;

/// How a page cache works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCacheSettings {
    /// The most bytes of pages kept. At least one page of each file opened has to fit.
    pub bytes: u64,
    /// Which pages are prefetched. A window is never more than half the cache.
    pub prefetch: Prefetch,
    /// Whether writing returns while pages are still on their way to the I/O nodes. Without it, each write waits until
    /// its bytes are there.
    pub write_behind: bool,
    /// The time after which a write to a file of a namespace is sent and reported to the metadata server, though its
    /// page is not full and nobody flushes it. Without this it waits until it is flushed, its file is closed, or the
    /// page is evicted.
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

/// A cache of pages between one client and its applications. Cloning gives another handle on the same.
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
    /// Where pages' memory is recycled. It has no bound of its own: the table has.
    buffers: BufferPool,
    /// Woken when a page may have become evictable.
    room: Condition,
    files: Files<M>,
    reads: BackgroundReads,
    write_list: WriteList,
    counts: Cell<PageCacheCounts>,
}

/// What programs have read of pages since the cache was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCacheCounts {
    /// Reads of a page that was there.
    pub hits: u64,
    /// Reads of a page that an I/O node had to be waited for, or that was on its way.
    pub misses: u64,
    /// Bytes of the former.
    pub hit_bytes: u64,
    /// Bytes of the latter.
    pub missed_bytes: u64,
}

impl<M: Machine> PageCache<M> {
    /// An empty cache before `client`.
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

    /// The client behind the cache, for what is not cached: names, sizes, collective operations.
    pub fn client(&self) -> &Client<M> {
        &self.inner.client
    }

    /// How the cache works.
    pub fn settings(&self) -> PageCacheSettings {
        self.inner.settings
    }

    /// Bytes of the pages in the cache now.
    pub fn bytes(&self) -> u64 {
        self.inner.table.borrow().bytes()
    }

    /// What has been read of pages.
    pub fn counts(&self) -> PageCacheCounts {
        self.inner.counts.get()
    }

    /// These bytes as a payload that is going to be written: when it is no longer used, the cache keeps its memory for
    /// [`spare_memory`](Self::spare_memory).
    pub fn take_in(&self, bytes: Vec<u8>) -> Payload {
        let length = bytes.len() as u64;
        let mut buffer = self.inner.buffers.try_take(length).expect("a pool without a bound");
        buffer.fill_memory(bytes);
        buffer.slice(0..length)
    }

    /// Memory with room for `bytes`, and nothing in it: some that was used before, if there is any.
    pub fn spare_memory(&self, bytes: usize) -> Vec<u8> {
        self.inner.buffers.spare_memory(bytes)
    }

    /// Opens a file by its number, as [`Client::numbered`] does. All handles of this cache on it share its pages and
    /// its length: a caller that opens it after other clients have changed it [says so](PagedFile::note_changed).
    pub async fn open_numbered(&self, file: NumberedFile) -> Result<PagedFile<M>> {
        let (number, bytes) = (file.number, file.bytes);
        if let Some(known) = self.inner.files.known(number) {
            known.hear_bytes(bytes);
            return Ok(PagedFile::new(self.inner.clone(), known));
        }
        let file = self.inner.client.numbered(file).await?;
        // Another task may have opened it meanwhile.
        match self.inner.files.known(number) {
            Some(known) => Ok(PagedFile::new(self.inner.clone(), known)),
            None => self.inner.enter(file),
        }
    }

    /// Another handle on a file, if the cache has it.
    pub(super) fn known_numbered(&self, file: FileId) -> Option<PagedFile<M>> {
        self.inner.files.known(file).map(|known| PagedFile::new(self.inner.clone(), known))
    }

    /// Gives up what the cache has of a file that is to be removed: what of it has not left this client never
    /// does. Its handles are of no use any more.
    pub async fn give_up_numbered(&self, file: FileId) {
        self.inner.give_up(|cached| cached.file.id() == file).await;
    }

    /// Notes the lease under which this client has locks on a file, if it has any: data written from now on
    /// are sent with this lease.
    pub(super) fn note_lease(&self, file: FileId, lease: Option<u64>) {
        if let Some(known) = self.inner.files.known(file) {
            known.file.set_lease(lease);
        }
    }

    /// Gives up what was written to a file and has not left this client, because its locks were lost. If there
    /// was anything, all handles of the file are told `failure`.
    pub(super) fn give_up_unsent(&self, file: FileId, failure: Box<Error>) {
        let Some(known) = self.inner.files.known(file) else { return };
        let unwritten = self.inner.table.borrow().unwritten(known.number, true);
        if !known.writes.is_empty() || !unwritten.is_empty() {
            known.failures.note(Err(failure));
        }
        self.inner.forget_unsent(&known);
    }

    /// Refuses more stripes than disks, blocks larger than all I/O nodes can handle, and pages larger than the cache.
    pub fn check_striping(&self, name: &str, striping: Striping) -> Result<()> {
        self.inner.check_page(name, striping.block_bytes())?;
        self.inner.client.check_stripes(name, striping)
    }

    /// Brings everything written through the cache to the media. Reports the first failure after all has been tried.
    /// Call this at the end.
    pub async fn finish(&self) -> Result<()> {
        let mut outcome = Ok(());
        for file in self.inner.files.all() {
            let flushed = match file.stays_here() {
                true => Ok(()),
                false => self.inner.flush(&file, &file.failures.cursor(), false).await,
            };
            outcome = outcome.and(flushed);
            self.inner.release(&file);
        }
        outcome
    }
}

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
    /// Gives up what is cached of files that are removed, or about to be, and forgets those that are not open.
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
            "{name}: a page of {page_bytes} bytes does not fit into a cache of {bytes}; make the cache larger"
        ))
        .into())
    }

    fn enter(self: &Rc<Self>, file: File<M>) -> Result<PagedFile<M>> {
        self.check_page(file.name(), file.striping().block_bytes())?;
        Ok(PagedFile::new(self.clone(), self.files.enter(file)))
    }

    /// Forgets a file that is not open and of which nothing is left to be written, finished or told.
    fn release(self: &Rc<Self>, file: &LogicalFile<M>) {
        if file.handles.get() > 0 || !file.writes.is_empty() {
            return;
        }
        let unsent = !self.table.borrow().unwritten(file.number, true).is_empty();
        let untold = file.failures.is_unreported();
        if file.unlinked.get() || !(file.temporary.get() || unsent || untold) {
            self.forget(file);
        }
    }

    /// Forgets what was written to a file and has not left this client, and all else that is cached of it.
    fn forget_unsent(&self, file: &LogicalFile<M>) {
        self.table.borrow_mut().forget(file.number, 0);
        file.length.cut(file.file.bytes());
        file.given_up.set(file.given_up.get() + 1);
        self.room.wake_all();
    }

    /// Forgets a file and all its pages.
    fn forget(&self, file: &LogicalFile<M>) {
        self.table.borrow_mut().forget(file.number, 0);
        self.files.remove(file);
        self.room.wake_all();
    }
}
