//! One node's end of its conversations: the calls in flight, and the task that waits for each reply.
//!
//! Every question carries a tag; its answer, which carries the same tag, is put into the [`Mailbox`] of the task that
//! asked. A task may have many questions in flight and takes the answers as they come.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};

use machine::{
    ChecksumMismatch, Class, Delivery, Duration, Instant, Machine, Message, Net, NodeId, Payload, Permits,
    SpanPlace,
};
use slab::Slab;

use crate::error::{Error, Failure, FailureKind, Result};
use crate::noted::{self, RequestOperation};
use crate::patience::{Awaited, Patience};
use crate::protocol::{Frame, Reply, Request, VERSION};
use crate::traffic::Traffic;

/// The tag of a complaint about a frame too garbled to have a tag of its own. No call has it.
const NO_TAG: u64 = 0;

/// Complaints under way; who sends more garbage and does not take them hears no more.
const COMPLAINTS_MAX: u64 = 64;

/// A node's calls under way.
pub struct Endpoint<M: Machine> {
    machine: M,
    calls: RefCell<Slab<Call>>,
    /// Tells apart calls that have the same place in `calls` one after the other.
    generation: Cell<u32>,
    complaints: Permits,
    /// Nodes that are there, speak another version of the protocol, and have been told.
    of_other_versions: RefCell<BTreeSet<NodeId>>,
    /// True if data keep their checksums after their arrival.
    keeps_checksums: bool,
    /// How long others are waited for, if not as long as they are there.
    patience: Option<Rc<Patience<M>>>,
    /// What it has done.
    pub traffic: Traffic,
    /// What it has asked others, and how long that took.
    pub asked: Traffic,
}

struct Call {
    tag: u64,
    to: NodeId,
    mailbox: Rc<Mailbox>,
    token: usize,
    /// What the client was doing.
    span: SpanPlace,
    operation: RequestOperation,
    class: Class,
    asked: Instant,
}

/// An answer: the reply and the data that came with it, or why there is none.
pub type Answer = Result<(Reply, Payload)>;

/// Where the answers to a task's calls arrive. That task alone waits for them.
#[derive(Default)]
pub struct Mailbox {
    answers: RefCell<VecDeque<(usize, Answer)>>,
    waiting: Cell<Option<Waker>>,
}

impl Mailbox {
    /// An empty mailbox.
    pub fn new() -> Rc<Self> {
        Rc::default()
    }

    /// Waits for the next answer: the token its call was begun with, and what came of it.
    pub fn next(&self) -> impl Future<Output = (usize, Answer)> {
        poll_fn(|context| match self.answers.borrow_mut().pop_front() {
            Some(answer) => Poll::Ready(answer),
            None => {
                self.waiting.set(Some(context.waker().clone()));
                Poll::Pending
            }
        })
    }

    /// Puts an answer into it.
    pub fn put(&self, token: usize, answer: Answer) {
        self.answers.borrow_mut().push_back((token, answer));
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }
}

/// The node that asked a question, and how: all that its answer needs to find the way back.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The node.
    pub node: NodeId,
    /// The number of the question, to be repeated in the answer.
    pub tag: u64,
    /// The class of the question. Its answer is as urgent.
    pub class: Class,
    /// What is asked for.
    pub operation: RequestOperation,
    /// When the question had come.
    pub came: Instant,
    /// The length of its header, in bytes.
    pub header_bytes: u64,
}

impl Caller {
    /// The number of the message in which it asked.
    pub fn question(&self) -> u64 {
        noted::question(self.node, self.tag)
    }
}

/// How a node serves the requests it receives.
#[expect(async_fn_in_trait, reason = "a node has one thread")]
pub trait RequestHandler {
    /// Serves a request, or passes it on to be served.
    ///
    /// Nothing else is received meanwhile, so it must not wait for anything that has to be received.
    async fn handle(
        self: &Rc<Self>,
        caller: Caller,
        request: Request,
        payload: Payload,
    ) -> machine::Result<()>;

    /// Hears that a peer is gone.
    fn peer_gone(self: &Rc<Self>, peer: NodeId);
}

