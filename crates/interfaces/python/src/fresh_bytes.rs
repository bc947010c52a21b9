//! `bytes` of Python that are filled where they lie, without zeros being written to them first, which for large ones
//! costs as much as copying what they are to hold.
//!
//! The argument for the `unsafe` below:
//!
//! - *Nobody sees bytes that were not written.* Python has the object only when it is full; what was filled less far is
//!   copied. [`Filling`] counts what has been copied into it from its beginning on, and lets nobody read.
//! - *Nobody else writes.* Until then the one reference to the object is here, so its memory is of `Filling` alone,
//!   which does not outlive it. No part of that is of the interpreter: it may be filled without its lock.

use std::mem::MaybeUninit;
use std::slice;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The memory of `bytes` that are being filled from the beginning on.
pub(crate) struct Filling<'a> {
    memory: &'a mut [MaybeUninit<u8>],
    filled: usize,
}

impl Filling<'_> {
    /// How many bytes there are.
    pub(crate) fn filled(&self) -> usize {
        self.filled
    }

    /// Fills the next bytes with these.
    ///
    /// # Panics
    /// If there is no room for them.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.memory[self.filled..self.filled + bytes.len()].write_copy_of_slice(bytes);
        self.filled += bytes.len();
    }
}

/// Makes `bytes` that have room for `length`, and are as long as they are filled.
pub(crate) fn filled_by<'py>(
    py: Python<'py>,
    length: usize,
    fill: impl FnOnce(&mut Filling<'_>) -> PyResult<()>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (fresh, memory) = fresh(py, length)?;
    let mut filling = Filling { memory, filled: 0 };
    fill(&mut filling)?;
    let Filling { memory, filled } = filling;
    if filled == length {
        return Ok(fresh);
    }
    #[expect(unsafe_code, reason = "so many were written: see above")]
    // SAFETY: `push` has written the first `filled` bytes, and nobody can take that back.
    let written = unsafe { memory[..filled].assume_init_ref() };
    Ok(PyBytes::new(py, written))
}

/// New `bytes`, and their memory; nobody may read it before it is written, nor use the object while the memory is used.
fn fresh<'a, 'py>(
    py: Python<'py>,
    length: usize,
) -> PyResult<(Bound<'py, PyBytes>, &'a mut [MaybeUninit<u8>])> {
    if length == 0 {
        // These are not new.
        return Ok((PyBytes::new(py, &[]), &mut []));
    }
    #[expect(unsafe_code, reason = "memory that is of nobody else until it is full: see above")]
    // SAFETY: a new object with room for `length` bytes, whose only reference is returned beside them.
    let (object, memory) = unsafe {
        let object = ffi::PyBytes_FromStringAndSize(std::ptr::null(), length.try_into()?);
        let object = Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked();
        let place = ffi::PyBytes_AsString(object.as_ptr()).cast::<MaybeUninit<u8>>();
        (object, slice::from_raw_parts_mut(place, length))
    };
    Ok((object, memory))
}
