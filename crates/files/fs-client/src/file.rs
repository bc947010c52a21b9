//! An open file, and the traditional method at the compute node.
//!
//! A file request is one contiguous run of bytes. The client cuts it into block requests and keeps up to K of them in
//! flight to each disk; when one is answered, it sends the next one for the same disk. The file request completes when
//! all its block requests have.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use layout::{BlockRequest, Extent, StripePlace, Striping};
use machine::{Class, Machine, Memory, NodeId, NodeNotes, Payload, Work};
use namespace::TreeRefusal;

use super::Client;
use super::attached_stripes::Attachments;
use super::known_length::Length;
use super::serve_nodes::OpenMemory;
use super::unflushed::{FileWrites, UnflushedMark};
use crate::Features;
use crate::endpoint::{Answer, Mailbox};
use crate::error::{Error, Result};
use crate::number;
use crate::protocol::{BlockWrite, Fetch, FileId, Reply, Request, StripeHome, WrittenUntil};

/// A file open on a compute node. A clone is another handle on the same open file.
pub struct File<M: Machine> {
    pub(super) client: Client<M>,
    inner: Rc<FileInner>,
}

impl<M: Machine> Clone for File<M> {
    fn clone(&self) -> Self {
        File { client: self.client.clone(), inner: self.inner.clone() }
    }
}

struct FileInner {
    name: String,
    file: FileId,
    striping: Striping,
    /// The I/O node of each stripe.
    homes: RefCell<Vec<NodeId>>,
    /// The length, with this client's uncommitted changes kept separately.
    length: Length,
    /// Unflushed writes of this client.
    writes: FileWrites,
    /// The lease of this client's locks on the file.
    lease: Cell<Option<u64>>,
    /// Known state of the stripes.
    attachments: Attachments,
}

/// The writes that a flush of a file covers. Each writer gets its failures with its next flush in any case.
#[derive(Clone, Copy)]
pub(super) enum FlushScope<'a> {
    /// Writes of this client. The flush fails with the failures of these.
    Own,
    /// Writes of all clients. The flush fails with the failures of this client.
    All,
    /// Writes of all clients. The flush fails with the failures of these members of a team.
    Team(&'a [NodeId]),
}

/// Returns the incarnation of an I/O node that acknowledged a write or flush; 0 if the node never restarts.
pub(super) fn run_of(node: NodeId, reply: &Reply) -> Result<u64> {
    match reply {
        Reply::Done => Ok(0),
        Reply::Accepted { run } => Ok(*run),
        other => {
            Err(Error::Protocol { node, why: format!("answered a write or flush with {other:?}") }.into())
        }
    }
}

/// Kind of a file request.
#[derive(Clone, Copy, PartialEq)]
enum Access {
    Read,
    Write,
    /// A write that is acknowledged when its data are at the disk.
    WriteThrough,
}

impl Access {
    /// Returns the name of a file request in recorded spans.
    fn name(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::WriteThrough => "write through",
        }
    }
}

impl<M: Machine> File<M> {
    /// Returns a handle on a file, given the I/O node of each stripe.
    pub(super) fn new(
        client: Client<M>,
        file: FileId,
        striping: Striping,
        homes: Vec<NodeId>,
        bytes: u64,
        attachments: Attachments,
    ) -> Self {
        let inner = FileInner {
            name: number::object_name(file),
            file,
            striping,
            homes: RefCell::new(homes),
            length: Length::reported(bytes),
            writes: client.inner.unflushed.open(file),
            lease: Cell::new(None),
            attachments,
        };
        File { client, inner: Rc::new(inner) }
    }

    /// Returns the known state of the stripes.
    pub(super) fn attachments(&self) -> &Attachments {
        &self.inner.attachments
    }

    /// Returns this node's event recorder.
    pub(super) fn notes(&self) -> &NodeNotes {
        self.client.inner.endpoint.machine().notes()
    }

    /// Returns the file's name for errors: the name of its stripes on their disks.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the file's identity.
    pub fn id(&self) -> FileId {
        self.inner.file
    }

