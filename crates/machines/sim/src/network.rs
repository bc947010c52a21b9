//! Messages between nodes: sending, arriving, being taken in, and the end of a node's network.
//!
//! ```text
//!  sender                     fabric                receiver
//!  send_message (thread) ---> departure .. arrival  receive_message (interrupt) ---> inbox ---> receive()
//!                             ^ send() completes
//! ```
//!
//! A message lies in one table from its sending until it is received; inboxes and events hold its index.
//! Real bytes are copied when they are sent, because the sender's buffer is free again when the send is done;
//! phantoms have none. A message to the node itself crosses no fabric and costs the processor the same.
//!
//! A message in the background may have to wait at its source until the link from there is free; such messages wait in
//! line, and the first of them looks again when the link is said to be free. The order of the other classes is the
//! fabric's affair.
//!
//! Inboxes have no bound: on the machines modelled here, the buffers and requests of the senders limit the messages in
//! flight.

use std::cell::RefCell;
use std::collections::VecDeque;
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

/// All that changes. Borrowed for moments only: nothing is woken and no message dropped meanwhile.
struct State {
    fabric: Fabric,
    in_flight: IndexTable<Delivery>,
    /// The routes of the deliveries of the same index.
    routes: Vec<Route>,
    ports: Vec<Port>,
    /// Departures that senders wait for and that were not known when they began to.
    departures: IndexTable<Departure>,
    /// Messages under way to nodes that have crashed since.
    lost: Vec<u32>,
    /// To whom each node ever sent anything.
    acquainted: Vec<NodeSet>,
    messages: u64,
    bytes: u64,
}

/// From where to where.
#[derive(Clone, Copy)]
struct Route {
    source: u32,
    target: u32,
    /// The departure that its sender waits for, while it is not known; see [`State::departures`].
    departure: Option<u32>,
}

/// A set of nodes, one bit for each up to the highest.
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
}

/// What became of a message that was to get on its way.
pub(crate) enum Injection {
    /// The message leaves at this time.
    Leaves(u64),
    /// When it leaves is not known yet.
    Begun,
    /// The message has to wait at its source: until this time, or until another one that waits there has left.
    Held { again: Option<u64> },
}

/// The next thing to receive.
pub(crate) enum Next {
    /// The message of this index.
    Message(usize),
    Closed,
    NotYet,
}

/// When a message leaves its source, once that is known, and the task that waits for it.
struct Departure {
    time: Option<u64>,
    waker: Waker,
}

