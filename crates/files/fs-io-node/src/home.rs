//! Where a stripe is.

use machine::ObjectId;

/// An object, and the disk that it lies on by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Home {
    pub(super) disk: usize,
    pub(super) object: ObjectId,
}
