//! Buffers: memory of a bounded pool, owned by one task or one transfer at a time.
//!
//! A transfer takes its buffer by value and gives it back; so no memory is ever written by a device
//! after its owner has gone, and io_uring is as easy as a plain read. Dropping a buffer, or the last
//! payload frozen from it, returns its bytes to the pool. The bound of the pool is a node's flow
//! control: who finds none free waits, in order of arrival.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use crate::payload::{Payload, Piece, SharedBytes};
use crate::permits::{Permit, Permits};

/// A bounded set of buffers, by bytes. Cloning gives another handle on the same pool.
#[derive(Clone)]
pub struct BufferPool {
    inner: Rc<PoolInner>,
}

struct PoolInner {
    capacity_bytes: u64,
    /// One for each byte.
    permits: Permits,
    spare: RefCell<Spare>,
}

/// Memory kept for the next taker, so that pages stay mapped and warm.
#[derive(Default)]
struct Spare {
    memory: Vec<Vec<u8>>,
    bytes: usize,
}

/// Maximum bytes of spare memory in a pool: some hundred pages, enough for bursts. More would hoard memory without
/// helping.
const SPARE_BYTES_MAX: usize = 32 << 20;

impl Spare {
    fn keep(&mut self, memory: Vec<u8>) {
        if memory.capacity() > 0 && self.bytes + memory.capacity() <= SPARE_BYTES_MAX {
            self.bytes += memory.capacity();
            self.memory.push(memory);
        }
    }

    /// Takes the memory kept last; an empty vector if there is none.
    fn take(&mut self) -> Vec<u8> {
        let memory = self.memory.pop().unwrap_or_default();
        self.bytes -= memory.capacity();
        memory
    }
}

impl BufferPool {
    /// A pool that never lends more than `capacity_bytes` at once.
    pub fn new(capacity_bytes: u64) -> Self {
        BufferPool {
            inner: Rc::new(PoolInner {
                capacity_bytes,
                permits: Permits::new(capacity_bytes),
                spare: RefCell::default(),
            }),
        }
    }

    /// Takes a buffer of `bytes`, waiting behind earlier takers until there is room.
    ///
    /// # Panics
    /// If `bytes` is more than the whole pool holds: that wait would never end.
    pub async fn take(&self, bytes: u64) -> Buf {
        let pool = &self.inner;
        assert!(
            bytes <= pool.capacity_bytes,
            "a buffer of {bytes} bytes from a pool of {}",
            pool.capacity_bytes
        );
        let permit = pool.permits.take_many(bytes).await;
        self.lend(bytes, permit)
    }

    /// Takes a buffer as long as `share`, which is of a pool that bounds what one of several takers has of this one.
    /// Both are given back together.
    ///
    /// # Panics
    /// If that is more than the whole pool holds.
    pub async fn take_for(&self, share: Buf) -> Buf {
        let mut buffer = self.take(share.len()).await;
        let lease = Rc::get_mut(&mut buffer.lease).expect("just lent");
        lease._share = Some(share);
        buffer
    }

    /// Memory with room for `bytes`, and nothing in it, for a device that fills a vector before its buffer is taken:
    /// see
    /// [`fill_memory`](Buf::fill_memory).
    pub fn spare_memory(&self, bytes: usize) -> Vec<u8> {
        let mut memory = self.inner.spare.borrow_mut().take();
        memory.clear();
        memory.reserve_exact(bytes);
        memory
    }

    /// Takes a buffer of `bytes` if there is room and nobody waits.
    pub fn try_take(&self, bytes: u64) -> Option<Buf> {
        let permit = self.inner.permits.try_take_many(bytes)?;
        Some(self.lend(bytes, permit))
    }

    /// Bytes that nobody holds.
    pub fn free_bytes(&self) -> u64 {
        self.inner.permits.free()
    }

    /// Bytes the pool can lend in all.
    pub fn capacity_bytes(&self) -> u64 {
        self.inner.capacity_bytes
    }

    fn lend(&self, bytes: u64, permit: Permit) -> Buf {
        let lease = Rc::new(Lease { pool: self.inner.clone(), _permit: permit, _share: None });
        Buf { lease, contents: Payload::zeros(bytes) }
    }
}

/// The right to a number of bytes of a pool; returned when dropped.
struct Lease {
    pool: Rc<PoolInner>,
    _permit: Permit,
    /// The part of the taker's own bound, until this is returned.
    _share: Option<Buf>,
}

impl Lease {
    fn recycle(&self, memory: Vec<u8>) {
        self.pool.spare.borrow_mut().keep(memory);
    }

