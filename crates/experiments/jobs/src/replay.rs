//! Replays a request log: each member repeats the requests of one node of the log, by any method.
//!
//! ```text
//!   by requests, through page caches,     each request when the previous one has completed; a sync flushes writes
//!   or write-cached                       of this member, and is a barrier
//!
//!   disk-directed, or two-phase           each member collects requests, and all transfer them in one operation:
//!     node 0   w w w r r   sync             round: w w w   w w .   r r .   sync
//!     node 1   w w   r w   sync                    w w     . . .   r       (and w in a separate round)
//! ```
//!
//! A *batch* is the set of requests that a member collects for one collective operation. It consists of consecutive
//! requests of the same kind, up to the next sync and up to a limit in bytes. All members have the same rounds, which
//! are derived from the log. The kind of a round is the kind of the next batch of the first member that has a batch
//! before the next sync. A member whose next batch is of the other kind transfers nothing in this round. So each member
//! reads its own earlier writes, and after a sync those of other members.
//!
//! A log of format 2 records which calls were collective, so its replay builds no batches; see `calls.rs`.
//!
//! Written bytes depend on the file and the offset, and differ from the initial contents of files that are read. A
//! member checks bytes that it reads if it has written them itself, or if no member writes them. It does not check
//! bytes that other members write at some time. At the end, one member checks every written byte, and the edges of
//! unwritten ranges.

mod calls;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use fs::{
    CollectiveMethod, Entry, File, FileEntries, Group, ListedSettings, PageCache, PageCacheSettings,
    PagedFile, Participants, SelectedSettings, WriteCache, WriteCacheSettings,
};
use layout::{Chunk, Extent, Operation, Selection};
use machine::{Duration, Instant, Machine, Memory, Payload, RangeSet, Work};
use request_log::{Action, LoggedMove, Request, RequestLog, Stretch};

use crate::{Contents, Error, FlushTally, Member, Outcome};

/// A replay job. The member of rank *i* repeats the requests of the *i*-th node of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayJob {
    log: Arc<RequestLog>,
    files: Vec<String>,
    access: ReplayAccess,
    think: Think,
    /// Byte ranges that any member writes, by file.
    written: Arc<[RangeSet]>,
    /// Collective operations of all members, if the members transfer batches.
    turns: Arc<[Turn]>,
}

/// Access method of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReplayAccess {
    /// Each request separately.
    Requests,
    /// Each request separately, through a page cache in the member.
    Cached(PageCacheSettings),
    /// Many requests of all members in one collective operation.
    Batches {
        /// Method. Disk-directed operations access all files at the same time, two-phase operations one file after the
        /// other.
        method: CollectiveMethod,
        /// True if pieces for the same node share a message (gather/scatter).
        queued: bool,
        /// Maximum size of a member's batch in bytes. A request that is larger is a separate batch.
        bytes: u64,
    },
    /// The log's collective calls by `method`, its other calls as independent requests.
    Calls {
        /// Method of collective calls.
        method: CollectiveMethod,
        /// True if pieces for the same node share a message (gather/scatter).
        queued: bool,
    },
    /// Writes into the write cache that all members share. Each read is independent, and sees the member's earlier
    /// writes.
    WriteCached(WriteCacheSettings),
}

/// Treatment of the time between a node's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Think {
    /// Ignored: each request starts when the previous one has ended.
    None,
    /// Kept as gaps: the time from the end of a request to the start of the next one is as in the log.
    Gaps,
    /// Kept as start times: no request starts before its time in the log. Both times count from the start, of the log
    /// and of the replay.
    Times,
}

/// A collective operation of a replay by batches.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Turn {
    /// The members transfer their batches, whose requests access these files.
    Move(Operation, BTreeSet<u32>),
    Sync,
}

/// Maximum number of requests in a batch. Their directory takes some hundred messages.
const BATCH_REQUESTS_MAX: usize = 1 << 16;

impl ReplayJob {
    /// Creates a replay of `log`. `files` are the names of its files in the file system, in the order of the log.
    ///
    /// # Panics
    /// If the number of names differs from the number of files in the log.
    pub fn new(log: Arc<RequestLog>, files: Vec<String>, access: ReplayAccess, think: Think) -> Self {
        assert_eq!(files.len(), log.files().len(), "each file of a log has a name");
        let turns = match access {
            ReplayAccess::Batches { bytes, .. } => turns(&log, bytes),
            _ => Vec::new(),
        };
        let written = written(&log).into();
        ReplayJob { log, files, access, think, written, turns: turns.into() }
    }

