//! How two nodes become connected: who calls introduces itself, who is called lets it in or says why not.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use compio::BufResult;
use compio::io::{AsyncWrite, AsyncWriteExt};
use compio::net::{TcpListener, TcpStream};
use compio::time::timeout;
use machine::{BufferPool, Error, NodeId, Result};
use socket2::{SockRef, TcpKeepalive};

use super::Net;
use super::connection::Reader;
use super::frame::{Answer, Hello, NotUnderstood, Verdict};
use crate::report::Report;
use crate::settings::Peer;

/// Handshakes under way at once. More callers wait in the system's queue; none can hold a place longer than
/// the time a handshake has.
const HANDSHAKES_MAX: u64 = 64;

/// Pause after the system could not accept, most likely for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A peer whose computer has gone without a word is noticed after about a minute of silence.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(30);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;

/// Begins to listen at `address`; returns the address with the port it got.
pub(super) fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr)> {
    let listener = std::net::TcpListener::bind(address).and_then(|listener| {
        let address = listener.local_addr()?;
        Ok((TcpListener::from_std(listener)?, address))
    });
    listener.map_err(|error| Error::Io { what: format!("listening at {address}"), why: error.to_string() })
}

impl Net {
    /// Connects to `peer` unless there is a connection.
    pub(crate) async fn connect(&self, peer: Peer) -> Result<()> {
        if self.connection(peer.node).is_some() {
            return Ok(());
        }
        let outcome = self.call_in_time(peer.address, Some(peer.node)).await;
        let what = || format!("connecting to {} at {}", peer.node, peer.address);
        outcome.map(drop).map_err(|why| Error::Io { what: what(), why })
    }

    /// Connects to whoever listens at `address` unless there is a connection to that node, and returns its name.
    pub(crate) async fn connect_to(&self, address: SocketAddr) -> Result<NodeId> {
        let outcome = self.call_in_time(address, None).await;
        outcome.map_err(|why| Error::Io { what: format!("connecting to {address}"), why })
    }

    async fn call_in_time(
        &self,
        address: SocketAddr,
        to: Option<NodeId>,
    ) -> std::result::Result<NodeId, String> {
        let limit = self.inner.limits.handshake;
        let outcome = timeout(limit, self.call(address, to)).await;
        outcome.unwrap_or_else(|_| Err(format!("no answer within {limit:?}")))
    }

    /// Calls `to`, or whoever listens at `address`; returns who answered and is connected now.
    async fn call(&self, address: SocketAddr, to: Option<NodeId>) -> std::result::Result<NodeId, String> {
        let text = |error: io::Error| error.to_string();
        let mut stream = TcpStream::connect(address).await.map_err(text)?;
        prepare(&stream).map_err(text)?;
        let hello = Hello { from: self.inner.node, to };
        let BufResult(written, _) = stream.write_all(hello.encode()).await;
        written.map_err(text)?;
        let mut reader = Reader::new(stream.clone());
        let answer: [u8; Answer::BYTES] =
            reader.array().await.map_err(text)?.ok_or("it closed the connection without an answer")?;
        let Answer { verdict, node } = Answer::decode(&answer).map_err(|error| error.to_string())?;
        if node == self.inner.node {
            return Err("this node itself listens there, or another of its name".to_owned());
        }
        // Who was asked for by no name may turn out to be somebody known.
        let is_known = to.is_none() && self.connection(node).is_some();
        match verdict {
            Verdict::OtherNode => return Err(format!("{node} listens there")),
            Verdict::Welcome if to.is_some_and(|to| to != node) => {
                return Err(format!("{node} welcomed this node in its place"));
            }
            Verdict::Welcome => {}
            Verdict::AlreadyConnected if is_known => {}
            refusal => return Err(refusal.reason().to_owned()),
        }
        // Others may have run meanwhile.
        if self.inner.closed.get() {
            return Err(Error::Closed.to_string());
        }
        if self.connection(node).is_none() {
            self.begin(self.enter(node), stream, reader);
        }
        Ok(node)
    }

