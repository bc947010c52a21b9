//! Building blocks of a ring: atomic numbers, and slots of zeros.
//!
//! They are separate from `ring.rs` so that its model in `tests/ring.rs` can replace them.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::zeroed_slice_box;

/// Slot of sixteen bytes.
pub(crate) type Slot = [AtomicU64; 2];

/// Returns `count` slots. The kernel allocates each page of the slots at the first write.
pub(crate) fn slots(count: usize) -> Box<[Slot]> {
    zeroed_slice_box(count)
}
