//! Python `bytes` objects that are filled in place, without writing zeros first. For large objects, writing zeros takes
//! as long as copying the contents.
//!
//! The `unsafe` code below is sound for two reasons:
//!
//! - *No code reads unwritten bytes.* Python gets the object only when it is full; the contents of a partly filled
//!   object are copied to a new one. [`Filling`] counts the bytes written from the beginning, and has no function to
//!   read the memory.
//! - *No other code writes.* Until the object is full, this module has the only reference to it, so only `Filling`,
//!   which does not outlive the object, accesses its memory. The memory holds no state of the interpreter, so it can be
//!   filled without the interpreter lock.

use std::mem::MaybeUninit;
use std::slice;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Memory of a `bytes` object that is being filled from the beginning.
pub(crate) struct Filling<'a> {
    memory: &'a mut [MaybeUninit<u8>],
    filled: usize,
}

impl Filling<'_> {
    /// Returns the number of bytes filled.
    pub(crate) fn filled(&self) -> usize {
        self.filled
    }

    /// Appends these bytes.
    ///
    /// # Panics
    /// Panics if the remaining memory is too small.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.memory[self.filled..self.filled + bytes.len()].write_copy_of_slice(bytes);
        self.filled += bytes.len();
    }
}

/// Returns a `bytes` object with the bytes that `fill` appends, at most `length` bytes.
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
    #[expect(unsafe_code, reason = "the first `filled` bytes are written: see above")]
    // SAFETY: `push` has written the first `filled` bytes, which stay written.
    let written = unsafe { memory[..filled].assume_init_ref() };
    Ok(PyBytes::new(py, written))
}

/// Returns a new `bytes` object and its memory. The caller must not read the memory before writing it, nor use the
/// object while it uses the memory.
fn fresh<'a, 'py>(
    py: Python<'py>,
    length: usize,
) -> PyResult<(Bound<'py, PyBytes>, &'a mut [MaybeUninit<u8>])> {
    if length == 0 {
        // Python shares empty `bytes` objects, so this one may not be new.
        return Ok((PyBytes::new(py, &[]), &mut []));
    }
    #[expect(unsafe_code, reason = "only `Filling` accesses the memory until it is full: see above")]
    // SAFETY: a new object with room for `length` bytes; its only reference is returned together with the memory.
    let (object, memory) = unsafe {
        let object = ffi::PyBytes_FromStringAndSize(std::ptr::null(), length.try_into()?);
        let object = Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked();
        let place = ffi::PyBytes_AsString(object.as_ptr()).cast::<MaybeUninit<u8>>();
        (object, slice::from_raw_parts_mut(place, length))
    };
    Ok((object, memory))
}
