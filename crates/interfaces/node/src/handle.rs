//! Open file for any number of threads: calls include the position, and many can be in flight.

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

/// Limit of bytes that [`Handle::read_at`] borrows at a time: large, so that transfers between threads are cheap;
/// bounded, because the page cache cannot use lent pages.
const LENT_BYTES_MAX: u64 = 1 << 20;

/// Open file. Any thread may use it at any time, and clones share it.
///
/// Calls in flight at the same time are carried out in any order: a read sees a write that completed before the read
/// began. A completed write is in the page cache. If its data cannot be sent to the disks later, the next write,
/// [`flush`](Self::flush) or [`close`](Self::close) reports that, once.
///
/// The `begin_` calls do not wait. Each call in flight holds memory, and only the caller limits their number.
///
/// Dropping the last clone closes the file too, but then failed writes are not reported.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

struct Shared {
    name: Arc<str>,
    options: OpenOptions,
    page_bytes: u64,
    /// Number of the file on the node thread.
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

    /// Returns the name under which the file was opened.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// Returns the number of the file on a node thread, if it is open there.
    pub(crate) fn number_on(&self, node: &Arc<NodeThread>) -> Option<u64> {
        Arc::ptr_eq(&self.0.node, node).then_some(self.0.number)
    }

    /// Returns the options with which the file was opened.
    pub fn options(&self) -> OpenOptions {
        self.0.options
    }

    /// Returns the bytes of a page, which is a block of the file. Whole pages are written without being copied.
    pub fn page_bytes(&self) -> u64 {
        self.0.page_bytes
    }

