//! C library `libtlv`: records the activities of a program's threads for the Thread Log Viewer.
//!
//! `include/tlv.h` is the interface, written by hand for C programmers; `tests` compare it with this crate. The crate
//! `tlv` implements the recording.
//!
//! - `c.rs`: functions of the header; start here
//! - `failure.rs`: errno, and the text of the last error

mod c;
mod failure;