    /// Returns the log.
    pub fn log(&self) -> &RequestLog {
        &self.log
    }

    /// Iterates over the files that must exist. Each item has the name, the size in bytes, and true if a member reads
    /// the file. A file that is read must have this size and the initial contents, all other files must be empty.
    pub fn files(&self) -> impl Iterator<Item = (&str, u64, bool)> {
        let files = self.files.iter().zip(self.log.files());
        files.map(|(name, file)| (&**name, file.end, file.is_read))
    }

    fn is_in_two_phases(&self) -> bool {
        matches!(self.access, ReplayAccess::Batches { method: CollectiveMethod::TwoPhase, .. })
    }

    /// Returns the maximum memory in bytes that a member needs for the data of its requests.
    pub fn memory_bytes(&self) -> u64 {
        let largest = self.log.totals().largest;
        match self.access {
            ReplayAccess::Batches { method, bytes, .. } => copies(method) * bytes.max(largest),
            ReplayAccess::Cached(settings) => settings.bytes + largest,
            ReplayAccess::WriteCached(settings) => settings.bytes + largest,
            ReplayAccess::Requests => largest,
            ReplayAccess::Calls { method, .. } => copies(method) * largest,
        }
    }

    pub(crate) fn check(&self, members: u32) -> Result<(), Error> {
        let nodes = self.log.nodes().len();
        let invalid = |why: String| Err(Error::Invalid(why));
        if nodes != members as usize {
            return invalid(format!("a log of {nodes} nodes on {members} compute nodes"));
        }
        if self.files.len() > FILES_MAX {
            let files = self.files.len();
            return invalid(format!("a log of {files} files: the limit is {FILES_MAX}"));
        }
        calls::check(self)?;
        match self.access {
            ReplayAccess::Cached(PageCacheSettings { bytes: 0, .. }) => {
                invalid("a page cache needs at least one byte".into())
            }
            ReplayAccess::Batches { bytes: 0, .. } => invalid("a batch needs at least one byte".into()),
            ReplayAccess::WriteCached(settings) => Ok(settings.check()?),
            _ => Ok(()),
        }
    }
}

/// Returns the byte ranges that any node writes, for each file of a log.
fn written(log: &RequestLog) -> Vec<RangeSet> {
    let mut written = vec![RangeSet::default(); log.files().len()];
    for request in log.nodes().iter().flat_map(|node| &node.requests) {
        match request.action {
            Action::Move(Operation::Write, stretch) => {
                written[stretch.file as usize].insert(stretch.offset..stretch.end());
            }
            Action::Call(index) => {
                let call = log.call(index);
                let Some((Operation::Write, selection)) = &call.moves else { continue };
                let chunks =
                    selection.chunks().map(|chunk| chunk.file_offset..chunk.file_offset + chunk.bytes);
                written[call.file as usize].extend(chunks);
            }
            _ => {}
        }
    }
    written
}

/// Returns the kind and the number of requests of the batch that begins with the first request, or `None` if the first
/// request is a sync or missing.
fn batch(requests: &[Request], bytes_max: u64) -> Option<(Operation, usize)> {
    let Action::Move(operation, _) = requests.first()?.action else { return None };
    let mut bytes = 0;
    let fits = |request: &&Request| match request.action {
        Action::Move(other, stretch) if other == operation => {
            let is_first = bytes == 0;
            bytes += u64::from(stretch.bytes);
            is_first || bytes <= bytes_max
        }
        _ => false,
    };
    let count = requests.iter().take(BATCH_REQUESTS_MAX).take_while(fits).count();
    Some((operation, count))
}

/// Returns the collective operations of the members of a log, in batches of at most `bytes` bytes.
fn turns(log: &RequestLog, bytes: u64) -> Vec<Turn> {
    let mut rest: Vec<&[Request]> = log.nodes().iter().map(|node| &node.requests[..]).collect();
    let mut turns = Vec::new();
    while rest.iter().any(|requests| !requests.is_empty()) {
        let kind = rest.iter().find_map(|requests| batch(requests, bytes)).map(|(operation, _)| operation);
        let mut files = BTreeSet::new();
        for requests in &mut rest {
            let done = match (kind, batch(requests, bytes)) {
                (Some(kind), Some((operation, count))) if operation == kind => count,
                // At this point every member is at a sync or at its end.
                (None, _) => requests.len().min(1),
                _ => 0,
            };
            files.extend(stretches(&requests[..done]).map(|(_, stretch)| stretch.file));
            *requests = &requests[done..];
        }
        turns.push(kind.map_or(Turn::Sync, |operation| Turn::Move(operation, files)));
    }
    turns
}