    /// Returns true if `other` is a clone of this handle.
    pub(super) fn is_same_handle(&self, other: &File<M>) -> bool {
        Rc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns the file's striping.
    pub fn striping(&self) -> Striping {
        self.inner.striping
    }

    /// Returns the size in bytes as this client last received or changed it.
    pub fn bytes(&self) -> u64 {
        self.inner.length.bytes()
    }

    /// Resets all stripes to unknown, so that the client looks them up again when it needs them.
    pub fn refresh(&self) {
        self.attachments().forget(|_| true);
    }

    /// Resets absent stripes to unknown: other clients may have created them. Open stripes stay open: an I/O node that
    /// restarted since rejects requests for them.
    pub(super) fn forget_absent_stripes(&self) {
        self.attachments().forget_absent();
    }

    /// Records that the file was removed: none of this client's writes remain to be committed.
    pub(super) fn note_removed(&self) {
        self.inner.length.settle(u64::MAX);
    }

    /// Records that this client's writes up to `bytes` are committed.
    pub(super) fn note_committed(&self, bytes: u64) {
        self.inner.length.settle(bytes);
    }

    /// Returns the end of this client's changes that may not be committed yet.
    pub(super) fn own_end(&self) -> u64 {
        self.inner.length.own_end()
    }

    /// Updates the size to the one that others report.
    pub(super) fn note_reported_bytes(&self, bytes: u64) {
        self.inner.length.note_reported(bytes);
    }

    /// Returns the unflushed writes of this client.
    pub(super) fn writes(&self) -> &FileWrites {
        &self.inner.writes
    }

    /// Returns true if an I/O node disconnected since it accepted some of this client's unflushed writes, so that they
    /// may be lost.
    pub(super) fn may_have_lost(&self) -> bool {
        self.inner.writes.may_have_lost(|node| self.client.disconnects_of(node))
    }

    /// Returns true if a flush has writes to flush, as far as known, or losses to report.
    pub(super) fn has_unflushed(&self) -> bool {
        !self.attachments().is_old_flushed() || self.inner.writes.has_unflushed()
    }

    /// Records that another client has flushed all stripes when this client's unflushed writes were those of `mark`, in
    /// the same incarnations of the same I/O nodes.
    pub(super) fn note_flushed_by_other(&self, mark: UnflushedMark) {
        let (attachments, before) = (self.attachments(), self.inner.writes.stripes());
        self.inner.writes.note_flushed_by_other(mark);
        let left = self.inner.writes.stripes();
        attachments.note_flushed(attachments.changes());
        attachments.note_written_flushed(&before.difference(&left).copied().collect());
    }

    /// Reads `bytes` from `offset` on into `memory` at `at`. Returns the number of bytes read, which is less at the end
    /// of the file.
    pub fn read(
        &self,
        offset: u64,
        bytes: u64,
        memory: &Memory,
        at: u64,
    ) -> impl Future<Output = Result<u64>> {
        self.transfer(Access::Read, Extent::new(offset, bytes), memory, at)
    }

    /// Writes `bytes` of `memory` from `at` on to the file at `offset`, extending the file if necessary.
    ///
    /// On completion the data are at the I/O nodes. [`flush`](Self::flush) writes them to stable storage.
    pub async fn write(&self, offset: u64, bytes: u64, memory: &Memory, at: u64) -> Result<()> {
        self.transfer(Access::Write, Extent::new(offset, bytes), memory, at).await.map(drop)
    }

    /// Writes as [`write`](Self::write) does, and completes when each disk has acknowledged its data or has failed. A
    /// caller that counts its writes in flight thus knows the disks' backlog. Only [`flush`](Self::flush) makes the
    /// data durable.
    pub async fn write_through(&self, offset: u64, bytes: u64, memory: &Memory, at: u64) -> Result<()> {
        self.transfer(Access::WriteThrough, Extent::new(offset, bytes), memory, at).await.map(drop)
    }

    pub(super) fn note_end(&self, end: u64) {
        self.inner.length.reach(end);
    }

    /// Truncates the file to `bytes`, or extends it to that length with zeros.
    pub async fn truncate(&self, bytes: u64) -> Result<()> {
        if bytes > layout::FILE_BYTES_MAX {
            return Err(TreeRefusal::FileTooLarge.into());
        }
        self.resize_stripes(bytes).await?;
        self.inner.length.cut(bytes);
        self.inner.length.reach(bytes);
        Ok(())
    }

    /// Blocks until this client's writes to the file are on stable storage.
    ///
    /// The client asks the I/O nodes that it has written to through any handle; the first time, also those that had
    /// data of the file when this handle was opened.
    ///
    /// Reports, once, any write of this client that failed since the last flush, or was lost in a restart of an I/O
    /// node. If an I/O node is unreachable, the data that it accepted stay unflushed.
    pub async fn flush(&self) -> Result<()> {
        self.flush_of(FlushScope::Own).await
    }

    /// Flushes the file as [`flush`](Self::flush) does, with the writes of all clients.
    pub async fn flush_all(&self) -> Result<()> {
        self.flush_of(FlushScope::All).await
    }

    /// Makes the I/O nodes of these stripes flush them with the requests of `request_to`; see [`flush`](Self::flush).
    pub(super) async fn flush_to_media(
        &self,
        stripes: &BTreeSet<u32>,
        request_to: impl Fn(NodeId) -> Option<Request>,
    ) -> Result<()> {
        // Take the stamp before the request: it may miss writes accepted later.
        let written = self.client.inner.unflushed.durability.last();
        let writes = &self.inner.writes;
        // Record each answer as it arrives: during the wait for other nodes, a later incarnation may answer another
        // request.
        let on_answer = |node, disconnects, answer: &Answer| {
            if let Ok((reply, _)) = answer
                && let Ok(run) = run_of(node, reply)
            {
                let here = stripes.iter().copied().filter(|&stripe| self.home_of(stripe) == node).collect();
                writes.note_flushed(&here, (node, run), written, disconnects);
            }
        };
        let flush = async || {
            let answers = self.ask_homes_with(&request_to, on_answer).await.into_iter();
            joint_outcome(answers.map(|(node, answer)| answer.and_then(|(reply, _)| run_of(node, &reply))))
        };
        let outcome = self.retry_once(flush).await;
        let lost = writes.take_lost();
        let Some(&node) = lost.first() else { return outcome };
        machine::sometimes!("a flush of a file reports lost writes");
        // Stripes that were created there may be lost, too.
        self.attachments().lose(|stripe| lost.contains(&self.home_of(stripe)));
        Err(Error::WriteLost { name: self.inner.name.clone(), node }.into())
    }

    /// Records that an incarnation of an I/O node accepted data of its stripes among `stripes`, which are now
    /// unflushed. `disconnects` is the node's disconnect count when the request was sent.
    pub(super) fn note_accepted(&self, node: NodeId, run: u64, disconnects: u64, stripes: &[u32]) {
        let here = stripes.iter().copied().filter(|&stripe| self.home_of(stripe) == node);
        self.inner.writes.note_accepted(node, run, disconnects, here);
    }

    /// Sends requests to the I/O nodes of the file. Returns the incarnation of each node that answers, with the node's
    /// disconnect count when the request was sent.
    pub(super) async fn runs_of_homes(
        &self,
        request_to: impl Fn(NodeId) -> Option<Request>,
    ) -> Vec<(NodeId, Result<(u64, u64)>)> {
        let sent_at = RefCell::new(BTreeMap::new());
        let on_answer = |node, disconnects, _: &Answer| {
            sent_at.borrow_mut().insert(node, disconnects);
        };
        let answers = self.ask_homes_with(request_to, on_answer).await.into_iter();
        let sent_at = sent_at.take();
        let run = |(node, answer): (NodeId, Answer)| {
            (node, answer.and_then(|(reply, _)| Ok((run_of(node, &reply)?, sent_at[&node]))))
        };
        answers.map(run).collect()
    }

    /// Makes a request. If an I/O node restarted, opens the file again and retries once.
    pub(super) async fn retry_once<T>(&self, mut ask: impl AsyncFnMut() -> Result<T>) -> Result<T> {
        match ask().await {
            Err(error) if error.is_restart() => {
                machine::sometimes!("a request is retried after a disconnect or restart");
                self.refresh();
                ask().await
            }
            outcome => outcome,
        }
    }

    /// Sends requests to the I/O nodes that have a stripe. Waits for all of them, then fails with the first failure.
    pub(super) async fn ask_homes(&self, request_to: impl Fn(NodeId) -> Option<Request>) -> Result<()> {
        let answers = self.answers_of_homes(request_to).await;
        joint_outcome(answers.into_iter().map(|(_, answer)| answer))
    }

    pub(super) async fn answers_of_homes(
        &self,
        request_to: impl Fn(NodeId) -> Option<Request>,
    ) -> Vec<(NodeId, Answer)> {
        self.ask_homes_with(request_to, |_, _, _| {}).await
    }

    /// Sends requests to the I/O nodes that have a stripe, and passes each answer to the callback as it arrives.
    async fn ask_homes_with(
        &self,
        request_to: impl Fn(NodeId) -> Option<Request>,
        on_answer: impl Fn(NodeId, u64, &Answer),
    ) -> Vec<(NodeId, Answer)> {
        let homes = self.inner.homes.borrow().clone();
        let request_to = |index| {
            let node = self.client.io_nodes()[index];
            if homes.contains(&node) { request_to(node) } else { None }
        };
        self.client.ask_each(request_to, on_answer).await
    }

    /// Reads an extent within one block; returns zeros beyond the end of the file. `class` is called when the request
    /// is sent.
    pub(super) fn read_block(
        &self,
        extent: Extent,
        class: impl Fn() -> Class,
    ) -> impl Future<Output = Result<Payload>> {
        self.read_within_block(extent, class, false)
    }

    /// Reads as [`read_block`](Self::read_block) does, at demand priority, for a caller that needs neither the rest of
    /// the block nor the next block.
    pub(super) fn read_part_of_block(&self, extent: Extent) -> impl Future<Output = Result<Payload>> {
        self.read_within_block(extent, || Class::Demand, true)
    }

    async fn read_within_block(
        &self,
        extent: Extent,
        class: impl Fn() -> Class,
        is_alone: bool,
    ) -> Result<Payload> {
        let part = self.block_request(extent)?;
        let BlockRequest { stripe, stripe_offset: offset, bytes, .. } = part;
        let file = self.inner.file;
        let request = || Request::Read { file, stripe, offset, bytes: bytes as u32, is_alone };
        let ask = async || {
            self.attach([stripe].into_iter(), false).await?;
            if self.is_absent(stripe) {
                return Ok((Reply::Done, Payload::zeros(bytes)));
            }
            let endpoint = &self.client.inner.endpoint;
            endpoint.call_in(class(), self.home_of(stripe), request(), Payload::empty()).await
        };
        let answer = self.ask_for_block(ask).await?;
        self.take_read(stripe, bytes, answer)
    }

    /// Writes data within one block. `lease`, if any, is the lease of the locks that protected the write. `class` is
    /// called when the request is sent.
    pub(super) async fn write_block(
        &self,
        offset: u64,
        data: Payload,
        lease: Option<u64>,
        class: impl Fn() -> Class,
    ) -> Result<()> {
        let end = offset + data.len();
        let part = self.block_request(Extent::new(offset, data.len()))?;
        let BlockRequest { stripe, stripe_offset: offset, .. } = part;
        let ask = async || self.send_block(class(), lease, (stripe, offset), data.clone()).await;
        let (disconnects, answer) = self.ask_for_block(ask).await?;
        self.take_written(stripe, disconnects, answer)?;
        self.note_end(end);
        Ok(())
    }

    /// Raises a background request for the block at an offset to demand priority, because a caller now waits for it.
    pub(super) async fn promote_block(&self, offset: u64) -> Result<()> {
        let BlockRequest { stripe, stripe_offset: offset, .. } =
            self.block_request(Extent::new(offset, 1))?;
        if self.is_absent(stripe) {
            return Ok(());
        }
        let request = Request::Promote { file: self.inner.file, stripe, offset };
        let node = self.home_of(stripe);
        // Send it in the class of the request that it promotes, so that it does not overtake that request.
        let answer = self.client.inner.endpoint.call_in(Class::Background, node, request, Payload::empty());
        answer.await.map(drop)
    }

    /// Returns, for each stripe, the index of its I/O node among those of the client.
    pub(super) fn homes_by_index(&self) -> Vec<usize> {
        self.inner.homes.borrow().iter().map(|&home| self.client.inner.index_of(home)).collect()
    }

    /// Returns the I/O node of the block at an offset.
    pub(super) fn home(&self, offset: u64) -> NodeId {
        self.home_of(self.striping().place_of(offset).stripe)
    }

    /// Returns the I/O node of a stripe.
    pub(super) fn home_of(&self, stripe: u32) -> NodeId {
        self.inner.homes.borrow()[stripe as usize]
    }

    /// Records the I/O node that has the disk of a stripe.
    pub(super) fn set_home(&self, stripe: u32, node: NodeId) {
        self.inner.homes.borrow_mut()[stripe as usize] = node;
        self.attachments().set_disk_found(stripe);
    }

    /// Returns true if none of the I/O nodes has the disk of a stripe.
    pub(super) fn has_no_disk(&self, stripe: u32) -> bool {
        self.attachments().has_no_disk(stripe)
    }

    /// Returns true if the stripe is known to be missing.
    pub(super) fn is_absent(&self, stripe: u32) -> bool {
        self.attachments().is_absent(stripe)
    }

    pub(super) fn block_request(&self, extent: Extent) -> Result<BlockRequest> {
        let part = self.striping().requests(extent).next().filter(|part| part.bytes == extent.bytes);
        let Extent { offset, bytes } = extent;
        part.ok_or_else(|| {
            Error::Invalid(format!("{bytes} bytes at {offset} are not part of one block")).into()
        })
    }

    /// Makes a request for part of one block, and retries it once if the I/O node restarted.
    async fn ask_for_block<T>(&self, ask: impl AsyncFnMut() -> Result<T>) -> Result<T> {
        let machine = self.client.inner.endpoint.machine();
        machine.compute(Work::BuildRequest).await;
        let answer = self.retry_once(ask).await;
        machine.compute(Work::HandleReply).await;
        answer
    }

    /// Sends data within one block of a stripe. `lease`, if any, is the lease of the locks that protected the write. If
    /// the stripe is not known to be open, the same request opens or creates it, even if another request is about to.
    /// Returns the answer, with the disconnect count of the I/O node when the request was sent.
    async fn send_block(
        &self,
        class: Class,
        lease: Option<u64>,
        (stripe, offset): (u32, u64),
        data: Payload,
    ) -> Result<(u64, (Reply, Payload))> {
        let (file, node, attachments) = (self.inner.file, self.home_of(stripe), self.attachments());
        let may_be_new = || {
            attachments.is_wanted(stripe, true)
                && !attachments.is_stored(stripe)
                && !attachments.has_no_disk(stripe)
        };
        // Check again after the query: another client may have created the stripe during the wait.
        let is_made_here =
            may_be_new() && self.client.can(node, Features::ATTACHING_WRITES).await? && may_be_new();
        let attach = match is_made_here {
            true => Some(StripeHome { striping: self.striping(), disk: attachments.disks[stripe as usize] }),
            false => {
                self.attach([stripe].into_iter(), true).await?;
                None
            }
        };
        let request = Request::Write(BlockWrite { lease, attach, ..BlockWrite::new(file, stripe, offset) });
        let disconnects = self.client.disconnects_of(node);
        let answer = self.client.inner.endpoint.call_in(class, node, request, data).await?;
        if is_made_here {
            attachments.set_made(stripe);
        }
        Ok((disconnects, answer))
    }

    /// Returns the lease of this client's locks on the file, if any.
    pub(super) fn lease(&self) -> Option<u64> {
        self.inner.lease.get()
    }

    /// Sets the lease of this client's locks on the file.
    pub(super) fn set_lease(&self, lease: Option<u64>) {
        self.inner.lease.set(lease);
    }

    /// Returns the data of the answer to a request for `bytes` bytes of a block.
    fn take_read(&self, stripe: u32, bytes: u64, (reply, data): (Reply, Payload)) -> Result<Payload> {
        let node = self.home_of(stripe);
        if reply != Reply::Done {
            return Err(Error::Protocol { node, why: format!("answered a read with {reply:?}") }.into());
        }
        check_answered(node, bytes, &data)?;
        Ok(data)
    }

    /// Records an accepted write of a block. `disconnects` is the I/O node's disconnect count when the request was
    /// sent.
    fn take_written(&self, stripe: u32, disconnects: u64, (reply, data): (Reply, Payload)) -> Result<()> {
        let node = self.home_of(stripe);
        self.note_accepted(node, run_of(node, &reply)?, disconnects, &[stripe]);
        check_answered(node, 0, &data)
    }

    /// Carries out a file request, and retries it once if an I/O node restarted. Returns the number of bytes moved.
    // Inlined instead of calling `retry_once`: an extra future around each small request is measurable.
    async fn transfer(&self, access: Access, extent: Extent, memory: &Memory, at: u64) -> Result<u64> {
        let about = || [("file", self.inner.file.0), ("offset", extent.offset), ("bytes", extent.bytes)];
        let _span = self.notes().span(access.name(), about);
        let extent = match access {
            Access::Read => extent.clip(self.bytes().max(extent.offset)),
            Access::Write | Access::WriteThrough => {
                check_no_file_ends_before(extent)?;
                extent
            }
        };
        check_memory(memory, at, extent.bytes)?;
        let mut request = FileRequest::new(self, access, extent, memory, at);
        let mut again = true;
        let outcome = loop {
            let moved = match self.attach_extent(extent, access != Access::Read).await {
                Ok(()) => request.carry_out().await,
                failed => failed,
            };
            match moved {
                Err(error) if again && error.is_restart() => {
                    again = false;
                    self.refresh();
                }
                outcome => break outcome,
            }
        };
        // All answers have arrived, so the mailbox is empty and can be reused.
        self.client.inner.left_over.borrow_mut().push(request.under_way);
        outcome?;
        // An empty write does not extend the file.
        if access != Access::Read && extent.bytes > 0 {
            self.note_end(extent.end());
        }
        Ok(extent.bytes)
    }
}

/// Fails if the data of an answer are not `bytes` bytes long.
fn check_answered(node: NodeId, bytes: u64, data: &Payload) -> Result<()> {
    match data.len() {
        length if length == bytes => Ok(()),
        length => {
            let why = format!("answered a request for {bytes} bytes with {length}");
            Err(Error::Protocol { node, why }.into())
        }
    }
}

pub(super) fn check_memory(memory: &Memory, at: u64, bytes: u64) -> Result<()> {
    if memory.holds(at, bytes) {
        Ok(())
    } else {
        Err(Error::Invalid(format!("{bytes} bytes at {at} do not lie in a memory of {}", memory.len()))
            .into())
    }
}

pub(super) fn check_no_file_ends_before(extent: Extent) -> Result<()> {
    if extent.is_of_a_file() { Ok(()) } else { Err(TreeRefusal::FileTooLarge.into()) }
}

/// A file request in flight.
struct FileRequest<'a, M: Machine> {
    file: &'a File<M>,
    access: Access,
    extent: Extent,
    memory: &'a Memory,
    /// Offset of the extent in the memory.
    at: u64,
    /// The memory, open to the I/O nodes, if they are to fetch the data of a write.
    opened: Option<OpenMemory<'a, M>>,
    under_way: BlockRequestsInFlight,
}

