//! What a ring is made of: atomic numbers, and slots that are all zero.
//!
//! They stand apart from `ring.rs` so that its model in `tests/ring.rs` can put its own in their place.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

use bytemuck::zeroed_slice_box;

/// Room for sixteen bytes.
pub(crate) type Slot = [AtomicU64; 2];

/// `count` slots. The system gives the memory page by page when it is first written to.
pub(crate) fn slots(count: usize) -> Box<[Slot]> {
    zeroed_slice_box(count)
}
