//! The client: the file system's half on a compute node.
//!
//! - this file: connecting, and operations on names
//! - `assembly.rs`: what was found under a name; `commit.rs`: finishing files
//! - `numbered.rs`: files that have a number and no name; `attachments.rs`: what is known of their stripes
//! - `file.rs`: an open file; reading and writing it by the traditional method; `length.rs`: how long it is, as far as
//!   is known here; `holes.rs`: where it has data; `unflushed.rs`: what of it is not on the media yet, but for what
//!   `own_flushes.rs` knows
//! - `collective.rs`: reading and writing a file together with a group of compute nodes
//! - `listed.rs`: the same for whatever stretches of files the members list; `selected.rs`: for what they select of a
//!   file, in closed form; `directories.rs`: the words for it that I/O nodes are sent; `together.rs`: what these have
//!   in common
//! - `team.rs`: processes that meet at an I/O node
//! - `write_cache/`: what a group writes, kept in its members' memory and flushed together
//! - `pages/`: the page cache, for programs that read and write a file from front to back
//! - `tree/`: the namespace, and files known by their numbers
//! - `check.rs`: having files read back where they lie; `remains.rs`: what is left of a damaged one
//! - `recordings.rs`: having the I/O nodes record what they do
//! - `two_phase.rs`: such operations in two phases, by single requests and an exchange among the compute nodes;
//!   `selected_two_phase.rs`: the same for what members select

mod assembly;
mod attachments;
mod check;
mod collective;
mod commit;
mod directories;
mod file;
mod holes;
mod length;
mod listed;
mod numbered;
mod own_flushes;
mod pages;
mod recordings;
mod remains;
mod selected;
mod selected_two_phase;
mod team;
mod together;
mod tree;
mod two_phase;
mod unflushed;
mod write_cache;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use layout::{DiskPlace, Striping, stripe_disks};
use machine::{
    Computer, Condition, Duration, InFlight, Machine, Memory, Message, NodeId, Payload, Space, Work,
};

pub use assembly::{FileParts, FileStat};
pub use check::{Check, CheckedFile, Checking, Finding, FindingKind};
pub use collective::{CollectiveMethod, CollectiveSettings, Group};
pub use directories::FileEntries;
pub use file::File;
pub use listed::ListedSettings;
pub use numbered::{DisksByIdentity, NumberedFile};
pub use pages::{Advice, PageCache, PageCacheCounts, PageCacheSettings, PagedFile, Prefetch};
pub use recordings::NodeRecording;
pub use remains::{Remains, Remnant};
pub use selected::{Company, SelectedSettings};
pub use team::{TeamMembership, TeamTurn};
pub use together::{MoveTimes, Moved};
pub use tree::{NewTree, OpenTreeFile, SomeEntries, Tree};
pub use write_cache::{Division, ENTRY_BYTES, Section, WriteCache, WriteCacheSettings, Written};

use crate::endpoint::{Answer, Caller, Endpoint, Mailbox, RequestHandler};
use crate::error::{Error, Failure, FailureKind, Result};
use crate::name;
use crate::protocol::{ExaminedDisk, FileId, MeetingId, MemoryId, Reply, Request, StripeHome};
use crate::settings::ClientSettings;
use crate::traffic::{ServedRequests, TrafficCounts};
use collective::Meeting;
use commit::about;
use file::UnderWay;
use own_flushes::OwnFlushes;
use unflushed::ClosedFiles;
use write_cache::WriteCaches;

/// What a client has asked of I/O nodes since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCounts {
    /// The requests that have been answered, by operation and class.
    pub asked: Vec<ServedRequests>,
    /// Those of them that failed, by what they are counted as.
    pub failures: Vec<(&'static str, u64)>,
    /// Bytes of data that have left.
    pub bytes_sent: u64,
    /// Bytes of data that have come.
    pub bytes_received: u64,
    /// How often an I/O node was gone.
    pub disconnects: u64,
    /// Requests whose answers are waited for.
    pub waiting: u64,
}

