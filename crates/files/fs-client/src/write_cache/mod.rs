//! Write caches: compute nodes buffer their writes in memory, and a group flushes them together, disk-directed
//! (Purakayastha, Ellis and Kotz 1995: ENWRICH).
//!
//! ```text
//!  member 0   write write write FULL -> asks the coordinator |                    | write ...
//!  member 1   write write ........... is notified            |  flush: directories| write ...
//!  member 2   idle .................. is notified            |  to the I/O nodes, | idle
//!  I/O nodes  the first: coordinator of the job              |  Memgets, disks    |
//! ```
//!
//! - `log.rs`: buffered writes, and the free space for more; `logs.rs`: selects the log to write to while another is
//!   flushed.
//! - `membership.rs`: membership of a job, and barriers with its other members.
//! - `failures.rs`: failures of flushes, and their reports.
//! - this file: writes, and the start and course of the group's flushes.
//!
//! A write copies its data behind those of the previous write and appends an entry: it sends no message, and reads and
//! allocates no block. A flush is a collective operation on lists of extents ([`Client::write_listed`]) in which all
//! members take part, each by its own task, so that the application need not call anything.

mod failures;
mod log;
mod logs;
mod membership;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::{Rc, Weak};

use machine::{Condition, Duration, Machine, Memory, Payload, Work, first_of};

pub use log::{Division, ENTRY_BYTES, Section};

use super::deadline_timer::{DeadlineTimer, Timed, start_timer};
use super::file::check_no_file_ends_before;
use super::listed::ListedOperation;
use super::{Client, ClientInner, File, FileEntries, ListedSettings, Moved};
use crate::error::{Error, Failure, FailureKind, Result};
use crate::protocol::{Direction, FileId, Reply};
use failures::FlushFailures;
use layout::Extent;
use logs::{Logs, WriteDelay};
use membership::{FlushBarriers, Membership, Reason};

/// Settings of a write cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WriteCacheSettings {
    /// Memory of each member for data and directory together, in bytes.
    pub bytes: u64,
    /// Division of that memory.
    pub division: Division,
    /// True if the pieces that an I/O node fetches from a member for a block are sent together.
    pub queued: bool,
    /// Fullness of a log, from 0.1 to 1, at which it is flushed in the background while writes continue. The memory is
    /// then two logs, one being written to while the other is flushed. The first member with a full log waits for the
    /// others for a time. If `None`, the whole memory is one log that is flushed when it is full, and writes wait.
    pub background: Option<f64>,
    /// Time limit within which a write is flushed.
    pub flush_after: Option<Duration>,
}

/// Minimum memory of a write cache, in bytes.
const BYTES_MIN: u64 = 4096;

impl WriteCacheSettings {
    /// Returns the settings of the ENWRICH report: one mebibyte, of which a tenth is the directory's, and a Memget for
    /// each piece.
    pub const fn report() -> Self {
        WriteCacheSettings {
            bytes: 1 << 20,
            division: Division::Fixed { directory: 0.1 },
            queued: false,
            background: None,
            flush_after: None,
        }
    }

    /// Returns the settings for programs: 16 MiB, shared by data and directory; each half is flushed in the background
    /// when it is full, and after 30 seconds. Flushing a half that is not full would be too early: members that write
    /// at different speeds would flush parts of blocks.
    pub const fn agent() -> Self {
        WriteCacheSettings {
            bytes: 16 << 20,
            division: Division::Shared,
            queued: true,
            background: Some(1.0),
            flush_after: Some(Duration::from_millis(30_000)),
        }
    }

    /// Fails if the cache could not hold any write.
    pub fn check(&self) -> Result<()> {
        let wrong = |why: String| Err(Error::Invalid(why).into());
        if self.bytes < BYTES_MIN {
            return wrong(format!("a write cache of {} bytes: it needs {BYTES_MIN}", self.bytes));
        }
        if let Division::Fixed { directory } = self.division
            && !(0.01..=0.99).contains(&directory)
        {
            return wrong(format!("a directory that is {directory} of the write cache: use 0.01 to 0.99"));
        }
        if let Some(fullness) = self.background.filter(|fullness| !(0.1..=1.0).contains(fullness)) {
            return wrong(format!("a write cache flushed when it is {fullness} full: use 0.1 to 1"));
        }
        Ok(())
    }
}

/// One of many writes that are cached together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Offset in bytes within the file.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Time of the write by this node's clock, in nanoseconds since 1970 (see [`Machine::date`]).
    pub time: u64,
}

