//! Settings of a run, in addition to the description of the machine and the tasks started on it.

/// Settings of a run, in addition to the description of the machine and the tasks started on it.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Layout of objects on disks.
    pub layout: Layout,
    /// Unit in bytes of space allocation on a disk: a multiple of the sector size.
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
    /// The order in which the tasks were woken.
    #[default]
    Woken,
    /// A random order that depends on the seed, for tests that search for errors that depend on the order.
    Drawn,
}

/// Layout of objects on disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Runs as long as possible. The first run begins at the first sector of the disk.
    Contiguous {
        /// Number of bytes that are reserved at a time for an object that grows.
        reserve_bytes: u64,
    },
    /// An independent random place for each block, which depends on the seed.
    Random,
}

impl Default for Layout {
    fn default() -> Self {
        Layout::Contiguous { reserve_bytes: 16 << 20 }
    }
}
