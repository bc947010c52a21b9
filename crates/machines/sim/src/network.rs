//! Messages between nodes: sending, arrival, processing at the receiver, and the end of a node's network.
//!
//! ```text
//!  sender                     fabric                receiver
//!  send_message (thread) ---> departure .. arrival  receive_message (interrupt) ---> inbox ---> receive()
//!                             ^ send() completes
//! ```
//!
//! A message is in one table from its sending until it is received; inboxes and events hold its index. Real bytes are
//! copied at the send, because the sender's buffer is free again when the send completes; phantoms need no copy. A
//! message to the node itself crosses no fabric and costs the processor the same.
//!
//! A background message may have to wait at its source until the outgoing link is free. Such messages wait in a queue,
//! whose head checks again when the link should be free. The fabric orders the other classes.
//!
//! Inboxes have no limit: on the machines modelled here, the buffers and requests of the senders limit the messages in
//! flight.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::task::{Context, Waker};

use description::MachineDescription;
use machine::{Class, Delivery, Error, Message, NodeId, Payload, PayloadPiece, Result, SharedBytes};

use crate::agenda::{EventTarget, Kind};
use crate::executor::{Executor, Waiter};
use crate::fabric::Fabric;
use crate::processor::{Costs, Processors};
use crate::statistics::{LinkStatistics, RouterLinkStatistics};
use crate::table::IndexTable;
use crate::torus::Through;
use crate::trace::ProcessorActivity;

pub(crate) struct Network {
    state: RefCell<State>,
    node_count: usize,
    envelope_bytes: u64,
}

/// Mutable state. Borrowed only briefly: no wake and no drop of a message happens under a borrow.
struct State {
    fabric: Fabric,
    in_flight: IndexTable<Delivery>,
    /// Routes of the deliveries with the same index.
    routes: Vec<Route>,
    ports: Vec<Port>,
    /// Departures with waiting senders that were unknown when the wait began.
    departures: IndexTable<Departure>,
    /// Messages in flight to nodes that have since crashed, or over connections that have since been reset.
    lost: Vec<u32>,
    /// Blocked one-way paths, and the arrived messages that wait for their end.
    blocked: BTreeMap<(u32, u32), Vec<u32>>,
    /// Set of all nodes that each node ever sent a message to.
    acquainted: Vec<NodeSet>,
    messages: u64,
    bytes: u64,
}

/// Source and target of a message.
#[derive(Clone, Copy)]
struct Route {
    source: u32,
    target: u32,
    /// Entry of the departure that its sender waits for, while unknown; see [`State::departures`].
    departure: Option<u32>,
}

/// Set of nodes, one bit for each up to the highest.
#[derive(Default)]
struct NodeSet(Vec<u64>);

impl NodeSet {
    #[inline]
    fn insert(&mut self, node: usize) {
        if node / 64 >= self.0.len() {
            self.0.resize(node / 64 + 1, 0);
        }
        self.0[node / 64] |= 1 << (node % 64);
    }

    fn contains(&self, node: usize) -> bool {
        self.0.get(node / 64).is_some_and(|word| word >> (node % 64) & 1 == 1)
    }
}

impl State {
    #[inline]
    fn insert(&mut self, source: usize, target: usize, delivery: Delivery) -> usize {
        let index = self.in_flight.insert(delivery);
        let route = Route { source: source as u32, target: target as u32, departure: None };
        match self.routes.get_mut(index) {
            Some(free) => *free = route,
            None => self.routes.push(route),
        }
        index
    }

    /// Marks the messages of some routes as lost, except those that have arrived in an inbox.
    fn lose(&mut self, is_lost: impl Fn(&Route) -> bool) {
        let State { in_flight, routes, ports, lost, .. } = self;
        let is_cut = |index: &u32| {
            let route = &routes[*index as usize];
            is_lost(route) && !ports[route.target as usize].inbox.contains(index) && !lost.contains(index)
        };
        let cut: Vec<u32> = in_flight.iter().map(|(index, _)| index as u32).filter(is_cut).collect();
        lost.extend(cut);
    }
}

/// Result of an attempt to inject a message into the fabric.
pub(crate) enum Injection {
    /// The message leaves at this time.
    Leaves(u64),
    /// The message is on its way; its departure is not known yet.
    Begun,
    /// The message must wait at its source: until this time, or until another message that waits there has left.
    Held { again: Option<u64> },
}