/// A compute node's part of the write cache of a job. A clone is another handle on the same cache.
pub struct WriteCache<M: Machine> {
    inner: Rc<Inner<M>>,
}

impl<M: Machine> Clone for WriteCache<M> {
    fn clone(&self) -> Self {
        WriteCache { inner: self.inner.clone() }
    }
}

pub(super) struct Inner<M: Machine> {
    client: Client<M>,
    settings: WriteCacheSettings,
    membership: Membership<M>,
    logs: RefCell<Logs>,
    data: Memory,
    /// Files that have been written to, by their index in the logs. Each is the last handle used.
    files: RefCell<Vec<File<M>>>,
    flushes: Flushes,
    /// Timer of unflushed writes, if they have a time limit.
    in_time: DeadlineTimer,
    /// True if a task is flushing in the background.
    behind: Cell<bool>,
    /// Failures of flushes, whose data remain in the logs.
    failures: FlushFailures,
    /// Numbers of the flushes that this member has requested, each with the full section.
    causes: RefCell<Vec<(u32, Section)>>,
    /// Result of each flush, as far as this member knows it.
    moved: RefCell<Vec<Moved>>,
}

/// Progress of a group's flushes at one member.
#[derive(Default)]
struct Flushes {
    /// Number of flushes that are over, successful or not, by the coordinator's count. A new coordinator starts again.
    over: Cell<u32>,
    /// Number of flushes in which this member has taken part.
    taken_part: Cell<u64>,
    /// Flushes in which this member must take part, in order, each of all files or of one.
    due: RefCell<VecDeque<(u32, Option<FileId>)>>,
    /// True if a task is taking part in them.
    running: Cell<bool>,
    changed: Condition,
}

impl<M: Machine> WriteCache<M> {
    /// Makes this node's part of the write cache of a job. All clients that name the job share the cache and flush
    /// together. `member` is the name of this node for users. The cache's memory is of the same kind as `kind`, real or
    /// phantom.
    ///
    /// # Errors
    /// Fails if the settings are invalid, or if the coordinator of the job rejects this member.
    pub async fn join(
        client: Client<M>,
        job: &str,
        member: &str,
        settings: WriteCacheSettings,
        kind: &Memory,
    ) -> Result<WriteCache<M>> {
        settings.check()?;
        let count = if settings.background.is_some() { 2 } else { 1 };
        let logs = Logs::new(count, settings.bytes, settings.division);
        let joining = client.inner.joining.begin();
        let (membership, flushes) = Membership::begin(&client, job, member).await?;
        if client.inner.write_caches.borrow().contains_key(&membership.group()) {
            return Err(Error::Invalid(format!("this client is already a member of the job {job}")).into());
        }
        let inner = Rc::new(Inner {
            settings,
            membership,
            // Each log has its own memory, so that data sent from one do not share memory with writes to the other.
            data: Memory::joined(logs.data_capacities().map(|bytes| kind.another(bytes)).collect()),
            logs: RefCell::new(logs),
            files: RefCell::default(),
            flushes: Flushes { over: Cell::new(flushes), ..Flushes::default() },
            in_time: DeadlineTimer::default(),
            behind: Cell::default(),
            failures: FlushFailures::default(),
            causes: RefCell::default(),
            moved: RefCell::default(),
            client: client.clone(),
        });
        inner.enter();
        drop(joining);
        Ok(WriteCache { inner })
    }

    /// Writes `data` to the file at `offset` in this node's memory, to be flushed with the writes of the other members.
    ///
    /// Requests a flush by the group and blocks if the cache is full. Also fails as [`check`](Self::check) does.
    pub async fn write(&self, file: &File<M>, offset: u64, data: &Payload) -> Result<()> {
        self.check()?;
        let time = self.inner.machine().date().as_nanos();
        self.write_all(file, &[Written { offset, bytes: data.len(), time }], data).await.1
    }

    /// Fails, once, if an earlier flush has failed and no later one has covered the same files. The data are still in
    /// the log, and the next flush retries. Also fails if writes to a file were discarded because it was removed or
    /// replaced.
    pub fn check(&self) -> Result<()> {
        self.inner.failures.report()
    }

    /// Returns true if [`check`](Self::check) would fail.
    pub fn has_unreported(&self) -> bool {
        self.inner.failures.has_unreported()
    }

