//! Handshake of two nodes. Both greet; the caller introduces itself and proves that it has the cluster key; the
//! listener does the same and accepts or rejects the caller. Then both repeat this for the second connection, which
//! shows the ticket that the first one got.

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
use super::frame::{
    Greeting, HandshakeAnswer, IntendedReceiver, Introduction, NotUnderstood, Ticket, VERSION, Verdict,
};
use super::noise::{Handshake, MESSAGE_BYTES, Sealed, Secrets, UNREADABLE};
use super::reader::Reader;
use super::records::RecordStream;
use super::staging::Staging;
use super::writer::Writer;
use super::{CalledPeer, Net, Origin, PendingConnection, in_words};
use crate::release::once_released;
use crate::report::Report;
use crate::settings::{Key, Keys, Peer, SocketBuffers};
use crate::task::unless;

/// Limit of handshakes in flight. Beyond it, the caller that has waited longest without introducing itself is evicted.
pub(crate) const HANDSHAKES_MAX: usize = 64;

/// Pause after the system could not accept, most likely for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// TCP keepalive: a peer whose computer vanishes is detected after about a minute of silence.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(30);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;

/// Time after which this node drops a peer that had called it and reads or acknowledges nothing, even if it is alive:
/// data waiting for the peer occupy memory that others need. The peer may call again. The calling side needs no such
/// limit, because it watches the other side. Besides, a busy node may have good reason to read nothing for a while.
const TAKES_NOTHING: Duration = Duration::from_secs(60);

/// Time that the old connection of a node has to show a sign of life when the node calls again. Several round trips of
/// any network, and short enough for the rest of the handshake when a lost node is [called
/// again](crate::settings::Limits::recall).
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// Starts to listen at `address`; returns the address with the actual port.
pub(super) fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr)> {
    let listener = bind(address).and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((TcpListener::from_std(listener)?, address))
    });
    listener.map_err(|error| {
        let (what, why) = (format!("cannot listen at {address}"), error.to_string());
        match error.kind() {
            io::ErrorKind::AddrInUse => Error::InUse { part: NodePart::Address, what, why }.into(),
            _ => Error::Io { what, why }.into(),
        }
    })
}

/// Binds to an address, with the longest queue of callers that the system allows.
fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    once_released(|error: &io::Error| error.kind() == io::ErrorKind::AddrInUse, || bind_once(address))
}

fn bind_once(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // Connections of a previous agent at this address may still be closing.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    // The system lowers this to its configured limit.
    socket.listen(c_int::MAX)?;
    Ok(socket.into())
}

/// Callers in a handshake, in the order of their arrival.
#[derive(Default)]
pub(super) struct Handshakes {
    under_way: RefCell<BTreeMap<u64, Rc<Caller>>>,
    last: Cell<u64>,
}

/// Caller whose handshake is in flight.
#[derive(Default)]
struct Caller {
    has_proved: Cell<bool>,
    gives_way: Cell<bool>,
    word: Condition,
}

impl Handshakes {
    /// Registers a caller. If there are too many, evicts the first that has not introduced itself, or else the first.
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
    /// Connects to `peer` unless already connected.
    pub(crate) async fn connect(&self, peer: Peer) -> Result<()> {
        if self.connection(peer.node).is_some() {
            return Ok(());
        }
        let outcome = self.connect_in_time(peer.address, Some(peer.node)).await;
        let what = || format!("cannot connect to {} at {}", peer.node, peer.address);
        outcome.map(drop).map_err(|fault| fault.during(what()))
    }

    /// Connects to the node that listens at `address`, unless already connected to it, and returns its name.
    pub(crate) async fn connect_to(&self, address: SocketAddr) -> Result<NodeId> {
        let mut outcome = self.connect_in_time(address, None).await;
        if matches!(outcome, Err(Fault::AlreadyConnected)) {
            // A concurrent call reached the node by another address. Its name is known now.
            outcome = self.connect_in_time(address, None).await;
        }
        outcome.map_err(|fault| fault.during(format!("cannot connect to {address}")))
    }

    /// Connects as [`call`](Self::call) does, within the time limit for silence.
    async fn connect_in_time(
        &self,
        address: SocketAddr,
        to: Option<NodeId>,
    ) -> std::result::Result<NodeId, Fault> {
        let limit = self.inner.limits.silence;
        let outcome = timeout(limit, self.call(address, to, None)).await;
        outcome.unwrap_or_else(|_| Err(format!("no answer within {}", in_words(limit)).into()))
    }

