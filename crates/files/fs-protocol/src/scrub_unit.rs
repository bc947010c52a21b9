//! The resolution at which damage is reported.

/// The smallest part reported as damaged, in bytes. Disks of real machines have a checksum for each unit of this size.
pub const UNIT_BYTES: u64 = 4096;
