//! The I/O node: receives requests, serves them from its cache and disks, replies.
//!
//! ```text
//!  network --> listen --> block requests --> queue --> threads --> cache --> disk queue --> disk
//!                   \---> collective ------> two buffers per disk --------------^
//!                    \--> names, sizes, flush: a task each
//! ```
//!
//! Its modules, in the order in which a request reaches them; the head of each file states its invariants:
//!
//! - this file: the service, and the dispatch of requests.
//! - `client_account.rs`: the requests in flight for each client; `client_quotas.rs`: sharing of limited resources
//!   among clients; `command_admission.rs`: memory and turns of commands.
//! - `block_requests.rs`: requests for parts of blocks, from the queue to the answer; `thread_pool.rs`: the threads
//!   that serve them.
//! - `open_stripes.rs`: the open stripes; `open_stripe.rs`: one of them, with its length (`stripe_length.rs`), its
//!   writers (`unflushed_writers.rs`), and its lost writes (`lost_writes.rs`).
//! - `blocks.rs`: the blocks in memory (the traditional method).
//! - `disks.rs`: the turns at each disk; `stripe_place.rs`: the place of a stripe on them.
//! - `stored_stripes.rs`: stripes on the disks, opened, created, flushed and removed; `stripe_label.rs`: the
//!   object of a name on a disk; `stripe_listing.rs`: lists of the stripes.
//! - `flush.rs`: flushing accepted data to stable storage; `holes.rs`: finding data and holes in stripes.
//! - `collective_admission.rs`: collective requests served at the same time; `disk_directed.rs`: a request with a
//!   dense view; `listed.rs`: a request with lists of extents; `selected.rs`: a request with selections in
//!   closed form.
//! - `staged_requests.rs`: data that clients send in advance for the last two; `block_transfer.rs`: moving the blocks
//!   of all three; `portion_sizes.rs`: the number of blocks moved at once.
//! - `barrier.rs`: barriers of clients at this node: `joint_flushes.rs`, for joint flushes of write caches;
//!   `teams.rs`, for processes with ranks.
//! - `metadata_server.rs`: the metadata server, if this node is one; `open_refs.rs`: the files that clients have open;
//!   `locks.rs`: locks on ranges of files.
//! - `lease_fences.rs`: ended leases of locks, under which no more writes are accepted.
//! - `scrub.rs`: reading back the contents of the disks; `event_recordings.rs`: recording the node's activity on
//!   request.
//! - `cache.rs`, `request_queue.rs`, `schedule/`, `pieces_by_block.rs`, `strided_pieces.rs`: decisions without futures.
//! - `disk_queue.rs`: the queue of a disk; `backlog_detector.rs`: the jobs delayed there; `free_space.rs`: the free
//!   space of a disk.
//! - `counts.rs`: counters of the node's activity; `disk_health.rs`: checks that its disks answer.

mod backlog_detector;
mod barrier;
mod block_requests;
mod block_transfer;
mod blocks;
mod cache;
mod client_account;
mod client_quotas;
mod collective_admission;
mod command_admission;
mod counts;
mod disk_directed;
mod disk_health;
mod disk_queue;
mod disks;
mod event_recordings;
mod flush;
mod free_space;
mod holes;
mod joint_flushes;
mod lease_fences;
mod listed;
mod locks;
mod lost_writes;
mod metadata_server;
mod open_refs;
mod open_stripe;
mod open_stripes;
mod pieces_by_block;
mod portion_sizes;
mod request_queue;
mod schedule;
mod scrub;
mod selected;
mod staged_requests;
mod stored_stripes;
mod strided_pieces;
mod stripe_label;
mod stripe_length;
mod stripe_listing;
mod stripe_place;
mod teams;
mod thread_pool;
mod unflushed_writers;

use std::cell::Cell;
use std::rc::Rc;

// Imported at the root, so that every file of this crate refers to these modules like to those of the crate.
use fs_protocol::{
    Features, RELEASE, coverage, directory, endpoint, error, exchange, keyed_mutex, name, number, protocol,
    range_locks, scheduling, scrub_unit, selected_parts, settings, span_names, time_histogram, traffic,
};
use machine::{Disk, Machine, Net, NodeId, Payload};