    /// Lets others in for as long as the node listens.
    pub(super) async fn accept_all(self, listener: TcpListener) {
        let places = BufferPool::new(HANDSHAKES_MAX);
        loop {
            let place = places.take(1).await;
            match listener.accept().await {
                Ok((stream, from)) => {
                    let net = self.clone();
                    self.inner.tasks.spawn("handshake", async move {
                        net.answer(stream, from).await;
                        drop(place);
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
    async fn answer(&self, stream: TcpStream, from: SocketAddr) {
        let limit = self.inner.limits.handshake;
        let outcome = timeout(limit, self.let_in(stream)).await;
        let outcome =
            outcome.unwrap_or_else(|_| Err(format!("it did not introduce itself within {limit:?}")));
        if let Err(why) = outcome {
            self.inner.tasks.report(&Report::Refused { node: self.inner.node, from, why });
        }
    }

    async fn let_in(&self, stream: TcpStream) -> std::result::Result<(), String> {
        prepare(&stream).map_err(|error| error.to_string())?;
        let mut reader = Reader::new(stream.clone());
        let hello: [u8; Hello::BYTES] =
            reader.array().await.map_err(|error| error.to_string())?.ok_or("it said nothing")?;
        let hello = match Hello::decode(&hello) {
            Ok(hello) => hello,
            Err(why) => {
                // Whoever speaks another protocol altogether would not understand an answer.
                if let NotUnderstood::Version(_) = why {
                    self.refuse(stream, Verdict::OtherVersion).await;
                }
                return Err(why.to_string());
            }
        };
        let verdict = self.judge(hello);
        if verdict != Verdict::Welcome {
            self.refuse(stream, verdict).await;
            return Err(explain_refusal(verdict, hello));
        }
        let connection = self.enter(hello.from);
        connection.outbox.greet(&self.answer_of(verdict));
        self.begin(connection, stream, reader);
        Ok(())
    }

    fn judge(&self, hello: Hello) -> Verdict {
        let inner = &self.inner;
        if inner.closed.get() {
            Verdict::Closed
        } else if hello.to.is_some_and(|to| to != inner.node) {
            Verdict::OtherNode
        } else if hello.from == inner.node || self.connection(hello.from).is_some() {
            Verdict::AlreadyConnected
        } else if inner.alive.get() >= inner.limits.connections {
            Verdict::Full
        } else {
            Verdict::Welcome
        }
    }

    async fn refuse(&self, mut stream: TcpStream, verdict: Verdict) {
        // Whether the other side still hears it is its affair.
        let BufResult(_, _) = stream.write_all(self.answer_of(verdict)).await;
        let _ = stream.shutdown().await;
    }

    fn answer_of(&self, verdict: Verdict) -> [u8; Answer::BYTES] {
        Answer { verdict, node: self.inner.node }.encode()
    }
}

fn explain_refusal(verdict: Verdict, hello: Hello) -> String {
    let from = hello.from;
    match verdict {
        Verdict::OtherNode => {
            let to = hello.to.map_or_else(|| "whoever listens".to_owned(), |to| to.to_string());
            format!("{from} wants to talk to {to}")
        }
        Verdict::AlreadyConnected => format!("{from} is connected already"),
        Verdict::Full => format!("{from} is one connection too many"),
        Verdict::Closed => format!("{from} comes too late, the network is closed"),
        Verdict::Welcome | Verdict::OtherVersion => format!("{from} ({verdict:?})"),
    }
}

/// Sets what every connection needs: small messages leave at once, and a peer that is silently gone is
/// noticed. The sizes of the socket's buffers are left to the system, which adapts them.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(stream);
    socket.set_tcp_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_AFTER).with_interval(KEEPALIVE_EVERY);
    socket.set_tcp_keepalive(&keepalive.with_retries(KEEPALIVE_PROBES))
}
