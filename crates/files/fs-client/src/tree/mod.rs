//! The namespace at the client: requests to the metadata server, and files known by their numbers.
//!
//! - this file: finds the metadata server and sends requests.
//! - `open_refs.rs`: files that are open.
//! - `open_file.rs`: an open file, with close-to-open consistency among clients; `report_writes.rs`: reports writes
//!   that no caller flushes; `sync_together.rs`: flushes the writes of a team's members.
//! - `orphans.rs`: removes the contents of orphans.
//! - `changed_directories.rs`: directories as of this client's last change; `unflushed_names.rs`: its unflushed
//!   changes.
//! - `listing.rs`: lists the entries of directories, and all records; `prefetched_entries.rs`: entries prefetched for
//!   lookups.
//! - `locks.rs`: locks on files.

mod changed_directories;
mod listing;
mod locks;
mod open_file;
mod open_refs;
mod orphans;
mod prefetched_entries;
mod report_writes;
mod sync_together;
mod unflushed_names;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use machine::{Condition, InFlight, Machine, NodeId, Payload};
use namespace::{FileNumber, Inode, Performed, TreeAnswer, TreeOperation, TreeRefusal, TreeUse};

use changed_directories::ChangedDirectories;
pub use listing::SomeEntries;
use locks::TreeLocks;
pub use open_file::OpenTreeFile;
use open_file::TreeFileState;
use open_refs::ClientOpenRefs;
use orphans::{OrphanFile, PartlyRemovedOrphans};
use prefetched_entries::{AffectedEntries, PrefetchedEntries};
use unflushed_names::{Change, UnflushedNames};

use super::deadline_timer::DeadlineTimer;
use super::{Client, PageCache, Partial, unexpected};
use crate::endpoint::Answer;
use crate::error::{Error, FailureKind, KeptNamespace, Result};
use crate::number;
use crate::protocol::{ListedStripe, OpenFor, Reply, Request};

/// The namespace of a set of I/O nodes, and its files through a page cache. A clone is another handle on the same
/// namespace.
///
/// A client that opens a file sees all writes that other clients closed or flushed before. A client sees its own writes
/// at once, through all of its handles.
pub struct Tree<M: Machine> {
    inner: Rc<TreeInner<M>>,
}

impl<M: Machine> Clone for Tree<M> {
    fn clone(&self) -> Self {
        Tree { inner: self.inner.clone() }
    }
}

struct TreeInner<M: Machine> {
    cache: PageCache<M>,
    /// The metadata server's node.
    metadata_server: NodeId,
    holds: ClientOpenRefs,
    disk_lists: RefCell<BTreeMap<u32, Rc<[u64]>>>,
    states: RefCell<BTreeMap<FileNumber, Rc<TreeFileState>>>,
    /// Timer for writes to publish.
    unpublished: DeadlineTimer,
    /// Orphans whose contents are to be removed, and the task that removes them.
    orphans: RefCell<Vec<OrphanFile>>,
    removing: InFlight,
    /// Orphans that remain because some of their disks are missing.
    partly_gone: RefCell<PartlyRemovedOrphans>,
    /// Callers that wait for the removal, and the signal that ends the gathering of a batch for them.
    awaited: InFlight,
    hurry: Condition,
    changed_directories: ChangedDirectories,
    prefetched_entries: PrefetchedEntries,
    unflushed_names: UnflushedNames,
    locks: TreeLocks,
}

/// Parameters of a new namespace.
#[derive(Clone, Copy, Debug)]
pub struct NewTree {
    /// Random identity.
    pub origin: u64,
    /// Mode of the root.
    pub mode: u16,
    /// User of the root.
    pub uid: u32,
    /// Group of the root.
    pub gid: u32,
}

