//! The C library `libpdiol`: striped files behind functions like those of stdio.
//!
//! `include/pdiol.h` is the interface. The header is written by hand, for C programmers, and tests compare it with this
//! library. Everything else is in the crate `pdiol`: a session, and buffered files.
//!
//! ```text
//!   header, inline    pdiol_getc, pdiol_putc: the bytes in the front
//!        |
//!   c.rs              the C functions: convert pointers to slices and errors to errno; each holds the lock
//!        |
//!   stream.rs         an open file: end of file, error, contents of the front
//!        |
//!   crate pdiol       File, Session
//! ```
//!
//! Map of the code, in reading order:
//!
//! - `c.rs`: the functions of the header; start here.
//! - `handle.rs`: an open file behind a `PFS_FILE *`; `stream.rs`: operations of an open file.
//! - `front.rs`: the fields that the header declares; `lock.rs`: the lock of an open file; `primitives.rs`: building
//!   blocks of the lock.
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
