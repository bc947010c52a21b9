//! The simulated machine: nodes, network, buses and disks in virtual time, on one thread.
//!
//! A [`Simulation`] is made from a `description::MachineDescription`, [`Settings`] and nothing else; its nodes
//! implement the seam of the crate `machine`, so all that runs on real machines runs here too. The same description,
//! seed and code give the same run, event by event; [`Simulation::digest`] tells.
//!
//! Map of the code, in reading order:
//!
//! - [`Simulation`] in `simulation.rs`: making and running a machine, and what it has done; start here;
//!   `settings.rs`: what it is made with
//! - `statistics.rs`: what is told of what a machine has done
//! - `trace.rs`: telling a recorder, slice by slice, what happens
//! - `machine.rs`: a node, [`SimMachine`]; each of its calls leads to one of the models below; `machine/net.rs`,
//!   `machine/disk.rs`, `machine/metadata.rs`: what it has of them
//! - `processor.rs`: threads, interrupts and what work costs
//! - `network.rs`: messages; `fabric.rs`, `torus.rs`: how they travel; `link.rs`: what both tell of it
//! - `disk.rs`: transfers over drives and buses; `store.rs`: what lies on a disk and where; `unflushed.rs`: what a
//!   crash leaves of it
//! - `executor.rs`: tasks, time and the main loop; `agenda.rs`: what happens when; `executor/waker.rs`: whom to wake
//! - `world.rs`: all of it tied together; `random.rs`, `sleep.rs`, `table.rs`: small parts
//! - `conformance.rs`: a machine to check laws and promises on
//!
//! What is not here: threads, clocks, files, sockets, and anything that iterates in an order that is not ours.

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
pub use settings::{Layout, Settings};
pub use simulation::Simulation;
pub use statistics::{
    BusStatistics, DiskCounts, DiskStatistics, LinkStatistics, NodeStatistics, RouterLinkStatistics,
    Statistics, Waits,
};
