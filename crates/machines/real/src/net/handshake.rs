//! The handshake of two nodes: both greet, the caller introduces itself and proves that it has the cluster key, and the
//! listener does the same and lets it in or says why not. Then the same once more: the second connection shows the
//! ticket that the first one got.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use compio::BufResult;
use compio::io::{AsyncWrite, AsyncWriteExt};
use compio::net::{TcpListener, TcpStream};
use compio::time::timeout;
use machine::{Condition, Error, KeyMismatch, NodeId, NodePart, Permits, Result};
use socket2::{Domain, SockRef, Socket, TcpKeepalive, Type};

use super::connection::{Connection, TcpHalves};
use super::frame::{Greeting, HandshakeAnswer, Introduction, NotUnderstood, Ticket, VERSION, Verdict, Whom};
use super::noise::{Handshake, MESSAGE_BYTES, Sealed, Secrets, UNREADABLE};
use super::reader::Reader;
use super::records::RecordStream;
use super::staging::Staging;
use super::writer::Writer;
use super::{Called, Joining, Net, Origin, in_words};
use crate::release::once_released;
use crate::report::Report;
use crate::settings::{Key, Keys, Peer, SocketBuffers};
use crate::task::unless;

/// Handshakes under way at once. When there are more, the caller gives way that has been there for longest without
/// introducing itself.
pub(crate) const HANDSHAKES_MAX: usize = 64;

/// Pause after the system could not accept, most likely for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A peer whose computer has gone without a word is noticed after about a minute of silence.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(30);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;

/// A peer that has called, and takes nothing of what it is sent, or does not confirm it, is given up after this time,
/// even if it is there: what waits for it keeps memory that others need. It may call again. Who calls needs no such
/// limit, for he watches the other side; and a busy node may have good reason to take nothing for a while.
const TAKES_NOTHING: Duration = Duration::from_secs(60);

/// How long the old connection of a node that calls again is asked for a sign of life. It is some round trips of any
/// network, and leaves time for the rest of the handshake when a lost node is
/// [called again](crate::settings::Limits::recall).
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// Begins to listen at `address`; returns the address with the port it got.
pub(super) fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr)> {
    let listener = bind(address).and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((TcpListener::from_std(listener)?, address))
    });
    listener.map_err(|error| {
        let (what, why) = (format!("listening at {address}"), error.to_string());
        match error.kind() {
            io::ErrorKind::AddrInUse => Error::InUse { part: NodePart::Address, what, why }.into(),
            _ => Error::Io { what, why }.into(),
        }
    })
}

/// Takes an address, with the longest queue of callers that the system gives.
fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    once_released(|error: &io::Error| error.kind() == io::ErrorKind::AddrInUse, || bind_once(address))
}

fn bind_once(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // Connections of an agent that was here before may still be about to end.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    // The system makes it as many as it is configured to allow.
    socket.listen(c_int::MAX)?;
    Ok(socket.into())
}

/// The callers that are not let in yet, by the order in which they came.
#[derive(Default)]
pub(super) struct Handshakes {
    under_way: RefCell<BTreeMap<u64, Rc<Caller>>>,
    last: Cell<u64>,
}

/// A caller whose handshake is under way.
#[derive(Default)]
struct Caller {
    has_proved: Cell<bool>,
    gives_way: Cell<bool>,
    word: Condition,
}

impl Handshakes {
    /// A caller has come. If there are too many, the first of those that have not introduced themselves gives way, or
    /// else the first.
    fn begin(&self) -> (u64, Rc<Caller>) {
        let mut under_way = self.under_way.borrow_mut();
        if under_way.len() >= HANDSHAKES_MAX {
            let silent = under_way.iter().find(|(_, caller)| !caller.has_proved.get());
            let first = silent.or(under_way.first_key_value()).map(|(&number, _)| number);
            let caller = first.and_then(|number| under_way.remove(&number)).expect("there are many");
            caller.gives_way.set(true);
            caller.word.wake_all();
        }
        let (number, caller) = (self.last.get() + 1, Rc::<Caller>::default());
        self.last.set(number);
        under_way.insert(number, caller.clone());
        (number, caller)
    }

