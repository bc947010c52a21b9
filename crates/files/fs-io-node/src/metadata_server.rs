//! The namespace of the set, if this node is the metadata server.
//!
//! - Each operation is one transaction of the node's metadata store.
//! - A client with a file open holds it (`open_refs.rs`): an unlinked file is not reported as an orphan while a
//!   client holds it. After a restart of the node clients report their holds again. So for [`GRACE`] only
//!   files created since the start are reported as orphans.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::BTreeMap;

use layout::Striping;
use machine::{Duration, Instant, Machine, Message, MetadataStore, NodeId, Transaction};
use namespace::{
    FileNumber, Inode, Location, NewInode, Performed, RemovalTarget, TreeAnswer, TreeOperation, TreeRefusal,
    WrittenContents, perform,
};

use super::client_account::Account;
use super::locks::LockTable;
use super::open_refs::{GRACE, OpenRefs};
use crate::error::{Failure, FailureKind};
use crate::protocol::{FileId, HELD_MAX, LockAnswer, LockChange, LockStep, OpenCount, OpenFor, Reply};

/// The metadata server of a set.
pub(super) struct MetadataServer<M> {
    machine: M,
    /// The incarnation of the node.
    incarnation: u64,
    open: OpenFiles,
    pub(super) locks: LockTable,
}

/// Files that clients have open, and files that have lost their last name.
struct OpenFiles {
    began: Instant,
    /// Time at which all holders of files in an earlier incarnation have reported their holds.
    grace_ends: Cell<Instant>,
    holds: OpenRefs,
    orphans_here: RefCell<OrphansHere>,
}

/// Files that have lost their last name since the node started, under one incarnation of its store. Under
/// another incarnation they may have names again.
#[derive(Default)]
struct OrphansHere {
    run: u64,
    /// For each file, the time at which all its holders have reported their holds.
    files: BTreeMap<FileNumber, Instant>,
}

impl OpenFiles {
    fn new(began: Instant) -> Self {
        let (holds, orphans_here) = (OpenRefs::default(), RefCell::default());
        OpenFiles { began, grace_ends: Cell::new(began + GRACE), holds, orphans_here }
    }

    /// Records that this incarnation created the namespace: no client can hold a file from an earlier one.
    fn note_beginning(&self) {
        self.grace_ends.set(self.began);
    }

    /// Returns the files that have lost their last name since the node started, under this incarnation of the
    /// store.
    fn orphans_here(&self, run: u64) -> RefMut<'_, BTreeMap<FileNumber, Instant>> {
        let mut orphans = self.orphans_here.borrow_mut();
        if orphans.run != run {
            *orphans = OrphansHere { run, files: BTreeMap::new() };
        }
        RefMut::map(orphans, |orphans| &mut orphans.files)
    }

    /// True if no client can need a file any more that has no names under this incarnation of the store.
    fn is_free(&self, number: FileNumber, run: u64, now: Instant) -> bool {
        let holders_known = self.orphans_here(run).get(&number).copied();
        !self.may_be_open(number, holders_known.unwrap_or(self.grace_ends.get()), now)
    }

    /// True if a client may have a file open, given that all its holders have reported at `holders_known`.
    fn may_be_open(&self, number: FileNumber, holders_known: Instant, now: Instant) -> bool {
        self.holds.is_held(number) || now < holders_known
    }

    /// Returns the time at which all holders of a file of this age have reported: the start of the node if
    /// the file was created since. A file with a creation date in the future may be of any age, since the
    /// clock was set back.
    fn holders_known(&self, age: Option<Duration>, now: Instant) -> Instant {
        let is_made_since = age.is_some_and(|age| age <= now.since(self.began));
        if is_made_since { self.began } else { self.grace_ends.get() }
    }
}

impl<M: Machine> MetadataServer<M> {
    pub(super) fn new(machine: M, incarnation: u64) -> Self {
        let began = machine.now();
        MetadataServer { machine, incarnation, open: OpenFiles::new(began), locks: LockTable::new(began) }
    }

    /// Handles the disconnect of a client. Its locks end with its lease.
    pub(super) fn client_disconnected(&self, client: NodeId) {
        self.locks.end_leases(self.machine.now());
        self.open.holds.client_disconnected(client);
    }

