//! What is kept of a directory that is open.

use std::cell::RefCell;

use namespace::FileNumber;

/// A directory that is open.
pub(crate) struct OpenDirectory {
    pub(crate) number: FileNumber,
    /// The names given so far.
    pub(crate) given: RefCell<Vec<Box<[u8]>>>,
}

impl OpenDirectory {
    pub(crate) fn new(number: FileNumber) -> Self {
        OpenDirectory { number, given: RefCell::default() }
    }
}
