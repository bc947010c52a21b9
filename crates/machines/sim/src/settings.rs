//! Settings of a run, besides the description of its machine and the tasks started on it.

/// Settings of a run, besides the description of its machine and the tasks started on it.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Seed of all randomness.
    pub seed: u64,
    /// Layout of objects on disks.
    pub layout: Layout,
    /// Unit in bytes of space allocation on a disk: a multiple of the sector.
    pub block_bytes: u64,
    /// Size in bytes of each node's buffer pool for direct reads and sends of its tasks. The file system has separate
    /// caches and buffers.
    pub buffer_bytes: u64,
    /// Order of tasks that are ready at the same time.
    pub task_order: TaskOrder,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            seed: 0,
            layout: Layout::default(),
            block_bytes: 8192,
            buffer_bytes: 64 << 20,
            task_order: TaskOrder::Woken,
        }
    }
}

/// Order of tasks that are ready at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskOrder {
    /// In the order in which they were woken.
    #[default]
    Woken,
    /// Drawn from the seed: for tests that look for errors that depend on the order.
    Drawn,
}

/// Layout of objects on disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Runs as long as possible, the first from the first sector of the disk on.
    Contiguous {
        /// Number of bytes that an object reserves at a time, ahead of its growth.
        reserve_bytes: u64,
    },
    /// Independent random place of each block, different for each seed.
    Random,
}

impl Default for Layout {
    fn default() -> Self {
        Layout::Contiguous { reserve_bytes: 16 << 20 }
    }
}
