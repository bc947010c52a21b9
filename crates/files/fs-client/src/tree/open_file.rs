//! A file of the namespace that is open.
//!
//! - The size and the version that count are those the keeper has. What was written here and not told to it is kept
//!   apart, in what all handles of this client on the file share.
//! - Close-to-open: [`flush`](OpenTreeFile::flush) sends what was written to the I/O nodes and tells the keeper, which
//!   gives the file its next version; whoever opens it then sees that its pages are of another one. Without a flush
//!   that happens some time later (`publishing.rs`).
//! - The size that the keeper has ends before the first byte that the I/O nodes have not accepted.
//! - An append is given its place by the keeper, so that nobody else is given it. It waits until the bytes before it
//!   are reported, so there are no gaps, neither for this client nor for others.

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
use crate::protocol::{Direction, FileId, OpenFor};
use crate::range_locks::LEASE;
use crate::selected::SelectedOperation;
use crate::together::{decoded, encoded};
use crate::{Company, NumberedFile, PagedFile, SelectedSettings, TeamTurn, unexpected};

/// Pauses before the keeper is asked again whether earlier appends are reported: the first and the longest. The first
/// is about what a write and its report take.
const ASK_AGAIN: Duration = Duration::from_nanos(500_000);
const ASK_AGAIN_MOST: Duration = Duration::from_millis(16);

/// What the handles of one client on a file share.
pub(super) struct TreeFileState {
    /// As the keeper has it, as far as known.
    inode: RefCell<Inode>,
    /// Where the furthest write ends that the keeper has not been told of.
    written_end: Cell<u64>,
    /// How many bytes were written that the keeper has not been told of.
    written_bytes: Cell<u64>,
    /// When something was written last of which the keeper has not been told since the I/O nodes have it.
    written_at: Cell<Option<i64>>,
    /// How often what was written here had been given up when the furthest write was last looked at.
    given_up: Cell<u64>,
    /// The turn at telling it.
    pub(super) telling: Permits,
    /// Whether a task is going to publish it.
    pub(super) is_to_be_published: Cell<bool>,
    /// The turn at appending.
    appending: Permits,
    /// The number of open handles.
    pub(super) handles: Cell<usize>,
    /// How often it turned out that others have changed the contents.
    changed_by_others: Cell<u64>,
}

/// What the keeper is told of, and when it was written last.
struct Untold {
    time: i64,
    written: WrittenContents,
}

impl TreeFileState {
    fn new(inode: Inode) -> Self {
        TreeFileState {
            inode: RefCell::new(inode),
            written_end: Cell::new(0),
            written_bytes: Cell::new(0),
            written_at: Cell::new(None),
            given_up: Cell::new(0),
            telling: Permits::new(1),
            is_to_be_published: Cell::new(false),
            appending: Permits::new(1),
            handles: Cell::new(0),
            changed_by_others: Cell::new(0),
        }
    }

    pub(super) fn number(&self) -> FileNumber {
        self.inode.borrow().number
    }

    /// Whether something was written of which the keeper has not been told since the I/O nodes have it.
    pub(super) fn has_untold(&self) -> bool {
        self.written_at.get().is_some()
    }

    /// What the keeper says of the file, with what was written here.
    fn seen(&self, mut inode: Inode) -> Inode {
        inode.note_written(self.written_end.get(), self.written_bytes.get());
        if let Some(time) = self.written_at.get() {
            inode.modified = inode.modified.max(time);
            inode.changed = inode.changed.max(time);
        }
        inode
    }
}

/// An open file of the namespace. Close it by [`close`](Self::close): dropped without that, it stays held until the
/// client ends.
pub struct OpenTreeFile<M: Machine> {
    pub(super) tree: Tree<M>,
    pub(super) paged: PagedFile<M>,
    pub(super) state: Rc<TreeFileState>,
    /// The use for which it was opened.
    pub(super) used: OpenFor,
    pub(super) had_other_writers: bool,
}

