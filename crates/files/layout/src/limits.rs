//! The most of what there may be: dimensions, nodes, disks.
//!
//! Errors name these limits, and all who count keep to them.

/// The most dimensions an array has.
pub const DIMENSIONS_MAX: usize = 4;

/// The most compute nodes a file is dealt to.
pub const NODES_MAX: u32 = 1 << 20;

/// The most disks a file is spread over.
pub const DISKS_MAX: u64 = 1 << 20;
