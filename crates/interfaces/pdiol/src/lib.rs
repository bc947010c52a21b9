//! Striped files with the face of ordinary ones: synchronous, buffered, usable from any thread.
//!
//! A [`Session`] is a thread of its own with the file system's client and its page cache (crate [`node`]). A [`File`]
//! is a handle on a striped file that any thread may hold, with the traits of `std::io`:
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
//!     | read, write: copy from it, into it
//!     v
//!   at the end of a page ---- what is wanted ---->      takes pages of the cache, lends them
//!                        <--- pages, lent ---------     puts written pages into the cache
//! ```
//!
//! Reading a byte or a line takes no lock and sends no message: the handle has a page at hand. The node thread is asked
//! when that is used up, and lends all pages that are ready ([`node::LentPage`]); so there is one copy, into the
//! caller's buffer, and [`BufRead`](std::io::BufRead) has none.
//!
//! Map of the code, in reading order:
//!
//! - [`Session`] in `session.rs`, [`File`] in `file.rs`: the face; start here
//! - `writes.rs`: pages on their way to the page cache
//! - [`options`]: the options of PDIOL, on a command line and in the environment; [`log`]: its log file
//!
//! What is not here, on purpose: threads, agents, settings and errors (crate [`node`], some of whose names stand here
//! too), prefetching, replacing and writing behind (the page cache of `fs` does that), and anything of C (crate
//! `libpdiol`).

mod file;
pub mod log;
pub mod options;
mod session;
mod writes;

pub use file::File;
pub use node::{
    Advice, Agent, CacheWrites, Error, ErrorKind, FileAttributes, OpenOptions, Prefetch, Report, Reporter,
    Result, Settings, SocketBuffers, Stat, agents,
};
pub use session::Session;

/// The manual's pages for authors of programs, whose examples are compiled.
#[cfg(doctest)]
mod manual {
    #[doc = include_str!("../../../../docs/manual/writing-programs.md")]
    mod writing_programs {}
    #[doc = include_str!("../../../../docs/manual/write-caches.md")]
    mod write_caches {}
}
