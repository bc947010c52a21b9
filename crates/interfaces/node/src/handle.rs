//! An open file for any number of threads: positions in its calls, and many calls under way.

use std::fmt;
use std::future::Future;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;

use fs::{Advice, SelectedSettings};
use layout::Selection;
use machine::Memory;
use namespace::FileNumber;

use crate::cached_write;
use crate::error::{Error, ErrorKind, Result};
use crate::lease::LentPage;
use crate::open_file::OpenFile;
use crate::pending::Pending;
use crate::settings::OpenOptions;
use crate::stat::Stat;
use crate::thread::{NodeThread, undisturbed};
use crate::write_queue::WriteQueue;

/// Maximum bytes that [`Handle::read_at`] has lent at a time: many, so that handing over is cheap; bounded, because the
/// page cache cannot use what is lent.
const LENT_BYTES_MAX: u64 = 1 << 20;

/// An open file. Any thread may use it at any time, and cloning gives another handle on the same.
///
/// Calls that are under way at the same time are carried out in any order: a read sees a write that ended before it
/// began. What is written is in the page cache then; that it could not be sent to the disks is told once, by the next
/// write, [`flush`](Self::flush) or [`close`](Self::close).
///
/// The `begin_` calls do not wait. What is under way holds memory, and nothing bounds it but who begins it.
///
/// Dropping the last of the handles closes the file too, but then failed writes are not reported.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    name: Arc<str>,
    options: OpenOptions,
    page_bytes: u64,
    /// The number of the file on the node thread.
    number: u64,
    node: Arc<NodeThread>,
}

impl Handle {
    pub(crate) fn new(
        node: Arc<NodeThread>,
        name: &str,
        options: OpenOptions,
        number: u64,
        page_bytes: u64,
    ) -> Self {
        Handle(Arc::new(Shared { name: name.into(), options, page_bytes, number, node }))
    }

    /// The name under which the file was opened.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// The number of the file on a node thread, if it is open there.
    pub(crate) fn number_on(&self, node: &Arc<NodeThread>) -> Option<u64> {
        Arc::ptr_eq(&self.0.node, node).then_some(self.0.number)
    }

    /// How the file was opened.
    pub fn options(&self) -> OpenOptions {
        self.0.options
    }

    /// The bytes of a page, which is a block of the file. Whole pages are written without being copied.
    pub fn page_bytes(&self) -> u64 {
        self.0.page_bytes
    }

