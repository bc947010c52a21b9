//! Front of an open file: the fields that the header declares and its inline functions use.
//!
//! Only the owner of the lock may use the addresses. The fields are atomics because C code changes them, too; the order
//! of these changes does not matter.

use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicUsize, Ordering};

/// Layout of `PFS_FILE`, field by field as in `include/pdiol.h`.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Front {
    next: AtomicPtr<u8>,
    end: AtomicPtr<u8>,
    room: AtomicPtr<u8>,
    room_end: AtomicPtr<u8>,
    pub(crate) owner: AtomicUsize,
    pub(crate) busy: AtomicI32,
}

impl Front {
    /// Publishes buffered bytes for reading.
    pub(crate) fn show_bytes(&self, bytes: &[u8]) {
        let range = bytes.as_ptr_range();
        self.next.store(range.start.cast_mut(), Ordering::Relaxed);
        self.end.store(range.end.cast_mut(), Ordering::Relaxed);
    }

    /// Publishes buffer space for writing.
    pub(crate) fn show_room(&self, room: &mut [u8]) {
        let range = room.as_mut_ptr_range();
        self.room.store(range.start, Ordering::Relaxed);
        self.room_end.store(range.end, Ordering::Relaxed);
    }

    /// Returns the address of the next byte to read, and counts it as read.
    #[inline]
    pub(crate) fn take_byte(&self) -> Option<*const u8> {
        Self::advance(&self.next, &self.end).map(<*mut u8>::cast_const)
    }

    /// Returns the address of space for a byte, and counts the byte as written.
    #[inline]
    pub(crate) fn take_room(&self) -> Option<*mut u8> {
        Self::advance(&self.room, &self.room_end)
    }

    #[inline]
    fn advance(from: &AtomicPtr<u8>, to: &AtomicPtr<u8>) -> Option<*mut u8> {
        let address = from.load(Ordering::Relaxed);
        if address == to.load(Ordering::Relaxed) {
            return None;
        }
        from.store(address.wrapping_add(1), Ordering::Relaxed);
        Some(address)
    }

    /// Returns the number of published bytes that have not been read.
    pub(crate) fn bytes_left(&self) -> usize {
        distance(&self.next, &self.end)
    }

    /// Returns the number of bytes of the published space that have not been written.
    pub(crate) fn room_left(&self) -> usize {
        distance(&self.room, &self.room_end)
    }

    /// Removes all bytes and buffer space from the front.
    pub(crate) fn clear(&self) {
        self.show_bytes(&[]);
        self.show_room(&mut []);
    }
}

fn distance(from: &AtomicPtr<u8>, to: &AtomicPtr<u8>) -> usize {
    to.load(Ordering::Relaxed).addr() - from.load(Ordering::Relaxed).addr()
}
