//! Network of a node: connections to its peers, each identified by its name.
//!
//! A node with an address listens. A node that connects introduces itself and is accepted or refused. The messages of
//! all peers arrive in one inbox. A refused or broken connection costs the node only that connection.
//!
//! The calling node watches the called node, which is lost if it stays silent for too long despite pings. The caller
//! reconnects to a lost node as soon as there is something to send to it. The file system is notified of the loss
//! before anything of the new connection, so it knows that messages in flight are lost. The called node waits for the
//! next call. After a network failure its old connection to the caller may still seem alive. When the caller calls
//! again, the old connection must show a sign of life, or it is closed first. So taking the name of a live node cannot
//! end its connection.

mod arrivals;
mod connection;
mod frame;
#[cfg(test)]
mod fuzz;
mod handshake;
mod inbox;
mod lane;
mod noise;
mod outbox;
mod reader;
mod records;
mod refusals;
mod staging;
mod writer;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use compio::runtime::JoinHandle;
use machine::{Condition, Delivery, Error, InFlight, Message, NodeId, NodeNotes, Permits, Result};

use crate::report::Report;
use crate::settings::{Keys, Limits, SocketBuffers};
use crate::task::{Tasks, unless};
use connection::{Connection, TcpHalves};
use frame::{Prelude, Ticket};
pub(crate) use handshake::HANDSHAKES_MAX;
use handshake::Handshakes;
use inbox::Inbox;
use lane::{Lane, LinkNotes};
use reader::{Incoming, LaneError, Reader, Room};
use refusals::Refusals;

/// Connections of a node. A clone is another handle.
#[derive(Clone)]
pub struct Net {
    inner: Rc<Inner>,
}

struct Inner {
    node: NodeId,
    keys: Keys,
    limits: Limits,
    sockets: SocketBuffers,
    tasks: Tasks,
    address: Cell<Option<SocketAddr>>,
    /// Connections, including ended ones until their loss has been received.
    connections: RefCell<BTreeMap<NodeId, Rc<Connection>>>,
    /// Connections for control that wait for their connection for data, by ticket.
    joining: RefCell<BTreeMap<Ticket, PendingConnection>>,
    /// Callers in a handshake.
    handshakes: Handshakes,
    refusals: Rc<Refusals>,
    /// Nodes that this node has called.
    called: RefCell<BTreeMap<NodeId, Rc<CalledPeer>>>,
    inbox: Inbox,
    room: Room,
    closed: Cell<bool>,
    closing: Condition,
    /// Number of connections whose tasks have not ended, including lost and closing connections.
    alive: InFlight,
    listening: RefCell<Option<JoinHandle<()>>>,
    notes: Rc<NodeNotes>,
    /// Number of connections so far.
    begun: Cell<usize>,
}

/// Connection for control that waits for its connection for data.
struct PendingConnection {
    from: NodeId,
    control: TcpHalves,
}

/// Node that this one has called, and calls again after a loss.
struct CalledPeer {
    address: SocketAddr,
    /// True if the node must keep its name. Otherwise any node that listens at the address counts as the same node
    /// after a restart.
    is_named: bool,
    /// Permit to call: one task at a time.
    turns: Permits,
    /// Reason of the last loss.
    loss: RefCell<String>,
    /// Time of the last sign of life before that loss.
    last_word: Cell<Instant>,
    /// Time and reason of the last failed attempt to call again.
    failed: RefCell<Option<(Instant, String)>>,
}

/// Side that opened a connection.
enum Origin {
    /// This node has called. It watches the other node, which is lost if silent.
    CalledPeer,
    /// This node was called. The answer to the connection for data is written before any frame.
    WasCalled { answer: Vec<u8> },
}

/// Divisor of the time limit for reconnecting: at least this part remains, no matter how old the last message of the
/// lost node is.
const RECALL_PART: u32 = 2;

/// Divisor of the time limit for reconnecting. For this part of it after a failed attempt, each sender makes only one
/// attempt, without pauses. All waiting senders therefore fail soon after the first.
const GIVEN_UP_PART: u32 = 10;

/// Pause between attempts to reconnect to a lost node.
const RECALL_PAUSE: Duration = Duration::from_millis(50);

/// Number of pings to a called node, and of checks for its answers, within the time limit for silence. Unanswered
/// checks count, and not the elapsed time, because this node itself may have been stopped for a while.
const SIGNS_PER_SILENCE: u32 = 4;