    /// The piece, with memory that no other pool misses.
    fn take_over(self: &Rc<Self>, piece: Piece) -> Piece {
        let Piece::Bytes(mut shared) = piece else { return piece };
        let foreign = shared.slot().lease.as_ref().is_some_and(|lease| !Rc::ptr_eq(&lease.pool, &self.pool));
        if !foreign {
            return Piece::Bytes(shared);
        }
        let spare = self.pool.spare.borrow_mut().take();
        if let Some(slot) = shared.exclusive_slot() {
            if let Some(lender) = slot.lease.replace(self.clone()) {
                lender.recycle(spare);
            }
            return Piece::Bytes(shared);
        }
        let mut memory = spare;
        memory.clear();
        memory.extend_from_slice(shared.as_slice());
        let range = 0..memory.len();
        let slot = Slot { bytes: memory, lease: Some(self.clone()) };
        Piece::Bytes(SharedBytes::new(Rc::new(slot), range))
    }
}

/// Memory shared by payloads, with the lease it was taken under, if any.
pub(crate) struct Slot {
    bytes: Vec<u8>,
    lease: Option<Rc<Lease>>,
}

impl Slot {
    pub(crate) fn unpooled(bytes: Vec<u8>) -> Self {
        Slot { bytes, lease: None }
    }

    /// Takes the memory out, so that it is not recycled.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(lease) = &self.lease {
            lease.recycle(std::mem::take(&mut self.bytes));
        }
    }
}

/// A writable buffer. Its contents start as zeros.
///
/// Payloads sliced from it share its memory and keep it from returning to the pool. A payload without
/// memory (zeros, phantoms) keeps nothing: hold the buffer itself until its transfer is over.
pub struct Buf {
    lease: Rc<Lease>,
    contents: Payload,
}

impl Buf {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.contents.len()
    }

    /// Whether the buffer has no bytes.
    pub fn is_empty(&self) -> bool {
        self.contents.is_empty()
    }

    /// The bytes `range` of the contents, shared: later changes to the buffer do not show in them.
    pub fn slice(&self, range: Range<u64>) -> Payload {
        self.contents.slice(range)
    }

    /// Puts `payload` at offset `at` of the contents.
    ///
    /// # Panics
    /// If it does not fit.
    pub fn put(&mut self, at: u64, payload: &Payload) {
        let (end, bytes) = (at + payload.len(), self.len());
        assert!(end <= bytes, "{} bytes at {at} of a buffer of {bytes}", payload.len());
        if payload.pieces().iter().all(is_real) {
            let target = &mut self.exclusive_memory()[at as usize..end as usize];
            assert!(payload.copy_to(target), "all pieces are real");
        } else {
            let (before, after) = (self.contents.slice(0..at), self.contents.slice(end..bytes));
            self.contents = Payload::concat([&before, payload, &after]);
        }
    }

    /// Makes `payload` the whole contents, without copying. For devices that deliver a payload.
    ///
    /// # Panics
    /// If it is not exactly as long as the buffer.
    pub fn fill(&mut self, payload: Payload) {
        assert_eq!(payload.len(), self.len(), "as long as the buffer");
        self.contents = payload;
    }

    /// Makes `payload` the contents, and its memory this pool's: another pool that lent it has its bytes back at
    /// once. What the payload lacks of the buffer's length is zeros.
    ///
    /// For long-lived owners of data that a bounded pool lent for a moment, such as the pool that a network
    /// receives into. Unshared memory changes its owner as it is, and that pool gets spare memory in exchange;
    /// shared bytes of another pool are copied.
    ///
    /// # Panics
    /// If it is longer than the buffer.
    pub fn adopt(&mut self, payload: Payload) {
        let bytes = self.len();
        assert!(payload.len() <= bytes, "a payload no longer than the buffer");
        let mut contents = Payload::empty();
        for piece in payload.into_pieces() {
            contents.push(&Payload::from(self.lease.take_over(piece)));
        }
        contents.push(&Payload::zeros(bytes - contents.len()));
        self.contents = contents;
    }

    /// Takes memory for a device that fills a vector; its length is 0, its capacity the buffer's.
    ///
    /// The contents are zeros until [`fill_memory`](Self::fill_memory) gives the memory back.
    pub fn take_memory(&mut self) -> Vec<u8> {
        let bytes = self.len();
        let contents = std::mem::replace(&mut self.contents, Payload::zeros(bytes));
        let own = contents.into_single_piece().and_then(Piece::into_exclusive_memory);
        let mut memory = own.unwrap_or_else(|| self.lease.pool.spare.borrow_mut().take());
        memory.clear();
        memory.reserve_exact(bytes as usize);
        memory
    }

    /// Makes `memory` the contents; what it lacks of the buffer's length is zeros.
    ///
    /// # Panics
    /// If it is longer than the buffer.
    pub fn fill_memory(&mut self, mut memory: Vec<u8>) {
        let bytes = self.len() as usize;
        assert!(memory.len() <= bytes, "memory no longer than the buffer");
        memory.resize(bytes, 0);
        let slot = Rc::new(Slot { bytes: memory, lease: Some(self.lease.clone()) });
        self.contents = Payload::from(Piece::Bytes(SharedBytes::new(slot, 0..bytes)));
    }

    /// The contents as memory nobody else sees, copied there if they are not yet.
    fn exclusive_memory(&mut self) -> &mut [u8] {
        if self.contents.exclusive_bytes().is_none() {
            let old = self.contents.clone();
            let mut memory = self.take_memory();
            memory.resize(old.len() as usize, 0);
            assert!(old.copy_to(&mut memory), "a buffer holds real bytes or phantoms, not both");
            drop(old);
            self.fill_memory(memory);
        }
        self.contents.exclusive_bytes().expect("just made exclusive")
    }
}

