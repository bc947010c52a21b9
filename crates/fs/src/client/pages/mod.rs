//! The page cache: what a sequential program needs of a file, in the memory of its client.
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
//! - this file: the cache and its logical-file table; opening, creating, unlinking
//! - `paged_file.rs`: an open file; start there
//! - `table.rs`, `window.rs`: the decisions, without futures
//! - `transfer.rs`: bringing pages in and sending them out
//!
//! A page is a block of the file, so it lies on one disk. The bound is on the pages in the table: a `Payload` that
//! the application has read keeps its memory for as long as the application keeps it.
//!
//! The memory of a page is the cache's own. A machine lends the memory it receives into from a bounded pool; pages
//! would use that up and nothing more could be received, so a page *adopts* what it is filled with
//! ([`machine::Buf::adopt`]), and the pool has its bytes back before the next message needs them.

mod paged_file;
mod table;
mod transfer;
mod window;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use layout::Striping;
use machine::{
    BufferPool, Class, Condition, Duration, FirstFailure, InFlight, Machine, NodeId, Operation, Permits,
};

pub use paged_file::{Advice, PagedFile};
pub use window::Prefetch;

use super::{Client, File, FileStat};
use crate::error::{Error, Result};
use crate::protocol::FileId;
use crate::turns::Turns;
use table::{PageTable, Place};

/// How a page cache works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCacheSettings {
    /// The most bytes of pages kept. At least one page of each file opened has to fit.
    pub bytes: u64,
    /// Which pages are brought in ahead of their use. A window is never more than half the cache.
    pub prefetch: Prefetch,
    /// Whether writing returns while pages are still on their way to the I/O nodes. Without it, each write waits until
    /// its bytes are there.
    pub write_behind: bool,
}

impl Default for PageCacheSettings {
    fn default() -> Self {
        PageCacheSettings { bytes: 256 << 20, prefetch: Prefetch::Adaptive, write_behind: true }
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
    /// How many there are, of all I/O nodes together.
    disks: u32,
    table: RefCell<PageTable>,
    /// Where pages' memory is recycled. It has no bound of its own: the table has.
    buffers: BufferPool,
    /// Woken when a page may have become evictable.
    room: Condition,
    /// The logical-file table: the files that are open or still have pages to be written.
    files: RefCell<BTreeMap<u64, Rc<LogicalFile<M>>>>,
    /// Names that are being opened: what is made under one is entered before anybody else looks for it.
    names: Turns<String>,
    /// How many files have been entered there.
    entered: Cell<u64>,
    /// Pages whose writing has begun and that wait for a write agent.
    write_list: RefCell<VecDeque<Listed>>,
    /// Pages that write agents are sending.
    being_sent: RefCell<BTreeMap<Place, Class>>,
    /// Pages being read in the background, by I/O node and a number that grows, and whether the request has left.
    background: RefCell<BTreeMap<(NodeId, u64), bool>>,
    begun: Cell<u64>,
    /// How long each I/O node took for the page it sent last.
    response: RefCell<BTreeMap<NodeId, Duration>>,
    /// One for each write agent there may be.
    write_agents: Permits,
    /// Questions for sizes on their way. What is sent meanwhile may be missing from the answers.
    size_questions: InFlight,
}

/// A page in the write list.
struct Listed {
    place: Place,
    class: Class,
    /// Its writing, as its file counts it.
    operation: Operation,
}

/// A file as all its open handles share it.
struct LogicalFile<M: Machine> {
    /// Its number in this cache, new each time it is entered.
    number: u64,
    file: File<M>,
    /// Its size in bytes, with what has not been written to the I/O nodes yet.
    bytes: Cell<u64>,
    /// Where the furthest write ends that an answer about the size may lack: since all was sent last, and no question
    /// was on its way.
    unsent_end: Cell<u64>,
    /// Whether the I/O nodes are still to be told of the size: that of a temporary file was set without them.
    size_unsent: Cell<bool>,
    handles: Cell<usize>,
    /// Pages whose writing has begun.
    writes: InFlight,
    /// How many writes were sent, and how many of them the I/O nodes have brought onto their media since.
    sent: Cell<u64>,
    flushed: Cell<u64>,
    /// The first failed write since the last report.
    failure: FirstFailure<Box<Error>>,
    temporary: Cell<bool>,
    unlinked: Cell<bool>,
    /// How many pages have been dropped before they were used.
    wasted: Cell<u64>,
}

impl<M: Machine> LogicalFile<M> {
    fn page_bytes(&self) -> u64 {
        self.file.striping().block_bytes()
    }