/// Next delivery to receive.
pub(crate) enum Next {
    /// The message with this index.
    Message(usize),
    Closed,
    NotYet,
}

/// Departure of a message from its source, once known, and the task that waits for it.
struct Departure {
    time: Option<u64>,
    waker: Waker,
}

#[derive(Default)]
struct Port {
    inbox: VecDeque<u32>,
    /// Tasks waiting for a message in the inbox: rarely more than one.
    waiter: Option<Waiter>,
    more_waiters: Vec<Waiter>,
    /// Background messages waiting to leave, and their senders.
    held: VecDeque<(u32, Waker)>,
    closed: bool,
    gone: Vec<u32>,
}

impl Port {
    fn add_waiter(&mut self, context: &Context<'_>) {
        match &self.waiter {
            None => self.waiter = Some(Waiter::of(context)),
            Some(waiter) if waiter.is(context) => {}
            Some(_) if self.more_waiters.iter().any(|waiter| waiter.is(context)) => {}
            Some(_) => self.more_waiters.push(Waiter::of(context)),
        }
    }
}

impl Network {
    pub(crate) fn new(description: &MachineDescription) -> Self {
        let node_count = description.node_count() as usize;
        let state = State {
            fabric: Fabric::new(description),
            in_flight: IndexTable::default(),
            routes: Vec::new(),
            departures: IndexTable::default(),
            lost: Vec::new(),
            blocked: BTreeMap::new(),
            ports: (0..node_count).map(|_| Port::default()).collect(),
            acquainted: (0..node_count).map(|_| NodeSet::default()).collect(),
            messages: 0,
            bytes: 0,
        };
        let envelope_bytes = description.network.envelope.value.0;
        Network { state: RefCell::new(state), node_count, envelope_bytes }
    }

    /// Returns the number of messages sent, and their bytes on the wire.
    pub(crate) fn sent(&self) -> (u64, u64) {
        let state = self.state.borrow();
        (state.messages, state.bytes)
    }

    /// Returns the statistics of the link out of `node` and the link into it.
    pub(crate) fn links(&self, node: usize) -> (LinkStatistics, LinkStatistics) {
        self.state.borrow_mut().fabric.links(node)
    }

    /// Returns the statistics of the links between routers.
    pub(crate) fn router_links(&self) -> Vec<RouterLinkStatistics> {
        self.state.borrow_mut().fabric.router_links()
    }

    /// Adds a message to send to the table.
    #[inline(never)]
    pub(crate) fn accept(&self, source: usize, to: NodeId, mut message: Message) -> Result<usize> {
        let mut state = self.state.borrow_mut();
        let port = &state.ports[source];
        if port.closed || !port.gone.is_empty() || to.0 >= self.node_count as u64 {
            port.check(to, self.node_count)?;
        }
        if !message.payload.is_empty() {
            own(&mut message.payload);
        }
        // From now on, not only from its departure: the target may crash before, and the message is lost then.
        state.acquainted[source].insert(to.0 as usize);
        Ok(state.insert(source, to.0 as usize, Delivery::Message(message)))
    }

    /// Returns the number of bytes of payload of a message in the table.
    #[cold]
    pub(crate) fn payload_bytes(&self, index: usize) -> u64 {
        match self.state.borrow().in_flight.get(index) {
            Delivery::Message(message) => message.payload.len(),
            Delivery::Gone(_) => 0,
        }
    }

    /// Fails if a message in the table can no longer be sent.
    pub(crate) fn check(&self, index: usize) -> Result<()> {
        let state = self.state.borrow();
        let Route { source, target, .. } = state.routes[index];
        state.ports[source as usize].check(NodeId(u64::from(target)), self.node_count)
    }

    /// Injects a message of the table into the fabric.
    #[inline]
    pub(crate) fn inject(&self, executor: &Executor, index: usize) -> Injection {
        let mut state = self.state.borrow_mut();
        let State { fabric, in_flight, routes, ports, messages, bytes, .. } = &mut *state;
        let (source, target) = (routes[index].source as usize, routes[index].target as usize);
        let (mut wire_bytes, mut class) = (self.envelope_bytes, Class::Demand);
        if let Delivery::Message(message) = in_flight.get(index) {
            class = message.class;
            wire_bytes += message.header.len() as u64 + message.payload.len();
        }
        if class == Class::Background && source != target {
            let is_first = ports[source].held.front().is_none_or(|held| held.0 == index as u32);
            let busy_until = fabric.busy_until(executor, source);
            if !is_first || busy_until.is_some() {
                return Injection::Held { again: busy_until.filter(|_| is_first) };
            }
        }
        *messages += 1;
        *bytes += wire_bytes;
        if let Some(passage) = fabric.pass(executor, source, target, wire_bytes, class) {
            executor.schedule(passage.arrival, EventTarget::new(Kind::Arrival, index));
            return Injection::Leaves(passage.departure);
        }
        if let Fabric::Torus(torus) = fabric {
            let worm = torus.begin(index, source, target, wire_bytes, class);
            // Others may send in this same instant, so the head takes only its first link now.
            let through = torus.advance(executor, worm, executor.now());
            debug_assert!(through.is_none(), "a way has two links at least");
        }
        Injection::Begun
    }