/// Part of a member in a replay.
pub struct ReplayPart<M: Machine> {
    job: ReplayJob,
    member: Member<M>,
    /// For each collective open in the log, the group of its members, if this member takes part.
    groups: Vec<Option<Group>>,
    /// Files of the log; `None` if this member does not use the file.
    files: Vec<Option<Opened<M>>>,
    cache: Option<WriteCache<M>>,
    memory: Memory,
    /// Ranges that this member has written so far, in files that are also read.
    own: RefCell<BTreeMap<u32, RangeSet>>,
    /// Files to which this member has written since their last flush.
    unflushed: RefCell<BTreeSet<u32>>,
}

enum Opened<M: Machine> {
    Plain(File<M>),
    Paged(PagedFile<M>),
}

/// Maximum number of files whose contents can be distinguished: the source of contents has 15 bits besides the offset
/// and the mark of writes.
const FILES_MAX: usize = 1 << 15;

/// Returns the offset in the source of contents for bytes written to a file. For initial contents this offset equals
/// the file offset.
fn source(file: u32, offset: u64) -> u64 {
    1 << 63 | u64::from(file) << 48 | offset
}

impl<M: Machine> ReplayPart<M> {
    pub(crate) async fn prepare(job: &ReplayJob, member: Member<M>) -> Result<Self, Error> {
        let client = member.client()?;
        let node = &job.log.nodes()[member.group.rank];
        let used: BTreeSet<u32> = job.log.moves(node).map(|moved| moved.file).collect();
        let pages = match job.access {
            ReplayAccess::Cached(settings) => Some(PageCache::new(client.clone(), settings)),
            _ => None,
        };
        let mut files = Vec::new();
        for (index, name) in (0..).zip(&job.files) {
            // In two-phase I/O, a member also transfers data for other members.
            let is_used = used.contains(&index) || job.is_in_two_phases();
            files.push(match &pages {
                _ if !is_used => None,
                Some(pages) => Some(Opened::Paged(member.open_in(pages, name).await?)),
                None => Some(Opened::Plain(member.open(name).await?)),
            });
        }
        let cache = match job.access {
            ReplayAccess::WriteCached(settings) => {
                let (job, name) = (format!("{:016x}", member.group.id), format!("member {}", member.rank()));
                let memory = member.contents.memory(0);
                Some(WriteCache::join(client.clone(), &job, &name, settings, &memory).await?)
            }
            _ => None,
        };
        let memory = member.contents.memory(memory_bytes(job, job.log.moves(node)));
        let groups = calls::groups(job, &member);
        let (own, unflushed) = (RefCell::default(), RefCell::default());
        Ok(ReplayPart { job: job.clone(), member, groups, files, cache, memory, own, unflushed })
    }

    fn machine(&self) -> &M {
        &self.member.machine
    }

    fn requests(&self) -> &[Request] {
        &self.job.log.nodes()[self.member.group.rank].requests
    }

