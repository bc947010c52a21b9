//! The I/O node: receives requests, serves them from its cache and disks, replies.
//!
//! ```text
//!  network --> listen --> block requests --> queue --> threads --> cache --> disk queue --> disk
//!                   \---> collective ------> two buffers per disk --------------^
//!                    \--> names, sizes, flush: a task each
//! ```
//!
//! Its rooms, in the order in which a request comes to them; each keeps its own laws, stated at the head of its file:
//!
//! - this file: the service, and who does what is asked
//! - `account.rs`: what is under way for each client
//! - `pool.rs`: the threads that serve block requests
//! - `stripes.rs`: which stripes are open; `open_stripe.rs`: one of them, with its length (`length.rs`), who has
//!   written to it (`writers.rs`), and what did not get to its disk (`losses.rs`)
//! - `blocks.rs`: the blocks in memory (the traditional method)
//! - `disks.rs`: whose turn it is at each disk; `room.rs`: how much more each can be given; `home.rs`: where on them a
//!   stripe is
//! - `names.rs`: operations on names; `objects.rs`: what the disks have under them; `creators.rs`: who is writing what
//!   is unfinished; `listing.rs`: which names there are; `commit.rs`: how files come to be finished
//! - `numbered.rs`: stripes of files that have a number and no name
//! - `flush.rs`: bringing what was accepted onto the media; `holes.rs`: where stripes have data
//! - `collectives.rs`: collective requests that are served together; `disk_directed.rs`: one on a dense view;
//!   `listed.rs`: one on whatever its members list; `selected.rs`: one on what they select, in closed form; both by
//!   `told.rs`, what has been told, and `partial_blocks.rs`, moving parts of blocks
//! - `rosters.rs`: who flushes write caches together; `teams.rs`: who meets here
//! - `keeper.rs`: the namespace of the set, if this node keeps it; `holds.rs`: who has which of its files open;
//!   `locks.rs`: who has locked which parts of them
//! - `fences.rs`: whose locks have ended, so that nothing more is accepted that was written under them
//! - `scrub.rs`: reading back what lies on the disks; `recordings.rs`: what the node does, recorded on demand
//! - `counts.rs`: what it has done, in numbers; `disk_health.rs`: whether its disks answer

mod account;
mod blocks;
mod collectives;
mod commit;
mod counts;
mod creators;
mod disk_directed;
mod disk_health;
mod disks;
mod fences;
mod flush;
mod holds;
mod holes;
mod home;
mod keeper;
mod length;
mod listed;
mod listing;
mod locks;
mod losses;
mod names;
mod numbered;
mod objects;
mod open_stripe;
mod partial_blocks;
mod pool;
mod recordings;
mod room;
mod rosters;
mod scrub;
mod selected;
mod stripes;
mod teams;
mod told;
mod writers;

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use machine::{BufferPool, Disk, Machine, Net, NodeId, Payload, Work};

use crate::RELEASE;
use crate::directory::ListedStretch;
use crate::endpoint::{Asker, Endpoint, RequestHandler};
use crate::error::{Failure, FailureKind};
use crate::protocol::{
    ExaminedComputer, ExaminedDisk, ExaminedHeldUp, FileId, Label, NumberedStripes, Reply, Request,
};
use crate::request_queue::{Placed, RequestPlace};
use crate::settings::{Answers, IoNodeSettings, Threads};
use account::{Account, Accounts};
use blocks::{Blocks, Data, Writer};
use collectives::Collectives;
pub use counts::{CacheCounts, IoNodeCounts, IoNodeDiskCounts, IoNodeService, PoolCounts};
use disk_health::DiskHealth;
use disks::{Disks, HeldUpReads};
use keeper::Keeper;
use listed::Directories;
pub(crate) use locks::LEASE;
use names::{Names, NewStripes};
use numbered::NumberedFiles;
pub use numbered::REMOVED_AT_ONCE;
use pool::{Pool, Serving};
use recordings::RecordingUnderWay;
use rosters::{Member, Rosters, Wanted};
use selected::Selections;
use stripes::Stripes;
use teams::{Coming, Teams};

