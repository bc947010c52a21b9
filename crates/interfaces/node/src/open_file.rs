//! The node thread's half of an open file, which carries out its calls.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use fs::{Advice, File, OpenTreeFile, Prefetch, SelectedSettings, TeamTurn, WriteCache};
use futures_util::future::join_all;
use layout::{Extent, Selection};
use machine::{InFlight, Memory, OperationInFlight, Payload};
use namespace::FileNumber;
use real::RealMachine;

use crate::client_node::ClientNode;
use crate::error::{Error, ErrorKind, Result};
use crate::lease::LentPage;
use crate::stat::Stat;

/// Open file of the node thread, to which handles in other threads refer.
pub(crate) struct OpenFile {
    client: Rc<ClientNode>,
    name: String,
    /// Path by which it was opened; `None` if it was opened by its number.
    path: Option<Vec<u8>>,
    file: OpenTreeFile<RealMachine>,
    /// Calls in flight: the file is closed only after all of them have ended.
    calls: InFlight,
    /// True if a close failed because written data could not be flushed.
    is_unclosed: Cell<bool>,
    /// True if this client knows the size of the file, apart from appends that other clients are making at the moment.
    knows_end: Cell<bool>,
}

/// Open files by the numbers that handles have for them.
#[derive(Default)]
pub(crate) struct OpenFiles {
    files: RefCell<BTreeMap<u64, Rc<OpenFile>>>,
    last: Cell<u64>,
}

impl OpenFiles {
    /// Adds a file that was opened by `path`, or by its number if there is no path. Returns the number for handles.
    pub(crate) fn enter(
        &self,
        client: &Rc<ClientNode>,
        name: &str,
        path: Option<Vec<u8>>,
        file: OpenTreeFile<RealMachine>,
    ) -> u64 {
        let number = self.last.get() + 1;
        self.last.set(number);
        let file = OpenFile {
            client: client.clone(),
            name: name.to_owned(),
            path,
            file,
            calls: InFlight::new(),
            is_unclosed: Cell::new(false),
            knows_end: Cell::new(false),
        };
        self.files.borrow_mut().insert(number, Rc::new(file));
        number
    }

    /// Returns the file of this number, and a guard that keeps it open. Drop the file before the guard.
    pub(crate) fn begin_call(&self, number: u64, name: &str) -> Result<(Rc<OpenFile>, OperationInFlight)> {
        let file = self.files.borrow().get(&number).cloned().ok_or_else(|| Error::file_closed(name))?;
        let operation = file.calls.begin();
        Ok((file, operation))
    }

    /// Closes the file of this number after its calls in flight have ended. No further calls can begin. Reopens the
    /// file if its data in the write cache cannot be flushed.
    pub(crate) async fn close(&self, number: u64, name: &str) -> Result<()> {
        let removed = self.files.borrow_mut().remove(&number);
        let file = removed.ok_or_else(|| Error::file_closed(name))?;
        file.calls.none().await;
        if let Err(error) = file.flush_written().await {
            self.files.borrow_mut().insert(number, file);
            return Err(error);
        }
        let OpenFile { client, name, file, .. } =
            Rc::into_inner(file).expect("every call drops the file before it ends");
        client.explained(&name, file.close().await)
    }

    /// Records that the file of this number, if it is open, could not be closed.
    pub(crate) fn note_unclosed(&self, number: u64) {
        if let Some(file) = self.files.borrow().get(&number) {
            file.is_unclosed.set(true);
        }
    }

    /// Closes the files that could not be closed before.
    pub(crate) async fn close_unclosed(&self) -> Result<()> {
        while let Some((number, name)) = self.any_unclosed() {
            self.close(number, &name).await?;
        }
        Ok(())
    }

    fn any_unclosed(&self) -> Option<(u64, String)> {
        let files = self.files.borrow();
        let (&number, file) = files.iter().find(|(_, file)| file.is_unclosed.get())?;
        Some((number, file.name.clone()))
    }
}

impl OpenFile {
    /// Returns the file itself, which bypasses the page cache.
    pub(crate) fn file(&self) -> &File<RealMachine> {
        self.file.paged().file()
    }

    /// Returns the write cache if the file has been written through it: then only the cache knows the contents of the
    /// file.
    fn writer(&self) -> Option<&WriteCache<RealMachine>> {
        self.client.write_cache.as_ref().filter(|cache| cache.has_written(self.file()))
    }

    /// Reads bytes from an offset on, bypassing the page cache, including bytes in the write cache.
    async fn read_written(
        &self,
        cache: &WriteCache<RealMachine>,
        offset: u64,
        bytes: u64,
    ) -> Result<Vec<LentPage>> {
        let bytes = bytes.min(self.known_bytes().saturating_sub(offset));
        let memory = Memory::real(vec![0; bytes as usize]);
        let read = self.explained(cache.read(self.file(), offset, bytes, &memory, 0).await)?;
        Ok(if read == 0 { Vec::new() } else { vec![self.lend(memory.get(0, read))] })
    }

