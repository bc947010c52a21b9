//! The free space on the disks of an I/O node.
//!
//! A write is accepted long before it is on its disk. Without a reservation, a full disk might be found only
//! after the writer has closed its file and exited. So a write is accepted only if there is space for it in
//! addition to all accepted writes that are not on the disk yet. The free space of a disk is looked up
//! rarely: the result is counted down, and looked up again when it is used up.
//!
//! ```text
//!   free space, as the disk reports  =  reserved for accepted writes  +  left for new writes  +  left to other users
//! ```

use std::cell::Cell;
use std::rc::Rc;

use machine::Space;

/// Limit of the bytes that a stripe takes on its disk in addition to its data: its header, records and first
/// checksums, or an object's share of the overhead of the disk's file system. The estimate may be too large:
/// before a write is refused, all dirty blocks are written and the free space is looked up again.
const OF_A_STRIPE: u64 = 24 << 10;

/// Unit in bytes in which a disk's own file system allocates space.
const PAGE: u64 = 4096;

/// Number of bytes of data for each byte of checksums. Space for checksums is allocated in units of `SUMS`
/// bytes.
const BYTES_OF_A_SUM: u64 = 128;
const SUMS: u64 = 8192;

/// One in this number of parts of the free space is never reserved: the disk has other users, such as a
/// metadata store that grows with each file.
const PARTS_OF_OTHERS: u64 = 8;

/// Limit of bytes accepted between two lookups of a disk's free space, which is never more than half of the
/// free space.
const COUNTED_DOWN_MAX: u64 = 64 << 20;

/// The free space on each disk.
pub(crate) struct DiskFreeSpace {
    disks: Vec<Rc<FreeBytes>>,
}

/// The free space on a disk, in bytes.
#[derive(Default)]
struct FreeBytes {
    /// Bytes that can be accepted before the free space has to be looked up again.
    left: Cell<u64>,
    /// Bytes reserved for accepted writes that are not on the disk yet.
    promised: Cell<u64>,
    /// Sum of all reservations ever made.
    taken: Cell<u64>,
}

/// Space reserved for an accepted write. Dropping it ends the reservation, since the data are on the disk or
/// never will be.
#[derive(Default)]
pub(crate) struct ReservedSpace {
    of: Option<Rc<FreeBytes>>,
    bytes: u64,
}

impl Drop for ReservedSpace {
    fn drop(&mut self) {
        if let Some(room) = &self.of {
            room.promised.set(room.promised.get() - self.bytes);
        }
    }
}

impl ReservedSpace {
    /// Adds another reservation for the same block of `block_bytes` bytes. Both together take no more than
    /// the whole block, however often its bytes are written.
    pub(crate) fn join(&mut self, mut other: ReservedSpace, block_bytes: u64) {
        let (most, both) = (needed(0, block_bytes), self.bytes + other.bytes);
        other.bytes = both.saturating_sub(most);
        self.bytes = both - other.bytes;
        // `other` frees the excess when it is dropped.
        if self.of.is_none() {
            self.of.clone_from(&other.of);
        }
    }
}

/// Reserved space, and the sum of all reservations, when a task began to ask a disk for its free space.
#[derive(Clone, Copy)]
pub(crate) struct FreeSpaceBefore {
    promised: u64,
    taken: u64,
}

impl DiskFreeSpace {
    /// Creates the state for `disks` disks, whose free space is not known yet.
    pub(crate) fn new(disks: usize) -> Self {
        DiskFreeSpace { disks: (0..disks).map(|_| Rc::default()).collect() }
    }

    /// Reserves space for `bytes` of a stripe that has `before` bytes on its disk; returns `None` if too
    /// little is known to be free.
    pub(crate) fn take(&self, disk: usize, before: u64, bytes: u64) -> Option<ReservedSpace> {
        let room = &self.disks[disk];
        let needed = needed(before, bytes);
        room.left.set(room.left.get().checked_sub(needed)?);
        Some(FreeBytes::promise(room, needed))
    }

    /// Returns the reservations, before the disk is asked for its free space.
    pub(crate) fn before_asking(&self, disk: usize) -> FreeSpaceBefore {
        let room = &self.disks[disk];
        FreeSpaceBefore { promised: room.promised.get(), taken: room.taken.get() }
    }

