//! The place of a stripe.

use machine::ObjectId;

/// An object, and the index of its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Home {
    pub(super) disk: usize,
    pub(super) object: ObjectId,
}
