//! Connections are accepted, a bounded number at a time, and each has a thread for as long as its one request takes.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::request::{self, WebReply, WebRequest};

/// The most connections answered at once, which is more than a browser makes. Others are closed.
const CONNECTIONS_MAX: usize = 16;

/// How long no visitor is let in when the system cannot accept one, for want of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(100);

/// Where requests come in.
pub struct Door {
    listener: TcpListener,
    address: SocketAddr,
}

/// A client that has made a request, and gets one answer.
pub struct Visitor {
    stream: TcpStream,
    with_body: bool,
}

impl Door {
    /// Listens at this address; at any free port if that is 0.
    ///
    /// # Errors
    /// If the address is taken, or is none of this computer.
    pub fn open(address: SocketAddr) -> io::Result<Door> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        Ok(Door { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Has `answer` answer all visitors, until the process ends. Its outcome is ignored: the visitor may be gone by
    /// then.
    pub fn let_in(
        self,
        answer: impl Fn(&WebRequest, Visitor) -> io::Result<()> + Send + Sync + 'static,
    ) -> ! {
        let answer = Arc::new(answer);
        loop {
            let Ok((stream, _)) = self.listener.accept() else {
                thread::sleep(PAUSE);
                continue;
            };
            // One is kept here, and one is in each thread.
            if Arc::strong_count(&answer) > CONNECTIONS_MAX {
                continue;
            }
            let answer = Arc::clone(&answer);
            let converse = move || {
                let _ = converse(stream, &*answer);
            };
            // Without a thread the connection is closed.
            let _ = thread::Builder::new().name("web".into()).spawn(converse);
        }
    }
}

fn converse(
    mut stream: TcpStream,
    answer: &impl Fn(&WebRequest, Visitor) -> io::Result<()>,
) -> io::Result<()> {
    let Some(request) = request::read(&mut stream)? else {
        let reply = WebReply::plain("400 Bad Request", "this is no request\n");
        return request::write(&mut stream, &reply, true);
    };
    let visitor = Visitor { stream, with_body: request.method != "HEAD" };
    if !["GET", "HEAD"].contains(&&*request.method) {
        let reply = WebReply::plain("405 Method Not Allowed", "there is only something to read here\n");
        return visitor.tell(&WebReply { fields: "Allow: GET, HEAD\r\n".into(), ..reply });
    }
    answer(&request, visitor)
}

impl Visitor {
    /// Sends the answer. The connection ends with it.
    ///
    /// # Errors
    /// If it is not taken, or not in time.
    pub fn tell(mut self, reply: &WebReply) -> io::Result<()> {
        request::write(&mut self.stream, reply, self.with_body)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::Ipv4Addr;
    use std::time::Instant;

    use super::*;

    fn door() -> SocketAddr {
        let door = Door::open((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
        let address = door.address();
        thread::spawn(move || {
            door.let_in(|request, visitor| {
                visitor.tell(&WebReply::plain("200 OK", &format!("you want {}\n", request.path)))
            })
        });
        address
    }

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
    fn who_asks_is_answered_once() {
        let address = door();
        let reply = ask(address, "GET /x HTTP/1.1\r\nHost: a\r\n\r\nGET /y HTTP/1.1\r\n\r\n");
        assert!(
            reply.starts_with("HTTP/1.1 200 OK\r\n") && reply.ends_with("\r\n\r\nyou want /x\n"),
            "{reply}"
        );
        let reply = ask(address, "HEAD /x HTTP/1.1\r\n\r\n");
        assert!(reply.contains("Content-Length: 12\r\n") && reply.ends_with("\r\n\r\n"), "{reply}");
        let reply = ask(address, "POST /x HTTP/1.1\r\n\r\n");
        assert!(reply.starts_with("HTTP/1.1 405 ") && reply.contains("Allow: GET, HEAD\r\n"), "{reply}");
        assert!(ask(address, "\0\r\n\r\n").starts_with("HTTP/1.1 400 "));
        // As long as may be, and a little longer; all of it is read, so that the answer is, too.
        let begin = "GET / HTTP/1.1\r\nA: ";
        let long = format!("{begin}{}", "a".repeat((16 << 10) + 16 - begin.len()));
        assert!(ask(address, &long).starts_with("HTTP/1.1 400 "));
    }

    /// A client that says nothing keeps a thread for some seconds; then others get in again.
    #[test]
    fn who_says_nothing_is_sent_away() {
        let address = door();
        let start = Instant::now();
        let mut silent: Vec<TcpStream> = (0..2 * CONNECTIONS_MAX).map(|_| connect(address)).collect();
        for stream in &mut silent {
            let mut reply = Vec::new();
            let ended = stream.read_to_end(&mut reply).map_err(|error| error.kind());
            assert!(matches!(ended, Ok(0) | Err(io::ErrorKind::ConnectionReset)), "{ended:?}");
        }
        assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
        thread::sleep(Duration::from_millis(100));
        assert!(ask(address, "GET /z HTTP/1.1\r\n\r\n").ends_with("you want /z\n"));
    }
}