    /// Reads bytes from an offset on, in pages; returns fewer at the end of the file. Requests all pages at once.
    pub(crate) async fn read(&self, offset: u64, bytes: u64) -> Result<Vec<LentPage>> {
        if let Some(cache) = self.writer() {
            return self.read_written(cache, offset, bytes).await;
        }
        let (mut at, end, mut lent) = (offset, offset.saturating_add(bytes), Vec::new());
        while at < end {
            let page = self.rest_of_page(at, end - at).await?;
            if page.is_empty() {
                break;
            }
            at += page.len();
            lent.push(self.lend(page));
        }
        Ok(lent)
    }

    /// Reads bytes from an offset on, in pages; returns fewer at the end of the file. Requests all bytes that the page
    /// cache lacks at once, without adding them to the cache.
    pub(crate) async fn read_alone(&self, offset: u64, bytes: u64) -> Result<Vec<LentPage>> {
        if let Some(cache) = self.writer() {
            return self.read_written(cache, offset, bytes).await;
        }
        let parts = Extent::new(offset, bytes).parts(self.file.paged().page_bytes());
        let reads = parts.map(|part| self.file.paged().read_alone(part.offset, part.bytes));
        let mut lent = Vec::new();
        for read in join_all(reads).await {
            let page = self.explained(read)?;
            if !page.is_empty() {
                lent.push(self.lend(page));
            }
        }
        Ok(lent)
    }

    /// Reads the page that contains an offset, from the offset on, and the following pages that are then ready, up to
    /// `most` bytes; no page at the end of the file. The caller will read `wanted` bytes, so all their pages are
    /// requested at once.
    pub(crate) async fn read_ready(&self, offset: u64, wanted: u64, most: u64) -> Result<Vec<LentPage>> {
        let (page_bytes, wanted_end) = (self.file.paged().page_bytes(), offset.saturating_add(wanted));
        if let Some(cache) = self.writer() {
            return self.read_written(cache, offset, wanted.clamp(page_bytes, most.max(page_bytes))).await;
        }
        let (mut at, mut lent) = (offset, Vec::new());
        while lent.is_empty() || (at - offset < most && self.file.paged().is_ready(at)) {
            let rest_of_page = page_bytes - at % page_bytes;
            let page = self.rest_of_page(at, rest_of_page.max(wanted_end.saturating_sub(at))).await?;
            if page.is_empty() {
                break;
            }
            at += page.len();
            lent.push(self.lend(page));
            // A short page is the last page of the file.
            if !at.is_multiple_of(page_bytes) {
                break;
            }
        }
        Ok(lent)
    }

    /// Returns the bytes of the page from `at` on, for a caller that wants `bytes` bytes.
    async fn rest_of_page(&self, at: u64, bytes: u64) -> Result<Payload> {
        // With a fixed window, or none, the number of pages that are requested does not depend on `bytes`.
        let is_adaptive = self.client.settings.prefetch == Prefetch::Adaptive;
        let rest_of_page = self.file.paged().page_bytes() - at % self.file.paged().page_bytes();
        let bytes = if is_adaptive { bytes } else { bytes.min(rest_of_page) };
        self.explained(self.file.paged().read_some(at, bytes).await)
    }

    fn lend(&self, page: Payload) -> LentPage {
        self.client.lending.borrow_mut().lend(page)
    }

    /// Writes bytes at an offset.
    pub(crate) async fn write(&self, offset: u64, bytes: Vec<u8>) -> Result<()> {
        self.explained(self.file.write(offset, Payload::from(bytes)).await)
    }

    /// Writes at the end. Returns the offset. Other clients may have appended since this client last sent all its data
    /// to the agents. In this case requests the size again, as late as possible.
    pub(crate) async fn append(&self, bytes: Vec<u8>) -> Result<u64> {
        let Some(cache) = &self.client.write_cache else {
            return self.explained(self.file.append(Payload::from(bytes)).await);
        };
        let _turn = self.file.paged().turn_to_append().await;
        if !self.knows_end.get() {
            self.explained(self.file.attributes().await)?;
        }
        self.knows_end.set(self.client.settings.write_behind);
        let end = self.known_bytes();
        self.explained(cache.write(self.file(), end, &Payload::from(bytes)).await)?;
        Ok(end)
    }

    /// Reads a selection, alone or with the other members at their team's `turn`. Returns the bytes before the end of
    /// the file.
    pub(crate) async fn read_selected(
        &self,
        turn: Option<&TeamTurn<'_, RealMachine>>,
        selection: &Selection,
        settings: SelectedSettings,
    ) -> Result<Vec<u8>> {
        let memory = self.or_refused(turn, self.memory_for(selection.bytes())).await?;
        let read = self.read_selected_into(turn, selection, &memory, settings).await?;
        let mut bytes = memory.into_vec().expect("real memory");
        bytes.truncate(read as usize);
        Ok(bytes)
    }

    /// Reads a selection like [`read_selected`](Self::read_selected), into memory of the length of the selection. Bytes
    /// beyond the end of the file leave the memory unchanged. Returns the number of bytes before the end of the file.
    pub(crate) async fn read_selected_into(
        &self,
        turn: Option<&TeamTurn<'_, RealMachine>>,
        selection: &Selection,
        memory: &Memory,
        settings: SelectedSettings,
    ) -> Result<u64> {
        let file = self.file_for(turn, selection, memory).await?;
        self.explained(file.read_selected(turn, selection, memory, settings).await)
    }

