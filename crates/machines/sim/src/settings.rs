//! What a run depends on besides the description of its machine and what is started on it.

/// What a run depends on besides the description of its machine and what is started on it.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Where all randomness comes from.
    pub seed: u64,
    /// How objects lie on disks.
    pub layout: Layout,
    /// The unit in which objects get space on a disk: a multiple of the sector.
    pub block_bytes: u64,
    /// The memory of each node for what its tasks read and send by themselves. The file system has caches and buffers
    /// of its own.
    pub buffer_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { seed: 0, layout: Layout::default(), block_bytes: 8192, buffer_bytes: 64 << 20 }
    }
}

/// How objects lie on disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Each in runs as long as possible, the first from the first sector of the disk on.
    Contiguous {
        /// Space that an object gets at a time, ahead of its growth.
        reserve_bytes: u64,
    },
    /// Each block at a place of its own anywhere on the disk, drawn anew for each seed.
    Random,
}

impl Default for Layout {
    fn default() -> Self {
        Layout::Contiguous { reserve_bytes: 16 << 20 }
    }
}
