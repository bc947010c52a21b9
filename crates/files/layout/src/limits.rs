//! Limits on dimensions, nodes and disks.
//!
//! Error messages quote these limits.

/// Maximum number of dimensions of an array.
pub const DIMENSIONS_MAX: usize = 4;

/// Maximum number of compute nodes of a file.
pub const NODES_MAX: u32 = 1 << 20;

/// Maximum number of disks of a file.
pub const DISKS_MAX: u64 = 1 << 20;
