//! Accepts a bounded number of connections. Each has a thread until its only request is answered.
//!
//! If the limit is reached, a new connection replaces the oldest connection without a complete request, or else the
//! oldest of all.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::request::{self, WebReply, WebRequest};

/// Limit of concurrent connections; a browser opens fewer.
const CONNECTIONS_MAX: usize = 16;

/// Limit of threads. It exceeds the limit of connections because threads of closed connections may still be running. At
/// this limit new connections wait.
const THREADS_MAX: usize = 4 * CONNECTIONS_MAX;

/// Pause before the next accept if the thread limit is reached, or if descriptors or memory are exhausted.
const PAUSE: Duration = Duration::from_millis(100);

const ANOTHER_NAME: &str = "the Host header does not name this server: use its address, its host name, or \
                            the name that it was started with\n";

/// Listening socket of a server.
pub struct WebListener {
    listener: TcpListener,
    address: SocketAddr,
    name: Option<String>,
    /// Time limit for receiving a whole request.
    patience: Duration,
}

/// Client with a complete request; it receives one answer.
pub struct WebClient {
    stream: TcpStream,
    with_body: bool,
}

impl WebListener {
    /// Listens at `address`; port 0 means any free port. `name` is an additional host name for requests.
    ///
    /// # Errors
    /// If the address is in use, or does not belong to this computer.
    pub fn open(address: SocketAddr, name: Option<String>) -> io::Result<WebListener> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        Ok(WebListener { listener, address, name, patience: request::PATIENCE })
    }

    /// Returns the listening address, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Calls `answer` for each request until the process ends. Ignores the result of `answer`, because the client may
    /// have disconnected.
    pub fn let_in(
        self,
        answer: impl Fn(&WebRequest, WebClient) -> io::Result<()> + Send + Sync + 'static,
    ) -> ! {
        let WebListener { listener, address, name, patience } = self;
        let house =
            Arc::new(ListenerState { address, name, patience, answer, connections: Mutex::default() });
        let mut number = 0;
        loop {
            number += 1;
            let Ok((stream, _)) = listener.accept() else {
                thread::sleep(PAUSE);
                continue;
            };
            // This loop holds one reference and each thread another. Threads of closed connections end soon.
            while Arc::strong_count(&house) > THREADS_MAX {
                thread::sleep(PAUSE);
            }
            if house.begin(number, &stream).is_err() {
                continue;
            }
            let inside = Arc::clone(&house);
            let converse = move || {
                let _ = inside.converse(number, stream);
                inside.connections().remove(&number);
            };
            if thread::Builder::new().name("web".into()).spawn(converse).is_err() {
                house.connections().remove(&number);
            }
        }
    }
}

/// State shared by the threads of all connections.
struct ListenerState<A> {
    address: SocketAddr,
    name: Option<String>,
    patience: Duration,
    answer: A,
    /// Open connections by sequence number, oldest first.
    connections: Mutex<BTreeMap<u64, Connection>>,
}

struct Connection {
    stream: TcpStream,
    has_asked: bool,
}

impl<A> ListenerState<A> {
    fn connections(&self) -> MutexGuard<'_, BTreeMap<u64, Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a connection. At the limit it first closes the oldest connection without a complete request, or else
    /// the oldest of all.
    fn begin(&self, number: u64, stream: &TcpStream) -> io::Result<()> {
        let new = Connection { stream: stream.try_clone()?, has_asked: false };
        let mut connections = self.connections();
        if connections.len() >= CONNECTIONS_MAX {
            let silent = connections.iter().find(|(_, connection)| !connection.has_asked);
            let first = silent.or(connections.first_key_value()).map(|(&number, _)| number);
            if let Some(closed) = first.and_then(|number| connections.remove(&number)) {
                let _ = closed.stream.shutdown(Shutdown::Both);
            }
        }
        connections.insert(number, new);
        Ok(())
    }

    /// Returns true if the `Host` field of a request names this server: an address, `localhost`, or a name of this
    /// computer. A page of a foreign site sends the name of that site, even if the name resolves to this address.
    fn is_meant(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let is_named = |other: &str| name.eq_ignore_ascii_case(other);
        address.parse::<IpAddr>().is_ok()
            || is_named("localhost")
            || self.name.as_deref().is_some_and(is_named)
            // The name of a foreign site always contains a dot.
            || !self.address.ip().is_loopback() && (!name.contains('.') || host_name().is_some_and(|own| is_named(&own)))
    }
}

/// Returns this computer's host name, or `None` if the system does not report it.
fn host_name() -> Option<String> {
    Some(std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?.trim().to_owned())
}

impl<A: Fn(&WebRequest, WebClient) -> io::Result<()>> ListenerState<A> {
    fn converse(&self, number: u64, mut stream: TcpStream) -> io::Result<()> {
        let Some(request) = request::read(&mut stream, self.patience)? else {
            let reply = WebReply::plain("400 Bad Request", "this is not an HTTP request\n");
            return request::write(&mut stream, &reply, true);
        };
        if let Some(connection) = self.connections().get_mut(&number) {
            connection.has_asked = true;
        }
        let client = WebClient { stream, with_body: request.method != "HEAD" };
        if !request.host.as_deref().is_some_and(|host| self.is_meant(host)) {
            return client.reply(&WebReply::plain("403 Forbidden", ANOTHER_NAME));
        }
        if !["GET", "HEAD"].contains(&&*request.method) {
            let reply = WebReply::plain("405 Method Not Allowed", "only GET and HEAD are supported\n");
            return client.reply(&WebReply { fields: "Allow: GET, HEAD\r\n".into(), ..reply });
        }
        (self.answer)(&request, client)
    }
}