/// An I/O node at work.
struct IoNode<M: Machine> {
    machine: M,
    endpoint: Rc<Endpoint<M>>,
    settings: IoNodeSettings,
    stripes: Rc<Stripes>,
    disks: Rc<Disks<M>>,
    blocks: Rc<Blocks<M>>,
    pool: Pool<BlockRequest>,
    names: Names,
    numbered: NumberedFiles,
    collectives: Collectives,
    directories: Directories,
    selections: Selections,
    rosters: Rosters,
    teams: Teams,
    scrub_buffers: BufferPool,
    accounts: Accounts,
    recording: RefCell<Option<RecordingUnderWay>>,
    disk_health: DiskHealth<M>,
    /// Requests refused because their client had too many under way.
    refused: Cell<u64>,
    keeper: Keeper,
}

/// A request for part of one block, and where the answer goes.
struct BlockRequest {
    asker: Asker,
    /// That of the connection over which it has come.
    account: Rc<Account>,
    access: Access,
    file: FileId,
    stripe: u32,
    offset: u64,
    bytes: u64,
    /// What it is noted as.
    serve: &'static str,
}

enum Access {
    /// Alone, if no other read of the block or the next one follows.
    Read { is_alone: bool },
    /// Under the locks of a lease, if it has one.
    Write(Data, Option<u64>),
    /// A write that is answered when its data are at the disk.
    WriteThrough(Data),
}

impl Access {
    /// The data that have come with the request.
    fn data_here(&self) -> Option<&Payload> {
        match self {
            Access::Write(Data::Here(data), _) | Access::WriteThrough(Data::Here(data)) => Some(data),
            _ => None,
        }
    }
}

impl BlockRequest {
    /// The request as a block request, unless it is something else.
    #[inline]
    fn of(asker: Asker, accounts: &Accounts, request: Request, payload: Payload) -> Result<Self, Request> {
        let serve = request.spans().serve;
        let (access, file, stripe, offset, bytes) = match request {
            Request::Read { file, stripe, offset, bytes } => {
                (Access::Read { is_alone: false }, file, stripe, offset, u64::from(bytes))
            }
            Request::ReadAlone { file, stripe, offset, bytes } => {
                (Access::Read { is_alone: true }, file, stripe, offset, u64::from(bytes))
            }
            Request::Write { file, stripe, offset, fetch } => {
                let data = Data::of(asker, fetch, payload);
                let bytes = data.bytes();
                (Access::Write(data, None), file, stripe, offset, bytes)
            }
            Request::WriteUnderLease { lease, file, stripe, offset } => {
                let data = Data::Here(payload);
                let bytes = data.bytes();
                (Access::Write(data, Some(lease)), file, stripe, offset, bytes)
            }
            Request::WriteThrough { file, stripe, offset, fetch } => {
                let data = Data::of(asker, fetch, payload);
                let bytes = data.bytes();
                (Access::WriteThrough(data), file, stripe, offset, bytes)
            }
            command => return Err(command),
        };
        let account = accounts.of(asker.node);
        Ok(BlockRequest { asker, account, access, file, stripe, offset, bytes, serve })
    }
}

impl Placed for BlockRequest {
    fn place(&self) -> RequestPlace {
        (self.file, self.stripe, self.offset)
    }
}

/// Serves requests on this node until its network is closed, then writes out what its cache still holds.
pub async fn serve<M: Machine>(machine: M, settings: IoNodeSettings) -> machine::Result<()> {
    IoNodeService::new(machine, settings).serve().await
}

impl<M: Machine> IoNode<M> {
    fn new(machine: M, settings: IoNodeSettings) -> Self {
        let endpoint = Endpoint::with_patience(machine.clone(), settings.patience);
        let (stripes, disks) = (Rc::default(), Rc::new(Disks::new(machine.clone(), &settings)));
        let blocks =
            Blocks::new(machine.clone(), endpoint.clone(), Rc::clone(&stripes), disks.clone(), &settings);
        IoNode {
            endpoint,
            stripes,
            disks,
            blocks: Rc::new(blocks),
            pool: Pool::new(&settings),
            names: Names::default(),
            numbered: NumberedFiles::default(),
            collectives: Collectives::new(),
            directories: Directories::default(),
            selections: Selections::default(),
            rosters: Rosters::default(),
            teams: Teams::default(),
            scrub_buffers: BufferPool::new(machine.disks().len() as u64 * scrub::BYTES_PER_DISK),
            accounts: Accounts::default(),
            recording: RefCell::default(),
            disk_health: DiskHealth::new(machine.clone()),
            refused: Cell::new(0),
            keeper: Keeper::new(machine.now()),
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
            let Serving { mut request, class, background: _until_served } = self.pool.next().await;
            // It may have been promoted.
            request.asker.class = class;
            self.serve_block_request(request, serving).await?;
        }
    }

