//! The client: the file system's half on a compute node.
//!
//! - this file: connecting, asking I/O nodes
//! - `serving.rs`: what this node does for others
//! - `stripes.rs`: describing files, opening and making their stripes, flushing and removing them; `attachments.rs`:
//!   what is known of the stripes of an open file
//! - `file.rs`: an open file; reading and writing it by the traditional method; `length.rs`: how long it is, as far as
//!   is known here; `holes.rs`: where it has data; `unflushed.rs`: what of it is not on the media, by the stamps of
//!   `durability.rs`
//! - `collective.rs`: reading and writing a file together with a group of compute nodes
//! - `listed.rs`: the same for whatever stretches of files the members list; `selected.rs`: for what they select of a
//!   file, in closed form; `directories.rs`: the words for it that I/O nodes are sent; `together.rs`: what these have
//!   in common
//! - `team.rs`: processes that meet at an I/O node
//! - `write_cache/`: what a group writes, kept in its members' memory and flushed together
//! - `pages/`: the page cache, for programs that read and write a file from front to back
//! - `in_time.rs`: what both caches do by themselves when something has waited for long enough
//! - `tree/`: the namespace
//! - `partial.rs`: an answer of those I/O nodes that did not fail
//! - `check.rs`: having files read back where they lie; `remains.rs`: what is left of a damaged one
//! - `examination.rs`: the state of an I/O node; `recordings.rs`: having them record what they do
//! - `two_phase.rs`: such operations in two phases, by single requests and an exchange among the compute nodes;
//!   `selected_two_phase.rs`: the same for what members select

mod attachments;
mod check;
mod collective;
mod directories;
mod durability;
mod examination;
mod file;
mod holes;
mod in_time;
mod length;
mod listed;
mod pages;
mod partial;
mod recordings;
mod remains;
mod selected;
mod selected_two_phase;
mod serving;
mod stripes;
mod team;
mod together;
mod tree;
mod two_phase;
mod unflushed;
mod write_cache;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

// Every file of this crate finds these modules at its root, beside those of the crate.
use fs_protocol::{
    Features, directory, endpoint, error, exchange, name, noted, number, protocol, range_locks, scrub_unit,
    selected_parts, settings, traffic,
};
use machine::{Condition, InFlight, Machine, Memory, NodeId, Payload};

pub use check::{Check, CheckedFile, Checking, Finding, FindingKind};
pub use collective::{CollectiveSettings, Group};
pub use directories::FileEntries;
pub use examination::{DiskExamination, Examination, HeldUpExamination};
pub use file::File;
pub use listed::ListedSettings;
pub use pages::{Advice, PageCache, PageCacheCounts, PageCacheSettings, PagedFile, Prefetch};
pub use partial::Partial;
pub use recordings::NodeRecording;
pub use remains::{Remains, Remnant};
pub use selected::{Company, SelectedSettings};
pub use stripes::{DisksByIdentity, NumberedFile};
pub use team::{TeamMembership, TeamTurn};
pub use together::{MoveTimes, Moved};
pub use tree::{NewTree, OpenTreeFile, SomeEntries, Tree};
pub use write_cache::{Division, ENTRY_BYTES, Section, WriteCache, WriteCacheSettings, Written};

use crate::endpoint::{Answer, Endpoint, Mailbox};
use crate::error::{Error, Failure, FailureKind, Result};
use crate::protocol::{MeetingId, MemoryId, Reply, Request};
use crate::settings::ClientSettings;
use crate::traffic::{ServedRequests, TrafficCounts};
use collective::Barrier;
use file::UnderWay;
use unflushed::UnflushedFiles;
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
    /// What each I/O node can do, with how often it had been gone when it said so.
    features: RefCell<BTreeMap<NodeId, (Features, u64)>>,
    /// Where disks are, once that has been asked.
    disks_by_identity: RefCell<Option<Rc<DisksByIdentity>>>,
    /// Memory open to others, for collective operations under way.
    memories: RefCell<BTreeMap<MemoryId, Memory>>,
    /// Barriers this node keeps, as the first of its group.
    meetings: RefCell<BTreeMap<MeetingId, Barrier>>,
    meeting_changed: Condition,
    gone: RefCell<BTreeSet<NodeId>>,
    /// How often each peer was gone.
    disconnects: RefCell<BTreeMap<NodeId, u64>>,
    /// Some peer is gone.
    lost: Condition,
    /// Write caches that are joining a job: what its coordinator asks of them waits until they have.
    joining: InFlight,
    /// How many file requests have opened their memory.
    opened: Cell<u64>,
    write_caches: WriteCaches<M>,
    unflushed: Rc<UnflushedFiles>,
    /// Scratch space of finished file requests, reused because small requests are frequent.
    left_over: RefCell<Vec<UnderWay>>,
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
            endpoint: Endpoint::of_client(machine.clone()),
            settings,
            io_nodes,
            disks: RefCell::default(),
            block_bytes_max: Cell::new(u64::MAX),
            features: RefCell::default(),
            disks_by_identity: RefCell::default(),
            memories: RefCell::default(),
            meetings: RefCell::default(),
            meeting_changed: Condition::new(),
            gone: RefCell::default(),
            disconnects: RefCell::default(),
            lost: Condition::new(),
            joining: InFlight::new(),
            opened: Cell::new(0),
            write_caches: RefCell::default(),
            unflushed: Rc::default(),
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
            let (Reply::Described { disks, block_bytes_max, features }, _) = answer? else {
                return Err(unexpected(node));
            };
            self.note_features(node, features, 0);
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

    /// Makes a round trip to an I/O node, for measuring its latency.
    pub async fn round_trip(&self, node: NodeId) -> Result<()> {
        self.inner.endpoint.call(node, Request::Describe, Payload::empty()).await.map(drop)
    }

    fn note_features(&self, node: NodeId, features: u64, disconnects: u64) {
        let features = Features::from_bits_retain(features);
        self.inner.features.borrow_mut().insert(node, (features, disconnects));
    }

    /// Whether an I/O node can do something. If it was gone since it was last asked, it is asked again: another release
    /// may have been started in its place.
    ///
    /// # Errors
    /// If it does not answer.
    async fn can(&self, node: NodeId, feature: Features) -> Result<bool> {
        let disconnects = self.disconnects_of(node);
        let known = self.inner.features.borrow().get(&node).copied();
        if let Some((features, _)) = known.filter(|(_, at)| *at == disconnects) {
            return Ok(features.contains(feature));
        }
        match self.inner.endpoint.call(node, Request::Describe, Payload::empty()).await? {
            (Reply::Described { features, .. }, _) => {
                self.note_features(node, features, disconnects);
                Ok(Features::from_bits_retain(features).contains(feature))
            }
            _ => Err(unexpected(node)),
        }
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
        self.ask_each(request_to, |_, _| {}).await
    }

    /// As [`ask_all`](Self::ask_all); `heard` is called with each answer as it comes.
    async fn ask_each(
        &self,
        request_to: impl Fn(usize) -> Option<Request>,
        heard: impl Fn(NodeId, &Answer),
    ) -> Vec<(NodeId, Answer)> {
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
            heard(inner.io_nodes[index], &answer);
            answers[index] = Some((inner.io_nodes[index], answer));
        }
        drop(span);
        answers.into_iter().flatten().collect()
    }
}

fn unexpected(node: NodeId) -> Box<Error> {
    Error::Protocol { node, why: "sent a reply of the wrong type".into() }.into()
}