/// The failure of a message whose payload does not match its checksums, though no connection has noticed anything.
fn altered(mismatch: ChecksumMismatch) -> Failure {
    let text = format!(
        "{mismatch}: the memory of the sender, or of a computer that had them in its cache, has changed them. Have it \
         tested; data that are right on the disk are read again once its agent has been started anew"
    );
    Failure::new(FailureKind::Io, text)
}

impl<M: Machine> Endpoint<M> {
    /// The end of a client: it waits for another node as long as that is there, and uses data where they arrive.
    pub fn of_client(machine: M) -> Rc<Self> {
        Self::new(machine, false, None)
    }

    /// The end of an I/O node: after so long it gives up others that do not answer or do not take what they are sent,
    /// and it keeps the checksums of data for its disks.
    pub fn of_io_node(machine: M, limit: Option<Duration>) -> Rc<Self> {
        Self::new(machine, true, limit)
    }

    fn new(machine: M, keeps_checksums: bool, limit: Option<Duration>) -> Rc<Self> {
        let (generation, complaints) = (Cell::new(0), Permits::new(COMPLAINTS_MAX));
        let patience = limit.map(|limit| Patience::new(machine.clone(), limit));
        let (calls, traffic, asked) = (RefCell::default(), Traffic::default(), Traffic::default());
        let of_other_versions = RefCell::default();
        Rc::new(Endpoint {
            machine,
            calls,
            generation,
            complaints,
            of_other_versions,
            keeps_checksums,
            patience,
            traffic,
            asked,
        })
    }

    fn begin_wait(&self, peer: NodeId, awaited: Awaited) {
        if let Some(patience) = &self.patience {
            patience.begin(peer, awaited);
        }
    }

    fn end_wait(&self, peer: NodeId, awaited: Awaited) {
        if let Some(patience) = &self.patience {
            patience.end(peer, awaited);
        }
    }

    /// The node's machine.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// Asks `to`; the answer will come to `mailbox` with `token`. Completes when the question has left.
    #[inline]
    pub fn begin(
        &self,
        to: NodeId,
        request: Request,
        payload: Payload,
        mailbox: &Rc<Mailbox>,
        token: usize,
    ) -> impl Future<Output = ()> {
        self.begin_in(request.class(), to, request, payload, mailbox, token)
    }

    /// Asks as [`begin`](Self::begin) does, in a class of the caller's choice.
    // What has to be kept while the question leaves is little, once it is encoded.
    #[inline]
    pub fn begin_in(
        &self,
        class: Class,
        to: NodeId,
        request: Request,
        payload: Payload,
        mailbox: &Rc<Mailbox>,
        token: usize,
    ) -> impl Future<Output = ()> {
        let operation = request.spans().operation;
        let tag = self.enter_call(to, mailbox.clone(), token, operation, class);
        let machine = &self.machine;
        machine.notes().sent(|| noted::question(machine.node(), tag));
        self.traffic.sent(payload.len());
        let header = Frame::Request(tag, request).encode();
        let bytes = header.len();
        // Limits of values are checked where they enter. Of what was missed there, the call fails, and not the node.
        let is_sendable = bytes <= Message::HEADER_BYTES_MAX;
        let sending = is_sendable.then(|| machine.net().send(to, Message { class, header, payload }));
        async move {
            let Some(sending) = sending else {
                let failure =
                    Failure::invalid(format!("a request of {bytes} bytes does not fit into a message"));
                return self.finish_call(to, tag, Err(Error::Remote { node: to, failure }.into()));
            };
            if let Err(error) = sending.await {
                self.finish_call(to, tag, Err(error.into()));
            }
        }
    }

    /// Asks `to` and waits for the answer. A failure it reports is an error here.
    pub async fn call(&self, to: NodeId, request: Request, payload: Payload) -> Answer {
        self.call_in(request.class(), to, request, payload).await
    }

    /// Asks as [`call`](Self::call) does, in a class of the caller's choice.
    pub async fn call_in(&self, class: Class, to: NodeId, request: Request, payload: Payload) -> Answer {
        let _span =
            self.machine.notes().span(request.spans().ask, || [("node", to.0), ("bytes", payload.len())]);
        let mailbox = Mailbox::new();
        self.begin_in(class, to, request, payload, &mailbox, 0).await;
        mailbox.next().await.1
    }