    /// Queues the sender of a background message. It checks again at `again`, if that time is known.
    #[cold]
    pub(crate) fn hold(&self, executor: &Executor, index: usize, again: Option<u64>, waker: &Waker) {
        let mut state = self.state.borrow_mut();
        let source = state.routes[index].source as usize;
        let held = &mut state.ports[source].held;
        match held.iter_mut().find(|held| held.0 == index as u32) {
            Some(held) => held.1.clone_from(waker),
            None => held.push_back((index as u32, waker.clone())),
        }
        if let Some(time) = again {
            executor.schedule_wake(time, waker);
        }
    }

    /// Removes a message from the queue: it is on its way, or will not be sent any more.
    #[cold]
    pub(crate) fn dequeue(&self, index: usize) {
        let mut state = self.state.borrow_mut();
        let source = state.routes[index].source as usize;
        let held = &mut state.ports[source].held;
        held.retain(|held| held.0 != index as u32);
        let next = held.front().map(|held| held.1.clone());
        drop(state);
        if let Some(next) = next {
            next.wake();
        }
    }

    /// Advances the head of a worm in the torus.
    pub(crate) fn advance(&self, executor: &Executor, worm: usize) {
        let mut state = self.state.borrow_mut();
        let State { fabric: Fabric::Torus(torus), routes, departures, .. } = &mut *state else {
            unreachable!("worms live in a torus")
        };
        let quiet_until = executor.quiet_until();
        let through = torus.advance(executor, worm, quiet_until);
        let Some(Through { message, passage }) = through else { return };
        executor.schedule(passage.arrival, EventTarget::new(Kind::Arrival, message));
        if let Some(index) = routes[message].departure.take() {
            let departure = departures.get_mut(index as usize);
            departure.time = Some(passage.departure);
            executor.schedule_wake(passage.departure, &departure.waker);
        }
    }

    /// Registers the sender of a message whose departure is not known yet.
    pub(crate) fn await_departure(&self, index: usize, waker: &Waker) -> usize {
        let mut state = self.state.borrow_mut();
        let departure = state.departures.insert(Departure { time: None, waker: waker.clone() });
        state.routes[index].departure = Some(departure as u32);
        departure
    }

    /// Returns true if the message of this departure has left.
    pub(crate) fn poll_departure(&self, executor: &Executor, index: usize, waker: &Waker) -> bool {
        let mut state = self.state.borrow_mut();
        let departure = state.departures.get_mut(index);
        match departure.time {
            Some(time) if time <= executor.now() => {
                state.departures.remove(index);
                return true;
            }
            Some(time) if !departure.waker.will_wake(waker) => executor.schedule_wake(time, waker),
            _ => {}
        }
        departure.waker.clone_from(waker);
        false
    }

    /// Cancels the wait for the departure of the message with this index.
    pub(crate) fn forget_departure(&self, message: usize, index: usize) {
        let mut state = self.state.borrow_mut();
        let departure = state.departures.remove(index);
        if departure.time.is_none() {
            // The message is still at its source, so its index is not reused yet.
            state.routes[message].departure = None;
        }
    }

    /// Drops a message that was not injected.
    pub(crate) fn discard(&self, index: usize) {
        let mut state = self.state.borrow_mut();
        if !state.lost.is_empty() {
            // Another message gets this index, and is not lost.
            is_among(&mut state.lost, index);
        }
        let delivery = state.in_flight.remove(index);
        drop(state);
        drop(delivery);
    }

