//! Striped files with the face of ordinary ones: synchronous, buffered, usable from any thread.
//!
//! A [`Session`] is a thread of its own, the *node thread*: a compute node of the real machine with the file system's
//! client and its page cache. A [`File`] is a handle on a striped file that any thread may hold, with the traits of
//! `std::io`:
//!
//! ```no_run
//! use std::io::{BufRead, Write};
//!
//! use pdiol::{OpenOptions, Session, Settings};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let session = Session::start(Settings::new(pdiol::agents::find()?))?;
//! let mut notes = session.open("notes.txt", OpenOptions::new().write(true).create(true).truncate(true))?;
//! writeln!(notes, "written behind")?;
//! notes.close()?;
//! for line in session.open("notes.txt", OpenOptions::new().read(true))?.lines() {
//!     println!("{}", line?);
//! }
//! session.finish()?;
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//!   application's thread                             node thread
//!
//!   File: the page at hand, or the one being filled
//!     | read, write: copy from it, into it            one task for each open file:
//!     v                                                 takes pages of the cache, lends them
//!   at the end of a page ---- what is wanted ---->      puts written pages into the cache
//!                        <--- pages, lent ---------   client, page cache, connections
//! ```
//!
//! Reading a byte or a line takes no lock and sends no message: the handle has a page at hand. The node thread is asked
//! when that is used up, and lends all pages that are ready (see `lease.rs`); so there is one copy, into the caller's
//! buffer, and [`BufRead`](std::io::BufRead) has none.
//!
//! Map of the code, in reading order:
//!
//! - [`Session`] in `session.rs`, [`File`] in `file.rs`: the face; start here
//! - `settings.rs`: what a session and an open file can be told; [`Size`]: bytes as people write them
//! - [`agents`]: which agents make up the file system; [`key`]: the secret shared with them
//! - `node.rs`: the node thread; `task.rs`: its half of an open file; `lease.rs`: pages lent to other threads
//! - `connect.rs`: [`connect()`], for who needs no session; `error.rs`: what went wrong, with which agent, and what to do
//!
//! What is not here, on purpose: prefetching, replacing and writing behind (the page cache of `fs` does that), and
//! anything of C (crate `libpdiol`).

pub mod agents;
mod connect;
mod error;
mod file;
pub mod key;
mod lease;
mod node;
mod session;
mod settings;
mod size;
mod task;

pub use agents::Agent;
pub use connect::{Names, connect, connect_to_present};
pub use error::{Error, ErrorKind, Result};
pub use file::{File, Stat};
pub use fs::{Advice, Prefetch};
pub use real::{Driver, Report, Reporter, SocketBuffers};
pub use session::Session;
pub use settings::{OpenOptions, Settings};
pub use size::Size;

/// The manual's page for authors of programs, whose examples are compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/manual/writing-programs.md")]
mod manual {}