    /// Answers a question. It is no error if the client is gone meanwhile.
    #[inline]
    pub fn reply(
        &self,
        caller: Caller,
        outcome: std::result::Result<(Reply, Payload), Box<Failure>>,
    ) -> impl Future<Output = machine::Result<()>> {
        let failure = outcome.as_ref().err().map(|failure| failure.kind.name());
        let (reply, payload) = outcome.unwrap_or_else(|failure| (Reply::Failed(*failure), Payload::empty()));
        let Caller { node, tag, class, .. } = caller;
        // An answer too long for the class of commands travels as data, even if its request was a command.
        let is_data = payload.len() > Message::CONTROL_PAYLOAD_BYTES_MAX;
        let class = if is_data { class.max(Class::Demand) } else { class };
        let bytes = payload.len();
        self.traffic.sent(bytes);
        let message = Message { class, header: reply_header(tag, reply), payload };
        let sending = self.machine.net().send(node, message);
        self.begin_wait(node, Awaited::Departure);
        async move {
            let notes = self.machine.notes();
            let span = notes.span("answer", || [("node", node.0), ("bytes", bytes)]);
            notes.sent(|| noted::answer(node, tag));
            let sent = sending.await;
            drop(span);
            self.end_wait(node, Awaited::Departure);
            if sent.is_ok() && tag != NO_TAG {
                let took = self.machine.now().since(caller.came);
                self.traffic.served(caller.operation, caller.class, took, failure);
            }
            match sent {
                Err(error) if matches!(*error, machine::Error::PeerGone { .. } | machine::Error::Closed) => {
                    Ok(())
                }
                other => other,
            }
        }
    }

    /// Receives until the network is closed: answers go to their mailboxes, questions to `service`.
    pub async fn listen(self: &Rc<Self>, service: &Rc<impl RequestHandler>) -> machine::Result<()> {
        loop {
            let (from, delivery) = match self.machine.net().receive().await {
                Err(error) if *error == machine::Error::Closed => return Ok(()),
                other => other?,
            };
            match delivery {
                Delivery::Message(message) => {
                    if let Some((client, request, payload)) = self.take_in(from, message) {
                        service.handle(client, request, payload).await?;
                    }
                }
                Delivery::Gone(why) => {
                    self.of_other_versions.borrow_mut().remove(&from);
                    self.fail_calls(from, |node| {
                        Error::Machine(machine::Error::PeerGone { node, why: why.clone() })
                    });
                    service.peer_gone(from);
                }
            }
        }
    }

    /// Gives the question, if the message is one; an answer goes to its mailbox.
    #[inline]
    fn take_in(self: &Rc<Self>, from: NodeId, message: Message) -> Option<(Caller, Request, Payload)> {
        let Message { class, header, payload } = message;
        self.traffic.received(payload.len());
        let caller = |tag, request: &Request| {
            let (operation, came) = (request.spans().operation, self.machine.now());
            Caller { node: from, tag, class, operation, came, header_bytes: header.len() as u64 }
        };
        match Frame::decode(&header) {
            Ok(Frame::Request(tag, request)) => {
                let caller = caller(tag, &request);
                if request.goes_to_disk() {
                    return Some((caller, request, payload));
                }
                match payload.arrived() {
                    Ok(payload) => return Some((caller, request, payload)),
                    Err(mismatch) => self.complain(caller, altered(mismatch)),
                }
            }
            Ok(Frame::Reply(NO_TAG, reply)) => {
                self.fail_calls(from, |node| Error::Protocol { node, why: format!("complains: {reply:?}") });
            }
            Ok(Frame::Reply(tag, Reply::Failed(failure))) => {
                self.finish_call(from, tag, Err(Error::Remote { node: from, failure }.into()));
            }
            Ok(Frame::Reply(tag, reply)) => {
                // An I/O node keeps the checksums of what it gets from a client's memory until it is on the disk.
                let arrived =
                    if self.keeps_checksums { payload.check().map(|()| payload) } else { payload.arrived() };
                let answer = arrived
                    .map(|payload| (reply, payload))
                    .map_err(|mismatch| Error::Remote { node: from, failure: altered(mismatch) }.into());
                self.finish_call(from, tag, answer);
            }
            // What it was meant to be is not known; no answer without a tag is counted.
            Err(why) => {
                self.traffic.bad_message();
                if let Some(theirs) = Frame::other_version(&header)
                    && !self.note_other_version(from, theirs)
                {
                    return None;
                }
                let caller = caller(NO_TAG, &Request::Describe);
                self.complain(caller, Failure::invalid(format!("bad frame: {why}")));
            }
        }
        None
    }