use crate::directory::ListedStretch;
use crate::endpoint::{Caller, Endpoint, RequestHandler};
use crate::error::{Failure, FailureKind};
use crate::keyed_mutex::KeyedMutex;
use crate::protocol::{ExaminedComputer, ExaminedDisk, ExaminedHeldUp, FileId, Flushing, Reply, Request};
use crate::settings::IoNodeSettings;
use block_requests::BlockAccess;
use blocks::Blocks;
use client_account::{Account, Accounts};
use collective_admission::Collectives;
use command_admission::{Commands, needs_no_turn};
pub use counts::{CacheCounts, IoNodeCounts, IoNodeDiskCounts, IoNodeService, PoolCounts};
use disk_health::DiskHealth;
use disks::{Disks, HeldUpReads};
use event_recordings::Recordings;
use joint_flushes::{FlushRequest, Memberships};
use listed::Directories;
use metadata_server::MetadataServer;
use open_stripes::Stripes;
use scrub::Scrubber;
use selected::Selections;
pub use stored_stripes::REMOVED_AT_ONCE;
use stored_stripes::StoredStripes;
use stripe_listing::Listings;
use teams::{BarrierEntry, Teams};
use thread_pool::Pool;

/// A running I/O node.
struct IoNode<M: Machine> {
    machine: M,
    endpoint: Rc<Endpoint<M>>,
    settings: IoNodeSettings,
    stripes: Rc<Stripes>,
    disks: Rc<Disks<M>>,
    blocks: Rc<Blocks<M>>,
    pool: Pool<BlockAccess>,
    /// Mutual exclusion for the objects of each file, by name.
    turns: KeyedMutex<String>,
    listings: Listings,
    stored: StoredStripes,
    collectives: Collectives,
    commands: Commands,
    directories: Directories,
    selections: Selections,
    memberships: Memberships<M>,
    teams: Teams,
    scrubber: Scrubber<M>,
    accounts: Accounts,
    recordings: Recordings<M>,
    disk_health: DiskHealth<M>,
    /// Number of requests refused because their client had too many in flight.
    refused: Cell<u64>,
    metadata_server: MetadataServer<M>,
}

/// Serves requests on this node until its network is closed, then writes all dirty blocks to stable storage.
pub async fn serve<M: Machine>(machine: M, settings: IoNodeSettings) -> machine::Result<()> {
    IoNodeService::new(machine, settings).serve().await
}

impl<M: Machine> IoNode<M> {
    fn new(machine: M, settings: IoNodeSettings) -> Self {
        let endpoint = Endpoint::of_io_node(machine.clone(), settings.wait_timeout);
        let (stripes, disks) = (Rc::default(), Rc::new(Disks::new(machine.clone(), &settings)));
        let blocks =
            Blocks::new(machine.clone(), endpoint.clone(), Rc::clone(&stripes), disks.clone(), &settings);
        IoNode {
            memberships: Memberships::new(machine.clone(), endpoint.clone(), settings.incarnation),
            scrubber: Scrubber::new(machine.clone(), disks.clone()),
            endpoint,
            stripes,
            disks,
            blocks: Rc::new(blocks),
            pool: Pool::new(&settings),
            turns: KeyedMutex::default(),
            listings: Listings::default(),
            stored: StoredStripes::default(),
            collectives: Collectives::new(),
            commands: Commands::new(),
            directories: Directories::default(),
            selections: Selections::default(),
            teams: Teams::default(),
            accounts: Accounts::default(),
            recordings: Recordings::new(machine.clone()),
            disk_health: DiskHealth::new(machine.clone()),
            refused: Cell::new(0),
            metadata_server: MetadataServer::new(machine.clone(), settings.incarnation),
            machine,
            settings,
        }
    }

    /// Does work for a client. A defect in it fails that request, not the node.
    async fn contained<T>(
        &self,
        name: &'static str,
        work: impl Future<Output = Result<T, Box<Failure>>>,
    ) -> Result<T, Box<Failure>> {
        self.machine.contain(name, work).await.unwrap_or_else(|defect| Err(of_defect(defect)))
    }

    /// Returns the answer to a write or a flush.
    fn accepted(&self) -> Reply {
        match self.settings.lossless_since() {
            0 => Reply::Done,
            run => Reply::Accepted { run },
        }
    }

    /// Promotes background requests for a block to demand, in all queues.
    fn promote(self: &Rc<Self>, file: FileId, stripe: u32, offset: u64) {
        // No waiting request for a stripe that is not open could succeed.
        let Ok(open) = self.stripes.get(file, stripe) else { return };
        let block = offset / open.block_bytes();
        let start = block * open.block_bytes();
        let part = start..start.saturating_add(open.block_bytes());
        self.make_threads(self.pool.promote(file, stripe, part));
        self.blocks.promote(&open, block);
    }

