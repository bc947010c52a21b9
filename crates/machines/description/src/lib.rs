//! Descriptions of machines and disks: TOML in which every number says where it comes from.
//!
//! A description is checked completely when it is read, so that code that builds a machine from it need not check it
//! again: an unknown key, a wrong unit or a value no disk can have is refused with the file, the line and what was
//! expected there. This crate knows nothing of how a disk behaves; the crate `disk` gives the numbers their meaning.
//!
//! Reading order: [`WrittenAsText`] (a number with a unit), [`Sourced`] (a quantity with its source),
//! [`DiskDescription`] (the quantities of a disk), [`MachineDescription`] (those of a machine around it),
//! [`Description`] (how text becomes any of these).

mod disk;
mod load;
mod machine;
mod quantity;
mod sourced;
mod suggestion;

pub use disk::{
    Controller, DiskDescription, DrawnDisk, MechanicalDisk, Region, Seek, StreamingDisk, TrackAddress,
};
pub use load::{Description, Error, Misfit, SIZE_LIMIT, in_folder, read_text, text_of};
pub use machine::{
    Buses, Disks, Level, MachineDescription, MetadataCosts, Network, Nodes, Placement, Processor,
    SystemCosts, Topology, Torus, WorkCost, WorkCosts,
};
pub use quantity::{Bytes, Cycles, Frequency, Rate, Rpm, Time, WrittenAsText};
pub use sourced::Sourced;
pub use suggestion::unknown;