    /// Whether pages go to the I/O nodes only if they have to give way to others.
    fn stays_here(&self) -> bool {
        self.temporary.get() || self.unlinked.get()
    }

    /// Takes in what the I/O nodes say of the size; what they have not been sent yet counts too.
    fn note_remote_bytes(&self, bytes: u64) {
        let own = if self.size_unsent.get() { self.bytes.get() } else { self.own_end() };
        self.bytes.set(bytes.max(own));
    }

    /// Where the furthest write ends that others cannot know of.
    fn own_end(&self) -> u64 {
        self.unsent_end.get().max(self.file.uncommitted_end().unwrap_or(0))
    }
}

impl<M: Machine> PageCache<M> {
    /// An empty cache before `client`.
    pub fn new(client: Client<M>, settings: PageCacheSettings) -> Self {
        let write_agents = transfer::WRITES_PER_DISK * u64::from(client.disks());
        PageCache {
            inner: Rc::new(Inner {
                disks: client.disks(),
                client,
                settings,
                table: RefCell::new(PageTable::new(settings.bytes)),
                buffers: BufferPool::new(u64::MAX),
                room: Condition::new(),
                files: RefCell::default(),
                names: Turns::default(),
                entered: Cell::new(0),
                write_list: RefCell::default(),
                being_sent: RefCell::default(),
                background: RefCell::default(),
                begun: Cell::new(0),
                response: RefCell::default(),
                write_agents: Permits::new(write_agents),
                size_questions: InFlight::new(),
            }),
        }
    }

    /// The client behind the cache, for whatever is not cached: names, sizes, collective operations.
    ///
    /// Remove files by [`unlink`](Self::unlink) of the cache.
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

    /// Opens a finished file, or an unfinished one that this cache has open.
    ///
    /// What other clients had written and flushed or closed before is seen from now on, also through other handles of
    /// this cache on the file.
    pub async fn open(&self, name: &str) -> Result<PagedFile<M>> {
        let _turn = self.inner.names.take(name.to_owned()).await;
        let _question = self.inner.ask_for_size();
        let file = match self.inner.client.open(name).await {
            Err(error) if matches!(*error, Error::Unfinished { .. }) => {
                let own = self.inner.own_unfinished(name).ok_or(error)?;
                return Ok(PagedFile::new(self.inner.clone(), own));
            }
            opened => opened?,
        };
        if let Some(known) = self.inner.known(file.id()) {
            if !known.temporary.get() {
                known.note_remote_bytes(file.bytes());
                self.inner.table.borrow_mut().forget_clean(known.number);
            }
            return Ok(PagedFile::new(self.inner.clone(), known));
        }
        self.inner.enter(file)
    }

    /// Makes an empty file over all disks, in pages of `page_bytes`, and opens it; `file` is its identity, drawn at
    /// random by the caller. Fails if there is a file of that name.
    pub async fn create(&self, name: &str, file: FileId, page_bytes: u64) -> Result<PagedFile<M>> {
        let disks = self.inner.client.disks();
        self.create_striped(name, file, Striping::new(page_bytes, disks)?).await
    }

    /// Makes an empty file over as many disks as `striping` has stripes; otherwise like [`create`](Self::create).
    pub async fn create_striped(&self, name: &str, file: FileId, striping: Striping) -> Result<PagedFile<M>> {
        self.inner.check_page(name, striping.block_bytes())?;
        let _turn = self.inner.names.take(name.to_owned()).await;
        self.inner.enter_created(self.inner.client.create_striped(name, file, striping).await?)
    }

    /// As [`create_striped`](Self::create_striped), but a finished file of that name stays until the new one is
    /// finished, as with [`Client::create_replacing`].
    pub async fn create_replacing(
        &self,
        name: &str,
        file: FileId,
        striping: Striping,
    ) -> Result<PagedFile<M>> {
        self.inner.check_page(name, striping.block_bytes())?;
        let _turn = self.inner.names.take(name.to_owned()).await;
        self.inner.enter_created(self.inner.client.create_replacing(name, file, striping).await?)
    }

    /// Refuses what no file here can be, as [`Client::check_striping`] does, and pages larger than the cache.
    pub fn check_striping(&self, name: &str, striping: Striping) -> Result<()> {
        self.inner.check_page(name, striping.block_bytes())?;
        self.inner.client.check_striping(name, striping)
    }