/// The state of an I/O node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examination {
    /// The release of its program, see [`RELEASE`](crate::RELEASE).
    pub release: String,
    /// The time since 1970 began, by its clock on the wall, if it has one.
    pub date: Option<Duration>,
    /// The computer it runs on, if it knows that.
    pub computer: Option<Computer>,
    /// Its disks.
    pub disks: Vec<DiskExamination>,
}

/// The state of a disk of an I/O node, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskExamination {
    /// How much it holds.
    pub space: Option<Space>,
    /// Identifies its device among those of the computer.
    pub device: Option<u64>,
    /// Whether its speed is independent of other disks on the same device.
    pub has_own_pace: bool,
    /// Why it cannot be used, if that is so.
    pub failure: Option<String>,
    /// Reads that another client's writes have held up there, if any have been.
    pub held_up: Option<HeldUpExamination>,
}

/// Reads that had to wait while many writes of another client went on, with about as many waiting in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldUpExamination {
    /// How many there have been since the I/O node began.
    pub reads: u64,
    /// The most writes of one client that waited then.
    pub writes_most: u64,
    /// How long ago the last of them was.
    pub ago: Duration,
}

/// A compute node's access to the file system. Cloning gives another handle on the same.
pub struct Client<M: Machine> {
    inner: Rc<ClientInner<M>>,
}

impl<M: Machine> Clone for Client<M> {
    fn clone(&self) -> Self {
        Client { inner: self.inner.clone() }
    }
}

struct ClientInner<M: Machine> {
    endpoint: Rc<Endpoint<M>>,
    settings: ClientSettings,
    io_nodes: Vec<NodeId>,
    /// How many disks each I/O node has.
    disks: RefCell<Vec<u32>>,
    block_bytes_max: Cell<u64>,
    /// Where disks are, once that has been asked.
    disks_by_identity: RefCell<Option<Rc<DisksByIdentity>>>,
    /// Memory open to others, for collective operations under way.
    memories: RefCell<BTreeMap<MemoryId, Memory>>,
    /// Barriers this node keeps, as the first of its group.
    meetings: RefCell<BTreeMap<MeetingId, Meeting>>,
    meeting_changed: Condition,
    gone: RefCell<BTreeSet<NodeId>>,
    /// How often each peer was gone.
    disconnects: RefCell<BTreeMap<NodeId, u64>>,
    /// Some peer is gone.
    lost: Condition,
    /// Write caches that are joining a job: what its coordinator asks of them waits until they have.
    joining: InFlight,
    /// Unfinished files that this client has begun.
    begun: RefCell<BTreeSet<FileId>>,
    /// How many file requests have opened their memory.
    opened: Cell<u64>,
    write_caches: WriteCaches<M>,
    own_flushes: OwnFlushes,
    closed: Rc<ClosedFiles>,
    /// Scratch space of finished file requests, reused because small requests are frequent.
    left_over: RefCell<Vec<UnderWay>>,
}

/// A file to be made.
#[derive(Clone, Copy)]
struct NewFile<'a> {
    name: &'a str,
    file: FileId,
    striping: Striping,
    /// The disk of each stripe, by its index among all disks; without them the first ones.
    disks: Option<&'a [u32]>,
    /// The finished file of that name that it is to take the place of.
    replaces: Option<FileId>,
}

