//! An open file of the namespace.
//!
//! - The metadata server's size and version are authoritative. Writes not yet reported to it are recorded separately,
//!   in a state that all handles of this client on the file share.
//! - Close-to-open: [`flush`](OpenTreeFile::flush) sends writes to the I/O nodes and reports them to the metadata
//!   server, which assigns the file its next version. A client that opens the file then sees that its pages are of
//!   another version. Without a flush that happens some time later (`report_writes.rs`).
//! - The metadata server's size ends before the first byte that the I/O nodes have not accepted.
//! - The metadata server assigns the offset of an append, so that no two appends overlap. An append waits until the
//!   bytes before it are reported, so that no client sees a gap.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::rc::Rc;

use layout::Selection;
use machine::{Duration, Machine, Memory, OperationInFlight, Payload, Permits};
use namespace::{
    AttributeChanges, FileNumber, Inode, RUN_STEP, TreeAnswer, TreeOperation, TreeRefusal, WrittenContents,
};

use super::Tree;
use crate::error::Result;
use crate::group_operation::{decoded, encoded};
use crate::protocol::{FileId, OpenFor};
use crate::range_locks::LEASE;
use crate::selected::SelectedOperation;
use crate::{NumberedFile, PagedFile, Participants, SelectedSettings, TeamTurn, unexpected};

/// First and longest pause before the client asks the metadata server again for the report of earlier appends. The
/// first is about the duration of a write and its report.
const ASK_AGAIN: Duration = Duration::from_nanos(500_000);
const ASK_AGAIN_MOST: Duration = Duration::from_millis(16);

/// State shared by the handles of one client on a file.
pub(super) struct TreeFileState {
    /// The metadata server's inode, as far as known.
    inode: RefCell<Inode>,
    /// End of the furthest write that no report to the metadata server contains. An end is reported once: if another
    /// client truncates the file after that, a second report would extend it again.
    written_end: Cell<u64>,
    /// End in the report in flight, or 0.
    reported_end: Cell<u64>,
    /// Number of bytes written and not yet reported to the metadata server.
    written_bytes: Cell<u64>,
    /// Time of the last write, in nanoseconds since 1970, that was not reported after the I/O nodes accepted it.
    written_at: Cell<Option<i64>>,
    /// Number of discarded writes when `written_end` was last updated.
    given_up: Cell<u64>,
    /// Serialises reports to the metadata server.
    pub(super) reporting: Permits,
    /// True if a task is going to publish the writes.
    pub(super) is_to_be_published: Cell<bool>,
    /// Serialises appends.
    appending: Permits,
    /// Number of open handles.
    pub(super) handles: Cell<usize>,
    /// Number of detected changes of the contents by others.
    changed_by_others: Cell<u64>,
}

/// Message from the first member of a team.
pub(super) struct MessageOfFirst {
    /// Version of the file.
    pub(super) version: u64,
    /// Incarnation of the metadata server's store that has changed or flushed the inode, if any.
    pub(super) run: Option<u64>,
}

/// Writes to report to the metadata server, and the time of the last one.
struct UnreportedWrites {
    time: i64,
    written: WrittenContents,
}

impl TreeFileState {
    fn new(inode: Inode) -> Self {
        TreeFileState {
            inode: RefCell::new(inode),
            written_end: Cell::new(0),
            reported_end: Cell::new(0),
            written_bytes: Cell::new(0),
            written_at: Cell::new(None),
            given_up: Cell::new(0),
            reporting: Permits::new(1),
            is_to_be_published: Cell::new(false),
            appending: Permits::new(1),
            handles: Cell::new(0),
            changed_by_others: Cell::new(0),
        }
    }

    pub(super) fn number(&self) -> FileNumber {
        self.inode.borrow().number
    }

    /// Returns true if a write was not reported to the metadata server after the I/O nodes accepted it.
    pub(super) fn has_unreported(&self) -> bool {
        self.written_at.get().is_some()
    }

    /// Returns the end of the furthest write that the metadata server may not know.
    fn unknown_end(&self) -> u64 {
        self.written_end.get().max(self.reported_end.get())
    }

    /// Records that the file ends at `end` for this client.
    fn cut(&self, end: u64) {
        self.written_end.set(self.written_end.get().min(end));
        self.reported_end.set(self.reported_end.get().min(end));
    }