    /// Makes threads of the pool.
    fn make_threads(self: &Rc<Self>, count: usize) {
        for _ in 0..count {
            self.machine.spawn("request thread", self.clone().run_thread());
        }
    }

    /// Gives a block request to a thread.
    async fn dispatch(self: &Rc<Self>, request: BlockRequest) {
        if let Some(data) = request.access.data_here() {
            self.machine.compute(Work::AcceptData { bytes: data.len() }).await;
        }
        match self.settings.threads {
            Threads::Pool(_) => {
                self.machine.compute(Work::WakeThread).await;
                if !self.pool.has_room_for(request.asker.node) {
                    let asker = request.asker;
                    // Its data go first: what is refused is to hold no memory.
                    drop(request);
                    return self.refuse(asker, "block requests are waiting");
                }
                let (Asker { node, class, .. }, bytes) = (request.asker, request.bytes);
                let needs_thread = self.pool.put(class, node, bytes, request);
                self.make_threads(usize::from(needs_thread));
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
        let BlockRequest { asker, account, access, file, stripe, offset, bytes, serve } = request;
        let about = || [("job", asker.node.0), ("file", file.0), ("offset", offset), ("bytes", bytes)];
        let span = self.machine.notes().span(serve, about);
        self.machine.notes().received(span.place(), || asker.question());
        serving.set(Some(asker));
        self.machine.compute(Work::HandleRequest).await;
        let reads_on = matches!(access, Access::Read { is_alone: false });
        let outcome = match access {
            Access::Read { is_alone } => {
                let data = self.blocks.read(file, stripe, (offset, bytes), is_alone, asker.into()).await;
                data.map(|data| (Reply::Done, data))
            }
            Access::Write(data, lease) => {
                let writer = Writer { asker, account: &account, lease };
                let written = self.blocks.write(file, stripe, offset, data, writer).await;
                written.map(|()| (self.accepted(), Payload::empty()))
            }
            Access::WriteThrough(data) => {
                let writer = Writer { asker, account: &account, lease: None };
                let written = self.blocks.write(file, stripe, offset, data, writer).await;
                if written.is_ok() {
                    serving.set(None);
                    self.answer_when_written(asker, file, stripe, offset..offset + bytes);
                    return Ok(());
                }
                written.map(|()| (self.accepted(), Payload::empty()))
            }
        };
        let prefetches = reads_on && outcome.is_ok();
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
            let ahead = Asker { class: self.settings.prefetching.class(asker.class), ..asker };
            self.blocks.prefetch(file, stripe, offset, ahead.into());
        }
        Ok(())
    }

    /// Starts a task that answers a write when its data are at the disk, so that it keeps no thread meanwhile.
    fn answer_when_written(self: &Rc<Self>, asker: Asker, file: FileId, stripe: u32, range: Range<u64>) {
        let node = self.clone();
        self.machine.spawn("write-through", async move {
            let written = node.blocks.write_through(file, stripe, range);
            let written = node.machine.contain("write-through", written).await;
            let outcome = written.unwrap_or_else(|defect| Err(of_defect(defect)));
            let outcome = outcome.map(|()| (node.accepted(), Payload::empty()));
            let answered = node.endpoint.reply(asker, outcome).await;
            node.request_done(asker);
            answered
        });
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
        self.make_threads(self.pool.done(asker.node));
    }

    /// The answer to a write or a flush.
    fn accepted(&self) -> Reply {
        match self.settings.lossless_since() {
            0 => Reply::Done,
            incarnation => Reply::Accepted { incarnation },
        }
    }

    /// Serves requests in the background for a block as if on demand, wherever they wait.
    fn promote(self: &Rc<Self>, file: FileId, stripe: u32, offset: u64) {
        // Of a stripe that is not open nothing waits that could succeed.
        let Ok(open) = self.stripes.get(file, stripe) else { return };
        let block = offset / open.block_bytes();
        let start = block * open.block_bytes();
        let part = start..start.saturating_add(open.block_bytes());
        self.make_threads(self.pool.promote(file, stripe, part));
        self.blocks.promote(&open, block);
    }

    /// Starts a task for anything but a block request.
    fn start_command(self: &Rc<Self>, asker: Asker, command: Request) {
        let account = self.accounts.of(asker.node);
        let Some(permit) = account.commands.try_take() else {
            return self.refuse(asker, "commands are under way");
        };
        let node = self.clone();
        let serve = command.spans().serve;
        self.machine.spawn("request", async move {
            let _permit = permit;
            let span = node.machine.notes().span(serve, || [("job", asker.node.0)]);
            node.machine.notes().received(span.place(), || asker.question());
            let is_list = matches!(command, Request::List { .. } | Request::ListNumbered { .. });
            let _turn = if is_list { Some(account.list.take().await) } else { None };
            let served = node.serve_other(asker.node, &account, command);
            let outcome = node.machine.contain("request", served).await;
            let outcome = outcome.unwrap_or_else(|defect| Err(of_defect(defect)));
            node.endpoint.reply(asker, outcome.map(|reply| (reply, Payload::empty()))).await
        });
    }

    /// Starts a task that opens a stripe of a numbered file, or makes it, and then has a thread write to it.
    fn start_numbered_write(self: &Rc<Self>, stripes: NumberedStripes, write: BlockRequest) {
        let asker = write.asker;
        let Some(permit) = write.account.commands.try_take() else {
            // Its data go first: what is refused is to hold no memory.
            drop(write);
            return self.refuse(asker, "commands are under way");
        };
        let node = self.clone();
        self.machine.spawn("request", async move {
            let permit = permit;
            let span = node.machine.notes().span("attach", || [("job", asker.node.0)]);
            let attached = node.machine.contain("request", node.attach(&stripes, true)).await;
            drop((permit, span));
            match attached.unwrap_or_else(|defect| Err(of_defect(defect))) {
                Ok(_) => node.dispatch(write).await,
                Err(failure) => return node.endpoint.reply(asker, Err(failure)).await,
            }
            Ok(())
        });
    }

    /// Refuses a request of a client that is at its limit; `are_there` says of what.
    fn refuse(self: &Rc<Self>, asker: Asker, are_there: &'static str) {
        self.refused.set(self.refused.get() + 1);
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
        for (index, disk) in self.machine.disks().iter().enumerate() {
            let (space, failure) = match disk.space().await {
                Ok(space) => (space, None),
                Err(error) => (None, Some(error.to_string())),
            };
            let space = space.map(|space| (space.bytes, space.free));
            let (device, has_own_pace) = (disk.device(), disk.has_own_pace());
            let held_up = self.disks.held_up(index).map(|(HeldUpReads { reads, writes_most }, ago)| {
                ExaminedHeldUp { reads, writes_most, ago: ago.as_nanos() }
            });
            disks.push(ExaminedDisk { space, device, has_own_pace, failure, held_up });
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
            Request::List { after } => self.list(&account.bookmark, &after).await,
            Request::Unlink { name } => self.unlink(&name).await,
            Request::Discard { name, file, uncommitted } => {
                self.discard(asker, &name, file, uncommitted).await
            }
            Request::Commit { file, bytes, incarnation } => {
                self.commit(asker, file, bytes, incarnation).await
            }
            Request::Publish { name, file, replaces } => self.publish(&name, file, replaces).await,
            Request::Resize { file, bytes, stripes } => {
                self.resize(asker, account, file, bytes, &stripes).await
            }
            Request::Flush { file } => self.flush(asker, file).await,
            Request::Promote { file, stripe, offset } => {
                self.promote(file, stripe, offset);
                Ok(Reply::Done)
            }
            Request::FindData { file, stripes } => self.find_data(file, &stripes).await,
            Request::Scrub { name, disk, offset, bytes } => {
                self.scrub(asker, &name, disk, offset, bytes).await
            }
            Request::Collective(collective) => self.serve_collective(asker, account, *collective).await,
            Request::Directory { memory, entries } => {
                let one_by_one = |(file, entries): (_, Vec<_>)| {
                    (file, entries.into_iter().map(ListedStretch::One).collect())
                };
                self.take_directory(asker, memory, entries.into_iter().map(one_by_one).collect()).await
            }
            Request::Stretches { memory, stretches } => self.take_directory(asker, memory, stretches).await,
            Request::MoveListed(listed) => self.serve_listed(asker, account, *listed).await,
            Request::Join { job, member, io_nodes } => {
                self.join(account, Member { node: asker, name: member }, job, io_nodes).await
            }
            Request::Gather { group, flush, file } => {
                self.gather(asker, group, Wanted { flush, file, for_room: false }).await
            }
            Request::GatherForRoom { group, flush } => {
                self.gather(asker, group, Wanted { flush, file: None, for_room: true }).await
            }
            Request::Enter { meeting, failure } => {
                self.rosters.enter(asker, meeting, failure, self.machine.now()).await
            }
            Request::Leave { group } if self.teams.has(asker, group) => {
                self.teams.leave(asker, group);
                Ok(Reply::Done)
            }
            Request::Leave { group } => self.rosters.leave(asker, group).await,
            Request::StartRecording => self.start_recording(),
            Request::ReadRecordingClock => self.recording_clock(),
            Request::StopRecording => self.stop_recording(account),
            Request::FetchRecording => Ok(recordings::next_part(account)),
            Request::DescribeDisks => Ok(self.describe_disks().await),
            Request::MarkDisks { origin, anew } => self.mark_disks(origin, anew).await,
            Request::Attach { stripes, create } => self.attach(&stripes, create).await,
            Request::FlushNumbered(stripes) => self.flush_numbered(asker, &stripes).await,
            Request::FlushOwn => self.flush_own(asker).await,
            Request::RemoveNumbered { files } => self.remove_numbered(&files).await,
            Request::ListNumbered { after } => self.list_numbered(&account.bookmark, after).await,
            Request::Tree { operation, hold } => self.perform(asker, *operation, hold).await,
            Request::LetGo { number } => Ok(self.let_go(asker, number)),
            Request::LetGoWritten { number, written } => self.let_go_written(asker, number, written).await,
            Request::HoldAgain { files } => self.hold_again(asker, &files),
            Request::FlushTree => self.flush_tree().await,
            Request::Select(selecting) => self.take_selecting(asker, *selecting).await,
            Request::MoveSelected(selected) => self.serve_selected(asker, account, *selected).await,
            Request::FormTeam { name, rank, size } => {
                self.teams.form(asker, self.settings.incarnation, name, rank, size).await
            }
            Request::MeetTeam { meeting, step, value, failure } => {
                self.teams.meet(asker, meeting, Coming { step, value }, failure).await
            }
            Request::Lock(lock) => self.lock(asker, lock),
            Request::RenewLease { lease } => Ok(self.renew_lease(lease)),
            Request::Fence { leases } => self.blocks.fences.raise(&leases).map(|()| Reply::Done),
            other => Err(Failure::invalid(format!("an I/O node does not serve {other:?}")).into()),
        }
    }
}

/// The failure reported to a client whose request has met a defect.
fn of_defect(defect: Box<machine::Error>) -> Box<Failure> {
    Failure::new(FailureKind::Io, format!("a defect of the I/O node: {defect}")).into()
}

impl<M: Machine> RequestHandler for Rc<IoNode<M>> {
    async fn handle(&self, asker: Asker, request: Request, payload: Payload) -> machine::Result<()> {
        if let Request::WriteNumbered { file, striping, stripe, disk, offset } = request {
            let serve = request.spans().serve;
            let (bytes, access) = (payload.len(), Access::Write(Data::Here(payload), None));
            let account = self.accounts.of(asker.node);
            let write = BlockRequest { asker, account, access, file, stripe, offset, bytes, serve };
            let stripes = NumberedStripes { file, striping, places: vec![(stripe, disk)] };
            self.start_numbered_write(stripes, write);
            return Ok(());
        }
        match BlockRequest::of(asker, &self.accounts, request, payload) {
            Ok(request) => self.dispatch(request).await,
            Err(command) => self.start_command(asker, command),
        }
        Ok(())
    }

    fn peer_gone(&self, peer: NodeId) {
        self.names.creators.gone(peer);
        self.pool.forget(peer);
        self.accounts.end(peer);
        self.directories.forget(peer);
        self.selections.forget(peer);
        self.numbered.gone(peer);
        self.teams.gone(peer);
        self.rosters.gone(peer, self.machine.now());
        self.keeper.gone(peer, self.machine.now());
        self.names.listings.forget_if_unread();
        self.collectives.client_gone();
    }
}
