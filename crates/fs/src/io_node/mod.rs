//! The I/O node: receives requests, serves them from its cache and disks, replies.
//!
//! ```text
//!  network --> listen --> block requests --> queue --> threads --> cache --> disk queue --> disk
//!                   \---> collective ------> two buffers per disk --------------^
//!                    \--> names, sizes, flush: a task each
//! ```
//!
//! - this file: the service, the threads that serve block requests
//! - `stripes.rs`: which stripes are open, and the operations on names
//! - `commit.rs`: how files come to be finished
//! - `blocks.rs`: block requests through the cache (the traditional method)
//! - `disk_directed.rs`: collective requests; `listed.rs`: those on whatever their members list
//! - `losses.rs`: what was accepted and did not get to its disk
//! - `listing.rs`: which names there are
//! - `scrub.rs`: reading back what lies on the disks
//! - `account.rs`: what is under way for each client

mod account;
mod blocks;
mod commit;
mod disk_directed;
mod listed;
mod listing;
mod losses;
mod scrub;
mod stripes;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use machine::{BufferPool, Class, Condition, Disk, InFlight, Machine, Net, NodeId, Payload, Work};

use crate::RELEASE;
use crate::cache::Cache;
use crate::disk_queue::{DiskQueue, Line, Turn};
use crate::endpoint::{Asker, Endpoint, Service};
use crate::error::{Failure, FailureKind};
use crate::protocol::{ExaminedComputer, ExaminedDisk, FileId, Label, Reply, Request};
use crate::request_queue::{KEPT_FOR_DEMAND, Place, Placed, RequestQueue};
use crate::schedule::{Position, Scheduling};
use crate::settings::{Answers, IoNodeSettings, Threads};
use crate::turns::Turns;
use account::{Account, Accounts};
use blocks::Data;
use commit::Creators;
use listed::Directories;
use listing::Listings;
use stripes::{NewStripes, OpenStripe, Stripes};

/// Collective requests served at a time; others wait. Of one client as many are served as there is room left for.
const COLLECTIVES_MAX: usize = 16;

/// Memory for the queues of all collective requests together, in bytes. It is more than any two of them need: a block
/// is no larger than a message's payload.
const QUEUE_BYTES: u64 = 64 << 20;

/// An I/O node at work.
struct IoNode<M: Machine> {
    machine: M,
    endpoint: Rc<Endpoint<M>>,
    settings: IoNodeSettings,
    stripes: Stripes,
    /// Names under which objects are made, opened, renamed and removed.
    names: Turns<String>,
    /// Stripes whose notes are changed.
    notes: Turns<(FileId, u32)>,
    creators: Creators,
    cache: RefCell<Cache>,
    /// Woken when a block of the cache may have become idle.
    room: Condition,
    /// The same, for who waits in the background, and is woken after those on demand.
    room_in_background: Condition,
    cache_buffers: BufferPool,
    scrub_buffers: BufferPool,
    disk_queues: Vec<DiskQueue>,
    /// Of each disk how many bytes it has at least.
    disk_bytes: Vec<Cell<u64>>,
    requests: RefCell<RequestQueue<BlockRequest>>,
    request_came: Condition,
    /// Threads of the pool there are, and those of them that wait for a request and have not been woken.
    pool_threads: Cell<usize>,
    pool_idle: Cell<usize>,
    /// Requests in the background that threads of the pool are serving.
    background: InFlight,
    collectives: InFlight,
    collective_done: Condition,
    /// Memory that the queues of collective requests may have.
    queue_memory: BufferPool,
    directories: Directories,
    /// Blocks of which listed parts are written among others that are read first.
    patched: Turns<(FileId, u32, u64)>,
    accounts: Accounts,
    listings: Listings,
}

/// A request for part of one block, and where the answer goes.
struct BlockRequest {
    asker: Asker,
    access: Access,
    file: FileId,
    stripe: u32,
    offset: u64,
    bytes: u64,
}

