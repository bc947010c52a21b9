//! As much of an HTTP server as a program needs that shows something: requests without a body, within limits, and one
//! answer each, after which the connection ends.
//!
//! ```text
//!   listener --> a thread for each connection, 16 at most --> request, in 5 s --> answer, while it is taken
//! ```
//!
//! Whoever connects can keep one of these threads for a time that is bounded, and nothing else. What is answered to
//! whom is for the user of the crate to say.
//!
//! - [`Door`] in `door.rs`: who is let in
//! - [`WebRequest`], [`WebReply`] in `request.rs`: what is understood of HTTP
//!
//! What is not here, on purpose: bodies of requests, encodings, connections that are kept, TLS. A server in front of it
//! has them, where they are wanted.

mod door;
mod request;

pub use door::{Door, Visitor};
pub use request::{WebReply, WebRequest};