impl Net {
    pub(crate) fn start(
        node: NodeId,
        keys: Keys,
        listen: Option<SocketAddr>,
        limits: Limits,
        sockets: SocketBuffers,
        tasks: Tasks,
        notes: Rc<NodeNotes>,
    ) -> Result<Self> {
        let inner = Inner {
            node,
            keys,
            room: Room::new(limits.receive_bytes),
            limits,
            sockets,
            address: Cell::new(None),
            connections: RefCell::default(),
            joining: RefCell::default(),
            handshakes: Handshakes::default(),
            refusals: Rc::new(Refusals::new(node, tasks.clone())),
            called: RefCell::default(),
            inbox: Inbox::default(),
            closed: Cell::new(false),
            closing: Condition::new(),
            alive: InFlight::new(),
            listening: RefCell::new(None),
            tasks,
            notes,
            begun: Cell::new(0),
        };
        let net = Net { inner: Rc::new(inner) };
        if let Some(address) = listen {
            net.listen(address)?;
        }
        Ok(net)
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.inner.address.get()
    }

    /// Starts to listen, unless already listening. Returns the address with the actual port.
    pub(crate) fn listen(&self, address: SocketAddr) -> Result<SocketAddr> {
        if let Some(address) = self.address() {
            return Ok(address);
        }
        let (listener, address) = handshake::listen(address)?;
        self.inner.address.set(Some(address));
        let listening = compio::runtime::spawn(self.clone().accept_all(listener));
        *self.inner.listening.borrow_mut() = Some(listening);
        Ok(address)
    }

    fn connection(&self, node: NodeId) -> Option<Rc<Connection>> {
        self.inner.connections.borrow().get(&node).cloned()
    }

    /// Starts a connection to an unconnected node; `origin` is the side that called.
    fn begin(&self, peer: NodeId, streams: [TcpHalves; 2], origin: Origin) {
        let number = self.inner.begun.replace(self.inner.begun.get() + 1);
        let noted = LinkNotes { notes: self.inner.notes.clone(), number };
        let connection = Connection::new(peer, self.inner.room.share_bytes(), noted);
        let (watched, answer) = match origin {
            Origin::CalledPeer => (true, Vec::new()),
            Origin::WasCalled { answer } => (false, answer),
        };
        self.inner.connections.borrow_mut().insert(peer, connection.clone());
        self.inner.tasks.report(&Report::PeerCame { node: self.inner.node, peer });
        let net = self.clone();
        let alive = self.inner.alive.begin();
        self.inner.tasks.spawn("connection", async move {
            net.converse(connection, streams, answer, watched).await;
            drop(alive);
            Ok(())
        });
    }

    /// Runs a connection until its end. `answer` is the rest of the handshake of the lane for data.
    async fn converse(
        &self,
        connection: Rc<Connection>,
        streams: [TcpHalves; 2],
        answer: Vec<u8>,
        watched: bool,
    ) {
        let [
            TcpHalves { writer: control, reader: mut of_control, .. },
            TcpHalves { writer: data, reader: mut of_data, .. },
        ] = streams;
        let writers = [(Lane::Control, control, Vec::new()), (Lane::Data, data, answer)].map(
            |(lane, writer, first)| compio::runtime::spawn(connection.clone().write(lane, writer, first)),
        );
        let mut silence = Duration::ZERO;
        let why = {
            let control = self.read_all(&connection, Lane::Control, &mut of_control);
            let data = self.read_all(&connection, Lane::Data, &mut of_data);
            let silent =
                async { if watched { self.watch(&connection).await } else { std::future::pending().await } };
            let silent = async {
                let why = silent.await;
                silence = self.inner.limits.silence;
                why
            };
            let over = async {
                let silence = unless(connection.replaced.wait(), silent).await;
                silence.unwrap_or_else(|| connection.replaced_because())
            };
            first_failure(over, control, data, self.inner.limits.drain).await
        };
        if self.inner.closed.get() {
            // Messages sent before closing still leave.
            for writer in writers {
                let _ = writer.await;
            }
        } else {
            // The peer no longer reads. Dropping the handles cancels writes that would otherwise block forever.
            drop(writers);
        }
        connection.lose(&why);
        if let Some(called) = self.inner.called.borrow().get(&connection.peer) {
            let now = Instant::now();
            called.last_word.set(now.checked_sub(silence).unwrap_or(now));
        }
        let (node, peer) = (self.inner.node, connection.peer);
        self.inner.tasks.report(&Report::PeerGone { node, peer, why: why.clone() });
        // In the inbox, the messages of both lanes precede the loss.
        self.inner.inbox.put_gone(connection.peer, why, &connection.side(Lane::Data).place);
    }

