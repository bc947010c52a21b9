//! Files of agents as commands use them: put and get of single files and whole directories.
//!
//! - `cluster.rs`: the agents that a command uses, and nodes that connect to them.
//! - `interrupt.rs`: handlers for Ctrl-C.
//! - `namespace.rs`: the namespace of a set; `remote_file.rs`: files in it, hidden until they are whole; `globs.rs`:
//!   patterns of paths.
//! - `local.rs`: files of this computer; `memory.rs`: size of its memory.
//! - `one_file.rs`: get and put by each transfer method, and salvage of a damaged file; `preflight.rs`: checks before a
//!   file is put.
//! - `parallel.rs`: many files at once; `put_tree.rs`, `get_tree.rs`: whole directories.
//! - `scratch.rs`: files without names, for measurements; `recordings.rs`: starts and stops recording on agents.

pub mod cluster;
pub mod get_tree;
pub mod globs;
pub mod interrupt;
pub mod local;
pub mod memory;
pub mod namespace;
pub mod one_file;
pub mod parallel;
pub mod preflight;
pub mod put_tree;
pub mod recordings;
pub mod remote_file;
pub mod scratch;
