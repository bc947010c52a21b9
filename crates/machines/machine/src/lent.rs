//! Memory that a thread lends to a node for one operation; the thread waits until it gets the memory back. Reads place
//! data directly in lent memory, and writes send data from it, without a copy in memory of the node.

use std::mem;
use std::ops::Range;
use std::ptr::NonNull;
use std::slice;

use crate::payload::Payload;

/// Memory of another thread, while it is passed to the node that reads into it or writes from it.
pub struct LentMemory {
    start: NonNull<u8>,
    bytes: usize,
    is_writable: bool,
}

// SAFETY: the caller of the constructor promises that no other code, in any thread, uses these bytes while this value
// exists.
#[expect(unsafe_code, reason = "only one owner has the pointer: see above")]
unsafe impl Send for LentMemory {}

#[expect(
    unsafe_code,
    reason = "memory of another thread, which waits until it gets the memory back: see `new`"
)]
impl LentMemory {
    /// Returns memory to read into.
    ///
    /// # Safety
    /// Until this value and the [`Loan`](crate::Loan) made of it are dropped, the memory must not move, and no other
    /// code may read it or write to it.
    pub unsafe fn new(memory: &mut [u8]) -> Self {
        LentMemory { start: NonNull::from(&mut *memory).cast(), bytes: memory.len(), is_writable: true }
    }

    /// Returns memory to write from.
    ///
    /// # Safety
    /// Until this value and the [`Loan`](crate::Loan) made of it are dropped, the memory must not move, and no code may
    /// write to it.
    pub unsafe fn to_be_read(memory: &[u8]) -> Self {
        LentMemory { start: NonNull::from(memory).cast(), bytes: memory.len(), is_writable: false }
    }

    fn as_slice(&self) -> &[u8] {
        // SAFETY: promised by the caller of the constructor.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        assert!(self.is_writable, "only memory to read into can be written to");
        // SAFETY: promised by the caller of the constructor, and the memory was made of a slice that may be written to.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

/// Contents of lent memory.
pub(crate) struct Borrowed {
    memory: LentMemory,
    /// Minimum number of bytes of the result. Later bytes are placed only when the length of the result is known,
    /// because the owner's memory after this length must not change.
    sure: u64,
    /// Ranges in which data were placed, in order of placement.
    placed: Vec<Range<u64>>,
    /// Data for offsets from `sure` on that are not placed yet, with their offsets.
    late: Vec<(u64, Payload)>,
}

impl Borrowed {
    pub(crate) fn new(memory: LentMemory, sure: u64) -> Self {
        Borrowed { memory, sure, placed: Vec::new(), late: Vec::new() }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.memory.bytes as u64
    }

    /// Places real bytes.
    pub(crate) fn place(&mut self, at: u64, payload: &Payload) {
        let sure = self.sure.saturating_sub(at).min(payload.len());
        if sure == payload.len() {
            return self.place_now(at, payload);
        }
        self.place_now(at, &payload.slice(0..sure));
        // Copy the data to release pool memory, because there is no limit on the wait for the final length.
        self.late.push((at + sure, payload.slice(sure..payload.len()).out_of_pools()));
    }

    fn place_now(&mut self, at: u64, payload: &Payload) {
        let end = at + payload.len();
        let target = &mut self.memory.as_mut_slice()[at as usize..end as usize];
        assert!(payload.copy_to(target), "lent memory holds real bytes");
        match self.placed.last_mut() {
            Some(last) if last.end == at => last.end = end,
            _ => self.placed.push(at..end),
        }
    }

    /// Returns a copy of the bytes, because a message may need them for longer than the memory is lent.
    pub(crate) fn get(&self, at: u64, bytes: u64) -> Payload {
        Payload::from(&self.memory.as_slice()[at as usize..(at + bytes) as usize])
    }

    /// Sets the final number of bytes: places the delayed data within it, and fills gaps with zeros.
    pub(crate) fn settle(&mut self, bytes: u64) {
        for (at, payload) in mem::take(&mut self.late) {
            let there = bytes.saturating_sub(at).min(payload.len());
            self.place_now(at, &payload.slice(0..there));
        }
        self.placed.sort_unstable_by_key(|range| range.start);
        let (mut end, memory) = (0, self.memory.as_mut_slice());
        for range in self.placed.iter().chain([&(bytes..bytes)]) {
            let gap = end..range.start.min(bytes);
            if gap.start < gap.end {
                memory[gap.start as usize..gap.end as usize].fill(0);
            }
            end = end.max(range.end);
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(unsafe_code, reason = "each test waits until its loans are over")]

    use super::*;
    use crate::memory::Loan;

    #[test]
    fn placed_bytes_are_visible_at_once_and_gaps_are_filled() {
        let mut own = [9; 12];
        // SAFETY: no other code uses `own` before the loan is over.
        let loan = Loan::of(unsafe { LentMemory::new(&mut own) }, 8);
        for (at, bytes) in [(6, vec![3, 4]), (1, vec![1]), (2, vec![2])] {
            loan.place(at, &Payload::from(bytes));
        }
        loan.settle(10);
        drop(loan);
        assert_eq!(own, [0, 1, 2, 0, 0, 0, 3, 4, 0, 0, 9, 9]);
    }

    #[test]
    fn memory_behind_the_settled_bytes_stays_untouched() {
        let mut own = [9; 8];
        // SAFETY: no other code uses `own` before the loan is over.
        let loan = Loan::of(unsafe { LentMemory::new(&mut own) }, 2);
        loan.place(0, &Payload::from(vec![1, 2, 3, 4, 5]));
        loan.place(6, &Payload::zeros(2));
        loan.settle(4);
        drop(loan);
        assert_eq!(own, [1, 2, 3, 4, 9, 9, 9, 9]);
    }

    #[test]
    fn nothing_is_written_to_memory_after_its_return() {
        let mut own = [9; 4];
        // SAFETY: no other code uses `own` before the loan is over.
        let loan = Loan::of(unsafe { LentMemory::new(&mut own) }, 4);
        let late = loan.clone();
        drop(loan);
        late.place(0, &Payload::from(vec![1; 4]));
        assert_eq!((own, late.len()), ([9; 4], 4));
    }

    #[test]
    fn a_taken_payload_outlives_its_memory() {
        let own = vec![1, 2, 3];
        // SAFETY: no code writes to `own` before the loan is over.
        let loan = Loan::of(unsafe { LentMemory::to_be_read(&own) }, 0);
        let taken = loan.get(1, 2);
        drop((loan, own));
        assert_eq!(taken.to_vec(), Some(vec![2, 3]));
    }
}