    /// Reads from `offset` on until `into` is full or the file ends. Returns the number of bytes read.
    ///
    /// # Errors
    /// If the file is not open for reading, or a part of the range cannot be read.
    pub fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.read_pages(offset, into, false)
    }

    /// Reads like [`read_at`](Self::read_at), but first asks for changes by other clients, as [`stat`](Self::stat)
    /// does.
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

    /// Begins to read `bytes` bytes from `offset` on. Lends them as non-empty pages and parts of pages. Returns fewer
    /// bytes at the end of the file, and no page beyond its end.
    pub fn begin_read(&self, offset: u64, bytes: u64) -> Pending<Vec<LentPage>> {
        self.begin_reading(move |file| async move { file.read(offset, bytes).await })
    }

    /// Begins to read the page that contains `offset`, from `offset` on, for a caller that will read `wanted` bytes.
    /// Requests all pages of these bytes at once. Also lends the following pages that are ready, up to `most` bytes in
    /// total.
    ///
    /// Without an adaptive window, the window determines the requested pages. No page is lent beyond the end of the
    /// file.
    pub fn begin_read_ready(&self, offset: u64, wanted: u64, most: u64) -> Pending<Vec<LentPage>> {
        self.begin_reading(move |file| async move { file.read_ready(offset, wanted, most).await })
    }

    /// Begins a read like [`begin_read`](Self::begin_read), for a caller that will not read these pages again: missing
    /// pages do not enter the page cache, and only these bytes are fetched.
    pub fn begin_read_alone(&self, offset: u64, bytes: u64) -> Pending<Vec<LentPage>> {
        self.begin_reading(move |file| async move { file.read_alone(offset, bytes).await })
    }

    /// Writes bytes at `offset`, extending the file if necessary.
    ///
    /// # Errors
    /// If the file is not open for writing, a disk is full, or an earlier write has failed since the last report. Then
    /// nothing is written.
    pub fn write_at(&self, offset: u64, bytes: impl Into<Vec<u8>>) -> Result<()> {
        self.begin_write(offset, bytes).wait()
    }

    /// Writes like [`write_at`](Self::write_at), but copies the bytes, which a write cache does anyway.
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

    /// True if writes through this handle go into a write cache.
    pub fn caches_writes(&self) -> bool {
        self.write_queue().is_some()
    }

    fn write_queue(&self) -> Option<&WriteQueue> {
        self.0.node.writes.as_deref().filter(|_| self.0.options.writes())
    }

    /// Begins a [`write_at`](Self::write_at).
    pub fn begin_write(&self, offset: u64, bytes: impl Into<Vec<u8>>) -> Pending<()> {
        let bytes = bytes.into();
        if self.caches_writes() {
            return Pending::over(&self.0.name, self.write_from(offset, &bytes));
        }
        self.begin_writing(move |file| async move { file.write(offset, bytes).await })
    }

    /// Writes bytes at the end of the file. Returns their offset. Concurrent appends never overwrite each other, except
    /// those of sessions with write caches.
    ///
    /// # Errors
    /// As those of [`write_at`](Self::write_at).
    pub fn append(&self, bytes: impl Into<Vec<u8>>) -> Result<u64> {
        self.begin_append(bytes).wait()
    }

    /// Begins an [`append`](Self::append).
    pub fn begin_append(&self, bytes: impl Into<Vec<u8>>) -> Pending<u64> {
        let bytes = bytes.into();
        self.begin_writing(move |file| async move { file.append(bytes).await })
    }

    /// Begins to read a selection of a file of the namespace, bypassing the page cache, by one request to each agent
    /// that has some of it. Returns the selected bytes in the order of the file without gaps, and fewer if the file
    /// ends before the last of them. Holes are zeros. The read sees earlier writes of this session.
    pub fn begin_read_selected(&self, selection: Selection) -> Pending<Vec<u8>> {
        self.begin_reading(move |file| async move {
            file.read_selected(None, &selection, SelectedSettings::default()).await
        })
    }

    /// Begins to write a selection of a file of the namespace, bypassing the page cache, by one request to each agent
    /// that has some of it. `bytes` has the selected number of bytes, in the order of the file.
    pub fn begin_write_selected(&self, selection: Selection, bytes: impl Into<Vec<u8>>) -> Pending<()> {
        let bytes = bytes.into();
        self.begin_writing(move |file| async move {
            file.write_selected(None, &selection, &Memory::real(bytes), SelectedSettings::default()).await
        })
    }

    /// Truncates the file to `bytes`, or extends it with zeros.
    ///
    /// # Errors
    /// If the file is not open for writing, or an agent fails to change the length.
    pub fn set_len(&self, bytes: u64) -> Result<()> {
        self.begin_set_len(bytes).wait()
    }

    /// Begins a [`set_len`](Self::set_len).
    pub fn begin_set_len(&self, bytes: u64) -> Pending<()> {
        self.begin_writing(move |file| async move { file.set_len(bytes).await })
    }

    /// Flushes all written data to stable storage.
    ///
    /// # Errors
    /// The first unreported failure of a write.
    pub fn flush(&self) -> Result<()> {
        self.begin_flush().wait()
    }

    /// Begins a [`flush`](Self::flush).
    pub fn begin_flush(&self) -> Pending<()> {
        self.begin(move |file| async move { file.flush().await })
    }

    /// Sends all written data to the agents, and reports them to the namespace: clients that then open or
    /// [`stat`](Self::stat) the file see them. The data need not be on stable storage; use [`flush`](Self::flush) for
    /// that.
    ///
    /// # Errors
    /// The first unreported failure of a write.
    pub fn send(&self) -> Result<()> {
        self.begin_send().wait()
    }

    /// Begins a [`send`](Self::send).
    pub fn begin_send(&self) -> Pending<()> {
        self.begin(move |file| async move { file.send().await })
    }

    /// Fails if an agent lost accepted data of this file by a restart; lost data are read as zeros. A
    /// [temporary](Advice::Temporary) file is never flushed; call this before relying on data read from it. Sends no
    /// request and flushes nothing, unless an agent was disconnected.
    ///
    /// # Errors
    /// Such a loss, or another unreported failure of a write.
    pub fn check_losses(&self) -> Result<()> {
        self.begin(move |file| async move { file.check_losses().await }).wait()
    }

    /// Returns the file's metadata, including all writes of this session. If other clients have changed the file, later
    /// reads return their data.
    ///
    /// # Errors
    /// If an agent does not answer.
    pub fn stat(&self) -> Result<Stat> {
        self.begin_stat().wait()
    }

    /// Begins a [`stat`](Self::stat).
    pub fn begin_stat(&self) -> Pending<Stat> {
        self.begin(move |file| async move { file.stat().await })
    }

    /// Returns the file's number in the namespace. Sends no request.
    ///
    /// # Errors
    /// If the file has been closed.
    pub fn number(&self) -> Result<FileNumber> {
        self.begin(move |file| async move { Ok(file.number()) }).wait()
    }

    /// Returns the file's metadata as far as this session knows them, at least as they were when the file was opened.
    /// Sends no request.
    ///
    /// # Errors
    /// If the file has been closed.
    pub fn known_stat(&self) -> Result<Stat> {
        self.begin(move |file| async move { Ok(file.known_stat()) }).wait()
    }

    /// Returns the size in bytes as far as this session knows it. Sends no request.
    ///
    /// # Errors
    /// If the file has been closed.
    pub fn known_bytes(&self) -> Result<u64> {
        self.begin(move |file| async move { Ok(file.known_bytes()) }).wait()
    }

    /// Gives advice about the future use of the file.
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

    /// Closes the file for all clones of the handle, after the calls in flight, and treats written data like
    /// [`send`](Self::send).
    ///
    /// # Errors
    /// The first unreported failure of a write; or if the file has been closed. If data in the write cache cannot be
    /// flushed, the file stays open, and [`Session::finish`](crate::Session::finish) closes it.
    pub fn close(&self) -> Result<()> {
        self.begin_close().wait()
    }

    /// Begins a [`close`](Self::close).
    pub fn begin_close(&self) -> Pending<()> {
        self.0.begin_close()
    }

    fn begin_reading<T, F>(&self, call: impl FnOnce(Rc<OpenFile>) -> F + Send + 'static) -> Pending<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + 'static,
    {
        self.begin_if(self.0.options.reads(), "the file is not open for reading", call)
    }

    fn begin_writing<T, F>(&self, call: impl FnOnce(Rc<OpenFile>) -> F + Send + 'static) -> Pending<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + 'static,
    {
        self.begin_if(self.0.options.writes(), "the file is not open for writing", call)
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
            // The program made the queued writes before this call.
            node.take_in_writes().await?;
            let (file, operation) = node.files.begin_call(number, &name)?;
            // The call owns the file, and drops it before the operation ends, as `begin_call` demands.
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
        // Ignore the outcome: a program that needs it calls `close`, and then the file is closed already.
        undisturbed(|| drop(self.begin_close().wait()));
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("name", &self.0.name).finish_non_exhaustive()
    }
}