    /// Performs an operation on names for a client.
    pub(super) async fn perform(
        &self,
        client: NodeId,
        account: &Account,
        mut operation: TreeOperation,
        hold: Option<OpenFor>,
    ) -> Result<Reply, Box<Failure>> {
        bound(&mut operation)?;
        if let TreeOperation::Remove { at, what: RemovalTarget::AbandonedFile } = &operation
            && self.may_be_open(at.clone()).await?
        {
            return Ok(Reply::Refused(TreeRefusal::Busy));
        }
        if let TreeOperation::ListOrphans { after, most } = operation {
            return self.list_free(after, most).await;
        }
        let begins = matches!(operation, TreeOperation::Begin { .. });
        let (Performed { mut answer, directories }, run) = match self.transact(operation).await? {
            Ok(done) => done,
            Err(refusal) => return Ok(Reply::Refused(refusal)),
        };
        if begins {
            self.open.note_beginning();
            self.locks.note_beginning();
        }
        if let TreeAnswer::Forgotten(forgotten) = &answer {
            // Only after the transaction: without its entry here, a client might be allowed to open a file
            // that is being removed.
            let mut orphans = self.open.orphans_here(run);
            for number in forgotten {
                orphans.remove(number);
            }
        }
        if let TreeAnswer::Removed { orphan } = &mut answer
            && let Some(number) = *orphan
        {
            let holders_known = self.holders_known(number).await;
            self.open.orphans_here(run).insert(number, holders_known);
            *orphan = Some(number).filter(|_| self.open.is_free(number, run, self.machine.now()));
        }
        let mut has_other_writers = false;
        if let (Some(used), TreeAnswer::Inode(inode)) = (hold, &answer) {
            machine::sometimes!("a client disconnects during its open", if account.is_over());
            // The client's holds were removed when it disconnected.
            account.check()?;
            if let Some(refusal) = self.hold(client, inode, used, run) {
                return Ok(Reply::Refused(refusal));
            }
            has_other_writers = self.open.holds.has_other_writers(client, inode.number);
        }
        Ok(Reply::Tree { answer: answer.into(), directories, run, has_other_writers })
    }

    /// Returns the first orphans after this file, at most `most`, that no client can need any more. The
    /// answer is empty only at the end, even if many files before it are held.
    async fn list_free(&self, mut after: FileNumber, most: u32) -> Result<Reply, Box<Failure>> {
        loop {
            let (Performed { mut answer, directories }, run) =
                match self.transact(TreeOperation::ListOrphans { after, most }).await? {
                    Ok(done) => done,
                    Err(refusal) => return Ok(Reply::Refused(refusal)),
                };
            if let TreeAnswer::Numbers(numbers) = &mut answer
                && let Some(&(last, _)) = numbers.last()
            {
                let now = self.machine.now();
                numbers.retain(|&(number, _)| self.open.is_free(number, run, now));
                if numbers.is_empty() {
                    after = last;
                    continue;
                }
            }
            return Ok(tree_reply(answer, directories, run));
        }
    }

    /// Returns true if the metadata store lists orphans that no client has open; false if the lookup fails.
    pub(super) async fn has_removed_files(&self) -> bool {
        match self.list_free(FileNumber(0), NUMBERS_MAX).await {
            Ok(Reply::Tree { answer, .. }) => {
                matches!(*answer, TreeAnswer::Numbers(numbers) if !numbers.is_empty())
            }
            _ => false,
        }
    }

    /// True if a client may have the file of this name open; false if the file is missing.
    async fn may_be_open(&self, at: Location) -> Result<bool, Box<Failure>> {
        let look = self.transact(TreeOperation::Look { at, follow: false }).await?;
        let Ok((Performed { answer: TreeAnswer::Inode(inode), .. }, _)) = look else {
            return Ok(false);
        };
        let now = self.machine.now();
        Ok(self.open.may_be_open(inode.number, self.open.holders_known(self.age(&inode), now), now))
    }

    /// Returns the time at which all holders of a file have reported.
    async fn holders_known(&self, number: FileNumber) -> Instant {
        let grace_ends = self.open.grace_ends.get();
        if self.machine.now() >= grace_ends {
            return grace_ends;
        }
        match self.transact(TreeOperation::Get { number }).await {
            Ok(Ok((Performed { answer: TreeAnswer::Inode(inode), .. }, _))) => {
                self.open.holders_known(self.age(&inode), self.machine.now())
            }
            _ => grace_ends,
        }
    }

    /// Returns the age of a file; `None` if its creation date is in the future.
    fn age(&self, inode: &Inode) -> Option<Duration> {
        let age = (self.machine.date().as_nanos() as i64).checked_sub(inode.made)?;
        u64::try_from(age).ok().map(Duration::from_nanos)
    }