    pub(crate) async fn run(&self) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        let mut clock = Clock::start(self.machine().now(), self.job.log.start(), self.job.think);
        match self.job.access {
            ReplayAccess::Batches { bytes, .. } => self.run_batches(bytes, &mut clock, &mut outcome).await?,
            _ => self.run_requests(&mut clock, &mut outcome).await?,
        }
        outcome.elapsed = self.machine().now().since(clock.begin);
        Ok(outcome)
    }

    async fn run_requests(&self, clock: &mut Clock, outcome: &mut Outcome) -> Result<(), Error> {
        let mut syncs = self.job.log.syncs();
        for request in self.requests() {
            clock.think(self.machine(), request).await;
            match request.action {
                Action::Sync => {
                    self.sync().await?;
                    syncs -= 1;
                }
                Action::Move(Operation::Write, stretch) => self.write(stretch, outcome).await?,
                Action::Move(Operation::Read, stretch) => self.read(stretch, outcome).await?,
                Action::Call(index) => self.call(index, outcome).await?,
            }
        }
        for _ in 0..syncs {
            self.sync().await?;
        }
        let begin = self.machine().now();
        match &self.cache {
            Some(cache) => {
                // Because of the barrier, the last flush of the cache contains the remaining data of all members.
                self.member.client()?.barrier(&self.member.group).await?;
                cache.leave().await?;
                outcome.flushes = Some(FlushTally::of(cache));
            }
            None => self.flush().await?,
        }
        outcome.flush = self.machine().now().since(begin);
        Ok(())
    }

    /// Waits for all members, so that each sees the writes of the others.
    async fn sync(&self) -> Result<(), Error> {
        self.sync_with(&self.member.group).await
    }

    /// Like [`sync`](Self::sync), but waits for the members of `group`.
    async fn sync_with(&self, group: &Group) -> Result<(), Error> {
        let client = self.member.client()?;
        if let Some(cache) = &self.cache {
            client.barrier(group).await?;
            if group.rank == 0 {
                cache.flush().await?;
            }
        }
        self.flush().await?;
        Ok(client.barrier(group).await?)
    }

    /// Flushes the writes of this member to stable storage.
    async fn flush(&self) -> Result<(), Error> {
        let unflushed = self.unflushed.take();
        for index in unflushed {
            match self.file(index) {
                Opened::Plain(file) => file.flush().await?,
                Opened::Paged(file) => file.flush().await?,
            }
        }
        Ok(())
    }

    fn file(&self, index: u32) -> &Opened<M> {
        self.files[index as usize].as_ref().expect("the member has opened the files of its requests")
    }

    fn plain(&self, index: u32) -> &File<M> {
        match self.file(index) {
            Opened::Plain(file) => file,
            Opened::Paged(_) => unreachable!("collective operations do not use page caches"),
        }
    }

    async fn write(&self, stretch: Stretch, outcome: &mut Outcome) -> Result<(), Error> {
        let making = self.machine().now();
        self.make(stretch, 0);
        let begin = self.machine().now();
        outcome.own_work += begin.since(making);
        let Stretch { file, offset, .. } = stretch;
        let bytes = u64::from(stretch.bytes);
        match (self.file(file), &self.cache) {
            (Opened::Plain(file), Some(cache)) => {
                cache.write(file, offset, &self.memory.get(0, bytes)).await?;
            }
            (Opened::Plain(opened), None) => {
                opened.write(offset, bytes, &self.memory, 0).await?;
                self.unflushed.borrow_mut().insert(file);
            }
            (Opened::Paged(opened), _) => {
                self.write_pages(opened, offset, bytes).await?;
                self.unflushed.borrow_mut().insert(file);
            }
        }
        outcome.writes.take_in(bytes, self.machine().now().since(begin));
        Ok(())
    }

    async fn read(&self, stretch: Stretch, outcome: &mut Outcome) -> Result<(), Error> {
        let begin = self.machine().now();
        let Stretch { file, offset, .. } = stretch;
        let bytes = u64::from(stretch.bytes);
        let found = match (self.file(file), &self.cache) {
            (Opened::Plain(file), Some(cache)) => cache.read(file, offset, bytes, &self.memory, 0).await?,
            (Opened::Plain(file), None) => file.read(offset, bytes, &self.memory, 0).await?,
            (Opened::Paged(file), _) => self.read_pages(file, offset, bytes).await?,
        };
        let end = self.machine().now();
        outcome.reads.take_in(bytes, end.since(begin));
        if found < bytes {
            let name = self.name(file);
            return Err(Error::WrongData(format!("{name} ends after {} bytes", offset + found)));
        }
        self.check_read(stretch, 0)?;
        outcome.own_work += self.machine().now().since(end);
        Ok(())
    }

    /// Writes page by page, and copies each page from the program's memory.
    async fn write_pages(&self, file: &PagedFile<M>, offset: u64, bytes: u64) -> fs::Result<()> {
        let mut done = 0;
        while done < bytes {
            let some = (file.page_bytes() - (offset + done) % file.page_bytes()).min(bytes - done);
            self.machine().compute(Work::Copy { bytes: some }).await;
            file.write(offset + done, self.memory.get(done, some)).await?;
            done += some;
        }
        Ok(())
    }

    /// Reads page by page, copies each page to the program's memory, and returns the number of bytes read.
    async fn read_pages(&self, file: &PagedFile<M>, offset: u64, bytes: u64) -> fs::Result<u64> {
        let mut done = 0;
        while done < bytes {
            let left = file.page_bytes() - (offset + done) % file.page_bytes();
            let some = file.read_some(offset + done, left.min(bytes - done)).await?;
            if some.is_empty() {
                break;
            }
            self.machine().compute(Work::Copy { bytes: some.len() }).await;
            self.memory.place(done, &some);
            done += some.len();
        }
        Ok(done)
    }

    async fn run_batches(&self, bytes: u64, clock: &mut Clock, outcome: &mut Outcome) -> Result<(), Error> {
        let mut rest = self.requests();
        for turn in &*self.job.turns {
            match turn {
                Turn::Sync => {
                    // Batches were flushed to stable storage when they were transferred.
                    if let Some((sync, after)) = rest.split_first() {
                        clock.think(self.machine(), sync).await;
                        rest = after;
                    }
                    self.member.client()?.barrier(&self.member.group).await?;
                }
                Turn::Move(operation, files) => {
                    let next = batch(rest, bytes).filter(|(kind, _)| kind == operation);
                    let (batch, after) = rest.split_at(next.map_or(0, |(_, count)| count));
                    rest = after;
                    self.move_batch(*operation, batch, files, clock, outcome).await?;
                }
            }
        }
        Ok(())
    }

    /// Builds a batch, and transfers it in one operation with the batches of the other members. All batches access only
    /// `files`.
    async fn move_batch(
        &self,
        operation: Operation,
        batch: &[Request],
        files: &BTreeSet<u32>,
        clock: &mut Clock,
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        let mut entries: BTreeMap<u32, Vec<Entry>> = BTreeMap::new();
        let (mut asked, mut at) = (Vec::with_capacity(batch.len()), 0);
        for (request, stretch) in stretches(batch) {
            clock.think(self.machine(), request).await;
            let making = self.machine().now();
            if operation == Operation::Write {
                self.make(stretch, at);
            }
            let now = self.machine().now();
            outcome.own_work += now.since(making);
            asked.push(now);
            let (bytes, time) = (u64::from(stretch.bytes), request.time.as_nanos());
            entries.entry(stretch.file).or_default().push(Entry { offset: stretch.offset, bytes, at, time });
            at += bytes;
        }
        match self.job.access {
            ReplayAccess::Batches { method: CollectiveMethod::DiskDirected { presort }, queued, .. } => {
                self.move_disk_directed(operation, entries, ListedSettings { presort, queued }).await?;
            }
            ReplayAccess::Batches { method: CollectiveMethod::TwoPhase, queued, .. } => {
                for &file in files {
                    let entries = entries.remove(&file).unwrap_or_default();
                    self.move_in_two_phases(operation, file, &entries, queued).await?;
                }
            }
            _ => unreachable!("only batches are collected"),
        }
        let end = self.machine().now();
        let tally = match operation {
            Operation::Read => &mut outcome.reads,
            Operation::Write => &mut outcome.writes,
        };
        let mut at = 0;
        for ((_, stretch), asked) in stretches(batch).zip(asked) {
            tally.take_in(stretch.bytes.into(), end.since(asked));
            if operation == Operation::Read {
                self.check_read(stretch, at)?;
            }
            at += u64::from(stretch.bytes);
        }
        outcome.own_work += self.machine().now().since(end);
        Ok(())
    }

    /// Transfers the batches of all members and files in one operation.
    async fn move_disk_directed(
        &self,
        operation: Operation,
        entries: BTreeMap<u32, Vec<Entry>>,
        settings: ListedSettings,
    ) -> Result<(), Error> {
        let part = |(file, entries)| FileEntries { file: self.plain(file).clone(), entries };
        let parts: Vec<FileEntries<M>> = entries.into_iter().map(part).collect();
        let (client, group) = (self.member.client()?, &self.member.group);
        match operation {
            Operation::Read => client.read_listed(group, &parts, &self.memory, settings).await?,
            Operation::Write => client.write_listed(group, &parts, &self.memory, settings).await?,
        };
        Ok(())
    }

    /// Transfers the collected requests for one file, if any, in one operation with the other members. The data are
    /// packed in file order. If requests overlap, the data of the last one are written.
    async fn move_in_two_phases(
        &self,
        operation: Operation,
        file: u32,
        entries: &[Entry],
        queued: bool,
    ) -> Result<(), Error> {
        let ranges: RangeSet = entries.iter().map(|entry| entry.offset..entry.extent().end()).collect();
        let extents = ranges.ranges().map(Extent::from);
        let selection = Selection::list(&extents.collect::<Vec<_>>()).expect("in order, and of a file");
        let packed = self.member.contents.memory(selection.bytes());
        let bytes = entries.iter().map(|entry| entry.bytes).sum();
        let (file, company) = (self.plain(file), Participants::Group(&self.member.group));
        let settings = SelectedSettings { method: CollectiveMethod::TwoPhase, queued, to_media: true };
        match operation {
            Operation::Read => {
                file.read_selected(company, &selection, &packed, settings).await?;
                self.machine().compute(Work::Copy { bytes }).await;
                for entry in entries {
                    let at = selection.bytes_before(entry.offset);
                    self.memory.place(entry.at, &packed.get(at, entry.bytes));
                }
            }
            Operation::Write => {
                self.machine().compute(Work::Copy { bytes }).await;
                for entry in entries {
                    let at = selection.bytes_before(entry.offset);
                    packed.place(at, &self.memory.get(entry.at, entry.bytes));
                }
                file.write_selected(company, &selection, &packed, settings).await?;
            }
        }
        Ok(())
    }

    /// Fills `self.memory` at `at` with the data to write to this range.
    fn make(&self, stretch: Stretch, at: u64) {
        self.make_in(&self.memory, (stretch.file, stretch.offset, stretch.bytes.into()), at);
    }

    /// Fills `memory` at `at` with the data to write to these bytes of a file.
    fn make_in(&self, memory: &Memory, (file, offset, bytes): (u32, u64, u64), at: u64) {
        memory.place(at, &self.member.contents.payload(source(file, offset), bytes));
        if self.job.log.files()[file as usize].is_read {
            self.own.borrow_mut().entry(file).or_default().insert(offset..offset + bytes);
        }
    }

    /// Fails if the data read into `self.memory` at `at` contradict this member's knowledge of the file.
    fn check_read(&self, stretch: Stretch, at: u64) -> Result<(), Error> {
        self.check_in(&self.memory, (stretch.file, stretch.offset, stretch.bytes.into()), at)
    }

    /// Fails if the bytes at `at` in `memory` contradict this member's knowledge of the file at `offset`.
    fn check_in(
        &self,
        memory: &Memory,
        (file, offset, bytes): (u32, u64, u64),
        at: u64,
    ) -> Result<(), Error> {
        let own = self.own.borrow();
        let nothing = RangeSet::default();
        let own = own.get(&file).unwrap_or(&nothing);
        let mut known = Vec::new();
        for (part, is_written) in self.job.written[file as usize].split(offset..offset + bytes) {
            if !is_written {
                known.push((part.clone(), part.start));
                continue;
            }
            known.extend(own.within(&part).map(|part| (part.clone(), source(file, part.start))));
        }
        let chunks = known.iter().map(|(part, from)| Chunk {
            file_offset: *from,
            memory_offset: at + (part.start - offset),
            bytes: part.end - part.start,
        });
        match self.member.contents.first_wrong(memory, chunks) {
            None => Ok(()),
            Some(chunk) => Err(self.wrong(file, chunk.memory_offset - at + offset, chunk.bytes)),
        }
    }

    fn name(&self, file: u32) -> &str {
        &self.job.log.files()[file as usize].name
    }

    fn wrong(&self, file: u32, offset: u64, bytes: u64) -> Error {
        Error::WrongData(format!("{}: the {bytes} bytes from {offset} on", self.name(file)))
    }

    /// Checks the contents of all written files. Only one member checks.
    pub(crate) async fn check(&self) -> Result<(), Error> {
        if self.member.rank() != 0 {
            return Ok(());
        }
        for (index, file) in (0..).zip(self.job.log.files()).filter(|(_, file)| file.is_written) {
            let opened = self.member.open_written(&self.job.files[index as usize]).await?;
            for (part, is_written) in self.job.written[index as usize].split(0..file.end) {
                for extent in pieces(part, is_written) {
                    self.check_piece(index, &opened, extent, is_written).await?;
                }
            }
        }
        Ok(())
    }

    async fn check_piece(
        &self,
        index: u32,
        file: &File<M>,
        Extent { offset, bytes }: Extent,
        is_written: bool,
    ) -> Result<(), Error> {
        let contents = self.member.contents;
        let memory = contents.memory(bytes);
        let found = file.read(offset, bytes, &memory, 0).await?;
        let is_right = match (is_written, self.job.log.files()[index as usize].is_read) {
            (true, _) => is_there(contents, &memory, source(index, offset)),
            (false, true) => is_there(contents, &memory, offset),
            (false, false) => memory.get(0, bytes) == Payload::zeros(bytes),
        };
        if found == bytes && is_right { Ok(()) } else { Err(self.wrong(index, offset, bytes)) }
    }
}

