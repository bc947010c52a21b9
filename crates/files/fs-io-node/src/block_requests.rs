//! Requests for parts of blocks: each waits in the pool's queue, is served by one of its threads, and is
//! answered.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use machine::{Machine, Payload, Work};

use super::blocks::{Data, Writer};
use super::client_account::{Account, Accounts};
use super::thread_pool::Serving;
use super::{IoNode, of_defect};
use crate::Features;
use crate::endpoint::Caller;
use crate::error::Failure;
use crate::protocol::{BlockWrite, FileId, Reply, Request, StripeHome, StripePlaces, WrittenUntil};
use crate::request_queue::{Placed, RequestPlace};
use crate::settings::{Answers, Threads};

/// A request for part of one block, with the destination of its answer.
pub(super) struct BlockAccess {
    pub(super) caller: Caller,
    /// The account of the connection over which it arrived.
    pub(super) account: Rc<Account>,
    pub(super) access: AccessKind,
    pub(super) file: FileId,
    pub(super) stripe: u32,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// Stripe to be opened or created before the write, if it is not known to be open.
    pub(super) attach: Option<StripeHome>,
    /// Name of its span in recordings.
    pub(super) serve: &'static str,
}

pub(super) enum AccessKind {
    /// `is_alone`: the client will read neither the rest of the block nor the next one.
    Read { is_alone: bool },
    Write {
        data: Data,
        /// Lease of the locks under which the data were written.
        lease: Option<u64>,
        until: WrittenUntil,
    },
}

impl AccessKind {
    /// Returns the data that arrived with the request.
    fn data_here(&self) -> Option<&Payload> {
        match self {
            AccessKind::Write { data: Data::Here(data), .. } => Some(data),
            _ => None,
        }
    }
}

impl BlockAccess {
    /// Converts a block request; returns any other request as the error.
    #[inline]
    pub(super) fn of(
        caller: Caller,
        accounts: &Accounts,
        request: Request,
        payload: Payload,
    ) -> Result<Self, Request> {
        let serve = request.spans().serve;
        let (access, (file, stripe, offset), bytes, attach) = match request {
            Request::Read { file, stripe, offset, bytes, is_alone } => {
                (AccessKind::Read { is_alone }, (file, stripe, offset), u64::from(bytes), None)
            }
            Request::Write(BlockWrite { file, stripe, offset, fetch, until, lease, attach }) => {
                let data = Data::of(caller, fetch, payload);
                let bytes = data.bytes();
                (AccessKind::Write { data, lease, until }, (file, stripe, offset), bytes, attach)
            }
            command => return Err(command),
        };
        let account = accounts.of(caller.node);
        Ok(BlockAccess { caller, account, access, file, stripe, offset, bytes, attach, serve })
    }
}

impl Placed for BlockAccess {
    fn place(&self) -> RequestPlace {
        (self.file, self.stripe, self.offset)
    }
}

impl<M: Machine> IoNode<M> {
    /// Runs a thread of the pool. A defect fails only the request in service.
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
    async fn serve_requests(self: &Rc<Self>, serving: &Cell<Option<Caller>>) -> machine::Result<()> {
        loop {
            let Serving { mut request, class, background: _until_served } = self.pool.next().await;
            // The request may have been promoted.
            request.caller.class = class;
            self.serve_block_request(request, serving).await?;
        }
    }

    /// Starts `count` threads of the pool.
    pub(super) fn make_threads(self: &Rc<Self>, count: usize) {
        for _ in 0..count {
            self.machine.spawn("request thread", self.clone().run_thread());
        }
    }