impl<M: Machine> Client<M> {
    /// Connects this node to the file system kept by `io_nodes`, and asks each of them what it has.
    pub async fn connect(machine: M, io_nodes: Vec<NodeId>, settings: ClientSettings) -> Result<Client<M>> {
        if io_nodes.is_empty() {
            return Err(Error::Invalid("a file system needs at least one I/O node".into()).into());
        }
        if settings.outstanding_per_disk == 0 {
            return Err(Error::Invalid("at least one request for each disk must be allowed".into()).into());
        }
        let inner = Rc::new(ClientInner {
            endpoint: Endpoint::new(machine.clone()),
            settings,
            io_nodes,
            disks: RefCell::default(),
            block_bytes_max: Cell::new(u64::MAX),
            disks_by_identity: RefCell::default(),
            memories: RefCell::default(),
            meetings: RefCell::default(),
            meeting_changed: Condition::new(),
            gone: RefCell::default(),
            disconnects: RefCell::default(),
            lost: Condition::new(),
            joining: InFlight::new(),
            begun: RefCell::default(),
            opened: Cell::new(0),
            write_caches: RefCell::default(),
            own_flushes: OwnFlushes::default(),
            closed: Rc::default(),
            left_over: RefCell::default(),
        });
        let listener = inner.clone();
        machine.spawn("client", async move { listener.endpoint.listen(&listener).await });
        let client = Client { inner };
        client.describe().await?;
        Ok(client)
    }

    async fn describe(&self) -> Result<()> {
        let answers = self.ask_all(|_| Some(Request::Describe)).await;
        for (node, answer) in answers {
            let (Reply::Described { disks, block_bytes_max }, _) = answer? else {
                return Err(unexpected(node));
            };
            self.inner.disks.borrow_mut().push(disks);
            let smallest = self.inner.block_bytes_max.get().min(block_bytes_max);
            self.inner.block_bytes_max.set(smallest);
        }
        Ok(())
    }

    /// The I/O nodes this client knows.
    pub fn io_nodes(&self) -> &[NodeId] {
        &self.inner.io_nodes
    }

    /// The I/O node at which clients meet who know each other only by what they have in common: the same one for all,
    /// in whatever order they know the I/O nodes.
    fn meeting_place(&self) -> NodeId {
        *self.io_nodes().iter().min().expect("a client has I/O nodes")
    }

    /// A number that is the same for all clients that know the same I/O nodes, in whatever order.
    fn number_of_io_nodes(&self) -> u64 {
        let mut io_nodes: Vec<u64> = self.io_nodes().iter().map(|node| node.0).collect();
        io_nodes.sort_unstable();
        name::hash_of("", &io_nodes)
    }

    /// The number of disks of all I/O nodes together.
    pub fn disks(&self) -> u32 {
        self.inner.disks.borrow().iter().sum()
    }

    /// The largest block that all I/O nodes can handle, in bytes.
    pub fn block_bytes_max(&self) -> u64 {
        self.inner.block_bytes_max.get()
    }

    /// Makes an empty file over all disks, in blocks of `block_bytes`.
    ///
    /// `file` is its identity, drawn at random by the caller. It is unfinished until it is
    /// [committed](File::commit). Fails if there is a finished file of that name, or somebody is writing one; what
    /// others have left unfinished gives way.
    pub async fn create(&self, name: &str, file: FileId, block_bytes: u64) -> Result<File<M>> {
        self.create_striped(name, file, Striping::new(block_bytes, self.disks())?).await
    }

    /// Makes an empty file over as many disks as `striping` has stripes.
    ///
    /// Otherwise like [`create`](Self::create). Fails if there are fewer disks.
    pub async fn create_striped(&self, name: &str, file: FileId, striping: Striping) -> Result<File<M>> {
        self.check_striping(name, striping)?;
        self.create_new(NewFile { name, file, striping, disks: None, replaces: None }).await
    }

    /// Makes an empty file with a stripe on each of `disks`, in this order, in blocks of `block_bytes`. Disks are known
    /// by their index: disk *i* is that of stripe *i* of a file over all disks.
    ///
    /// Otherwise like [`create`](Self::create). Fails if there is no such disk, or one is named twice.
    pub async fn create_on(
        &self,
        name: &str,
        file: FileId,
        block_bytes: u64,
        disks: &[u32],
    ) -> Result<File<M>> {
        let striping = self.check_disks(name, block_bytes, disks)?;
        self.create_new(NewFile { name, file, striping, disks: Some(disks), replaces: None }).await
    }

