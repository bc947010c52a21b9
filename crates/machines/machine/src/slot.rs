//! Memory shared by payloads, and the grant of the pool that lent it.
//!
//! ```text
//!  BufferPool --> PoolState: permits, spare memory <-- Grant <-- Slot: bytes <-- SharedBytes of payloads
//!                                                        ^------ Buf
//! ```
//!
//! The bytes of a grant return to the pool when the last slot or buffer with the grant is dropped. The memory of a slot
//! returns when the slot is dropped.

use std::cell::RefCell;
use std::rc::Rc;

use crate::checksums::{Checksums, MemoryChange};
use crate::permits::{Permit, Permits};

/// State of a buffer pool.
pub(crate) struct PoolState {
    pub(crate) capacity_bytes: u64,
    /// One permit for each byte.
    pub(crate) permits: Permits,
    spare: RefCell<Spare>,
}

impl PoolState {
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        PoolState { capacity_bytes, permits: Permits::new(capacity_bytes), spare: RefCell::default() }
    }

    /// Takes the most recently kept spare memory. Returns an empty vector without spare memory.
    pub(crate) fn take_spare(&self) -> Vec<u8> {
        self.spare.borrow_mut().take()
    }
}

/// Memory kept for reuse, so that its pages stay mapped and in the processor's caches.
#[derive(Default)]
struct Spare {
    memory: Vec<Vec<u8>>,
    bytes: usize,
}

/// Maximum bytes of spare memory in a pool: some hundred pages, enough for bursts. More would only waste memory.
const SPARE_BYTES_MAX: usize = 32 << 20;

impl Spare {
    fn keep(&mut self, memory: Vec<u8>) {
        if memory.capacity() > 0 && self.bytes + memory.capacity() <= SPARE_BYTES_MAX {
            self.bytes += memory.capacity();
            self.memory.push(memory);
        }
    }

    fn take(&mut self) -> Vec<u8> {
        let memory = self.memory.pop().unwrap_or_default();
        self.bytes -= memory.capacity();
        memory
    }
}

/// Right to a number of bytes of a pool. Dropping the grant returns them.
pub(crate) struct Grant {
    pool: Rc<PoolState>,
    _permit: Permit,
    /// Grant of the pool that limits one user of the pool, held as long as this grant.
    _share: Option<Rc<Grant>>,
}

impl Grant {
    /// Returns the right to the bytes of `permit`; `share` returns together with it.
    pub(crate) fn new(pool: Rc<PoolState>, permit: Permit, share: Option<Rc<Grant>>) -> Rc<Self> {
        Rc::new(Grant { pool, _permit: permit, _share: share })
    }

    pub(crate) fn take_spare(&self) -> Vec<u8> {
        self.pool.take_spare()
    }

    /// Returns `bytes` bytes of memory with arbitrary contents.
    pub(crate) fn take_initialized(&self, bytes: usize) -> Vec<u8> {
        let mut memory = self.take_spare();
        if memory.capacity() < bytes {
            return vec![0; bytes];
        }
        memory.resize(bytes, 0);
        memory
    }

    fn keep_spare(&self, memory: Vec<u8>) {
        self.pool.spare.borrow_mut().keep(memory);
    }
}

/// Memory shared by payloads, with its grant if a pool lent it.
pub(crate) struct MemorySlot {
    bytes: Vec<u8>,
    grant: Option<Rc<Grant>>,
    checksums: Checksums,
}

impl MemorySlot {
    pub(crate) fn unpooled(bytes: Vec<u8>) -> Self {
        MemorySlot { bytes, grant: None, checksums: Checksums::default() }
    }

    pub(crate) fn pooled(bytes: Vec<u8>, grant: Rc<Grant>) -> Self {
        MemorySlot { bytes, grant: Some(grant), checksums: Checksums::default() }
    }

    /// Returns true if a pool other than that of `grant` lent the memory.
    pub(crate) fn is_of_another(&self, grant: &Grant) -> bool {
        self.grant.as_ref().is_some_and(|own| !Rc::ptr_eq(&own.pool, &grant.pool))
    }

    /// Moves the memory to the pool of `grant`; the pool that had lent it gets `spare` in exchange.
    pub(crate) fn change_pools(&mut self, grant: Rc<Grant>, spare: Vec<u8>) {
        if let Some(lender) = self.grant.replace(grant) {
            lender.keep_spare(spare);
        }
    }

    pub(crate) fn is_pooled(&self) -> bool {
        self.grant.is_some()
    }

    /// Takes the memory without returning it to the pool.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn checksums(&self) -> &Checksums {
        &self.checksums
    }

    pub(crate) fn set_checksums(&mut self, checksums: Checksums) {
        self.checksums = checksums;
    }

    /// Changes the memory, and its checksums with it.
    pub(crate) fn change(&mut self, change: &MemoryChange, make: impl FnOnce(&mut [u8])) {
        self.checksums.follow(&mut self.bytes, change, make);
    }
}

impl Drop for MemorySlot {
    fn drop(&mut self) {
        if let Some(grant) = &self.grant {
            grant.keep_spare(std::mem::take(&mut self.bytes));
        }
    }
}