    /// Performs an operation. Returns its result with the incarnation of the store.
    ///
    /// File numbers and versions also depend on the incarnation of this node: while the node is down, an
    /// operator may restore names from a backup, which the store does not notice. Both incarnations are
    /// random, so their sum changes if either of them does.
    async fn transact(
        &self,
        operation: TreeOperation,
    ) -> Result<Result<(Performed, u64), TreeRefusal>, Box<Failure>> {
        let Some(store) = self.machine.metadata() else {
            return Ok(Err(TreeRefusal::NoNamespace));
        };
        let (now, incarnation) = (self.machine.date().as_nanos() as i64, self.incarnation);
        let _span = self.machine.notes().span(operation.name(), || []);
        let reads_little = operation.reads_little();
        let body = move |transaction: &mut dyn Transaction| {
            let run = transaction.run();
            let performed = perform(transaction, &operation, now, incarnation.wrapping_add(run))?;
            Ok(performed.map(|performed| (performed, run)))
        };
        let done = if reads_little { store.look(body).await } else { store.transact(body).await };
        done.map_err(failed)
    }

    /// Adds a hold of the client on the file in its answer. Returns the reason if that fails.
    fn hold(&self, client: NodeId, inode: &Inode, used: OpenFor, run: u64) -> Option<TreeRefusal> {
        let Inode { number, links, .. } = inode;
        if *links == 0 && self.open.is_free(*number, run, self.machine.now()) {
            machine::sometimes!("an open finds a removed file");
            // Another client may be removing its contents right now.
            return Some(TreeRefusal::Removed);
        }
        (!self.open.holds.hold(client, *number, used)).then_some(TreeRefusal::Busy)
    }

    /// Handles a client's close of a file. If this was the last one and the file has no names, the answer
    /// permits the removal of its contents.
    pub(super) fn close_file(&self, client: NodeId, number: FileNumber, used: OpenFor) -> Reply {
        let run = self.machine.metadata().map_or(0, MetadataStore::run);
        let orphan = self.orphaned_by_closing(client, number, used, run);
        tree_reply(TreeAnswer::Removed { orphan }, Vec::new(), run)
    }

    /// Handles a client's close of a file, after the client has written to it.
    pub(super) async fn close_written(
        &self,
        client: NodeId,
        number: FileNumber,
        used: OpenFor,
        written: WrittenContents,
    ) -> Result<Reply, Box<Failure>> {
        let wrote = self.transact(TreeOperation::Wrote { number, written }).await;
        // The file is closed even if reporting the writes fails; the failure is returned below.
        let run = self.machine.metadata().map_or(0, MetadataStore::run);
        let orphan = self.orphaned_by_closing(client, number, used, run);
        Ok(match wrote? {
            Err(refusal) => Reply::Refused(refusal),
            Ok((_, run)) if orphan.is_some() => tree_reply(TreeAnswer::Removed { orphan }, Vec::new(), run),
            Ok((performed, run)) => tree_reply(performed.answer, performed.directories, run),
        })
    }

    fn orphaned_by_closing(
        &self,
        client: NodeId,
        number: FileNumber,
        used: OpenFor,
        run: u64,
    ) -> Option<FileNumber> {
        self.open.holds.release(client, number, used);
        let is_orphan = self.open.orphans_here(run).contains_key(&number);
        let is_removable = is_orphan && self.open.is_free(number, run, self.machine.now());
        machine::sometimes!("the last close makes an orphan removable", if is_removable);
        Some(number).filter(|_| is_removable)
    }

    /// Restores the holds of a client that has reconnected. Skips files that do not exist.
    pub(super) async fn reclaim_open_files(
        &self,
        client: NodeId,
        account: &Account,
        files: &[(FileNumber, OpenCount)],
    ) -> Result<Reply, Box<Failure>> {
        let too_many = || Failure::invalid("too many open files: in one request, or held by one client");
        if files.len() > HELD_MAX {
            return Err(too_many().into());
        }
        for &(number, count) in files {
            let is_known = self.inode(number).await?.is_some();
            machine::sometimes!("a client reclaims a file that no longer exists", if !is_known);
            if is_known {
                account.check()?;
                if !self.open.holds.reclaim(client, number, count) {
                    return Err(too_many().into());
                }
            }
        }
        Ok(Reply::Done)
    }

    /// Returns the inode of a number, if this node keeps a namespace with that inode.
    async fn inode(&self, number: FileNumber) -> Result<Option<Inode>, Box<Failure>> {
        match self.transact(TreeOperation::Get { number }).await? {
            Ok((Performed { answer: TreeAnswer::Inode(inode), .. }, _)) => Ok(Some(inode)),
            _ => Ok(None),
        }
    }

    /// Fails if one of these files is in use in the namespace of this node: it has a name, or is open.
    pub(super) async fn check_unused(&self, files: &[FileId]) -> Result<(), Box<Failure>> {
        for number in files.iter().map(|file| FileNumber(file.0)) {
            let Some(inode) = self.inode(number).await? else { continue };
            if inode.links > 0 || self.open.holds.is_held(number) {
                let text = format!(
                    "cannot remove the contents of file {:016x}: it has a name, or is open; remove its names",
                    number.0
                );
                return Err(Failure::invalid(text).into());
            }
        }
        Ok(())
    }