    /// Makes writes one after the other, with their bytes packed in `data`. Each is as [`write`](Self::write), except
    /// that it fails only if no space can be freed. Returns the number of writes made, and the reason for an early end.
    pub async fn write_all(&self, file: &File<M>, writes: &[Written], data: &Payload) -> (usize, Result<()>) {
        let about = || [("file", file.id().0), ("writes", writes.len() as u64), ("bytes", data.len())];
        let _span = self.inner.machine().notes().span("write to cache", about);
        let index = self.inner.index_of(file);
        let (mut made, mut from) = (0, 0);
        while made < writes.len() {
            let (count, bytes) = self.inner.append_whole(file, index, &writes[made..], data, from).await;
            (made, from) = (made + count, from + bytes);
            if let Some(write) = writes.get(made) {
                let data = data.slice(from..from + write.bytes);
                if let Err(error) = self.inner.append(file, index, *write, &data).await {
                    return (made, Err(error));
                }
                (made, from) = (made + 1, from + write.bytes);
            }
        }
        (made, Ok(()))
    }

    /// Returns true if this node has written to a file since it joined.
    pub fn has_written(&self, file: &File<M>) -> bool {
        self.inner.files.borrow().iter().any(|known| known.id() == file.id())
    }

    /// Reads `bytes` from `offset` on into `memory` at `at`, including this node's unflushed writes. Returns the number
    /// of bytes read, which is less at the end of the file.
    pub async fn read(
        &self,
        file: &File<M>,
        offset: u64,
        bytes: u64,
        memory: &Memory,
        at: u64,
    ) -> Result<u64> {
        let inner = &self.inner;
        loop {
            let taken_part = inner.flushes.taken_part.get();
            let mut read = file.read(offset, bytes, memory, at).await?;
            // Read again: a flush in between has moved data from the logs to the disks.
            if inner.flushes.taken_part.get() != taken_part {
                continue;
            }
            // Unwritten bytes before an unflushed write are a hole.
            let end = self.end_of(file).min(offset + bytes);
            if offset + read < end {
                memory.place(at + read, &Payload::zeros(end - offset - read));
                read = end - offset;
            }
            for entry in inner.logs.borrow().entries_of(inner.index_of(file)) {
                let (first, last) = (entry.offset.max(offset), entry.extent().end().min(end));
                if first < last {
                    let data = inner.data.get(entry.at + (first - entry.offset), last - first);
                    memory.place(at + (first - offset), &data);
                }
            }
            return Ok(read);
        }
    }

    /// Returns the end of this node's unflushed writes to a file, in bytes; 0 if it has none.
    pub fn end_of(&self, file: &File<M>) -> u64 {
        let logs = self.inner.logs.borrow();
        logs.entries_of(self.inner.index_of(file)).map(|entry| entry.extent().end()).max().unwrap_or(0)
    }

    /// Flushes the caches of the group. On completion all earlier writes of the members are on stable storage.
    pub async fn flush(&self) -> Result<()> {
        self.inner.flush(Reason::Asked(None)).await?;
        self.inner.failures.report_given_up()
    }

    /// Flushes the group's writes to one file, so that it can be read.
    pub async fn flush_file(&self, file: &File<M>) -> Result<()> {
        self.inner.flush(Reason::Asked(Some(file.id()))).await?;
        self.inner.failures.report_given_up()
    }

    /// Flushes this node's writes and leaves the job. A later write joins it again.
    pub async fn leave(&self) -> Result<()> {
        let inner = &self.inner;
        inner.none_is_on().await;
        if !inner.logs.borrow().is_empty() {
            inner.flush(Reason::Asked(None)).await?;
        }
        let turn = inner.membership.turn_to_join().await;
        inner.membership.end(&inner.client).await?;
        drop(turn);
        inner.failures.report_given_up()
    }

    /// Returns the number of flushes that the group has ended since the job began, successful or not.
    pub fn flushes(&self) -> u32 {
        self.inner.flushes.over.get()
    }

    /// Returns the flushes that this member has requested, by their numbers from 1 on, each with the full section.
    pub fn causes(&self) -> Vec<(u32, Section)> {
        self.inner.causes.borrow().clone()
    }

    /// Returns the results of all flushes so far, as far as this member knows them: only the first of the group knows
    /// all.
    pub fn moved(&self) -> Vec<Moved> {
        self.inner.moved.borrow().clone()
    }
}