/// Block requests in flight, and the mailbox for their answers.
#[derive(Default)]
pub(super) struct BlockRequestsInFlight {
    mailbox: Rc<Mailbox>,
    /// The requests; a token is an index here.
    parts: Vec<BlockRequest>,
    /// For each token, the disconnect count of the I/O node when the request was sent.
    disconnects: Vec<u64>,
}

impl<'a, M: Machine> FileRequest<'a, M> {
    fn new(file: &'a File<M>, access: Access, extent: Extent, memory: &'a Memory, at: u64) -> Self {
        let inner = &file.client.inner;
        let under_way = inner.left_over.borrow_mut().pop().unwrap_or_default();
        let fetched = access != Access::Read && inner.settings.memget_writes;
        let opened = fetched.then(|| inner.open_for_request(memory));
        FileRequest { file, access, extent, memory, at, opened, under_way }
    }

    async fn carry_out(&mut self) -> Result<()> {
        let per_disk = self.file.client.inner.settings.outstanding_per_disk as u64;
        self.find_firsts(per_disk);
        self.under_way.disconnects.resize(self.under_way.parts.len(), 0);
        let (mut begun, mut left, mut outcome) = (0, self.under_way.parts.len(), Ok(()));
        while left > 0 {
            let token = if begun < self.under_way.parts.len() {
                begun += 1;
                begun - 1
            } else {
                let (token, answer) = self.under_way.mailbox.next().await;
                let answered = self.under_way.parts[token];
                // Handle the answer at once instead of keeping it across an await: an answer is large.
                let disconnects = self.under_way.disconnects[token];
                if let Err(error) = answer.and_then(|reply| self.take_in(answered, disconnects, reply)) {
                    outcome = outcome.and(Err(error));
                }
                self.machine().compute(Work::HandleReply).await;
                let next = self.ahead_on_same_disk(answered, per_disk).filter(|_| outcome.is_ok());
                let Some(next) = next else {
                    left -= 1;
                    continue;
                };
                self.under_way.parts[token] = next;
                token
            };
            self.machine().compute(Work::BuildRequest).await;
            let part = self.under_way.parts[token];
            if self.access == Access::Read && self.file.is_absent(part.stripe) {
                self.under_way.mailbox.put(token, Ok((Reply::Done, Payload::zeros(part.bytes))));
            } else {
                self.ask(token).await;
            }
        }
        outcome
    }

