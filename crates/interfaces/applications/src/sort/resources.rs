//! Resources for sorting.

use super::order::Order;
use crate::store::Storage;

/// Resources for sorting.
pub(super) struct Sorting<'a> {
    /// Opens inputs and creates temporary files.
    pub(super) store: &'a dyn Storage,
    /// The order.
    pub(super) order: Order,
    /// Memory for lines, in bytes.
    pub(super) memory: u64,
}
