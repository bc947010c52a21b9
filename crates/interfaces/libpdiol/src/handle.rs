//! Open file behind a `PFS_FILE *`: the front, the lock, and the stream that the lock protects.
//!
//! The `unsafe` code in this module is sound: only [`Held`] gives access to the stream, a thread with a `Held` holds
//! the lock, and work on a stream never calls back into this module.

#![expect(unsafe_code, reason = "only the thread with the lock uses the stream: see above")]

use std::cell::UnsafeCell;
use std::sync::Arc;

use pdiol::Result;

use crate::front::Front;
use crate::lock::Lock;
use crate::stream::Stream;

/// Target of a `PFS_FILE *`: the front, followed by fields that the header does not declare.
#[repr(C)]
pub(crate) struct Handle {
    pub(crate) front: Front,
    pub(crate) lock: Lock,
    stream: UnsafeCell<Stream>,
}

// SAFETY: only the thread that holds the lock (`Held`) uses the stream, and the stream may move between threads.
unsafe impl Send for Handle {}
// SAFETY: the same.
unsafe impl Sync for Handle {}

/// Guard that holds the lock of a file until it is dropped.
pub(crate) struct Held<'a>(&'a Handle);

impl<'a> Held<'a> {
    pub(crate) fn take(handle: &'a Handle) -> Self {
        handle.lock.lock(&handle.front);
        let mut held = Held(handle);
        held.stream().take_in(&handle.front);
        held
    }

    pub(crate) fn stream(&mut self) -> &mut Stream {
        // SAFETY: this thread holds the lock, and has no other `Held`: work on a stream does not call back.
        unsafe { &mut *self.0.stream.get() }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.lock.unlock(&self.0.front);
    }
}

impl Handle {
    /// Returns a file that no thread has used yet.
    pub(crate) fn new(stream: Stream) -> Arc<Self> {
        let front = Front::default();
        let lock = Lock::new(&front);
        let handle = Arc::new(Handle { front, lock, stream: UnsafeCell::new(stream) });
        handle.front.clear();
        handle
    }

    /// Closes the file of the handle. The handle remains.
    pub(crate) fn close(&self) -> Result<()> {
        Held::take(self).stream().close()
    }
}
