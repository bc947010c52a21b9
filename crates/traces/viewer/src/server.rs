//! HTTP server on loopback for one browser: serves the page, and the columns of the given files.
//!
//! Other users of this computer, and other pages in this browser, have no access, because the address contains a secret
//! token. Requests cannot name files.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use web::{WebClient, WebListener, WebReply, WebRequest};

use crate::PAGE;
use crate::files::{FileError, Followed, TraceFiles};

/// Server on an address. It answers requests until this process ends.
pub struct Server {
    door: WebListener,
    shared: Shared,
}

/// Failure to start the server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A file cannot be shown.
    #[error(transparent)]
    File(#[from] FileError),
    /// The port is in use, or the system provides no random numbers.
    #[error(transparent)]
    Io(#[from] io::Error),
}

struct Shared {
    address: SocketAddr,
    token: String,
    files: Mutex<Followed>,
}

impl Server {
    /// Reads the files, and listens on this loopback port; 0 chooses a free port.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, the port is not free, or the system has no random numbers.
    pub fn new(files: TraceFiles, port: u16) -> Result<Server, ServeError> {
        let files = Mutex::new(Followed::new(files)?);
        let door = WebListener::open((Ipv4Addr::LOCALHOST, port).into(), None)?;
        let mut token = [0; 16];
        getrandom::fill(&mut token).map_err(io::Error::other)?;
        let token = token.iter().map(|byte| format!("{byte:02x}")).collect();
        let shared = Shared { address: door.address(), token, files };
        Ok(Server { door, shared })
    }

    /// Returns the address for a browser.
    pub fn address(&self) -> String {
        format!("http://{}/{}/", self.shared.address, self.shared.token)
    }

    /// Returns the notes on the files: missing and inconsistent contents.
    pub fn notes(&self) -> Vec<String> {
        self.shared.files.lock().unwrap_or_else(PoisonError::into_inner).notes().to_vec()
    }

    /// Answers requests until the process ends.
    pub fn answer(self) -> ! {
        let Server { door, shared } = self;
        door.let_in(move |request, client| shared.answer(request, client))
    }
}

impl Shared {
    fn answer(&self, request: &WebRequest, client: WebClient) -> io::Result<()> {
        match self.below_token(&request.path) {
            Some("") => client.reply(&WebReply {
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
                    Some((columns, version)) => client.reply(&WebReply {
                        status: "200 OK",
                        kind: "application/octet-stream",
                        fields: format!("X-Version: {version}\r\n"),
                        body: &columns,
                    }),
                    None => client.reply(&WebReply::plain("204 No Content", "")),
                }
            }
            _ => client.reply(&WebReply::plain("404 Not Found", "this page does not exist\n")),
        }
    }

    /// Returns the part of a path after the token; `None` if the token is wrong.
    fn below_token<'a>(&self, path: &'a str) -> Option<&'a str> {
        let (token, rest) = path.strip_prefix('/')?.split_once('/')?;
        // Constant time for tokens of this length, so that timing reveals nothing.
        let differs =
            token.bytes().zip(self.token.bytes()).fold(0, |differs, (one, other)| differs | (one ^ other));
        (token.len() == self.token.len() && differs == 0).then_some(rest)
    }
}