enum Access {
    Read,
    Write(Data),
}

impl BlockRequest {
    /// The request as a block request, unless it is something else.
    #[inline]
    fn of(asker: Asker, request: Request, payload: Payload) -> Result<Self, Request> {
        let (access, file, stripe, offset, bytes) = match request {
            Request::Read { file, stripe, offset, bytes } => {
                (Access::Read, file, stripe, offset, u64::from(bytes))
            }
            Request::Write { file, stripe, offset, fetch } => {
                let data = fetch.map_or(Data::Here(payload), |fetch| Data::At(asker.node, fetch));
                let bytes = data.bytes();
                (Access::Write(data), file, stripe, offset, bytes)
            }
            command => return Err(command),
        };
        Ok(BlockRequest { asker, access, file, stripe, offset, bytes })
    }
}

impl Placed for BlockRequest {
    fn place(&self) -> Place {
        (self.file, self.stripe, self.offset)
    }
}

/// Serves requests on this node until its network is closed, then writes out what its cache still holds.
pub async fn serve<M: Machine>(machine: M, settings: IoNodeSettings) -> machine::Result<()> {
    let node = Rc::new(IoNode::new(machine.clone(), settings));
    node.endpoint.clone().listen(&node).await?;
    node.write_out_all().await
}

impl<M: Machine> IoNode<M> {
    fn new(machine: M, settings: IoNodeSettings) -> Self {
        let disks = machine.disks().len();
        // Beside the cached blocks, each disk may be loading the rest of a block that is partly written.
        let buffers = (settings.cache_blocks + disks) as u64;
        IoNode {
            endpoint: Endpoint::with_patience(machine.clone(), settings.patience),
            stripes: Stripes::default(),
            names: Turns::default(),
            notes: Turns::default(),
            creators: Creators::default(),
            cache: RefCell::new(Cache::new(settings.cache_blocks)),
            room: Condition::new(),
            room_in_background: Condition::new(),
            cache_buffers: BufferPool::new(buffers * settings.block_bytes_max),
            scrub_buffers: BufferPool::new(disks as u64 * scrub::BYTES_PER_DISK),
            disk_bytes: vec![Cell::new(0); disks],
            disk_queues: (0..disks)
                .map(|_| DiskQueue::new(settings.scheduling, settings.sweeps, settings.requests_at_disk))
                .collect(),
            requests: RefCell::new(RequestQueue::new(settings.sharing, settings.service_slots())),
            request_came: Condition::new(),
            pool_threads: Cell::new(0),
            pool_idle: Cell::new(0),
            background: InFlight::new(),
            collectives: InFlight::new(),
            collective_done: Condition::new(),
            queue_memory: BufferPool::new(QUEUE_BYTES),
            directories: Directories::default(),
            patched: Turns::default(),
            accounts: Accounts::default(),
            listings: Listings::default(),
            machine,
            settings,
        }
    }

    /// A thread of the pool. A defect costs the request that is being served, and no more.
    async fn run_thread(self: Rc<Self>) -> machine::Result<()> {
        let serving = Cell::new(None);
        loop {
            match self.machine.contain("request thread", self.serve_requests(&serving)).await {
                Ok(outcome) => return outcome,
                Err(defect) => self.answer_defect(serving.take(), defect),
            }
        }
    }

    /// Serves one block request after the other.
    async fn serve_requests(self: &Rc<Self>, serving: &Cell<Option<Asker>>) -> machine::Result<()> {
        loop {
            let background_allowed = self.background.count() < self.background_max();
            let request = self.requests.borrow_mut().pop(background_allowed);
            match request {
                Some((class, mut request)) => {
                    // It may have been promoted.
                    request.asker.class = class;
                    let _operation = (class == Class::Background).then(|| self.background.begin());
                    self.serve_block_request(request, serving).await?;
                }
                None => {
                    self.pool_idle.set(self.pool_idle.get() + 1);
                    self.request_came.wait().await;
                }
            }
        }
    }