    /// The metadata of a file, including the writes of this cache.
    pub async fn stat(&self, name: &str) -> Result<FileStat> {
        let _question = self.inner.ask_for_size();
        let stat = match self.inner.client.stat(name).await {
            Err(error) if matches!(*error, Error::Unfinished { .. }) => {
                self.inner.own_unfinished(name).ok_or(error)?;
                self.inner.client.stat_unfinished(name).await?
            }
            found => found?,
        };
        let known = self.inner.known(stat.file);
        Ok(FileStat { bytes: known.map_or(stat.bytes, |known| stat.bytes.max(known.own_end())), ..stat })
    }

    /// Removes a file. What of it has not left this client never does.
    pub async fn unlink(&self, name: &str) -> Result<()> {
        let cached: Vec<_> =
            self.inner.files.borrow().values().filter(|file| file.file.name() == name).cloned().collect();
        for file in &cached {
            file.unlinked.set(true);
            self.inner.table.borrow_mut().forget(file.number, 0);
            file.writes.none().await;
        }
        let outcome = self.inner.client.unlink(name).await;
        for file in cached {
            self.inner.release(&file);
        }
        self.inner.room.wake_all();
        outcome
    }

    /// Brings everything written through the cache to the media, finishes the files that were begun, and removes the
    /// temporary files that are left. Reports the first failure after all has been tried. Call this at the end.
    pub async fn finish(&self) -> Result<()> {
        let files: Vec<_> = self.inner.files.borrow().values().cloned().collect();
        let mut outcome = Ok(());
        for file in files {
            let finished = if file.temporary.get() && !file.unlinked.get() {
                self.unlink(file.file.name()).await
            } else {
                self.inner.commit(&file).await
            };
            outcome = outcome.and(finished);
            self.inner.release(&file);
        }
        outcome
    }
}

impl<M: Machine> Inner<M> {
    /// To be kept from before a file's size is asked for until the answer has been noted.
    fn ask_for_size(&self) -> Operation {
        self.size_questions.begin()
    }

    fn known(&self, id: FileId) -> Option<Rc<LogicalFile<M>>> {
        let files = self.files.borrow();
        files.values().find(|file| file.file.id() == id && !file.unlinked.get()).cloned()
    }

    /// The file of this name that this cache has open, if it is unfinished.
    fn own_unfinished(&self, name: &str) -> Option<Rc<LogicalFile<M>>> {
        let files = self.files.borrow();
        let is_it = |file: &&Rc<LogicalFile<M>>| {
            file.file.name() == name && file.file.is_unfinished() && !file.unlinked.get()
        };
        files.values().find(is_it).cloned()
    }

    fn enter_created(self: &Rc<Self>, file: File<M>) -> Result<PagedFile<M>> {
        // Somebody may have found it and opened it meanwhile.
        match self.known(file.id()) {
            Some(known) => Ok(PagedFile::new(self.clone(), known)),
            None => self.enter(file),
        }
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
        let number = self.entered.get();
        self.entered.set(number + 1);
        let logical = Rc::new(LogicalFile {
            number,
            bytes: Cell::new(file.bytes()),
            file,
            unsent_end: Cell::new(0),
            size_unsent: Cell::new(false),
            handles: Cell::new(0),
            writes: InFlight::new(),
            sent: Cell::new(0),
            flushed: Cell::new(0),
            failure: FirstFailure::new(),
            temporary: Cell::new(false),
            unlinked: Cell::new(false),
            wasted: Cell::new(0),
        });
        self.files.borrow_mut().insert(number, logical.clone());
        Ok(PagedFile::new(self.clone(), logical))
    }

    /// Forgets a file that nobody has open and of which nothing is left to be written, finished or told.
    fn release(self: &Rc<Self>, file: &LogicalFile<M>) {
        if file.handles.get() > 0 || !file.writes.is_empty() {
            return;
        }
        let unsent = !self.table.borrow().unwritten(file.number, true).is_empty();
        let untold = file.failure.is_some();
        let unfinished = file.file.is_unfinished();
        if file.unlinked.get() || !(file.temporary.get() || unsent || untold || unfinished) {
            self.forget(file);
        }
    }

    /// Forgets a file, whatever is left of it.
    fn forget(&self, file: &LogicalFile<M>) {
        self.table.borrow_mut().forget(file.number, 0);
        self.files.borrow_mut().remove(&file.number);
        self.room.wake_all();
    }
}
