//! The namespace at the client: asking the node that keeps it, and files known by their numbers.
//!
//! - this file: which node keeps it, asking
//! - `holds.rs`: files that are held while they are open
//! - `open_file.rs`: a file that is open, close-to-open with other clients; `publishing.rs`: writes that nobody
//!   flushes; `sync_together.rs`: what the members of a team have written, brought onto the media
//! - `doomed.rs`: the contents of files without names, which go
//! - `changed_directories.rs`: how directories were when this client changed them; `unflushed_names.rs`: what it has
//!   changed and not flushed
//! - `listing.rs`: the entries of directories, and all records; `prefetched_entries.rs`: entries that are prefetched
//!   for those who look them up
//! - `locks.rs`: locks on files

mod changed_directories;
mod doomed;
mod holds;
mod listing;
mod locks;
mod open_file;
mod prefetched_entries;
mod publishing;
mod sync_together;
mod unflushed_names;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use machine::{Condition, InFlight, Machine, NodeId, Payload};
use namespace::{FileNumber, Inode, Performed, TreeAnswer, TreeOperation, TreeRefusal, TreeUse};

use changed_directories::ChangedDirectories;
use doomed::{DoomedFile, PartlyGone};
use holds::TreeHolds;
pub use listing::SomeEntries;
use locks::TreeLocks;
pub use open_file::OpenTreeFile;
use open_file::TreeFileState;
use prefetched_entries::{PrefetchedEntries, Touched};
use unflushed_names::{Change, UnflushedNames};

use super::in_time::InTime;
use super::{Client, PageCache, Partial, unexpected};
use crate::endpoint::Answer;
use crate::error::{Error, FailureKind, KeptNamespace, Result};
use crate::number;
use crate::protocol::{ListedStripe, OpenFor, Reply, Request};

/// The namespace of a set of I/O nodes, and its files through a page cache. Cloning gives another handle on the same.
///
/// What a client has written and closed, or flushed, is seen by whoever opens the file after that. A client sees what
/// it has written itself at once, through all of its handles.
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
    /// The node that keeps the namespace.
    keeper: NodeId,
    holds: TreeHolds,
    disk_lists: RefCell<BTreeMap<u32, Rc<[u64]>>>,
    states: RefCell<BTreeMap<FileNumber, Rc<TreeFileState>>>,
    /// Writes that wait to be published.
    unpublished: InTime,
    /// Files without names whose contents are to be removed, and whether that is going on.
    doomed: RefCell<Vec<DoomedFile>>,
    removing: InFlight,
    /// Those that stay doomed, since some of their disks are not there.
    partly_gone: RefCell<PartlyGone>,
    /// Who waits until they are gone, and how those hear of it that gather more.
    awaited: InFlight,
    hurry: Condition,
    changed_directories: ChangedDirectories,
    prefetched_entries: PrefetchedEntries,
    unflushed_names: UnflushedNames,
    locks: TreeLocks,
}

/// What a new namespace begins with.
#[derive(Clone, Copy, Debug)]
pub struct NewTree {
    /// Drawn at random.
    pub origin: u64,
    /// The mode of the root.
    pub mode: u16,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

impl<M: Machine> Tree<M> {
    /// Finds the namespace of the set behind a page cache, if there is one. An I/O node that fails does not keep the
    /// others from being asked.
    ///
    /// # Errors
    /// If several I/O nodes keep one, or one that fails may keep it, since disks belong to one.
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