    /// Calls `to`, or the node that listens at `address`. The node is registered as `known_as`, or else by its own
    /// name. Returns the registered name.
    pub(super) async fn call(
        &self,
        address: SocketAddr,
        to: Option<NodeId>,
        known_as: Option<NodeId>,
    ) -> std::result::Result<NodeId, Fault> {
        let whom = to.map_or(IntendedReceiver::Anyone, IntendedReceiver::Node);
        let (control, HandshakeAnswer { verdict, node, ticket }) = self.introduce(address, whom).await?;
        if node == self.inner.node {
            return Err("this node listens there, or a node with the same ID".into());
        }
        // A node that was called without a name may turn out to be connected already.
        let is_known = to.is_none() && known_as.is_none() && self.connection(node).is_some();
        match verdict {
            Verdict::OtherNode => return Err(format!("{node} listens there").into()),
            Verdict::Welcome if to.is_some_and(|to| to != node) => {
                return Err(format!("{node} answered instead").into());
            }
            Verdict::Welcome => {}
            Verdict::AlreadyConnected if is_known => return Ok(node),
            Verdict::AlreadyConnected => return Err(Fault::AlreadyConnected),
            refusal => return Err(refusal.reason().into()),
        }
        let (data, answer) = self.introduce(address, IntendedReceiver::Ticket(ticket)).await?;
        if answer.verdict != Verdict::Welcome {
            return Err(answer.verdict.reason().into());
        }
        // Other tasks may have run during the handshake.
        if self.inner.closed.get() {
            return Err(Error::Closed.to_string().into());
        }
        let peer = known_as.unwrap_or(node);
        if self.connection(peer).is_none() {
            self.begin(peer, [control, data], Origin::CalledPeer);
            self.inner.called.borrow_mut().entry(peer).or_insert_with(|| {
                let (turns, loss, failed) = (Permits::new(1), RefCell::default(), RefCell::default());
                let last_word = Cell::new(Instant::now());
                Rc::new(CalledPeer { address, is_named: to.is_some(), turns, loss, last_word, failed })
            });
        }
        Ok(peer)
    }

    /// Opens a TCP connection and introduces this node; returns the connection with the answer.
    async fn introduce(
        &self,
        address: SocketAddr,
        to: IntendedReceiver,
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
        to: IntendedReceiver,
    ) -> std::result::Result<(TcpHalves, HandshakeAnswer), Fault> {
        let stream = TcpStream::connect(address).await.map_err(text)?;
        prepare(&SockRef::from(&stream), self.inner.sockets).map_err(text)?;
        let mut stream = HandshakeStream::new(stream);
        let mine = self.greeting()?;
        stream.say(mine.encode()).await?;
        let theirs = stream.receive_greeting().await?;
        check_encryption(mine, theirs)?;
        let mut handshake = Handshake::of_caller(key, [mine, theirs]);
        stream.say(handshake.seal(&Introduction { from: self.inner.node, to }.encode())).await?;
        // A listener with another key sends an answer that cannot be decrypted.
        let answer = handshake.open(&stream.receive::<MESSAGE_BYTES>().await?).ok_or(KeyMismatch::Differ)?;
        let answer = HandshakeAnswer::decode(&answer).map_err(text)?;
        Ok((stream.finish(Role::Caller, mine, handshake), answer))
    }

    /// Returns the greeting of this node.
    fn greeting(&self) -> std::result::Result<Greeting, Fault> {
        Ok(Greeting { encrypts: self.inner.keys.encrypts, random: random()? })
    }

    /// Accepts connections for as long as the node listens.
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

