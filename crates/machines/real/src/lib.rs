//! The real machine: a node of sockets and files, one async runtime on one thread.
//!
//! Implements the seam of the crate `machine` over TCP and the files of a directory. A process that wants
//! to be a node calls [`run`] with [`Settings`] and gets a [`RealMachine`]:
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
//! - `settings.rs`: what a node can be told; `report.rs`: what it reports of which no caller is told
//! - `machine.rs`: [`RealMachine`]; `computer.rs`: what it tells of its computer; `clock.rs`: its time; `runtime.rs`:
//!   [`run`] and the choice of the driver
//! - `task.rs`: tasks that no caller waits for, and transfers that complete though their caller no longer waits
//! - `hang_watch.rs`: detection of a disk or metadata store that hangs
//! - `release.rs`: what another process is about to release; `random.rs`: numbers drawn at random
//! - `bytes.rs`: data as sockets and files take them
//! - `net/`: frames, handshakes and connections
//! - `disk/`: one file for each object, and disks slowed down to a model
//! - `metadata/`: a database on a thread of its own
//!
//! What is not here, on purpose: retrying (the loss of a peer is told to the file system, which knows what to do;
//! the peer is only called again), and any type of the async runtime in a signature.

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

pub use disk::{Disk, OldObject, Stage};
pub use machine::RealMachine;
pub use metadata::Metadata;
pub use net::Net;
pub use report::{Report, Reporter};
pub use runtime::{block_on, run};
pub use settings::{
    DiskSettings, Driver, HAS_POSTGRES, Key, Keys, Limits, MetadataCopies, MetadataPlace, Peer, Settings,
    SocketBuffers,
};
