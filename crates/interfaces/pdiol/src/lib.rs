//! Striped files with the interface of ordinary ones: synchronous, buffered, usable from any thread.
//!
//! A [`Session`] is a separate thread with the file system's client and its page cache (crate [`node`]). A [`File`] is
//! a handle of a striped file that any thread may hold, with the traits of `std::io`:
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
//!   File: the page being read, or the one being filled
//!     | read, write: copy from it, into it
//!     v
//!   at the end of a page ---- request ------------->      lends pages of the cache <--- pages, lent ---------     puts
//!   written pages into the cache
//! ```
//!
//! Reading a byte or a line takes no lock and sends no message: the handle has a buffered page. When all bytes of this
//! page have been read, the node thread lends all pages that are ready ([`node::LentPage`]). So data are copied once,
//! into the caller's buffer, and not at all with [`BufRead`](std::io::BufRead).
//!
//! Map of the code, in reading order:
//!
//! - [`Session`] in `session.rs`, [`File`] in `file.rs`: the interface; start here.
//! - `writes.rs`: written pages in flight to the page cache.
//! - [`options`]: the options of PDIOL, on a command line and in the environment; [`log`]: its log file.
//!
//! Not here, on purpose:
//!
//! - threads, agents, settings and errors: crate [`node`], some of whose names are re-exported here;
//! - prefetching, eviction and writing behind: the page cache of `fs`;
//! - the C interface: crate `libpdiol`.

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

/// Pages of the manual for authors of programs, so that their examples are compiled.
#[cfg(doctest)]
mod manual {
    #[doc = include_str!("../../../../docs/manual/writing-programs.md")]
    mod writing_programs {}
    #[doc = include_str!("../../../../docs/manual/write-caches.md")]
    mod write_caches {}
}
