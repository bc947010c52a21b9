//! The network of a node: TCP connections to the nodes it talks to, each known by its name.
//!
//! A node that has an address listens; whoever connects introduces itself and is let in or refused. The
//! connections of all peers end in one inbox. What a refused or broken connection costs the node is that
//! connection.

mod connection;
mod frame;
mod handshake;
mod inbox;
mod outbox;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use compio::net::TcpStream;
use compio::runtime::JoinHandle;
use machine::{BufferPool, Condition, Delivery, Error, Message, NodeId, Result};

use crate::settings::Limits;
use crate::task::{Tasks, unless};
use connection::{Connection, Reader};
use inbox::Inbox;

/// A node's connections. Cloning gives another handle.
#[derive(Clone)]
pub struct Net {
    inner: Rc<Inner>,
}

struct Inner {
    node: NodeId,
    limits: Limits,
    tasks: Tasks,
    address: Option<SocketAddr>,
    connections: RefCell<BTreeMap<NodeId, Rc<Connection>>>,
    inbox: Inbox,
    memory: BufferPool,
    closed: Cell<bool>,
    closing: Condition,
    /// Connections whose tasks have not ended, those lost or closing among them.
    alive: Cell<usize>,
    ended: Condition,
    listening: RefCell<Option<JoinHandle<()>>>,
}

impl Net {
    pub(crate) fn start(
        node: NodeId,
        listen: Option<SocketAddr>,
        limits: Limits,
        tasks: Tasks,
    ) -> Result<Self> {
        let listener = listen.map(handshake::listen).transpose()?;
        let inner = Inner {
            node,
            memory: BufferPool::new(limits.receive_bytes),
            limits,
            tasks,
            address: listener.as_ref().map(|(_, address)| *address),
            connections: RefCell::default(),
            inbox: Inbox::default(),
            closed: Cell::new(false),
            closing: Condition::new(),
            alive: Cell::new(0),
            ended: Condition::new(),
            listening: RefCell::new(None),
        };
        let net = Net { inner: Rc::new(inner) };
        if let Some((listener, _)) = listener {
            let listening = compio::runtime::spawn(net.clone().accept_all(listener));
            *net.inner.listening.borrow_mut() = Some(listening);
        }
        Ok(net)
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.inner.address
    }

    fn connection(&self, node: NodeId) -> Option<Rc<Connection>> {
        self.inner.connections.borrow().get(&node).cloned()
    }

    /// Enters a connection to `peer` that is not there yet.
    fn enter(&self, peer: NodeId) -> Rc<Connection> {
        let connection = Connection::new(peer);
        self.inner.connections.borrow_mut().insert(peer, connection.clone());
        connection
    }

    /// Starts the tasks of a connection that has been entered.
    fn begin(&self, connection: Rc<Connection>, stream: TcpStream, reader: Reader) {
        let net = self.clone();
        let alive = Alive::new(self.clone());
        self.inner.tasks.spawn("connection", async move {
            net.converse(connection, stream, reader).await;
            drop(alive);
            Ok(())
        });
    }

    async fn converse(&self, connection: Rc<Connection>, stream: TcpStream, mut reader: Reader) {
        let writer = compio::runtime::spawn(connection.clone().write(stream));
        let why = self.read_all(&connection, &mut reader).await;
        if self.inner.closed.get() {
            // What was sent before closing still leaves.
            let _ = writer.await;
        } else {
            // Nobody takes it any more. Dropping the handle cancels a write that would wait for ever.
            drop(writer);
        }
        connection.outbox.lose(connection.gone(&why));
        let mut connections = self.inner.connections.borrow_mut();
        if connections.get(&connection.peer).is_some_and(|entered| Rc::ptr_eq(entered, &connection)) {
            connections.remove(&connection.peer);
        }
        drop(connections);
        self.inner.inbox.put_gone(connection.peer, why, &connection.place);
    }

    /// Reads until the connection ends, and returns why it did.
    async fn read_all(&self, connection: &Connection, reader: &mut Reader) -> String {
        let inner = &self.inner;
        while !inner.closed.get() {
            let next = unless(inner.closing.wait(), reader.message(&inner.memory)).await;
            match next {
                Some(Ok(Some(message))) => inner.inbox.put(connection.peer, message, &connection.place).await,
                Some(Ok(None)) => return "it closed the connection".to_owned(),
                Some(Err(why)) => return why,
                None => break,
            }
        }
        reader.discard().await;
        "this node closed the connection".to_owned()
    }

    /// Waits until all connections have ended.
    pub(crate) async fn drained(&self) {
        while self.inner.alive.get() > 0 {
            self.inner.ended.wait().await;
        }
    }
}

/// Counts a connection for as long as its tasks run.
struct Alive(Net);

impl Alive {
    fn new(net: Net) -> Self {
        net.inner.alive.set(net.inner.alive.get() + 1);
        Alive(net)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        let inner = &self.0.inner;
        inner.alive.set(inner.alive.get() - 1);
        inner.ended.wake_all();
    }
}

impl machine::Net for Net {
    async fn send(&self, to: NodeId, message: Message) -> Result<()> {
        if self.inner.closed.get() {
            return Err(Error::Closed);
        }
        match self.connection(to) {
            Some(connection) => connection.outbox.send(message).await,
            None => Err(Error::PeerGone { node: to, why: "there is no connection to it".to_owned() }),
        }
    }

    async fn receive(&self) -> Result<(NodeId, Delivery)> {
        self.inner.inbox.receive().await
    }

    fn close(&self) {
        if self.inner.closed.replace(true) {
            return;
        }
        drop(self.inner.listening.take());
        self.inner.inbox.close();
        for connection in self.inner.connections.borrow().values() {
            connection.outbox.close();
        }
        self.inner.closing.wake_all();
    }
}