    /// How many requests in the background are served at a time. At least one is, or it would wait for ever.
    fn background_max(&self) -> usize {
        match self.settings.threads {
            Threads::Pool(threads) => (threads - threads / KEPT_FOR_DEMAND).max(1),
            Threads::PerRequest => usize::MAX,
        }
    }

    /// Lets a thread of the pool know that there is a request. Those of the pool that were never needed are not
    /// made: a pool for thousands of compute nodes is large.
    fn wake_pool(self: &Rc<Self>, threads: usize) {
        if let Some(idle) = self.pool_idle.get().checked_sub(1) {
            self.pool_idle.set(idle);
            self.request_came.wake_newest();
        } else if self.pool_threads.get() < threads {
            self.pool_threads.set(self.pool_threads.get() + 1);
            self.machine.spawn("request thread", self.clone().run_thread());
        }
    }

    /// Gives a block request to a thread.
    async fn dispatch(self: &Rc<Self>, request: BlockRequest) {
        if let Access::Write(Data::Here(data)) = &request.access {
            self.machine.compute(Work::AcceptData { bytes: data.len() }).await;
        }
        match self.settings.threads {
            Threads::Pool(threads) => {
                self.machine.compute(Work::WakeThread).await;
                if !self.requests.borrow().has_room_for(request.asker.node) {
                    let asker = request.asker;
                    // Its data go first: what is refused is to hold no memory.
                    drop(request);
                    return self.refuse(asker, "block requests are waiting");
                }
                let (Asker { node, class, .. }, bytes) = (request.asker, request.bytes);
                self.requests.borrow_mut().push(class, node, bytes, request);
                self.wake_pool(threads);
            }
            Threads::PerRequest => {
                self.machine.compute(Work::StartThread).await;
                let node = self.clone();
                self.machine.spawn("request thread", async move {
                    let serving = Cell::new(None);
                    let served = node.serve_block_request(request, &serving);
                    match node.machine.contain("request thread", served).await {
                        Ok(outcome) => outcome,
                        Err(defect) => {
                            node.answer_defect(serving.take(), defect);
                            Ok(())
                        }
                    }
                });
            }
        }
    }

    /// Serves a block request; notes in `serving` whose it is, until its answer begins to leave.
    async fn serve_block_request(
        self: &Rc<Self>,
        request: BlockRequest,
        serving: &Cell<Option<Asker>>,
    ) -> machine::Result<()> {
        let BlockRequest { asker, access, file, stripe, offset, bytes } = request;
        serving.set(Some(asker));
        self.machine.compute(Work::HandleRequest).await;
        let reads = matches!(access, Access::Read);
        let outcome = match access {
            Access::Read => {
                let data = self.read(file, stripe, offset, bytes, asker.class).await;
                data.map(|data| (Reply::Done, data))
            }
            Access::Write(data) => {
                let written = self.write(file, stripe, offset, data, asker).await;
                written.map(|()| (self.accepted(), Payload::empty()))
            }
        };
        let prefetches = reads && outcome.is_ok();
        serving.set(None);
        match self.settings.answers {
            Answers::ByThread => {
                let answered = self.endpoint.reply(asker, outcome).await;
                self.request_done(asker);
                answered?;
            }
            Answers::Apart => self.start_answer(asker, outcome),
        }
        if prefetches {
            self.prefetch(file, stripe, offset, self.settings.prefetching.class(asker.class));
        }
        Ok(())
    }

    /// Answers a block request that could not be served because of a defect.
    fn answer_defect(self: &Rc<Self>, asker: Option<Asker>, defect: Box<machine::Error>) {
        if let Some(asker) = asker {
            self.start_answer(asker, Err(of_defect(defect)));
        }
    }

