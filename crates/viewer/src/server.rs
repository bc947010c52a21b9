//! A server on loopback for one browser: the page, and the columns of the files that were named.
//!
//! Whoever else is on this computer, or in this browser, gets nothing: the address has a token that only the user has
//! been told, and requests must name this server as their host, so that no page of another's can pretend to be it by
//! a name that it makes point here. There is no way to name a file.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::PAGE;
use crate::files::{FileError, Followed, TraceFiles};
use crate::request::{self, HttpReply, Request};

/// So many connections at once are answered, which is more than a browser makes. Others are closed.
const CONNECTIONS_MAX: usize = 16;

/// A server that has an address, and answers as long as this process lives.
pub struct Server {
    listener: TcpListener,
    shared: Arc<Shared>,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A file that cannot be shown.
    #[error(transparent)]
    File(#[from] FileError),
    /// The port, or the system's random numbers.
    #[error(transparent)]
    Io(#[from] io::Error),
}

struct Shared {
    address: SocketAddr,
    token: String,
    files: Mutex<Followed>,
    connections: AtomicUsize,
}

impl Server {
    /// Reads the files, and listens at this port of loopback or, if it is 0, at any that is free.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, the port is not free, or the system has no random numbers.
    pub fn new(files: TraceFiles, port: u16) -> Result<Server, ServeError> {
        let files = Mutex::new(Followed::new(files)?);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let mut token = [0; 16];
        getrandom::fill(&mut token).map_err(io::Error::other)?;
        let token = token.iter().map(|byte| format!("{byte:02x}")).collect();
        let shared =
            Shared { address: listener.local_addr()?, token, files, connections: AtomicUsize::new(0) };
        Ok(Server { listener, shared: Arc::new(shared) })
    }

    /// Where a browser finds it.
    pub fn address(&self) -> String {
        format!("http://{}/{}/", self.shared.address, self.shared.token)
    }

    /// Answers until the process ends.
    pub fn answer(self) -> ! {
        loop {
            // A connection that was given up before it was accepted is none.
            let Ok((stream, _)) = self.listener.accept() else { continue };
            let shared = Arc::clone(&self.shared);
            if shared.connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
                shared.connections.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            thread::spawn(move || {
                // Browsers end connections as they like.
                let _ = shared.converse(stream);
                shared.connections.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }
}

impl Shared {
    fn converse(&self, mut stream: TcpStream) -> io::Result<()> {
        let Some(request) = request::read(&mut stream)? else {
            return request::write(
                &mut stream,
                &HttpReply::plain("400 Bad Request", "this is no request\n"),
                true,
            );
        };
        let with_body = request.method != "HEAD";
        self.answer(&request, |answer| request::write(&mut stream, &answer, with_body))
    }

    fn answer(
        &self,
        request: &Request,
        write: impl FnOnce(HttpReply<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        if !self.is_meant(request.host.as_deref()) {
            return write(HttpReply::plain("403 Forbidden", "this server has another name\n"));
        }
        if !["GET", "HEAD"].contains(&&*request.method) {
            return write(HttpReply::plain(
                "405 Method Not Allowed",
                "there is only something to read here\n",
            ));
        }
        match self.below_token(&request.path) {
            Some("") => write(HttpReply {
                status: "200 OK",
                kind: "text/html; charset=utf-8",
                fields: String::new(),
                body: PAGE.as_bytes(),
            }),
            Some("columns") => {
                let news = {
                    let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
                    files.news(request.query.strip_prefix("known="))
                };
                match news {
                    Some((columns, version)) => write(HttpReply {
                        status: "200 OK",
                        kind: "application/octet-stream",
                        fields: format!("X-Version: {version}\r\n"),
                        body: &columns,
                    }),
                    None => write(HttpReply::plain("204 No Content", "")),
                }
            }
            _ => write(HttpReply::plain("404 Not Found", "there is nothing here\n")),
        }
    }

    /// Whether a request is for this server by its name.
    fn is_meant(&self, host: Option<&str>) -> bool {
        let port = self.address.port();
        host.is_some_and(|host| host == format!("127.0.0.1:{port}") || host == format!("localhost:{port}"))
    }

    /// What a path names after the token; none if it has not this token.
    fn below_token<'a>(&self, path: &'a str) -> Option<&'a str> {
        let (token, rest) = path.strip_prefix('/')?.split_once('/')?;
        // As long for any token of this length: time tells nothing of it.
        let differs =
            token.bytes().zip(self.token.bytes()).fold(0, |differs, (one, other)| differs | (one ^ other));
        (token.len() == self.token.len() && differs == 0).then_some(rest)
    }
}