impl<M: Machine> Tree<M> {
    /// Opens the file in the answer to an operation for reading and writing: a path that is looked up, a file that is
    /// made, a number.
    ///
    /// # Errors
    /// If it is refused, or answers with no file.
    pub async fn open(&self, operation: TreeOperation) -> Result<OpenTreeFile<M>> {
        self.open_for(operation, OpenFor::Writing).await
    }

    /// Opens the file for a use, as [`open`](Self::open) does for writing. Clients that open the file later learn of
    /// the use ([`OpenTreeFile::had_other_writers`]). It is not enforced.
    ///
    /// # Errors
    /// As those of [`open`](Self::open).
    pub async fn open_for(&self, operation: TreeOperation, used: OpenFor) -> Result<OpenTreeFile<M>> {
        let (inode, had_other_writers) = self.hold(operation, used).await?;
        let number = inode.number;
        let opened = self.open_held(inode, used, had_other_writers).await;
        if opened.is_err() {
            // The first failure is the one to be told.
            let _ = self.let_go(number, used).await;
        }
        opened
    }

    async fn open_held(
        &self,
        inode: Inode,
        used: OpenFor,
        had_other_writers: bool,
    ) -> Result<OpenTreeFile<M>> {
        let numbered = self.numbered(&inode).await?;
        let number = inode.number;
        let paged = self.cache().open_numbered(numbered).await?;
        self.note_lease(number);
        // Nothing is waited for from here on: of two who open the file at once the second finds what the first enters.
        let known = self.inner.states.borrow().get(&number).cloned();
        let state = match known {
            Some(state) => {
                self.note_inode(&state, &paged, inode);
                state
            }
            None => {
                // Something may be cached still of an earlier time, and the file may have been changed since.
                paged.file().hear_stored_stripes(inode.stored_stripes, inode.size == 0);
                paged.note_changed(inode.size);
                let state = Rc::new(TreeFileState::new(inode));
                self.inner.states.borrow_mut().insert(number, state.clone());
                state
            }
        };
        state.handles.set(state.handles.get() + 1);
        Ok(OpenTreeFile { tree: self.clone(), paged, state, used, had_other_writers })
    }

    /// The contents of a file, past the page cache.
    ///
    /// # Errors
    /// If it is no file, or a disk of it is on none of the I/O nodes.
    pub async fn numbered(&self, inode: &Inode) -> Result<NumberedFile> {
        let layout = inode.contents()?;
        let disks = self.disk_list(layout.disks).await?;
        let disks = layout.disks_in(&disks).collect();
        let number = FileId(inode.number.0);
        let (bytes, stored_stripes) = (inode.size, inode.stored_stripes);
        Ok(NumberedFile { number, striping: layout.striping, disks, bytes, stored_stripes })
    }

    /// What the keeper says of a file, with what this client has written to it and not told the keeper.
    pub fn seen(&self, inode: Inode) -> Inode {
        match self.inner.states.borrow().get(&inode.number) {
            Some(state) => state.seen(inode),
            None => inode,
        }
    }

    /// Takes in what the keeper says of a file. If others have changed it, pages of it are not what it is any more.
    fn note_inode(&self, state: &TreeFileState, paged: &PagedFile<M>, inode: Inode) {
        let (version, bytes) = (inode.version, inode.size);
        paged.file().hear_stored_stripes(inode.stored_stripes, bytes == 0);
        let before = state.inode.replace(inode).version;
        if version != before {
            state.changed_by_others.set(state.changed_by_others.get() + 1);
            paged.note_changed(bytes);
        }
    }
}

impl<M: Machine> OpenTreeFile<M> {
    /// The file through the page cache: reading from it, and hints.
    pub fn paged(&self) -> &PagedFile<M> {
        &self.paged
    }

    pub(super) fn tree(&self) -> &Tree<M> {
        &self.tree
    }

    /// The number of the file.
    pub fn number(&self) -> FileNumber {
        self.state.number()
    }

    /// What is known of the file, with what this client has written; nobody is asked.
    pub fn known(&self) -> Inode {
        self.state.seen(self.state.inode.borrow().clone())
    }