impl<M: Machine> Inner<M> {
    fn index_of(&self, file: &File<M>) -> usize {
        let mut files = self.files.borrow_mut();
        let found = files.iter().position(|known| known.id() == file.id());
        let Some(index) = found else {
            files.push(file.clone());
            return files.len() - 1;
        };
        if !files[index].is_same_handle(file) {
            // The file has been opened again: flushes must report its length to this handle.
            file.note_end(files[index].own_end());
            files[index] = file.clone();
        }
        index
    }

    /// Makes the first of these writes, up to the first that does not fit, with their bytes in `data` from `from` on.
    /// Returns the number of writes and the number of bytes.
    async fn append_whole(
        self: &Rc<Self>,
        file: &File<M>,
        index: usize,
        writes: &[Written],
        data: &Payload,
        from: u64,
    ) -> (usize, u64) {
        // No await between entries and data, so that no flush reads the one without the other.
        let Some((at, count, bytes)) = self.logs.borrow_mut().append_whole(file.striping(), index, writes)
        else {
            return (0, 0);
        };
        self.data.place(at, &data.slice(from..from + bytes));
        self.note_written();
        for write in &writes[..count] {
            self.machine().compute(Work::AppendEntry).await;
            self.machine().compute(Work::Copy { bytes: write.bytes }).await;
        }
        (count, bytes)
    }

    /// Makes one write, in several parts if the log cannot hold it at once.
    async fn append(
        self: &Rc<Self>,
        file: &File<M>,
        index: usize,
        write: Written,
        data: &Payload,
    ) -> Result<()> {
        check_no_file_ends_before(Extent::new(write.offset, write.bytes))?;
        let (striping, mut done) = (file.striping(), 0);
        while done < write.bytes {
            let room = self.logs.borrow().room_for(striping, write.offset + done, write.bytes - done);
            match room {
                Ok(bytes) => {
                    // No await between entry and data, so that no flush reads the one without the other.
                    let at = self.logs.borrow_mut().append(index, write.offset + done, bytes, write.time);
                    self.data.place(at, &data.slice(done..done + bytes));
                    self.note_written();
                    self.machine().compute(Work::AppendEntry).await;
                    self.machine().compute(Work::Copy { bytes }).await;
                    done += bytes;
                }
                Err(WriteDelay::Flushing) => self.flushes.changed.wait().await,
                Err(WriteDelay::Full(section)) => self.make_room(section).await?,
            }
        }
        Ok(())
    }

    /// Blocks until a running or requested flush may have freed space, or requests one. Fails if a flush has failed.
    async fn make_room(self: &Rc<Self>, section: Section) -> Result<()> {
        if !self.flushes.running.get() && !self.behind.get() {
            self.causes.borrow_mut().push((self.flushes.over.get() + 1, section));
            if self.settings.background.is_none() {
                return self.flush(Reason::Asked(None)).await;
            }
            self.flush_behind(Reason::Room);
        }
        self.flushes.changed.wait().await;
        self.failures.report()
    }

    /// Starts the timer or a background flush for new writes, as needed.
    fn note_written(self: &Rc<Self>) {
        if let Some(limit) = self.settings.flush_after {
            start_timer(self, limit, "flush in time");
        }
        let is_full_enough = |fullness| self.logs.borrow().fullness() >= fullness;
        if !self.flushes.running.get() && self.settings.background.is_some_and(is_full_enough) {
            self.flush_behind(Reason::Room);
        }
    }

    /// Starts a flush of the group in the background, unless one has been started already.
    fn flush_behind(self: &Rc<Self>, reason: Reason) {
        if !self.flushes.running.get() && !self.behind.replace(true) {
            let cache = self.clone();
            self.machine().spawn("flush behind", async move {
                // Ignore the error: the next call reports it.
                drop(cache.try_flush(reason).await);
                cache.behind.set(false);
                cache.flushes.changed.wake_all();
                Ok(())
            });
        }
    }

    /// Blocks until this member takes part in no flush.
    async fn none_is_on(&self) {
        while self.flushes.running.get() {
            self.flushes.changed.wait().await;
        }
    }

    /// Flushes all writes of the group until now, and blocks until it is done. A failure counts as reported to the
    /// caller.
    async fn flush(self: &Rc<Self>, reason: Reason) -> Result<()> {
        let flushed = self.try_flush(reason).await;
        if flushed.is_err() {
            self.failures.mark_reported();
        }
        flushed
    }