    /// Returns the metadata server's inode, updated by this client's unreported writes.
    fn seen(&self, mut inode: Inode) -> Inode {
        inode.note_written(self.unknown_end(), self.written_bytes.get());
        if let Some(time) = self.written_at.get() {
            inode.modified = inode.modified.max(time);
            inode.changed = inode.changed.max(time);
        }
        inode
    }
}

/// An open file of the namespace. Close it by [`close`](Self::close): if it is dropped instead, it stays open at the
/// metadata server until the client ends.
pub struct OpenTreeFile<M: Machine> {
    pub(super) tree: Tree<M>,
    pub(super) paged: PagedFile<M>,
    pub(super) state: Rc<TreeFileState>,
    /// The use for which it was opened.
    pub(super) used: OpenFor,
    pub(super) had_other_writers: bool,
}

impl<M: Machine> Tree<M> {
    /// Opens the file in the answer to an operation for reading and writing: a lookup of a path, the creation of a
    /// file, or a number.
    ///
    /// # Errors
    /// Fails if the operation is refused, or if the answer is no file.
    pub async fn open(&self, operation: TreeOperation) -> Result<OpenTreeFile<M>> {
        self.open_for(operation, OpenFor::Writing).await
    }

    /// Opens the file for a use, as [`open`](Self::open) does for writing. Clients that open the file later learn of
    /// the use ([`OpenTreeFile::had_other_writers`]). It is not enforced.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does.
    pub async fn open_for(&self, operation: TreeOperation, used: OpenFor) -> Result<OpenTreeFile<M>> {
        let (inode, had_other_writers) = self.hold(operation, used).await?;
        let number = inode.number;
        let opened = self.open_held(inode, used, had_other_writers).await;
        if opened.is_err() {
            machine::sometimes!("a file is released because it cannot be opened");
            // Report the first failure.
            let _ = self.release_file(number, used).await;
        }
        opened
    }

    async fn open_held(
        &self,
        inode: Inode,
        used: OpenFor,
        had_other_writers: bool,
    ) -> Result<OpenTreeFile<M>> {
        let mut numbered = self.numbered(&inode).await?;
        let inode = self.newest(inode).await?;
        (numbered.bytes, numbered.stored_stripes) = (inode.size, inode.stored_stripes);
        let number = inode.number;
        let paged = self.cache().open_numbered(numbered).await?;
        let inode = self.newest(inode).await?;
        self.note_lease(number);
        // No await below: of two concurrent opens the second must find the state of the first.
        let known = self.inner.states.borrow().get(&number).cloned();
        let state = match known {
            Some(state) => {
                self.note_inode(&state, &paged, inode);
                state
            }
            None => {
                // The cache may have pages from an earlier open, and the file may have changed since.
                paged.file().note_stored_stripes(inode.stored_stripes, inode.size == 0);
                paged.note_changed(inode.size);
                let state = Rc::new(TreeFileState::new(inode));
                self.inner.states.borrow_mut().insert(number, state.clone());
                state
            }
        };
        state.handles.set(state.handles.get() + 1);
        Ok(OpenTreeFile { tree: self.clone(), paged, state, used, had_other_writers })
    }

    /// Returns the inode, or asks for it again if a concurrent operation of this client has received a later version.
    async fn newest(&self, mut inode: Inode) -> Result<Inode> {
        let (number, mut asked_after) = (inode.number, None);
        loop {
            let known = self.inner.states.borrow().get(&number).map(|state| state.inode.borrow().version);
            // If the metadata server answers with an older version than the one that this client knew when it asked,
            // the server has lost that version in a crash.
            if known.is_none_or(|known| inode.version >= known) || asked_after == known {
                return Ok(inode);
            }
            machine::sometimes!("an operation receives an older inode than another operation");
            asked_after = known;
            inode = self.inode(TreeOperation::Get { number }).await?;
        }
    }

    /// Returns the metadata for access to the contents of a file without the page cache.
    ///
    /// # Errors
    /// Fails if it is no file, or if no I/O node has one of its disks.
    pub async fn numbered(&self, inode: &Inode) -> Result<NumberedFile> {
        let layout = inode.contents()?;
        let disks = self.disk_list(layout.disks).await?;
        let disks = layout.disks_in(&disks).collect();
        let number = FileId(inode.number.0);
        let (bytes, stored_stripes) = (inode.size, inode.stored_stripes);
        Ok(NumberedFile { number, striping: layout.striping, disks, bytes, stored_stripes })
    }

