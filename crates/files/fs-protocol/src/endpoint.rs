//! One node's end of its conversations: the calls in flight, and the task that waits for each reply.
//!
//! Every request carries a tag, and its answer carries the same tag. The answer is put into the [`Mailbox`]
//! of the task that sent the request. A task may have many requests in flight and takes their answers in
//! order of arrival.

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
use crate::protocol::{Frame, Reply, Request, VERSION};
use crate::span_names::{self, RequestOperation};
use crate::traffic::Traffic;
use crate::wait_timeouts::{Awaited, WaitTimeouts};

/// Tag of a complaint about a frame too garbled to contain a tag. No call has this tag.
const NO_TAG: u64 = 0;

/// Limit of complaints in flight. A peer that sends more garbage without receiving the complaints gets no
/// further ones.
const COMPLAINTS_MAX: u64 = 64;

/// A node's calls in flight.
pub struct Endpoint<M: Machine> {
    machine: M,
    calls: RefCell<Slab<Call>>,
    /// Distinguishes calls that use the same slot of `calls` one after the other.
    generation: Cell<u32>,
    complaints: Permits,
    /// Connected nodes of another protocol version to which a complaint was sent.
    of_other_versions: RefCell<BTreeSet<NodeId>>,
    /// True if data keep their checksums after arrival.
    keeps_checksums: bool,
    /// Limit of the wait for other nodes; `None` to wait as long as they are connected.
    wait_timeouts: Option<Rc<WaitTimeouts<M>>>,
    /// Counters of served requests and moved bytes.
    pub traffic: Traffic,
    /// Counters of requests to other nodes and their response times.
    pub asked: Traffic,
}

struct Call {
    tag: u64,
    to: NodeId,
    mailbox: Rc<Mailbox>,
    token: usize,
    /// The client's span in which the request was sent.
    span: SpanPlace,
    operation: RequestOperation,
    class: Class,
    asked: Instant,
}

/// An answer: the reply with its data, or the reason for their absence.
pub type Answer = Result<(Reply, Payload)>;

/// Receives the answers to one task's calls. Only that task waits on it.
#[derive(Default)]
pub struct Mailbox {
    answers: RefCell<VecDeque<(usize, Answer)>>,
    waiting: Cell<Option<Waker>>,
}

impl Mailbox {
    /// Returns an empty mailbox.
    pub fn new() -> Rc<Self> {
        Rc::default()
    }

    /// Waits for the next answer. Returns the token of its call, and the answer.
    pub fn next(&self) -> impl Future<Output = (usize, Answer)> {
        poll_fn(|context| match self.answers.borrow_mut().pop_front() {
            Some(answer) => Poll::Ready(answer),
            None => {
                self.waiting.set(Some(context.waker().clone()));
                Poll::Pending
            }
        })
    }

    /// Puts an answer into the mailbox and wakes its task.
    pub fn put(&self, token: usize, answer: Answer) {
        self.answers.borrow_mut().push_back((token, answer));
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }
}

/// The sender of a request, with everything needed to send the answer back.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The node that sent the request.
    pub node: NodeId,
    /// Tag of the request, to be repeated in the answer.
    pub tag: u64,
    /// Class of the request. The answer is as urgent.
    pub class: Class,
    /// Operation of the request.
    pub operation: RequestOperation,
    /// Arrival time of the request.
    pub came: Instant,
    /// Length of the request's header in bytes.
    pub header_bytes: u64,
}

impl Caller {
    /// Returns the number of the message that carried the request.
    pub fn question(&self) -> u64 {
        span_names::question(self.node, self.tag)
    }
}

/// Serves the requests that a node receives.
#[expect(async_fn_in_trait, reason = "a node has one thread")]
pub trait RequestHandler {
    /// Serves a request, or passes it on to be served.
    ///
    /// The node receives no other message before this completes, so it must not wait for anything that has to
    /// be received.
    async fn handle(
        self: &Rc<Self>,
        caller: Caller,
        request: Request,
        payload: Payload,
    ) -> machine::Result<()>;

    /// Handles the disconnect of a peer.
    fn peer_disconnected(self: &Rc<Self>, peer: NodeId);
}

/// Returns the failure of a message whose payload does not match its checksums although no connection
/// reported an error.
fn altered(mismatch: ChecksumMismatch) -> Failure {
    let text = format!(
        "{mismatch}: the memory of the sender, or of a computer that cached them, altered them. Test that \
         memory, and restart its agent: data that are correct on the disk are then read again"
    );
    Failure::new(FailureKind::Io, text)
}

impl<M: Machine> Endpoint<M> {
    /// Creates the endpoint of a client. It waits for another node as long as that is connected, and uses
    /// data where they arrive.
    pub fn of_client(machine: M) -> Rc<Self> {
        Self::new(machine, false, None)
    }

    /// Creates the endpoint of an I/O node. It disconnects other nodes that do not answer, or do not receive
    /// messages, for `limit`. It keeps the checksums of data for its disks.
    pub fn of_io_node(machine: M, limit: Option<Duration>) -> Rc<Self> {
        Self::new(machine, true, limit)
    }

    fn new(machine: M, keeps_checksums: bool, limit: Option<Duration>) -> Rc<Self> {
        let (generation, complaints) = (Cell::new(0), Permits::new(COMPLAINTS_MAX));
        let wait_timeouts = limit.map(|limit| WaitTimeouts::new(machine.clone(), limit));
        let (calls, traffic, asked) = (RefCell::default(), Traffic::default(), Traffic::default());
        let of_other_versions = RefCell::default();
        Rc::new(Endpoint {
            machine,
            calls,
            generation,
            complaints,
            of_other_versions,
            keeps_checksums,
            wait_timeouts,
            traffic,
            asked,
        })
    }

