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
//! Inboxes have no bound: on the machines modelled here, what limits messages under way are the buffers and
//! requests of those who talk.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use description::MachineDescription;
use machine::{Delivery, Error, Message, NodeId, Payload, Piece, Result};

use crate::executor::{Executor, Waiter};
use crate::fabric::Fabric;
use crate::heap::{Kind, Target};
use crate::processor::{Costs, Processors};
use crate::sleep::Sleep;
use crate::table::Table;
use crate::world::World;

pub(crate) struct Network {
    fabric: RefCell<Fabric>,
    envelope_bytes: u64,
    in_flight: RefCell<Table<InFlight>>,
    ports: Vec<RefCell<Port>>,
    /// Whether a node ever sent anything to another, at `source * nodes + target`.
    acquainted: RefCell<Vec<bool>>,
    messages: Cell<u64>,
    bytes: Cell<u64>,
}

struct InFlight {
    source: u32,
    target: u32,
    delivery: Delivery,
}

#[derive(Default)]
struct Port {
    inbox: VecDeque<u32>,
    /// Tasks that wait for the inbox to fill: seldom more than one.
    waiter: Option<Waiter>,
    more_waiters: Vec<Waiter>,
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

    /// All wake up, first come first; who finds nothing waits again. So none is missed if the first has
    /// given up meanwhile.
    fn take_waiters(&mut self) -> (Option<Waiter>, Vec<Waiter>) {
        (self.waiter.take(), std::mem::take(&mut self.more_waiters))
    }
}

impl Network {
    pub(crate) fn new(description: &MachineDescription) -> Self {
        let nodes = description.node_count() as usize;
        Network {
            fabric: RefCell::new(Fabric::new(description)),
            envelope_bytes: description.network.envelope.value.0,
            in_flight: RefCell::default(),
            ports: (0..nodes).map(|_| RefCell::default()).collect(),
            acquainted: RefCell::new(vec![false; nodes * nodes]),
            messages: Cell::new(0),
            bytes: Cell::new(0),
        }
    }

    /// How many messages were sent, and how many bytes they had on the wire.
    pub(crate) fn sent(&self) -> (u64, u64) {
        (self.messages.get(), self.bytes.get())
    }

    /// How long the link out of `node` and the link into it have been held in all, in nanoseconds.
    pub(crate) fn held(&self, node: usize) -> (u64, u64) {
        self.fabric.borrow().held(node)
    }

    fn check_open(&self, source: usize, to: NodeId) -> Result<usize> {
        let port = self.ports[source].borrow();
        if port.closed {
            return Err(Error::Closed);
        }
        let gone = |why: &str| Err(Error::PeerGone { node: to, why: why.to_owned() });
        let target = usize::try_from(to.0).unwrap_or(usize::MAX);
        if target >= self.ports.len() {
            return gone("there is no such node");
        }
        if port.gone.contains(&(target as u32)) {
            return gone(CLOSED);
        }
        Ok(target)
    }

    /// Sends a message on its way; gives the time of its departure.
    fn inject(&self, executor: &Executor, source: usize, target: usize, message: Message) -> u64 {
        let bytes = message.header.len() as u64 + message.payload.len();
        self.acquainted.borrow_mut()[source * self.ports.len() + target] = true;
        self.messages.set(self.messages.get() + 1);
        self.bytes.set(self.bytes.get() + bytes + self.envelope_bytes);
        let message = Message { header: message.header, payload: own(message.payload) };
        self.pass(executor, source, target, bytes, Delivery::Message(message))
    }

    fn pass(&self, executor: &Executor, source: usize, target: usize, bytes: u64, delivery: Delivery) -> u64 {
        let bytes = bytes + self.envelope_bytes;
        let passage = self.fabric.borrow_mut().pass(executor.now(), source, target, bytes);
        let message = InFlight { source: source as u32, target: target as u32, delivery };
        let index = self.in_flight.borrow_mut().insert(message);
        executor.schedule(passage.arrival, Target::new(Kind::Arrival, index));
        passage.departure
    }

    /// A message is at its target's end of the network: the processor there takes it in.
    pub(crate) fn arrive(&self, executor: &Executor, processors: &Processors, costs: &Costs, index: usize) {
        if costs.receive_message == 0 {
            return self.deliver(executor, index);
        }
        let target = self.in_flight.borrow().get(index).target as usize;
        let end = processors.interrupt(executor, target, costs.receive_message);
        executor.schedule(end, Target::new(Kind::Delivery, index));
    }

