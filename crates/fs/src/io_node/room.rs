//! How much more the disks of an I/O node can take.
//!
//! A write is accepted long before it is on its disk, and a full disk might be found only after the writer has closed
//! its file and is gone. So a write is accepted only if there is room for it beside all that was accepted before. The
//! free space of a disk is looked up rarely: the number found is counted down, and looked up again when it is used up.

use std::cell::Cell;

use machine::Space;

/// What a stripe takes on its disk beside its bytes, at most: its header, records and first sums, or an object's share
/// of what the disk's own file system keeps. The estimate may be too large: before a write is refused, all is written
/// out and the free space looked up again.
const OF_A_STRIPE: u64 = 24 << 10;

/// A disk's own file system gives space in multiples of this.
const PAGE: u64 = 4096;

/// A byte of sums is stored for each this many bytes.
const BYTES_OF_A_SUM: u64 = 128;

/// The most bytes accepted between two looks at a disk's free space, and never more than half of it: others use the
/// disk, too.
const COUNTED_DOWN_MAX: u64 = 64 << 20;

/// The room on each disk.
pub(super) struct DiskRoom {
    /// By disk, the bytes that can be accepted before its free space has to be looked up again.
    left: Vec<Cell<u64>>,
}

impl DiskRoom {
    /// For `disks` disks, of whose space nothing is known yet.
    pub(super) fn new(disks: usize) -> Self {
        DiskRoom { left: vec![Cell::new(0); disks] }
    }

    /// Takes room for `bytes` more of a stripe that has `before` bytes on its disk. False if there is none as far as is
    /// known.
    pub(super) fn take(&self, disk: usize, before: u64, bytes: u64) -> bool {
        let left = &self.left[disk];
        let rest = left.get().checked_sub(needed(before, bytes));
        rest.inspect(|&rest| left.set(rest)).is_some()
    }

    /// As [`take`](Self::take), from the `space` that the disk has just reported, of which `promised` bytes are for
    /// what is accepted and not written yet. A disk that does not know its space takes all.
    pub(super) fn take_of(
        &self,
        disk: usize,
        (before, bytes): (u64, u64),
        space: Option<Space>,
        promised: u64,
    ) -> bool {
        let free = space.map_or(u64::MAX, |space| space.free.saturating_sub(promised));
        let left = free.checked_sub(needed(before, bytes));
        self.left[disk].set((left.unwrap_or(0) / 2).min(COUNTED_DOWN_MAX));
        left.is_some()
    }
}

/// What `bytes` more of a stripe that has `before` take on its disk.
fn needed(before: u64, bytes: u64) -> u64 {
    let stripe = if before == 0 { OF_A_STRIPE } else { 0 };
    bytes.next_multiple_of(PAGE) + bytes / BYTES_OF_A_SUM + stripe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_not_there_for_others() {
        let room = DiskRoom::new(2);
        assert!(!room.take(1, 0, 1), "nothing is known");
        let space = Some(Space { bytes: 1 << 20, free: 200_000 });
        assert!(!room.take_of(1, (0, 170_000), space, 20_000), "there is no room for what goes with them");
        assert!(!room.take(1, 8192, 1));
        assert!(room.take_of(1, (0, 80_000), space, 20_000));
        assert!(!room.take(1, 8192, 50_000), "half of what is left is for others");
        assert!(room.take(1, 8192, 4096), "what is refused takes nothing");
        assert!(!room.take(0, 0, 1), "another disk");
        assert!(room.take_of(0, (0, 1 << 40), None, 1 << 40));
        assert!(room.take(0, 0, 1 << 20) && !room.take(0, 0, COUNTED_DOWN_MAX));
    }
}