    /// Writes a selection, alone or with the other members at their team's `turn`.
    pub(crate) async fn write_selected(
        &self,
        turn: Option<&TeamTurn<'_, RealMachine>>,
        selection: &Selection,
        memory: &Memory,
        settings: SelectedSettings,
    ) -> Result<()> {
        let file = self.file_for(turn, selection, memory).await?;
        self.explained(file.write_selected(turn, selection, memory, settings).await)
    }

    /// Returns the file, after flushing its data from the write cache. Fails unless the memory is as long as the
    /// selection.
    async fn file_for(
        &self,
        turn: Option<&TeamTurn<'_, RealMachine>>,
        selection: &Selection,
        memory: &Memory,
    ) -> Result<&OpenTreeFile<RealMachine>> {
        let prepared = self.flush_written().await.and_then(|()| {
            let (given, wanted) = (memory.len(), selection.bytes());
            let why = || format!("the buffer has {given} bytes, but the selection has {wanted}");
            if given == wanted { Ok(&self.file) } else { Err(self.invalid(why())) }
        });
        self.or_refused(turn, prepared).await
    }

    fn memory_for(&self, bytes: u64) -> Result<Memory> {
        match Vec::<u8>::new().try_reserve_exact(bytes as usize) {
            Ok(()) => Ok(Memory::real(vec![0; bytes as usize])),
            Err(_) => Err(self.invalid(format!("not enough memory for the {bytes} selected bytes"))),
        }
    }

    fn invalid(&self, why: String) -> Error {
        Error::new(ErrorKind::Invalid, &self.name, why)
    }

    /// Returns `prepared`. If it is an error, sends a refusal to the members of the team.
    async fn or_refused<T>(
        &self,
        turn: Option<&TeamTurn<'_, RealMachine>>,
        prepared: Result<T>,
    ) -> Result<T> {
        if let (Some(turn), Err(error)) = (turn, &prepared) {
            turn.refuse(&fs::Error::Invalid(error.to_string())).await;
        }
        prepared
    }

    /// Returns the size in bytes as far as this client knows it.
    pub(crate) fn known_bytes(&self) -> u64 {
        let cached = self.writer().map_or(0, |cache| cache.end_of(self.file()).max(self.file().bytes()));
        self.file.paged().bytes().max(cached)
    }

    pub(crate) async fn stat(&self) -> Result<Stat> {
        self.explained(self.file.attributes().await)?;
        Ok(self.known_stat())
    }

    /// Returns the number of the file.
    pub(crate) fn number(&self) -> FileNumber {
        self.file.number()
    }

    /// Returns the metadata as far as this client knows them.
    pub(crate) fn known_stat(&self) -> Stat {
        Stat::of(self.known_bytes(), self.file.paged().striping(), &self.file.known())
    }

    pub(crate) async fn set_len(&self, bytes: u64) -> Result<()> {
        self.flush_written().await?;
        self.explained(self.file.set_len(bytes).await).map(drop)
    }

    pub(crate) async fn check_losses(&self) -> Result<()> {
        self.explained(self.file.paged().check_losses().await)
    }

    pub(crate) async fn flush(&self) -> Result<()> {
        self.knows_end.set(false);
        self.flush_written().await?;
        self.explained(self.file.sync().await)
    }

    /// Flushes the data of all members of a team to stable storage, at its `turn`.
    pub(crate) async fn sync_together(&self, turn: &TeamTurn<'_, RealMachine>) -> Result<()> {
        self.knows_end.set(false);
        let written = self.flush_written().await;
        self.or_refused(Some(turn), written).await?;
        self.explained(self.file.sync_together(turn).await)
    }

    /// Sends all written data to the agents, and reports them to the metadata server.
    pub(crate) async fn send(&self) -> Result<()> {
        self.knows_end.set(false);
        self.flush_written().await?;
        self.explained(self.file.flush().await)
    }

    /// If this member has unflushed writes to the file, requests a flush by all members of the job. Then reports the
    /// end of this member's writes to the namespace, even if another member started the flush.
    async fn flush_written(&self) -> Result<()> {
        let Some(cache) = self.writer() else { return Ok(()) };
        if cache.end_of(self.file()) > 0 {
            self.explained(cache.flush().await)?;
        }
        match self.file().uncounted_end() {
            0 => Ok(()),
            // Each member must report its writes itself, since members of a job do not know each other's writes to the
            // file.
            end => self.explained(self.file.wrote_past_cache(end, end).await),
        }
    }

    pub(crate) fn advise(&self, advice: Advice) {
        if let Some(path) = &self.path {
            self.client.temporary_paths.note(self.file.number(), path, advice);
        }
        self.file.paged().advise(advice);
    }

    pub(crate) fn explained<T>(&self, outcome: fs::Result<T>) -> Result<T> {
        self.client.explained(&self.name, outcome)
    }
}