    /// Starts a task for any request except a block request.
    fn start_command(self: &Rc<Self>, caller: Caller, command: Request) {
        let Some(memory) = self.commands.enter(caller.node, caller.header_bytes) else {
            return self.refuse(caller, "commands under way");
        };
        let (node, account) = (self.clone(), self.accounts.of(caller.node));
        self.machine.spawn("request", async move {
            let _memory = memory;
            let is_list = matches!(command, Request::ListStripes { .. });
            let _list = if is_list { Some(account.list.take().await) } else { None };
            let _turn = if needs_no_turn(&command) {
                None
            } else {
                let Ok(turn) = node.commands.turn(caller.node, &account).await else { return Ok(()) };
                Some(turn)
            };
            Box::pin(node.answer_command(caller, &account, command)).await
        });
    }

    /// Serves a command, and sends the answer.
    async fn answer_command(
        self: &Rc<Self>,
        caller: Caller,
        account: &Rc<Account>,
        command: Request,
    ) -> machine::Result<()> {
        let span = self.machine.notes().span(command.spans().serve, || [("job", caller.node.0)]);
        self.machine.notes().received(span.place(), || caller.question());
        let outcome = self.contained("request", self.serve_command(caller.node, account, command)).await;
        self.endpoint.reply(caller, outcome.map(|reply| (reply, Payload::empty()))).await
    }

    /// Refuses a request of a client at its limit, with the name of the limited requests. Disconnects a
    /// client that receives no answers.
    fn refuse(self: &Rc<Self>, caller: Caller, what: &'static str) {
        self.refused.set(self.refused.get() + 1);
        let account = self.accounts.of(caller.node);
        let Some(permit) = account.refusals.try_take() else {
            let why = "it has too many requests in flight and reads no replies";
            return self.machine.net().give_up(caller.node, why);
        };
        let node = self.clone();
        self.machine.spawn("refusal", async move {
            let _permit = permit;
            let text = format!("{} has too many {what}", caller.node);
            node.endpoint.reply(caller, Err(Failure::new(FailureKind::Io, text).into())).await
        });
    }

