//! Reports of an I/O node about its computer, its disks, and the stripes on them.

use serde::{Deserialize, Serialize};

use super::ids::FileId;

/// An I/O node's report on its computer: see [`machine::Computer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExaminedComputer {
    /// Identifies the computer.
    pub id: u64,
    /// Number of processors of the computer.
    pub processors: u32,
    /// Busy time of all processors together, in nanoseconds.
    pub worked: u64,
    /// Busy time of all processors together for this node, in nanoseconds.
    pub worked_for_node: u64,
}

/// An I/O node's report on one of its disks, as far as known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExaminedDisk {
    /// Size and free space in bytes.
    pub space: Option<(u64, u64)>,
    /// Identifies the disk's device among the devices of the computer.
    pub device: Option<u64>,
    /// True if the speed of the disk does not depend on other disks on its device.
    pub has_own_pace: bool,
    /// Reason why the disk cannot be used, if it cannot be used.
    pub failure: Option<String>,
    /// Reads that were delayed at this disk, if any were.
    pub held_up: Option<ExaminedHeldUp>,
}

/// Reads that waited while many writes of other clients were served, although about as many of these writes still
/// waited afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExaminedHeldUp {
    /// Number of delayed reads.
    pub reads: u64,
    /// Largest number of waiting writes of one client at the times of these reads.
    pub writes_most: u64,
    /// Time since the last delayed read, in nanoseconds.
    pub ago: u64,
}

/// A stripe of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedStripe {
    /// The file.
    pub file: FileId,
    /// Index of the disk within its node.
    pub disk: u32,
    /// Index of the stripe, and its length in bytes; `None` if the label cannot be read.
    pub stripe: Option<(u32, u64)>,
}

/// Bytes of a stripe that do not match their checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Offset in bytes within the stripe.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}