    /// Flushes all writes of the group until now, and blocks until it is done. Retries once if an I/O node restarted.
    async fn try_flush(self: &Rc<Self>, reason: Reason) -> Result<()> {
        let _span = self.machine().notes().span("wait for flush", || []);
        let mut again = true;
        loop {
            // Wait: a running flush does not cover writes since its start.
            self.none_is_on().await;
            let number = self.gather(reason).await.inspect_err(|error| {
                self.failures.note_unreported(reason.file(), error);
            })?;
            if !self.is_over(number).await {
                continue;
            }
            match self.failures.outcome_of(number) {
                // Retry: the writers of a removed file have discarded its data by now.
                Err(error) if again && (error.is_restart() || is_removed(&error)) => again = false,
                outcome => return outcome,
            }
        }
    }

    /// Blocks until the flush of this number, which the coordinator has just announced, is over, and returns true.
    /// Returns false if the coordinator disconnects: its messages about that flush may be lost.
    async fn is_over(&self, number: u32) -> bool {
        let coordinator = self.membership.coordinator();
        let disconnects = self.client.disconnects_of(coordinator);
        while self.flushes.over.get() < number {
            first_of(self.flushes.changed.wait(), self.client.inner.lost.wait()).await;
            if self.client.disconnects_of(coordinator) != disconnects {
                return false;
            }
        }
        true
    }

    /// Requests a flush later than those that are over here, and returns its number. Rejoins the job if the coordinator
    /// does not know this member, because one of them restarted or was disconnected.
    async fn gather(self: &Rc<Self>, reason: Reason) -> Result<u32> {
        let (wanted, joins) = (self.flushes.over.get() + 1, self.membership.joins());
        match self.membership.gather(&self.client, wanted, reason).await {
            Err(error) if error.is_restart() => {
                // No other task leaves the job between the two requests.
                let _turn = self.membership.turn_to_join().await;
                self.rejoin(joins).await?;
                self.membership.gather(&self.client, self.flushes.over.get() + 1, reason).await
            }
            outcome => outcome,
        }
    }

    /// Rejoins the job, unless another task has done so since this member had joined `joins` times. A second request to
    /// join would wait for a flush that waits for this member.
    async fn rejoin(self: &Rc<Self>, joins: u64) -> Result<()> {
        if self.membership.joins() != joins {
            return Ok(());
        }
        // A flush of the old membership would enter the barriers of a new one with the same number.
        self.none_is_on().await;
        let _joining = self.client.inner.joining.begin();
        let flushes = self.membership.renew(&self.client).await?;
        self.flushes.over.set(flushes);
        self.failures.forget_numbers();
        self.enter();
        Ok(())
    }

    /// Registers the cache with its client as that of its group.
    fn enter(self: &Rc<Self>) {
        let caches = &self.client.inner.write_caches;
        caches.borrow_mut().insert(self.membership.group(), Rc::downgrade(self));
    }

    /// Takes part in a flush that has begun, after earlier ones.
    fn take_part_in(self: &Rc<Self>, flush: u32, file: Option<FileId>) {
        self.flushes.due.borrow_mut().push_back((flush, file));
        if !self.flushes.running.replace(true) {
            let cache = self.clone();
            self.machine().spawn("flush", async move {
                loop {
                    let next = cache.flushes.due.borrow_mut().pop_front();
                    let Some((flush, file)) = next else { break };
                    cache.take_part(flush, file).await;
                }
                cache.flushes.running.set(false);
                cache.flushes.changed.wake_all();
                Ok(())
            });
        }
    }

    /// Does this member's part of one flush.
    async fn take_part(&self, flush: u32, file: Option<FileId>) {
        let _span = self.machine().notes().span("flush write cache", || [("flush", u64::from(flush))]);
        self.logs.borrow_mut().begin_flush();
        self.in_time.clear();
        let outcome = self.write_logs(flush, file).await;
        let index = file.map(|id| self.files.borrow().iter().position(|file| file.id() == id));
        match outcome {
            Ok(moved) => {
                match index {
                    // This member has written nothing to the file.
                    Some(None) => self.logs.borrow_mut().end_failed_flush(),
                    Some(index) => self.logs.borrow_mut().end_flush(index),
                    None => self.logs.borrow_mut().end_flush(None),
                }
                self.failures.clear(file);
                self.moved.borrow_mut().push(moved);
            }
            Err(error) => {
                self.logs.borrow_mut().end_failed_flush();
                self.failures.note(flush, file, &error);
                // An I/O node may have restarted: the next flush needs this member's connection and its open files
                // there.
                self.client.connect_to_all().await;
                self.refresh_files().await;
            }
        }
        if self.settings.flush_after.is_some() && !self.logs.borrow().is_empty() {
            self.in_time.wait(self.machine());
        }
        self.flushes.over.set(flush);
        self.flushes.taken_part.set(self.flushes.taken_part.get() + 1);
        self.flushes.changed.wake_all();
    }