    /// How a file lies on these disks; refuses what [`create_on`](Self::create_on) does.
    fn check_disks(&self, name: &str, block_bytes: u64, disks: &[u32]) -> Result<Striping> {
        let striping = Striping::new(block_bytes, disks.len() as u32)?;
        self.check_striping(name, striping)?;
        for (stripe, &disk) in disks.iter().enumerate() {
            if disk >= self.disks() || disks[..stripe].contains(&disk) {
                let (all, why) = (self.disks(), format!("{name} cannot have a stripe on disk {disk}"));
                let text = format!("{why}: name disks of 0 to {}, each once", all - 1);
                return Err(Error::Invalid(text).into());
            }
        }
        Ok(striping)
    }

    /// As [`create_on`](Self::create_on), but if there is a finished file of that name, it stays as it is until the new
    /// one is committed, and is replaced then.
    pub async fn create_replacing_on(
        &self,
        name: &str,
        file: FileId,
        block_bytes: u64,
        disks: &[u32],
    ) -> Result<File<M>> {
        let striping = self.check_disks(name, block_bytes, disks)?;
        let replaces = self.replaced(name).await?;
        self.create_new(NewFile { name, file, striping, disks: Some(disks), replaces }).await
    }

    /// As [`create_striped`](Self::create_striped), but if there is a finished file of that name, it stays as it is
    /// until the new one is committed, and is replaced then.
    pub async fn create_replacing(&self, name: &str, file: FileId, striping: Striping) -> Result<File<M>> {
        self.check_striping(name, striping)?;
        let replaces = self.replaced(name).await?;
        self.create_new(NewFile { name, file, striping, disks: None, replaces }).await
    }