    /// Starts a task that answers a block request.
    fn start_answer(self: &Rc<Self>, asker: Asker, outcome: Result<(Reply, Payload), Box<Failure>>) {
        let node = self.clone();
        self.machine.spawn("answer", async move {
            let outcome = node.endpoint.reply(asker, outcome).await;
            node.request_done(asker);
            outcome
        });
    }

    /// The answer to a request has left: others may be taken.
    fn request_done(self: &Rc<Self>, asker: Asker) {
        let others = self.requests.borrow_mut().done(asker.node);
        if let Threads::Pool(threads) = self.settings.threads {
            (0..others).for_each(|_| self.wake_pool(threads));
        }
    }

    /// The answer to a write or a flush.
    fn accepted(&self) -> Reply {
        match self.settings.incarnation {
            0 => Reply::Done,
            incarnation => Reply::Accepted { incarnation },
        }
    }

    /// Where the stripe at `offset` within it lies, for the order of turns.
    fn position(&self, stripe: &OpenStripe, offset: u64) -> Position {
        match self.settings.scheduling {
            Scheduling::PhysicalCyclicScan => {
                (0, self.machine.disks()[stripe.disk].position(stripe.object, offset))
            }
            Scheduling::Fcfs | Scheduling::CyclicScan => (stripe.object.0, offset),
        }
    }