    /// Finds the first requests to send: `per_disk` for each disk.
    fn find_firsts(&mut self, per_disk: u64) {
        self.under_way.parts.clear();
        // Consecutive blocks lie on consecutive disks: the first block on each disk begins that disk's part of the
        // extent.
        for part in
            self.file.striping().requests(self.extent).take(self.file.striping().stripe_count() as usize)
        {
            for blocks in 0..per_disk {
                let Some(request) = self.ahead_on_same_disk(part, blocks) else { break };
                self.under_way.parts.push(request);
            }
        }
    }

    fn machine(&self) -> &M {
        self.file.client.inner.endpoint.machine()
    }

    /// Sends one of the requests. Completes when the request has left.
    #[inline]
    fn ask(&mut self, token: usize) -> impl Future<Output = ()> {
        let part = self.under_way.parts[token];
        let (request, data) = self.request(part);
        let node = self.file.home_of(part.stripe);
        self.under_way.disconnects[token] = self.file.client.disconnects_of(node);
        self.file.client.inner.endpoint.begin(node, request, data, &self.under_way.mailbox, token)
    }

    /// Returns the message for the I/O node and its data.
    #[inline]
    fn request(&self, part: BlockRequest) -> (Request, Payload) {
        let (file, at) = (self.file.inner.file, self.memory_offset(part));
        let BlockRequest { stripe, stripe_offset: offset, bytes: length, .. } = part;
        let bytes = length as u32;
        if self.access == Access::Read {
            return (Request::Read { file, stripe, offset, bytes, is_alone: false }, Payload::empty());
        }
        let (fetch, data) = match &self.opened {
            Some(OpenMemory { id: memory, .. }) => {
                (Some(Fetch { memory: *memory, offset: at, bytes }), Payload::empty())
            }
            None => (None, self.memory.get(at, length)),
        };
        let until = match self.access {
            Access::WriteThrough => WrittenUntil::AtDisk,
            _ => WrittenUntil::Accepted,
        };
        (Request::Write(BlockWrite { fetch, until, ..BlockWrite::new(file, stripe, offset) }), data)
    }