    fn end(&self, number: u64) {
        self.under_way.borrow_mut().remove(&number);
    }
}

impl Caller {
    async fn gives_way(&self) {
        while !self.gives_way.get() {
            self.word.wait().await;
        }
    }
}

impl Net {
    /// Connects to `peer` unless there is a connection.
    pub(crate) async fn connect(&self, peer: Peer) -> Result<()> {
        if self.connection(peer.node).is_some() {
            return Ok(());
        }
        let outcome = self.connect_in_time(peer.address, Some(peer.node)).await;
        let what = || format!("connecting to {} at {}", peer.node, peer.address);
        outcome.map(drop).map_err(|fault| fault.during(what()))
    }

    /// Connects to the node that listens at `address`, unless there is a connection to it, and returns its name.
    pub(crate) async fn connect_to(&self, address: SocketAddr) -> Result<NodeId> {
        let mut outcome = self.connect_in_time(address, None).await;
        if matches!(outcome, Err(Fault::AlreadyConnected)) {
            // At the same time, by another address. By now it is known who that is.
            outcome = self.connect_in_time(address, None).await;
        }
        outcome.map_err(|fault| fault.during(format!("connecting to {address}")))
    }

    /// Connects as [`call`](Self::call) does, within the time that a node may be silent.
    async fn connect_in_time(
        &self,
        address: SocketAddr,
        to: Option<NodeId>,
    ) -> std::result::Result<NodeId, Fault> {
        let limit = self.inner.limits.silence;
        let outcome = timeout(limit, self.call(address, to, None)).await;
        outcome.unwrap_or_else(|_| Err(format!("no answer within {}", in_words(limit)).into()))
    }

    /// Calls `to`, or the node that listens at `address`, which is to be known here as `known_as` or else by its own
    /// name; returns the name under which it is connected.
    pub(super) async fn call(
        &self,
        address: SocketAddr,
        to: Option<NodeId>,
        known_as: Option<NodeId>,
    ) -> std::result::Result<NodeId, Fault> {
        let whom = to.map_or(Whom::Anyone, Whom::Node);
        let (control, HandshakeAnswer { verdict, node, ticket }) = self.introduce(address, whom).await?;
        if node == self.inner.node {
            return Err("this node itself listens there, or another of its name".into());
        }
        // A node that was called by no name may turn out to be connected already.
        let is_known = to.is_none() && known_as.is_none() && self.connection(node).is_some();
        match verdict {
            Verdict::OtherNode => return Err(format!("{node} listens there").into()),
            Verdict::Welcome if to.is_some_and(|to| to != node) => {
                return Err(format!("{node} welcomed this node in its place").into());
            }
            Verdict::Welcome => {}
            Verdict::AlreadyConnected if is_known => return Ok(node),
            Verdict::AlreadyConnected => return Err(Fault::AlreadyConnected),
            refusal => return Err(refusal.reason().into()),
        }
        let (data, answer) = self.introduce(address, Whom::Ticket(ticket)).await?;
        if answer.verdict != Verdict::Welcome {
            return Err(answer.verdict.reason().into());
        }
        // Others may have run meanwhile.
        if self.inner.closed.get() {
            return Err(Error::Closed.to_string().into());
        }
        let peer = known_as.unwrap_or(node);
        if self.connection(peer).is_none() {
            self.begin(peer, [control, data], Origin::Called);
            self.inner.called.borrow_mut().entry(peer).or_insert_with(|| {
                let (turns, loss, failed) = (Permits::new(1), RefCell::default(), RefCell::default());
                let last_word = Cell::new(Instant::now());
                Rc::new(Called { address, is_named: to.is_some(), turns, loss, last_word, failed })
            });
        }
        Ok(peer)
    }

    /// Opens a TCP connection and introduces this node; returns it with the answer.
    async fn introduce(
        &self,
        address: SocketAddr,
        to: Whom,
    ) -> std::result::Result<(TcpHalves, HandshakeAnswer), Fault> {
        let Keys { current, previous, .. } = &self.inner.keys;
        let introduced = self.introduce_by(current, address, to).await;
        match (introduced, previous) {
            // The other side may not have the current key yet.
            (Err(Fault::Key(KeyMismatch::Differ)), Some(previous)) => {
                self.introduce_by(previous, address, to).await
            }
            (introduced, _) => introduced,
        }
    }

