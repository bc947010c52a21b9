//! What is known of a file.

use layout::Striping;

/// The metadata of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its size in bytes.
    pub bytes: u64,
    /// Its block size in bytes, which is that of its pages.
    pub block_bytes: u64,
    /// How many stripes it has, each on another disk.
    pub stripes: u32,
}

impl Stat {
    pub(crate) fn of(bytes: u64, striping: Striping) -> Self {
        Stat { bytes, block_bytes: striping.block_bytes(), stripes: striping.stripe_count() }
    }
}