    /// Reads from `offset` on until `into` is full or the file ends; the number of bytes read.
    ///
    /// # Errors
    /// If the file is not open for reading, or not all of it can be read.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.read_pages(offset, into, false)
    }

    /// Does what [`read_at`](Self::read_at) does, having looked what others have written, as [`stat`](Self::stat) does.
    ///
    /// # Errors
    /// As those of [`read_at`](Self::read_at), or if an agent does not answer.
    pub fn read_latest_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.read_pages(offset, into, true)
    }

    fn read_pages(&self, offset: u64, into: &mut [u8], mut looks: bool) -> Result<usize> {
        let mut filled = 0;
        while filled < into.len() {
            let (at, wanted) = (offset.saturating_add(filled as u64), (into.len() - filled) as u64);
            let (wanted, looks) = (wanted.min(LENT_BYTES_MAX), mem::take(&mut looks));
            let reading = self.begin_reading(move |file| async move {
                if looks {
                    file.stat().await?;
                }
                file.read(at, wanted).await
            });
            let pages = reading.wait()?;
            if pages.is_empty() {
                break;
            }
            for page in pages {
                let bytes = page.as_slice();
                into[filled..filled + bytes.len()].copy_from_slice(bytes);
                filled += bytes.len();
            }
        }
        Ok(filled)
    }

    /// Begins to read `bytes` from `offset` on. Lends them, in pages and parts of pages that are not empty: fewer bytes
    /// at the end of the file, and no page beyond it.
    pub fn begin_read(&self, offset: u64, bytes: u64) -> Pending<Vec<LentPage>> {
        self.begin_reading(move |file| async move { file.read(offset, bytes).await })
    }

    /// Begins to read the page at `offset`, from there on, for a caller who will read `wanted` bytes: all of their
    /// pages are requested now, and the later ones lent too as far as they are ready, until they have `most` bytes.
    ///
    /// Without an adaptive window, the pages requested are those of the window. No page is lent beyond the end of the
    /// file.
    pub fn begin_read_ready(&self, offset: u64, wanted: u64, most: u64) -> Pending<Vec<LentPage>> {
        self.begin_reading(move |file| async move { file.read_ready(offset, wanted, most).await })
    }

    /// Begins what [`begin_read`](Self::begin_read) does, for a caller who will not come back to these pages: those
    /// that are not in the page cache are not brought there, and no more of them is fetched than these bytes.
    pub fn begin_read_alone(&self, offset: u64, bytes: u64) -> Pending<Vec<LentPage>> {
        self.begin_reading(move |file| async move { file.read_alone(offset, bytes).await })
    }

    /// Writes bytes at `offset`, making the file longer if need be.
    ///
    /// # Errors
    /// If the file is not open for writing, there is no room, or an earlier write has failed since that was told; then
    /// nothing is written.
    pub fn write_at(&self, offset: u64, bytes: impl Into<Vec<u8>>) -> Result<()> {
        self.begin_write(offset, bytes).wait()
    }

    /// Does what [`write_at`](Self::write_at) does, with bytes that are copied: what a write cache does anyway.
    ///
    /// # Errors
    /// As those of [`write_at`](Self::write_at).
    pub fn write_from(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        match self.write_queue() {
            Some(queue) => {
                cached_write::write(&self.0.node, queue, &self.0.name, self.0.number, offset, bytes)
            }
            None => self.write_at(offset, bytes),
        }
    }

    /// Whether what is written through this handle goes into a write cache.
    pub fn caches_writes(&self) -> bool {
        self.write_queue().is_some()
    }

    fn write_queue(&self) -> Option<&WriteQueue> {
        self.0.node.writes.as_deref().filter(|_| self.0.options.writes())
    }

    /// Begins what [`write_at`](Self::write_at) does.
    pub fn begin_write(&self, offset: u64, bytes: impl Into<Vec<u8>>) -> Pending<()> {
        let bytes = bytes.into();
        if self.caches_writes() {
            return Pending::over(&self.0.name, self.write_from(offset, &bytes));
        }
        self.begin_writing(move |file| async move { file.write(offset, bytes).await })
    }

    /// Writes bytes at the end of the file; the offset at which that was. Calls of one session do not overwrite each
    /// other; those of several do if they append at the same time.
    ///
    /// # Errors
    /// As those of [`write_at`](Self::write_at).
    pub fn append(&self, bytes: impl Into<Vec<u8>>) -> Result<u64> {
        self.begin_append(bytes).wait()
    }

    /// Begins what [`append`](Self::append) does.
    pub fn begin_append(&self, bytes: impl Into<Vec<u8>>) -> Pending<u64> {
        let bytes = bytes.into();
        self.begin_writing(move |file| async move { file.append(bytes).await })
    }

    /// Begins to read what is selected of a file of the namespace, past the page cache, by one request to each agent
    /// that has some of it. The bytes come one right after the other in the order of the file; if it ends before the
    /// last of them, those that there are. Holes are zeros. What was written through this session before is in the
    /// file.
    pub fn begin_read_selected(&self, selection: Selection) -> Pending<Vec<u8>> {
        self.begin_reading(move |file| async move {
            file.read_selected(None, &selection, SelectedSettings::default()).await
        })
    }

    /// Begins to write what is selected of a file of the namespace, past the page cache, by one request to each agent
    /// that has some of it. `bytes` are as many as are selected, in the order of the file.
    pub fn begin_write_selected(&self, selection: Selection, bytes: impl Into<Vec<u8>>) -> Pending<()> {
        let bytes = bytes.into();
        self.begin_writing(move |file| async move {
            file.write_selected(None, &selection, &Memory::real(bytes), SelectedSettings::default()).await
        })
    }

    /// Cuts the file to `bytes`, or extends it to them with zeros.
    ///
    /// # Errors
    /// If the file is not open for writing, or an agent cannot do it.
    pub fn set_len(&self, bytes: u64) -> Result<()> {
        self.begin_set_len(bytes).wait()
    }

    /// Begins what [`set_len`](Self::set_len) does.
    pub fn begin_set_len(&self, bytes: u64) -> Pending<()> {
        self.begin_writing(move |file| async move { file.set_len(bytes).await })
    }

    /// Brings everything written to the disks.
    ///
    /// # Errors
    /// The first failure of a write that was not told.
    pub fn flush(&self) -> Result<()> {
        self.begin_flush().wait()
    }

    /// Begins what [`flush`](Self::flush) does.
    pub fn begin_flush(&self) -> Pending<()> {
        self.begin(move |file| async move { file.flush().await })
    }

    /// Brings everything written to the agents, and has the namespace know of it: whoever opens the file after that, or
    /// asks for its [`stat`](Self::stat), reads it. It need not be on the disks; that is what
    /// [`flush`](Self::flush) is for.
    ///
    /// # Errors
    /// The first failure of a write that was not told.
    pub fn send(&self) -> Result<()> {
        self.begin_send().wait()
    }

    /// Begins what [`send`](Self::send) does.
    pub fn begin_send(&self) -> Pending<()> {
        self.begin(move |file| async move { file.send().await })
    }

    /// Fails if an agent was restarted since it accepted what was written here, and has lost it: what is missing is
    /// read as zeros. For a file that is never flushed, as one that is [temporary](Advice::Temporary), before what was
    /// read of it counts. Nobody is asked, and nothing flushed, unless an agent was gone.
    ///
    /// # Errors
    /// As said, or another failure of a write that was not told.
    pub fn check_losses(&self) -> Result<()> {
        self.begin(move |file| async move { file.check_losses().await }).wait()
    }

    /// The file's metadata, with all that was written through this session. If others have changed the file, what they
    /// have written is read from now on.
    ///
    /// # Errors
    /// If an agent does not answer.
    pub fn stat(&self) -> Result<Stat> {
        self.begin_stat().wait()
    }

    /// Begins what [`stat`](Self::stat) does.
    pub fn begin_stat(&self) -> Pending<Stat> {
        self.begin(move |file| async move { file.stat().await })
    }

    /// The number that the namespace has given the file. Nobody is asked.
    ///
    /// # Errors
    /// If the file has been closed.
    pub fn number(&self) -> Result<FileNumber> {
        self.begin(move |file| async move { Ok(file.number()) }).wait()
    }

    /// The file's metadata as far as this session knows, so as they were when the file was opened at least: nobody is
    /// asked.
    ///
    /// # Errors
    /// If the file has been closed.
    pub fn known_stat(&self) -> Result<Stat> {
        self.begin(move |file| async move { Ok(file.known_stat()) }).wait()
    }

    /// The size in bytes as far as this session knows: nobody is asked.
    ///
    /// # Errors
    /// If the file has been closed.
    pub fn known_bytes(&self) -> Result<u64> {
        self.begin(move |file| async move { Ok(file.known_bytes()) }).wait()
    }

    /// Says how the file is going to be used.
    ///
    /// # Errors
    /// If the file has been closed.
    pub fn advise(&self, advice: Advice) -> Result<()> {
        self.begin(move |file| async move {
            file.advise(advice);
            Ok(())
        })
        .wait()
    }

    /// Closes the file for all its handles, after the calls under way, and does for what was written what
    /// [`send`](Self::send) does.
    ///
    /// # Errors
    /// The first failure of a write that was not told; or if the file has been closed. If what was written through the
    /// write cache cannot be flushed, the file stays open, and [`Session::finish`](crate::Session::finish) closes it.
    pub fn close(&self) -> Result<()> {
        self.begin_close().wait()
    }

    /// Begins what [`close`](Self::close) does.
    pub fn begin_close(&self) -> Pending<()> {
        self.0.begin_close()
    }

    fn begin_reading<T, F>(&self, call: impl FnOnce(Rc<OpenFile>) -> F + Send + 'static) -> Pending<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + 'static,
    {
        self.begin_if(self.0.options.reads(), "it is not open for reading", call)
    }

    fn begin_writing<T, F>(&self, call: impl FnOnce(Rc<OpenFile>) -> F + Send + 'static) -> Pending<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + 'static,
    {
        self.begin_if(self.0.options.writes(), "it is not open for writing", call)
    }

    fn begin_if<T, F>(
        &self,
        allowed: bool,
        why_not: &str,
        call: impl FnOnce(Rc<OpenFile>) -> F + Send + 'static,
    ) -> Pending<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + 'static,
    {
        match allowed {
            true => self.begin(call),
            false => Pending::over(&self.0.name, Err(Error::new(ErrorKind::BadMode, self.name(), why_not))),
        }
    }

    fn begin<T, F>(&self, call: impl FnOnce(Rc<OpenFile>) -> F + Send + 'static) -> Pending<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + 'static,
    {
        let (number, name) = (self.0.number, self.0.name.clone());
        self.0.node.begin(&self.0.name, move |node| async move {
            // They were written before.
            node.take_in_writes().await?;
            let (file, operation) = node.files.begin_call(number, &name)?;
            // The call has the file, and has let go of it when it ends.
            let outcome = call(file).await;
            drop(operation);
            outcome
        })
    }
}

impl Shared {
    fn begin_close(&self) -> Pending<()> {
        let (number, name) = (self.number, self.name.clone());
        self.node.begin(&self.name, move |node| async move { node.close_file(number, &name).await })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Who wants to know whether that worked calls `close`, and then there is no such file any more.
        undisturbed(|| drop(self.begin_close().wait()));
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("name", &self.0.name).finish_non_exhaustive()
    }
}
