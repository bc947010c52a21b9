//! The client: the file system's half on a compute node.
//!
//! - this file: connects to I/O nodes and sends them requests.
//! - `serve_nodes.rs`: serves requests that other nodes send to this node.
//! - `stripes.rs`: describes files; opens, creates, flushes and removes their stripes.
//! - `attached_stripes.rs`: known state of the stripes of an open file.
//! - `file.rs`: an open file, and the traditional method of reading and writing it.
//! - `known_length.rs`: the file's length as far as this client knows it.
//! - `holes.rs`: finds data and holes.
//! - `unflushed.rs`: records of unflushed writes, with the stamps of `write_stamps.rs`.
//! - `collective.rs`: reads and writes a file together with a group of compute nodes.
//! - `listed.rs`: collective access to arbitrary lists of extents; `extent_lists.rs`: encodes the lists for I/O nodes.
//! - `selected.rs`: access to a selection of a file in closed form, collectively or alone.
//! - `group_operation.rs`: common part of listed and selected access.
//! - `team.rs`: processes that synchronise at an I/O node.
//! - `write_cache/`: buffers a group's writes in the memory of its members and flushes them together.
//! - `pages/`: the page cache, for programs that read or write a file sequentially.
//! - `deadline_timer.rs`: the timer task that flushes expired entries of both caches.
//! - `tree/`: the namespace.
//! - `partial_answer.rs`: a result that lacks the answers of failed I/O nodes.
//! - `check.rs`: has I/O nodes read files back and verify them.
//! - `damaged_file.rs`: reads the intact rest of a damaged file.
//! - `io_node_state.rs`: the state of an I/O node; `node_recordings.rs`: event recordings of I/O nodes.
//! - `two_phase.rs`: two-phase collective operations, by single requests and an exchange among the compute nodes;
//!   `selected_two_phase.rs`: the same for selections.

mod attached_stripes;
mod check;
mod collective;
mod damaged_file;
mod deadline_timer;
mod extent_lists;
mod file;
mod group_operation;
mod holes;
mod io_node_state;
mod known_length;
mod listed;
mod node_recordings;
mod pages;
mod partial_answer;
mod selected;
mod selected_two_phase;
mod serve_nodes;
mod stripes;
mod team;
mod tree;
mod two_phase;
mod unflushed;
mod write_cache;
mod write_stamps;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

// All files of this crate find these modules at its root, next to its own ones.
use fs_protocol::{
    Features, directory, endpoint, error, exchange, name, number, protocol, range_locks, scrub_unit,
    selected_parts, settings, span_names, traffic,
};
use machine::{Condition, InFlight, Instant, Machine, Memory, NodeId, Payload};

pub use check::{Check, CheckedFile, Checking, Finding, FindingKind};
pub use collective::{CollectiveSettings, Group};
pub use damaged_file::{DamagedFileReader, SalvagedExtent};
pub use extent_lists::FileEntries;
pub use file::File;
pub use group_operation::{MoveTimes, Moved};
pub use io_node_state::{DiskExamination, Examination, HeldUpExamination};
pub use listed::ListedSettings;
pub use node_recordings::NodeRecording;
pub use pages::{Advice, PageCache, PageCacheCounts, PageCacheSettings, PagedFile, Prefetch};
pub use partial_answer::Partial;
pub use selected::{Participants, SelectedSettings};
pub use stripes::{DisksByIdentity, NumberedFile};
pub use team::{TeamMembership, TeamTurn};
pub use tree::{NewTree, OpenTreeFile, SomeEntries, Tree};
pub use write_cache::{Division, ENTRY_BYTES, Section, WriteCache, WriteCacheSettings, Written};

use crate::endpoint::{Answer, Endpoint, Mailbox};
use crate::error::{Error, Failure, FailureKind, Result};
use crate::protocol::{CollectiveId, MemoryId, Reply, Request};
use crate::settings::ClientSettings;
use crate::traffic::{ServedRequests, TrafficCounts};
use collective::Barrier;
use file::BlockRequestsInFlight;
use unflushed::UnflushedFiles;
use write_cache::WriteCaches;