    /// Accepts a caller, or reports the reason of the refusal.
    async fn answer(&self, stream: TcpStream, from: SocketAddr, caller: &Caller) {
        let limit = self.inner.limits.handshake;
        let in_time = timeout(limit, self.let_in(stream, caller));
        let outcome = match unless(caller.gives_way(), in_time).await {
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) => Err(format!("it sent no handshake within {}", in_words(limit)).into()),
            None => Err("it sent no handshake before many others connected".into()),
        };
        if let Err(fault) = outcome {
            self.inner.refusals.report(from, &fault);
        }
    }

    async fn let_in(&self, stream: TcpStream, caller: &Caller) -> std::result::Result<(), Fault> {
        prepare_called(&SockRef::from(&stream), self.inner.sockets).map_err(text)?;
        let mut stream = HandshakeStream::new(stream);
        let mine = self.greeting()?;
        let theirs = match stream.receive_greeting().await {
            // A caller of another protocol would not understand an answer.
            Err(Fault::NotUnderstood(why @ NotUnderstood::Version(_))) => {
                stream.say(mine.encode()).await?;
                return Err(why.into());
            }
            other => other?,
        };
        stream.say(mine.encode()).await?;
        check_encryption(mine, theirs)?;
        let sealed = stream.receive::<MESSAGE_BYTES>().await?;
        let Some((handshake, introduction)) = self.understand(&sealed, [theirs, mine]) else {
            stream.say(UNREADABLE).await?;
            return Err(KeyMismatch::Differ.into());
        };
        caller.has_proved.set(true);
        let introduction = Introduction::decode(&introduction)?;
        let entrant = AuthenticatedCaller { introduction, stream, greeting: mine, handshake };
        match introduction.to {
            IntendedReceiver::Ticket(ticket) => self.join(entrant, ticket).await,
            IntendedReceiver::Node(_) | IntendedReceiver::Anyone => self.let_in_for_control(entrant).await,
        }
    }

    /// Decrypts an introduction with the key that the caller used, if this node has it.
    fn understand(
        &self,
        sealed: &Sealed,
        greetings: [Greeting; 2],
    ) -> Option<(Handshake, [u8; Introduction::BYTES])> {
        self.inner.keys.all().find_map(|key| {
            let mut handshake = Handshake::of_listener(key, greetings);
            handshake.open(sealed).map(|introduction| (handshake, introduction))
        })
    }

    /// Accepts the first connection of a node, which then waits for the second.
    async fn let_in_for_control(&self, entrant: AuthenticatedCaller) -> std::result::Result<(), Fault> {
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
        // Inserted before the caller gets the ticket and can return with it.
        self.inner.joining.borrow_mut().insert(ticket, PendingConnection { from, control });
        // If this write fails, the caller does not open the second connection.
        let BufResult(_, _) = stream.write_all(answer).await;
        let net = self.clone();
        // In a separate task: the handshake of the second connection needs the slot of this one.
        self.inner.tasks.spawn("handshake", async move {
            compio::time::sleep(net.inner.limits.handshake).await;
            net.inner.joining.borrow_mut().remove(&ticket);
            Ok(())
        });
        Ok(())
    }

    /// Ends a connection without signs of life, and waits until the file system has been notified of the loss.
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
    async fn join(&self, entrant: AuthenticatedCaller, ticket: Ticket) -> std::result::Result<(), Fault> {
        let from = entrant.introduction.from;
        let Some(control) = self.take_joining(from, ticket) else {
            return self.refuse(entrant, Verdict::NoSuchTicket).await;
        };
        let (data, answer) = self.welcome(entrant, Ticket::default());
        // Registered before the caller learns that it was accepted, so that its first request finds the connection.
        self.begin(from, [control, data], Origin::WasCalled { answer });
        Ok(())
    }

    /// Removes and returns the first connection with this ticket, if it is of the same node.
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
        } else if matches!(introduction.to, IntendedReceiver::Node(to) if to != inner.node) {
            Verdict::OtherNode
        } else if from == inner.node || is_known() {
            Verdict::AlreadyConnected
        } else if inner.alive.count() + joining.len() >= inner.limits.connections {
            Verdict::Full
        } else {
            Verdict::Welcome
        }
    }

    /// Answers a caller with a refusal, and disconnects.
    async fn refuse(
        &self,
        mut entrant: AuthenticatedCaller,
        verdict: Verdict,
    ) -> std::result::Result<(), Fault> {
        let answer = self.answer_to(&mut entrant, verdict, Ticket::default());
        let stream = &mut entrant.stream.stream;
        // A caller that no longer reads does not need the answer.
        let BufResult(_, _) = stream.write_all(answer).await;
        let _ = stream.shutdown().await;
        Err(explain_refusal(verdict, entrant.introduction).into())
    }

    /// Returns the connection of an accepted caller, and the answer to the caller.
    fn welcome(&self, mut entrant: AuthenticatedCaller, ticket: Ticket) -> (TcpHalves, Vec<u8>) {
        let answer = self.answer_to(&mut entrant, Verdict::Welcome, ticket);
        let AuthenticatedCaller { stream, greeting, handshake, .. } = entrant;
        (stream.finish(Role::Listener, greeting, handshake), answer)
    }

    /// Returns an answer in wire format.
    fn answer_to(&self, entrant: &mut AuthenticatedCaller, verdict: Verdict, ticket: Ticket) -> Vec<u8> {
        let answer = HandshakeAnswer { verdict, node: self.inner.node, ticket };
        entrant.handshake.seal(&answer.encode()).to_vec()
    }
}

