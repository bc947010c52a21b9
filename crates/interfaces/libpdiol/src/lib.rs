//! The C library `libpdiol`: striped files behind functions like those of stdio.
//!
//! `include/pdiol.h` is the interface. It is written by hand, for C programmers, and `tests` compare it with this
//! library. Everything else is in the crate `pdiol`: a session, and buffered files.
//!
//! ```text
//!   header, inline    pdiol_getc, pdiol_putc: the bytes that the front shows
//!        |
//!   c.rs              C's calls: pointers to slices, errors to errno, one lock around each
//!        |
//!   stream.rs         an open file: end of file, error, contents of the front
//!        |
//!   crate pdiol       File, Session
//! ```
//!
//! Map of the code, in reading order:
//!
//! - `c.rs`: the functions of the header; start here.
//! - `handle.rs`: an open file as C holds it; `stream.rs`: its operations.
//! - `front.rs`: the part of it that the header shows; `lock.rs`: its lock; `primitives.rs`: building blocks of the
//!   lock.
//! - `process.rs`: the session of this process, and its open files.
//! - `failure.rs`: errno, and the text of the last error.

mod c;
mod failure;
mod front;
mod handle;
mod lock;
#[cfg(test)]
mod lock_tests;
mod primitives;
mod process;
mod stream;