impl<M: Machine> Tree<M> {
    /// Finds the namespace of the set behind a page cache; returns `None` if the set has none. A failed I/O node does
    /// not prevent queries to the others.
    ///
    /// # Errors
    /// Fails if several I/O nodes keep a namespace. Fails with the failure of an I/O node that may keep it, if disks
    /// are marked as disks of a namespace.
    pub async fn find(cache: &PageCache<M>) -> Result<Option<Tree<M>>> {
        match Tree::look_for(cache).await? {
            Partial { found: None, failures } if !failures.is_empty() => {
                let failure = failures.into_iter().next().expect("there is one");
                let checked = Tree::check_none(cache.client()).await;
                checked.map(|()| None).map_err(|_| failure.into())
            }
            Partial { found, .. } => Ok(found),
        }
    }

    /// Looks for the namespace at all I/O nodes.
    async fn look_for(cache: &PageCache<M>) -> Result<Partial<Option<Tree<M>>>> {
        let (mut found, mut failures) = (Vec::new(), Vec::new());
        for (node, answer) in cache.client().ask_all(|_| Some(ask(TreeOperation::Describe))).await {
            let answer = answer.and_then(|(reply, _)| answered(node, reply));
            match answer.map(|(performed, _)| performed.answer) {
                Ok(TreeAnswer::Used(used)) => found.push((node, used)),
                Err(error) if error.is_refused(TreeRefusal::NoNamespace) => {}
                Err(error) => failures.push(*error),
                Ok(_) => failures.push(*unexpected(node)),
            }
        }
        match &*found {
            [] => Ok(Partial { found: None, failures }),
            [(metadata_server, _)] => {
                Ok(Partial { found: Some(Tree::kept_by(cache, *metadata_server)), failures })
            }
            _ => Err(too_many(cache, found).await?),
        }
    }

    /// Finds the namespace, or creates one.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find), [`check_none`](Self::check_none) and [`begin`](Self::begin) do.
    pub async fn find_or_begin(cache: &PageCache<M>, new: NewTree) -> Result<Tree<M>> {
        let found = Tree::look_for(cache).await?;
        if let Some(tree) = found.found {
            return Ok(tree);
        }
        if let Some(failure) = found.failures.into_iter().next() {
            return Err(failure.into());
        }
        if let Err(error) = Tree::check_none(cache.client()).await {
            // Another client may have created the namespace and files since.
            return Tree::find(cache).await?.ok_or(error);
        }
        Tree::begin(cache, new).await
    }

    /// Checks that a set has no namespace if none of its I/O nodes keeps one. The check covers the disks that do not
    /// fail: all disks of a set are marked when its namespace is created. Stripes on unmarked disks are left over from
    /// benchmarks.
    ///
    /// # Errors
    /// Fails with [`Error::NoMetadataServer`] if disks are marked: an I/O node that was not asked keeps the namespace,
    /// or it is lost.
    pub async fn check_none(client: &Client<M>) -> Result<()> {
        let stripes = client.list_numbered_and_marks().await.found;
        let is_mark = |stripe: &ListedStripe| stripe.file == number::MARK;
        let Some(&(node, _)) = stripes.iter().find(|(_, stripe)| is_mark(stripe)) else { return Ok(()) };
        let files: BTreeSet<_> =
            stripes.iter().filter(|(_, stripe)| !is_mark(stripe)).map(|(_, stripe)| stripe.file).collect();
        Err(Error::NoMetadataServer { node, files: files.len() }.into())
    }

    /// Creates a namespace where none exists, even if the disks have files of a lost one.
    ///
    /// # Errors
    /// Fails if the I/O node chosen for it has no storage for a namespace.
    pub async fn begin(cache: &PageCache<M>, new: NewTree) -> Result<Tree<M>> {
        // All clients choose the same node, in whatever order they list the nodes.
        let metadata_server = first_node(cache).await?;
        let NewTree { origin, mode, uid, gid } = new;
        let begin = ask(TreeOperation::Begin { origin, mode, uid, gid });
        let (reply, _) = cache.client().inner.endpoint.call(metadata_server, begin, Payload::empty()).await?;
        match answered(metadata_server, reply) {
            Err(error) if error.is_refused(TreeRefusal::NoNamespace) => {
                Err(Error::Invalid(format!("{metadata_server} has no metadata store")).into())
            }
            // Another client has created it since.
            Err(error) if error.is_refused(TreeRefusal::HasNamespace) => found(cache).await,
            Err(error) => Err(error),
            Ok(_) => {
                let tree = found(cache).await?;
                tree.take_disks().await?;
                Ok(tree)
            }
        }
    }