    /// Handles a message at its target's end of the network: the processor there handles an interrupt. Returns the task
    /// to wake.
    #[inline]
    pub(crate) fn arrive(
        &self,
        executor: &Executor,
        processors: &Processors,
        costs: &Costs,
        index: usize,
    ) -> Option<Waiter> {
        if costs.receive_message == 0 {
            return self.deliver(executor, index);
        }
        let target = self.state.borrow().routes[index].target as usize;
        let end = processors.interrupt(executor, target, costs.receive_message);
        if let Some(trace) = executor.trace() {
            let times = (executor.now(), end);
            trace.interrupt(target, ProcessorActivity::ReceiveMessage, costs.receive_message, times);
        }
        executor.schedule(end, EventTarget::new(Kind::Delivery, index));
        None
    }

    /// Puts a message into the inbox of its receiver. Returns the task to wake.
    #[inline]
    pub(crate) fn deliver(&self, executor: &Executor, index: usize) -> Option<Waiter> {
        let mut state = self.state.borrow_mut();
        let Route { source, target, .. } = state.routes[index];
        if !state.blocked.is_empty()
            && let Some(waiting) = state.blocked.get_mut(&(source, target))
        {
            waiting.push(index as u32);
            return None;
        }
        drop(state);
        self.put_into_inbox(executor, index)
    }

    /// Puts a message into the inbox of its receiver, even if the path is blocked. Returns the task to wake.
    #[inline]
    fn put_into_inbox(&self, executor: &Executor, index: usize) -> Option<Waiter> {
        let mut state = self.state.borrow_mut();
        let State { in_flight, routes, ports, lost, .. } = &mut *state;
        let Route { source, target, .. } = routes[index];
        let is_lost = !lost.is_empty() && is_among(lost, index);
        if is_lost || ports[target as usize].closed {
            drop(state);
            self.discard(index);
            return None;
        }
        let is_closed = ports[source as usize].closed;
        let port = &mut ports[target as usize];
        if let Delivery::Gone(_) = in_flight.get(index)
            && is_closed
        {
            port.gone.push(source);
        }
        port.inbox.push_back(index as u32);
        // Wake all, first come first; a task that finds no message waits again. So no message is missed if the first
        // task has been dropped since.
        let waiter = port.waiter.take();
        if port.more_waiters.is_empty() {
            return waiter;
        }
        drop(state);
        waiter.into_iter().for_each(|waiter| executor.wake_waiter(waiter));
        self.wake_more(executor, target as usize);
        None
    }

    #[cold]
    fn wake_more(&self, executor: &Executor, node: usize) {
        let waiters = std::mem::take(&mut self.state.borrow_mut().ports[node].more_waiters);
        waiters.into_iter().for_each(|waiter| executor.wake_waiter(waiter));
    }

    /// Returns the next delivery to a node. Without a delivery, the task waits and is woken by the next one.
    pub(crate) fn next(&self, node: usize, context: &Context<'_>) -> Next {
        let mut state = self.state.borrow_mut();
        let port = &mut state.ports[node];
        if port.closed {
            return Next::Closed;
        }
        match port.inbox.pop_front() {
            Some(index) => Next::Message(index as usize),
            None => {
                port.add_waiter(context);
                Next::NotYet
            }
        }
    }

    /// Takes a received message out of the table.
    #[inline(always)]
    pub(crate) fn take(&self, index: usize) -> (NodeId, Delivery) {
        let mut state = self.state.borrow_mut();
        (NodeId(u64::from(state.routes[index].source)), state.in_flight.remove(index))
    }

    /// Closes the connection of a node to a peer: both sides see a disconnect.
    pub(crate) fn give_up(&self, executor: &Executor, node: usize, peer: NodeId, why: &str) {
        let peer = peer.0 as usize;
        let mut state = self.state.borrow_mut();
        let port = &state.ports[node];
        if port.closed || peer >= self.node_count || peer == node || port.gone.contains(&(peer as u32)) {
            return;
        }
        let here = state.insert(peer, node, Delivery::Gone(why.to_owned()));
        let there = state.insert(node, peer, Delivery::Gone(GIVEN_UP.to_owned()));
        drop(state);
        if let Some(waiter) = self.deliver(executor, here) {
            executor.wake_waiter(waiter);
        }
        self.inject(executor, there);
    }

