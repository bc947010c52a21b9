//! What sorting has to work with.

use super::order::Order;
use crate::store::Storage;

/// Resources for sorting.
pub(super) struct Sorting<'a> {
    /// Opens inputs and makes temporary files.
    pub(super) store: &'a dyn Storage,
    /// The order.
    pub(super) order: Order,
    /// Bytes for lines.
    pub(super) memory: u64,
}
