//! Small HTTP server for programs that display information. It accepts requests of limited size and without a body, and
//! closes each connection after one answer.
//!
//! ```text
//!   listener --> a thread for each connection, 16 at most --> request, in 5 s --> host --> answer to the client
//! ```
//!
//! A client can occupy one of these threads for a bounded time, and no other resource. A new connection replaces the
//! oldest connection that has sent no request. A request must name this server as its host; otherwise a foreign page in
//! a browser could read answers under a name that resolves to this address. The user of the crate decides which client
//! gets which answer.
//!
//! - [`WebListener`] in `listener.rs`: accepts connections
//! - [`WebRequest`], [`WebReply`] in `request.rs`: the supported part of HTTP
//!
//! Deliberately missing: request bodies, encodings, persistent connections, TLS. A reverse proxy can add them.

mod listener;
mod request;

pub use listener::{WebClient, WebListener};
pub use request::{WebReply, WebRequest};