    /// Like [`take`](Self::take), after the disk has reported its `space`. A disk that does not know its
    /// space accepts everything.
    pub(crate) fn take_of(
        &self,
        disk: usize,
        (before, bytes): (u64, u64),
        space: Option<Space>,
        asked: FreeSpaceBefore,
    ) -> Option<ReservedSpace> {
        let (room, needed) = (&self.disks[disk], needed(before, bytes));
        // Some of the writes reserved at the question may be on the disk by now, but the reported space may
        // be older: count them all.
        let promised = asked.promised + (room.taken.get() - asked.taken);
        let free = space.map_or(u64::MAX, |space| space.free - space.free / PARTS_OF_OTHERS);
        let left = free.checked_sub(promised.saturating_add(needed));
        room.left.set((left.unwrap_or(0) / 2).min(COUNTED_DOWN_MAX));
        left.map(|_| FreeBytes::promise(room, needed))
    }
}

impl FreeBytes {
    fn promise(room: &Rc<FreeBytes>, bytes: u64) -> ReservedSpace {
        room.promised.set(room.promised.get() + bytes);
        room.taken.set(room.taken.get() + bytes);
        ReservedSpace { of: Some(room.clone()), bytes }
    }
}

/// Returns the limit of the space that `bytes` more of a stripe with `before` bytes take on its disk.
fn needed(before: u64, bytes: u64) -> u64 {
    let stripe = if before == 0 { OF_A_STRIPE } else { 0 };
    bytes.next_multiple_of(PAGE) + bytes.div_ceil(BYTES_OF_A_SUM).next_multiple_of(SUMS) + stripe
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: Option<Space> = Some(Space { bytes: 1 << 20, free: 200_000 });

    #[test]
    fn reserved_space_is_not_available_to_others() {
        let room = DiskFreeSpace::new(2);
        assert!(room.take(1, 0, 1).is_none(), "nothing is known");
        let asked = room.before_asking(1);
        assert!(room.take_of(1, (0, 170_000), SPACE, asked).is_none(), "no space for the metadata");
        assert!(room.take(1, 8192, 1).is_none());
        let taken = room.take_of(1, (0, 80_000), SPACE, asked).expect("there is room");
        assert!(room.take(1, 8192, 50_000).is_none(), "half of the rest is for others");
        assert!(room.take(1, 8192, 4096).is_some(), "a rejected reservation takes nothing");
        assert!(room.take_of(1, (8192, 80_000), SPACE, room.before_asking(1)).is_none(), "it is promised");
        drop(taken);
        assert!(room.take_of(1, (8192, 80_000), SPACE, room.before_asking(1)).is_some(), "it is free");
        assert!(room.take(0, 0, 1).is_none(), "another disk");
        assert!(room.take_of(0, (0, 1 << 40), None, room.before_asking(0)).is_some());
        assert!(room.take(0, 0, 1 << 20).is_some() && room.take(0, 0, COUNTED_DOWN_MAX).is_none());
    }

    #[test]
    fn writes_during_a_query_of_free_space_are_counted() {
        let room = DiskFreeSpace::new(1);
        let first = room.take_of(0, (1, 50_000), SPACE, room.before_asking(0)).expect("there is room");
        let asked = room.before_asking(0);
        // The data reach the disk, and another write is accepted, after the disk has reported its free space.
        drop(first);
        let _second = room.take(0, 1, 40_000).expect("there is room");
        assert!(room.take_of(0, (1, 80_000), SPACE, asked).is_none());
        assert!(room.take_of(0, (1, 50_000), SPACE, asked).is_some());
    }

    #[test]
    fn a_block_reserves_at_most_its_size() {
        let room = DiskFreeSpace::new(1);
        let mut block = room.take_of(0, (0, 100), None, room.before_asking(0)).expect("there is room");
        for _ in 0..100 {
            block.join(room.take(0, 0, 100).expect("there is room"), 8192);
        }
        assert_eq!(room.disks[0].promised.get(), needed(0, 8192));
        drop(block);
        assert_eq!(room.disks[0].promised.get(), 0);
    }
}