    /// Passes a block request to a thread.
    pub(super) async fn dispatch(self: &Rc<Self>, request: BlockAccess) {
        if let Some(data) = request.access.data_here() {
            self.machine.compute(Work::AcceptData { bytes: data.len() }).await;
        }
        match self.settings.threads {
            Threads::Pool(_) => {
                self.machine.compute(Work::WakeThread).await;
                if !self.pool.has_room_for(request.caller.node) {
                    let caller = request.caller;
                    // Drop the data first: a refused request must hold no memory.
                    drop(request);
                    return self.refuse(caller, "block requests waiting");
                }
                let (Caller { node, class, .. }, bytes) = (request.caller, request.bytes);
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

    /// Serves a block request. `serving` has its caller until the answer begins to leave.
    async fn serve_block_request(
        self: &Rc<Self>,
        request: BlockAccess,
        serving: &Cell<Option<Caller>>,
    ) -> machine::Result<()> {
        let BlockAccess { caller, account, access, file, stripe, offset, bytes, serve, .. } = request;
        let about = || [("job", caller.node.0), ("file", file.0), ("offset", offset), ("bytes", bytes)];
        let span = self.machine.notes().span(serve, about);
        self.machine.notes().received(span.place(), || caller.question());
        serving.set(Some(caller));
        self.machine.compute(Work::HandleRequest).await;
        let reads_on = matches!(access, AccessKind::Read { is_alone: false });
        let outcome = match access {
            AccessKind::Read { is_alone } => {
                let data = self.blocks.read(file, stripe, (offset, bytes), is_alone, caller.into()).await;
                data.map(|data| (Reply::Done, data))
            }
            AccessKind::Write { data, lease, until } => {
                let writer = Writer { caller, account: &account, lease };
                let written = self.blocks.write(file, stripe, offset, data, writer).await;
                if until == WrittenUntil::AtDisk && written.is_ok() {
                    serving.set(None);
                    self.answer_when_written(caller, file, stripe, offset..offset + bytes);
                    return Ok(());
                }
                written.map(|()| (self.accepted(), Payload::empty()))
            }
        };
        let prefetches = reads_on && outcome.is_ok();
        serving.set(None);
        match self.settings.answers {
            Answers::ByThread => {
                let answered = self.endpoint.reply(caller, outcome).await;
                self.request_done(caller);
                answered?;
            }
            Answers::Apart => self.start_answer(caller, outcome),
        }
        if prefetches {
            let ahead = Caller { class: self.settings.prefetching.class(caller.class), ..caller };
            self.blocks.prefetch(file, stripe, offset, ahead.into());
        }
        Ok(())
    }

    /// Starts a task that answers a write when its data are at the disk, so that the wait occupies no thread.
    fn answer_when_written(self: &Rc<Self>, caller: Caller, file: FileId, stripe: u32, range: Range<u64>) {
        let node = self.clone();
        self.machine.spawn("write-through", async move {
            let written = node.blocks.write_through(file, stripe, range);
            let outcome = node.contained("write-through", written).await;
            let outcome = outcome.map(|()| (node.accepted(), Payload::empty()));
            let answered = node.endpoint.reply(caller, outcome).await;
            node.request_done(caller);
            answered
        });
    }

    /// Answers a block request that could not be served because of a defect.
    fn answer_defect(self: &Rc<Self>, caller: Option<Caller>, defect: Box<machine::Error>) {
        if let Some(caller) = caller {
            self.start_answer(caller, Err(of_defect(defect)));
        }
    }

    /// Starts a task that answers a block request.
    fn start_answer(self: &Rc<Self>, caller: Caller, outcome: Result<(Reply, Payload), Box<Failure>>) {
        let node = self.clone();
        self.machine.spawn("answer", async move {
            let outcome = node.endpoint.reply(caller, outcome).await;
            node.request_done(caller);
            outcome
        });
    }

    /// Frees the service slot of a request whose answer has left, so that other requests can be served.
    fn request_done(self: &Rc<Self>, caller: Caller) {
        self.make_threads(self.pool.done(caller.node));
    }

    /// Starts a task that opens or creates a stripe of a file, and then passes the write to a thread.
    pub(super) fn start_attaching_write(self: &Rc<Self>, home: StripeHome, write: BlockAccess) {
        let BlockAccess { caller, file, stripe, .. } = write;
        let stripes = StripePlaces { file, striping: home.striping, places: vec![(stripe, home.disk)] };
        let Some(memory) = self.commands.enter(caller.node, caller.header_bytes) else {
            // Drop the data first: a refused request must hold no memory.
            drop(write);
            return self.refuse(caller, "commands under way");
        };
        let node = self.clone();
        self.machine.spawn("request", async move {
            let memory = memory;
            let Ok(turn) = node.commands.turn(caller.node, &write.account).await else { return Ok(()) };
            let span = node.machine.notes().span("attach", || [("job", caller.node.0)]);
            let attached = match node.settings.features.contains(Features::ATTACHING_WRITES) {
                true => node.contained("request", Box::pin(node.attach(&stripes, true))).await,
                false => Err(Failure::invalid("this I/O node attaches no stripe with a write").into()),
            };
            drop((turn, memory, span));
            match attached {
                Ok(_) => node.dispatch(write).await,
                Err(failure) => return node.endpoint.reply(caller, Err(failure)).await,
            }
            Ok(())
        });
    }
}