    /// The finished file of this name, if there is one.
    async fn replaced(&self, name: &str) -> Result<Option<FileId>> {
        match self.find(name).await {
            Ok(parts) => Ok(Some(parts.file)),
            Err(error) if matches!(*error, Error::NotFound { .. } | Error::Unfinished { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create_new(&self, new: NewFile<'_>) -> Result<File<M>> {
        let NewFile { name, file, .. } = new;
        // Before there is anything of it, so that nobody here takes it for what others have left.
        let is_new = self.inner.begun.borrow_mut().insert(file);
        let created = self.create_or_clear(new).await;
        if let Err(error) = created {
            if is_new {
                self.inner.begun.borrow_mut().remove(&file);
            }
            return Err(about(error, name));
        }
        let stat = self.stat_unfinished(name).await?;
        Ok(File::new(self.clone(), name, stat))
    }

    /// Makes the stripes of a new file. What others have left unfinished gives way.
    async fn create_or_clear(&self, new: NewFile<'_>) -> Result<()> {
        let name = new.name;
        let mut outcome = self.create_stripes(new).await;
        if outcome.as_ref().is_err_and(|error| error.is_remote(FailureKind::Unfinished)) {
            let left = self.find_unfinished(name).await;
            if left.is_ok_and(|left| self.inner.begun.borrow().contains(&left.file)) {
                return Err(Error::BeingWritten { name: name.into() }.into());
            }
            match self.unlink_unfinished(name).await {
                Err(error) if !matches!(*error, Error::NotFound { .. }) => return Err(error),
                _ => outcome = self.create_stripes(new).await,
            }
        }
        outcome
    }

    async fn create_stripes(&self, new: NewFile<'_>) -> Result<()> {
        let NewFile { name, file, striping, replaces, .. } = new;
        let mut disks: Vec<DiskPlace> = stripe_disks(&self.inner.disks.borrow())?;
        match new.disks {
            Some(chosen) => disks = chosen.iter().map(|&disk| disks[disk as usize]).collect(),
            None => disks.truncate(striping.stripe_count() as usize),
        }
        let begun = self.inner.endpoint.machine().date().as_nanos();
        let request_to = |node: usize| {
            let here = (0..).zip(&disks).filter(|(_, place)| place.node as usize == node);
            let stripes = here.map(|(stripe, place)| StripeHome { stripe, disk: place.disk }).collect();
            Some(Request::Create { name: name.into(), file, striping, begun, replaces, stripes })
        };
        let answers = self.ask_all(request_to).await;
        let made = answers.iter().filter(|(_, answer)| answer.is_ok()).map(|&(node, _)| node);
        let made: Vec<NodeId> = made.collect();
        let Some(error) = answers.into_iter().find_map(|(_, answer)| answer.err()) else { return Ok(()) };
        // Nothing half-made stays behind; what cannot be undone now can be removed by name later.
        for node in made {
            let undo = Request::Discard { name: name.into(), file: Some(file), uncommitted: false };
            let _ = self.inner.endpoint.call(node, undo, Payload::empty()).await;
        }
        Err(error)
    }

    /// Refuses what no file here can be: a name that is none, more stripes than disks, blocks larger than all I/O nodes
    /// can handle. Ask before a file makes place for another one.
    pub fn check_striping(&self, name: &str, striping: Striping) -> Result<()> {
        check_name(name)?;
        let (stripes, disks) = (striping.stripe_count(), self.disks());
        if stripes > disks {
            let there = if disks == 1 { "is 1 disk".to_owned() } else { format!("are {disks} disks") };
            let why = format!("{name} cannot have {stripes} stripes: there {there}");
            return Err(Error::Invalid(why).into());
        }
        self.check_blocks(name, striping)
    }

    /// Refuses blocks larger than all I/O nodes can handle.
    fn check_blocks(&self, name: &str, striping: Striping) -> Result<()> {
        let (block, most) = (striping.block_bytes(), self.block_bytes_max());
        if block > most {
            return Err(Error::BlockTooLarge { name: name.into(), bytes: block, most }.into());
        }
        Ok(())
    }

    /// Opens a finished file, after checking that all its stripes are there and belong together.
    pub async fn open(&self, name: &str) -> Result<File<M>> {
        let stat = self.stat(name).await?;
        Ok(File::new(self.clone(), name, stat))
    }

    /// The metadata of a finished file. Fails if a stripe of it is missing.
    pub async fn stat(&self, name: &str) -> Result<FileStat> {
        self.find(name).await?.complete(name)
    }

    /// Makes a round trip to an I/O node, for measuring its latency.
    pub async fn round_trip(&self, node: NodeId) -> Result<()> {
        self.inner.endpoint.call(node, Request::Describe, Payload::empty()).await.map(drop)
    }

    /// Asks an I/O node for its state.
    pub async fn examine(&self, node: NodeId) -> Result<Examination> {
        let answer = self.inner.endpoint.call(node, Request::Examine, Payload::empty()).await?;
        let (Reply::Examined { release, date, computer, disks }, _) = answer else {
            return Err(unexpected(node));
        };
        let computer = computer.map(|computer| Computer {
            id: computer.id,
            processors: computer.processors,
            worked: Duration::from_nanos(computer.worked),
            worked_for_node: Duration::from_nanos(computer.worked_for_node),
        });
        let disk = |disk: ExaminedDisk| DiskExamination {
            space: disk.space.map(|(bytes, free)| Space { bytes, free }),
            device: disk.device,
            has_own_pace: disk.has_own_pace,
            failure: disk.failure,
            held_up: disk.held_up.map(|held_up| HeldUpExamination {
                reads: held_up.reads,
                writes_most: held_up.writes_most,
                ago: Duration::from_nanos(held_up.ago),
            }),
        };
        let disks = disks.into_iter().map(disk).collect();
        Ok(Examination { release, date: date.map(Duration::from_nanos), computer, disks })
    }

    /// The names of all files, finished or not, sorted: every name that any I/O node has a stripe of.
    pub async fn list(&self) -> Result<Vec<String>> {
        let mut all = BTreeSet::new();
        for (_, names) in self.list_each().await? {
            all.extend(names);
        }
        Ok(all.into_iter().collect())
    }

    /// The names of all files that each I/O node has stripes of, sorted.
    async fn list_each(&self) -> Result<Vec<(NodeId, Vec<String>)>> {
        let mut lists = Vec::new();
        for (node, mut answer) in self.ask_all(|_| Some(Request::List { after: String::new() })).await {
            let mut all = Vec::new();
            loop {
                let (Reply::Listed { names, more }, _) = answer? else { return Err(unexpected(node)) };
                let last = names.last().cloned();
                all.extend(names);
                // An answer has a limited size; the next one goes on after its last name.
                let Some(after) = last.filter(|_| more) else { break };
                answer = self.inner.endpoint.call(node, Request::List { after }, Payload::empty()).await;
            }
            lists.push((node, all));
        }
        Ok(lists)
    }

    /// What has been asked of I/O nodes.
    pub fn counts(&self) -> ClientCounts {
        let endpoint = &self.inner.endpoint;
        let TrafficCounts { served, failures, .. } = endpoint.asked.counts();
        let TrafficCounts { bytes_sent, bytes_received, .. } = endpoint.traffic.counts();
        ClientCounts {
            asked: served,
            failures,
            bytes_sent,
            bytes_received,
            disconnects: self.disconnects(),
            waiting: endpoint.calls_under_way(),
        }
    }

    /// How often any node was gone.
    fn disconnects(&self) -> u64 {
        self.inner.disconnects.borrow().values().sum()
    }

    /// How often a node was gone.
    fn disconnects_of(&self, node: NodeId) -> u64 {
        self.inner.disconnects.borrow().get(&node).copied().unwrap_or_default()
    }

    /// How often each I/O node was gone.
    fn disconnects_of_io_nodes(&self) -> Vec<u64> {
        self.io_nodes().iter().map(|&node| self.disconnects_of(node)).collect()
    }

    /// Fails if an I/O node was gone since there were these disconnects: it has forgotten what it was told over a
    /// connection that is over, and says nothing of it.
    fn check_told(&self, disconnects: &[u64]) -> Result<()> {
        let gone =
            self.io_nodes().iter().zip(disconnects).find(|&(&node, &then)| self.disconnects_of(node) != then);
        gone.map_or(Ok(()), |(&node, _)| {
            let text = "the connection has ended over which it was told what there is to be moved";
            Err(Error::Remote { node, failure: Failure::new(FailureKind::NotOpen, text) }.into())
        })
    }

    /// Has all I/O nodes that are there know this client, also those that were started anew: they do something for a
    /// group only if they know all of its members.
    async fn show_up(&self) {
        // Who is gone says so when it is asked for something.
        drop(self.ask_all(|_| Some(Request::Describe)).await);
    }

    /// Has all I/O nodes do the same. Fails with the first failure when all have done what they can.
    async fn have_all(&self, request: &Request) -> Result<()> {
        let mut outcome = Ok(());
        for (_, answer) in self.ask_all(|_| Some(request.clone())).await {
            outcome = outcome.and(answer.map(drop));
        }
        outcome
    }

    /// Asks all I/O nodes at once, each the request for its index if there is one, and waits for them all.
    async fn ask_all(&self, request_to: impl Fn(usize) -> Option<Request>) -> Vec<(NodeId, Answer)> {
        let inner = &self.inner;
        let mailbox = Mailbox::new();
        let mut answers: Vec<Option<(NodeId, Answer)>> = Vec::new();
        let (mut asked, mut span) = (0, None);
        for (index, &node) in inner.io_nodes.iter().enumerate() {
            answers.push(None);
            if let Some(request) = request_to(index) {
                // They are all of one kind.
                span.get_or_insert_with(|| inner.endpoint.machine().notes().span(request.spans().ask, || []));
                inner.endpoint.begin(node, request, Payload::empty(), &mailbox, index).await;
                asked += 1;
            }
        }
        for _ in 0..asked {
            let (index, answer) = mailbox.next().await;
            answers[index] = Some((inner.io_nodes[index], answer));
        }
        drop(span);
        answers.into_iter().flatten().collect()
    }
}

fn check_name(name: &str) -> Result<()> {
    name::check(name).map_err(|why| Error::BadName { name: name.into(), why }.into())
}

fn unexpected(node: NodeId) -> Box<Error> {
    Error::Protocol { node, why: "sent a reply of the wrong type".into() }.into()
}

impl<M: Machine> RequestHandler for Rc<ClientInner<M>> {
    async fn handle(&self, caller: Caller, request: Request, payload: Payload) -> machine::Result<()> {
        let machine = self.endpoint.machine();
        let about = || [("node", caller.node.0), ("bytes", payload.len())];
        let span = machine.notes().span(request.spans().serve, about);
        machine.notes().received(span.place(), || caller.question());
        match request {
            Request::Memput { memory, offset } => {
                machine.compute(Work::HandleMemput { bytes: payload.len() }).await;
                let outcome = self.memory(memory, offset, payload.len());
                let outcome = outcome.map(|memory| memory.place(offset, &payload));
                let outcome = outcome.map(|()| (Reply::Done, Payload::empty()));
                self.endpoint.reply(caller, outcome).await
            }
            Request::Memget { memory, offset, bytes } => {
                let bytes = u64::from(bytes);
                machine.compute(Work::HandleMemget { bytes }).await;
                let outcome = check_memget(bytes).and_then(|()| self.memory(memory, offset, bytes));
                let outcome = outcome.map(|memory| (Reply::Done, memory.get(offset, bytes)));
                // In the background, as by DMA: what comes next is not kept waiting.
                let endpoint = self.endpoint.clone();
                machine.spawn("memget", async move { endpoint.reply(caller, outcome).await });
                Ok(())
            }
            Request::MemputPieces { memory, pieces } => {
                machine.compute(Work::HandleMemput { bytes: payload.len() }).await;
                machine.compute(Work::UnpackPieces { pieces: pieces.len() as u64 }).await;
                let outcome = self.scatter(memory, &pieces, &payload);
                self.endpoint.reply(caller, outcome.map(|()| (Reply::Done, Payload::empty()))).await
            }
            Request::MemgetPieces { memory, pieces } => {
                machine.compute(Work::HandleMemget { bytes: 0 }).await;
                machine.compute(Work::UnpackPieces { pieces: pieces.len() as u64 }).await;
                let outcome = self.gather(memory, &pieces);
                if let Ok(data) = &outcome {
                    machine.compute(Work::PackData { bytes: data.len() }).await;
                }
                self.endpoint.reply(caller, outcome.map(|data| (Reply::Done, data))).await
            }
            Request::FlushTogether { group, flush, file } => {
                if self.joining.count() == 0 {
                    let outcome = self.flush_together(group, flush, file);
                    return self.endpoint.reply(caller, outcome).await;
                }
                // It may be of a job whose coordinator has let this node in just now.
                let client = self.clone();
                machine.spawn("flush after joining", async move {
                    client.joining.none().await;
                    let outcome = client.flush_together(group, flush, file);
                    client.endpoint.reply(caller, outcome).await
                });
                Ok(())
            }
            Request::Enter { meeting, failure } => self.enter(meeting, caller, failure).await,
            other => {
                let failure = Failure::invalid(format!("a compute node does not serve {other:?}"));
                self.endpoint.reply(caller, Err(failure.into())).await
            }
        }
    }

    fn peer_gone(&self, peer: NodeId) {
        self.gone.borrow_mut().insert(peer);
        *self.disconnects.borrow_mut().entry(peer).or_default() += 1;
        self.leave(peer);
        self.meeting_changed.wake_all();
        self.lost.wake_all();
    }
}

/// Memory that is open to others until this is dropped.
#[must_use]
struct OpenMemory<'a, M: Machine> {
    client: &'a ClientInner<M>,
    /// The name under which others know it.
    id: MemoryId,
}

impl<M: Machine> Drop for OpenMemory<'_, M> {
    fn drop(&mut self) {
        self.client.memories.borrow_mut().remove(&self.id);
    }
}

impl<M: Machine> ClientInner<M> {
    /// Opens memory to others.
    fn open_memory(&self, id: MemoryId, memory: &Memory) -> OpenMemory<'_, M> {
        self.memories.borrow_mut().insert(id, memory.clone());
        OpenMemory { client: self, id }
    }

    /// Opens memory for one file request of this node.
    fn open_for_request(&self, memory: &Memory) -> OpenMemory<'_, M> {
        self.opened.set(self.opened.get() + 1);
        self.open_memory(MemoryId::Request(self.opened.get()), memory)
    }

