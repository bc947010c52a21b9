//! The C library `libtlv`: a program says what its threads do, and the Thread Log Viewer shows it.
//!
//! `include/tlv.h` is the face; it is written by hand, for people who write C, and `tests` compare it with what is
//! here. Everything else is of the crate `tlv`.
//!
//! - `c.rs`: the functions of the header; start here
//! - `failure.rs`: errno, and the text of the last error

mod c;
mod failure;