    /// A message is ready to be received.
    pub(crate) fn deliver(&self, executor: &Executor, index: usize) {
        let (source, target, is_gone) = {
            let in_flight = self.in_flight.borrow();
            let message = in_flight.get(index);
            (message.source, message.target, matches!(message.delivery, Delivery::Gone(_)))
        };
        let mut port = self.ports[target as usize].borrow_mut();
        if port.closed {
            let lost = self.in_flight.borrow_mut().remove(index);
            drop(port);
            return drop(lost);
        }
        if is_gone {
            port.gone.push(source);
        }
        port.inbox.push_back(index as u32);
        let (waiter, more_waiters) = port.take_waiters();
        drop(port);
        for waiter in waiter.into_iter().chain(more_waiters) {
            executor.wake_waiter(waiter);
        }
    }

    fn close(&self, executor: &Executor, node: usize) {
        let mut port = self.ports[node].borrow_mut();
        if std::mem::replace(&mut port.closed, true) {
            return;
        }
        let unheard = std::mem::take(&mut port.inbox);
        let (waiter, more_waiters) = port.take_waiters();
        drop(port);
        for index in unheard {
            let lost = self.in_flight.borrow_mut().remove(index as usize);
            drop(lost);
        }
        for waiter in waiter.into_iter().chain(more_waiters) {
            executor.wake_waiter(waiter);
        }
        let nodes = self.ports.len();
        for peer in (0..nodes).filter(|&peer| peer != node) {
            let acquainted = self.acquainted.borrow();
            let known = acquainted[node * nodes + peer] || acquainted[peer * nodes + node];
            drop(acquainted);
            if known {
                self.pass(executor, node, peer, 0, Delivery::Gone(CLOSED.to_owned()));
            }
        }
    }
}

const CLOSED: &str = "it has closed its network";

/// The payload with memory of its own: the copy that the network, or a disk, makes of real bytes.
pub(crate) fn own(payload: Payload) -> Payload {
    if !payload.pieces().iter().any(|piece| matches!(piece, Piece::Bytes(_))) {
        return payload;
    }
    let mut copy = Payload::empty();
    for piece in payload.pieces() {
        copy.push(&match piece {
            Piece::Bytes(shared) => Payload::from(shared.as_slice()),
            Piece::Phantom { source, offset, bytes } => Payload::phantom(*source, *offset, *bytes),
        });
    }
    copy
}

/// A simulated node's access to its network.
#[derive(Clone)]
pub struct Net {
    world: Rc<World>,
    node: usize,
}

impl Net {
    pub(crate) fn new(world: Rc<World>, node: usize) -> Self {
        Net { world, node }
    }
}

impl machine::Net for Net {
    async fn send(&self, to: NodeId, message: Message) -> Result<()> {
        let World { executor, processors, network, costs, .. } = &*self.world;
        let mut target = network.check_open(self.node, to)?;
        if costs.send_message > 0 {
            processors.occupy(executor, self.node, costs.send_message).await;
            target = network.check_open(self.node, to)?;
        }
        let departure = network.inject(executor, self.node, target, message);
        if departure > executor.now() {
            Sleep::until(executor, departure).await;
        }
        Ok(())
    }

    fn receive(&self) -> impl Future<Output = Result<(NodeId, Delivery)>> {
        Receive { network: &self.world.network, node: self.node }
    }

    fn close(&self) {
        self.world.network.close(&self.world.executor, self.node);
    }
}

struct Receive<'a> {
    network: &'a Network,
    node: usize,
}

impl Future for Receive<'_> {
    type Output = Result<(NodeId, Delivery)>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut port = self.network.ports[self.node].borrow_mut();
        if port.closed {
            return Poll::Ready(Err(Error::Closed));
        }
        match port.inbox.pop_front() {
            Some(index) => {
                let message = self.network.in_flight.borrow_mut().remove(index as usize);
                Poll::Ready(Ok((NodeId(u64::from(message.source)), message.delivery)))
            }
            None => {
                port.add_waiter(context);
                Poll::Pending
            }
        }
    }
}