    async fn introduce_by(
        &self,
        key: &Key,
        address: SocketAddr,
        to: Whom,
    ) -> std::result::Result<(TcpHalves, HandshakeAnswer), Fault> {
        let stream = TcpStream::connect(address).await.map_err(text)?;
        prepare(&SockRef::from(&stream), self.inner.sockets).map_err(text)?;
        let mut stream = Greeted::new(stream);
        let mine = self.greeting()?;
        stream.say(mine.encode()).await?;
        let theirs = stream.hear_greeting().await?;
        check_encryption(mine, theirs)?;
        let mut handshake = Handshake::of_caller(key, [mine, theirs]);
        stream.say(handshake.seal(&Introduction { from: self.inner.node, to }.encode())).await?;
        // A listener with another key answers what nobody can read.
        let answer = handshake.open(&stream.hear::<MESSAGE_BYTES>().await?).ok_or(KeyMismatch::Differ)?;
        let answer = HandshakeAnswer::decode(&answer).map_err(text)?;
        Ok((stream.finish(Role::Caller, mine, handshake), answer))
    }

    /// The first bytes of this node in a handshake.
    fn greeting(&self) -> std::result::Result<Greeting, Fault> {
        Ok(Greeting { encrypts: self.inner.keys.encrypts, random: random()? })
    }

