//! How finely damage is told.

/// The finest part that is told as damaged, in bytes. Disks of real machines have a checksum for each so many.
pub(crate) const UNIT_BYTES: u64 = 4096;
