//! An answer combined from several I/O nodes. Some of the nodes or of their disks may have failed.

use crate::error::{Error, Result};

/// The answer of the I/O nodes that did not fail, and the failures of the others.
///
/// A failed part must not hide the others. A caller that needs all parts calls [`whole`](Self::whole).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partial<T> {
    /// The answer of the I/O nodes and disks that did not fail.
    pub found: T,
    /// The failures, each of an I/O node or of one of its disks.
    pub failures: Vec<Error>,
}

impl<T> Partial<T> {
    /// Returns the answer of all I/O nodes.
    ///
    /// # Errors
    /// Fails with the first failure, if any.
    pub fn whole(self) -> Result<T> {
        self.failures.into_iter().next().map_or(Ok(self.found), |error| Err(error.into()))
    }

    /// Applies a function to the answer, and keeps the failures.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Partial<U> {
        Partial { found: make(self.found), failures: self.failures }
    }
}