/// True if `memory` equals the contents from `from` on.
fn is_there(contents: Contents, memory: &Memory, from: u64) -> bool {
    let whole = Chunk { file_offset: from, memory_offset: 0, bytes: memory.len() };
    contents.first_wrong(memory, std::iter::once(whole)).is_none()
}

/// Number of bytes that are checked at once. The next constant is the number of bytes that are checked at each edge of
/// an unwritten range.
const CHECKED_BYTES: u64 = 1 << 20;
const EDGE_BYTES: u64 = 1 << 16;

/// Returns the ranges to check in a part of a file: the whole part if it is written, or the edges of a large unwritten
/// part.
fn pieces(part: Range<u64>, is_written: bool) -> Vec<Extent> {
    let bytes = part.end - part.start;
    if is_written || bytes <= 2 * EDGE_BYTES {
        let offsets = part.clone().step_by(CHECKED_BYTES as usize);
        return offsets.map(|offset| Extent::new(offset, CHECKED_BYTES).clip(part.end)).collect();
    }
    vec![Extent::new(part.start, EDGE_BYTES), Extent::new(part.end - EDGE_BYTES, EDGE_BYTES)]
}

/// Returns the number of copies of its collected data that a member holds. Two-phase I/O needs a second copy, in file
/// order.
fn copies(method: CollectiveMethod) -> u64 {
    match method {
        CollectiveMethod::DiskDirected { .. } => 1,
        CollectiveMethod::TwoPhase => 2,
    }
}