    /// Reads a lane until its clean end, or fails with the reason.
    async fn read_all(
        &self,
        connection: &Connection,
        lane: Lane,
        reader: &mut Reader,
    ) -> std::result::Result<(), String> {
        let (inner, side) = (&self.inner, connection.side(lane));
        while !inner.closed.get() {
            let next = connection.next(lane, reader, &inner.room);
            let Some(received) = unless(inner.closing.wait(), next).await else { break };
            connection.note_received();
            match received.map_err(|broken| self.explain(connection, broken))? {
                Incoming::Message(message) => inner.inbox.put(connection.peer, message, &side.place).await,
                Incoming::Ping => side.outbox.show_life(Prelude::PONG),
                Incoming::Pong => {}
                Incoming::Bye => return Ok(()),
                Incoming::End => {
                    return Err(
                        "the connection ended without a shutdown message: it may have been killed".to_owned()
                    );
                }
            }
        }
        reader.discard().await;
        Ok(())
    }

    /// Returns the reason of a broken lane, and reports altered frames.
    fn explain(&self, connection: &Connection, broken: LaneError) -> String {
        if let LaneError::AlteredRecord(_) = broken {
            self.inner.tasks.report(&Report::Altered { node: self.inner.node, peer: connection.peer });
        }
        broken.to_string()
    }

    /// Sends pings until too many are unanswered, and returns the reason of the loss.
    async fn watch(&self, connection: &Connection) -> String {
        let silence = self.inner.limits.silence;
        let mut silent = 0;
        while silent < SIGNS_PER_SILENCE {
            compio::time::sleep(silence / SIGNS_PER_SILENCE).await;
            silent = if connection.has_received.replace(false) { 0 } else { silent + 1 };
            connection.side(Lane::Control).outbox.show_life(Prelude::PING);
        }
        let silence = in_words(silence);
        format!("it has not answered for {silence}: it hangs or is stopped, or the network failed")
    }

    /// Reconnects to a node that this one has called. Fails if this takes longer than the time limit.
    async fn recall(&self, node: NodeId) -> Result<()> {
        let gone = |why: String| Box::new(Error::PeerGone { node, why });
        let called = self.inner.called.borrow().get(&node).cloned();
        let called = called.ok_or_else(|| gone("there is no connection to it".to_owned()))?;
        let asked = Instant::now();
        let _turn = called.turns.take().await;
        if let Some((_, why)) = called.failed.borrow().as_ref().filter(|(when, _)| *when >= asked) {
            // Another task has failed since this one started to wait.
            return Err(gone(why.clone()));
        }
        let recall = self.inner.limits.recall;
        let is_given_up = called
            .failed
            .borrow()
            .as_ref()
            .is_some_and(|(when, _)| asked.saturating_duration_since(*when) < recall / GIVEN_UP_PART);
        let limit = match is_given_up {
            true => RECALL_PAUSE,
            false => recall.saturating_sub(called.last_word.get().elapsed()).max(recall / RECALL_PART),
        };
        loop {
            let outcome = self.recall_once(node, &called, limit.saturating_sub(asked.elapsed())).await;
            match outcome {
                Ok(()) => return Ok(()),
                Err(_) if self.inner.closed.get() => return Err(Error::Closed.into()),
                // After another pause, too little time would remain for an answer.
                Err(why) if asked.elapsed() + RECALL_PAUSE >= limit => {
                    let why = format!("{}; the reconnection failed: {why}", called.loss.borrow());
                    *called.failed.borrow_mut() = Some((Instant::now(), why.clone()));
                    return Err(gone(why));
                }
                Err(_) => compio::time::sleep(RECALL_PAUSE).await,
            }
        }
    }

