//! Access modes of files.

use std::ffi::c_int;

use node::OpenOptions;

use crate::failure::{ErrorClass, MpiError, Outcome};

/// Access mode of a file, from the bits of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AccessMode {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    pub(crate) creates: bool,
    pub(crate) is_exclusive: bool,
    pub(crate) deletes: bool,
    pub(crate) appends: bool,
    pub(crate) is_sequential: bool,
}

impl AccessMode {
    /// Returns the mode for bits in the order of the header.
    ///
    /// # Errors
    /// Fails if the bits contradict each other.
    pub(crate) fn of_bits(bits: c_int) -> Outcome<AccessMode> {
        let has = |bit: c_int| bits & (1 << bit) != 0;
        let mode = AccessMode {
            reads: has(0),
            writes: has(1),
            creates: has(2),
            is_exclusive: has(3),
            deletes: has(4),
            appends: has(5),
            is_sequential: has(6),
        };
        let wrong = |why| Err(MpiError::new(ErrorClass::Mode, format!("the access mode: {why}")));
        if !mode.reads && !mode.writes {
            return wrong("it needs one of MPI_MODE_RDONLY, MPI_MODE_WRONLY and MPI_MODE_RDWR");
        }
        if !mode.writes && (mode.creates || mode.is_exclusive) {
            return wrong("MPI_MODE_RDONLY excludes MPI_MODE_CREATE and MPI_MODE_EXCL");
        }
        if mode.is_sequential && mode.reads && mode.writes {
            return wrong("MPI_MODE_SEQUENTIAL excludes MPI_MODE_RDWR");
        }
        Ok(mode)
    }

    /// Returns the options by which the first member opens the file, and afterwards the others.
    pub(crate) fn options(self, is_first: bool) -> OpenOptions {
        let options = OpenOptions::new().read(self.reads).write(self.writes);
        match is_first {
            true => options.create(self.creates).create_new(self.creates && self.is_exclusive),
            false => options,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_access_modes_are_rejected() {
        let (read, write, create, exclusive, sequential) = (1, 2, 4, 8, 64);
        for wrong in [0, create, read | create, read | exclusive, read | write | sequential] {
            assert_eq!(
                AccessMode::of_bits(wrong).map_err(|error| error.class),
                Err(ErrorClass::Mode),
                "{wrong}"
            );
        }
        for right in [read, write, read | write, write | create | exclusive, read | sequential] {
            assert!(AccessMode::of_bits(right).is_ok(), "{right}");
        }
    }
}
