//! Mounts the namespace of a set of agents in a directory of this host, by FUSE.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use mount::{MountSettings, MountedDirectory};
//! use node::{Session, Settings};
//!
//! # fn main() -> node::Result<()> {
//! let session = Session::start(Settings::new(node::agents::find()?))?;
//! let tree = session.tree();
//! let directory = Path::new("/mnt/files");
//! let report = |error: &node::Error| eprintln!("{error}");
//! let mounted = MountedDirectory::begin(&tree, directory, MountSettings::default(), report)?;
//! mounted.wait()?;
//! session.finish()
//! # }
//! ```
//!
//! ```text
//!   kernel             threads of fuser            node thread
//!
//!   a call  --/dev/fuse-->  KernelDoor: decodes  --a task-->  MountedTree: performs it with fs::Tree, and
//!           <------------------------------------------ answers when it has completed
//! ```
//!
//! Only tasks of the node thread wait, and their number is unlimited. The kernel checks permissions, since it knows
//! users and groups. It caches names and attributes for a second, and the pages of a file as long as the file's version
//! does not change ([record 49](../../../../docs/adr/0049-the-mount.md)).
//!
//! Map of the code, in reading order:
//!
//! - [`MountedDirectory`] in `mounted_directory.rs`: start and end of a mount; [`MountSettings`] in `settings.rs`;
//!   `unmounting.rs`
//! - `kernel_requests.rs`: requests of the kernel, as tasks
//! - `request_memory.rs`: buffer pool for write requests
//! - `mounted_tree.rs`: state on the node thread; its operations: `names.rs`, `attributes.rs`, `contents.rs`,
//!   `directories.rs` over `open_directory.rs`, `extended.rs`, `space.rs`, `locks.rs` over `caller_signals.rs`;
//!   `sequential_writes.rs`: pages behind a sequential writer, which the page cache drops
//! - `file_attributes.rs`, `errno.rs`: inodes and errors in the kernel's form
//! - [`MountCounts`] in `counts.rs` over `counters.rs`: counters

mod attributes;
mod caller_signals;
mod contents;
mod counters;
mod counts;
mod directories;
mod errno;
mod extended;
mod file_attributes;
mod kernel_requests;
mod locks;
mod mounted_directory;
mod mounted_tree;
mod names;
mod open_directory;
mod request_memory;
mod sequential_writes;
mod settings;
mod space;
mod unmounting;

pub use counts::{MountCounter, MountCounts};
pub use mounted_directory::MountedDirectory;
pub use settings::{LockScope, MountSettings};
pub use unmounting::{ListedMount, is_mount_of_ours, mounts_of, sync, unmount};