    async fn recall_once(
        &self,
        node: NodeId,
        called: &CalledPeer,
        limit: Duration,
    ) -> std::result::Result<(), String> {
        if let Some(connection) = self.connection(node) {
            let Some(loss) = connection.loss() else { return Ok(()) };
            // The file system must be notified of the loss first.
            return match compio::time::timeout(limit, connection.forgotten.wait()).await {
                Ok(()) => Err("the connection is still closing".to_owned()),
                Err(_) => Err(loss),
            };
        }
        let call = self.call(called.address, called.is_named.then_some(node), Some(node));
        match compio::time::timeout(limit, call).await {
            Ok(outcome) => outcome.map(drop).map_err(|fault| format!("{fault}")),
            Err(_) => Err("it does not answer".to_owned()),
        }
    }

    /// Waits until all connections have ended.
    pub(crate) async fn drained(&self) {
        self.inner.alive.none().await;
    }
}

/// Waits until both lanes have ended cleanly, one has failed, or `over` completes, and returns the reason. After one
/// lane has ended cleanly, the other has the time `drain` to do so.
async fn first_failure(
    over: impl Future<Output = String>,
    control: impl Future<Output = std::result::Result<(), String>>,
    data: impl Future<Output = std::result::Result<(), String>>,
    drain: Duration,
) -> String {
    const CLOSED: &str = "it closed the connection";
    let (mut over, mut control, mut data) = (pin!(over), pin!(control), pin!(data));
    let mut late = None;
    let mut ended = [false; 2];
    poll_fn(|context| {
        for (lane, ended) in ended.iter_mut().enumerate().filter(|(_, ended)| !**ended) {
            let poll = if lane == 0 { control.as_mut().poll(context) } else { data.as_mut().poll(context) };
            match poll {
                Poll::Ready(Err(why)) => return Poll::Ready(why),
                Poll::Ready(Ok(())) => *ended = true,
                Poll::Pending => {}
            }
        }
        if ended == [true; 2] {
            return Poll::Ready(CLOSED.to_owned());
        }
        if ended != [false; 2] {
            let late = late.get_or_insert_with(|| Box::pin(compio::time::sleep(drain)));
            if late.as_mut().poll(context).is_ready() {
                return Poll::Ready(CLOSED.to_owned());
            }
        }
        over.as_mut().poll(context)
    })
    .await
}

/// Formats a time with a unit, to three digits.
fn in_words(time: Duration) -> String {
    let milliseconds = time.as_millis();
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        1000..10_000 => format!("{} s", (milliseconds as f64 / 10.0).round() / 100.0),
        _ => format!("{} s", (milliseconds as f64 / 1000.0).round()),
    }
}

impl machine::Net for Net {
    async fn send(&self, to: NodeId, message: Message) -> Result<()> {
        if self.inner.closed.get() {
            return Err(Error::Closed.into());
        }
        loop {
            let open = self.connection(to).filter(|connection| {
                connection.loss().is_none() || !self.inner.called.borrow().contains_key(&to)
            });
            match open {
                Some(connection) => return connection.send(message).await,
                // Boxed because it is rare and would enlarge the future of every message, which is moved several times.
                None => Box::pin(self.recall(to)).await?,
            }
        }
    }

    async fn receive(&self) -> Result<(NodeId, Delivery)> {
        let (from, delivery) = self.inner.inbox.receive().await?;
        if let Delivery::Gone(why) = &delivery {
            if let Some(called) = self.inner.called.borrow().get(&from) {
                why.clone_into(&mut called.loss.borrow_mut());
            }
            let over = self.inner.connections.borrow_mut().remove(&from);
            over.into_iter().for_each(|connection| connection.forgotten.wake_all());
        }
        Ok((from, delivery))
    }

    fn give_up(&self, peer: NodeId, why: &str) {
        if let Some(connection) = self.connection(peer) {
            connection.give_up(why);
        }
    }

    fn close(&self) {
        if self.inner.closed.replace(true) {
            return;
        }
        drop(self.inner.listening.take());
        self.inner.inbox.close();
        for connection in self.inner.connections.borrow().values() {
            connection.close();
        }
        self.inner.joining.take();
        self.inner.closing.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_to_three_digits_with_a_unit() {
        let texts =
            [0, 1, 999, 1000, 1999, 2500, 10_000, 90_400].map(|ms| in_words(Duration::from_millis(ms)));
        assert_eq!(texts, ["0 ms", "1 ms", "999 ms", "1 s", "2 s", "2.5 s", "10 s", "90 s"]);
    }
}