    /// Lets others in for as long as the node listens.
    pub(super) async fn accept_all(self, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, from)) => {
                    let net = self.clone();
                    let (number, caller) = self.inner.handshakes.begin();
                    self.inner.tasks.spawn("handshake", async move {
                        net.answer(stream, from, &caller).await;
                        net.inner.handshakes.end(number);
                        Ok(())
                    });
                }
                Err(error) => {
                    let (node, why) = (self.inner.node, error.to_string());
                    self.inner.tasks.report(&Report::CannotAccept { node, why });
                    compio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Lets a caller in, or reports why not.
    async fn answer(&self, stream: TcpStream, from: SocketAddr, caller: &Caller) {
        let limit = self.inner.limits.handshake;
        let in_time = timeout(limit, self.let_in(stream, caller));
        let outcome = match unless(caller.gives_way(), in_time).await {
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) => Err(format!("it did not introduce itself within {}", in_words(limit)).into()),
            None => Err("it did not introduce itself before many others came".into()),
        };
        if let Err(fault) = outcome {
            self.inner.refusals.report(from, &fault);
        }
    }

    async fn let_in(&self, stream: TcpStream, caller: &Caller) -> std::result::Result<(), Fault> {
        prepare_called(&SockRef::from(&stream), self.inner.sockets).map_err(text)?;
        let mut stream = Greeted::new(stream);
        let mine = self.greeting()?;
        let theirs = match stream.hear_greeting().await {
            // A caller that speaks another protocol altogether would not understand an answer.
            Err(Fault::NotUnderstood(why @ NotUnderstood::Version(_))) => {
                stream.say(mine.encode()).await?;
                return Err(why.into());
            }
            other => other?,
        };
        stream.say(mine.encode()).await?;
        check_encryption(mine, theirs)?;
        let said = stream.hear::<MESSAGE_BYTES>().await?;
        let Some((handshake, introduction)) = self.understand(&said, [theirs, mine]) else {
            stream.say(UNREADABLE).await?;
            return Err(KeyMismatch::Differ.into());
        };
        caller.has_proved.set(true);
        let introduction = Introduction::decode(&introduction)?;
        let entrant = Entrant { introduction, stream, greeting: mine, handshake };
        match introduction.to {
            Whom::Ticket(ticket) => self.join(entrant, ticket).await,
            Whom::Node(_) | Whom::Anyone => self.let_in_for_control(entrant).await,
        }
    }

    /// Reads an introduction by the key that it was made with, if this node has it.
    fn understand(
        &self,
        said: &Sealed,
        greetings: [Greeting; 2],
    ) -> Option<(Handshake, [u8; Introduction::BYTES])> {
        self.inner.keys.all().find_map(|key| {
            let mut handshake = Handshake::of_listener(key, greetings);
            handshake.open(said).map(|introduction| (handshake, introduction))
        })
    }

    /// Lets in the first connection of a node, which then waits for the second.
    async fn let_in_for_control(&self, entrant: Entrant) -> std::result::Result<(), Fault> {
        let introduction = entrant.introduction;
        let from = introduction.from;
        let mut verdict = self.judge(introduction);
        if let (Verdict::AlreadyConnected, Some(old)) = (verdict, self.connection(from)) {
            self.end_if_silent(&old).await;
            verdict = self.judge(introduction);
        }
        if verdict != Verdict::Welcome {
            return self.refuse(entrant, verdict).await;
        }
        let ticket: Ticket = random()?;
        let (control, answer) = self.welcome(entrant, ticket);
        let mut stream = control.stream.clone();
        // Inserted before the caller gets the ticket and comes back with it.
        self.inner.joining.borrow_mut().insert(ticket, Joining { from, control });
        // If the other side does not hear it, it does not come again.
        let BufResult(_, _) = stream.write_all(answer).await;
        let net = self.clone();
        // In a task of its own: the handshake of the second connection needs the place of this one.
        self.inner.tasks.spawn("handshake", async move {
            compio::time::sleep(net.inner.limits.handshake).await;
            net.inner.joining.borrow_mut().remove(&ticket);
            Ok(())
        });
        Ok(())
    }

    /// Ends a connection over which nothing comes any more, and waits until the file system has heard of its loss.
    async fn end_if_silent(&self, old: &Rc<Connection>) {
        if old.loss().is_none() && old.shows_life(SIGN_OF_LIFE).await {
            return;
        }
        old.replaced.wake_all();
        while self.connection(old.peer).is_some_and(|connection| Rc::ptr_eq(&connection, old)) {
            old.forgotten.wait().await;
        }
    }

    /// Joins the second connection of a node to the first.
    async fn join(&self, entrant: Entrant, ticket: Ticket) -> std::result::Result<(), Fault> {
        let from = entrant.introduction.from;
        let Some(control) = self.take_joining(from, ticket) else {
            return self.refuse(entrant, Verdict::NoSuchTicket).await;
        };
        let (data, answer) = self.welcome(entrant, Ticket::default());
        // Entered before the other side hears that it is welcome.
        self.begin(from, [control, data], Origin::WasCalled { answer });
        Ok(())
    }

    /// Takes out the first connection that has got this ticket, if it is of the same node.
    fn take_joining(&self, from: NodeId, ticket: Ticket) -> Option<TcpHalves> {
        let mut joining = self.inner.joining.borrow_mut();
        if joining.get(&ticket).is_none_or(|half| half.from != from) {
            return None;
        }
        joining.remove(&ticket).map(|half| half.control)
    }

    fn judge(&self, introduction: Introduction) -> Verdict {
        let (inner, from) = (&self.inner, introduction.from);
        let joining = inner.joining.borrow();
        let is_known = || self.connection(from).is_some() || joining.values().any(|half| half.from == from);
        if inner.closed.get() {
            Verdict::Closed
        } else if matches!(introduction.to, Whom::Node(to) if to != inner.node) {
            Verdict::OtherNode
        } else if from == inner.node || is_known() {
            Verdict::AlreadyConnected
        } else if inner.alive.count() + joining.len() >= inner.limits.connections {
            Verdict::Full
        } else {
            Verdict::Welcome
        }
    }

    /// Answers a caller that it is not welcome, and hangs up.
    async fn refuse(&self, mut entrant: Entrant, verdict: Verdict) -> std::result::Result<(), Fault> {
        let answer = self.answer_to(&mut entrant, verdict, Ticket::default());
        let stream = &mut entrant.stream.stream;
        // Whether the other side still hears it is its affair.
        let BufResult(_, _) = stream.write_all(answer).await;
        let _ = stream.shutdown().await;
        Err(explain_refusal(verdict, entrant.introduction).into())
    }

    /// The connection of a caller that is welcome, and the answer to the caller.
    fn welcome(&self, mut entrant: Entrant, ticket: Ticket) -> (TcpHalves, Vec<u8>) {
        let answer = self.answer_to(&mut entrant, Verdict::Welcome, ticket);
        let Entrant { stream, greeting, handshake, .. } = entrant;
        (stream.finish(Role::Listener, greeting, handshake), answer)
    }

    /// An answer as it lies on the wire.
    fn answer_to(&self, entrant: &mut Entrant, verdict: Verdict, ticket: Ticket) -> Vec<u8> {
        let answer = HandshakeAnswer { verdict, node: self.inner.node, ticket };
        entrant.handshake.seal(&answer.encode()).to_vec()
    }
}