    pub(crate) fn close(&self, executor: &Executor, node: usize) {
        let mut state = self.state.borrow_mut();
        let port = &mut state.ports[node];
        if std::mem::replace(&mut port.closed, true) {
            return;
        }
        let undelivered = std::mem::take(&mut port.inbox);
        let waiter = port.waiter.take();
        let peers = (0..self.node_count).filter(|&peer| {
            peer != node && (state.acquainted[node].contains(peer) || state.acquainted[peer].contains(node))
        });
        let peers: Vec<usize> = peers.collect();
        let partings: Vec<usize> =
            peers.iter().map(|&peer| state.insert(node, peer, Delivery::Gone(CLOSED.to_owned()))).collect();
        drop(state);
        undelivered.into_iter().for_each(|index| self.discard(index as usize));
        waiter.into_iter().for_each(|waiter| executor.wake_waiter(waiter));
        self.wake_more(executor, node);
        for parting in partings {
            self.inject(executor, parting);
        }
    }
}

impl Network {
    /// Blocks the path from one node to another: messages arrive after [`unblock`](Self::unblock).
    pub(crate) fn block(&self, from: usize, to: usize) {
        self.state.borrow_mut().blocked.entry((from as u32, to as u32)).or_default();
    }

    /// Delivers the messages that waited on a blocked path, and those after them.
    pub(crate) fn unblock(&self, executor: &Executor, from: usize, to: usize) {
        let waiting = self.state.borrow_mut().blocked.remove(&(from as u32, to as u32));
        for index in waiting.into_iter().flatten() {
            if let Some(waiter) = self.deliver(executor, index as usize) {
                executor.wake_waiter(waiter);
            }
        }
    }

    /// Resets the connection of two nodes: messages in flight between them are lost, and both see a disconnect.
    pub(crate) fn reset(&self, executor: &Executor, one: usize, other: usize) {
        let mut state = self.state.borrow_mut();
        if one == other || state.ports[one].closed || state.ports[other].closed {
            return;
        }
        state.lose(|route| {
            [(one, other), (other, one)].contains(&(route.source as usize, route.target as usize))
        });
        let ends = [(one, other), (other, one)]
            .map(|(source, target)| state.insert(source, target, Delivery::Gone(RESET.to_owned())));
        drop(state);
        for index in ends {
            if let Some(waiter) = self.put_into_inbox(executor, index) {
                executor.wake_waiter(waiter);
            }
        }
    }

    /// Reopens a node's closed network: it can be reached again. Messages in flight to it are lost.
    pub(crate) fn reopen(&self, node: usize) {
        let mut state = self.state.borrow_mut();
        state.lose(|route| route.target as usize == node);
        for port in &mut state.ports {
            port.gone.retain(|&gone| gone as usize != node);
        }
        state.ports[node].closed = false;
        state.ports[node].gone.clear();
    }
}

/// Returns true if a message is in the list of lost messages, and removes it from the list.
#[cold]
fn is_among(lost: &mut Vec<u32>, index: usize) -> bool {
    let before = lost.len();
    lost.retain(|&one| one as usize != index);
    lost.len() < before
}

impl Port {
    /// Fails with the reason if no message can be sent from here to `to`.
    fn check(&self, to: NodeId, node_count: usize) -> Result<()> {
        let gone = |why: &str| Err(Error::PeerGone { node: to, why: why.to_owned() }.into());
        if self.closed {
            Err(Error::Closed.into())
        } else if to.0 >= node_count as u64 {
            gone("there is no such node")
        } else if self.gone.contains(&(to.0 as u32)) {
            gone(CLOSED)
        } else {
            Ok(())
        }
    }
}

const CLOSED: &str = "it has closed its network";

const RESET: &str = "the connection was reset";

const GIVEN_UP: &str = "it has closed the connection";

/// Copies the real bytes of a payload and their checksums to new memory, as a network or a disk does.
#[inline]
pub(crate) fn own(payload: &mut Payload) {
    match payload.pieces() {
        [PayloadPiece::Bytes(shared)] => *payload = copy_of_run(shared),
        pieces if pieces.iter().any(|piece| matches!(piece, PayloadPiece::Bytes(_))) => {
            *payload = copy(pieces)
        }
        _ => {}
    }
}

fn copy_of_run(shared: &SharedBytes) -> Payload {
    Payload::with_checksums(shared.as_slice().to_vec(), shared.checksums())
}

#[inline(never)]
fn copy(pieces: &[PayloadPiece]) -> Payload {
    let mut copy = Payload::empty();
    for piece in pieces {
        copy.push(&match piece {
            PayloadPiece::Bytes(shared) => copy_of_run(shared),
            PayloadPiece::Phantom { source, offset, bytes } => Payload::phantom(*source, *offset, *bytes),
        });
    }
    copy
}
