//! The file system as commands use it: finding agents, connecting, moving whole files.
//!
//! - `agents.rs`: which agents, by option, environment or configuration file
//! - `session.rs`: this process as a compute node connected to them
//! - `stream.rs`: a file of any size through a window of memory, by the traditional method
//! - `group.rs`: a group of compute nodes that moves a file together, disk-directed
//! - `transfer.rs`: get and put by either method
//! - `beforehand.rs`: what is refused before a file is put
//! - `salvage.rs`: getting what is left of a damaged file

pub(crate) mod agents;
pub(crate) mod beforehand;
pub(crate) mod group;
pub(crate) mod salvage;
pub(crate) mod session;
pub(crate) mod stream;
pub(crate) mod transfer;
