//! Simulated machine: nodes, network, buses and disks in virtual time, on one thread.
//!
//! A [`Simulation`] is made from a `description::MachineDescription` and [`Settings`] only. Its nodes implement the
//! traits of the crate `machine`, so all code for real machines runs here too. Runs with the same description, seed and
//! code are the same, event by event; [`Simulation::digest`] shows this.
//!
//! Map of the code, in reading order:
//!
//! - [`Simulation`] in `simulation.rs`: construction, runs and statistics of a machine; start here; `settings.rs`: its
//!   settings
//! - `statistics.rs`: statistics of the machine's parts
//! - `trace.rs`: sends the activities of the machine's parts to a recorder
//! - `machine.rs`: a node, [`SimMachine`]; it passes each call to one of the models below; `machine/net.rs`,
//!   `machine/disk.rs`, `machine/metadata.rs`: its interfaces
//! - `processor.rs`: threads, interrupts and costs of work
//! - `network.rs`: messages; `fabric.rs`, `torus.rs`: their transport; `link.rs`: common parts of links
//! - `disk.rs`: transfers over drives and buses; `store.rs`: contents and layout of a disk; `unflushed.rs`: effects of
//!   a crash on unflushed changes
//! - `executor.rs`: tasks, time and the main loop; `agenda.rs`: queue of timed events; `executor/waker.rs`: wakers
//! - `world.rs`: ties all parts together; `random.rs`, `sleep.rs`, `table.rs`: small parts
//! - `conformance.rs`: a machine on which tests check laws and promises
//!
//! This crate uses no threads, clocks, files, sockets, or iteration in an undefined order.

mod agenda;
pub mod conformance;
mod disk;
mod executor;
mod fabric;
mod link;
mod machine;
mod network;
mod processor;
mod random;
mod settings;
mod simulation;
mod sleep;
mod statistics;
mod store;
mod table;
mod torus;
mod trace;
mod unflushed;
mod world;

pub use machine::{Disk, Metadata, Net, SimMachine};
pub use settings::{Layout, Settings, TaskOrder};
pub use simulation::Simulation;
pub use statistics::{
    BusStatistics, DiskCounts, DiskStatistics, LinkStatistics, NodeStatistics, RouterLinkStatistics,
    Statistics, Waits,
};