    async fn examine(&self) -> Reply {
        let mut disks = Vec::new();
        let health = self.disk_health.ask().await;
        for ((index, disk), health) in self.machine.disks().iter().enumerate().zip(health) {
            let (space, failure) = match health {
                Ok(space) => (space, None),
                Err(failure) => (None, Some(failure)),
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

    /// Serves any request except a block request. Requests that wait for other clients have small futures
    /// here. The future of any other request is on the heap, and is created at the first poll.
    async fn serve_command(
        self: &Rc<Self>,
        client: NodeId,
        account: &Rc<Account>,
        request: Request,
    ) -> Result<Reply, Box<Failure>> {
        match request {
            Request::Collective(collective) => self.serve_collective(client, account, *collective).await,
            Request::MoveListed(listed) => self.serve_listed(client, account, *listed).await,
            Request::MoveSelected(selected) => self.serve_selected(client, account, *selected).await,
            Request::Join { job, member, io_nodes } => {
                self.memberships.join(client, account, member, job, io_nodes).await
            }
            Request::Gather { group, flush, file, for_room } => {
                self.memberships.gather(client, group, FlushRequest { flush, file, for_room }).await
            }
            Request::EnterBarrier { barrier, step: Some(step), contribution, failure } => {
                self.teams.enter_barrier(client, barrier, BarrierEntry { step, contribution }, failure).await
            }
            Request::EnterBarrier { barrier, step: None, contribution, failure }
                if contribution.is_empty() =>
            {
                self.memberships.enter(client, barrier, failure).await
            }
            Request::Leave { group } if self.teams.has(client, group) => {
                self.teams.leave(client, group);
                Ok(Reply::Done)
            }
            Request::Leave { group } => self.memberships.leave(client, group).await,
            Request::FormTeam { name, rank, size } => {
                self.teams.form(client, self.settings.incarnation, name, rank, size).await
            }
            other => Box::pin(self.serve_other(client, account, other)).await,
        }
    }

    /// Serves any request except block requests and requests that wait for other clients.
    async fn serve_other(
        self: &Rc<Self>,
        client: NodeId,
        account: &Rc<Account>,
        request: Request,
    ) -> Result<Reply, Box<Failure>> {
        match request {
            Request::Describe => Ok(Reply::Described {
                disks: self.machine.disks().len() as u32,
                block_bytes_max: self.settings.block_bytes_max,
                features: self.settings.features.bits(),
            }),
            Request::Examine => Ok(self.examine().await),
            Request::Resize { file, stripes } => self.resize(account, file, &stripes).await,
            Request::Promote { file, stripe, offset } => {
                self.promote(file, stripe, offset);
                Ok(Reply::Done)
            }
            Request::FindData { file, stripes }
                if self.settings.features.contains(Features::FINDING_DATA) =>
            {
                self.find_data(file, &stripes).await
            }
            Request::Scrub { file, disk, offset, bytes } => {
                self.stored.check_not_removed(file)?;
                self.scrubber.scrub(client, file, disk, offset, bytes).await
            }
            Request::Directory { memory, entries } => {
                let one_by_one = |(file, entries): (_, Vec<_>)| {
                    (file, entries.into_iter().map(ListedStretch::One).collect())
                };
                self.take_directory(client, memory, entries.into_iter().map(one_by_one).collect()).await
            }
            Request::Stretches { memory, stretches } => self.take_directory(client, memory, stretches).await,
            Request::Record(step) => self.recordings.record(account, step),
            Request::DescribeDisks => Ok(self.describe_disks().await),
            Request::MarkDisks { origin, anew } => self.mark_disks(origin, anew).await,
            Request::Attach { stripes, create } => self.attach(&stripes, create).await,
            Request::Flush(Flushing::Stripes(stripes)) => self.flush_stripes(account, &stripes, &[]).await,
            Request::Flush(Flushing::Team { stripes, members })
                if self.settings.features.contains(Features::TEAM_FLUSHES) =>
            {
                let members: Vec<NodeId> = members.into_iter().map(NodeId).collect();
                self.flush_stripes(account, &stripes, &members).await
            }
            Request::Flush(Flushing::Own) => self.flush_own(client).await,
            Request::Flush(Flushing::Names) => self.metadata_server.flush_tree().await,
            Request::Remove { files } => self.remove_files(&files).await,
            Request::ListStripes { after } => Ok(self.list_stripes(&account.bookmark, after).await),
            Request::Tree { operation, hold } => {
                self.metadata_server.perform(client, account, *operation, hold).await
            }
            Request::CloseFile { number, used, written: None } => {
                Ok(self.metadata_server.close_file(client, number, used))
            }
            Request::CloseFile { number, used, written: Some(written) } => {
                self.metadata_server.close_written(client, number, used, written).await
            }
            Request::ReclaimOpenFiles { files } => {
                self.metadata_server.reclaim_open_files(client, account, &files).await
            }
            Request::Select(selecting) => self.take_selecting(client, *selecting).await,
            Request::Lock { lease, change: Some(change) } => self.metadata_server.lock(client, lease, change),
            Request::Lock { lease, change: None } => Ok(self.metadata_server.renew_lease(client, lease)),
            Request::Fence { leases } => {
                self.metadata_server.locks.check_ended(&leases, self.machine.now())?;
                self.blocks.fences.raise(client, &leases).await.map(|()| Reply::Done)
            }
            other => {
                // Name only the kind: the contents may be as long as a header, and several times as long as
                // text.
                let text = format!("an I/O node does not serve the request \"{}\"", other.spans().ask);
                Err(Failure::invalid(text).into())
            }
        }
    }
}

/// Returns the failure reported to a client whose request has met a defect.
fn of_defect(defect: Box<machine::Error>) -> Box<Failure> {
    Failure::new(FailureKind::Io, format!("a defect of the I/O node: {defect}")).into()
}

impl<M: Machine> RequestHandler for IoNode<M> {
    async fn handle(
        self: &Rc<Self>,
        caller: Caller,
        request: Request,
        payload: Payload,
    ) -> machine::Result<()> {
        match BlockAccess::of(caller, &self.accounts, request, payload) {
            Ok(access) => match access.attach {
                None => self.dispatch(access).await,
                Some(home) => self.start_attaching_write(home, access),
            },
            Err(command) => self.start_command(caller, command),
        }
        Ok(())
    }

    fn peer_disconnected(self: &Rc<Self>, peer: NodeId) {
        self.pool.forget(peer);
        self.accounts.end(peer);
        self.directories.forget(peer);
        self.selections.forget(peer);
        self.stored.client_disconnected(peer);
        self.teams.client_disconnected(peer);
        self.memberships.client_disconnected(peer);
        self.metadata_server.client_disconnected(peer);
        self.blocks.fences.client_disconnected(peer);
        self.listings.forget_if_unread();
        self.collectives.client_disconnected();
        self.commands.client_disconnected();
    }
}
