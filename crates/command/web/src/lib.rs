//! As much of an HTTP server as a program needs that shows something: requests without a body, within limits, and one
//! answer each, after which the connection ends.
//!
//! ```text
//!   listener --> a thread for each connection, 16 at most --> request, in 5 s --> host --> answer, while it is taken
//! ```
//!
//! A visitor can occupy one of these threads for a bounded time, and nothing else; the oldest silent one makes way for
//! a new one. Requests must name this server as their host, so that a foreign page in a browser cannot read answers
//! under a name that resolves to this address. The user of the crate decides who gets which answer.
//!
//! - [`Door`] in `door.rs`: accepts connections
//! - [`WebRequest`], [`WebReply`] in `request.rs`: what is understood of HTTP
//!
//! What is not here, on purpose: bodies of requests, encodings, connections that are kept, TLS. A server in front of it
//! has them, where they are wanted.

mod door;
mod request;

pub use door::{Door, Visitor};
pub use request::{WebReply, WebRequest};