    fn begin_wait(&self, peer: NodeId, awaited: Awaited) {
        if let Some(wait_timeouts) = &self.wait_timeouts {
            wait_timeouts.begin(peer, awaited);
        }
    }

    fn end_wait(&self, peer: NodeId, awaited: Awaited) {
        if let Some(wait_timeouts) = &self.wait_timeouts {
            wait_timeouts.end(peer, awaited);
        }
    }

    /// Returns the node's machine.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// Sends a request to `to`. The answer arrives in `mailbox` with `token`. Completes when the request has
    /// left.
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

    /// Sends a request like [`begin`](Self::begin), in a class of the caller's choice.
    // Encode before the first await: little has to be kept while the encoded request leaves.
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
        machine.notes().sent(|| span_names::question(machine.node(), tag));
        self.traffic.sent(payload.len());
        let header = Frame::Request(tag, request).encode();
        let bytes = header.len();
        // Values are checked where they enter the program. If a check was missed there, only the call fails,
        // not the node.
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

    /// Sends a request to `to` and waits for the answer. A failure reported by that node is returned as an
    /// error.
    pub async fn call(&self, to: NodeId, request: Request, payload: Payload) -> Answer {
        self.call_in(request.class(), to, request, payload).await
    }

    /// Sends a request like [`call`](Self::call), in a class of the caller's choice.
    pub async fn call_in(&self, class: Class, to: NodeId, request: Request, payload: Payload) -> Answer {
        let _span =
            self.machine.notes().span(request.spans().ask, || [("node", to.0), ("bytes", payload.len())]);
        let mailbox = Mailbox::new();
        self.begin_in(class, to, request, payload, &mailbox, 0).await;
        mailbox.next().await.1
    }

    /// Answers a request. Succeeds even if the client disconnects before the answer has left.
    #[inline]
    pub fn reply(
        &self,
        caller: Caller,
        outcome: std::result::Result<(Reply, Payload), Box<Failure>>,
    ) -> impl Future<Output = machine::Result<()>> {
        let failure = outcome.as_ref().err().map(|failure| failure.kind.name());
        let (reply, payload) = outcome.unwrap_or_else(|failure| (Reply::Failed(*failure), Payload::empty()));
        let Caller { node, tag, class, .. } = caller;
        // An answer too long for the control class travels as data, even if its request was a control
        // message.
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
            notes.sent(|| span_names::answer(node, tag));
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

    /// Receives until the network is closed: puts answers into their mailboxes, and passes requests to
    /// `service`.
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
                    service.peer_disconnected(from);
                }
            }
        }
    }

    /// Returns the request, if the message is one. Puts an answer into its mailbox.
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
                // An I/O node keeps the checksums of data fetched from a client's memory until the data are
                // on the disk.
                let arrived =
                    if self.keeps_checksums { payload.check().map(|()| payload) } else { payload.arrived() };
                let answer = arrived
                    .map(|payload| (reply, payload))
                    .map_err(|mismatch| Error::Remote { node: from, failure: altered(mismatch) }.into());
                self.finish_call(from, tag, answer);
            }
            // The intended message is unknown, so a placeholder request is used: answers without a tag are
            // not counted.
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

    /// Fails all calls to a node that uses another version of the protocol, since they will get no answer.
    /// Returns true if this node did not know about the other version. Otherwise the peer has had its
    /// complaint and gets no second one: it cannot decode a complaint, and would complain about it.
    fn note_other_version(&self, node: NodeId, theirs: u8) -> bool {
        self.fail_calls(node, |node| {
            let (what, theirs, ours) = (node.to_string(), theirs.into(), VERSION.into());
            Error::Machine(machine::Error::OtherVersion { what, theirs, ours })
        });
        self.of_other_versions.borrow_mut().insert(node)
    }

    /// Reports to a node that its frame could not be decoded. Runs in a separate task: a node that sends
    /// garbage may not receive answers, and this node must continue to receive from others.
    fn complain(self: &Rc<Self>, caller: Caller, failure: Failure) {
        let Some(permit) = self.complaints.try_take() else { return };
        let endpoint = self.clone();
        self.machine.spawn("complaint", async move {
            let _permit = permit;
            endpoint.reply(caller, Err(failure.into())).await
        });
    }

    /// Returns the number of requests in flight.
    pub fn calls_in_flight(&self) -> u64 {
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

    /// Completes the call with this tag to node `from`. Drops an unexpected answer.
    fn finish_call(&self, from: NodeId, tag: u64, answer: Answer) {
        let key = (tag & u64::from(u32::MAX)) as usize;
        let mut calls = self.calls.borrow_mut();
        if calls.get(key).is_some_and(|call| call.tag == tag && call.to == from) {
            let call = calls.remove(key);
            drop(calls);
            self.end_wait(from, Awaited::Answer);
            let machine = &self.machine;
            machine.notes().received(call.span, || span_names::answer(machine.node(), tag));
            let failure = answer.as_ref().err().map(|error| error.counted_as());
            self.asked.served(call.operation, call.class, machine.now().since(call.asked), failure);
            call.mailbox.put(call.token, answer);
        } else {
            machine::sometimes!("a late answer is ignored");
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

/// Returns the header that carries a reply, or a failure if the reply is too long for any header.
fn reply_header(tag: u64, reply: Reply) -> Vec<u8> {
    let header = Frame::Reply(tag, reply).encode();
    if header.len() <= Message::HEADER_BYTES_MAX {
        return header;
    }
    let text = format!("a reply of {} bytes exceeds the limit of a header: request less", header.len());
    Frame::Reply(tag, Reply::Failed(Failure::invalid(text))).encode()
}