/// A caller that has introduced itself and has the key.
struct Entrant {
    introduction: Introduction,
    stream: Greeted,
    /// The greeting of this side.
    greeting: Greeting,
    handshake: Handshake,
}

/// A TCP connection during its handshake.
struct Greeted {
    stream: TcpStream,
    bytes: Staging,
}

/// A side of a handshake.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Caller,
    Listener,
}

impl Greeted {
    fn new(stream: TcpStream) -> Self {
        Greeted { bytes: Staging::new(stream.clone()), stream }
    }

    /// Ends the handshake: from then on the connection has frames.
    fn finish(self, role: Role, greeting: Greeting, handshake: Handshake) -> TcpHalves {
        let Secrets { of_caller, of_listener } = handshake.secrets();
        let [out, back] = match role {
            Role::Caller => [of_caller, of_listener],
            Role::Listener => [of_listener, of_caller],
        }
        .map(
            |secret| if greeting.encrypts { RecordStream::encrypted(secret) } else { RecordStream::clear() },
        );
        let (stream, bytes) = (self.stream, self.bytes);
        TcpHalves { writer: Writer::new(stream.clone(), out), reader: Reader::new(bytes, back), stream }
    }

    async fn say(&mut self, bytes: impl Into<Vec<u8>>) -> std::result::Result<(), Fault> {
        let BufResult(written, _) = self.stream.write_all(bytes.into()).await;
        Ok(written.map_err(text)?)
    }

    /// The other side's greeting. Of another version's only the beginning is read.
    async fn hear_greeting(&mut self) -> std::result::Result<Greeting, Fault> {
        const REST: usize = Greeting::BYTES - Greeting::FIRST_BYTES;
        let first: [u8; Greeting::FIRST_BYTES] = self.hear().await?;
        Greeting::check_first(&first)?;
        let rest: [u8; REST] = self.hear().await?;
        let mut bytes = [0; Greeting::BYTES];
        bytes[..Greeting::FIRST_BYTES].copy_from_slice(&first);
        bytes[Greeting::FIRST_BYTES..].copy_from_slice(&rest);
        Ok(Greeting::decode(&bytes)?)
    }

    async fn hear<const N: usize>(&mut self) -> std::result::Result<[u8; N], Fault> {
        Ok(self.bytes.array().await.map_err(text)?.ok_or("it closed the connection without an answer")?)
    }
}

/// Bytes drawn at random, which cannot be guessed.
fn random<const N: usize>() -> std::result::Result<[u8; N], Fault> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| format!("drawing random numbers: {error}"))?;
    Ok(bytes)
}

/// Fails if only one side encrypts: no side does less than its key file says because of a word of the other.
fn check_encryption(mine: Greeting, theirs: Greeting) -> std::result::Result<(), Fault> {
    match (mine.encrypts, theirs.encrypts) {
        (true, false) => Err(KeyMismatch::ClearThere.into()),
        (false, true) => Err(KeyMismatch::ClearHere.into()),
        _ => Ok(()),
    }
}

