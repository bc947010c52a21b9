//! The file system as commands use it: finding agents, moving whole files.
//!
//! - `agents.rs`: which agents, by option, environment or configuration file
//! - `group.rs`: a group of compute nodes that moves a file together, disk-directed
//! - `transfer.rs`: get and put by either method, and what is left of a damaged file
//! - `beforehand.rs`: what is refused before a file is put
//! - `recordings.rs`: what agents do, recorded on demand
//! - `namespace.rs`: the namespace of a set; `stored.rs`: files in it; `globs.rs`: patterns of paths
//! - `scratch.rs`: files without names, for measurements
//! - `many.rs`: many files at once; `put_tree.rs`, `get_tree.rs`: whole directories

pub(crate) mod agents;
pub(crate) mod beforehand;
pub(crate) mod get_tree;
pub(crate) mod globs;
pub(crate) mod group;
pub(crate) mod many;
pub(crate) mod namespace;
pub(crate) mod put_tree;
pub(crate) mod recordings;
pub(crate) mod scratch;
pub(crate) mod stored;
pub(crate) mod transfer;