fn is_real(piece: &Piece) -> bool {
    matches!(piece, Piece::Bytes(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_returns_with_the_last_payload() {
        let pool = BufferPool::new(100);
        let mut buffer = pool.try_take(60).expect("room for 60 of 100");
        buffer.put(10, &Payload::from(vec![1, 2, 3]));
        let payload = buffer.slice(10..13);
        drop(buffer);
        assert!(pool.try_take(60).is_none());
        assert_eq!(payload.to_vec(), Some(vec![1, 2, 3]));
        drop(payload);
        assert_eq!(pool.free_bytes(), 100);
    }

    #[test]
    fn a_share_returns_with_what_was_taken_for_it() {
        let (pool, part) = (BufferPool::new(100), BufferPool::new(30));
        let share = part.try_take(30).expect("room for it");
        let mut take = std::pin::pin!(pool.take_for(share));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let std::task::Poll::Ready(mut buffer) = take.as_mut().poll(&mut context) else {
            panic!("there is room")
        };
        buffer.fill_memory(vec![1; 30]);
        let payload = buffer.slice(0..10);
        drop(buffer);
        assert_eq!((pool.free_bytes(), part.free_bytes()), (70, 0));
        drop(payload);
        assert_eq!((pool.free_bytes(), part.free_bytes()), (100, 30));
    }

    #[test]
    fn a_slice_does_not_see_later_puts() {
        let mut buffer = BufferPool::new(8).try_take(4).expect("room");
        buffer.put(0, &Payload::from(vec![1, 1, 1, 1]));
        let before = buffer.slice(0..4);
        buffer.put(1, &Payload::from(vec![2, 2]));
        assert_eq!(before.to_vec(), Some(vec![1, 1, 1, 1]));
        assert_eq!(buffer.slice(0..4).to_vec(), Some(vec![1, 2, 2, 1]));
    }

    fn lent(pool: &BufferPool, bytes: &[u8]) -> Payload {
        let mut buffer = pool.try_take(bytes.len() as u64).expect("room");
        buffer.put(0, &Payload::from(bytes));
        buffer.slice(0..bytes.len() as u64)
    }

    #[test]
    fn adopted_memory_goes_back_to_its_lender_at_once() {
        let (network, cache) = (BufferPool::new(8), BufferPool::new(100));
        let received = lent(&network, &[1; 8]);
        let place = received.as_contiguous().map(<[u8]>::as_ptr);
        assert_eq!(network.free_bytes(), 0);
        let mut page = cache.try_take(10).expect("room");
        page.adopt(received);
        assert_eq!((network.free_bytes(), cache.free_bytes()), (8, 90));
        assert_eq!(page.slice(0..10).to_vec(), Some(vec![1, 1, 1, 1, 1, 1, 1, 1, 0, 0]));
        assert_eq!(page.slice(0..8).as_contiguous().map(<[u8]>::as_ptr), place, "without a copy");
        drop(page);
        assert_eq!(cache.free_bytes(), 100);
    }

    #[test]
    fn adopted_memory_that_others_share_is_copied() {
        let (network, cache) = (BufferPool::new(8), BufferPool::new(8));
        let received = lent(&network, &[1; 8]);
        let mut page = cache.try_take(8).expect("room");
        page.adopt(received.clone());
        drop(received);
        assert_eq!(network.free_bytes(), 8);
        assert_eq!(page.slice(0..8).to_vec(), Some(vec![1; 8]));
    }

    #[test]
    fn lenders_get_spare_memory_for_what_is_adopted() {
        let (network, cache) = (BufferPool::new(8), BufferPool::new(8));
        let mut memory = Vec::new();
        for round in 0..3 {
            let received = lent(&network, &[round; 8]);
            memory.push(received.as_contiguous().map(<[u8]>::as_ptr));
            cache.try_take(8).expect("room").adopt(received);
        }
        assert_eq!(memory[2], memory[0], "what the cache let go of is received into again");
    }

    #[test]
    fn phantoms_are_put_without_memory() {
        let mut buffer = BufferPool::new(1 << 40).try_take(1 << 40).expect("room");
        buffer.put(1 << 30, &Payload::phantom(crate::Source(3), 0, 1 << 20));
        assert_eq!(buffer.slice(1 << 30..(1 << 30) + 5), Payload::phantom(crate::Source(3), 0, 5));
        assert_eq!(buffer.slice(0..9), Payload::zeros(9));
    }
}