    /// Returns the origin of the file numbers of this node's namespace, if it keeps one.
    pub(super) async fn origin(&self) -> Result<Option<u64>, Box<Failure>> {
        match self.transact(TreeOperation::Describe).await? {
            Ok((Performed { answer: TreeAnswer::Used(used), .. }, _)) => Ok(Some(used.origin)),
            _ => Ok(None),
        }
    }

    /// Serves a request for a lock on a file that the client has open.
    pub(super) fn lock(&self, client: NodeId, lease: u64, change: LockChange) -> Result<Reply, Box<Failure>> {
        if change.range.first > change.range.last {
            return Err(Failure::invalid("a lock on bytes that end before they begin").into());
        }
        if !matches!(change.step, LockStep::Release) && !self.open.holds.has(client, change.number) {
            let text = format!("file {:016x} is not open at {client}, which locks it", change.number.0);
            return Err(Failure::new(FailureKind::NotOpen, text).into());
        }
        Ok(Reply::Lock(self.locks.serve(client, lease, &change, (self.incarnation, self.machine.now()))))
    }

    /// Renews a client's lease.
    pub(super) fn renew_lease(&self, client: NodeId, lease: u64) -> Reply {
        Reply::Lock(match self.locks.renew(client, lease, self.machine.now()) {
            true => LockAnswer::Done { lease },
            false => LockAnswer::Lost,
        })
    }

    /// Flushes the namespace to stable storage.
    pub(super) async fn flush_tree(&self) -> Result<Reply, Box<Failure>> {
        let Some(store) = self.machine.metadata() else { return Ok(Reply::Accepted { run: 0 }) };
        let _span = self.machine.notes().span("metadata flush", || []);
        store.flush().await.map_err(failed)?;
        Ok(Reply::Accepted { run: store.run() })
    }
}

/// Limit of bytes of entries or records in one answer: with the other fields it fits in a header.
const LISTED_BYTES_MAX: u32 = 32 << 10;

/// Limit of file numbers in one answer.
const NUMBERS_MAX: u32 = 1024;

/// Limits the size of the answer to an operation. Fails for a file with blocks too large for a message.
fn bound(operation: &mut TreeOperation) -> Result<(), Box<Failure>> {
    match operation {
        TreeOperation::List { bytes_max, .. } | TreeOperation::Survey { bytes_max, .. } => {
            *bytes_max = LISTED_BYTES_MAX.min(*bytes_max);
        }
        TreeOperation::ListOrphans { most, .. } => *most = NUMBERS_MAX.min(*most),
        TreeOperation::Make { new, .. } => {
            let striping = match new {
                NewInode::File { striping, .. } | NewInode::UnfinishedFile { striping, .. } => {
                    Some(*striping)
                }
                NewInode::PlacedFile(layout) => Some(layout.striping),
                _ => None,
            };
            let bytes = striping.map_or(0, |striping: Striping| striping.block_bytes());
            if bytes > Message::PAYLOAD_BYTES_MAX {
                let most = Message::PAYLOAD_BYTES_MAX;
                let text = format!("a file with blocks of {bytes} bytes: the limit of I/O nodes is {most}");
                return Err(Failure::new(FailureKind::BlockTooLarge, text).into());
            }
        }
        _ => {}
    }
    Ok(())
}

/// Returns an answer about names, with this incarnation of the store.
fn tree_reply(answer: TreeAnswer, directories: Vec<Inode>, run: u64) -> Reply {
    Reply::Tree { answer: answer.into(), directories, run, has_other_writers: false }
}

/// Converts a failure of the store. Damaged names get a separate kind, since their remedy differs from that
/// of damaged contents.
fn failed(error: Box<machine::Error>) -> Box<Failure> {
    let mut failure: Box<Failure> = error.into();
    if failure.kind == FailureKind::Damaged {
        failure.kind = FailureKind::NamesDamaged;
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_created_before_a_restart_may_be_open_for_a_minute() {
        let seconds = Duration::from_secs;
        let began = Instant::from_nanos(7);
        let files = OpenFiles::new(began);
        let may_be_open = |age: Option<u64>, up| {
            let now = began + seconds(up);
            files.may_be_open(FileNumber(1), files.holders_known(age.map(seconds), now), now)
        };
        assert!(may_be_open(Some(100), 10) && may_be_open(None, 10) && !may_be_open(Some(9), 10));
        assert!(!may_be_open(Some(100), 60) && !may_be_open(None, 60));
        assert!(files.holds.hold(NodeId(1), FileNumber(1), OpenFor::Reading));
        assert!(may_be_open(Some(9), 10) && may_be_open(Some(100), 60));
        files.holds.release(NodeId(1), FileNumber(1), OpenFor::Reading);
        assert!(!may_be_open(Some(9), 10));
    }
}