    /// Asks all I/O nodes whether they keep the namespace.
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
            [(keeper, _)] => Ok(Partial { found: Some(Tree::kept_by(cache, *keeper)), failures }),
            _ => Err(too_many(cache, found).await?),
        }
    }

    /// Finds the namespace, or begins one.
    ///
    /// # Errors
    /// As those of [`find`](Self::find), [`check_none`](Self::check_none) and [`begin`](Self::begin).
    pub async fn find_or_begin(cache: &PageCache<M>, new: NewTree) -> Result<Tree<M>> {
        let found = Tree::look_for(cache).await?;
        if let Some(tree) = found.found {
            return Ok(tree);
        }
        if let Some(failure) = found.failures.into_iter().next() {
            return Err(failure.into());
        }
        if let Err(error) = Tree::check_none(cache.client()).await {
            // Somebody may have begun it meanwhile, and made files.
            return Tree::find(cache).await?.ok_or(error);
        }
        Tree::begin(cache, new).await
    }

    /// Makes sure that a set has no namespace if none of its I/O nodes keeps one, as far as they have disks that do not
    /// fail: all disks of a set are marked when its namespace begins. Stripes on disks without a mark are left of
    /// measurements.
    ///
    /// # Errors
    /// [`Error::NoKeeper`] if disks are marked as those of one: an I/O node that is not asked keeps it, or it is lost.
    pub async fn check_none(client: &Client<M>) -> Result<()> {
        let stripes = client.list_numbered_and_marks().await.found;
        let is_mark = |stripe: &ListedStripe| stripe.file == number::MARK;
        let Some(&(node, _)) = stripes.iter().find(|(_, stripe)| is_mark(stripe)) else { return Ok(()) };
        let files: BTreeSet<_> =
            stripes.iter().filter(|(_, stripe)| !is_mark(stripe)).map(|(_, stripe)| stripe.file).collect();
        Err(Error::NoKeeper { node, files: files.len() }.into())
    }

    /// Begins a namespace where there is none, whatever the disks have of files of a lost one.
    ///
    /// # Errors
    /// If the I/O node that shall keep it has no place for it.
    pub async fn begin(cache: &PageCache<M>, new: NewTree) -> Result<Tree<M>> {
        // The same one for all clients, in whatever order they name the nodes.
        let keeper = first_node(cache).await?;
        let NewTree { origin, mode, uid, gid } = new;
        let begin = ask(TreeOperation::Begin { origin, mode, uid, gid });
        let (reply, _) = cache.client().inner.endpoint.call(keeper, begin, Payload::empty()).await?;
        match answered(keeper, reply) {
            Err(error) if error.is_refused(TreeRefusal::NoNamespace) => {
                Err(Error::Invalid(format!("{keeper} has no place for a namespace")).into())
            }
            // Somebody else has begun it meanwhile.
            Err(error) if error.is_refused(TreeRefusal::HasNamespace) => found(cache).await,
            Err(error) => Err(error),
            Ok(_) => {
                let tree = found(cache).await?;
                tree.take_disks().await?;
                Ok(tree)
            }
        }
    }

    /// Makes sure that no disk is one of another namespace, as far as I/O nodes answer and disks say so. Those that are
    /// of none become disks of this one.
    ///
    /// # Errors
    /// The failure of the I/O node that has one of another namespace ([`FailureKind::OtherNamespace`]), or of the one
    /// that keeps this namespace.
    pub async fn check_disks(&self) -> Result<()> {
        let answers = self.mark_disks(false).await?;
        // Those that cannot be marked now are so the next time.
        let refused = answers.into_iter().filter_map(|(_, answer)| answer.err());
        match refused.into_iter().find(|error| error.is_remote(FailureKind::OtherNamespace)) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Has all disks be those of this namespace, also those that another one has marked.
    ///
    /// # Errors
    /// If an I/O node does not mark its disks, or the one that keeps the namespace does not answer.
    pub async fn take_disks(&self) -> Result<()> {
        for (_, marked) in self.mark_disks(true).await? {
            marked?;
        }
        Ok(())
    }

    async fn mark_disks(&self, anew: bool) -> Result<Vec<(NodeId, Answer)>> {
        let TreeAnswer::Used(used) = self.perform(TreeOperation::Describe).await? else {
            return Err(unexpected(self.inner.keeper));
        };
        let request = Request::MarkDisks { origin: used.origin, anew };
        Ok(self.inner.cache.client().ask_all(|_| Some(request.clone())).await)
    }

    fn kept_by(cache: &PageCache<M>, keeper: NodeId) -> Tree<M> {
        Tree {
            inner: Rc::new(TreeInner {
                cache: cache.clone(),
                keeper,
                holds: TreeHolds::new(cache.client().disconnects_of(keeper)),
                disk_lists: RefCell::default(),
                states: RefCell::default(),
                unpublished: InTime::default(),
                doomed: RefCell::default(),
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

    /// The node that keeps the namespace.
    pub fn keeper(&self) -> NodeId {
        self.inner.keeper
    }

    /// The page cache through which files are read and written.
    pub fn cache(&self) -> &PageCache<M> {
        &self.inner.cache
    }

    /// How often the keeper was gone.
    fn disconnects(&self) -> u64 {
        self.inner.cache.client().disconnects_of(self.inner.keeper)
    }

    pub(super) fn machine(&self) -> &M {
        self.inner.cache.client().inner.endpoint.machine()
    }

    /// Has an operation performed.
    ///
    /// What can be repeated is asked once more if the keeper was gone meanwhile; of anything else nobody knows then
    /// whether it was done.
    ///
    /// # Errors
    /// [`Error::Refused`] says why it was not done.
    pub async fn perform(&self, operation: TreeOperation) -> Result<TreeAnswer> {
        self.ask(operation, None).await.map(|(answer, _)| answer)
    }

    /// Has an operation performed, and the file in the answer held. Returns the answer, and whether other clients have
    /// that file open for writing.
    async fn ask(&self, operation: TreeOperation, hold: Option<OpenFor>) -> Result<(TreeAnswer, bool)> {
        let Err(refusal) = self.check_new(&operation) else { return self.ask_checked(operation, hold).await };
        let TreeOperation::Make { at, exclusive: false, .. } = operation else { return Err(refusal) };
        // What is there lies as it does.
        let there = self.ask_checked(TreeOperation::Look { at, follow: true }, hold).await;
        there.map_err(|error| match *error {
            Error::Refused(TreeRefusal::NotFound) => refusal,
            _ => error,
        })
    }

    /// Refuses a file that could not be opened when it is made: the keeper does not know how large blocks can be.
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
        self.hold_again().await?;
        let again = operation.may_be_repeated().then(|| operation.clone());
        let outcome = self.ask_once(operation, hold).await;
        match (outcome, again) {
            (Err(error), Some(operation)) if error.is_of_new_start() => {
                self.hold_again().await?;
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
        let keeper = self.inner.keeper;
        let endpoint = &self.inner.cache.client().inner.endpoint;
        let (asked, change, touched) = (self.machine().now(), Change::by(&request), Touched::by(&request));
        let called = endpoint.call(keeper, request, Payload::empty()).await;
        if let Some(touched) = touched {
            // Also if nobody knows whether it was done.
            self.inner.prefetched_entries.forget(&touched);
        }
        let (reply, _) = called?;
        let has_other_writers = matches!(reply, Reply::Tree { has_other_writers: true, .. });
        let (Performed { answer, directories }, run) = answered(keeper, reply)?;
        self.note_change(change, &answer, &directories, run);
        self.inner.changed_directories.note(directories, asked);
        Ok((answer, has_other_writers))
    }

    /// Has an operation performed whose answer is an inode.
    ///
    /// # Errors
    /// As those of [`perform`](Self::perform).
    pub async fn inode(&self, operation: TreeOperation) -> Result<Inode> {
        self.perform(operation).await.and_then(|answer| self.inode_of(answer))
    }

    fn inode_of(&self, answer: TreeAnswer) -> Result<Inode> {
        match answer {
            TreeAnswer::Inode(inode) => Ok(inode),
            _ => Err(unexpected(self.inner.keeper)),
        }
    }

    /// Brings all that this client has written and closed onto the media, and all that has been done with names.
    ///
    /// # Errors
    /// If an I/O node cannot bring something of it there: the first failure, when all is done that can be.
    pub async fn sync(&self) -> Result<()> {
        // Nobody misses what was removed, though it could not be brought to a disk.
        self.contents_gone().await;
        let contents = self.inner.cache.client().flush_own().await;
        contents.and(self.flush().await)
    }

    /// The disks of a list, by their identities.
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
            _ => Err(unexpected(self.inner.keeper)),
        }
    }

    /// The number of the list of all disks of the set, in the order of its nodes.
    ///
    /// # Errors
    /// If an I/O node does not say which it has.
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
        // Some may be new, and none may be another namespace's.
        self.check_disks().await?;
        match self.perform(TreeOperation::EnterDisks { disks: disks.clone() }).await? {
            TreeAnswer::Number(list) => {
                self.inner.disk_lists.borrow_mut().insert(list, disks.into());
                Ok(list)
            }
            _ => Err(unexpected(self.inner.keeper)),
        }
    }
}

/// The I/O node whose first disk has the smallest identity.
async fn first_node<M: Machine>(cache: &PageCache<M>) -> Result<NodeId> {
    let disks = cache.client().disks_by_identity().await?;
    let first = disks.values().find(|(_, index)| *index == 0).map(|(node, _)| *node);
    first.ok_or_else(|| Error::Invalid("no I/O node has a disk".into()).into())
}

/// The identities of all disks, in the order of their I/O nodes.
async fn all_disks<M: Machine>(client: &Client<M>) -> Result<Vec<u64>> {
    let places = client.disks_by_identity().await?;
    let place_of_node = |node: NodeId| client.io_nodes().iter().position(|other| *other == node);
    let mut disks: Vec<_> =
        places.iter().map(|(identity, (node, index))| (place_of_node(*node), *index, *identity)).collect();
    disks.sort_unstable();
    Ok(disks.into_iter().map(|(_, _, identity)| identity).collect())
}

/// What these nodes keep, in the order in which it was begun, as an error.
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
    found.ok_or_else(|| Error::Invalid("the namespace that was begun is not there".into()).into())
}

fn ask(operation: TreeOperation) -> Request {
    Request::Tree { operation: operation.into(), hold: None }
}

/// What a node has answered to an operation, and in which run of its store.
fn answered(node: NodeId, reply: Reply) -> Result<(Performed, u64)> {
    match reply {
        Reply::Tree { answer, directories, run, .. } => Ok((Performed { answer: *answer, directories }, run)),
        Reply::Refused(refusal) => Err(refusal.into()),
        _ => Err(unexpected(node)),
    }
}
