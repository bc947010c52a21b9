//! The unit in which damage is reported.

/// Length in bytes of the smallest part that is reported as damaged. Disks of real machines have a checksum for each
/// unit of this size.
pub const UNIT_BYTES: u64 = 4096;