/// Returns the memory in bytes that the transfers of a node need at the same time. Calls with selections allocate their
/// memory separately.
fn memory_bytes(job: &ReplayJob, moves: impl Iterator<Item = LoggedMove>) -> u64 {
    let (largest, all) = moves.fold((0, 0), |(largest, all): (u64, u64), moved| {
        (largest.max(moved.bytes), all.saturating_add(moved.bytes))
    });
    match job.access {
        ReplayAccess::Batches { bytes, .. } => bytes.min(all).max(largest),
        _ => largest,
    }
}

fn stretches(batch: &[Request]) -> impl Iterator<Item = (&Request, Stretch)> {
    batch.iter().filter_map(|request| match request.action {
        Action::Move(_, stretch) => Some((request, stretch)),
        Action::Sync | Action::Call(_) => None,
    })
}

/// Schedule of a member's requests.
struct Clock {
    begin: Instant,
    think: Think,
    /// Time in the log at which the replay starts. The next field is the end of the previous request in the log.
    start: Duration,
    ended: Duration,
}

impl Clock {
    fn start(begin: Instant, start: Duration, think: Think) -> Self {
        Clock { begin, think, start, ended: start }
    }

    /// Waits until the scheduled start of a request.
    async fn think<M: Machine>(&mut self, machine: &M, request: &Request) {
        let until = match self.think {
            Think::None => return,
            Think::Times => self.begin + (request.time - self.start),
            Think::Gaps => {
                let gap = request.time.as_nanos().saturating_sub(self.ended.as_nanos());
                self.ended = request.time + request.took;
                machine.now() + Duration::from_nanos(gap)
            }
        };
        if until > machine.now() {
            machine.sleep_until(until).await;
        }
    }
}

impl fmt::Display for ReplayJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = match self.access {
            ReplayAccess::Requests => "traditional",
            ReplayAccess::Cached(_) => "cached traditional",
            ReplayAccess::Batches { method, .. } | ReplayAccess::Calls { method, .. } => match method {
                CollectiveMethod::DiskDirected { .. } => "disk-directed",
                CollectiveMethod::TwoPhase => "two-phase",
            },
            ReplayAccess::WriteCached(_) => "write-cached",
        };
        write!(f, "{method} replay of {} nodes", self.log.nodes().len())
    }
}