    /// True if another client had the file open for writing when this client opened it.
    pub fn had_other_writers(&self) -> bool {
        self.had_other_writers
    }

    /// How often it has turned out, while this client had the file open, that others have changed its contents. Whoever
    /// keeps copies of them sees here whether they are still good.
    pub fn changed_by_others(&self) -> u64 {
        self.state.changed_by_others.get()
    }

    /// What is known of the file after asking the keeper, with what this client has written.
    ///
    /// # Errors
    /// If the keeper does not answer.
    pub async fn attributes(&self) -> Result<Inode> {
        self.note_given_up();
        let inode = self.tree.inode(TreeOperation::Get { number: self.number() }).await?;
        self.tree.note_inode(&self.state, &self.paged, inode);
        Ok(self.known())
    }

    /// Writes `data` at `offset`, making the file longer if need be. When this completes the data are in the page
    /// cache.
    ///
    /// # Errors
    /// As those of [`PagedFile::write`].
    pub async fn write(&self, offset: u64, data: Payload) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let (bytes, end) = (data.len(), offset + data.len());
        self.paged.write(offset, data).await?;
        // A cut may have come in between.
        let end = end.min(self.paged.bytes());
        self.state.written_end.set(self.state.written_end.get().max(end));
        self.state.written_bytes.set(self.state.written_bytes.get() + bytes);
        let now = self.tree.machine().date().as_nanos() as i64;
        self.state.written_at.set(Some(now));
        self.tree.publish_in_time();
        Ok(())
    }

    /// Writes `data` at the end of the file. Returns its offset. Appends by other clients that were given their place
    /// before are waited for, as long as a lease lasts, if nothing is heard of them.
    ///
    /// # Errors
    /// As those of [`write`](Self::write), or if the keeper gives no place. If the place was given and the data cannot
    /// be written, there are zeros as soon as somebody appends after them.
    pub async fn append(&self, data: Payload) -> Result<u64> {
        // A failure of an earlier write is reported before a place is given.
        self.paged.write(0, Payload::empty()).await?;
        let _turn = self.state.appending.take().await;
        self.note_given_up();
        let (number, bytes, after) = (self.number(), data.len(), self.state.written_end.get());
        let offset = match self.tree.perform(TreeOperation::Append { number, bytes, after }).await? {
            TreeAnswer::Appended { offset, inode } => {
                self.tree.note_inode(&self.state, &self.paged, inode);
                offset
            }
            _ => return Err(unexpected(self.tree.keeper())),
        };
        self.wait_for_appends_before(offset).await?;
        self.write(offset, data).await?;
        self.tree.publish(&self.state);
        Ok(offset)
    }

    /// Waits until the file reaches to `offset`: other clients were given bytes before it, and report them in a few
    /// milliseconds. A client that is lost meanwhile does not.
    async fn wait_for_appends_before(&self, offset: u64) -> Result<()> {
        let machine = self.tree.machine();
        let (mut size, mut since, mut pause) = (self.known().size, machine.now(), ASK_AGAIN);
        while size < offset && machine.now().since(since) < LEASE {
            machine.sleep_until(machine.now() + pause).await;
            pause = ASK_AGAIN_MOST.min(pause + pause);
            let now = self.attributes().await?.size;
            if now > size {
                (size, since) = (now, machine.now());
            }
        }
        Ok(())
    }

    /// Takes in the answer to a change of contents by this client: the version after the one known is its own.
    fn take_own(&self, inode: Inode) {
        if inode.version != self.state.inode.borrow().version.wrapping_add(RUN_STEP) {
            return self.tree.note_inode(&self.state, &self.paged, inode);
        }
        self.paged.set_bytes(inode.size);
        self.paged.file().hear_stored_stripes(inode.stored_stripes, inode.size == 0);
        self.state.inode.replace(inode);
    }

    /// Reads what is selected into `memory`, which has the bytes one right after the other in the order of the file and
    /// is to be zeros, together with the other members of a team at its turn, or alone. How many bytes there are: fewer
    /// than are selected if the file ends before.
    ///
    /// What this client has written is in the file before, and what the other members have.
    ///
    /// # Errors
    /// As those of [`File::read_selected`](crate::File::read_selected), or if what was written cannot be sent.
    pub async fn read_selected(
        &self,
        team: Option<&TeamTurn<'_, M>>,
        selection: &Selection,
        memory: &Memory,
        settings: SelectedSettings,
    ) -> Result<u64> {
        let fits = self.flush().await;
        let operation = SelectedOperation { direction: Direction::Read, selection, memory, settings };
        let file = self.paged.file();
        let ask_keeper = async |_| self.attributes().await.map(|_| self.told_to_team());
        let moved = file.move_selected(company(team), &operation, fits, ask_keeper).await?;
        self.hear_first(&moved.told).await?;
        Ok(selection.bytes_before(self.known().size))
    }

    /// Writes what is selected from `memory`, together with the other members of a team at its turn, or alone. The
    /// keeper knows when this completes, and so do the page caches of all members.
    ///
    /// # Errors
    /// As those of [`File::write_selected`](crate::File::write_selected), or if the keeper does not take it in.
    pub async fn write_selected(
        &self,
        team: Option<&TeamTurn<'_, M>>,
        selection: &Selection,
        memory: &Memory,
        settings: SelectedSettings,
    ) -> Result<()> {
        // Of what is in the page cache nothing is to be written later.
        let fits = self.flush().await;
        let operation = SelectedOperation { direction: Direction::Write, selection, memory, settings };
        let tell_keeper = async |end| {
            if end > 0 {
                // Whatever the members have selected of it.
                self.wrote_past_cache(end, end).await?;
            }
            Ok(self.told_to_team())
        };
        let moved = self.paged.file().move_selected(company(team), &operation, fits, tell_keeper).await?;
        self.hear_first(&moved.told).await.map(drop)
    }

    /// What the first member of a team tells the others, so that they need not ask the keeper: what it has heard of the
    /// file.
    pub(super) fn told_to_team(&self) -> Vec<u8> {
        encoded(&*self.state.inode.borrow())
    }

    /// Takes in what the first member of a team has told. Returns the version of the file that this is.
    ///
    /// # Errors
    /// If it is not what the keeper can have said of this file.
    pub(super) async fn hear_first(&self, told: &[u8]) -> Result<u64> {
        let keeper = self.tree.keeper();
        let inode: Inode = decoded(told, keeper)?;
        let (version, known) = (inode.version, self.state.inode.borrow().version);
        let is_this = inode.number == self.number() && inode.kind == self.state.inode.borrow().kind;
        if !is_this || inode.size > layout::FILE_BYTES_MAX {
            return Err(unexpected(keeper));
        }
        match version.cmp(&known) {
            Ordering::Greater => self.tree.note_inode(&self.state, &self.paged, inode),
            Ordering::Equal => {}
            // This member has heard of a later one meanwhile, or the keeper has lost the one that it knows.
            Ordering::Less => drop(self.attributes().await?),
        }
        Ok(version)
    }

    /// Takes in that at most so many bytes have been written past the page cache, up to `end`, and tells the keeper.
    ///
    /// # Errors
    /// If the keeper does not take it in.
    pub async fn wrote_past_cache(&self, end: u64, bytes: u64) -> Result<()> {
        self.tell(0).await?;
        // Members of a team have made stripes, too.
        self.paged.file().look_for_stored(end).await?;
        let written = self.written(end, bytes).await;
        let inode = self.tree.inode(TreeOperation::Wrote { number: self.number(), written }).await?;
        let bytes = inode.size;
        self.paged.file().note_counted(end);
        self.state.inode.replace(inode);
        self.paged.note_written_past(bytes);
        Ok(())
    }

    /// What the keeper is told of contents that were written up to `end`.
    async fn written(&self, end: u64, bytes: u64) -> WrittenContents {
        WrittenContents { end, stored_stripes: self.paged.file().stored_stripes().await, bytes }
    }

    /// Leaves out of what the keeper is to be told what was given up.
    fn note_given_up(&self) {
        let given_up = self.paged.given_up();
        if self.state.given_up.replace(given_up) != given_up {
            self.state.written_end.set(self.state.written_end.get().min(self.paged.bytes()));
        }
    }

    /// Sends what was written, and tells the keeper: what did get to the I/O nodes counts, whatever did not.
    async fn send_and_tell(&self, send: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
        let written_end = self.state.written_end.get();
        let sent = send().await;
        let told = self.tell(if sent.is_ok() { written_end } else { 0 }).await;
        sent.and(told)
    }

    /// Tells the keeper of what was sent: all that was written up to `sent_end` before, and what else there is.
    async fn tell(&self, sent_end: u64) -> Result<()> {
        let _turn = self.state.telling.take().await;
        self.tell_in_turn(sent_end).await
    }

    /// The same for who has the turn.
    async fn tell_in_turn(&self, sent_end: u64) -> Result<()> {
        let Some(untold) = self.take_untold(sent_end).await else { return Ok(()) };
        let (number, written) = (self.number(), untold.written);
        let told = self.tree.inode(TreeOperation::Wrote { number, written }).await;
        self.note_told(untold, told.map(Some))
    }

    /// Lets go of the file, and tells the keeper of what was written and sent, if it does not know: in one message.
    async fn tell_and_let_go(&self, sent_end: u64) -> Result<()> {
        let _turn = self.state.telling.take().await;
        self.state.handles.set(self.state.handles.get() - 1);
        let Some(untold) = self.take_untold(sent_end).await else {
            return self.tree.let_go(self.number(), self.used).await;
        };
        let told = self.tree.let_go_written(self.number(), self.used, untold.written).await;
        self.note_told(untold, told)
    }

    /// What the keeper is to be told, if there is anything: what was sent. Of what was written and not sent yet the
    /// keeper is told later, and the size that it is told now ends before that.
    async fn take_untold(&self, sent_end: u64) -> Option<Untold> {
        let time = self.state.written_at.get()?;
        if self.paged.is_sent() {
            self.state.written_at.set(None);
        }
        self.note_given_up();
        let (end, known) = (self.state.written_end.get(), self.state.inode.borrow().size);
        let sent_end = self.paged.first_unsent(known).map_or(end, |first| end.min(first.max(sent_end)));
        let written = self.written(sent_end, self.state.written_bytes.take()).await;
        Some(Untold { time, written })
    }

    /// Notes that the keeper knows of what it was told; its answer is the file as it is then, unless that goes. If it
    /// could not be told, somebody else who has the file open tells it.
    fn note_told(&self, untold: Untold, answer: Result<Option<Inode>>) -> Result<()> {
        let Untold { time, written: WrittenContents { end, bytes, .. } } = untold;
        match answer {
            Ok(Some(inode)) => {
                self.paged.file().note_counted(end);
                if self.state.written_at.get().is_none() {
                    self.state.written_end.set(0);
                }
                self.take_own(inode);
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(error) => {
                self.state.written_bytes.set(self.state.written_bytes.get() + bytes);
                self.state.written_at.set(self.state.written_at.get().or(Some(time)));
                Err(error)
            }
        }
    }

    /// Waits until everything written is with the I/O nodes and the keeper knows of it: whoever opens the file then
    /// reads it.
    ///
    /// # Errors
    /// The first failure of a write that this handle has not told.
    pub async fn flush(&self) -> Result<()> {
        self.send_and_tell(async || self.paged.send().await).await
    }

    /// As [`flush`](Self::flush), for one of several who share the handle, and may not be heard: a process that closes
    /// what it has inherited. The others are still to be told what failed.
    ///
    /// # Errors
    /// Those of [`flush`](Self::flush).
    pub async fn flush_shared(&self) -> Result<()> {
        self.send_and_tell(async || self.paged.send_shared().await).await
    }

    /// Publishes what was written, for who has the turn at telling.
    ///
    /// # Errors
    /// If the keeper cannot be told. What cannot be sent stays with the page cache, which reports it.
    pub(super) async fn publish(&self) -> Result<()> {
        let written_end = self.state.written_end.get();
        let sent = self.paged.send_shared().await;
        self.tell_in_turn(if sent.is_ok() { written_end } else { 0 }).await
    }

    /// Waits until everything written is on the media, and the namespace with it.
    ///
    /// # Errors
    /// As those of [`flush`](Self::flush), or if it cannot be brought there.
    pub async fn sync(&self) -> Result<()> {
        self.bring_to_media().await?;
        self.tree.flush_of(self.number()).await
    }

    /// Waits until everything written is on the media, and the keeper knows of it.
    pub(super) async fn bring_to_media(&self) -> Result<()> {
        self.send_and_tell(async || self.paged.flush().await).await
    }

    /// Cuts the file to `bytes`, or extends it to them with zeros.
    ///
    /// # Errors
    /// If an I/O node or the keeper does not answer; then nothing is done. If one of them ceases to answer after that,
    /// or cannot do it, the file may be cut at others.
    pub async fn set_len(&self, bytes: u64) -> Result<Inode> {
        self.change(AttributeChanges { size: Some(bytes), ..AttributeChanges::default() }).await
    }

    /// Has the file reach to `end` at least: what it has not are zeros. It is never cut, whoever makes it longer
    /// meanwhile.
    ///
    /// # Errors
    /// If the keeper does not answer, or refuses it.
    pub async fn extend(&self, end: u64) -> Result<()> {
        if self.attributes().await?.size >= end {
            return Ok(());
        }
        // Where it is not sent yet readers would see zeros.
        self.flush_shared().await?;
        let written = self.written(end, 0).await;
        let inode = self.tree.inode(TreeOperation::Wrote { number: self.number(), written }).await?;
        self.take_own(inode);
        Ok(())
    }

    /// Cuts the file at the I/O nodes. Who reads or writes it through this client waits until what this gives is
    /// dropped.
    async fn cut(&self, bytes: u64) -> Result<OperationInFlight> {
        if bytes > layout::FILE_BYTES_MAX {
            return Err(TreeRefusal::FileTooLarge.into());
        }
        // What is cut at some of them is gone.
        self.paged.file().check_answers(self.tree.keeper()).await?;
        let cut = self.paged.cut(bytes).await?;
        self.state.written_end.set(self.state.written_end.get().min(bytes));
        Ok(cut)
    }

    /// Changes attributes, after what was written: a time that is set stays.
    ///
    /// # Errors
    /// As those of [`flush`](Self::flush); or if the keeper refuses it.
    pub async fn change(&self, changes: AttributeChanges) -> Result<Inode> {
        // Until the keeper has the size: it would take what was written and told before for cut off.
        let _cut = match changes.size {
            Some(bytes) => Some(self.cut(bytes).await?),
            None => None,
        };
        if changes.size.is_some() || changes.modified.is_some() {
            self.flush_shared().await?;
        }
        let inode = self.tree.inode(TreeOperation::Change { number: self.number(), changes }).await?;
        match changes.size {
            Some(_) => self.take_own(inode),
            None => self.tree.note_inode(&self.state, &self.paged, inode),
        }
        Ok(self.known())
    }

    /// Closes the file, after a [`flush`](Self::flush).
    ///
    /// # Errors
    /// Those of [`flush`](Self::flush). The file is closed whatever comes.
    pub async fn close(self) -> Result<()> {
        let written_end = self.state.written_end.get();
        let sent = self.paged.send().await;
        let let_go = self.tell_and_let_go(if sent.is_ok() { written_end } else { 0 }).await;
        let OpenTreeFile { tree, paged, state, .. } = self;
        let closed = paged.close().await;
        if state.handles.get() == 0 {
            tree.inner.states.borrow_mut().remove(&state.number());
        }
        sent.and(closed).and(let_go)
    }
}

fn company<'a, M: Machine>(team: Option<&'a TeamTurn<'a, M>>) -> Company<'a, M> {
    team.map_or(Company::Alone, Company::Team)
}
