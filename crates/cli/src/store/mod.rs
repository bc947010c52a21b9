//! The file system as commands use it: finding agents, moving whole files.
//!
//! - `agents.rs`: which agents, by option, environment or configuration file
//! - `group.rs`: a group of compute nodes that moves a file together, disk-directed
//! - `transfer.rs`: get and put by either method, and what is left of a damaged file
//! - `beforehand.rs`: what is refused before a file is put

pub(crate) mod agents;
pub(crate) mod beforehand;
pub(crate) mod group;
pub(crate) mod transfer;