    /// Writes the entries in the current flush, together with the other members.
    async fn write_logs(&self, flush: u32, file: Option<FileId>) -> Result<Moved> {
        let parts = {
            let (logs, files) = (self.logs.borrow(), self.files.borrow());
            let parts = files.iter().enumerate().map(|(index, file)| FileEntries {
                file: file.clone(),
                entries: logs.leaving_entries_of(index),
            });
            parts.filter(|part| file.is_none_or(|id| part.file.id() == id)).collect::<Vec<_>>()
        };
        let settings = ListedSettings { presort: true, queued: self.settings.queued };
        let operation = ListedOperation { direction: Direction::Write, memory: &self.data, settings };
        let on_barrier = || {
            // All have begun: any member's later writes are flushed after all earlier writes.
            self.logs.borrow_mut().all_have_begun();
            self.flushes.changed.wake_all();
        };
        let barriers = FlushBarriers::new(&self.membership, flush, &on_barrier);
        let (own, common) = self.client.move_once(&operation, &barriers, &parts, &Ok(())).await;
        let moved = match (common, own) {
            // The coordinator only passes on an I/O node's answer to this member.
            (Err(common), Err(own)) if common.passes_on(&own) => Err(own),
            // Otherwise prefer the shared error: it names members, which an I/O node knows only by number.
            (common, own) => common.and(own),
        }?;
        for FileEntries { file, entries } in parts {
            file.note_end(entries.iter().map(|entry| entry.extent().end()).max().unwrap_or(0));
        }
        Ok(moved)
    }

    /// Opens all files again where an I/O node has restarted. Discards writes to removed files, which cannot be flushed
    /// and must not block the flush of others.
    async fn refresh_files(&self) {
        let files = self.files.borrow().clone();
        for (index, file) in files.into_iter().enumerate() {
            file.refresh();
            match file.open_stripes().await {
                Err(error) if is_removed(&error) => {
                    file.note_removed();
                    if self.logs.borrow_mut().forget(index) {
                        self.failures.give_up(error);
                    }
                }
                // Ignore other errors: the next flush fails with them, too.
                _ => {}
            }
        }
    }
}

/// Returns true if a file that had been written to was removed.
fn is_removed(error: &Error) -> bool {
    error.is_remote(FailureKind::Removed)
}

impl<M: Machine> Timed for Inner<M> {
    type Machine = M;

    fn machine(&self) -> &M {
        self.client.inner.endpoint.machine()
    }

    fn in_time(&self) -> &DeadlineTimer {
        &self.in_time
    }

    fn do_it(self: &Rc<Self>) {
        self.flush_behind(Reason::Asked(None));
    }
}

/// The write caches of a client, by group.
pub(super) type WriteCaches<M> = RefCell<BTreeMap<u64, Weak<Inner<M>>>>;

impl<M: Machine> ClientInner<M> {
    /// Takes part in a flush of a group that has begun.
    pub(super) fn flush_together(
        &self,
        group: u64,
        flush: u32,
        file: Option<FileId>,
    ) -> std::result::Result<(Reply, Payload), Box<Failure>> {
        let cache = self.write_caches.borrow().get(&group).and_then(Weak::upgrade);
        let cache = cache.ok_or_else(|| {
            Box::new(Failure::invalid(format!(
                "a flush of group {group:016x}, whose write cache is not here"
            )))
        })?;
        let (over, due) = (cache.flushes.over.get(), cache.flushes.due.borrow().len() as u32);
        // No more can be pending: a member skips no flush, and a flush needs all members to complete.
        if flush <= over || due > 1 {
            return Err(Failure::invalid(format!("flush {flush} after {over}")).into());
        }
        cache.take_part_in(flush, file);
        Ok((Reply::Done, Payload::empty()))
    }
}

impl<M: Machine> Drop for Inner<M> {
    fn drop(&mut self) {
        self.client.inner.write_caches.borrow_mut().remove(&self.membership.group());
    }
}