    fn take_in(&self, part: BlockRequest, disconnects: u64, answer: (Reply, Payload)) -> Result<()> {
        if self.access != Access::Read {
            return self.file.take_written(part.stripe, disconnects, answer);
        }
        let data = self.file.take_read(part.stripe, part.bytes, answer)?;
        self.memory.place(self.memory_offset(part), &data);
        Ok(())
    }

    fn memory_offset(&self, part: BlockRequest) -> u64 {
        self.at + (part.file_offset - self.extent.offset)
    }

    /// Returns the request for the block that is `blocks` blocks after that of `part` on the same disk, if the extent
    /// reaches it.
    fn ahead_on_same_disk(&self, part: BlockRequest, blocks: u64) -> Option<BlockRequest> {
        if blocks == 0 {
            return Some(part);
        }
        if part.file_offset + part.bytes == self.extent.end() {
            return None;
        }
        let striping = self.file.striping();
        let block = part.stripe_offset / striping.block_bytes() + blocks;
        let offset = block.checked_mul(striping.block_bytes())?;
        let start = striping.file_offset_of(StripePlace { stripe: part.stripe, offset }).ok()?;
        let rest = Extent::new(start, striping.block_bytes()).clip(self.extent.end());
        striping.requests(rest).next()
    }
}

/// Returns the outcome of requests to several I/O nodes: a failure that a node reports, or else that a node restarted.
///
/// Only in the second case a caller may repeat the requests: an I/O node reports a failed write once, so a repetition
/// after the first case would hide it.
pub(super) fn joint_outcome<T>(answers: impl Iterator<Item = Result<T>>) -> Result<()> {
    answers.filter_map(Result::err).min_by_key(|error| error.is_restart()).map_or(Ok(()), Err)
}
