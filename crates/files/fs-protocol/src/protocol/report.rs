//! What an I/O node reports of its computer, of its disks, and of the stripes on them.

use serde::{Deserialize, Serialize};

use super::ids::FileId;

/// An I/O node's report on its computer: see [`machine::Computer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExaminedComputer {
    /// Which one it is.
    pub id: u64,
    /// How many processors it has.
    pub processors: u32,
    /// Nanoseconds for which they have worked, all together.
    pub worked: u64,
    /// Nanoseconds for which they have worked for this node.
    pub worked_for_node: u64,
}

/// An I/O node's report on one of its disks, as far as known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExaminedDisk {
    /// Its size and what of it is free, in bytes.
    pub space: Option<(u64, u64)>,
    /// Identifies its device among those of the computer.
    pub device: Option<u64>,
    /// Whether its speed does not depend on other disks on its device.
    pub has_own_pace: bool,
    /// Why it cannot be used, if that is so.
    pub failure: Option<String>,
    /// Reads that have been held up there, if any have been.
    pub held_up: Option<ExaminedHeldUp>,
}

/// Reads that had to wait while many writes of another client went on, with about as many waiting in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExaminedHeldUp {
    /// How many there have been.
    pub reads: u64,
    /// The most writes of one client that waited then.
    pub writes_most: u64,
    /// Nanoseconds since the last of them.
    pub ago: u64,
}

/// A stripe of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedStripe {
    /// The file.
    pub file: FileId,
    /// Index of the disk within its node.
    pub disk: u32,
    /// Index of the stripe and its length in bytes; none if that cannot be read.
    pub stripe: Option<(u32, u64)>,
}

/// Bytes of a stripe that do not match their checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Offset in bytes within the stripe.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
}
