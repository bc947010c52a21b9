//! Descriptions of machines and disks: TOML in which every number states its source.
//!
//! A description is checked completely when it is read, so code that builds a machine from it need not check it again.
//! An unknown key, a wrong unit or an impossible value is rejected; the error names the file, the line and the expected
//! input. This crate does not model disks; the crate `disk` implements the meaning of the numbers.
//!
//! Reading order:
//!
//! - [`WrittenAsText`]: a number with a unit.
//! - [`Sourced`]: a quantity with its source.
//! - [`DiskDescription`]: the quantities of a disk.
//! - [`MachineDescription`]: the quantities of a machine with its disks.
//! - [`Description`]: reads and checks a disk or machine description.

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