    /// Returns the metadata server's inode, updated by this client's unreported writes.
    pub fn seen(&self, inode: Inode) -> Inode {
        match self.inner.states.borrow().get(&inode.number) {
            Some(state) => state.seen(inode),
            None => inode,
        }
    }

    /// Updates the known inode. If others have changed the file, its cached pages become invalid.
    fn note_inode(&self, state: &TreeFileState, paged: &PagedFile<M>, inode: Inode) {
        let (version, bytes) = (inode.version, inode.size);
        paged.file().note_stored_stripes(inode.stored_stripes, bytes == 0);
        let before = state.inode.replace(inode).version;
        if version != before {
            state.changed_by_others.set(state.changed_by_others.get() + 1);
            paged.note_changed(bytes);
        }
    }
}

impl<M: Machine> OpenTreeFile<M> {
    /// Returns the file in the page cache, for reads and hints.
    pub fn paged(&self) -> &PagedFile<M> {
        &self.paged
    }

    pub(super) fn tree(&self) -> &Tree<M> {
        &self.tree
    }

    /// Returns the number of the file.
    pub fn number(&self) -> FileNumber {
        self.state.number()
    }

    /// Returns the known attributes of the file, updated by this client's writes, without a request.
    pub fn known(&self) -> Inode {
        self.state.seen(self.state.inode.borrow().clone())
    }

    /// Returns true if another client had the file open for writing when this client opened it.
    pub fn had_other_writers(&self) -> bool {
        self.had_other_writers
    }

    /// Returns the number of changes of the contents by others that this client has detected while it had the file
    /// open. A caller that caches contents compares it to see if its copies are still valid.
    pub fn changed_by_others(&self) -> u64 {
        self.state.changed_by_others.get()
    }

    /// Returns the attributes of the file from the metadata server, updated by this client's writes.
    ///
    /// # Errors
    /// Fails if the metadata server does not answer.
    pub async fn attributes(&self) -> Result<Inode> {
        self.note_given_up();
        let inode = self.tree.inode(TreeOperation::Get { number: self.number() }).await?;
        self.note_newest(inode).await?;
        Ok(self.known())
    }

    /// Records the inode in an answer, or a later one if another operation of this client has received that.
    async fn note_newest(&self, inode: Inode) -> Result<()> {
        let inode = self.tree.newest(inode).await?;
        self.tree.note_inode(&self.state, &self.paged, inode);
        Ok(())
    }

