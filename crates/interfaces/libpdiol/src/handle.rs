//! An open file as C holds it: what the header shows of it, its lock, and the stream that the lock is for.
//!
//! The argument for the `unsafe` here: the stream is reached through [`Held`] alone, a thread with a `Held` has the
//! lock, and nothing that works on a stream is called back from within.

#![expect(unsafe_code, reason = "the lock says who has the stream: see above")]

use std::cell::UnsafeCell;
use std::sync::Arc;

use pdiol::Result;

use crate::front::Front;
use crate::lock::Lock;
use crate::stream::Stream;

/// The target of a `PFS_FILE *`: the front, followed by fields that the header does not show.
#[repr(C)]
pub(crate) struct Handle {
    pub(crate) front: Front,
    pub(crate) lock: Lock,
    stream: UnsafeCell<Stream>,
}

// SAFETY: the stream is touched only by the thread that has the lock (`Held`), and may go from thread to thread.
unsafe impl Send for Handle {}
// SAFETY: the same.
unsafe impl Sync for Handle {}

/// The lock of a file, until this is dropped.
pub(crate) struct Held<'a>(&'a Handle);

impl<'a> Held<'a> {
    pub(crate) fn take(handle: &'a Handle) -> Self {
        handle.lock.lock(&handle.front);
        let mut held = Held(handle);
        held.stream().take_in(&handle.front);
        held
    }

    pub(crate) fn stream(&mut self) -> &mut Stream {
        // SAFETY: this thread has the lock, and no other `Held`: nothing here is called back from within.
        unsafe { &mut *self.0.stream.get() }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.lock.unlock(&self.0.front);
    }
}

impl Handle {
    /// A file that no thread has used yet.
    pub(crate) fn new(stream: Stream) -> Arc<Self> {
        let front = Front::default();
        let lock = Lock::new(&front);
        let handle = Arc::new(Handle { front, lock, stream: UnsafeCell::new(stream) });
        handle.front.clear();
        handle
    }

    /// Closes the file behind the handle, which stays.
    pub(crate) fn close(&self) -> Result<()> {
        Held::take(self).stream().close()
    }
}
