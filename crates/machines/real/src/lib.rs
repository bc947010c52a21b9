//! The real machine: a node of sockets and files, with one async runtime on one thread.
//!
//! Implements the interface of the crate `machine` over TCP and the files of a directory. A process becomes a node by
//! calling [`run`] with [`Settings`], which provides a [`RealMachine`]:
//!
//! ```no_run
//! use std::path::PathBuf;
//!
//! use machine::{Machine, NodeId};
//! use real::{DiskSettings, Key, Keys, Settings};
//!
//! # fn main() -> machine::Result<()> {
//! # let secret = [7; Key::BYTES];
//! let keys = Keys::new(Key::new(secret));
//! let disk = DiskSettings::plain(PathBuf::from("/srv/starfish/0"));
//! let listen = Some(([0, 0, 0, 0], 7117).into());
//! let settings = Settings { listen, disks: vec![disk], ..Settings::new(NodeId(1), keys) };
//! real::run(settings, |machine| async move {
//!     println!("{} listens at {:?}", machine.node(), machine.address());
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! Map of the code, in reading order:
//!
//! - `settings.rs`: settings of a node; `report.rs`: events that are reported to no caller.
//! - `machine.rs`: [`RealMachine`]; `computer.rs`: information about its computer; `clock.rs`: its time; `runtime.rs`:
//!   [`run`] and the choice of the driver.
//! - `task.rs`: detached tasks, and transfers that complete even if their caller no longer waits.
//! - `hang_watch.rs`: detection of a disk or metadata store that hangs.
//! - `release.rs`: waiting for resources that another process is about to release; `random.rs`: random numbers.
//! - `bytes.rs`: data in the form that sockets and files need.
//! - `net/`: frames, handshakes and connections.
//! - `disk/`: one file for each object, and disks slowed down to a model.
//! - `metadata/`: a database on its own thread.
//!
//! This crate does not retry requests, and its signatures contain no types of the async runtime. The file system is
//! notified of the loss of a peer, and recovers from it; this crate only reconnects to the peer.

mod bytes;
mod clock;
mod computer;
mod disk;
mod hang_watch;
mod machine;
mod metadata;
mod net;
mod random;
mod release;
mod report;
mod runtime;
mod settings;
mod task;

pub use bytes::ByteRun;
pub use disk::{Disk, ObjectFile, ObjectOnMedium, OldObject, Stage};
pub use machine::RealMachine;
pub use metadata::Metadata;
pub use net::Net;
pub use report::{Report, Reporter};
pub use runtime::{block_on, run};
pub use settings::{
    DiskSettings, Driver, HAS_POSTGRES, Key, Keys, Limits, MetadataCopies, MetadataPlace, Peer, Settings,
    SocketBuffers,
};