/// Why a handshake came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("{0}")]
    Key(#[from] KeyMismatch),
    #[error("{0}")]
    NotUnderstood(#[from] NotUnderstood),
    #[error("{}", Verdict::AlreadyConnected.reason())]
    AlreadyConnected,
    #[error("{0}")]
    Other(String),
}

impl Fault {
    /// This fault as an error of `what` was being done.
    fn during(self, what: String) -> Box<Error> {
        match self {
            Fault::Key(mismatch) => Error::OtherKey { what, mismatch },
            Fault::NotUnderstood(NotUnderstood::Version(theirs)) => {
                Error::OtherVersion { what, theirs, ours: VERSION }
            }
            Fault::NotUnderstood(NotUnderstood::NotStarfish) => Error::OtherProgram { what },
            other => Error::Io { what, why: other.to_string() },
        }
        .into()
    }

    pub(super) fn mismatch(&self) -> Option<KeyMismatch> {
        if let Fault::Key(mismatch) = self { Some(*mismatch) } else { None }
    }
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Fault::Other(why)
    }
}

impl From<&str> for Fault {
    fn from(why: &str) -> Self {
        Fault::Other(why.to_owned())
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn explain_refusal(verdict: Verdict, introduction: Introduction) -> String {
    let from = introduction.from;
    match verdict {
        Verdict::OtherNode => {
            let to = if let Whom::Node(to) = introduction.to { to.to_string() } else { "another".to_owned() };
            format!("{from} wants to talk to {to}")
        }
        Verdict::AlreadyConnected => format!("{from} is connected already"),
        Verdict::NoSuchTicket => {
            format!("{from} has brought its connection for data too late, or by mistake")
        }
        Verdict::Full => format!("{from} is one connection too many"),
        Verdict::Closed => format!("{from} comes too late, the network is closed"),
        Verdict::Welcome => format!("{from} ({verdict:?})"),
    }
}

/// Sets what every connection needs: small messages leave at once, and a peer that is silently gone is noticed. The
/// sizes of the socket's buffers are left to the system, unless `buffers` sets them.
fn prepare(socket: &SockRef<'_>, buffers: SocketBuffers) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    if let Some(bytes) = buffers.send_bytes {
        socket.set_send_buffer_size(bytes.get() as usize)?;
    }
    if let Some(bytes) = buffers.receive_bytes {
        socket.set_recv_buffer_size(bytes.get() as usize)?;
    }
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_AFTER).with_interval(KEEPALIVE_EVERY);
    socket.set_tcp_keepalive(&keepalive.with_retries(KEEPALIVE_PROBES))
}

/// Sets what a connection needs that another node has made, and that this one does not watch.
fn prepare_called(socket: &SockRef<'_>, buffers: SocketBuffers) -> io::Result<()> {
    prepare(socket, buffers)?;
    socket.set_tcp_user_timeout(Some(TAKES_NOTHING))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn the_buffers_of_sockets_are_as_large_as_asked() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let sizes = |buffers| {
            let stream = std::net::TcpStream::connect(address).expect("it listens");
            let socket = SockRef::from(&stream);
            prepare(&socket, buffers).expect("it is connected");
            [socket.send_buffer_size(), socket.recv_buffer_size()].map(|bytes| bytes.expect("a size"))
        };
        let [send, receive] = sizes(SocketBuffers::default());
        // The system counts what it needs itself, as much again.
        let small = SocketBuffers { send_bytes: NonZeroU32::new(9000), ..SocketBuffers::default() };
        assert_eq!(sizes(small), [18_000, receive]);
        let small = SocketBuffers { receive_bytes: NonZeroU32::new(9000), ..SocketBuffers::default() };
        assert_eq!(sizes(small), [send, 18_000]);
    }
    #[test]
    fn only_who_is_called_gives_up_a_peer_that_takes_nothing() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let caller = std::net::TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        let (called, _) = listener.accept().expect("a caller");
        let (caller, called) = (SockRef::from(&caller), SockRef::from(&called));
        prepare(&caller, SocketBuffers::default()).expect("it is connected");
        prepare_called(&called, SocketBuffers::default()).expect("it is connected");
        let limit = |socket: &SockRef<'_>| socket.tcp_user_timeout().expect("a time");
        assert_eq!((limit(&caller), limit(&called)), (None, Some(TAKES_NOTHING)));
    }
}