/// Caller that has introduced itself and proved that it has the key.
struct AuthenticatedCaller {
    introduction: Introduction,
    stream: HandshakeStream,
    /// Greeting of this side.
    greeting: Greeting,
    handshake: Handshake,
}

/// TCP connection during its handshake.
struct HandshakeStream {
    stream: TcpStream,
    bytes: Staging,
}

/// Side of a handshake.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Caller,
    Listener,
}

impl HandshakeStream {
    fn new(stream: TcpStream) -> Self {
        HandshakeStream { bytes: Staging::new(stream.clone()), stream }
    }

    /// Ends the handshake: from now on the connection carries frames.
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

    /// Reads the greeting of the other side; only its beginning if the version differs.
    async fn receive_greeting(&mut self) -> std::result::Result<Greeting, Fault> {
        const REST: usize = Greeting::BYTES - Greeting::FIRST_BYTES;
        let first: [u8; Greeting::FIRST_BYTES] = self.receive().await?;
        Greeting::check_first(&first)?;
        let rest: [u8; REST] = self.receive().await?;
        let mut bytes = [0; Greeting::BYTES];
        bytes[..Greeting::FIRST_BYTES].copy_from_slice(&first);
        bytes[Greeting::FIRST_BYTES..].copy_from_slice(&rest);
        Ok(Greeting::decode(&bytes)?)
    }

    async fn receive<const N: usize>(&mut self) -> std::result::Result<[u8; N], Fault> {
        Ok(self.bytes.array().await.map_err(text)?.ok_or("it closed the connection without an answer")?)
    }
}

/// Draws unpredictable random bytes.
fn random<const N: usize>() -> std::result::Result<[u8; N], Fault> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| format!("cannot get random numbers: {error}"))?;
    Ok(bytes)
}

/// Fails if only one side encrypts: a node must not weaken the setting of its key file because the peer asks for it.
fn check_encryption(mine: Greeting, theirs: Greeting) -> std::result::Result<(), Fault> {
    match (mine.encrypts, theirs.encrypts) {
        (true, false) => Err(KeyMismatch::ClearThere.into()),
        (false, true) => Err(KeyMismatch::ClearHere.into()),
        _ => Ok(()),
    }
}

/// Reason for which a handshake failed.
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
    /// Converts this fault to an error of the failed operation.
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
            let to = if let IntendedReceiver::Node(to) = introduction.to {
                to.to_string()
            } else {
                "another".to_owned()
            };
            format!("{from} wants to talk to {to}")
        }
        Verdict::AlreadyConnected => format!("{from} is connected already"),
        Verdict::NoSuchTicket => {
            format!("{from} opened its connection for data too late, or by mistake")
        }
        Verdict::Full => format!("{from} exceeds the limit of connections"),
        Verdict::Closed => format!("the network is closed, so {from} is too late"),
        Verdict::Welcome => format!("{from} ({verdict:?})"),
    }
}

/// Sets options of every connection: small messages leave at once, and a vanished peer is detected. The system chooses
/// the sizes of the socket's buffers, unless `buffers` sets them.
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

/// Sets options of a connection from another node, which this node does not watch.
fn prepare_called(socket: &SockRef<'_>, buffers: SocketBuffers) -> io::Result<()> {
    prepare(socket, buffers)?;
    socket.set_tcp_user_timeout(Some(TAKES_NOTHING))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn socket_buffers_have_the_configured_sizes() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let sizes = |buffers| {
            let stream = std::net::TcpStream::connect(address).expect("it listens");
            let socket = SockRef::from(&stream);
            prepare(&socket, buffers).expect("it is connected");
            [socket.send_buffer_size(), socket.recv_buffer_size()].map(|bytes| bytes.expect("a size"))
        };
        let [send, receive] = sizes(SocketBuffers::default());
        // Linux doubles the size for its own bookkeeping.
        let small = SocketBuffers { send_bytes: NonZeroU32::new(9000), ..SocketBuffers::default() };
        assert_eq!(sizes(small), [18_000, receive]);
        let small = SocketBuffers { receive_bytes: NonZeroU32::new(9000), ..SocketBuffers::default() };
        assert_eq!(sizes(small), [send, 18_000]);
    }
    #[test]
    fn only_the_called_node_disconnects_a_peer_that_does_not_receive() {
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
