//! The namespace of a set of agents as a directory of this computer, by FUSE.
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
//! let told = |error: &node::Error| eprintln!("{error}");
//! let mounted = MountedDirectory::begin(&tree, directory, MountSettings::default(), told)?;
//! mounted.wait()?;
//! session.finish()
//! # }
//! ```
//!
//! ```text
//!   kernel             threads of fuser            node thread
//!
//!   a call  --/dev/fuse-->  KernelDoor: decodes  --a task-->  MountedTree: does it with fs::Tree, and
//!           <------------------------------------------ answers, when it is done
//! ```
//!
//! Nothing waits but tasks of the node thread, of which there may be any number. The kernel checks permissions, since
//! it knows users and groups; it keeps names and attributes for a second, and pages of a file as long as its version
//! is the one they were read of ([record 49](../../../../docs/adr/0049-the-mount.md)).
//!
//! Map of the code, in reading order:
//!
//! - [`MountedDirectory`] in `mounted_directory.rs`: beginning and ending; [`MountSettings`] in `settings.rs`;
//!   `unmounting.rs`
//! - `door.rs`: what the kernel asks for, as tasks
//! - `request_memory.rs`: memory for what programs write, which goes around
//! - `mounted_tree.rs`: what the node thread keeps; `names.rs`, `attributes.rs`, `contents.rs`, `directories.rs`
//!   over `open_directory.rs`, `extended.rs`, `space.rs`, `locks.rs` over `caller_signals.rs`: what it does;
//!   `passing.rs`: pages that a handle has passed, which the page cache lets go of
//! - `file_attributes.rs`, `errno.rs`: inodes and errors as the kernel has them
//! - [`MountCounts`] in `counts.rs` over `tally.rs`: what it has done, in numbers

mod attributes;
mod caller_signals;
mod contents;
mod counts;
mod directories;
mod door;
mod errno;
mod extended;
mod file_attributes;
mod locks;
mod mounted_directory;
mod mounted_tree;
mod names;
mod open_directory;
mod passing;
mod request_memory;
mod settings;
mod space;
mod tally;
mod unmounting;

pub use counts::{MountCounter, MountCounts};
pub use mounted_directory::MountedDirectory;
pub use settings::{LockScope, MountSettings};
pub use unmounting::{ListedMount, is_mount_of_ours, mounts_of, sync, unmount};