    /// Notes that a node speaks another version of the protocol: what is asked of it has no answer. Returns whether
    /// that is news. Otherwise it has been told, and is not told again: it cannot read a complaint, and complains of
    /// it.
    fn note_other_version(&self, node: NodeId, theirs: u8) -> bool {
        self.fail_calls(node, |node| {
            let (what, theirs, ours) = (node.to_string(), theirs.into(), VERSION.into());
            Error::Machine(machine::Error::OtherVersion { what, theirs, ours })
        });
        self.of_other_versions.borrow_mut().insert(node)
    }

    /// Tells a node that its frame made no sense. In a task of its own: who sends garbage may take no answers, and
    /// others are to be received meanwhile.
    fn complain(self: &Rc<Self>, caller: Caller, failure: Failure) {
        let Some(permit) = self.complaints.try_take() else { return };
        let endpoint = self.clone();
        self.machine.spawn("complaint", async move {
            let _permit = permit;
            endpoint.reply(caller, Err(failure.into())).await
        });
    }

    /// How many questions are under way.
    pub fn calls_under_way(&self) -> u64 {
        self.calls.borrow().len() as u64
    }

    fn enter_call(
        &self,
        to: NodeId,
        mailbox: Rc<Mailbox>,
        token: usize,
        operation: RequestOperation,
        class: Class,
    ) -> u64 {
        self.begin_wait(to, Awaited::Answer);
        let generation = self.generation.get().wrapping_add(1).max(1);
        self.generation.set(generation);
        let mut calls = self.calls.borrow_mut();
        let entry = calls.vacant_entry();
        let tag = (u64::from(generation) << 32) | entry.key() as u64;
        let span = self.machine.notes().here();
        entry.insert(Call { tag, to, mailbox, token, span, operation, class, asked: self.machine.now() });
        tag
    }

    /// Ends the call of this tag to that node. An unexpected answer is dropped.
    fn finish_call(&self, from: NodeId, tag: u64, answer: Answer) {
        let key = (tag & u64::from(u32::MAX)) as usize;
        let mut calls = self.calls.borrow_mut();
        if calls.get(key).is_some_and(|call| call.tag == tag && call.to == from) {
            let call = calls.remove(key);
            drop(calls);
            self.end_wait(from, Awaited::Answer);
            let machine = &self.machine;
            machine.notes().received(call.span, || noted::answer(machine.node(), tag));
            let failure = answer.as_ref().err().map(|error| error.counted_as());
            self.asked.served(call.operation, call.class, machine.now().since(call.asked), failure);
            call.mailbox.put(call.token, answer);
        }
    }

    fn fail_calls(&self, node: NodeId, error: impl Fn(NodeId) -> Error) {
        let calls = self.calls.borrow();
        let lost: Vec<u64> =
            calls.iter().filter(|(_, call)| call.to == node).map(|(_, call)| call.tag).collect();
        drop(calls);
        for tag in lost {
            self.finish_call(node, tag, Err(error(node).into()));
        }
    }
}

/// The header that carries a reply; a failure instead, if no header holds it.
fn reply_header(tag: u64, reply: Reply) -> Vec<u8> {
    let header = Frame::Reply(tag, reply).encode();
    if header.len() <= Message::HEADER_BYTES_MAX {
        return header;
    }
    let text = format!("an answer of {} bytes, longer than any header: ask for less", header.len());
    Frame::Reply(tag, Reply::Failed(Failure::invalid(text))).encode()
}