    /// Checks that no disk belongs to another namespace, as far as I/O nodes answer and disks are marked. Marks
    /// unmarked disks as disks of this one.
    ///
    /// # Errors
    /// Fails with [`FailureKind::OtherNamespace`] of the I/O node that has a disk of another namespace, or if the
    /// metadata server does not answer.
    pub async fn check_disks(&self) -> Result<()> {
        let answers = self.mark_disks(false).await?;
        // Ignore other errors: disks that cannot be marked now are marked the next time.
        let refused = answers.into_iter().filter_map(|(_, answer)| answer.err());
        match refused.into_iter().find(|error| error.is_remote(FailureKind::OtherNamespace)) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Marks all disks as disks of this namespace, including those marked by another one.
    ///
    /// # Errors
    /// Fails if an I/O node does not mark its disks, or the metadata server does not answer.
    pub async fn take_disks(&self) -> Result<()> {
        for (_, marked) in self.mark_disks(true).await? {
            marked?;
        }
        Ok(())
    }

    async fn mark_disks(&self, anew: bool) -> Result<Vec<(NodeId, Answer)>> {
        let TreeAnswer::Used(used) = self.perform(TreeOperation::Describe).await? else {
            return Err(unexpected(self.inner.metadata_server));
        };
        let request = Request::MarkDisks { origin: used.origin, anew };
        Ok(self.inner.cache.client().ask_all(|_| Some(request.clone())).await)
    }

    fn kept_by(cache: &PageCache<M>, metadata_server: NodeId) -> Tree<M> {
        Tree {
            inner: Rc::new(TreeInner {
                cache: cache.clone(),
                metadata_server,
                holds: ClientOpenRefs::new(cache.client().disconnects_of(metadata_server)),
                disk_lists: RefCell::default(),
                states: RefCell::default(),
                unpublished: DeadlineTimer::default(),
                orphans: RefCell::default(),
                removing: InFlight::new(),
                partly_gone: RefCell::default(),
                awaited: InFlight::new(),
                hurry: Condition::new(),
                changed_directories: ChangedDirectories::default(),
                prefetched_entries: PrefetchedEntries::default(),
                unflushed_names: UnflushedNames::default(),
                locks: TreeLocks::default(),
            }),
        }
    }

    /// Returns the metadata server's node.
    pub fn metadata_server(&self) -> NodeId {
        self.inner.metadata_server
    }

    /// Returns the page cache through which files are read and written.
    pub fn cache(&self) -> &PageCache<M> {
        &self.inner.cache
    }

    /// Returns the number of disconnects of the metadata server.
    fn disconnects(&self) -> u64 {
        self.inner.cache.client().disconnects_of(self.inner.metadata_server)
    }

    pub(super) fn machine(&self) -> &M {
        self.inner.cache.client().inner.endpoint.machine()
    }

    /// Performs an operation.
    ///
    /// Retries a repeatable operation once if the metadata server disconnected. The outcome of any other operation is
    /// then unknown.
    ///
    /// # Errors
    /// Fails with [`Error::Refused`], which has the reason, if the operation was not performed.
    pub async fn perform(&self, operation: TreeOperation) -> Result<TreeAnswer> {
        self.ask(operation, None).await.map(|(answer, _)| answer)
    }

    /// Performs an operation, and opens the file in its answer for the use `hold`, if given. Returns the answer, and
    /// true if other clients have that file open for writing.
    async fn ask(&self, operation: TreeOperation, hold: Option<OpenFor>) -> Result<(TreeAnswer, bool)> {
        let Err(refusal) = self.check_new(&operation) else { return self.ask_checked(operation, hold).await };
        let TreeOperation::Make { at, exclusive: false, .. } = operation else { return Err(refusal) };
        // An existing file keeps its striping, so the refusal applies only to a new one.
        let there = self.ask_checked(TreeOperation::Look { at, follow: true }, hold).await;
        there.map_err(|error| match *error {
            Error::Refused(TreeRefusal::NotFound) => refusal,
            _ => error,
        })
    }

    /// Fails for a new file that no client could open: the metadata server does not know the limit of block sizes.
    fn check_new(&self, operation: &TreeOperation) -> Result<()> {
        let TreeOperation::Make { at, new, .. } = operation else { return Ok(()) };
        let name = String::from_utf8_lossy(&at.path);
        new.striping().map_or(Ok(()), |striping| self.inner.cache.client().check_blocks(&name, striping))
    }

    async fn ask_checked(
        &self,
        operation: TreeOperation,
        hold: Option<OpenFor>,
    ) -> Result<(TreeAnswer, bool)> {
        self.reclaim_open_files().await?;
        let again = operation.may_be_repeated().then(|| operation.clone());
        let outcome = self.ask_once(operation, hold).await;
        match (outcome, again) {
            (Err(error), Some(operation)) if error.is_restart() => {
                machine::sometimes!("an operation on names is repeated after a disconnect");
                self.reclaim_open_files().await?;
                self.ask_once(operation, hold).await
            }
            (outcome, _) => outcome,
        }
    }

    async fn ask_once(&self, operation: TreeOperation, hold: Option<OpenFor>) -> Result<(TreeAnswer, bool)> {
        operation.check_lengths()?;
        let _asked = hold.map(|_| self.inner.holds.asked.begin());
        self.call(Request::Tree { operation: operation.into(), hold }).await
    }

    async fn call(&self, request: Request) -> Result<(TreeAnswer, bool)> {
        let metadata_server = self.inner.metadata_server;
        let endpoint = &self.inner.cache.client().inner.endpoint;
        let (asked, change, touched) =
            (self.machine().now(), Change::by(&request), AffectedEntries::by(&request));
        let called = endpoint.call(metadata_server, request, Payload::empty()).await;
        if let Some(touched) = touched {
            // Also after a failure, since the operation may have been performed.
            self.inner.prefetched_entries.forget(&touched);
        }
        let (reply, _) = called?;
        let has_other_writers = matches!(reply, Reply::Tree { has_other_writers: true, .. });
        let (Performed { answer, directories }, run) = answered(metadata_server, reply)?;
        self.note_change(change, &answer, &directories, run);
        self.inner.changed_directories.note(directories, asked);
        Ok((answer, has_other_writers))
    }

    /// Performs an operation whose answer is an inode.
    ///
    /// # Errors
    /// Fails as [`perform`](Self::perform) does.
    pub async fn inode(&self, operation: TreeOperation) -> Result<Inode> {
        self.perform(operation).await.and_then(|answer| self.inode_of(answer))
    }

    fn inode_of(&self, answer: TreeAnswer) -> Result<Inode> {
        match answer {
            TreeAnswer::Inode(inode) => Ok(inode),
            _ => Err(unexpected(self.inner.metadata_server)),
        }
    }

    /// Flushes this client's sent writes and all changes to names to stable storage. In a two-phase write, another
    /// member of the team may have sent data of this client: a collective sync flushes those.
    ///
    /// # Errors
    /// Fails with the first failure, after all I/O nodes have flushed as much as they can. A write that failed earlier
    /// and that no handle has reported is a failure, too; the handles still report it.
    pub async fn sync(&self) -> Result<()> {
        let cache = &self.inner.cache;
        let before = cache.failures();
        // Wait for removals first: removed contents need no flush, and must not make it fail.
        self.contents_removed().await;
        let contents = cache.client().flush_own().await;
        let names = self.flush().await;
        contents.and(cache.check_failures(before).await).and(names)
    }

    /// Returns the disks of a list, by their identities.
    async fn disk_list(&self, list: u32) -> Result<Rc<[u64]>> {
        if let Some(known) = self.inner.disk_lists.borrow().get(&list) {
            return Ok(known.clone());
        }
        match self.perform(TreeOperation::ReadDisks { list }).await? {
            TreeAnswer::Disks(disks) => {
                let disks: Rc<[u64]> = disks.into();
                self.inner.disk_lists.borrow_mut().insert(list, disks.clone());
                Ok(disks)
            }
            _ => Err(unexpected(self.inner.metadata_server)),
        }
    }

    /// Returns the number of the list of all disks of the set, in the order of its nodes.
    ///
    /// # Errors
    /// Fails if an I/O node does not report its disks.
    pub async fn all_disks(&self) -> Result<u32> {
        let disks = all_disks(self.inner.cache.client()).await?;
        let known = self
            .inner
            .disk_lists
            .borrow()
            .iter()
            .find(|(_, list)| list[..] == disks[..])
            .map(|(list, _)| *list);
        if let Some(list) = known {
            return Ok(list);
        }
        // Some disks may be new, and none may belong to another namespace.
        self.check_disks().await?;
        match self.perform(TreeOperation::EnterDisks { disks: disks.clone() }).await? {
            TreeAnswer::Number(list) => {
                self.inner.disk_lists.borrow_mut().insert(list, disks.into());
                Ok(list)
            }
            _ => Err(unexpected(self.inner.metadata_server)),
        }
    }
}

/// Returns the I/O node whose first disk has the smallest identity.
async fn first_node<M: Machine>(cache: &PageCache<M>) -> Result<NodeId> {
    let disks = cache.client().disks_by_identity().await?;
    let first = disks.values().find(|(_, index)| *index == 0).map(|(node, _)| *node);
    first.ok_or_else(|| Error::Invalid("no I/O node has a disk".into()).into())
}

/// Returns the identities of all disks, in the order of their I/O nodes.
async fn all_disks<M: Machine>(client: &Client<M>) -> Result<Vec<u64>> {
    let places = client.disks_by_identity().await?;
    let place_of_node = |node: NodeId| client.io_nodes().iter().position(|other| *other == node);
    let mut disks: Vec<_> =
        places.iter().map(|(identity, (node, index))| (place_of_node(*node), *index, *identity)).collect();
    disks.sort_unstable();
    Ok(disks.into_iter().map(|(_, _, identity)| identity).collect())
}

/// Returns an error that lists the namespaces of these nodes, oldest first.
async fn too_many<M: Machine>(cache: &PageCache<M>, found: Vec<(NodeId, TreeUse)>) -> Result<Box<Error>> {
    let mut kept = Vec::new();
    for (node, used) in found {
        let root = Tree::kept_by(cache, node).inode(TreeOperation::Get { number: FileNumber::ROOT }).await?;
        kept.push(KeptNamespace { node, inodes: used.inodes, begun: root.made });
    }
    kept.sort_by_key(|kept| kept.begun);
    Ok(Error::ManyNamespaces(kept).into())
}

async fn found<M: Machine>(cache: &PageCache<M>) -> Result<Tree<M>> {
    let found = Tree::find(cache).await?;
    found.ok_or_else(|| Error::Invalid("the new namespace is missing".into()).into())
}

fn ask(operation: TreeOperation) -> Request {
    Request::Tree { operation: operation.into(), hold: None }
}

/// Returns a node's answer to an operation, and the incarnation of its store.
fn answered(node: NodeId, reply: Reply) -> Result<(Performed, u64)> {
    match reply {
        Reply::Tree { answer, directories, run, .. } => Ok((Performed { answer: *answer, directories }, run)),
        Reply::Refused(refusal) => Err(refusal.into()),
        _ => Err(unexpected(node)),
    }
}