#[derive(Default)]
struct Port {
    inbox: VecDeque<u32>,
    /// Tasks that wait for the inbox to fill: seldom more than one.
    waiter: Option<Waiter>,
    more_waiters: Vec<Waiter>,
    /// Messages in the background that wait to leave, and their senders.
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
            ports: (0..node_count).map(|_| Port::default()).collect(),
            acquainted: (0..node_count).map(|_| NodeSet::default()).collect(),
            messages: 0,
            bytes: 0,
        };
        let envelope_bytes = description.network.envelope.value.0;
        Network { state: RefCell::new(state), node_count, envelope_bytes }
    }

    /// How many messages were sent, and how many bytes they had on the wire.
    pub(crate) fn sent(&self) -> (u64, u64) {
        let state = self.state.borrow();
        (state.messages, state.bytes)
    }

    /// What the link out of `node` and the link into it have done.
    pub(crate) fn links(&self, node: usize) -> (LinkStatistics, LinkStatistics) {
        self.state.borrow_mut().fabric.links(node)
    }

    /// What the links between routers have done.
    pub(crate) fn router_links(&self) -> Vec<RouterLinkStatistics> {
        self.state.borrow_mut().fabric.router_links()
    }

    /// Takes a message to be sent into the table.
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
        Ok(state.insert(source, to.0 as usize, Delivery::Message(message)))
    }

    /// The bytes of payload of a message of the table.
    #[cold]
    pub(crate) fn payload_bytes(&self, index: usize) -> u64 {
        match self.state.borrow().in_flight.get(index) {
            Delivery::Message(message) => message.payload.len(),
            Delivery::Gone(_) => 0,
        }
    }

    /// Why a message of the table cannot be sent any more, if it cannot.
    pub(crate) fn check(&self, index: usize) -> Result<()> {
        let state = self.state.borrow();
        let Route { source, target, .. } = state.routes[index];
        state.ports[source as usize].check(NodeId(u64::from(target)), self.node_count)
    }

    /// Sends a message of the table on its way.
    #[inline]
    pub(crate) fn inject(&self, executor: &Executor, index: usize) -> Injection {
        let mut state = self.state.borrow_mut();
        let State { fabric, in_flight, routes, ports, acquainted, messages, bytes, .. } = &mut *state;
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
        acquainted[source].insert(target);
        *messages += 1;
        *bytes += wire_bytes;
        if let Some(passage) = fabric.pass(executor, source, target, wire_bytes, class) {
            executor.schedule(passage.arrival, EventTarget::new(Kind::Arrival, index));
            return Injection::Leaves(passage.departure);
        }
        if let Fabric::Torus(torus) = fabric {
            let worm = torus.begin(index, source, target, wire_bytes, class);
            // Others may send at this very moment, so the head goes no further than to its first link.
            let through = torus.advance(executor, worm, executor.now());
            debug_assert!(through.is_none(), "a way has two links at least");
        }
        Injection::Begun
    }

    /// Lets the sender of a message in the background wait in line, to look again at a time if one is known.
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

    /// Takes a message out of the line: it has got on its way, or is not to be sent any more.
    #[cold]
    pub(crate) fn let_go(&self, index: usize) {
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

    /// The head of a worm in the torus goes on.
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

    /// Whether the message of this departure has left.
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

    /// The departure of the message of this index is no longer waited for.
    pub(crate) fn forget_departure(&self, message: usize, index: usize) {
        let mut state = self.state.borrow_mut();
        let departure = state.departures.remove(index);
        if departure.time.is_none() {
            // The message is still at its source, so its index is its own.
            state.routes[message].departure = None;
        }
    }

    /// A message that did not get on its way is gone.
    pub(crate) fn discard(&self, index: usize) {
        let delivery = self.state.borrow_mut().in_flight.remove(index);
        drop(delivery);
    }

    /// A message is at its target's end of the network: the processor there takes it in. Gives whom to wake.
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

    /// A message is ready to be received. Gives whom to wake.
    #[inline]
    pub(crate) fn deliver(&self, executor: &Executor, index: usize) -> Option<Waiter> {
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
        // All wake up, first come first; who finds nothing waits again. So none is missed if the first has
        // given up meanwhile.
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

    /// The next thing to receive on a node; if there is nothing, the task is woken when there is.
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

    /// Takes a message that is received out of the table.
    #[inline(always)]
    pub(crate) fn take(&self, index: usize) -> (NodeId, Delivery) {
        let mut state = self.state.borrow_mut();
        (NodeId(u64::from(state.routes[index].source)), state.in_flight.remove(index))
    }

    /// Ends the connection of a node to a peer: each hears that the other is gone.
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
        let unheard = std::mem::take(&mut port.inbox);
        let waiter = port.waiter.take();
        let peers = (0..self.node_count).filter(|&peer| {
            peer != node && (state.acquainted[node].contains(peer) || state.acquainted[peer].contains(node))
        });
        let peers: Vec<usize> = peers.collect();
        let partings: Vec<usize> =
            peers.iter().map(|&peer| state.insert(node, peer, Delivery::Gone(CLOSED.to_owned()))).collect();
        drop(state);
        unheard.into_iter().for_each(|index| self.discard(index as usize));
        waiter.into_iter().for_each(|waiter| executor.wake_waiter(waiter));
        self.wake_more(executor, node);
        for parting in partings {
            self.inject(executor, parting);
        }
    }
}

impl Network {
    /// Opens the network of a node anew that was closed: it can be reached again. What was on its way to it is lost.
    pub(crate) fn reopen(&self, node: usize) {
        let mut state = self.state.borrow_mut();
        let State { in_flight, routes, ports, lost, .. } = &mut *state;
        let to_node = in_flight
            .iter()
            .map(|(index, _)| index as u32)
            .filter(|&index| routes[index as usize].target as usize == node && !lost.contains(&index));
        let to_node: Vec<u32> = to_node.collect();
        lost.extend(to_node);
        for port in &mut *ports {
            port.gone.retain(|&gone| gone as usize != node);
        }
        ports[node].closed = false;
        ports[node].gone.clear();
    }
}

/// Whether a message is among those that are lost, which it is not any more then.
#[cold]
fn is_among(lost: &mut Vec<u32>, index: usize) -> bool {
    let before = lost.len();
    lost.retain(|&one| one as usize != index);
    lost.len() < before
}

impl Port {
    /// Why nothing can be sent from here to `to`, if nothing can.
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