/// Statistics of a client's requests to I/O nodes since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCounts {
    /// Answered requests, by operation and class.
    pub asked: Vec<ServedRequests>,
    /// Failed requests among them, by kind of failure.
    pub failures: Vec<(&'static str, u64)>,
    /// Bytes of data sent.
    pub bytes_sent: u64,
    /// Bytes of data received.
    pub bytes_received: u64,
    /// Number of disconnects of nodes.
    pub disconnects: u64,
    /// Requests in flight.
    pub waiting: u64,
}

/// A compute node's access to the file system. A clone is another handle on the same client.
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
    /// Number of disks of each I/O node.
    disks: RefCell<Vec<u32>>,
    block_bytes_max: Cell<u64>,
    /// Features of each I/O node, and its disconnect count when it reported them.
    features: RefCell<BTreeMap<NodeId, (Features, u64)>>,
    /// I/O nodes of the disks, by the disks' identities; `None` until first asked for.
    disks_by_identity: RefCell<Option<Rc<DisksByIdentity>>>,
    /// Time of the last query for them.
    asked_for_disks: Cell<Option<Instant>>,
    /// Memory open to other nodes, for collective operations in flight.
    memories: RefCell<BTreeMap<MemoryId, Memory>>,
    /// Barriers that this node coordinates as the first member of its group.
    barriers: RefCell<BTreeMap<CollectiveId, Barrier>>,
    barrier_changed: Condition,
    disconnected: RefCell<BTreeSet<NodeId>>,
    /// Number of disconnects of each peer.
    disconnects: RefCell<BTreeMap<NodeId, u64>>,
    /// Wakes tasks when a peer disconnects.
    lost: Condition,
    /// Write caches that are joining a job. Requests from the job's coordinator wait until they have joined.
    joining: InFlight,
    /// Number of file requests that have opened their memory.
    opened: Cell<u64>,
    write_caches: WriteCaches<M>,
    unflushed: Rc<UnflushedFiles>,
    /// Scratch space of finished file requests, reused because small requests are frequent.
    left_over: RefCell<Vec<BlockRequestsInFlight>>,
}

impl<M: Machine> Client<M> {
    /// Connects this node to the file system on `io_nodes` and queries each of them for its disks, block limit and
    /// features.
    ///
    /// # Errors
    /// Fails if the settings are invalid or an I/O node does not answer.
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
            asked_for_disks: Cell::default(),
            memories: RefCell::default(),
            barriers: RefCell::default(),
            barrier_changed: Condition::new(),
            disconnected: RefCell::default(),
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

    /// Returns the I/O nodes that this client knows.
    pub fn io_nodes(&self) -> &[NodeId] {
        &self.inner.io_nodes
    }

    /// Returns the coordinating I/O node for clients that share only a name, such as a team's. All clients compute the
    /// same node, in whatever order they list the I/O nodes.
    fn coordinator(&self) -> NodeId {
        *self.io_nodes().iter().min().expect("a client has I/O nodes")
    }

    /// Returns a number that is equal for all clients with the same I/O nodes, in whatever order they list them.
    fn number_of_io_nodes(&self) -> u64 {
        let mut io_nodes: Vec<u64> = self.io_nodes().iter().map(|node| node.0).collect();
        io_nodes.sort_unstable();
        name::hash_of("", &io_nodes)
    }

    /// Returns the number of disks of all I/O nodes together.
    pub fn disks(&self) -> u32 {
        self.inner.disks.borrow().iter().sum()
    }

    /// Returns the largest block size that all I/O nodes support, in bytes.
    pub fn block_bytes_max(&self) -> u64 {
        self.inner.block_bytes_max.get()
    }

    /// Makes a round trip to an I/O node, to measure its latency.
    pub async fn round_trip(&self, node: NodeId) -> Result<()> {
        self.inner.endpoint.call(node, Request::Describe, Payload::empty()).await.map(drop)
    }

    fn note_features(&self, node: NodeId, features: u64, disconnects: u64) {
        let features = Features::from_bits_retain(features);
        self.inner.features.borrow_mut().insert(node, (features, disconnects));
    }