    /// Waits for a turn to use the disk of the stripe at `offset` within it.
    async fn turn(&self, stripe: &OpenStripe, offset: u64, line: impl Into<Line>) -> Turn<'_> {
        let position = self.position(stripe, offset);
        let asked = self.machine.now();
        let turn = self.disk_queues[stripe.disk].turn(position, line.into()).await;
        self.machine.disks()[stripe.disk].waited_since(asked);
        turn
    }

    /// Promotes requests that wait in the background to load this block to on demand.
    fn promote_turn(&self, stripe: &OpenStripe, block: u64) {
        let queue = &self.disk_queues[stripe.disk];
        if queue.has_background() {
            queue.promote(self.position(stripe, block * stripe.block_bytes()));
        }
    }

    /// Serves requests in the background for a block as if on demand, wherever they wait.
    fn promote(self: &Rc<Self>, file: FileId, stripe: u32, offset: u64) {
        // Of a stripe that is not open nothing waits that could succeed.
        let Ok(open) = self.stripes.get(file, stripe) else { return };
        let block = offset / open.block_bytes();
        let start = block * open.block_bytes();
        let promoted =
            self.requests.borrow_mut().promote(file, stripe, start..start.saturating_add(open.block_bytes()));
        if let Threads::Pool(threads) = self.settings.threads {
            // All that was waiting may have been what no thread was allowed to serve.
            (0..promoted).for_each(|_| self.wake_pool(threads));
        }
        self.promote_turn(&open, block);
    }

    /// Starts a task for anything but a block request.
    fn start_command(self: &Rc<Self>, asker: Asker, command: Request) {
        let account = self.accounts.of(asker.node);
        let Some(permit) = account.commands.try_take() else {
            return self.refuse(asker, "commands are under way");
        };
        let node = self.clone();
        self.machine.spawn("request", async move {
            let _permit = permit;
            let is_list = matches!(command, Request::List { .. });
            let _turn = if is_list { Some(account.list.take().await) } else { None };
            let served = node.serve_other(asker.node, &account, command);
            let outcome = node.machine.contain("request", served).await;
            let outcome = outcome.unwrap_or_else(|defect| Err(of_defect(defect)));
            node.endpoint.reply(asker, outcome.map(|reply| (reply, Payload::empty()))).await
        });
    }

    /// Refuses a request of a client that is at its limit; `are_there` says of what.
    fn refuse(self: &Rc<Self>, asker: Asker, are_there: &'static str) {
        let account = self.accounts.of(asker.node);
        let Some(permit) = account.refusals.try_take() else {
            let why = "it asks for too much, and takes no answers";
            return self.machine.net().give_up(asker.node, why);
        };
        let node = self.clone();
        self.machine.spawn("refusal", async move {
            let _permit = permit;
            let text = format!("too many {are_there} already that {} has asked for", asker.node);
            node.endpoint.reply(asker, Err(Failure::new(FailureKind::Io, text).into())).await
        });
    }

    async fn examine(&self) -> Reply {
        let mut disks = Vec::new();
        for disk in self.machine.disks() {
            let (space, failure) = match disk.space().await {
                Ok(space) => (space, None),
                Err(error) => (None, Some(error.to_string())),
            };
            let space = space.map(|space| (space.bytes, space.free));
            let (device, has_own_pace) = (disk.device(), disk.has_own_pace());
            disks.push(ExaminedDisk { space, device, has_own_pace, failure });
        }
        let date = Some(self.machine.date().as_nanos());
        let computer = self.machine.computer().map(|computer| ExaminedComputer {
            id: computer.id,
            processors: computer.processors,
            worked: computer.worked.as_nanos(),
            worked_for_node: computer.worked_for_node.as_nanos(),
        });
        Reply::Examined { release: RELEASE.into(), date, computer, disks }
    }

    /// Serves everything but block requests.
    async fn serve_other(
        self: &Rc<Self>,
        asker: NodeId,
        account: &Rc<Account>,
        request: Request,
    ) -> Result<Reply, Box<Failure>> {
        match request {
            Request::Describe => Ok(Reply::Described {
                disks: self.machine.disks().len() as u32,
                block_bytes_max: self.settings.block_bytes_max,
            }),
            Request::Examine => Ok(self.examine().await),
            Request::Create { name, file, striping, begun, replaces, stripes } => {
                let label = Label { file, striping, stripe: 0, begun, replaces };
                self.create(asker, account, NewStripes { name: &name, label, stripes: &stripes }).await
            }
            Request::Open { name } => self.open(&name).await,
            Request::List { after } => self.list(account, &after).await,
            Request::Unlink { name } => self.unlink(&name).await,
            Request::Discard { name, file, uncommitted } => {
                self.discard(asker, &name, file, uncommitted).await
            }
            Request::Commit { file, bytes, incarnation } => {
                self.commit(asker, file, bytes, incarnation).await
            }
            Request::Publish { name, file, replaces } => self.publish(&name, file, replaces).await,
            Request::Resize { file, bytes, stripes } => self.resize(asker, file, bytes, &stripes).await,
            Request::Flush { file } => self.flush(asker, file).await,
            Request::Promote { file, stripe, offset } => {
                self.promote(file, stripe, offset);
                Ok(Reply::Done)
            }
            Request::Scrub { name, disk, offset, bytes } => self.scrub(&name, disk, offset, bytes).await,
            Request::Collective(collective) => self.serve_collective(asker, account, *collective).await,
            Request::Directory { memory, entries } => self.take_directory(asker, memory, entries).await,
            Request::MoveListed(listed) => self.serve_listed(asker, account, *listed).await,
            other => Err(Failure::invalid(format!("an I/O node does not serve {other:?}")).into()),
        }
    }
}

/// The failure reported to a client whose request has met a defect.
fn of_defect(defect: Box<machine::Error>) -> Box<Failure> {
    Failure::new(FailureKind::Io, format!("a defect of the I/O node: {defect}")).into()
}

impl<M: Machine> Service for Rc<IoNode<M>> {
    async fn handle(&self, asker: Asker, request: Request, payload: Payload) -> machine::Result<()> {
        match BlockRequest::of(asker, request, payload) {
            Ok(request) => self.dispatch(request).await,
            Err(command) => self.start_command(asker, command),
        }
        Ok(())
    }

    fn peer_gone(&self, peer: NodeId) {
        self.creators.gone(peer);
        self.requests.borrow_mut().forget(peer);
        self.accounts.end(peer);
        self.directories.forget(peer);
        self.listings.forget_if_unread();
        // Those of its collective requests that wait for their turn need not.
        self.collective_done.wake_all();
    }
}