    /// Places the data of a queued Memput.
    fn scatter(
        &self,
        id: MemoryId,
        pieces: &[(u64, u32)],
        data: &Payload,
    ) -> std::result::Result<(), Box<Failure>> {
        let named: u64 = pieces.iter().map(|&(_, bytes)| u64::from(bytes)).sum();
        if named != data.len() {
            return Err(
                Failure::invalid(format!("pieces of {named} bytes with data of {}", data.len())).into()
            );
        }
        let memory = self.opened_memory(id)?;
        let mut at = 0;
        for &(offset, bytes) in pieces {
            let bytes = u64::from(bytes);
            check_part(&memory, offset, bytes)?;
            memory.place(offset, &data.slice(at..at + bytes));
            at += bytes;
        }
        Ok(())
    }

    /// Joins the data of a queued Memget.
    fn gather(&self, id: MemoryId, pieces: &[(u64, u32)]) -> std::result::Result<Payload, Box<Failure>> {
        let named: u64 = pieces.iter().map(|&(_, bytes)| u64::from(bytes)).sum();
        check_memget(named)?;
        let (memory, mut data) = (self.opened_memory(id)?, Payload::empty());
        for &(offset, bytes) in pieces {
            let bytes = u64::from(bytes);
            check_part(&memory, offset, bytes)?;
            data.push(&memory.get(offset, bytes));
        }
        Ok(data)
    }

    /// The open memory of that name, if it holds the bytes asked for.
    fn memory(&self, id: MemoryId, offset: u64, bytes: u64) -> std::result::Result<Memory, Box<Failure>> {
        let memory = self.opened_memory(id)?;
        check_part(&memory, offset, bytes)?;
        Ok(memory)
    }

    /// The open memory of that name.
    fn opened_memory(&self, id: MemoryId) -> std::result::Result<Memory, Box<Failure>> {
        let memory = self.memories.borrow().get(&id).cloned();
        memory.ok_or_else(|| Failure::invalid(format!("{id:?} is not open")).into())
    }
}

fn check_part(memory: &Memory, offset: u64, bytes: u64) -> std::result::Result<(), Box<Failure>> {
    if memory.holds(offset, bytes) {
        return Ok(());
    }
    let length = memory.len();
    Err(Failure::invalid(format!("{bytes} bytes at {offset} of a memory of {length}")).into())
}

fn check_memget(bytes: u64) -> std::result::Result<(), Box<Failure>> {
    if bytes <= Message::PAYLOAD_BYTES_MAX {
        Ok(())
    } else {
        Err(Failure::invalid(format!("a Memget of {bytes} bytes is too long")).into())
    }
}