impl WebClient {
    /// Sends the answer and closes the connection.
    ///
    /// # Errors
    /// If the client does not receive the answer in time.
    pub fn reply(mut self, reply: &WebReply) -> io::Result<()> {
        request::write(&mut self.stream, reply, self.with_body)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::Ipv4Addr;

    use super::*;

    fn start_listener() -> SocketAddr {
        start_listener_with(request::PATIENCE)
    }

    fn start_listener_with(patience: Duration) -> SocketAddr {
        let listener = WebListener::open((Ipv4Addr::LOCALHOST, 0).into(), None).expect("a free port");
        let listener = WebListener { patience, ..listener };
        let address = listener.address();
        thread::spawn(move || {
            listener.let_in(|request, client| {
                client.reply(&WebReply::plain("200 OK", &format!("you want {}\n", request.path)))
            })
        });
        address
    }

    /// Connects to a listener. The read timeout only bounds the time of a hanging test.
    fn connect(address: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        stream
    }

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = connect(address);
        stream.write_all(request.as_bytes()).expect("taken");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("text");
        reply
    }

    #[test]
    fn each_connection_gets_one_reply() {
        let address = start_listener();
        let reply = ask(address, "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\nGET /y HTTP/1.1\r\n\r\n");
        assert!(
            reply.starts_with("HTTP/1.1 200 OK\r\n") && reply.ends_with("\r\n\r\nyou want /x\n"),
            "{reply}"
        );
        let reply = ask(address, "HEAD /x HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(reply.contains("Content-Length: 12\r\n") && reply.ends_with("\r\n\r\n"), "{reply}");
        let reply = ask(address, "POST /x HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(reply.starts_with("HTTP/1.1 405 ") && reply.contains("Allow: GET, HEAD\r\n"), "{reply}");
        assert!(ask(address, "\0\r\n\r\n").starts_with("HTTP/1.1 400 "));
        // A request a little larger than the limit. The server reads all of it, because closing a connection with
        // unread bytes would reset the connection and lose the answer.
        let begin = "GET / HTTP/1.1\r\nA: ";
        let long = format!("{begin}{}", "a".repeat((16 << 10) + 16 - begin.len()));
        assert!(ask(address, &long).starts_with("HTTP/1.1 400 "));
    }

    #[test]
    fn silent_connections_do_not_block_other_clients() {
        // No connection reaches this limit during the test.
        let address = start_listener_with(Duration::from_secs(3600));
        let silent: Vec<TcpStream> = (0..4 * CONNECTIONS_MAX).map(|_| connect(address)).collect();
        let mut dripping: Vec<TcpStream> = (0..CONNECTIONS_MAX).map(|_| connect(address)).collect();
        for n in 0..5 {
            // Connections that the server has closed reject these bytes, which is no error.
            dripping.iter_mut().for_each(|stream| drop(stream.write_all(b"GET / HTTP/1.1\r\nA: ")));
            let reply = ask(address, &format!("GET /{n} HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n"));
            assert!(reply.ends_with(&format!("you want /{n}\n")), "{reply}");
        }
        drop(silent);
    }

    #[test]
    fn only_requests_for_this_host_are_answered() {
        let status = |address, name: &str| {
            let reply = ask(address, &format!("GET / HTTP/1.1\r\n{name}\r\n\r\n"));
            reply.split(' ').nth(1).map(str::to_owned)
        };
        let local = start_listener();
        for host in ["127.0.0.1", "LocalHost:81", "[::1]:9117", "10.0.0.1"] {
            assert_eq!(status(local, &format!("Host: {host}")).as_deref(), Some("200"), "{host}");
        }
        for fields in [
            "Host: evil.example",
            "Host: node1",
            "Host: 127.0.0.1.evil.example:1",
            "A: b",
            "Host: a\r\nHost: a",
        ] {
            assert_eq!(status(local, fields).as_deref(), Some("403"), "{fields}");
        }
        let house = ListenerState {
            address: (Ipv4Addr::UNSPECIFIED, 1).into(),
            name: Some("metrics.example".to_owned()),
            patience: request::PATIENCE,
            answer: (),
            connections: Mutex::default(),
        };
        assert!(["node1:9117", "metrics.example", "[fe80::1]:2"].iter().all(|host| house.is_meant(host)));
        assert!(host_name().is_none_or(|own| house.is_meant(&own)));
        assert!(!house.is_meant("node1.evil.example:9117") && !house.is_meant("metrics.example.evil:80"));
    }

    /// A silent client occupies a thread for a limited time; after that new clients are served again.
    #[test]
    fn a_silent_connection_is_closed() {
        let address = start_listener_with(Duration::from_millis(200));
        let mut silent: Vec<TcpStream> = (0..2 * CONNECTIONS_MAX).map(|_| connect(address)).collect();
        for stream in &mut silent {
            let mut reply = Vec::new();
            let ended = stream.read_to_end(&mut reply).map_err(|error| error.kind());
            assert!(matches!(ended, Ok(0) | Err(io::ErrorKind::ConnectionReset)), "{ended:?}");
        }
        thread::sleep(Duration::from_millis(100));
        assert!(ask(address, "GET /z HTTP/1.1\r\nHost: localhost\r\n\r\n").ends_with("you want /z\n"));
    }
}