    /// Writes `data` at `offset`, extending the file if necessary. On completion the data are in the page cache.
    ///
    /// # Errors
    /// Fails as [`PagedFile::write`] does.
    pub async fn write(&self, offset: u64, data: Payload) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let (bytes, end) = (data.len(), offset + data.len());
        self.paged.write(offset, data).await?;
        // A concurrent truncation may have shortened the file.
        machine::sometimes!("a truncation shortens the file during a write", if self.paged.bytes() < end);
        let end = end.min(self.paged.bytes());
        self.state.written_end.set(self.state.written_end.get().max(end));
        self.state.written_bytes.set(self.state.written_bytes.get() + bytes);
        let now = self.tree.machine().date().as_nanos() as i64;
        self.state.written_at.set(Some(now));
        self.tree.publish_in_time();
        Ok(())
    }

    /// Writes `data` at the end of the file. Returns its offset. Waits for earlier appends of other clients: at most
    /// for the duration of a lease without progress.
    ///
    /// # Errors
    /// Fails as [`write`](Self::write) does, or if the metadata server assigns no offset. If a write fails after that,
    /// its range reads as zeros as soon as a later append follows.
    pub async fn append(&self, data: Payload) -> Result<u64> {
        // Report a failure of an earlier write before an offset is assigned.
        self.paged.write(0, Payload::empty()).await?;
        let _turn = self.state.appending.take().await;
        self.note_given_up();
        let (number, bytes) = (self.number(), data.len());
        let offset = loop {
            let append = TreeOperation::Append { number, bytes, after: self.state.unknown_end() };
            let TreeAnswer::Appended { offset, inode } = self.tree.perform(append).await? else {
                return Err(unexpected(self.tree.metadata_server()));
            };
            let runs = self.tree.new_runs();
            self.note_newest(inode).await?;
            self.wait_for_appends_before(offset).await?;
            if self.tree.new_runs() == runs {
                break offset;
            }
            // A power cut at the metadata server during the wait: it may assign the same range to another client.
            machine::sometimes!("an assigned range is lost before the append");
        };
        self.write(offset, data).await?;
        self.tree.publish(&self.state);
        Ok(offset)
    }

    /// Blocks until the file extends to `offset`. Other clients have been assigned ranges before it, and report them in
    /// a few milliseconds. A client that fails does not report, so the wait has a limit.
    async fn wait_for_appends_before(&self, offset: u64) -> Result<()> {
        let machine = self.tree.machine();
        let (mut size, mut since, mut pause) = (self.known().size, machine.now(), ASK_AGAIN);
        while size < offset && machine.now().since(since) < LEASE {
            machine::sometimes!("an append waits for an earlier append");
            machine.sleep_until(machine.now() + pause).await;
            pause = ASK_AGAIN_MOST.min(pause + pause);
            let now = self.attributes().await?.size;
            if now > size {
                (size, since) = (now, machine.now());
            }
        }
        Ok(())
    }

    /// Updates the inode after a change of contents by this client: the version after the known one is its own.
    async fn take_own(&self, inode: Inode) -> Result<()> {
        let known = self.state.inode.borrow().version;
        if inode.version != known.wrapping_add(RUN_STEP) {
            return self.note_newest(inode).await;
        }
        self.paged.set_bytes(inode.size);
        self.paged.file().note_stored_stripes(inode.stored_stripes, inode.size == 0);
        self.state.inode.replace(inode);
        Ok(())
    }

    /// Reads the selection into `memory`, together with the other members of a team in their turn, or alone. The
    /// selected bytes are packed in file order, and the memory must be zeroed. Returns the number of bytes read, which
    /// is less than selected if the file ends before.
    ///
    /// The read sees all earlier writes of this client and of the other members.
    ///
    /// # Errors
    /// Fails as [`File::read_selected`](crate::File::read_selected) does, or if this client's writes cannot be sent.
    pub async fn read_selected(
        &self,
        team: Option<&TeamTurn<'_, M>>,
        selection: &Selection,
        memory: &Memory,
        settings: SelectedSettings,
    ) -> Result<u64> {
        let before_call = self.paged.failures_before_call();
        let read = self.read_selected_unreported(team, selection, memory, settings).await;
        self.paged.report_failures(before_call).and(read)
    }

    /// Reads a selection as [`read_selected`](Self::read_selected) does, but failures of writes remain unreported.
    async fn read_selected_unreported(
        &self,
        team: Option<&TeamTurn<'_, M>>,
        selection: &Selection,
        memory: &Memory,
        settings: SelectedSettings,
    ) -> Result<u64> {
        let fits = self.flush_shared().await;
        self.paged.truncations_ended().await;
        let operation = SelectedOperation::read(selection, memory, settings);
        let file = self.paged.file();
        let query_attributes =
            async |_| self.attributes().await.map(|_| message_to_team(&self.inode(), None));
        let moved = file.move_selected(company(team), &operation, fits, query_attributes).await?;
        self.adopt_message_of_first(&moved.message).await?;
        Ok(selection.bytes_before(self.known().size))
    }

    /// Writes the selection from `memory`, together with the other members of a team in their turn, or alone. On
    /// completion the metadata server knows of the write, and the page caches of all members are up to date.
    ///
    /// # Errors
    /// Fails as [`File::write_selected`](crate::File::write_selected) does, or if the metadata server rejects the
    /// report.
    pub async fn write_selected(
        &self,
        team: Option<&TeamTurn<'_, M>>,
        selection: &Selection,
        memory: &Memory,
        settings: SelectedSettings,
    ) -> Result<()> {
        let before_call = self.paged.failures_before_call();
        let written = self.write_selected_unreported(team, selection, memory, settings).await;
        self.paged.report_failures(before_call).and(written)
    }

    /// Writes a selection as [`write_selected`](Self::write_selected) does, but failures of earlier writes remain
    /// unreported.
    async fn write_selected_unreported(
        &self,
        team: Option<&TeamTurn<'_, M>>,
        selection: &Selection,
        memory: &Memory,
        settings: SelectedSettings,
    ) -> Result<()> {
        // Take the lease now: the locks may end during the flush.
        let lease = self.paged.file().lease();
        let operation = SelectedOperation { lease, ..SelectedOperation::write(selection, memory, settings) };
        // Flush first: cached pages must not be written over this data later.
        let fits = self.flush_shared().await;
        let publish_size = async |end| {
            if end == 0 {
                return Ok(message_to_team(&self.inode(), None));
            }
            // An upper bound: the number of bytes that the members have selected is unknown here.
            self.wrote_past_cache(end, end).await?;
            Ok(message_to_team(&self.inode(), self.tree.run_of_last_change(self.number())))
        };
        let moved = self.paged.file().move_selected(company(team), &operation, fits, publish_size).await?;
        let message = self.adopt_message_of_first(&moved.message).await?;
        if let Some(run) = message.run {
            // The size is the result of all members' writes, so each of them reports its loss.
            self.tree.note_change_for_team(self.number(), run);
        }
        Ok(())
    }

    /// Returns the metadata server's inode, as far as known.
    pub(super) fn inode(&self) -> Inode {
        self.state.inode.borrow().clone()
    }

    /// Updates the inode to the one in the message from the first member of a team.
    ///
    /// # Errors
    /// Fails if it cannot be an inode of this file.
    pub(super) async fn adopt_message_of_first(&self, message: &[u8]) -> Result<MessageOfFirst> {
        let metadata_server = self.tree.metadata_server();
        let (inode, run): (Inode, Option<u64>) = decoded(message, metadata_server)?;
        let (version, known) = (inode.version, self.state.inode.borrow().version);
        let is_this = inode.number == self.number() && inode.kind == self.state.inode.borrow().kind;
        if !is_this || inode.size > layout::FILE_BYTES_MAX {
            return Err(unexpected(metadata_server));
        }
        match version.cmp(&known) {
            Ordering::Greater => self.note_newest(inode).await?,
            Ordering::Equal => {}
            // This member has received a later version since, or the metadata server has lost the version that this
            // member knows.
            Ordering::Less => {
                machine::sometimes!("the message of the first member is older than the known inode");
                drop(self.attributes().await?);
            }
        }
        Ok(MessageOfFirst { version, run })
    }

    /// Reports to the metadata server that at most `bytes` bytes have been written without the page cache, up to `end`.
    ///
    /// # Errors
    /// Fails if the metadata server rejects the report.
    pub async fn wrote_past_cache(&self, end: u64, bytes: u64) -> Result<()> {
        self.report(0).await?;
        // Other members of a team may have created stripes.
        self.paged.file().look_for_stored(end).await?;
        let written = self.written(end, bytes).await;
        let inode = self.tree.inode(TreeOperation::Wrote { number: self.number(), written }).await?;
        let inode = self.tree.newest(inode).await?;
        let bytes = inode.size;
        self.paged.file().note_counted(end);
        self.state.inode.replace(inode);
        self.paged.note_written_past(bytes);
        Ok(())
    }

    /// Returns the report of contents written up to `end`.
    async fn written(&self, end: u64, bytes: u64) -> WrittenContents {
        WrittenContents { end, stored_stripes: self.paged.file().stored_stripes().await, bytes }
    }

    /// Excludes discarded writes from the next report.
    fn note_given_up(&self) {
        let given_up = self.paged.given_up();
        if self.state.given_up.replace(given_up) != given_up {
            machine::sometimes!("discarded writes shorten the known length");
            self.state.cut(self.paged.bytes());
        }
    }

    /// Sends writes and reports them to the metadata server, including partial success: data at the I/O nodes count
    /// even if other writes fail.
    async fn send_and_report(&self, send: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
        let written_end = self.state.written_end.get();
        let sent = send().await;
        let reported = self.report(if sent.is_ok() { written_end } else { 0 }).await;
        sent.and(reported)
    }

    /// Reports sent writes to the metadata server: all earlier writes up to `sent_end`, and any others that were sent.
    async fn report(&self, sent_end: u64) -> Result<()> {
        let _turn = self.state.reporting.take().await;
        self.report_in_turn(sent_end).await
    }

    /// Reports sent writes. The caller holds the permit for reports of this file.
    async fn report_in_turn(&self, sent_end: u64) -> Result<()> {
        let Some(unreported) = self.take_unreported(sent_end).await else { return Ok(()) };
        let (number, written) = (self.number(), unreported.written);
        let answer = self.tree.inode(TreeOperation::Wrote { number, written }).await;
        self.note_answer(unreported, answer.map(Some)).await
    }

    /// Closes the file and reports sent writes that the metadata server does not know of, in one message.
    async fn report_and_close(&self, sent_end: u64) -> Result<()> {
        let _turn = self.state.reporting.take().await;
        self.state.handles.set(self.state.handles.get() - 1);
        let Some(unreported) = self.take_unreported(sent_end).await else {
            return self.tree.release_file(self.number(), self.used).await;
        };
        let answer = self.tree.close_written(self.number(), self.used, unreported.written).await;
        self.note_answer(unreported, answer).await
    }

    /// Returns the report of sent writes, if there are any. Unsent writes are reported later, and the reported size
    /// ends before them.
    async fn take_unreported(&self, sent_end: u64) -> Option<UnreportedWrites> {
        let time = self.state.written_at.get()?;
        self.note_given_up();
        let (end, known) = (self.state.written_end.get(), self.state.inode.borrow().size);
        let sent_end = self.paged.first_unsent(known).map_or(end, |first| end.min(first.max(sent_end)));
        if self.paged.is_sent() {
            self.state.written_at.set(None);
        }
        if sent_end == end {
            self.state.written_end.set(end.min(self.paged.unsent_end()));
        }
        self.state.reported_end.set(sent_end);
        let written = self.written(sent_end, self.state.written_bytes.take()).await;
        Some(UnreportedWrites { time, written })
    }

    /// Records a report's result. The answer is the resulting inode, or `None` if the file is removed. After a failure,
    /// another handle on the file reports the writes.
    async fn note_answer(&self, unreported: UnreportedWrites, answer: Result<Option<Inode>>) -> Result<()> {
        let UnreportedWrites { time, written: WrittenContents { end, bytes, .. } } = unreported;
        let reported_end = self.state.reported_end.take();
        match answer {
            Ok(Some(inode)) => {
                self.paged.file().note_counted(end);
                self.take_own(inode).await
            }
            Ok(None) => Ok(()),
            Err(error) => {
                machine::sometimes!("a failed report of writes stays for the next report");
                self.state.written_end.set(self.state.written_end.get().max(reported_end));
                self.state.written_bytes.set(self.state.written_bytes.get() + bytes);
                self.state.written_at.set(self.state.written_at.get().or(Some(time)));
                Err(error)
            }
        }
    }

    /// Blocks until all writes are at the I/O nodes and reported to the metadata server. A client that opens the file
    /// then reads them.
    ///
    /// # Errors
    /// Fails with the first failed write that this handle has not reported.
    pub async fn flush(&self) -> Result<()> {
        let before_call = self.paged.failures_before_call();
        let sent = self.flush_shared().await;
        self.paged.report_failures(before_call).and(sent)
    }

    /// Flushes as [`flush`](Self::flush) does, for a process that shares the handle and may ignore errors, such as one
    /// that closes an inherited descriptor. Failures will be reported to the other processes, too.
    ///
    /// # Errors
    /// Fails as [`flush`](Self::flush) does.
    pub async fn flush_shared(&self) -> Result<()> {
        self.send_and_report(async || self.paged.send_shared().await).await
    }

    /// Publishes writes. The caller holds the permit for reports of this file.
    ///
    /// # Errors
    /// Fails if the metadata server does not answer. Unsent writes remain in the page cache, which reports their
    /// failures.
    pub(super) async fn publish(&self) -> Result<()> {
        let written_end = self.state.written_end.get();
        let sent = self.paged.send_shared().await;
        self.report_in_turn(if sent.is_ok() { written_end } else { 0 }).await
    }

    /// Blocks until all writes are on stable storage, and the namespace with them.
    ///
    /// # Errors
    /// Fails as [`flush`](Self::flush) does, or if the flush to stable storage fails.
    pub async fn sync(&self) -> Result<()> {
        let before_call = self.paged.failures_before_call();
        let flushed = self.flush_to_media().await;
        // Also after a failure: otherwise a later sync would report a loss of the namespace that is known now.
        let named = self.tree.flush_of(self.number()).await;
        self.paged.report_failures(before_call).and(flushed).and(named)
    }

    /// Blocks until all writes are on stable storage and reported to the metadata server. Failures remain unreported.
    pub(super) async fn flush_to_media(&self) -> Result<()> {
        self.send_and_report(async || self.paged.flush_shared().await).await
    }

    /// Truncates the file to `bytes`, or extends it to that length with zeros.
    ///
    /// # Errors
    /// Fails without effect if an I/O node or the metadata server does not answer. If one of them fails later in the
    /// operation, the file may be truncated at other I/O nodes.
    pub async fn set_len(&self, bytes: u64) -> Result<Inode> {
        self.change(AttributeChanges { size: Some(bytes), ..AttributeChanges::default() }).await
    }

    /// Extends the file with zeros to at least `end`. Never truncates it, even if another client extends it at the same
    /// time.
    ///
    /// # Errors
    /// Fails if the metadata server does not answer or refuses.
    pub async fn extend(&self, end: u64) -> Result<()> {
        if self.attributes().await?.size >= end {
            return Ok(());
        }
        // Send writes first: otherwise readers would see zeros in unsent ranges.
        self.flush_shared().await?;
        let written = self.written(end, 0).await;
        let inode = self.tree.inode(TreeOperation::Wrote { number: self.number(), written }).await?;
        self.take_own(inode).await?;
        Ok(())
    }

    /// Truncates the file at the I/O nodes. Blocks reads and writes through this client until the result is dropped.
    async fn cut(&self, bytes: u64) -> Result<OperationInFlight> {
        if bytes > layout::FILE_BYTES_MAX {
            return Err(TreeRefusal::FileTooLarge.into());
        }
        // Check first that all answer: a truncation at some of them cannot be undone.
        self.paged.file().check_answers(self.tree.metadata_server()).await?;
        let cut = self.paged.cut(bytes).await?;
        self.state.cut(bytes);
        Ok(cut)
    }

    /// Changes attributes. Reports earlier writes first, so that they do not overwrite a time that is set.
    ///
    /// # Errors
    /// Fails as [`flush`](Self::flush) does, or if the metadata server refuses.
    pub async fn change(&self, changes: AttributeChanges) -> Result<Inode> {
        // Block readers and writers until the metadata server has the size: it would treat writes reported before that
        // as truncated.
        let _cut = match changes.size {
            Some(bytes) => Some(self.cut(bytes).await?),
            None => None,
        };
        if changes.size.is_some() || changes.modified.is_some() {
            self.flush_shared().await?;
        }
        let inode = self.tree.inode(TreeOperation::Change { number: self.number(), changes }).await?;
        match changes.size {
            Some(bytes) => {
                self.paged.file().note_counted(bytes);
                self.take_own(inode).await?;
            }
            None => self.note_newest(inode).await?,
        }
        Ok(self.known())
    }

    /// Closes the file, after a [`flush`](Self::flush).
    ///
    /// # Errors
    /// Fails as [`flush`](Self::flush) does. The file is closed in any case.
    pub async fn close(self) -> Result<()> {
        let written_end = self.state.written_end.get();
        let before_call = self.paged.failures_before_call();
        let sent = self.paged.send_shared().await;
        let release_file = self.report_and_close(if sent.is_ok() { written_end } else { 0 }).await;
        let sent = self.paged.report_failures(before_call).and(sent);
        let OpenTreeFile { tree, paged, state, .. } = self;
        let closed = paged.close().await;
        if state.handles.get() == 0 {
            tree.inner.states.borrow_mut().remove(&state.number());
        }
        sent.and(closed).and(release_file)
    }
}

/// Encodes the message from the first member of a team, so that the others need not ask the metadata server. It has the
/// inode, and the incarnation of the server's store that has changed or flushed it, if any.
pub(super) fn message_to_team(inode: &Inode, run: Option<u64>) -> Vec<u8> {
    encoded((inode, run))
}

fn company<'a, M: Machine>(team: Option<&'a TeamTurn<'a, M>>) -> Participants<'a, M> {
    team.map_or(Participants::Alone, Participants::Team)
}