    /// Returns true if an I/O node supports a feature. After a disconnect the client queries the node again, because
    /// another release may have been started in its place.
    ///
    /// # Errors
    /// Fails if the node does not answer.
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

    /// Returns the statistics of requests to I/O nodes.
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
            waiting: endpoint.calls_in_flight(),
        }
    }

    /// Returns the number of disconnects of all nodes.
    fn disconnects(&self) -> u64 {
        self.inner.disconnects.borrow().values().sum()
    }

    /// Returns the number of disconnects of one node.
    fn disconnects_of(&self, node: NodeId) -> u64 {
        self.inner.disconnects.borrow().get(&node).copied().unwrap_or_default()
    }

    /// Returns the number of disconnects of each I/O node.
    fn disconnects_of_io_nodes(&self) -> Vec<u64> {
        self.io_nodes().iter().map(|&node| self.disconnects_of(node)).collect()
    }

    /// Fails if an I/O node disconnected since `disconnects` was taken: the node has silently dropped the state that it
    /// got over the old connection.
    fn check_still_connected(&self, disconnects: &[u64]) -> Result<()> {
        let gone =
            self.io_nodes().iter().zip(disconnects).find(|&(&node, &then)| self.disconnects_of(node) != then);
        gone.map_or(Ok(()), |(&node, _)| {
            let text = "the connection that sent the pieces to move has ended";
            Err(Error::Remote { node, failure: Failure::new(FailureKind::NotOpen, text) }.into())
        })
    }

    /// Connects to every reachable I/O node, including restarted ones. An I/O node serves a group only if it knows all
    /// of the group's members.
    async fn connect_to_all(&self) {
        // Ignore errors: an unreachable node fails at the next request.
        drop(self.ask_all(|_| Some(Request::Describe)).await);
    }

    /// Sends the same request to all I/O nodes. Waits for all of them, then fails with the first failure.
    async fn have_all(&self, request: &Request) -> Result<()> {
        let mut outcome = Ok(());
        for (_, answer) in self.ask_all(|_| Some(request.clone())).await {
            outcome = outcome.and(answer.map(drop));
        }
        outcome
    }

    /// Sends requests to all I/O nodes at once and waits for all answers. `request_to` returns the request for the node
    /// of an index, or `None` to skip it.
    async fn ask_all(&self, request_to: impl Fn(usize) -> Option<Request>) -> Vec<(NodeId, Answer)> {
        self.ask_each(request_to, |_, _, _| {}).await
    }

    /// Does the same as [`ask_all`](Self::ask_all), and passes each answer to the callback as it arrives, with the
    /// disconnect count of its node when the request was sent.
    async fn ask_each(
        &self,
        request_to: impl Fn(usize) -> Option<Request>,
        on_answer: impl Fn(NodeId, u64, &Answer),
    ) -> Vec<(NodeId, Answer)> {
        let inner = &self.inner;
        let mailbox = Mailbox::new();
        let mut answers: Vec<Option<(NodeId, Answer)>> = Vec::new();
        let (mut asked, mut disconnects, mut span) = (0, Vec::new(), None);
        for (index, &node) in inner.io_nodes.iter().enumerate() {
            answers.push(None);
            // Count now: an earlier request may have waited while this node was restarted.
            disconnects.push(self.disconnects_of(node));
            if let Some(request) = request_to(index) {
                // One span suffices: all requests are of one kind.
                span.get_or_insert_with(|| inner.endpoint.machine().notes().span(request.spans().ask, || []));
                inner.endpoint.begin(node, request, Payload::empty(), &mailbox, index).await;
                asked += 1;
            }
        }
        for _ in 0..asked {
            let (index, answer) = mailbox.next().await;
            on_answer(inner.io_nodes[index], disconnects[index], &answer);
            answers[index] = Some((inner.io_nodes[index], answer));
        }
        drop(span);
        answers.into_iter().flatten().collect()
    }
}

fn unexpected(node: NodeId) -> Box<Error> {
    Error::Protocol { node, why: "sent a reply of the wrong type".into() }.into()
}
